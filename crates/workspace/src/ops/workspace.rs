//! Operations that create, change, archive, restore and focus workspaces.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tanmi_base::{Lang, text};

use super::{
    LOGGED_COLUMNS, OpContext, RULES_CHANGED, WORKSPACE_CREATED, existing_brief, lang_of, writable_workspace,
};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::*;
use crate::store::{Store, Tx};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewWorkspace {
    pub name: String,
    pub goal: String,
    pub rules: Vec<String>,
    pub docs: Vec<DocReference>,
}

/// Creates a workspace with its root node.
pub fn init(store: &dyn Store, new: NewWorkspace, op: &OpContext) -> Result<Workspace> {
    let (mut workspace, root) = new_workspace(new, op)?;
    while store.contains(&workspace.id)? {
        workspace.id = WorkspaceId::fresh(op.now);
    }
    store.insert(&workspace, &root)?;
    Ok(workspace)
}

/// Returns a workspace and its root node, which no store contains yet.
pub fn new_workspace(new: NewWorkspace, op: &OpContext) -> Result<(Workspace, Node)> {
    limits::check_title("name", &new.name)?;
    limits::check_filled_line("goal", &new.goal)?;
    check_rules(&new.rules)?;
    check_docs(&new.docs)?;
    let mut workspace = Workspace {
        id: WorkspaceId::fresh(op.now),
        language: lang_of_texts(&new.name, &new.goal, &new.rules),
        name: new.name,
        goal: new.goal,
        status: WorkspaceStatus::Active,
        rules: without_duplicates(new.rules),
        docs: new.docs,
        focused_node_id: None,
        mask_secrets: true,
        created_at: op.now,
        updated_at: op.now,
        activity: Activity::default(),
    };
    let created = lang_of(&workspace).pick(WORKSPACE_CREATED.0, WORKSPACE_CREATED.1);
    workspace.activity.log.push(LogEntry::new(op.now, op.operator, created));
    // Without a requirement, because the context contains the goal already.
    let root = Node::new(NodeId::root(), NodeType::Planning, &workspace.name, op.now);
    Ok((workspace, root))
}

/// An edit of a list: replaces it, then removes and adds entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListEdit<T> {
    pub set: Option<Vec<T>>,
    pub add: Vec<T>,
    /// Keys of the entries to remove: the text of a rule, the path of a doc.
    pub remove: Vec<String>,
}

impl<T> Default for ListEdit<T> {
    fn default() -> ListEdit<T> {
        ListEdit { set: None, add: Vec::new(), remove: Vec::new() }
    }
}

impl<T> ListEdit<T> {
    pub fn is_empty(&self) -> bool {
        self.set.is_none() && self.add.is_empty() && self.remove.is_empty()
    }

    /// Applies the edit. An added entry replaces an existing one with the same key in place.
    pub(super) fn apply(
        self,
        field: &'static str,
        list: &mut Vec<T>,
        key: impl Fn(&T) -> &str,
    ) -> Result<()> {
        if let Some(set) = self.set {
            *list = set;
        }
        for removed_key in &self.remove {
            let before = list.len();
            list.retain(|entry| key(entry) != removed_key);
            if list.len() == before {
                let known = list.iter().map(|entry| key(entry).to_owned()).collect();
                return Err(Error::NotInList { field, what: removed_key.clone(), known });
            }
        }
        for new in self.add {
            match list.iter().position(|entry| key(entry) == key(&new)) {
                Some(at) => list[at] = new,
                None => list.push(new),
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceChange {
    pub name: Option<String>,
    pub goal: Option<String>,
    pub rules: ListEdit<String>,
    pub docs: ListEdit<DocReference>,
    /// See [`Workspace::language`].
    pub language: Option<Lang>,
    /// See [`Workspace::mask_secrets`].
    pub mask_secrets: Option<bool>,
    /// The versions that this change applies to; any other version is rejected.
    pub expected_versions: Option<Vec<String>>,
}

impl WorkspaceChange {
    pub fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.goal.is_none()
            && self.rules.is_empty()
            && self.docs.is_empty()
            && self.language.is_none()
            && self.mask_secrets.is_none()
    }
}

pub fn update_workspace(tx: &mut dyn Tx, change: WorkspaceChange, op: &OpContext) -> Result<Workspace> {
    let mut workspace = writable_workspace(tx)?;
    if change.expected_versions.is_some_and(|versions| !versions.contains(&workspace.version())) {
        return Err(Error::Outdated { version: workspace.version(), current: Box::new(json!(workspace)) });
    }
    let old = workspace.clone();
    if let Some(name) = change.name {
        limits::check_title("name", &name)?;
        workspace.name = name;
    }
    if let Some(goal) = change.goal {
        limits::check_filled_line("goal", &goal)?;
        workspace.goal = goal;
    }
    // Only new entries are checked. Existing entries that a person wrote into the file must not block other changes.
    let mut rules = change.rules;
    rules.set = rules.set.map(without_duplicates);
    rules.set.iter().chain([&rules.add]).try_for_each(|rules| check_rules(rules))?;
    check_docs_edit(&change.docs)?;
    rules.apply("rules", &mut workspace.rules, String::as_str)?;
    change.docs.apply("docs", &mut workspace.docs, |doc| doc.path.as_str())?;
    limits::check_list("rules", workspace.rules.len())?;
    limits::check_list("docs", workspace.docs.len())?;
    workspace.language = change.language.or(workspace.language);
    workspace.mask_secrets = change.mask_secrets.unwrap_or(workspace.mask_secrets);
    if workspace != old {
        workspace.updated_at = op.now;
        let entry = rules_entry(&old.rules, &workspace, op).filter(|_| op.auto_log);
        workspace.activity.log.extend(entry);
        tx.put_workspace(workspace.clone())?;
    }
    Ok(workspace)
}

/// Returns the log entry that tells which rules were added and removed; `None` if only their order changed.
fn rules_entry(old: &[String], workspace: &Workspace, op: &OpContext) -> Option<LogEntry> {
    let lang = lang_of(workspace);
    let missing = |from: &[String], rules: &[String], word: &str| {
        let rules: Vec<String> =
            rules.iter().filter(|rule| !from.contains(rule)).map(|rule| format!("“{rule}”")).collect();
        (!rules.is_empty()).then(|| format!("{word}{}", rules.join(lang.pick("、", ", "))))
    };
    let parts = [
        missing(old, &workspace.rules, lang.pick("新增", "added ")),
        missing(&workspace.rules, old, lang.pick("移除", "removed ")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text = text::fit(&text::one_line(&parts.join(lang.pick("；", "; "))), LOGGED_COLUMNS);
    let prefix = lang.pick(RULES_CHANGED.0, RULES_CHANGED.1);
    (!parts.is_empty()).then(|| LogEntry::new(op.now, op.operator, format!("{prefix}{text}")))
}

pub fn archive(tx: &mut dyn Tx, op: &OpContext) -> Result<Workspace> {
    let workspace = writable_workspace(tx)?;
    set_status(tx, workspace, WorkspaceStatus::Archived, ("归档工作区", "workspace archived"), op)
}

pub fn restore(tx: &mut dyn Tx, op: &OpContext) -> Result<Workspace> {
    let workspace = tx.workspace()?;
    if workspace.status != WorkspaceStatus::Archived {
        return Err(Error::WorkspaceNotArchived { id: workspace.id });
    }
    set_status(tx, workspace, WorkspaceStatus::Active, ("恢复工作区", "workspace restored"), op)
}

fn set_status(
    tx: &mut dyn Tx,
    mut workspace: Workspace,
    status: WorkspaceStatus,
    (zh, en): (&str, &str),
    op: &OpContext,
) -> Result<Workspace> {
    workspace.status = status;
    workspace.updated_at = op.now;
    if op.auto_log {
        let event = lang_of(&workspace).pick(zh, en);
        workspace.activity.log.push(LogEntry::new(op.now, op.operator, event));
    }
    tx.put_workspace(workspace.clone())?;
    Ok(workspace)
}

/// Sets the focus of the workspace.
pub fn focus(tx: &mut dyn Tx, node: Option<NodeId>, op: &OpContext) -> Result<Workspace> {
    let mut workspace = writable_workspace(tx)?;
    if let Some(id) = &node {
        existing_brief(tx, "nodeId", id)?;
    }
    if workspace.focused_node_id != node {
        workspace.focused_node_id = node;
        workspace.updated_at = op.now;
        tx.put_workspace(workspace.clone())?;
    }
    Ok(workspace)
}

fn check_rules(rules: &[String]) -> Result<()> {
    limits::check_list("rules", rules.len())?;
    rules.iter().try_for_each(|rule| limits::check_filled_line("rules", rule))
}

pub(super) fn check_docs_edit(edit: &ListEdit<DocReference>) -> Result<()> {
    edit.set.iter().chain([&edit.add]).try_for_each(|docs| check_docs(docs))
}

pub(super) fn check_docs(docs: &[DocReference]) -> Result<()> {
    limits::check_list("docs", docs.len())?;
    docs.iter().try_for_each(|doc| {
        limits::check_filled_line("docs", &doc.path)?;
        limits::check_line("docs", &doc.description)
    })
}

fn without_duplicates(rules: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    rules.into_iter().filter(|rule| seen.insert(rule.clone())).collect()
}
