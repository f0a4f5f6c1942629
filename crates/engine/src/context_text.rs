//! The context text of a bound session, and the text about what changed in it.

use tanmi_base::Lang;
use tanmi_base::text::one_line;
use tanmi_event::ActionKind;

use crate::builtin::REMINDER_RESERVE;
use crate::capped_text::CappedText;
use crate::context_hash::ContextHash;
use crate::facts::{Facts, NodeFacts, WorkspaceFacts};

/// Returns the context text. Together with its surrounding tags it has at most `max_bytes` bytes. The most important lines
/// come first and are cut last.
pub fn context_text(facts: &Facts, workspace: &WorkspaceFacts, max_bytes: usize) -> String {
    let lang = facts.lang;
    let label = |zh: &str, en: &str| label(lang, zh, en);
    let (mut body, pointer) = new_body(lang, max_bytes);
    add_goal(&mut body, lang, workspace);
    body.line(&label("会话", "Session"), &one_line(&facts.session.id));
    if !workspace.rules.is_empty() {
        body.line(&label("规则", "Rules"), &format!("rulesHash {}", workspace.rules_hash));
        workspace.rules.iter().for_each(|rule| body.line("- ", rule));
    }
    match &facts.node {
        None => body.line(
            &label("聚焦节点", "Focused node"),
            lang.pick("（无；node_list 列出节点）", "(none; node_list lists the nodes)"),
        ),
        Some(node) => {
            body.line(&label("聚焦节点", "Focused node"), &node_line(node));
            body.line(&label("需求", "Requirement"), &node.requirement);
            add_problem(&mut body, lang, node);
            body.line(&label("备注", "Note"), &node.note);
        }
    }
    if let Some((done, total)) = workspace.progress {
        body.line(&label("进度", "Progress"), &format!("{done}/{total}"));
    }
    if !workspace.docs.is_empty() {
        body.line(&label("文档", "Docs"), " ");
        workspace.docs.iter().for_each(|doc| body.line("- ", &one_line(doc)));
    }
    body.finish(pointer)
}

/// Returns the text about what changed since the session was told the context with the hash `seen`, and the open problem,
/// if there is one.
pub fn changes_text(
    facts: &Facts,
    workspace: &WorkspaceFacts,
    seen: &ContextHash,
    max_bytes: usize,
) -> String {
    let lang = facts.lang;
    let label = |zh: &str, en: &str| label(lang, zh, en);
    let now = ContextHash::of(workspace, facts.node.as_ref());
    let (mut body, pointer) = new_body(lang, max_bytes);
    if now.goal != seen.goal {
        add_goal(&mut body, lang, workspace);
    }
    if now.rules != seen.rules {
        add_rule_changes(&mut body, lang, workspace, facts.session.told_rules.as_deref());
    }
    match &facts.node {
        Some(node) if now.node != seen.node => {
            body.line(&label("聚焦节点现为", "Focus is now"), &node_line(node));
            body.line(&label("需求", "Requirement"), &node.requirement);
            body.line(&label("备注", "Note"), &node.note);
        }
        None if now.node != seen.node => {
            body.line("", lang.pick("现在没有聚焦的节点。", "No node is focused now."))
        }
        _ => {}
    }
    if let Some(node) = &facts.node {
        add_problem(&mut body, lang, node);
    }
    if now.docs != seen.docs {
        body.line(&label("文档现为", "Docs are now"), " ");
        workspace.docs.iter().for_each(|doc| body.line("- ", &one_line(doc)));
    }
    body.finish(pointer)
}

fn label(lang: Lang, zh: &str, en: &str) -> String {
    match lang {
        Lang::Zh => format!("{zh}："),
        Lang::En => format!("{en}: "),
    }
}

/// Returns an empty text that leaves room for its tags and a reminder, and the line that follows it if it is cut.
fn new_body(lang: Lang, max_bytes: usize) -> (CappedText, &'static str) {
    let pointer =
        lang.pick("（已截断；完整内容见 context_get）\n", "(truncated; context_get returns the full text)\n");
    let budget = max_bytes - ActionKind::InjectContext.overhead() - pointer.len() - REMINDER_RESERVE;
    (CappedText::new(budget), pointer)
}

fn add_goal(body: &mut CappedText, lang: Lang, workspace: &WorkspaceFacts) {
    let name = one_line(&format!("{} ({})", workspace.name, workspace.id));
    body.line(&label(lang, "当前工作区", "Workspace"), &name);
    body.line(&label(lang, "目标", "Goal"), &workspace.goal);
}

fn node_line(node: &NodeFacts) -> String {
    one_line(&format!("{} ({}) {}", node.title, node.status, node.id))
}

fn add_problem(body: &mut CappedText, lang: Lang, node: &NodeFacts) {
    body.line(&label(lang, "问题", "Problem"), &node.problem);
    body.line(&label(lang, "下一步", "Next step"), &node.next_step);
}

/// Adds the rules that are new and the rules that no longer apply. `told` is `None` if the rules were too long to keep.
fn add_rule_changes(body: &mut CappedText, lang: Lang, workspace: &WorkspaceFacts, told: Option<&[String]>) {
    let hash = &workspace.rules_hash;
    let heading =
        lang.pick(format!("规则已变化（rulesHash {hash}）："), format!("Rules changed (rulesHash {hash}): "));
    let Some(told) = told else {
        let count = workspace.rules.len();
        let zh = format!("现有 {count} 条；workspace_get 返回全部");
        return body.line(&heading, &lang.pick(zh, format!("{count} now; workspace_get returns them")));
    };
    let missing_in = |rules: &[String], rule: &String| !rules.contains(rule);
    let added: Vec<_> = workspace.rules.iter().filter(|rule| missing_in(told, rule)).collect();
    let removed: Vec<_> = told.iter().filter(|rule| missing_in(&workspace.rules, rule)).collect();
    if added.is_empty() && removed.is_empty() {
        return body.line(&heading, lang.pick("只是顺序不同", "only their order"));
    }
    body.line(&heading, " ");
    added.iter().for_each(|rule| body.line("+ ", rule));
    removed.iter().for_each(|rule| body.line("− ", rule));
}
