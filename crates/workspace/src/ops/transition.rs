//! One step of a node's state machine, with everything that follows from it.

use serde::Serialize;

use super::*;
use crate::collect::{self, CollectedInfo};
use crate::error::Unfinished;
use crate::limits;
use crate::state::{Action, Prerequisite, TransitionRule};

#[derive(Clone, Debug)]
pub struct TransitionRequest {
    pub node_id: NodeId,
    pub action: Action,
    pub conclusion: Option<String>,
    pub claimant: Claimant,
}

/// Who takes the step, and what is known of whoever is at work on the node.
#[derive(Clone, Debug, Default)]
pub struct Claimant {
    /// Nobody's, if a person without a session takes it.
    pub session: Option<String>,
    /// The subagent that does it.
    pub agent: Option<String>,
    /// Take the node even from a session that is at work on it.
    pub force: bool,
    /// Whether the session that started the node shows signs of life.
    pub holder_is_live: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    pub node_id: NodeId,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: NodeType,
    pub action: Action,
    pub from: NodeStatus,
    pub to: NodeStatus,
    /// Where the caller's attention goes now: the node itself when it starts, its parent when it is done.
    pub focus: Option<NodeId>,
    /// Whether the focus, of the workspace or of the session that took the step, went there.
    #[serde(skip)]
    pub focus_moved: bool,
    /// What is still wrong with a node that is done all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_problem: Option<String>,
    /// What the ancestors became because of it.
    pub status_changes: Vec<StatusChange>,
    /// What an `info_collection` node brought into the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collected: Option<CollectedInfo>,
    /// The actions that are possible from here.
    pub allowed: Vec<Action>,
}

pub fn transition(tx: &mut dyn Tx, request: TransitionRequest, op: &OpContext) -> Result<Transition> {
    let workspace = writable(tx)?;
    let TransitionRequest { node_id, action, conclusion, claimant } = request;
    let mut node = existing_node(tx, "nodeId", &node_id)?;
    if action == Action::Start && is_held_by_another(&node, &claimant)? {
        return take_over(tx, node, claimant, &workspace, op);
    }
    let has_children = tx.status_counts(&node_id)?.total() > 0;
    let step = legal_transition(tx, &node, action, has_children)?;
    check_conclusion(&node, action, step.needs, conclusion.as_deref())?;
    let again = matches!(action, Action::Reopen | Action::Retry);
    if let Some(parent) = node.parent_id.as_ref().filter(|_| again) {
        check_parent(tx, parent)?;
    }

    let from = node.status;
    let lang = lang_of(&workspace);
    node.status = step.to;
    node.status_changed_at = Some(op.now);
    node.updated_at = op.now;
    if step.to.is_done() {
        (node.started_by, node.agent) = (None, None);
    } else if action != Action::Submit {
        (node.started_by, node.agent) = (claimant.session, claimant.agent);
    }
    // A step without a conclusion still has its reason, if one was given.
    let remark = conclusion.as_deref().filter(|text| !step.needs.conclusion() && !text.trim().is_empty());
    if op.auto_log || remark.is_some() {
        note_step(&mut node, (action, from), remark, lang, op);
    }
    if again {
        retire_conclusion(&mut node, lang, op);
    }
    if step.needs.conclusion() {
        node.conclusion = conclusion;
    }
    tx.put_node(node.clone())?;

    let status_changes = match &node.parent_id {
        Some(parent) if again => child_appeared(tx, parent, Appearance::Again, op)?,
        _ => Vec::new(),
    };
    let collected = match (&node.conclusion, node.role, step.to) {
        (Some(text), Some(NodeRole::InfoCollection), NodeStatus::Completed) => {
            collect::archive(tx, text, op.now)?
        }
        _ => None,
    };
    let focus = if step.to.is_done() { node.parent_id.clone() } else { Some(node_id.clone()) };
    // When it is done, only a focus on this very node moves on; somebody else's stays.
    let moves = match step.to.is_done() {
        true => tx.workspace()?.focused_node_id.as_ref() == Some(&node_id),
        false => action != Action::Submit,
    };
    if moves {
        move_focus(tx, focus.clone(), op)?;
    }
    let allowed = state::allowed(node.kind, node.status, has_children);
    let problem = node.activity.problem.filter(|_| step.to == NodeStatus::Completed);
    Ok(Transition {
        node_id,
        title: node.title,
        kind: node.kind,
        action,
        from,
        to: step.to,
        focus,
        focus_moved: moves && op.moves_focus,
        open_problem: problem.map(|problem| match problem.description.trim().is_empty() {
            true => problem.next_step.unwrap_or_default(),
            false => problem.description,
        }),
        status_changes,
        collected,
        allowed,
    })
}

/// Whether a start means taking the node from another session. From one that is at work it is not taken unasked.
fn is_held_by_another(node: &Node, claimant: &Claimant) -> Result<bool> {
    let Some(holder) = &node.started_by else { return Ok(false) };
    if node.status.is_done() || Some(holder) == claimant.session.as_ref() {
        return Ok(false);
    }
    if claimant.holder_is_live && !claimant.force {
        let since = node.status_changed_at.unwrap_or(node.updated_at);
        return Err(Error::NodeTaken { node: node.id.clone(), by: holder.clone(), since });
    }
    // Whoever started it is gone: a session that starts it goes on with it.
    Ok(claimant.force || (claimant.session.is_some() && node.status != NodeStatus::Pending))
}

/// The row of the state machine, if the children let it be taken too.
fn legal_transition(
    tx: &dyn Tx,
    node: &Node,
    action: Action,
    has_children: bool,
) -> Result<&'static TransitionRule> {
    let Some(step) = state::find(node.kind, node.status, action, has_children) else {
        return Err(Error::InvalidTransition {
            node: node.id.clone(),
            kind: node.kind,
            status: node.status,
            action,
            allowed: state::allowed(node.kind, node.status, has_children),
        });
    };
    if step.needs == Prerequisite::ChildrenDoneAndConclusion {
        // This decision is about exactly these files, so each of them is looked at.
        all_children(tx, &node.id)?;
        let children = tx.status_counts(&node.id)?;
        if children.done() < children.total() || children.total() == 0 {
            return Err(unfinished_children(tx, &node.id)?);
        }
    }
    Ok(step)
}

fn check_conclusion(
    node: &Node,
    action: Action,
    needs: Prerequisite,
    conclusion: Option<&str>,
) -> Result<()> {
    if let Some(text) = conclusion {
        limits::text("conclusion", text)?;
    }
    if needs.conclusion() && conclusion.is_none_or(|text| text.trim().is_empty()) {
        return Err(Error::ConclusionRequired { node: node.id.clone(), action });
    }
    Ok(())
}

/// A line for the log: the step, who does it, and why.
fn note_step(
    node: &mut Node,
    (action, from): (Action, NodeStatus),
    remark: Option<&str>,
    lang: Lang,
    op: &OpContext,
) {
    let remark = remark.map(|text| format!(" — {text}")).unwrap_or_default();
    let by = node.agent.as_ref().filter(|_| action != Action::Submit);
    let by = by.map(|agent| format!(" ({agent})")).unwrap_or_default();
    let event = format!("{}: {from} → {}{by}{remark}", action_word(action, lang), node.status);
    node.activity.log.push(LogEntry::new(op.now, op.operator, event));
}

/// The node stays as it is and belongs to somebody else from now on.
fn take_over(
    tx: &mut dyn Tx,
    mut node: Node,
    claimant: Claimant,
    workspace: &Workspace,
    op: &OpContext,
) -> Result<Transition> {
    let event = lang_of(workspace).pick("由另一个会话接手", "taken over by another session");
    node.activity.log.push(LogEntry::new(op.now, op.operator, event));
    (node.started_by, node.agent) = (claimant.session, claimant.agent);
    node.updated_at = op.now;
    tx.put_node(node.clone())?;
    move_focus(tx, Some(node.id.clone()), op)?;
    let has_children = tx.status_counts(&node.id)?.total() > 0;
    Ok(Transition {
        node_id: node.id.clone(),
        title: node.title,
        kind: node.kind,
        action: Action::Start,
        from: node.status,
        to: node.status,
        focus: Some(node.id),
        focus_moved: op.moves_focus,
        open_problem: None,
        status_changes: Vec::new(),
        collected: None,
        allowed: state::allowed(node.kind, node.status, has_children),
    })
}

/// The first few: all of them could be thousands.
fn unfinished_children(tx: &dyn Tx, id: &NodeId) -> Result<Error> {
    let status_counts = tx.status_counts(id)?;
    let children = all_children(tx, id)?.into_iter().filter(|child| !child.status.is_done());
    let mut unfinished = Vec::new();
    for child in children.take(5) {
        let has_children = tx.status_counts(&child.id)?.total() > 0;
        let allowed = state::allowed(child.kind, child.status, has_children);
        unfinished.push(Unfinished { id: child.id, title: child.title, status: child.status, allowed });
    }
    Ok(Error::ChildrenUnfinished {
        node: id.clone(),
        unfinished,
        count: status_counts.total() - status_counts.done(),
    })
}

fn action_word(action: Action, lang: Lang) -> &'static str {
    let (zh, en) = match action {
        Action::Start => ("开始", "start"),
        Action::Submit => ("提交验证", "submit"),
        Action::Complete => ("完成", "complete"),
        Action::Fail => ("失败", "fail"),
        Action::Retry => ("重试", "retry"),
        Action::Reopen => ("重新打开", "reopen"),
        Action::Cancel => ("取消", "cancel"),
    };
    lang.pick(zh, en)
}
