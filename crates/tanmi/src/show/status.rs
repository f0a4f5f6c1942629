//! Output of `status`.

use std::collections::BTreeMap;
use std::fmt::Write;

use tanmi_app::status::{NodeInProgress, Present, ProjectStatus, SessionWork, WorkspaceOverview};
use tanmi_base::{Lang, Millis, text};
use tanmi_workspace::store::NodeBrief;

use super::table::{self, Cell, cell, shrinkable, styled};
use super::workspace::ago;
use super::{short_ids, symbol};
use crate::out::{self, paint};

/// The maximum number of sessions that are shown.
const MAX_SESSIONS: usize = 5;
/// The maximum width of a column if the width of the output is unknown.
const MAX_WIDTH: usize = 60;

pub fn render(status: &ProjectStatus, now: Millis, lang: Lang) -> String {
    let mut out = format!("{}\n", paint(out::DIM, &text::one_line(&status.project)));
    if status.paused {
        let paused = lang.pick(
            "注入已暂停；`tanmi resume` 结束暂停",
            "injection is paused; `tanmi resume` ends the pause",
        );
        let _ = writeln!(out, "{}", paint(out::YELLOW, paused));
    }
    for workspace in &status.workspaces {
        let _ = write!(out, "\n{}", overview(workspace, now, lang));
    }
    if status.workspaces.is_empty() {
        let none = match status.server {
            Some(_) => lang.pick(
                "没有活跃的工作区；tanmi team sync 取得团队的工作区，tanmi workspace init 创建新的",
                "no active workspace; tanmi team sync fetches those of the team, tanmi workspace init creates one",
            ),
            None => lang.pick(
                "没有活跃的工作区；用 tanmi workspace init --name … --goal … 创建",
                "no active workspace; create one with tanmi workspace init --name … --goal …",
            ),
        };
        let _ = writeln!(out, "{none}");
    }
    out
}

fn overview(workspace: &WorkspaceOverview, now: Millis, lang: Lang) -> String {
    let progress = format!("{}/{}", workspace.progress.completed, workspace.progress.total);
    let head = vec![
        shrinkable(styled(out::BOLD, &workspace.name)),
        styled(out::DIM, workspace.workspace_id.as_str()),
        cell(progress),
    ];
    let mut out = table::render(&[head], MAX_WIDTH);
    out.push_str(&table::render(&[vec![shrinkable(styled(out::DIM, &workspace.goal))]], 100));
    if let Some(problem) = &workspace.problem {
        let next = problem.next_step.iter().map(|next| format!(" → {next}"));
        let text = format!("! {}{}", problem.description, next.collect::<String>());
        out.push_str(&table::render(&[vec![shrinkable(styled(out::RED, text))]], 100));
    }
    let ids = NodeIds::of(workspace);
    let hidden = workspace.sessions.len().saturating_sub(MAX_SESSIONS);
    let sessions = workspace.sessions.iter().take(MAX_SESSIONS);
    let session_ids = short_ids(workspace.sessions.iter().map(|session| session.session_id.as_str()));
    let rows = sessions.zip(session_ids).map(|(session, id)| session_row(session, id, &ids, now, lang));
    section(&mut out, lang.pick("会话", "Sessions"), rows.collect());
    if hidden > 0 {
        let (zh, en) = (
            format!("  … 还有 {hidden} 个：tanmi session list"),
            format!("  … {hidden} more: tanmi session list"),
        );
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    let rows = workspace.team.iter().map(|present| team_row(present, &ids, now, lang));
    section(&mut out, lang.pick("团队", "Team"), rows.collect());
    let rows = workspace.in_progress.iter().map(|node| progress_row(node, &ids));
    section(&mut out, lang.pick("进行中", "In progress"), rows.collect());
    let rows = workspace.problems.iter().map(|node| {
        let problem = &node.problem;
        let next = problem.next_step.iter().map(|next| format!(" → {next}")).collect::<String>();
        let text = format!("{}{next}", problem.description);
        vec![styled(out::RED, "  !"), ids.cell(node.id.as_str()), title(&node.title), shrinkable(cell(text))]
    });
    section(&mut out, lang.pick("问题", "Problems"), rows.collect());
    let rows = workspace.next.iter().map(|node| node_row(node, &ids));
    section(&mut out, lang.pick("接下来", "Next"), rows.collect());
    let rows = workspace.can_complete.iter().map(|node| {
        let (sign, style) = symbol(node.status);
        let reason = cell(super::plan::reason(node, lang));
        vec![styled(style, format!("  {sign}")), ids.cell(node.node_id.as_str()), title(&node.title), reason]
    });
    section(&mut out, lang.pick("接下来", "Next"), rows.collect());
    if workspace.progress.total == 0 {
        let hint = lang.pick(
            "还没有节点：tanmi node create --type … --title …",
            "no nodes yet: tanmi node create --type … --title …",
        );
        let _ = writeln!(out, "{hint}");
    }
    out
}

/// The short ids of all nodes of a status.
struct NodeIds<'a>(BTreeMap<&'a str, &'a str>);

impl NodeIds<'_> {
    fn of(workspace: &WorkspaceOverview) -> NodeIds<'_> {
        let focused = workspace.sessions.iter().filter_map(|session| session.focused_node.as_ref());
        let mut ids: Vec<&str> = focused.chain(&workspace.next).map(|node| node.id.as_str()).collect();
        ids.extend(workspace.in_progress.iter().map(|node| node.id.as_str()));
        ids.extend(workspace.team.iter().filter_map(|present| present.node_id.as_deref()));
        ids.extend(workspace.problems.iter().map(|node| node.id.as_str()));
        ids.extend(workspace.can_complete.iter().map(|node| node.node_id.as_str()));
        ids.sort_unstable();
        ids.dedup();
        NodeIds(ids.iter().copied().zip(short_ids(ids.iter().copied())).collect())
    }

    fn cell(&self, id: &str) -> Cell {
        styled(out::DIM, self.0.get(id).copied().unwrap_or(id))
    }
}

fn section(out: &mut String, heading: &str, rows: Vec<Vec<Cell>>) {
    if !rows.is_empty() {
        let _ = write!(out, "\n{}\n{}", paint(out::BOLD, heading), table::render(&rows, MAX_WIDTH));
    }
}

fn title(text: &str) -> Cell {
    shrinkable(cell(text))
}

fn node_row(node: &NodeBrief, ids: &NodeIds<'_>) -> Vec<Cell> {
    let (sign, style) = symbol(node.status);
    vec![styled(style, format!("  {sign}")), ids.cell(node.id.as_str()), title(&node.title)]
}

fn progress_row(node: &NodeInProgress, ids: &NodeIds<'_>) -> Vec<Cell> {
    let (sign, style) = symbol(node.status);
    let log =
        node.last_log.as_ref().map(|log| format!("{} {}", log.timestamp, log.event)).unwrap_or_default();
    vec![
        styled(style, format!("  {sign}")),
        ids.cell(node.id.as_str()),
        title(&node.title),
        shrinkable(styled(out::DIM, log)),
    ]
}

fn team_row(present: &Present, ids: &NodeIds<'_>, now: Millis, lang: Lang) -> Vec<Cell> {
    let (style, sign) = if present.is_live { (out::GREEN, "●") } else { (out::DIM, "○") };
    let since = present.since.map(|since| ago(now - since, lang)).unwrap_or_default();
    vec![
        styled(style, format!("  {sign}")),
        cell(text::one_line(&present.person)),
        cell(text::one_line(&present.machine)),
        styled(out::DIM, since),
        ids.cell(present.node_id.as_deref().unwrap_or_default()),
        title(present.node_title.as_deref().unwrap_or_default()),
    ]
}

fn session_row(session: &SessionWork, id: &str, ids: &NodeIds<'_>, now: Millis, lang: Lang) -> Vec<Cell> {
    let (style, sign) = if session.live { (out::GREEN, "●") } else { (out::DIM, "○") };
    let mut row = vec![
        styled(style, format!("  {sign}")),
        cell(id),
        cell(&session.platform),
        styled(out::DIM, ago(now - session.alive_at, lang)),
    ];
    match &session.focused_node {
        Some(node) => {
            let sign = symbol(node.status).0;
            row.extend([ids.cell(node.id.as_str()), title(&format!("{sign} {}", node.title))]);
        }
        None => row.push(styled(out::DIM, lang.pick("没有聚焦", "no focus"))),
    }
    row
}
