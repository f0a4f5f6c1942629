//! `workspace check`: what is damaged, and what can be put right without guessing.

use std::path::PathBuf;

use tanmi_base::{Lang, Millis};

use super::{FileStore, Scan, scan};
use crate::error::{Error, Result};
use crate::model::*;
use crate::store::{self, Access, NodeBrief, Tx};

#[derive(Debug, Default)]
pub struct CheckReport {
    pub nodes: u64,
    pub findings: Vec<Finding>,
}

#[derive(Debug)]
pub struct Finding {
    pub path: PathBuf,
    pub line: Option<usize>,
    pub flaw: Flaw,
    pub fix: Fix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Done now.
    Repaired,
    /// Would be done with `--fix`.
    Repairable,
    /// Only a person knows what was meant.
    ByHand,
}

#[derive(Debug)]
pub enum Flaw {
    Unreadable {
        reason: String,
    },
    Orphan {
        parent: String,
    },
    ChildOfExecution {
        parent: NodeId,
    },
    /// Its ancestors form a ring.
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
    /// What recovery would have written, had a person not changed the file meanwhile.
    KeptAside,
}

impl Flaw {
    pub fn code(&self) -> &'static str {
        match self {
            Flaw::Unreadable { .. } => "UNREADABLE",
            Flaw::Orphan { .. } => "ORPHAN",
            Flaw::ChildOfExecution { .. } => "CHILD_OF_EXECUTION",
            Flaw::Unreachable => "UNREACHABLE",
            Flaw::EmptyFolder => "EMPTY_FOLDER",
            Flaw::NotANode => "NOT_A_NODE",
            Flaw::StaleRulesHash => "STALE_RULES_HASH",
            Flaw::LostFocus { .. } => "LOST_FOCUS",
            Flaw::WrongStatus { .. } => "WRONG_STATUS",
            Flaw::KeptAside => "KEPT_ASIDE",
        }
    }

    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            Flaw::Unreadable { reason } => {
                (format!("无法解析：{reason}"), format!("cannot be read: {reason}"))
            }
            Flaw::Orphan { parent } => {
                (format!("父节点 {parent} 不存在"), format!("its parent {parent} does not exist"))
            }
            Flaw::ChildOfExecution { parent } => (
                format!("父节点 {parent} 是执行节点，不能有子节点"),
                format!("its parent {parent} is an execution node, which has no children"),
            ),
            Flaw::Unreachable => (String::from("祖先链成环"), String::from("its ancestors form a ring")),
            Flaw::EmptyFolder => (String::from("空文件夹"), String::from("an empty folder")),
            Flaw::NotANode => (String::from("不是节点文件夹"), String::from("not the folder of a node")),
            Flaw::StaleRulesHash => {
                (String::from("rulesHash 与规则不符"), String::from("rulesHash does not belong to the rules"))
            }
            Flaw::LostFocus { node } => {
                (format!("聚焦的节点 {node} 不存在"), format!("the focused node {node} does not exist"))
            }
            Flaw::WrongStatus { is, should } => (
                format!("状态为 {is}，按其子节点应为 {should}"),
                format!("is {is}, but by its children must be {should}"),
            ),
            Flaw::KeptAside => (
                String::from("崩溃恢复时您的修改被保留，这是程序原要写入的版本；比较后可删除"),
                String::from(
                    "your edit was kept during recovery; this is what would have been written: compare, then delete it",
                ),
            ),
        };
        match lang {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }
}

impl FileStore {
    /// Reads everything, says what is wrong, and with `repair` puts right what has only one right answer.
    pub fn check(&self, id: &WorkspaceId, repair: bool, now: Millis) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let layout = self.layout(id);
        let fix = if repair { Fix::Repaired } else { Fix::Repairable };
        let mut wrong_status = Vec::new();
        {
            let tx = self.open_tx(id, Access::Read, now, Scan::Always)?;
            report.nodes = tx.total()?.total();
            for row in tx.index()?.damaged()? {
                let damage = row.damage.unwrap_or_default();
                let (line, reason) = damage.split_once(": ").unwrap_or(("1", &damage));
                let Ok(node) = NodeId::parse(&row.id) else { continue };
                report.push(
                    layout.node_md(&node),
                    line.parse().ok(),
                    Flaw::Unreadable { reason: reason.to_owned() },
                    Fix::ByHand,
                );
            }
            for row in tx.index()?.orphans()?.into_iter().filter(|row| row.damage.is_none()) {
                let Ok(node) = NodeId::parse(&row.id) else { continue };
                report.push(layout.node_md(&node), None, Flaw::Orphan { parent: row.parent }, Fix::ByHand);
            }
            for node in scan::node_ids(&layout)? {
                let Some(brief) = tx.brief(&node)?.filter(|brief| brief.damage.is_none()) else { continue };
                check_node(&tx, &brief, layout.node_md(&node), &mut report)?;
                wrong_status.extend(wrong_status_of(&tx, &brief)?);
            }
            for (node, is, should) in &wrong_status {
                let flaw = Flaw::WrongStatus { is: *is, should: *should };
                report.push(layout.node_md(node), None, flaw, fix);
            }
            self.check_workspace(&tx, &mut report, fix)?;
        }
        self.check_folders(id, &mut report, repair)?;
        if repair {
            self.repair(id, &wrong_status, now)?;
        }
        Ok(report)
    }

    fn check_workspace(&self, tx: &super::tx::FileTx<'_>, report: &mut CheckReport, fix: Fix) -> Result<()> {
        match tx.workspace() {
            Err(Error::Damaged { path, line, reason }) => {
                report.push(path, Some(line), Flaw::Unreadable { reason }, Fix::ByHand);
            }
            Err(error) => return Err(error),
            Ok(workspace) => {
                let path = self.layout(&workspace.id).workspace_md();
                if tx.written_rules_hash()? != workspace.rules_hash() {
                    report.push(path.clone(), None, Flaw::StaleRulesHash, fix);
                }
                if let Some(node) = workspace.focused_node_id
                    && tx.brief(&node)?.is_none()
                {
                    report.push(path, None, Flaw::LostFocus { node }, fix);
                }
            }
        }
        Ok(())
    }

    fn check_folders(&self, id: &WorkspaceId, report: &mut CheckReport, repair: bool) -> Result<()> {
        let layout = self.layout(id);
        let entries = std::fs::read_dir(layout.nodes()).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            let is_node = entry.file_name().to_str().is_some_and(|name| NodeId::parse(name).is_ok());
            if is_node && path.join("Node.md").exists() {
                continue;
            }
            let is_empty = std::fs::read_dir(&path).is_ok_and(|mut inside| inside.next().is_none());
            if !is_empty {
                report.push(path, None, Flaw::NotANode, Fix::ByHand);
            } else if repair && std::fs::remove_dir(&path).is_ok() {
                report.push(path, None, Flaw::EmptyFolder, Fix::Repaired);
            } else {
                report.push(path, None, Flaw::EmptyFolder, Fix::Repairable);
            }
        }
        for entry in std::fs::read_dir(layout.kept()).into_iter().flatten().flatten() {
            report.push(entry.path(), None, Flaw::KeptAside, Fix::ByHand);
        }
        Ok(())
    }

    fn repair(
        &self,
        id: &WorkspaceId,
        wrong_status: &[(NodeId, NodeStatus, NodeStatus)],
        now: Millis,
    ) -> Result<()> {
        let outcome = store::change(self, id, now, |tx| {
            for (node, is, should) in wrong_status {
                if let Some(mut node) = tx.node(node)?.filter(|node| node.status == *is) {
                    node.status = *should;
                    node.status_changed_at = Some(now);
                    node.updated_at = now;
                    tx.put_node(node)?;
                }
            }
            let mut workspace = tx.workspace()?;
            if let Some(focus) = &workspace.focused_node_id
                && tx.brief(focus)?.is_none()
            {
                workspace.focused_node_id = None;
            }
            // Any write puts the hash right; the time of the change makes it one.
            workspace.updated_at = now.max(workspace.updated_at + 1);
            tx.put_workspace(workspace)
        });
        match outcome {
            // Reported already; nothing else in that file can be mended.
            Err(Error::Damaged { .. }) => Ok(()),
            other => other,
        }
    }
}

impl CheckReport {
    fn push(&mut self, path: PathBuf, line: Option<usize>, flaw: Flaw, fix: Fix) {
        self.findings.push(Finding { path, line, flaw, fix });
    }
}

fn check_node(tx: &dyn Tx, brief: &NodeBrief, path: PathBuf, report: &mut CheckReport) -> Result<()> {
    let Some(parent) = &brief.parent_id else { return Ok(()) };
    let Some(above) = tx.brief(parent)? else { return Ok(()) };
    if is_in_ring(tx, &brief.id)? {
        report.push(path, None, Flaw::Unreachable, Fix::ByHand);
    } else if above.kind == NodeType::Execution && above.damage.is_none() {
        report.push(path, None, Flaw::ChildOfExecution { parent: parent.clone() }, Fix::ByHand);
    }
    Ok(())
}

/// The status that a node's children leave no choice about, if it has another.
fn wrong_status_of(tx: &dyn Tx, brief: &NodeBrief) -> Result<Option<(NodeId, NodeStatus, NodeStatus)>> {
    if brief.kind != NodeType::Planning {
        return Ok(None);
    }
    let tally = tx.tally(&brief.id)?;
    let unfinished = tally.total() > tally.done();
    let should = match brief.status {
        NodeStatus::Monitoring if tally.total() == 0 => Some(NodeStatus::Planning),
        NodeStatus::Pending | NodeStatus::Completed if unfinished => Some(NodeStatus::Monitoring),
        _ => None,
    };
    Ok(should.map(|should| (brief.id.clone(), brief.status, should)))
}

fn is_in_ring(tx: &dyn Tx, id: &NodeId) -> Result<bool> {
    let mut at = tx.brief(id)?.and_then(|brief| brief.parent_id);
    let mut steps = 0;
    while let Some(parent) = at {
        steps += 1;
        if parent == *id || steps > crate::limits::DEPTH * 4 {
            return Ok(true);
        }
        at = tx.brief(&parent)?.and_then(|brief| brief.parent_id);
    }
    Ok(false)
}
