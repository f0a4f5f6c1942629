//! Views for the page and the command line that tools do not need: a node with its surroundings, sessions with their
//! bindings, and the ledger per day. Read-only.

use std::collections::BTreeMap;

use serde::Serialize;
use tanmi_base::{Millis, clock};
use tanmi_session::{Binding, Bindings, Ledger, SessionState, States};
use tanmi_workspace::model::{
    LogEntry, Node, NodeId, NodeStatus, NodeType, Problem, WorkspaceId, WorkspaceStatus,
};
use tanmi_workspace::ops::{self, NodePage};
use tanmi_workspace::state::{self, Action};
use tanmi_workspace::store::NodeBrief;

use crate::App;
use crate::error::Result;
use crate::node::InWorkspace;
use crate::workspace::WorkspaceView;

/// A node with its surroundings and the actions that are possible now.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    pub node_id: NodeId,
    pub node: Node,
    /// See [`Node::version`].
    pub version: String,
    /// From the root down.
    pub ancestors: Vec<NodeBrief>,
    pub children: ChildrenView,
    /// Whether the node can be changed. Nodes of archived workspaces cannot.
    pub writable: bool,
    pub actions: Vec<AllowedAction>,
    /// The number of all log entries; the node contains only the latest ones.
    pub log_total: usize,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ChildrenView {
    pub total: u64,
    pub done: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedAction {
    pub action: Action,
    pub to: NodeStatus,
    pub needs_conclusion: bool,
}

/// A workspace with its own log and problem.
#[derive(Clone, Debug, Serialize)]
pub struct WorkspaceDetail {
    #[serde(flatten)]
    pub view: WorkspaceView,
    pub version: String,
    pub problem: Option<Problem>,
    pub log: Vec<LogEntry>,
}

/// A session that has a state or a binding.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionLine {
    pub session_id: String,
    /// Empty if no hook of the session has run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub platform: String,
    pub alive_at: Millis,
    /// Whether the client of the session is running, or the session was active recently.
    pub live: bool,
    pub prompts: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundWorkspace>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundWorkspace {
    pub workspace_id: String,
    pub focused_node_id: Option<String>,
    pub project: String,
    pub bound_at: Millis,
}

#[derive(Clone, Debug, Serialize)]
pub struct Sessions {
    pub sessions: Vec<SessionLine>,
    pub total: usize,
}

#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only sessions bound to this workspace.
    pub workspace: Option<String>,
    pub live: Option<bool>,
    pub bound: Option<bool>,
    pub limit: usize,
}

/// One day of the ledger.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerDay {
    pub day: String,
    pub decisions: usize,
    pub tokens: usize,
    pub bytes: usize,
    /// The number of hook runs.
    pub hooks: usize,
    /// `median`, `p95` and `slowest`: microseconds from the start of a hook to its decision.
    pub median: u64,
    pub p95: u64,
    pub slowest: u64,
}

/// The number of log entries in a view.
const LOG_ENTRIES: usize = 200;

impl App {
    pub fn node_view(&self, workspace: &str, node: &str) -> Result<InWorkspace<NodeView>> {
        let id = NodeId::parse(node)?;
        let ws = self.locate(Some(workspace))?;
        let view = self.view(&ws, |tx| {
            let mut node =
                tx.node(&id)?.ok_or_else(|| tanmi_workspace::Error::node_not_found("nodeId", &id))?;
            let mut ancestors = ops::ancestors(tx, &id)?;
            ancestors.reverse();
            let status_counts = tx.status_counts(&id)?;
            let children = ChildrenView { total: status_counts.total(), done: status_counts.done() };
            let log_total = node.activity.log.len();
            node.activity.log = node.activity.log.split_off(log_total.saturating_sub(LOG_ENTRIES));
            let writable = tx.workspace()?.status == WorkspaceStatus::Active;
            let actions = allowed_actions(node.kind, node.status, children.total > 0);
            Ok(NodeView {
                node_id: id.clone(),
                version: node.version(),
                writable,
                actions: if writable { actions } else { Vec::new() },
                ancestors,
                children,
                log_total,
                node,
            })
        })?;
        Ok(InWorkspace::read(ws.id, view))
    }

    pub fn workspace_detail(&self, workspace: &str) -> Result<WorkspaceDetail> {
        let ws = self.locate(Some(workspace))?;
        let (workspace, progress) = self.view(&ws, |tx| Ok((tx.workspace()?, tx.total()?.progress())))?;
        let mut activity = workspace.activity.clone();
        let log = activity.log.split_off(activity.log.len().saturating_sub(LOG_ENTRIES));
        let view = self.workspace_view(&ws, workspace, progress);
        Ok(WorkspaceDetail { version: view.version.clone(), view, problem: activity.problem, log })
    }

    /// Returns the rows of these nodes as in a list. Missing nodes are left out.
    pub fn nodes_by_id(&self, workspace: &str, ids: &[String]) -> Result<InWorkspace<NodePage>> {
        let ids = ids
            .iter()
            .map(|id| NodeId::parse_field("ids", id))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let ws = self.locate(Some(workspace))?;
        let nodes = self.view(&ws, |tx| {
            let mut rows = Vec::new();
            for id in &ids {
                let Some(node) = tx.brief(id)? else { continue };
                let (depth, children) = (ops::ancestors(tx, id)?.len(), tx.status_counts(id)?.total());
                rows.push(ops::ListRow { depth, node, children, is_last: false });
            }
            Ok(rows)
        })?;
        Ok(InWorkspace::read(ws.id, NodePage { nodes, next_after: None }))
    }

    /// Returns sessions with a state or a binding, latest activity first.
    pub fn sessions_list(&self, filter: &SessionFilter) -> Result<Sessions> {
        if let Some(workspace) = &filter.workspace {
            WorkspaceId::parse(workspace)?;
        }
        let mut bindings: BTreeMap<String, Binding> = Bindings::new(self.home()).all()?.into_iter().collect();
        let states = States::new(self.home()).all();
        let mut known: Vec<(SessionState, Option<Binding>)> = states
            .into_iter()
            .map(|state| {
                let binding = bindings.remove(&state.session);
                (state, binding)
            })
            .collect();
        // Sessions that were bound by hand and have no state.
        known.extend(bindings.into_iter().map(|(session, binding)| {
            (SessionState { session, alive_at: binding.bound_at, ..SessionState::default() }, Some(binding))
        }));
        let line = |(state, binding): (SessionState, Option<Binding>)| SessionLine {
            live: self.is_live(&state.session),
            alive_at: state.alive_at.max(binding.as_ref().map_or(0, |binding| binding.bound_at)),
            platform: state.platform,
            prompts: state.total_prompts,
            session_id: state.session,
            bound: binding.map(|binding| BoundWorkspace {
                workspace_id: binding.workspace_id,
                focused_node_id: binding.focused_node_id,
                project: binding.project.display().to_string(),
                bound_at: binding.bound_at,
            }),
        };
        // Filtered before `line`, because `is_live` has to look for the client process.
        known.retain(|(_, binding)| {
            let workspace = binding.as_ref().map(|binding| &binding.workspace_id);
            filter.workspace.as_ref().is_none_or(|wanted| Some(wanted) == workspace)
                && filter.bound.is_none_or(|wanted| wanted == binding.is_some())
        });
        let is_wanted = |line: &SessionLine| filter.live.is_none_or(|wanted| wanted == line.live);
        let mut sessions: Vec<SessionLine> = known.into_iter().map(line).filter(is_wanted).collect();
        sessions.sort_by(|a, b| b.alive_at.cmp(&a.alive_at).then_with(|| a.session_id.cmp(&b.session_id)));
        let total = sessions.len();
        sessions.truncate(filter.limit);
        Ok(Sessions { sessions, total })
    }

    /// Returns the number and size of injections and the duration of hooks for each of the last days, oldest first.
    pub fn ledger_days(&self, days: usize) -> Result<Vec<LedgerDay>> {
        let from =
            clock::utc_day(self.now() - Millis::try_from(days.saturating_sub(1)).unwrap_or(0) * 86_400_000);
        let mut found: BTreeMap<String, (LedgerDay, Vec<u64>)> = BTreeMap::new();
        let today = clock::utc_day(self.now());
        for entry in Ledger::new(self.home()).read(Some(&from), Some(&today))?.entries {
            let day = clock::utc_day(entry.at);
            // An entry with a wrong clock must not add a day outside the range.
            if !(from.as_str()..=today.as_str()).contains(&day.as_str()) {
                continue;
            }
            let (line, micros) = found.entry(day).or_default();
            line.decisions += 1;
            line.tokens = line.tokens.saturating_add(entry.tokens);
            line.bytes = line.bytes.saturating_add(entry.bytes);
            if entry.source == "hook" {
                micros.push(entry.micros);
            }
        }
        let day = |(day, (line, mut micros)): (String, (LedgerDay, Vec<u64>))| {
            micros.sort_unstable();
            let percentile = |percent: usize| {
                micros.get((micros.len() * percent / 100).min(micros.len().saturating_sub(1)))
            };
            let (median, p95) = (percentile(50).copied().unwrap_or(0), percentile(95).copied().unwrap_or(0));
            LedgerDay {
                day,
                hooks: micros.len(),
                median,
                p95,
                slowest: micros.last().copied().unwrap_or(0),
                ..line
            }
        };
        Ok(found.into_iter().map(day).collect())
    }
}

fn allowed_actions(kind: NodeType, status: NodeStatus, has_children: bool) -> Vec<AllowedAction> {
    let steps = state::allowed(kind, status, has_children).into_iter();
    let steps = steps.filter_map(|action| state::find(kind, status, action, has_children));
    steps
        .map(|step| AllowedAction {
            action: step.action,
            to: step.to,
            needs_conclusion: step.needs.conclusion(),
        })
        .collect()
}
