//! The text of a bound session's context, and the hash that tells whether it changed.

use tanmi_base::{Lang, hash};
use tanmi_event::ActionKind;

use crate::builtin::FOR_REMINDER;
use crate::capped_text::CappedText;
use crate::facts::{Facts, NodeFacts, WorkspaceFacts};

/// Of everything that makes a context another one: not status, progress, log or problem, which move all the time. One
/// half for the workspace, one for the node, so that either can be compared alone.
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

/// At most `cap` bytes with the tags that will be around it; what matters most comes first and is cut last.
pub fn context_text(facts: &Facts, workspace: &WorkspaceFacts, cap: usize) -> String {
    let lang = facts.lang;
    let label = |zh: &str, en: &str| match lang {
        Lang::Zh => format!("{zh}："),
        Lang::En => format!("{en}: "),
    };
    let pointer =
        lang.pick("（已截断；完整内容见 context_get）\n", "(truncated; context_get returns the full text)\n");
    let room = cap - ActionKind::InjectContext.overhead() - pointer.len() - FOR_REMINDER;
    let mut body = CappedText::new(room);

    body.line(&label("当前工作区", "Workspace"), &format!("{} ({})", workspace.name, workspace.id));
    body.line(&label("目标", "Goal"), &workspace.goal);
    body.line(&label("会话", "Session"), &facts.session.id);
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
                &format!("{} ({}) {}", node.title, node.status, node.id),
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
        workspace.docs.iter().for_each(|doc| body.line("- ", doc));
    }
    body.finish(pointer)
}
