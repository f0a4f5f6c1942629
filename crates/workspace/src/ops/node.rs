//! Nodes: create, change, move, delete, reference.

use serde::Serialize;
use serde_json::json;

use super::workspace::{ListEdit, check_docs, check_docs_edit};
use super::*;
use crate::limits;

/// How strictly a caller must show that it knows the rules.
#[derive(Clone, Debug)]
pub enum RulesCheck {
    /// An agent: with rules present, the hash must be given and right.
    Required(Option<String>),
    /// A person: checked if given.
    IfGiven(Option<String>),
}

#[derive(Clone, Debug)]
pub struct NewNode {
    pub parent_id: NodeId,
    pub kind: NodeType,
    pub title: String,
    pub requirement: String,
    pub role: Option<NodeRole>,
    pub note: String,
    pub docs: Vec<DocReference>,
    pub isolated: bool,
    pub rules_check: RulesCheck,
}

/// Creates a node; the second part is what that made of its ancestors.
pub fn create_node(tx: &mut dyn Tx, new: NewNode, op: &OpContext) -> Result<(Node, Vec<StatusChange>)> {
    let workspace = writable(tx)?;
    limits::title("title", &new.title)?;
    limits::text("requirement", &new.requirement)?;
    limits::text("note", &new.note)?;
    check_docs(&new.docs)?;
    check_rules_hash(&workspace, &new.rules_check)?;
    check_parent(tx, &new.parent_id)?;
    if ancestors(tx, &new.parent_id)?.len() + 1 > limits::DEPTH {
        return Err(Error::TooDeep { limit: limits::DEPTH });
    }
    let mut id = NodeId::fresh(op.now);
    while tx.brief(&id)?.is_some() {
        id = NodeId::fresh(op.now);
    }
    let node = Node {
        id,
        title: new.title,
        kind: new.kind,
        status: NodeStatus::Pending,
        role: new.role,
        requirement: new.requirement,
        conclusion: None,
        note: new.note,
        parent_id: Some(new.parent_id.clone()),
        isolated: new.isolated,
        order: Some(tx.last_order(&new.parent_id)? + 1),
        docs: new.docs,
        references: Vec::new(),
        created_at: op.now,
        updated_at: op.now,
        status_changed_at: Some(op.now),
        started_by: None,
        agent: None,
        activity: Activity::default(),
    };
    tx.put_node(node.clone())?;
    let changes = child_appeared(tx, &new.parent_id, Appearance::New, op)?;
    Ok((node, changes))
}

fn check_rules_hash(workspace: &Workspace, check: &RulesCheck) -> Result<()> {
    let hash = workspace.rules_hash();
    let (RulesCheck::Required(given) | RulesCheck::IfGiven(given)) = check;
    let is_excused = matches!(check, RulesCheck::IfGiven(None));
    if hash.is_empty() || is_excused || given.as_ref() == Some(&hash) {
        return Ok(());
    }
    Err(Error::RulesHashMismatch { given: given.clone(), rules: workspace.rules.clone(), hash })
}

#[derive(Clone, Debug, Default)]
pub struct NodeChange {
    pub title: Option<String>,
    pub requirement: Option<String>,
    pub note: Option<String>,
    /// `Some(None)` takes the role away.
    pub role: Option<Option<NodeRole>>,
    pub isolated: Option<bool>,
    pub docs: ListEdit<DocReference>,
    /// The versions that this may be a change of; another one is refused.
    pub expects: Option<Vec<String>>,
}

impl NodeChange {
    pub fn is_empty(&self) -> bool {
        self.title.is_none()
            && self.requirement.is_none()
            && self.note.is_none()
            && self.role.is_none()
            && self.isolated.is_none()
            && self.docs.is_empty()
    }
}

pub fn update_node(tx: &mut dyn Tx, id: &NodeId, change: NodeChange, op: &OpContext) -> Result<Node> {
    writable(tx)?;
    let mut node = existing_node(tx, "nodeId", id)?;
    if change.expects.is_some_and(|versions| !versions.contains(&node.version())) {
        return Err(Error::Outdated { version: node.version(), current: Box::new(json!(node)) });
    }
    let was = node.clone();
    if let Some(title) = change.title {
        limits::title("title", &title)?;
        node.title = title;
    }
    if let Some(requirement) = change.requirement {
        limits::text("requirement", &requirement)?;
        node.requirement = requirement;
    }
    if let Some(note) = change.note {
        limits::text("note", &note)?;
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
    limits::list("docs", node.docs.len())?;
    if node != was {
        node.updated_at = op.now;
        tx.put_node(node.clone())?;
    }
    Ok(node)
}

/// Moves a node with everything below it to the end of another parent's children.
pub fn move_node(
    tx: &mut dyn Tx,
    id: &NodeId,
    parent: &NodeId,
    op: &OpContext,
) -> Result<(Node, Vec<StatusChange>)> {
    writable(tx)?;
    if id.is_root() {
        return Err(Error::RootProtected { action: "move" });
    }
    let mut node = existing_node(tx, "nodeId", id)?;
    let above = ancestors(tx, parent)?;
    if parent == id || above.iter().any(|ancestor| ancestor.id == *id) {
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
    if above.len() + 1 + height(tx, id)? > limits::DEPTH {
        return Err(Error::TooDeep { limit: limits::DEPTH });
    }
    let old_parent = node.parent_id.replace(parent.clone());
    node.order = Some(tx.last_order(parent)? + 1);
    node.updated_at = op.now;
    let unfinished = !node.status.is_done();
    tx.put_node(node.clone())?;
    let mut changes = Vec::new();
    if old_parent.as_ref() != Some(parent) {
        if let Some(old) = old_parent {
            changes.extend(child_removed(tx, &old, op)?);
        }
        if unfinished {
            changes.extend(child_appeared(tx, parent, Appearance::New, op)?);
        }
    }
    Ok((node, changes))
}

/// Levels below a node.
fn height(tx: &dyn Tx, id: &NodeId) -> Result<usize> {
    let mut level = vec![id.clone()];
    let mut height = 0;
    while height <= limits::DEPTH {
        let mut below = Vec::new();
        for parent in &level {
            below.extend(all_children(tx, parent)?.into_iter().map(|child| child.id));
        }
        if below.is_empty() {
            break;
        }
        height += 1;
        level = below;
    }
    Ok(height)
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedSubtree {
    pub node_id: NodeId,
    pub title: String,
    pub parent_id: Option<NodeId>,
    /// The node and everything below it.
    pub count: usize,
    #[serde(skip)]
    pub ids: Vec<NodeId>,
    pub status_changes: Vec<StatusChange>,
}

/// Removes a node with everything below it.
pub fn delete_node(tx: &mut dyn Tx, id: &NodeId, op: &OpContext) -> Result<DeletedSubtree> {
    let workspace = writable(tx)?;
    if id.is_root() {
        return Err(Error::RootProtected { action: "delete" });
    }
    let node = existing_brief(tx, "nodeId", id)?;
    if node.damage.is_some() {
        // Says where and why.
        tx.node(id)?;
    }
    let mut ids = vec![id.clone()];
    ids.extend(descendants(tx, id)?.into_iter().map(|brief| brief.id));
    for gone in &ids {
        tx.remove_node(gone)?;
    }
    let status_changes = match &node.parent_id {
        Some(parent) => child_removed(tx, parent, op)?,
        None => Vec::new(),
    };
    // A focus on something that is gone is nobody's wish, whoever set it.
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
        status_changes,
    })
}

#[derive(Clone, Debug)]
pub enum ReferenceEdit {
    /// Adds, or gives an existing one a new description and makes it active.
    Add {
        description: String,
    },
    Remove,
    Expire,
    Activate,
}

/// Changes one of a node's references; `target` is a node id or the path of a document.
pub fn edit_reference(
    tx: &mut dyn Tx,
    id: &NodeId,
    target: &str,
    edit: ReferenceEdit,
    op: &OpContext,
) -> Result<Node> {
    writable(tx)?;
    limits::filled_line("targetId", target)?;
    let mut node = existing_node(tx, "nodeId", id)?;
    let at = node.references.iter().position(|reference| reference.target_id == target);
    let missing = || Error::ReferenceNotFound { target: target.to_owned() };
    match edit {
        ReferenceEdit::Add { description } => {
            limits::line("description", &description)?;
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
            limits::list("references", node.references.len())?;
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
