//! The context text of a bound session, and the hash that detects changes of it.

use tanmi_base::text::one_line;
use tanmi_base::{Lang, hash};
use tanmi_event::ActionKind;

use crate::builtin::REMINDER_RESERVE;
use crate::capped_text::CappedText;
use crate::facts::{Facts, NodeFacts, WorkspaceFacts};

/// A hash of the parts of a context that should be injected again when they change. Status, progress, log and problem
/// are not included, because they change all the time. Workspace and node have separate hashes, so that each can be
/// compared alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextHash {
    pub workspace: String,
    pub node: String,
}

impl ContextHash {
    pub fn of(workspace: &WorkspaceFacts, node: Option<&NodeFacts>) -> ContextHash {
        let mut all = vec![workspace.name.as_str(), &workspace.goal];
        all.extend(workspace.rules.iter().map(String::as_str));
        all.push("\u{1}");
        all.extend(workspace.docs.iter().map(String::as_str));
        let digest = |parts: &[&str]| hash::md5_hex(parts.join("\u{0}").as_bytes());
        let node = node.map(|node| digest(&[&node.id, &node.title, &node.requirement, &node.note]));
        ContextHash { workspace: digest(&all), node: node.unwrap_or_default() }
    }
}

impl std::fmt::Display for ContextHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.workspace, self.node)
    }
}

/// Returns the context text. Together with its surrounding tags it has at most `max_bytes` bytes. The most important lines
/// come first and are cut last.
pub fn context_text(facts: &Facts, workspace: &WorkspaceFacts, max_bytes: usize) -> String {
    let lang = facts.lang;
    let label = |zh: &str, en: &str| match lang {
        Lang::Zh => format!("{zh}："),
        Lang::En => format!("{en}: "),
    };
    let pointer =
        lang.pick("（已截断；完整内容见 context_get）\n", "(truncated; context_get returns the full text)\n");
    let budget = max_bytes - ActionKind::InjectContext.overhead() - pointer.len() - REMINDER_RESERVE;
    let mut body = CappedText::new(budget);

    body.line(
        &label("当前工作区", "Workspace"),
        &one_line(&format!("{} ({})", workspace.name, workspace.id)),
    );
    body.line(&label("目标", "Goal"), &workspace.goal);
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
            body.line(
                &label("聚焦节点", "Focused node"),
                &one_line(&format!("{} ({}) {}", node.title, node.status, node.id)),
            );
            body.line(&label("需求", "Requirement"), &node.requirement);
            body.line(&label("问题", "Problem"), &node.problem);
            body.line(&label("下一步", "Next step"), &node.next_step);
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
