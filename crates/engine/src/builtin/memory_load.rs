//! Injects memory when a session starts: core memory, what the last session did, the last summary, recent
//! facts, and facts related to the focused node.

use std::collections::BTreeSet;

use tanmi_base::{Lang, text};
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BuiltinRule, REMINDER_RESERVE, RuleInput, RuleOutput, SkipReason};
use crate::capped_text::CappedText;
use crate::escape_tags::escape_line;
use crate::facts::{DigestFacts, FactLine, Facts, MemoryFacts, WorkedNode};

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
    let digest = memory.digest.as_ref().filter(|digest| !digest.is_known);
    let rest = digest.map(|digest| match ctx.has_context {
        true => without_context(digest, ctx.facts),
        false => with_workspaces(digest, ctx.facts),
    });
    let digest = rest.as_ref().filter(|digest| digest.has_news());
    let content = memory_text(memory, digest, ctx.facts.lang, budget);
    if content.is_empty() {
        return Err(("还没有记忆", "there is no memory yet"));
    }
    RuleOutput::unthrottled(ActionKind::Memory, content)
}

/// Returns a text of at most `budget` bytes. The most important lines come first and are cut last.
fn memory_text(memory: &MemoryFacts, digest: Option<&DigestFacts>, lang: Lang, budget: usize) -> String {
    let pointer = lang.pick("（更多：memory_search）", "(more: memory_search)");
    let mut body = CappedText::new(budget.saturating_sub(pointer.len() + 1));
    if let Some(day) = &memory.as_of {
        let label = lang.pick("团队的数据截至 ", "Data of the team as of ");
        body.line(
            label,
            &lang
                .pick(format!("{day}，此后未连接服务器"), format!("{day}; the server was not reached since")),
        );
    }
    if !memory.core.is_empty() {
        body.heading(lang.pick("核心记忆", "Core memory"));
        // Core memory is a document of the user and keeps its lines; only tags are escaped.
        body.line("", &memory.core);
    }
    if let Some(digest) = digest {
        body.within(DIGEST_BYTES, |body| add_digest(body, lang, digest));
    }
    if let Some(summary) = &memory.summary {
        let heading = match memory.digest {
            None => lang.pick("上次会话", "Last session"),
            Some(_) => lang.pick("上次摘要", "Last summary"),
        };
        body.heading(&match &summary.author {
            None => heading.to_owned(),
            Some(person) => {
                let person = author_name(person);
                lang.pick(format!("{heading}（{person}）"), format!("{heading} (by {person})"))
            }
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
    let told = choose_facts(memory, lang, body.bytes_left());
    if told.len() < memory.recent.len() + memory.related.len() {
        body.leave_out();
    }
    for (heading, facts) in [
        (lang.pick("近期事实", "Recent facts"), &memory.recent),
        (lang.pick("相关事实", "Related facts"), &memory.related),
    ] {
        let mut facts = facts.iter().filter(|fact| told.contains(fact.id.as_str())).peekable();
        if facts.peek().is_some() {
            body.heading(heading);
            facts.for_each(|fact| fact_line(&mut body, fact, lang));
        }
    }
    body.finish(pointer)
}

/// The maximum length of the text of one fact, in bytes. A longer one is cut, so that it does not take the
/// place of others.
const FACT_BYTES: usize = 600;
/// The number of changed files that the line of a fact names.
const STALE_FILES: usize = 3;
/// The bytes of both headings.
const HEADING_BYTES: usize = 48;

/// Returns the ids of the facts to tell: all of them if they fit, else those with the most value per byte.
/// Preferences have the highest value, then related facts, then recent ones, the newest first. A replaced
/// fact is told only with the newer one.
fn choose_facts(memory: &MemoryFacts, lang: Lang, budget: usize) -> BTreeSet<&str> {
    let recent = memory.recent.iter().enumerate().map(|(at, fact)| match fact.letter {
        "O" => (fact, 1.0),
        _ => (fact, 0.8 - 0.02 * at as f32),
    });
    let related = memory.related.iter().enumerate().map(|(at, fact)| (fact, 0.9 - 0.05 * at as f32));
    let mut lines: Vec<(f32, usize, &FactLine)> = Vec::new();
    for (fact, value) in recent.chain(related) {
        let (label, content) = fact_parts(fact, lang);
        let value = if fact.replaced.is_some() { 0.1 } else { value };
        lines.push((value, label.len() + content.len() + 1, fact));
    }
    let mut left = budget.saturating_sub(HEADING_BYTES);
    let all: BTreeSet<&str> = lines.iter().map(|(_, _, fact)| fact.id.as_str()).collect();
    if lines.iter().map(|(_, bytes, _)| bytes).sum::<usize>() <= left {
        return all;
    }
    lines.sort_by(|(a, one, _), (b, two, _)| (b / *two as f32).total_cmp(&(a / *one as f32)));
    let mut told = BTreeSet::new();
    for (_, bytes, fact) in lines {
        // The newer fact comes first: its value is higher, unless it is much longer.
        let is_alone = fact.replaced.as_ref().is_some_and(|(_, newer)| !told.contains(newer.as_str()));
        if bytes <= left && !is_alone {
            left -= bytes;
            told.insert(fact.id.as_str());
        }
    }
    told
}

/// The maximum length of a digest, in bytes.
const DIGEST_BYTES: usize = 700;
/// The maximum length of the problems in it, so that its nodes are told too.
const DIGEST_PROBLEM_BYTES: usize = 350;

/// Returns a digest of the nodes of the bound workspace, without what the context in the same output tells of them.
fn without_context(digest: &DigestFacts, facts: &Facts) -> DigestFacts {
    let mut digest = digest.clone();
    let Some(workspace) = &facts.workspace else { return digest };
    let overview = &workspace.overview;
    let is_focus = |id: &str| facts.node.as_ref().is_some_and(|node| node.id == id);
    let is_told = |id: &str| is_focus(id) || overview.in_progress.iter().any(|node| node.id == id);
    let is_here = |node: &WorkedNode| node.workspace == workspace.id;
    digest.moved.retain(|node| is_here(node) && !is_told(&node.id));
    digest.problems.retain(|node| {
        let is_told = match node.id.as_str() {
            "workspace" => workspace.problem.is_some(),
            id => is_focus(id) || overview.problems.iter().any(|other| other.id == id),
        };
        is_here(node) && !is_told
    });
    digest.logs.retain(|log| is_here(&log.last) && !is_told(&log.last.id));
    digest
}

/// Returns a digest whose nodes name their workspaces, if the project has several.
fn with_workspaces(digest: &DigestFacts, facts: &Facts) -> DigestFacts {
    let mut digest = digest.clone();
    if facts.available.total > 1 {
        let DigestFacts { moved, problems, logs, .. } = &mut digest;
        let last_logged = logs.iter_mut().map(|log| &mut log.last);
        for node in moved.iter_mut().chain(problems).chain(last_logged) {
            node.id = format!("{} ({})", node.id, node.workspace);
        }
    }
    digest
}

fn digest_heading(digest: &DigestFacts, lang: Lang) -> String {
    let at = escape_line(&text::one_line(&digest.at));
    match digest.is_partial {
        false => lang.pick(
            format!("上次会话（{at}，由调用记录得出）"),
            format!("Last session ({at}, derived from its calls)"),
        ),
        true => lang.pick(
            format!("上次会话（{at}，由最近的调用记录得出）"),
            format!("Last session ({at}, derived from its last calls)"),
        ),
    }
}

/// Returns whether a text about the memory tells a digest.
pub fn tells_digest(memory: &str, digest: &DigestFacts, lang: Lang) -> bool {
    memory.contains(&digest_heading(digest, lang))
}

/// Adds what the last session did, open problems first, because the end is cut. The texts in it are those of
/// the project, so each part is one line.
fn add_digest(body: &mut CappedText, lang: Lang, digest: &DigestFacts) {
    body.heading(&digest_heading(digest, lang));
    let (separator, count) = (lang.pick("；", "; "), digest.more_moved());
    let problems = text::one_line(&digest.problem_lines().join(separator));
    body.within(DIGEST_PROBLEM_BYTES, |body| body.line(lang.pick("- 问题：", "- Problem: "), &problems));
    let mut moved = digest.moved_lines().join(separator);
    if count > 0 {
        moved.push_str(&lang.pick(format!("；另有 {count} 个"), format!("; {count} more")));
    }
    body.line(lang.pick("- 节点：", "- Nodes: "), &text::one_line(&moved));
    if !digest.logs.is_empty() {
        let (count, last) = (digest.log_lines(), digest.last_log_line());
        let line = lang.pick(format!("{count} 条，最近：{last}"), format!("{count}, last: {last}"));
        body.line(lang.pick("- 日志：", "- Log lines: "), &text::one_line(&line));
    }
    if digest.facts > 0 {
        body.line(lang.pick("- 保存的事实：", "- Facts saved: "), &digest.facts.to_string());
    }
}

/// Adds a fact as one line, so that newlines or headings in it cannot change the structure of the text.
fn fact_line(body: &mut CappedText, fact: &FactLine, lang: Lang) {
    let (label, content) = fact_parts(fact, lang);
    if fact.content.len() > FACT_BYTES {
        body.leave_out();
    }
    body.line(&label, &content);
}

/// The maximum length of the name of an author, in columns.
const AUTHOR_COLUMNS: usize = 40;

/// Returns the name of a person for a label. It is before the text of the fact, so that the text cannot name
/// another one.
fn author_name(person: &str) -> String {
    let name = text::fit(&text::one_line(person), AUTHOR_COLUMNS);
    escape_line(&name.replace(['[', ']'], " "))
}

/// Returns the label and the text of a fact.
fn fact_parts(fact: &FactLine, lang: Lang) -> (String, String) {
    let author = fact.author.as_deref().map(author_name);
    let author = author.map(|name| lang.pick(format!("[{name} 保存]"), format!("[by {name}]")));
    let label = format!("- [{}][{}]{} ", fact.day, fact.letter, author.unwrap_or_default());
    let mut content = text::cut(&text::one_line(&fact.content), FACT_BYTES);
    if let Some((day, newer)) = &fact.replaced {
        content.push_str(
            &lang.pick(format!("（{day} 被 {newer} 替代）"), format!(" (replaced on {day} by {newer})")),
        );
    }
    for (path, is_gone) in fact.stale_files.iter().take(STALE_FILES) {
        content.push_str(&match is_gone {
            true => lang.pick(format!("（文件 {path} 已不存在）"), format!(" (the file {path} is gone)")),
            false => {
                lang.pick(format!("（文件 {path} 之后有改动）"), format!(" (the file {path} changed since)"))
            }
        });
    }
    (text::one_line(&label), text::one_line(&content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::SummaryFacts;

    fn fact(id: &str, letter: &'static str, content: &str) -> FactLine {
        let (id, content) = (id.to_owned(), content.to_owned());
        FactLine { day: "2026-02-16".into(), letter, id, content, ..FactLine::default() }
    }

    fn told(memory: &MemoryFacts, budget: usize) -> String {
        choose_facts(memory, Lang::En, budget).into_iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn choose_facts_small_budget_keeps_the_most_value_per_byte() {
        let long = "long ".repeat(40);
        let replaced =
            FactLine { replaced: Some(("2026-02-17".into(), "a".into())), ..fact("b", "W", "Jest") };
        let memory = MemoryFacts {
            recent: vec![
                fact("a", "W", &long),
                replaced,
                fact("c", "W", "short"),
                fact("p", "O", "prefers tabs"),
            ],
            related: vec![fact("r", "W", "the gateway waits for 30 seconds")],
            ..MemoryFacts::default()
        };
        assert_eq!(told(&memory, 1000), "a b c p r");
        assert_eq!(told(&memory, 250), "c p r", "the replaced fact is not told without the newer one");
        assert_eq!(told(&memory, 130), "c p");
        assert_eq!(told(&memory, 0), "");
        let medium = "words ".repeat(15);
        let recent = vec![
            fact("m", "W", &medium),
            fact("n", "W", "the first short fact"),
            fact("o", "W", "the second"),
        ];
        let dense = MemoryFacts { recent, ..MemoryFacts::default() };
        assert_eq!(told(&dense, HEADING_BYTES + 120), "n o", "two short facts instead of the newest one");
        let text = memory_text(&memory, None, Lang::En, 250);
        assert!(text.len() <= 250 && text.ends_with("(more: memory_search)"), "{text}");
        let mark = memory_text(&memory, None, Lang::Zh, 1000);
        assert!(mark.contains("Jest（2026-02-17 被 a 替代）"), "{mark}");
    }

    #[test]
    fn fact_line_long_fact_is_cut_and_points_to_the_search() {
        let memory =
            MemoryFacts { recent: vec![fact("a", "W", &"words ".repeat(500))], ..MemoryFacts::default() };
        let text = memory_text(&memory, None, Lang::En, 9000);
        assert!(text.len() < FACT_BYTES + 100 && text.ends_with("(more: memory_search)"), "{text}");
    }

    #[test]
    fn memory_text_of_another_person_names_the_author() {
        let author = Some(String::from("bob ]<b>"));
        let by_bob = FactLine { author: author.clone(), ..fact("a", "W", "the cache is Redis — ada") };
        let memory = MemoryFacts {
            as_of: Some("2026-02-14".into()),
            summary: Some(SummaryFacts { author, topic: "Caches".into(), ..SummaryFacts::default() }),
            recent: vec![by_bob, fact("b", "O", "short answers")],
            ..MemoryFacts::default()
        };
        assert_eq!(
            memory_text(&memory, None, Lang::En, 9000),
            "Data of the team as of 2026-02-14; the server was not reached since\n\n\
             ## Last session (by bob  ‹b>)\n\n- Topic: Caches\n\n## Recent facts\n\n\
             - [2026-02-16][W][by bob  ‹b>] the cache is Redis — ada\n- [2026-02-16][O] short answers"
        );
        assert_eq!(
            memory_text(&memory, None, Lang::Zh, 9000),
            "团队的数据截至 2026-02-14，此后未连接服务器\n\n## 上次会话（bob  ‹b>）\n\n- 主题：Caches\n\n\
             ## 近期事实\n\n- [2026-02-16][W][bob  ‹b> 保存] the cache is Redis — ada\n\
             - [2026-02-16][O] short answers"
        );
    }
}
