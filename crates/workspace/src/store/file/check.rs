//! `workspace check`: finds damage and repairs what has only one correct value.

use std::path::PathBuf;

use tanmi_base::{Bilingual, Lang, Millis};

use super::tx::FileTx;
use super::{FileStore, Scan, scan};
use crate::codec::ParseError;
use crate::error::{Error, Result};
use crate::model::*;
use crate::ops::{self, OpContext};
use crate::store::{self, Access, NodeBrief, Store, Tx};

#[derive(Debug, Default)]
pub struct CheckReport {
    pub nodes: u64,
    pub findings: Vec<Finding>,
}

#[derive(Debug)]
pub struct Finding {
    pub path: PathBuf,
    pub line: Option<usize>,
    pub flaw: StoreFlaw,
    pub fix: Fix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Repaired now.
    Repaired,
    /// Can be repaired with `--fix`.
    Repairable,
    /// Must be corrected by a person.
    ByHand,
}

#[derive(Debug)]
pub enum StoreFlaw {
    Unreadable {
        reason: Bilingual,
    },
    Orphan {
        parent: String,
    },
    ChildOfExecution {
        parent: NodeId,
    },
    /// The ancestors form a cycle.
    Unreachable,
    EmptyFolder,
    NotANode,
    StaleRulesHash,
    LostFocus {
        node: NodeId,
    },
    WrongStatus {
        is: NodeStatus,
        should: NodeStatus,
    },
    /// A kept copy: a version of a file that is not in its place, because another program wrote the file at that time.
    KeptAside,
    /// A part of the journal that could not be read.
    BrokenJournal,
    /// The index has damaged pages; it is rebuilt from the files.
    DamagedIndex,
}

impl StoreFlaw {
    pub fn code(&self) -> &'static str {
        match self {
            StoreFlaw::Unreadable { .. } => "UNREADABLE",
            StoreFlaw::Orphan { .. } => "ORPHAN",
            StoreFlaw::ChildOfExecution { .. } => "CHILD_OF_EXECUTION",
            StoreFlaw::Unreachable => "UNREACHABLE",
            StoreFlaw::EmptyFolder => "EMPTY_FOLDER",
            StoreFlaw::NotANode => "NOT_A_NODE",
            StoreFlaw::StaleRulesHash => "STALE_RULES_HASH",
            StoreFlaw::LostFocus { .. } => "LOST_FOCUS",
            StoreFlaw::WrongStatus { .. } => "WRONG_STATUS",
            StoreFlaw::KeptAside => "KEPT_ASIDE",
            StoreFlaw::BrokenJournal => "BROKEN_JOURNAL",
            StoreFlaw::DamagedIndex => "DAMAGED_INDEX",
        }
    }

    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            StoreFlaw::Unreadable { reason } => {
                (format!("无法解析：{}", reason.zh), format!("cannot parse: {}", reason.en))
            }
            StoreFlaw::Orphan { parent } => {
                (format!("父节点 {parent} 不存在"), format!("parent node {parent} does not exist"))
            }
            StoreFlaw::ChildOfExecution { parent } => (
                format!("父节点 {parent} 是执行节点，不能有子节点"),
                format!("parent node {parent} is an execution node and cannot have children"),
            ),
            StoreFlaw::Unreachable => {
                (String::from("祖先节点形成循环"), String::from("the ancestors form a cycle"))
            }
            StoreFlaw::EmptyFolder => (String::from("空文件夹"), String::from("empty folder")),
            StoreFlaw::NotANode => (String::from("不是节点文件夹"), String::from("not a node folder")),
            StoreFlaw::StaleRulesHash => {
                (String::from("rulesHash 与规则不一致"), String::from("rulesHash does not match the rules"))
            }
            StoreFlaw::LostFocus { node } => {
                (format!("聚焦节点 {node} 不存在"), format!("focused node {node} does not exist"))
            }
            StoreFlaw::WrongStatus { is, should } => (
                format!("状态为 {is}，根据子节点应为 {should}"),
                format!("status is {is}, but the children require {should}"),
            ),
            StoreFlaw::KeptAside => (
                String::from("保留副本：文件同时被修改，此版本没有写入或被替换；比较两者后删除此副本"),
                String::from(
                    "kept copy: the file was edited at the same time, so this version was not written or was replaced; \
                     compare both, then delete this copy",
                ),
            ),
            StoreFlaw::BrokenJournal => (
                String::from("重做日志中无法解析的部分；查看后删除它"),
                String::from("part of the journal that cannot be parsed; inspect it, then delete it"),
            ),
            StoreFlaw::DamagedIndex => (String::from("索引已损坏"), String::from("the index is damaged")),
        };
        lang.pick(zh, en)
    }
}

impl FileStore {
    /// See [`crate::store::LocalMaintenance::check`].
    pub(super) fn check_files(&self, id: &WorkspaceId, repair: bool, now: Millis) -> Result<CheckReport> {
        let layout = self.layout(id);
        layout.check_folders()?;
        let is_sound = tanmi_index::is_sound(&layout.index());
        if !is_sound && repair {
            self.drop_index_cache(id);
        }
        let tx = match is_sound || repair {
            true => self.open_tx(id, Access::Refresh, now, Scan::Always)?,
            false => self.open_without_index(id, now)?,
        };
        let mut report = self.find_flaws(id, tx)?;
        if !is_sound {
            let fix = if repair { Fix::Repaired } else { Fix::Repairable };
            report.push(layout.index(), None, StoreFlaw::DamagedIndex, fix);
        }
        self.check_folders(id, &mut report);
        if !repair || !report.findings.iter().any(|finding| finding.fix == Fix::Repairable) {
            return Ok(report);
        }
        self.remove_empty_folders(&mut report);
        if !report.findings.iter().any(|finding| finding.fix == Fix::Repairable) {
            return Ok(report);
        }
        let repaired = self.repair(id, now)?;
        for finding in report.findings.iter_mut().filter(|finding| finding.fix == Fix::Repairable) {
            match &finding.flaw {
                StoreFlaw::WrongStatus { .. } if repaired.statuses => finding.fix = Fix::Repaired,
                StoreFlaw::StaleRulesHash | StoreFlaw::LostFocus { .. } if repaired.workspace => {
                    finding.fix = Fix::Repaired
                }
                _ => {}
            }
        }
        Ok(report)
    }

    fn find_flaws(&self, id: &WorkspaceId, tx: FileTx<'_>) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let layout = self.layout(id);
        report.nodes = tx.total()?.total();
        for row in tx.index()?.damaged()? {
            let damage = row.damage.unwrap_or_default();
            let ParseError { line, reason } = ParseError::from_index_text(&damage);
            let Ok(node) = NodeId::parse(&row.id) else { continue };
            let flaw = StoreFlaw::Unreadable { reason };
            report.push(layout.node_md(&node), Some(line), flaw, Fix::ByHand);
        }
        for row in tx.index()?.orphans()?.into_iter().filter(|row| row.damage.is_none()) {
            let Ok(node) = NodeId::parse(&row.id) else { continue };
            report.push(layout.node_md(&node), None, StoreFlaw::Orphan { parent: row.parent }, Fix::ByHand);
        }
        let ids = scan::node_ids(&layout)?;
        for node in &ids {
            let Some(brief) = tx.brief(node)?.filter(|brief| brief.damage.is_none()) else { continue };
            check_node(&tx, &brief, layout.node_md(node), &mut report)?;
        }
        for (node, is, should) in wrong_statuses(&tx, &ids)? {
            report.push(layout.node_md(&node), None, StoreFlaw::WrongStatus { is, should }, Fix::Repairable);
        }
        match tx.workspace() {
            Err(Error::Corrupt { line, reason, .. }) => {
                report.push(layout.workspace_md(), Some(line), StoreFlaw::Unreadable { reason }, Fix::ByHand);
            }
            Err(error) => return Err(error),
            Ok(workspace) => {
                let path = layout.workspace_md();
                if tx.written_rules_hash()? != workspace.rules_hash() {
                    report.push(path.clone(), None, StoreFlaw::StaleRulesHash, Fix::Repairable);
                }
                if let Some(node) = workspace.focused_node_id
                    && tx.brief(&node)?.is_none()
                {
                    report.push(path, None, StoreFlaw::LostFocus { node }, Fix::Repairable);
                }
            }
        }
        Ok(report)
    }

    fn check_folders(&self, id: &WorkspaceId, report: &mut CheckReport) {
        let layout = self.layout(id);
        for entry in std::fs::read_dir(layout.nodes()).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_node = entry.file_name().to_str().is_some_and(|name| NodeId::parse(name).is_ok());
            if is_node && std::fs::symlink_metadata(path.join("Node.md")).is_ok() {
                continue;
            }
            let is_empty = std::fs::read_dir(&path).is_ok_and(|mut inside| inside.next().is_none());
            if is_empty && !tanmi_base::fs::is_link(&path) {
                report.push(path, None, StoreFlaw::EmptyFolder, Fix::Repairable);
            } else {
                report.push(path, None, StoreFlaw::NotANode, Fix::ByHand);
            }
        }
        for entry in std::fs::read_dir(layout.kept()).into_iter().flatten().flatten() {
            let is_journal = entry.file_name().to_string_lossy().starts_with("journal-");
            let flaw = if is_journal { StoreFlaw::BrokenJournal } else { StoreFlaw::KeptAside };
            report.push(entry.path(), None, flaw, Fix::ByHand);
        }
    }

    fn remove_empty_folders(&self, report: &mut CheckReport) {
        for finding in &mut report.findings {
            // `remove_dir` fails if the folder is no longer empty.
            if matches!(finding.flaw, StoreFlaw::EmptyFolder) && std::fs::remove_dir(&finding.path).is_ok() {
                finding.fix = Fix::Repaired;
            }
        }
    }

    /// Repairs statuses and the keys of the workspace. Each has its own transaction, so that damage in one does not block
    /// the other.
    fn repair(&self, id: &WorkspaceId, now: Millis) -> Result<RepairOutcome> {
        let layout = self.layout(id);
        let op = OpContext { now, operator: Operator::Ai, auto_log: false, moves_focus: false };
        let statuses = store::change(self, id, now, |tx| {
            ops::writable_workspace(tx)?;
            // A repaired node can make the status of its parent wrong.
            for _ in 0..crate::limits::DEPTH {
                let wrong = wrong_statuses(tx, &scan::node_ids(&layout)?)?;
                for (node, _, should) in &wrong {
                    ops::set_status(tx, node, *should, &op)?;
                }
                if wrong.is_empty() {
                    break;
                }
            }
            Ok(())
        });
        let workspace = store::change(self, id, now, |tx| {
            let mut workspace = ops::writable_workspace(tx)?;
            if let Some(focus) = &workspace.focused_node_id
                && tx.brief(focus)?.is_none()
            {
                workspace.focused_node_id = None;
            }
            // Every write corrects the hash. The new time makes sure that there is a write.
            workspace.updated_at = now.max(workspace.updated_at + 1);
            tx.put_workspace(workspace)
        });
        let succeeded = |outcome: Result<((), u64)>| match outcome {
            Ok(_) => Ok(true),
            // Already reported; a damaged file is never overwritten.
            Err(Error::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        };
        Ok(RepairOutcome { statuses: succeeded(statuses)?, workspace: succeeded(workspace)? })
    }
}

/// Which repairs succeeded.
struct RepairOutcome {
    statuses: bool,
    workspace: bool,
}

impl CheckReport {
    fn push(&mut self, path: PathBuf, line: Option<usize>, flaw: StoreFlaw, fix: Fix) {
        self.findings.push(Finding { path, line, flaw, fix });
    }
}

fn check_node(tx: &dyn Tx, brief: &NodeBrief, path: PathBuf, report: &mut CheckReport) -> Result<()> {
    let Some(parent) = &brief.parent_id else { return Ok(()) };
    let Some(parent_brief) = tx.brief(parent)? else { return Ok(()) };
    if is_in_cycle(tx, &brief.id)? {
        report.push(path, None, StoreFlaw::Unreachable, Fix::ByHand);
    } else if parent_brief.kind == NodeType::Execution && parent_brief.damage.is_none() {
        report.push(path, None, StoreFlaw::ChildOfExecution { parent: parent.clone() }, Fix::ByHand);
    }
    Ok(())
}

/// Returns the nodes whose status contradicts their children, with the current and the correct status. Returns nothing
/// while any file is unreadable, because its parent is unknown then.
fn wrong_statuses(tx: &dyn Tx, ids: &[NodeId]) -> Result<Vec<(NodeId, NodeStatus, NodeStatus)>> {
    let mut wrong = Vec::new();
    for id in ids {
        let Some(brief) = tx.brief(id)? else { continue };
        if brief.damage.is_some() {
            return Ok(Vec::new());
        }
        if brief.kind != NodeType::Planning {
            continue;
        }
        let status_counts = tx.status_counts(id)?;
        let should = match brief.status {
            NodeStatus::Monitoring if status_counts.total() == 0 => NodeStatus::Planning,
            NodeStatus::Pending | NodeStatus::Completed if status_counts.total() > status_counts.done() => {
                NodeStatus::Monitoring
            }
            _ => continue,
        };
        wrong.push((id.clone(), brief.status, should));
    }
    Ok(wrong)
}

/// Returns whether the ancestors of a node contain a cycle.
fn is_in_cycle(tx: &dyn Tx, id: &NodeId) -> Result<bool> {
    let mut seen = std::collections::BTreeSet::from([id.clone()]);
    let mut at = tx.brief(id)?.and_then(|brief| brief.parent_id);
    while let Some(parent) = at {
        if !seen.insert(parent.clone()) {
            return Ok(true);
        }
        at = tx.brief(&parent)?.and_then(|brief| brief.parent_id);
    }
    Ok(false)
}
