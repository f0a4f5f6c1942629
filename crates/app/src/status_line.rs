//! The text for the status line of a client: workspace, focused node, progress, and the tokens injected today.
//! Clients redraw it often, so it reads only what a hook reads and one day of the ledger.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tanmi_base::{Lang, Millis, clock, paths, text};
use tanmi_workspace::model::{NodeStatus, Progress, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::store::SnapshotDepth;

use crate::stores::Stores;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusLine {
    pub bound: bool,
    /// Whether the session is unbound and the project has an active workspace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub could_be_bound: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Tokens injected into all sessions today (UTC), estimated.
    pub tokens_today: usize,
}

const NAME_COLUMNS: usize = 24;
const TITLE_COLUMNS: usize = 40;

/// The session that a client draws its status line for, and its working directory.
#[derive(Clone, Debug, Default)]
pub struct StatusLineInput {
    pub session: Option<String>,
    pub cwd: Option<PathBuf>,
}

pub fn read(home: &Path, stores: &Stores, input: &StatusLineInput, now: Millis) -> StatusLine {
    let mut line =
        input.session.as_deref().and_then(|session| read_bound(stores, session)).unwrap_or_default();
    let is_bindable = |cwd: &Path| {
        paths::own_project_root(cwd, home).is_some_and(|project| has_workspaces(stores, &project))
    };
    line.could_be_bound = !line.bound && input.cwd.as_deref().is_some_and(is_bindable);
    let today = clock::utc_day(now);
    let ledger = stores.ledger.read(Some(&today), Some(&today)).unwrap_or_default();
    line.tokens_today = ledger.entries.iter().fold(0, |sum: usize, entry| sum.saturating_add(entry.tokens));
    line
}

fn has_workspaces(stores: &Stores, project: &Path) -> bool {
    let headers = stores.projects.in_folder(project).workspaces().headers().unwrap_or_default();
    headers.into_iter().filter_map(|(_, head)| head).any(|head| head.status == WorkspaceStatus::Active)
}

fn read_bound(stores: &Stores, session: &str) -> Option<StatusLine> {
    let binding = stores.bindings.find(session).ok()??;
    let id = WorkspaceId::parse(&binding.workspace_id).ok()?;
    let snapshot = stores.projects.in_folder(&binding.project).snapshots().context_snapshot(
        &id,
        binding.focused_node_id.as_deref(),
        SnapshotDepth::Progress,
    )?;
    if snapshot.workspace.status != WorkspaceStatus::Active {
        return None;
    }
    Some(StatusLine {
        bound: true,
        workspace: Some(snapshot.workspace.name),
        node: snapshot.node.as_ref().map(|node| node.title.clone()),
        status: snapshot.node.map(|node| node.status),
        progress: snapshot.progress,
        ..StatusLine::default()
    })
}

impl StatusLine {
    pub fn line(&self, lang: Lang) -> String {
        let short = |raw: &str, columns| text::fit(&text::printable(&text::one_line(raw)), columns);
        let mut parts = match &self.workspace {
            Some(name) => vec![short(name, NAME_COLUMNS)],
            None if self.could_be_bound => vec![lang.pick("tanmi：未绑定", "tanmi: not bound").to_owned()],
            None if self.tokens_today > 0 => vec![String::from("tanmi")],
            None => Vec::new(),
        };
        if let Some(title) = &self.node {
            let status = self.status.map_or(String::new(), |status| format!(" ({status})"));
            parts.push(format!("{}{status}", short(title, TITLE_COLUMNS)));
        }
        parts.extend(self.progress.map(|progress| format!("{}/{}", progress.completed, progress.total)));
        if self.tokens_today > 0 {
            let (count, unit) =
                (thousands(self.tokens_today), lang.pick(" token（今日注入）", " tokens injected today"));
            parts.push(format!("{count}{unit}"));
        }
        parts.join(" · ")
    }
}

/// Formats a count as 950, 1.2k or 34k.
fn thousands(count: usize) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..10_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}k", count / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_in_both_languages_has_expected_text() {
        let bound = StatusLine {
            bound: true,
            workspace: Some("Rework auth\u{1b}[31m\nx".into()),
            node: Some("检查令牌的签名和有效期，以及所有其他值得检查的东西，一个都不能少".into()),
            status: Some(NodeStatus::Implementing),
            progress: Some(Progress { completed: 3, total: 10 }),
            tokens_today: 1234,
            ..StatusLine::default()
        };
        let lines = [
            bound.line(Lang::En),
            bound.line(Lang::Zh),
            format!("[{}]", StatusLine::default().line(Lang::En)),
            StatusLine { could_be_bound: true, ..StatusLine::default() }.line(Lang::En),
            StatusLine { could_be_bound: true, tokens_today: 5, ..StatusLine::default() }.line(Lang::Zh),
            StatusLine { tokens_today: 950, ..StatusLine::default() }.line(Lang::Zh),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }
}
