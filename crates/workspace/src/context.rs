//! The context of a node for an agent: workspace, ancestors, conclusions of children, references.
//!
//! All texts share one byte budget and are added by importance. [`Context::omitted`] names the texts that do
//! not fit, so that the agent can request them.

use serde::Serialize;

use crate::codec::ParseError;
use crate::error::{Error, Result};
use crate::limits::{DEPTH, fit_title};
use crate::model::*;
use crate::store::{NodeRead, Tx};

mod byte_budget;

use byte_budget::ByteBudget;
pub use byte_budget::Omission;

#[derive(Clone, Copy, Debug)]
pub struct ContextLimits {
    /// Maximum log entries per node.
    pub log_entries: usize,
    /// Maximum bytes of all texts together.
    pub max_bytes: usize,
    pub child_conclusions: usize,
}

impl Default for ContextLimits {
    fn default() -> ContextLimits {
        ContextLimits { log_entries: 20, max_bytes: 32 * 1024, child_conclusions: 20 }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    pub workspace: WorkspaceBlock,
    /// The path from the root (or the nearest isolated node) down to the requested node.
    pub chain: Vec<ChainNode>,
    pub child_conclusions: Vec<ChildConclusion>,
    /// Conclusions of the nodes that the requested node or one of its ancestors depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependency_conclusions: Vec<ChildConclusion>,
    pub references: Vec<ReferenceBlock>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Omission>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceBlock {
    pub id: WorkspaceId,
    pub name: String,
    pub goal: String,
    pub status: WorkspaceStatus,
    pub rules: Vec<String>,
    pub rules_hash: String,
    pub docs: Vec<DocReference>,
    pub progress: Progress,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainNode {
    pub id: NodeId,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: NodeType,
    pub status: NodeStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<NodeRole>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    pub requirement: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub docs: Vec<DocReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogEntry>,
    /// Why the file cannot be read. The texts are empty then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<ParseError>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ChildConclusion {
    pub id: NodeId,
    pub title: String,
    pub status: NodeStatus,
    pub conclusion: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceBlock {
    pub target_id: String,
    #[serde(rename = "type")]
    pub kind: RefKind,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// Whether the node no longer exists or cannot be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
}

pub fn assemble(tx: &dyn Tx, focus: &NodeId, limits: &ContextLimits) -> Result<Context> {
    let workspace = tx.workspace()?;
    let progress = tx.total()?.progress();
    let (chain, mut left_out) = read_chain(tx, focus)?;
    let dependencies = dependencies_of(&chain);
    let mut chain = chain.into_iter();
    let Some(ChainEntry::Readable(node)) = chain.next() else {
        return Err(damage_error(tx, focus));
    };
    let mut byte_budget = ByteBudget::new(limits);

    // In order of importance: the last texts are omitted first.
    let name = byte_budget.title(&workspace.name);
    let goal = byte_budget.text("workspace", "goal", workspace.goal.clone());
    let rules = byte_budget.take_first("workspace", "rules", workspace.rules.clone(), |rule| rule.len() + 4);
    let mut blocks = vec![byte_budget.node(&node)];
    let child_conclusions = read_children(tx, focus, limits, &mut byte_budget)?;
    let dependency_conclusions = read_dependencies(tx, focus, &dependencies, &mut byte_budget)?;
    let references = read_references(tx, &node, &mut byte_budget)?;
    let docs = byte_budget.take_first("workspace", "docs", active(&workspace.docs), doc_size);
    let problem = workspace.activity.problem.clone().map(|problem| byte_budget.problem("workspace", problem));
    // Nearer ancestors matter more. From the first one without room on all are left out, so that there is no gap.
    while byte_budget.has_room_for_node()
        && let Some(entry) = chain.next()
    {
        blocks.push(match entry {
            ChainEntry::Readable(node) => byte_budget.node(&node),
            ChainEntry::Damaged(brief) => byte_budget.damaged_node(*brief),
        });
    }
    left_out += chain.len();
    byte_budget.note_omission(focus.as_str(), "ancestors", left_out);
    blocks.reverse();

    Ok(Context {
        workspace: WorkspaceBlock {
            rules_hash: workspace.rules_hash(),
            id: workspace.id,
            name,
            goal,
            status: workspace.status,
            rules,
            docs,
            progress,
            problem,
        },
        chain: blocks,
        child_conclusions,
        dependency_conclusions,
        references,
        omitted: byte_budget.omitted,
    })
}

/// A node of the chain, or its index entry if the file is damaged.
enum ChainEntry {
    Readable(Node),
    Damaged(Box<crate::store::NodeBrief>),
}

/// Returns the node and its ancestors, nearest first, up to the root or the nearest isolated node, and the number of
/// ancestors above [`DEPTH`] levels, which are not read. Such a tree was not made through Tanmi.
fn read_chain(tx: &dyn Tx, focus: &NodeId) -> Result<(Vec<ChainEntry>, usize)> {
    let node = tx.node(focus)?.ok_or_else(|| Error::node_not_found("nodeId", focus))?;
    let mut ancestors = if node.isolated { Vec::new() } else { tx.ancestors(focus)? };
    if let Some(isolated) = ancestors.iter().position(|ancestor| ancestor.isolated) {
        ancestors.truncate(isolated + 1);
    }
    let left_out = ancestors.len().saturating_sub(DEPTH);
    ancestors.truncate(DEPTH);
    let mut chain = vec![ChainEntry::Readable(node)];
    let ids: Vec<NodeId> = ancestors.iter().map(|ancestor| ancestor.id.clone()).collect();
    for (ancestor, read) in ancestors.into_iter().zip(tx.nodes(&ids)?) {
        match read {
            NodeRead::Node(node) => chain.push(ChainEntry::Readable(*node)),
            NodeRead::Missing => {}
            // A damaged ancestor must not prevent the context of its descendants.
            NodeRead::Damaged => chain.push(ChainEntry::Damaged(Box::new(ancestor))),
        }
    }
    Ok((chain, left_out))
}

fn damage_error(tx: &dyn Tx, id: &NodeId) -> Error {
    tx.node(id).err().unwrap_or_else(|| Error::node_not_found("nodeId", id))
}

fn active(docs: &[DocReference]) -> Vec<DocReference> {
    docs.iter().filter(|doc| doc.status == RefStatus::Active).cloned().collect()
}

fn doc_size(doc: &DocReference) -> usize {
    doc.path.len() + doc.description.len() + 50
}

/// Returns the active references of the node: nodes with their conclusion, docs with their path only.
fn read_references(tx: &dyn Tx, node: &Node, byte_budget: &mut ByteBudget) -> Result<Vec<ReferenceBlock>> {
    let mut blocks = Vec::new();
    let active = node.references.iter().filter(|reference| reference.status == RefStatus::Active).cloned();
    let mut active: Vec<Reference> = active.collect();
    let of = node.id.as_str();
    byte_budget.cut_to_shares(of, "references", &mut active, |reference| &mut reference.description);
    let size = |reference: &Reference| reference.target_id.len() + reference.description.len() + 90;
    let shown = byte_budget.take_first(of, "references", active, size);
    let ids: Vec<NodeId> =
        shown.iter().filter_map(|reference| NodeId::parse(&reference.target_id).ok()).collect();
    let mut targets = tx.nodes(&ids)?.into_iter();
    for reference in shown {
        let mut block = ReferenceBlock {
            target_id: reference.target_id.clone(),
            kind: reference.kind,
            description: reference.description.clone(),
            title: None,
            status: None,
            conclusion: None,
            missing: false,
        };
        if let Ok(id) = NodeId::parse(&reference.target_id) {
            match targets.next() {
                Some(NodeRead::Node(target)) => {
                    block.title = Some(byte_budget.title(&target.title));
                    block.status = Some(target.status);
                    block.conclusion =
                        target.conclusion.map(|text| byte_budget.text(id.as_str(), "conclusion", text));
                }
                _ => block.missing = true,
            }
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Returns the conclusions of the nodes that have one.
fn read_conclusions(tx: &dyn Tx, ids: &[NodeId]) -> Result<Vec<ChildConclusion>> {
    let mut conclusions = Vec::new();
    for read in tx.nodes(ids)? {
        let NodeRead::Node(node) = read else { continue };
        let Node { id, title, status, conclusion, .. } = *node;
        let title = fit_title(&title).into_owned();
        conclusions.extend(conclusion.map(|conclusion| ChildConclusion { id, title, status, conclusion }));
    }
    Ok(conclusions)
}

fn conclusion_size(conclusion: &ChildConclusion) -> usize {
    conclusion.title.len() + conclusion.conclusion.len() + 80
}

/// Returns the nodes on which a chain depends, those of the nearest node first.
fn dependencies_of(chain: &[ChainEntry]) -> Vec<NodeId> {
    let mut found = Vec::new();
    for entry in chain {
        let depends_on = match entry {
            ChainEntry::Readable(node) => &node.depends_on,
            ChainEntry::Damaged(brief) => &brief.depends_on,
        };
        for id in depends_on {
            if !found.contains(id) {
                found.push(id.clone());
            }
        }
    }
    found
}

/// Returns the conclusions of the nodes that a node or its ancestors depend on.
fn read_dependencies(
    tx: &dyn Tx,
    node: &NodeId,
    dependencies: &[NodeId],
    byte_budget: &mut ByteBudget,
) -> Result<Vec<ChildConclusion>> {
    const FIELD: &str = "dependencyConclusions";
    let mut conclusions = read_conclusions(tx, dependencies)?;
    let of = node.as_str();
    byte_budget.cut_to_shares(of, FIELD, &mut conclusions, |one| &mut one.conclusion);
    Ok(byte_budget.take_first(of, FIELD, conclusions, conclusion_size))
}

/// Returns the latest conclusions of done children, oldest first.
fn read_children(
    tx: &dyn Tx,
    parent: &NodeId,
    limits: &ContextLimits,
    byte_budget: &mut ByteBudget,
) -> Result<Vec<ChildConclusion>> {
    let mut done = Vec::new();
    for status in NodeStatus::ALL.iter().filter(|status| status.is_done()) {
        done.extend(tx.recent_children(parent, *status, limits.child_conclusions)?);
    }
    done.sort_by_key(|child| std::cmp::Reverse(child.status_changed_at));
    done.truncate(limits.child_conclusions);
    let ids: Vec<NodeId> = done.into_iter().map(|child| child.id).collect();
    let mut conclusions = read_conclusions(tx, &ids)?;
    conclusions.reverse();
    byte_budget
        .cut_to_shares(parent.as_str(), "childConclusions", &mut conclusions, |child| &mut child.conclusion);
    let total = tx.status_counts(parent)?.done() as usize;
    let shown = byte_budget.take_last(parent.as_str(), "childConclusions", conclusions, conclusion_size);
    if total > limits.child_conclusions {
        byte_budget.note_omission(parent.as_str(), "childConclusions", total - limits.child_conclusions);
    }
    Ok(shown)
}
