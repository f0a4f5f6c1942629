//! A session that starts is told what is remembered: the core, the last summary, recent facts, and what fits its node.

use tanmi_base::{Lang, text};
use tanmi_event::{ActionKind, EventKind};

use super::{BuiltinRule, FOR_REMINDER, RuleInput, RuleOutput, SkipReason};
use crate::capped_text::CappedText;
use crate::facts::{FactLine, MemoryFacts};

pub const RULE: BuiltinRule = BuiltinRule {
    id: "memory-load",
    about: ("会话开始时加载记忆", "injects memory when a session starts"),
    priority: 13,
    events: &[EventKind::SessionStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let memory = ctx.facts.memory.as_ref().map_err(|why| *why)?;
    let room = ctx.left.saturating_sub(ActionKind::Memory.overhead() + FOR_REMINDER);
    let content = memory_text(memory, ctx.facts.lang, room);
    if content.is_empty() {
        return Err(("还没有记忆", "there is no memory yet"));
    }
    RuleOutput::always(ActionKind::Memory, content)
}

/// At most `room` bytes; what matters most comes first and is cut last.
fn memory_text(memory: &MemoryFacts, lang: Lang, room: usize) -> String {
    let pointer = lang.pick("（更多：memory_search）", "(more: memory_search)");
    let mut page = CappedText::new(room.saturating_sub(pointer.len() + 1));
    if !memory.core.is_empty() {
        page.heading(lang.pick("核心记忆", "Core memory"));
        // A document of the person's own keeps its lines; only what looks like a tag is not one.
        page.line("", &memory.core);
    }
    if let Some(summary) = &memory.summary {
        page.heading(lang.pick("上次会话", "Last session"));
        let parts = [
            (lang.pick("主题：", "Topic: "), std::slice::from_ref(&summary.topic)),
            (lang.pick("摘要：", "Summary: "), std::slice::from_ref(&summary.summary)),
            (lang.pick("决策：", "Decision: "), &summary.decisions),
            (lang.pick("待办：", "Todo: "), &summary.todos),
        ];
        for (label, texts) in parts {
            for text in texts.iter().filter(|text| !text.trim().is_empty()) {
                page.line(&format!("- {label}"), &text::one_line(text));
            }
        }
    }
    for (heading, facts) in [
        (lang.pick("近期事实", "Recent facts"), &memory.recent),
        (lang.pick("相关事实", "Related facts"), &memory.found),
    ] {
        if !facts.is_empty() {
            page.heading(heading);
            facts.iter().for_each(|fact| fact_line(&mut page, fact));
        }
    }
    page.finish(pointer)
}

/// Data on one line: no newline, heading or tag in it can be anything else.
fn fact_line(page: &mut CappedText, fact: &FactLine) {
    page.line(&format!("- [{}][{}] ", fact.day, fact.letter), &text::one_line(&fact.content));
}
