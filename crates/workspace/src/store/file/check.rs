//! `workspace check`: finds damage and repairs what has only one correct value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tanmi_base::{Bilingual, Lang, Millis};
use tanmi_index::NodeQuery;

use super::layout::Layout;
use super::tx::FileTx;
use super::{FileStore, Scan, scan};
use crate::codec::ParseError;
use crate::dependencies::WaitGraph;
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
    MissingDependency {
        node: NodeId,
        on: NodeId,
    },
    /// Nodes wait for each other because of their dependencies.
    DependencyCycle {
        nodes: Vec<NodeId>,
    },
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
            StoreFlaw::MissingDependency { .. } => "MISSING_DEPENDENCY",
            StoreFlaw::DependencyCycle { .. } => "DEPENDENCY_CYCLE",
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
            StoreFlaw::MissingDependency { node, on } => {
                let command = format!("`tanmi node depend {node} --on {on} --remove`");
                (
                    format!("依赖的节点 {on} 不存在；用 {command} 去掉"),
                    format!("depends on node {on}, which does not exist; remove it with {command}"),
                )
            }
            StoreFlaw::DependencyCycle { nodes } => {
                let ids: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
                let ids = ids.join(" → ");
                let command = "`tanmi node depend NODE --on NODE --remove`";
                (
                    format!("依赖形成循环：{ids}；用 {command} 去掉其中一个"),
                    format!("the dependencies form a cycle: {ids}; remove one with {command}"),
                )
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
        for row in tx.index()?.select(&NodeQuery::Damaged, usize::MAX)? {
            let damage = row.damage.unwrap_or_default();
            let ParseError { line, reason } = ParseError::from_index_text(&damage);
            let Ok(node) = NodeId::parse(&row.id) else { continue };
            let flaw = StoreFlaw::Unreadable { reason };
            report.push(layout.node_md(&node), Some(line), flaw, Fix::ByHand);
        }
        for row in tx
            .index()?
            .select(&NodeQuery::Orphans, usize::MAX)?
            .into_iter()
            .filter(|row| row.damage.is_none())
        {
            let Ok(node) = NodeId::parse(&row.id) else { continue };
            report.push(layout.node_md(&node), None, StoreFlaw::Orphan { parent: row.parent }, Fix::ByHand);
        }
        let nodes = Nodes::read(&tx, &layout)?;
        for (node, flaw) in nodes.find_misplaced() {
            report.push(layout.node_md(node), None, flaw, Fix::ByHand);
        }
        for (node, flaw) in nodes.find_wrong_dependencies() {
            report.push(layout.node_md(&node), None, flaw, Fix::ByHand);
        }
        for (node, is, should) in nodes.find_wrong_statuses(&tx)? {
            report.push(layout.node_md(node), None, StoreFlaw::WrongStatus { is, should }, Fix::Repairable);
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

    /// Repairs statuses and the keys of the workspace. Each has its own transaction, so that damage in one
    /// does not block the other.
    fn repair(&self, id: &WorkspaceId, now: Millis) -> Result<RepairOutcome> {
        let layout = self.layout(id);
        let op = OpContext { now, operator: Operator::Ai, auto_log: false, moves_focus: false };
        let statuses = store::change(self, id, now, |tx| {
            ops::writable_workspace(tx)?;
            let nodes = Nodes::read(tx, &layout)?;
            let wrong = nodes.find_wrong_statuses(tx)?;
            let mut wrong: Vec<NodeId> = wrong.into_iter().map(|(node, ..)| node.clone()).collect();
            while let Some(node) = wrong.pop() {
                let Some(brief) = tx.brief(&node)? else { continue };
                if let Some(should) = correct_status(tx, &brief)? {
                    ops::set_status(tx, &node, should, &op)?;
                    // A repaired node can make the status of its parent wrong.
                    wrong.extend(brief.parent_id);
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

/// All nodes that have a file. Each was read once: a check stays linear in the number of nodes at any depth.
struct Nodes(BTreeMap<NodeId, NodeBrief>);

impl Nodes {
    fn read(tx: &dyn Tx, layout: &Layout) -> Result<Nodes> {
        let mut nodes = BTreeMap::new();
        for id in scan::node_ids(layout)? {
            if let Some(brief) = tx.brief(&id)? {
                nodes.insert(id, brief);
            }
        }
        Ok(Nodes(nodes))
    }

    /// Returns the nodes whose place in the tree is not allowed. Orphans are not among them.
    fn find_misplaced(&self) -> Vec<(&NodeId, StoreFlaw)> {
        let in_cycle = self.find_cycles();
        let flaw = |(id, brief): (&'_ NodeId, &NodeBrief)| {
            let parent = self.0.get(brief.parent_id.as_ref()?)?;
            if in_cycle.contains(id) {
                Some(StoreFlaw::Unreachable)
            } else if parent.kind == NodeType::Execution && parent.damage.is_none() {
                Some(StoreFlaw::ChildOfExecution { parent: parent.id.clone() })
            } else {
                None
            }
        };
        let readable = self.0.iter().filter(|(_, brief)| brief.damage.is_none());
        readable.filter_map(|(id, brief)| Some((id, flaw((id, brief))?))).collect()
    }

    /// Returns the nodes whose ancestors contain a cycle. Every node is visited once.
    fn find_cycles(&self) -> BTreeSet<&NodeId> {
        let mut verdicts: BTreeMap<&NodeId, bool> = BTreeMap::new();
        for id in self.0.keys() {
            let (mut path, mut on_path) = (Vec::new(), BTreeSet::new());
            let mut at = self.0.get_key_value(id);
            let is_in_cycle = loop {
                let Some((id, brief)) = at else { break false };
                if let Some(known) = verdicts.get(id) {
                    break *known;
                }
                if !on_path.insert(id) {
                    break true;
                }
                path.push(id);
                at = brief.parent_id.as_ref().and_then(|parent| self.0.get_key_value(parent));
            };
            verdicts.extend(path.into_iter().map(|id| (id, is_in_cycle)));
        }
        verdicts.into_iter().filter_map(|(id, is_in_cycle)| is_in_cycle.then_some(id)).collect()
    }

    /// Returns the dependencies that can never be completed. Each cycle is reported once.
    fn find_wrong_dependencies(&self) -> Vec<(NodeId, StoreFlaw)> {
        let mut graph = WaitGraph::new();
        let mut wrong = Vec::new();
        for (id, brief) in self.0.iter().filter(|(_, brief)| brief.damage.is_none()) {
            if let Some(parent) = &brief.parent_id {
                graph.add_child(parent.clone(), id.clone());
            }
            for on in &brief.depends_on {
                match self.0.contains_key(on) {
                    true => graph.add_dependency(id.clone(), on.clone()),
                    false => {
                        let flaw = StoreFlaw::MissingDependency { node: id.clone(), on: on.clone() };
                        wrong.push((id.clone(), flaw));
                    }
                }
            }
        }
        let flaw = |nodes: Vec<NodeId>| Some((nodes.first()?.clone(), StoreFlaw::DependencyCycle { nodes }));
        wrong.extend(graph.find_cycles().into_iter().filter_map(flaw));
        wrong
    }

    /// Returns the nodes whose status contradicts their children, with the current and the correct status.
    /// Returns nothing while any file is unreadable, because its parent is unknown then.
    fn find_wrong_statuses(&self, tx: &dyn Tx) -> Result<Vec<(&NodeId, NodeStatus, NodeStatus)>> {
        let mut wrong = Vec::new();
        if self.0.values().any(|brief| brief.damage.is_some()) {
            return Ok(wrong);
        }
        for (id, brief) in &self.0 {
            wrong.extend(correct_status(tx, brief)?.map(|should| (id, brief.status, should)));
        }
        Ok(wrong)
    }
}

/// Returns the status that the children of a node require, if it has another one.
fn correct_status(tx: &dyn Tx, brief: &NodeBrief) -> Result<Option<NodeStatus>> {
    if brief.kind != NodeType::Planning || brief.damage.is_some() {
        return Ok(None);
    }
    let children = tx.status_counts(&brief.id)?;
    Ok(match brief.status {
        NodeStatus::Monitoring if children.total() == 0 => Some(NodeStatus::Planning),
        NodeStatus::Pending | NodeStatus::Completed if children.total() > children.done() => {
            Some(NodeStatus::Monitoring)
        }
        _ => None,
    })
}
