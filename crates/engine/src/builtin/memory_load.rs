//! Injects memory when a session starts: core memory, what the last session did, the last summary, recent facts, and facts related to the
//! focused node.

use tanmi_base::{Lang, text};
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BuiltinRule, REMINDER_RESERVE, RuleInput, RuleOutput, SkipReason};
use crate::capped_text::CappedText;
use crate::escape_tags::escape_line;
use crate::facts::{DigestFacts, FactLine, MemoryFacts};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::MemoryLoad,
    about: ("会话开始时加载记忆", "injects memory when a session starts"),
    priority: 13,
    events: &[EventKind::SessionStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let memory = ctx.facts.memory.as_ref().map_err(|reason| *reason)?;
    let budget = ctx.bytes_left.saturating_sub(ActionKind::Memory.overhead() + REMINDER_RESERVE);
    let content = memory_text(memory, ctx.facts.lang, budget);
    if content.is_empty() {
        return Err(("还没有记忆", "there is no memory yet"));
    }
    RuleOutput::unthrottled(ActionKind::Memory, content)
}

/// Returns a text of at most `budget` bytes. The most important lines come first and are cut last.
fn memory_text(memory: &MemoryFacts, lang: Lang, budget: usize) -> String {
    let pointer = lang.pick("（更多：memory_search）", "(more: memory_search)");
    let mut body = CappedText::new(budget.saturating_sub(pointer.len() + 1));
    if !memory.core.is_empty() {
        body.heading(lang.pick("核心记忆", "Core memory"));
        // Core memory is a document of the user and keeps its lines; only tags are escaped.
        body.line("", &memory.core);
    }
    if let Some(digest) = &memory.digest {
        body.within(DIGEST_BYTES, |body| add_digest(body, lang, digest));
    }
    if let Some(summary) = &memory.summary {
        body.heading(match memory.digest {
            None => lang.pick("上次会话", "Last session"),
            Some(_) => lang.pick("上次摘要", "Last summary"),
        });
        let parts = [
            (lang.pick("主题：", "Topic: "), std::slice::from_ref(&summary.topic)),
            (lang.pick("摘要：", "Summary: "), std::slice::from_ref(&summary.summary)),
            (lang.pick("决策：", "Decision: "), &summary.decisions),
            (lang.pick("待办：", "Todo: "), &summary.todos),
        ];
        for (label, texts) in parts {
            for text in texts.iter().filter(|text| !text.trim().is_empty()) {
                body.line(&format!("- {label}"), &text::one_line(text));
            }
        }
    }
    for (heading, facts) in [
        (lang.pick("近期事实", "Recent facts"), &memory.recent),
        (lang.pick("相关事实", "Related facts"), &memory.related),
    ] {
        if !facts.is_empty() {
            body.heading(heading);
            facts.iter().for_each(|fact| fact_line(&mut body, fact));
        }
    }
    body.finish(pointer)
}

/// The maximum length of a digest, in bytes.
const DIGEST_BYTES: usize = 700;
/// The maximum length of the problems in it, so that its nodes are told too.
const DIGEST_PROBLEM_BYTES: usize = 350;

/// Adds what the last session did, open problems first, because the end is cut. The texts in it are those of the project,
/// so each part is one line.
fn add_digest(body: &mut CappedText, lang: Lang, digest: &DigestFacts) {
    let at = escape_line(&text::one_line(&digest.at));
    body.heading(&match digest.is_partial {
        false => lang.pick(
            format!("上次会话（{at}，由调用记录得出）"),
            format!("Last session ({at}, derived from its calls)"),
        ),
        true => lang.pick(
            format!("上次会话（{at}，由最近的调用记录得出）"),
            format!("Last session ({at}, derived from its last calls)"),
        ),
    });
    let (separator, count) = (lang.pick("；", "; "), digest.more_moved);
    let problems = text::one_line(&digest.problems.join(separator));
    body.within(DIGEST_PROBLEM_BYTES, |body| body.line(lang.pick("- 问题：", "- Problem: "), &problems));
    let mut moved = digest.moved.join(separator);
    if count > 0 {
        moved.push_str(&lang.pick(format!("；另有 {count} 个"), format!("; {count} more")));
    }
    body.line(lang.pick("- 节点：", "- Nodes: "), &text::one_line(&moved));
    if digest.log_lines > 0 {
        let (count, last) = (digest.log_lines, &digest.last_log);
        let line = lang.pick(format!("{count} 条，最近：{last}"), format!("{count}, last: {last}"));
        body.line(lang.pick("- 日志：", "- Log lines: "), &text::one_line(&line));
    }
    if digest.facts > 0 {
        body.line(lang.pick("- 保存的事实：", "- Facts saved: "), &digest.facts.to_string());
    }
}

/// Adds a fact as one line, so that newlines or headings in it cannot change the structure of the text.
fn fact_line(body: &mut CappedText, fact: &FactLine) {
    let label = format!("- [{}][{}] ", fact.day, fact.letter);
    body.line(&text::one_line(&label), &text::one_line(&fact.content));
}
