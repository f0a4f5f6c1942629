//! Transitions of nodes and their effects on claims, conclusions, ancestors and focus.

use super::*;
use crate::collect::{self, CollectedInfo};
use crate::command::LiveSessions;
use crate::error::UnfinishedChild;
use crate::limits;
use crate::state::{Action, Prerequisite, TransitionRule};
use crate::store::StatusCounts;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransitionRequest {
    pub node_id: NodeId,
    pub action: Action,
    pub conclusion: Option<String>,
    pub claimant: Claimant,
}

/// The caller that requests a change of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claimant {
    /// `None` if a user without a session requests the transition.
    pub session: Option<String>,
    /// The subagent that works on the node.
    pub agent: Option<String>,
    /// Takes over the node even if its holder is active.
    pub force: bool,
    /// The name of the person in a team. Its server sets it.
    #[serde(skip)]
    pub person: Option<String>,
}

impl Claimant {
    /// Returns the same claimant, as [`PERSON`] if a user without a session gives the command.
    pub(super) fn or_person(self, op: &OpContext) -> Claimant {
        let person = (op.operator == Operator::Human).then(|| PERSON.to_owned());
        Claimant { session: self.session.or(person), ..self }
    }

    /// Returns whether the caller is this holder. All people without a session count as the same.
    pub(super) fn is(&self, holder: &str) -> bool {
        self.session.as_deref() == Some(holder)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    pub node_id: NodeId,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: NodeType,
    pub action: Action,
    pub from: NodeStatus,
    pub to: NodeStatus,
    /// The node to focus next: the node itself when it starts, its parent when it is done. A caller gets its
    /// focus after the transition instead.
    pub focus: Option<NodeId>,
    /// Whether the focus of the workspace or of the calling session moved there.
    #[serde(skip)]
    pub focus_moved: bool,
    /// The open problem of a node that was completed anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_problem: Option<String>,
    /// Status changes of ancestors that the transition caused.
    pub status_changes: Vec<StatusChange>,
    /// Whether the node was started and its holder was another session or person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takeover: bool,
    /// The session or person whose claim the transition ended, if that is not the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_holder: Option<String>,
    /// What an `info_collection` node added to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collected: Option<CollectedInfo>,
    /// The actions that are legal now.
    pub allowed: Vec<Action>,
}

pub fn transition(
    tx: &mut dyn Tx,
    request: TransitionRequest,
    op: &OpContext,
    sessions: &dyn LiveSessions,
) -> Result<Transition> {
    let workspace = writable_workspace(tx)?;
    let TransitionRequest { node_id, action, conclusion, claimant } = request;
    let claimant = claimant.or_person(op);
    let mut node = existing_node(tx, "nodeId", &node_id)?;
    if matches!(action, Action::Submit | Action::Complete | Action::Fail) {
        check_claim(&node, &claimant, sessions)?;
    }
    if action == Action::Start && is_held_by_another(&node, &claimant, sessions)? {
        return take_over(tx, node, claimant, &workspace, op, sessions);
    }
    let has_children = tx.status_counts(&node_id)?.total() > 0;
    let rule = legal_transition(tx, &node, action, has_children)?;
    if action == Action::Start && !claimant.force {
        dependency::check_completed(tx, &node)?;
    }
    check_conclusion(&node, action, rule.needs, conclusion.as_deref())?;
    let is_reopening = matches!(action, Action::Reopen | Action::Retry);
    if let Some(parent) = node.parent_id.as_ref().filter(|_| is_reopening) {
        check_parent(tx, parent)?;
    }

    let from = node.status;
    let lang = lang_of(&workspace);
    let keeps_claim = action == Action::Submit;
    let previous_holder = node.started_by.clone().filter(|holder| !keeps_claim && !claimant.is(holder));
    node.status = rule.to;
    node.status_changed_at = Some(op.now);
    node.updated_at = op.now;
    if rule.to.is_done() {
        (node.started_by, node.agent) = (None, None);
    } else if !keeps_claim {
        // A person who reopens a node leaves it to the agents.
        let holder = claimant.session.filter(|holder| action == Action::Start || holder != PERSON);
        (node.started_by, node.agent) = (holder, claimant.agent);
    }
    // A transition that needs no conclusion keeps the given text as a remark in the log.
    let remark = conclusion.as_deref().filter(|text| !rule.needs.conclusion() && !text.trim().is_empty());
    if op.auto_log || remark.is_some() {
        log_transition(&mut node, (action, from), remark, lang, op);
    }
    if is_reopening {
        move_conclusion_to_log(&mut node, lang, op);
    }
    if rule.needs.conclusion() {
        node.conclusion = conclusion;
    }
    tx.put_node(node.clone())?;

    let status_changes = match &node.parent_id {
        Some(parent) if is_reopening => propagate_child_appearance(tx, parent, Appearance::Returned, op)?,
        _ => Vec::new(),
    };
    let collected = match (&node.conclusion, node.role, rule.to) {
        (Some(text), Some(NodeRole::InfoCollection), NodeStatus::Completed) => {
            collect::archive(tx, text, op.now)?
        }
        _ => None,
    };
    let focus = if rule.to.is_done() { node.parent_id.clone() } else { Some(node_id.clone()) };
    // When the node is done, the focus moves only if it was on this node.
    let focus_follows = match rule.to.is_done() {
        true => tx.workspace()?.focused_node_id.as_ref() == Some(&node_id),
        false => action != Action::Submit,
    };
    if focus_follows {
        move_focus(tx, focus.clone(), op)?;
    }
    let allowed = state::allowed(node.kind, node.status, has_children);
    let problem = node.activity.problem.filter(|_| rule.to == NodeStatus::Completed);
    Ok(Transition {
        node_id,
        title: node.title,
        kind: node.kind,
        action,
        from,
        to: rule.to,
        focus,
        focus_moved: focus_follows && op.moves_focus,
        open_problem: problem.map(|problem| match problem.description.trim().is_empty() {
            true => problem.next_step.unwrap_or_default(),
            false => problem.description,
        }),
        takeover: action == Action::Start && previous_holder.is_some(),
        previous_holder,
        status_changes,
        collected,
        allowed,
    })
}

/// Fails if another live session holds an unfinished node and the caller does not force the change. Without a
/// holder, or if the holder is dead, every caller may change the node.
pub(super) fn check_claim(node: &Node, claimant: &Claimant, sessions: &dyn LiveSessions) -> Result<()> {
    let holder = node.started_by.as_ref().filter(|holder| !claimant.is(holder));
    match holder {
        Some(holder) if !node.status.is_done() && !claimant.force && is_live(holder, sessions) => {
            let since = node.status_changed_at.unwrap_or(node.updated_at);
            Err(Error::NodeClaimed { node: node.id.clone(), holder: holder.clone(), since })
        }
        _ => Ok(()),
    }
}

/// Returns whether a transition takes a node from another live session, which only `force` allows.
pub fn overrides_claim(
    tx: &dyn Tx,
    request: &TransitionRequest,
    sessions: &dyn LiveSessions,
) -> Result<bool> {
    let TransitionRequest { node_id, action, claimant, .. } = request;
    let is_checked = matches!(action, Action::Start | Action::Submit | Action::Complete | Action::Fail);
    let node = tx.node(node_id)?.filter(|_| claimant.force && is_checked);
    let claimant = Claimant { force: false, ..claimant.clone() };
    Ok(node.is_some_and(|node| check_claim(&node, &claimant, sessions).is_err()))
}

/// Returns whether the claim of a holder still counts.
pub(super) fn is_live(holder: &str, sessions: &dyn LiveSessions) -> bool {
    holder == PERSON || sessions.is_live(holder)
}

/// Returns whether a start takes over the node from another session. Fails if the holder is active and the caller
/// does not force it.
fn is_held_by_another(node: &Node, claimant: &Claimant, sessions: &dyn LiveSessions) -> Result<bool> {
    let Some(holder) = &node.started_by else { return Ok(false) };
    if node.status.is_done() || claimant.is(holder) {
        return Ok(false);
    }
    check_claim(node, claimant, sessions)?;
    // The holder is inactive, so the session that starts the node continues it.
    Ok(claimant.force || (claimant.session.is_some() && node.status != NodeStatus::Pending))
}

/// Returns the transition rule for the action, if the state machine and the children allow it.
fn legal_transition(
    tx: &dyn Tx,
    node: &Node,
    action: Action,
    has_children: bool,
) -> Result<&'static TransitionRule> {
    let Some(rule) = state::find(node.kind, node.status, action, has_children) else {
        return Err(Error::InvalidTransition {
            node: node.id.clone(),
            kind: node.kind,
            status: node.status,
            action,
            allowed: state::allowed(node.kind, node.status, has_children),
        });
    };
    if rule.needs == Prerequisite::ChildrenDoneAndConclusion {
        // Reads each child first, because the counts in the index can be older than the files.
        let children = tx.children_with_counts(&node.id, None, usize::MAX)?;
        let counts = tx.status_counts(&node.id)?;
        if counts.done() < counts.total() || counts.total() == 0 {
            return Err(unfinished_children(&node.id, children, &counts));
        }
    }
    Ok(rule)
}

fn check_conclusion(
    node: &Node,
    action: Action,
    needs: Prerequisite,
    conclusion: Option<&str>,
) -> Result<()> {
    if let Some(text) = conclusion {
        limits::check_text("conclusion", text)?;
    }
    if needs.conclusion() && conclusion.is_none_or(|text| text.trim().is_empty()) {
        return Err(Error::ConclusionRequired { node: node.id.clone(), action });
    }
    Ok(())
}

/// Logs the transition with the subagent and the remark.
fn log_transition(
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

/// Makes another session the holder of the node. The status stays the same.
fn take_over(
    tx: &mut dyn Tx,
    mut node: Node,
    claimant: Claimant,
    workspace: &Workspace,
    op: &OpContext,
    sessions: &dyn LiveSessions,
) -> Result<Transition> {
    let previous_holder = node.started_by.take();
    let event = takeover_event(&claimant, previous_holder.as_deref(), lang_of(workspace), sessions);
    node.activity.log.push(LogEntry::new(op.now, op.operator, event));
    (node.started_by, node.agent) = (claimant.session, claimant.agent);
    // Holders are named with this time.
    node.status_changed_at = Some(op.now);
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
        takeover: true,
        previous_holder,
        status_changes: Vec::new(),
        collected: None,
        allowed: state::allowed(node.kind, node.status, has_children),
    })
}

/// Returns the log entry of a takeover. In a team the person is named; the server does not name the session before.
fn takeover_event(
    claimant: &Claimant,
    previous: Option<&str>,
    lang: Lang,
    sessions: &dyn LiveSessions,
) -> String {
    let prefix = lang.pick(TAKEN_OVER.0, TAKEN_OVER.1);
    if let Some(person) = &claimant.person {
        return lang.pick(format!("{prefix}由 {person}"), format!("{prefix}by {person}"));
    }
    let name = |holder: Option<&str>| match holder {
        None | Some(PERSON) => lang.pick("用户", "the user").to_owned(),
        Some(session) => {
            let short = tanmi_base::id::short(session);
            match sessions.client(session) {
                Some(client) => {
                    lang.pick(format!(" {client} 会话 {short}"), format!("{client} session {short}"))
                }
                None => lang.pick(format!("会话 {short}"), format!("session {short}")),
            }
        }
    };
    let (from, by) = (name(previous), name(claimant.session.as_deref()));
    lang.pick(format!("{prefix}由{by}，原为{from}"), format!("{prefix}from {from} by {by}"))
}

/// Returns an error with the first unfinished children. There can be thousands, so not all are listed.
fn unfinished_children(id: &NodeId, children: Vec<(NodeBrief, u64)>, counts: &StatusCounts) -> Error {
    let unfinished = children.into_iter().filter(|(child, _)| !child.status.is_done()).take(5);
    let unfinished = unfinished.map(|(child, grandchildren)| UnfinishedChild {
        allowed: state::allowed(child.kind, child.status, grandchildren > 0),
        id: child.id,
        title: child.title,
        status: child.status,
    });
    Error::ChildrenUnfinished {
        node: id.clone(),
        unfinished: unfinished.collect(),
        count: counts.total() - counts.done(),
    }
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
