//! Operations that create, change, move, delete and reference nodes.

use std::collections::HashMap;

use serde::Deserializer;
use serde_json::json;

use super::workspace::{ListEdit, check_docs, check_docs_edit};
use super::*;
use crate::command::LiveSessions;
use crate::limits;
use crate::store::NodeRead;

/// Whether a caller must prove with the rules hash that it read the workspace rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RulesHashCheck {
    /// For agents: if the workspace has rules, the current hash is required.
    Required(Option<String>),
    /// For people: the hash is checked only if it is given.
    IfGiven(Option<String>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewNode {
    pub parent_id: NodeId,
    pub kind: NodeType,
    pub title: String,
    pub requirement: String,
    pub role: Option<NodeRole>,
    pub note: String,
    pub docs: Vec<DocReference>,
    pub isolated: bool,
    pub rules_check: RulesHashCheck,
}

/// Creates a node. Also returns the status changes of its ancestors.
pub fn create_node(tx: &mut dyn Tx, new: NewNode, op: &OpContext) -> Result<(Node, Vec<StatusChange>)> {
    let workspace = writable_workspace(tx)?;
    limits::check_title("title", &new.title)?;
    limits::check_text("requirement", &new.requirement)?;
    limits::check_text("note", &new.note)?;
    check_docs(&new.docs)?;
    check_rules_hash(&workspace, &new.rules_check)?;
    check_parent(tx, &new.parent_id)?;
    if tx.ancestors(&new.parent_id)?.len() + 1 > limits::DEPTH {
        return Err(Error::TooDeep { limit: limits::DEPTH });
    }
    let node = Node {
        role: new.role,
        requirement: new.requirement,
        note: new.note,
        parent_id: Some(new.parent_id.clone()),
        isolated: new.isolated,
        order: Some(tx.last_order(&new.parent_id)? + 1),
        docs: new.docs,
        ..Node::new(NodeId::fresh(op.now), new.kind, new.title, op.now)
    };
    tx.add_node(node.clone())?;
    let changes = propagate_child_appearance(tx, &new.parent_id, Appearance::New, op)?;
    Ok((node, changes))
}

pub(super) fn check_rules_hash(workspace: &Workspace, check: &RulesHashCheck) -> Result<()> {
    let hash = workspace.rules_hash();
    let (RulesHashCheck::Required(given) | RulesHashCheck::IfGiven(given)) = check;
    let is_exempt = matches!(check, RulesHashCheck::IfGiven(None));
    if hash.is_empty() || is_exempt || given.as_ref() == Some(&hash) {
        return Ok(());
    }
    Err(Error::RulesHashMismatch { given: given.clone(), rules: workspace.rules.clone(), hash })
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeChange {
    pub title: Option<String>,
    pub requirement: Option<String>,
    pub note: Option<String>,
    /// `Some(None)` removes the role.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_role")]
    pub role: Option<Option<NodeRole>>,
    pub isolated: Option<bool>,
    pub docs: ListEdit<DocReference>,
    pub depends_on: ListEdit<NodeId>,
    /// The versions that this change applies to; any other version is rejected.
    pub expected_versions: Option<Vec<String>>,
}

/// A role that is present, also as `null`, is a change.
fn some_role<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Option<NodeRole>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl NodeChange {
    pub fn is_empty(&self) -> bool {
        self.title.is_none()
            && self.requirement.is_none()
            && self.note.is_none()
            && self.role.is_none()
            && self.isolated.is_none()
            && self.docs.is_empty()
            && self.depends_on.is_empty()
    }
}

pub fn update_node(tx: &mut dyn Tx, id: &NodeId, change: NodeChange, op: &OpContext) -> Result<Node> {
    writable_workspace(tx)?;
    let mut node = existing_node(tx, "nodeId", id)?;
    if change.expected_versions.is_some_and(|versions| !versions.contains(&node.version())) {
        return Err(Error::Outdated { version: node.version(), current: Box::new(json!(node)) });
    }
    let old = node.clone();
    if let Some(title) = change.title {
        limits::check_title("title", &title)?;
        node.title = title;
    }
    if let Some(requirement) = change.requirement {
        limits::check_text("requirement", &requirement)?;
        node.requirement = requirement;
    }
    if let Some(note) = change.note {
        limits::check_text("note", &note)?;
        node.note = note;
    }
    if let Some(role) = change.role {
        node.role = role;
    }
    if let Some(isolated) = change.isolated {
        node.isolated = isolated;
    }
    check_docs_edit(&change.docs)?;
    change.docs.apply("docs", &mut node.docs, |doc| doc.path.as_str())?;
    limits::check_list("docs", node.docs.len())?;
    change.depends_on.apply("dependsOn", &mut node.depends_on, NodeId::as_str)?;
    if node != old {
        node.updated_at = op.now;
        tx.put_node(node.clone())?;
        dependency::check_new(tx, &node, &old.depends_on)?;
    }
    Ok(node)
}

/// Moves a node with all descendants to the end of the children of another parent.
pub fn move_node(
    tx: &mut dyn Tx,
    id: &NodeId,
    parent: &NodeId,
    op: &OpContext,
) -> Result<(Node, Vec<StatusChange>)> {
    writable_workspace(tx)?;
    if id.is_root() {
        return Err(Error::RootProtected { action: "move" });
    }
    let mut node = existing_node(tx, "nodeId", id)?;
    let parent_ancestors = tx.ancestors(parent)?;
    if parent == id || parent_ancestors.iter().any(|ancestor| ancestor.id == *id) {
        return Err(Error::MoveIntoSelf { node: id.clone(), parent: parent.clone() });
    }
    if node.status.is_done() {
        let target = existing_brief(tx, "parentId", parent)?;
        if target.kind == NodeType::Execution {
            return Err(Error::ParentIsExecution { parent: parent.clone() });
        }
    } else {
        check_parent(tx, parent)?;
    }
    if parent_ancestors.len() + 1 + height(tx, id)? > limits::DEPTH {
        return Err(Error::TooDeep { limit: limits::DEPTH });
    }
    let old_parent = node.parent_id.replace(parent.clone());
    node.order = Some(tx.last_order(parent)? + 1);
    node.updated_at = op.now;
    let is_unfinished = !node.status.is_done();
    tx.put_node(node.clone())?;
    dependency::check_moved(tx, id)?;
    let mut changes = Vec::new();
    if old_parent.as_ref() != Some(parent) {
        if let Some(old_parent) = old_parent {
            changes.extend(propagate_child_removal(tx, &old_parent, op)?);
        }
        if is_unfinished {
            changes.extend(propagate_child_appearance(tx, parent, Appearance::New, op)?);
        }
    }
    Ok((node, changes))
}

/// Returns the number of levels below a node.
fn height(tx: &dyn Tx, id: &NodeId) -> Result<usize> {
    Ok(height_of(id, tx.subtree(id)?.into_iter().map(|brief| (brief.id, brief.parent_id))))
}

/// Returns the number of levels below a node, from the ids of its descendants and their parents, parents first.
pub(super) fn height_of(id: &NodeId, links: impl Iterator<Item = (NodeId, Option<NodeId>)>) -> usize {
    let mut levels: HashMap<NodeId, usize> = HashMap::from([(id.clone(), 0)]);
    for (below, parent) in links.filter(|(below, _)| below != id) {
        let parent_level = parent.as_ref().and_then(|parent| levels.get(parent)).copied();
        levels.insert(below, parent_level.unwrap_or(0) + 1);
    }
    levels.into_values().max().unwrap_or(0)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedSubtree {
    pub node_id: NodeId,
    pub title: String,
    pub parent_id: Option<NodeId>,
    /// Number of deleted nodes, including descendants.
    pub count: usize,
    #[serde(skip)]
    pub ids: Vec<NodeId>,
    /// The deleted nodes that sessions held.
    #[serde(skip)]
    pub held: Vec<HeldNode>,
    /// Nodes that depended on a deleted one and no longer do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<NodeId>,
    pub status_changes: Vec<StatusChange>,
}

/// A node and the session that claimed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldNode {
    pub id: NodeId,
    pub title: String,
    pub holder: String,
}

/// Moves a node and its descendants to the trash. Fails if another live session holds one of them.
pub fn delete_node(
    tx: &mut dyn Tx,
    id: &NodeId,
    claimant: &Claimant,
    op: &OpContext,
    sessions: &dyn LiveSessions,
) -> Result<DeletedSubtree> {
    let claimant = claimant.clone().or_person(op);
    let workspace = writable_workspace(tx)?;
    if id.is_root() {
        return Err(Error::RootProtected { action: "delete" });
    }
    let node = existing_brief(tx, "nodeId", id)?;
    if node.damage.is_some() {
        // Fails with the path, line and reason of the damage.
        tx.node(id)?;
    }
    let mut briefs = vec![node.clone()];
    briefs.extend(tx.subtree(id)?);
    let mut held = Vec::new();
    for node in in_progress(tx, &briefs)? {
        transition::check_claim(&node, &claimant, sessions)?;
        let Node { id, title, started_by, .. } = node;
        held.extend(started_by.map(|holder| HeldNode { id, title, holder }));
    }
    let dependents = dependency::drop_deleted(tx, &briefs, lang_of(&workspace), op)?;
    let ids: Vec<NodeId> = briefs.into_iter().map(|brief| brief.id).collect();
    for id in &ids {
        tx.remove_node(id)?;
    }
    let status_changes = match &node.parent_id {
        Some(parent) => propagate_child_removal(tx, parent, op)?,
        None => Vec::new(),
    };
    // The workspace must not focus a deleted node, even if the caller does not move the focus.
    if workspace.focused_node_id.as_ref().is_some_and(|focus| ids.contains(focus)) {
        let op = OpContext { moves_focus: true, ..*op };
        move_focus(tx, node.parent_id.clone(), &op)?;
    }
    Ok(DeletedSubtree {
        node_id: id.clone(),
        title: node.title,
        parent_id: node.parent_id,
        count: ids.len(),
        ids,
        held,
        dependents,
        status_changes,
    })
}

/// Returns the nodes in progress. Only these have a holder, so the files of the others are not read.
fn in_progress(tx: &dyn Tx, briefs: &[NodeBrief]) -> Result<Vec<Node>> {
    let is_in_progress = |brief: &&NodeBrief| !brief.status.is_done() && brief.status != NodeStatus::Pending;
    let found = briefs.iter().filter(is_in_progress).filter(|brief| brief.damage.is_none());
    let found: Vec<NodeId> = found.map(|brief| brief.id.clone()).collect();
    let node = |read| match read {
        NodeRead::Node(node) => Some(*node),
        _ => None,
    };
    Ok(tx.nodes(&found)?.into_iter().filter_map(node).collect())
}

/// Returns whether a deletion takes a node from another live session, which only `force` allows.
pub fn deletes_claim(
    tx: &dyn Tx,
    id: &NodeId,
    claimant: &Claimant,
    sessions: &dyn LiveSessions,
) -> Result<bool> {
    let Some(brief) = tx.brief(id)?.filter(|_| claimant.force) else { return Ok(false) };
    let claimant = Claimant { force: false, ..claimant.clone() };
    let branch: Vec<NodeBrief> = [vec![brief], tx.subtree(id)?].concat();
    let mut nodes = in_progress(tx, &branch)?.into_iter();
    Ok(nodes.any(|node| transition::check_claim(&node, &claimant, sessions).is_err()))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReferenceEdit {
    /// Adds a reference, or updates the description of an existing one and activates it.
    Add {
        description: String,
    },
    Remove,
    Expire,
    Activate,
}

/// Changes a reference of a node. `target` is a node id or the path of a doc.
pub fn edit_reference(
    tx: &mut dyn Tx,
    id: &NodeId,
    target: &str,
    edit: ReferenceEdit,
    op: &OpContext,
) -> Result<Node> {
    writable_workspace(tx)?;
    limits::check_filled_line("targetId", target)?;
    let mut node = existing_node(tx, "nodeId", id)?;
    let at = node.references.iter().position(|reference| reference.target_id == target);
    let missing = || Error::ReferenceNotFound { target: target.to_owned() };
    match edit {
        ReferenceEdit::Add { description } => {
            limits::check_line("description", &description)?;
            if let Ok(to) = NodeId::parse(target) {
                existing_brief(tx, "targetId", &to)?;
                if to == *id {
                    return Err(Error::invalid(
                        "targetId",
                        "节点不能引用自己",
                        "a node cannot reference itself",
                    ));
                }
            }
            let reference = Reference::new(target, description);
            match at {
                Some(at) => node.references[at] = reference,
                None => node.references.push(reference),
            }
            limits::check_list("references", node.references.len())?;
        }
        ReferenceEdit::Remove => {
            node.references.remove(at.ok_or_else(missing)?);
        }
        ReferenceEdit::Expire => node.references[at.ok_or_else(missing)?].status = RefStatus::Expired,
        ReferenceEdit::Activate => node.references[at.ok_or_else(missing)?].status = RefStatus::Active,
    }
    node.updated_at = op.now;
    tx.put_node(node.clone())?;
    Ok(node)
}
