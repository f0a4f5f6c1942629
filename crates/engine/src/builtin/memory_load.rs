//! A session that starts is told what is remembered: the core, the last summary, recent facts, and what fits its node.

use tanmi_base::{Lang, text};
use tanmi_event::{ActionKind, EventKind};

use super::{Builtin, Ctx, Said, Why};
use crate::facts::{FactLine, MemoryFacts};
use crate::neutral;

pub const RULE: Builtin = Builtin {
    id: "memory-load",
    about: ("会话开始时加载记忆", "tells a session what is remembered when it starts"),
    priority: 13,
    events: &[EventKind::SessionStart],
    run,
};

/// For a reminder beside it.
const RESERVED: usize = 600;

fn run(ctx: &Ctx<'_>) -> Result<Said, Why> {
    let memory = ctx.facts.memory.as_ref().map_err(|why| *why)?;
    let room = ctx.left.saturating_sub(ActionKind::Memory.overhead() + RESERVED);
    let content = memory_text(memory, ctx.facts.lang, room);
    if content.is_empty() {
        return Err(("还没有记忆", "nothing is remembered yet"));
    }
    Said::always(ActionKind::Memory, content)
}

/// At most `room` bytes; what matters most comes first and is cut last.
fn memory_text(memory: &MemoryFacts, lang: Lang, room: usize) -> String {
    let pointer = lang.pick("（更多：memory_search）", "(more: memory_search)");
    let mut page = Page { text: String::new(), left: room.saturating_sub(pointer.len() + 1), is_cut: false };
    if !memory.core.is_empty() {
        page.heading(lang.pick("核心记忆", "Core memory"));
        // A document of the person's own keeps its lines; only what looks like a tag is not one.
        page.put(&neutral(&memory.core));
    }
    if let Some(summary) = &memory.summary {
        page.heading(lang.pick("上次会话", "Last session"));
        let parts = [
            (lang.pick("主题：", "Topic: "), std::slice::from_ref(&summary.topic)),
            (lang.pick("摘要：", "Summary: "), std::slice::from_ref(&summary.summary)),
            (lang.pick("决策：", "Decided: "), &summary.decisions),
            (lang.pick("待办：", "To do: "), &summary.todos),
        ];
        for (label, texts) in parts {
            for text in texts.iter().filter(|text| !text.trim().is_empty()) {
                page.put(&format!("- {label}{}", quoted(text)));
            }
        }
    }
    for (heading, facts) in [
        (lang.pick("近期事实", "Recent facts"), &memory.recent),
        (lang.pick("相关事实", "Related facts"), &memory.found),
    ] {
        if !facts.is_empty() {
            page.heading(heading);
            facts.iter().for_each(|fact| page.put(&fact_line(fact)));
        }
    }
    if page.is_cut {
        page.text.push_str(pointer);
    }
    page.text.trim_end().to_owned()
}

fn fact_line(fact: &FactLine) -> String {
    format!("- [{}][{}] {}", fact.day, fact.letter, quoted(&fact.content))
}

/// Data on one line: no newline, heading or tag in it can be anything else.
fn quoted(content: &str) -> String {
    neutral(&text::one_line(content))
}

struct Page {
    text: String,
    left: usize,
    is_cut: bool,
}

impl Page {
    fn heading(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.put(&format!("{gap}## {title}\n"));
    }

    fn put(&mut self, line: &str) {
        let kept = if line.len() < self.left {
            line.to_owned()
        } else {
            text::cut(line, self.left.saturating_sub(1))
        };
        if kept.len() < line.len() {
            self.is_cut = true;
            if self.left < 80 {
                self.left = 0;
                return;
            }
        }
        self.left = self.left.saturating_sub(kept.len() + 1);
        self.text.push_str(&kept);
        self.text.push('\n');
    }
}
