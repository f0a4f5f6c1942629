//! From a checked call to a use case and back. One line of meaning per tool.

use serde_json::{Value, json};
use tanmi_app::node::{NodeCreate, role};
use tanmi_app::workspace::WorkspaceFilter;
use tanmi_app::{App, Error};
use tanmi_workspace::model::{NodeId, NodeStatus, WorkspaceStatus};
use tanmi_workspace::ops::{
    ListEdit, ListQuery, NewWorkspace, NodeChange, ProblemChange, ReferenceEdit, WorkspaceChange,
};

use super::answer;
use super::params::Checked;

type Result<T = Value> = std::result::Result<T, Error>;

pub fn call(app: &App, name: &str, p: &Checked<'_>) -> Result {
    match name {
        "workspace_init" => {
            let new = NewWorkspace {
                name: p.needed("name"),
                goal: p.needed("goal"),
                rules: p.texts("rules").unwrap_or_default(),
                docs: p.docs("docs").unwrap_or_default(),
            };
            answer::workspace(&app.workspace_init(new)?)
        }
        "workspace_list" => {
            let status = p.text("status").map(|word| WorkspaceStatus::parse("status", word)).transpose()?;
            let all = p.flag("all").unwrap_or(false);
            let limit = p.number("limit").unwrap_or(20);
            answer::value(&app.workspace_list(&WorkspaceFilter { all, status, limit, scan: None })?)
        }
        "workspace_get" => answer::workspace(&app.workspace_show(workspace(p))?),
        "workspace_update" => {
            let change = WorkspaceChange {
                name: p.owned("name"),
                goal: p.owned("goal"),
                rules: ListEdit {
                    set: p.texts("rules"),
                    add: p.texts("addRules").unwrap_or_default(),
                    remove: vec![],
                },
                docs: ListEdit {
                    set: p.docs("docs"),
                    add: p.docs("addDocs").unwrap_or_default(),
                    remove: vec![],
                },
            };
            answer::workspace(&app.workspace_update(workspace(p), change)?)
        }
        "workspace_archive" => answer::workspace(&app.workspace_archive(workspace(p))?),
        "workspace_restore" => answer::workspace(&app.workspace_restore(&p.needed("workspaceId"))?),
        "workspace_delete" => answer::value(&app.workspace_delete(&p.needed("workspaceId"))?),
        "node_create" => {
            let new = NodeCreate {
                workspace: p.owned("workspaceId"),
                parent: p.owned("parentId"),
                kind: p.needed("type"),
                title: p.needed("title"),
                requirement: p.needed("requirement"),
                role: p.owned("role"),
                note: p.owned("note").unwrap_or_default(),
                docs: p.docs("docs").unwrap_or_default(),
                isolated: p.flag("isolated").unwrap_or(false),
                rules_hash: p.owned("rulesHash"),
            };
            Ok(answer::changed(&app.node_create(new)?))
        }
        "node_get" => answer::whole(&app.node_show(workspace(p), &node(app, p)?)?),
        "node_list" => {
            let words = p.texts("status").unwrap_or_default();
            let statuses = words
                .iter()
                .map(|word| NodeStatus::parse("status", word))
                .collect::<std::result::Result<_, _>>()?;
            let query = ListQuery {
                under: NodeId::parse_field("parentId", p.text("parentId").unwrap_or("root"))?,
                depth: p.number("depth"),
                statuses,
                limit: p.number("limit").unwrap_or(50),
                after: p.text("after").map(|after| NodeId::parse_field("after", after)).transpose()?,
            };
            answer::value(&app.node_list(workspace(p), &query)?)
        }
        "node_update" => {
            let change = NodeChange {
                title: p.owned("title"),
                requirement: p.owned("requirement"),
                note: p.owned("note"),
                role: p.text("role").map(|word| role(Some(word))).transpose()?,
                isolated: p.flag("isolated"),
                docs: ListEdit { set: p.docs("docs"), ..ListEdit::default() },
            };
            Ok(answer::changed(&app.node_update(workspace(p), &node(app, p)?, change)?))
        }
        "node_move" => {
            Ok(answer::changed(&app.node_move(workspace(p), &p.needed("nodeId"), &p.needed("parentId"))?))
        }
        "node_delete" => answer::value(&app.node_delete(workspace(p), &p.needed("nodeId"))?),
        "node_transition" => {
            let node = node(app, p)?;
            answer::value(&app.node_transition(
                workspace(p),
                &node,
                &p.needed("action"),
                p.owned("conclusion"),
            )?)
        }
        "node_reference" => {
            let edit = match p.text("action") {
                Some("remove") => ReferenceEdit::Remove,
                Some("expire") => ReferenceEdit::Expire,
                Some("activate") => ReferenceEdit::Activate,
                _ => ReferenceEdit::Add { description: p.owned("description").unwrap_or_default() },
            };
            let edited = app.node_reference(workspace(p), &node(app, p)?, &p.needed("targetId"), edit)?;
            let mut value = answer::changed(&edited);
            value["references"] = json!(edited.result.node.references);
            Ok(value)
        }
        "context_get" => answer::value(&app.context(workspace(p), p.text("nodeId"))?),
        "context_focus" => {
            let view = app.workspace_focus(workspace(p), p.text("nodeId"))?;
            Ok(json!({"workspaceId": view.workspace_id, "focusedNodeId": view.focused_node_id}))
        }
        "log_append" => {
            let logged = app.log_append(workspace(p), &node(app, p)?, &p.needed("log"))?;
            let (node_id, total) = (&logged.result.node_id, logged.result.total);
            Ok(json!({"workspaceId": logged.workspace_id, "nodeId": node_id, "logTotal": total}))
        }
        "problem_update" => {
            let change =
                ProblemChange { description: p.owned("description"), next_step: p.owned("nextStep") };
            answer::value(&app.problem_update(workspace(p), &node(app, p)?, change)?)
        }
        "problem_clear" => answer::value(&app.problem_clear(workspace(p), &node(app, p)?)?),
        // The table and this match are compared by a test.
        other => {
            Err(tanmi_workspace::Error::Invalid { field: "name", reason: format!("{other} has no handler") }
                .into())
        }
    }
}

fn workspace<'a>(p: &Checked<'a>) -> Option<&'a str> {
    p.text("workspaceId")
}

/// The node that was named, or the one in focus.
fn node(app: &App, p: &Checked<'_>) -> Result<String> {
    match p.text("nodeId") {
        Some(node) => Ok(node.to_owned()),
        None => app.focused_node(workspace(p)),
    }
}
