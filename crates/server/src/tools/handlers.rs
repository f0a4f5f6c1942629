//! The handlers of the tools, one function per row of the table: each runs a use case with checked arguments and
//! returns its result.

use serde_json::json;
use tanmi_app::memory::{MemoryQuery, NewFact, NewSummary};
use tanmi_app::nodes::{MoveTarget, NodeCreate, TransitionArgs, parse_role};
use tanmi_app::workspaces::WorkspaceFilter;
use tanmi_base::Lang;
use tanmi_workspace::model::{NodeId, NodeStatus, WorkspaceStatus};
use tanmi_workspace::ops::{
    ListEdit, ListQuery, NewWorkspace, NodeChange, ProblemChange, ReferenceEdit, WorkspaceChange,
};

use super::call::{Call, Result};
use super::results;

pub fn workspace_init(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let new = NewWorkspace {
        name: p.needed("name"),
        goal: p.needed("goal"),
        rules: p.texts("rules").unwrap_or_default(),
        docs: p.docs("docs").unwrap_or_default(),
    };
    let view = c.app.workspaces.create(new)?;
    let mut result = results::workspace(&view)?;
    if c.is_for_agent {
        let lang = view.language.unwrap_or_else(|| c.app.lang());
        let bound = c.scope().ok().and_then(|scope| Some(scope.binding.as_ref()?.workspace.id.clone()));
        result["hint"] = json!(match bound {
            None => lang.pick(
                String::from("本会话未绑定到它；用 session_bind 绑定后再规划。"),
                String::from(
                    "This session is not bound to it yet; call session_bind with this workspaceId before you plan."
                ),
            ),
            Some(bound) => lang.pick(
                format!("本会话仍绑定在 {bound}，未给出 ID 的调用作用于它；先用 session_bind 绑定到新工作区，再规划。"),
                format!(
                    "This session is still bound to {bound}, and calls without ids act on that; call session_bind with this workspaceId before you plan."
                ),
            ),
        });
    }
    Ok(result)
}

pub fn workspace_list(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let status = p.text("status").map(|word| WorkspaceStatus::parse("status", word)).transpose()?;
    let all = p.flag("all").unwrap_or(false);
    let limit = p.number("limit").unwrap_or(20);
    results::value(&c.app.workspaces.list(&WorkspaceFilter {
        all,
        status,
        limit,
        scan: None,
        projects: Vec::new(),
    })?)
}

pub fn workspace_get(c: &Call<'_>) -> Result {
    results::workspace(&c.app.workspaces.show(c.workspace()?)?)
}

pub fn workspace_update(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let change = WorkspaceChange {
        name: p.owned("name"),
        goal: p.owned("goal"),
        rules: ListEdit {
            set: p.texts("rules"),
            add: p.texts("addRules").unwrap_or_default(),
            remove: p.texts("removeRules").unwrap_or_default(),
        },
        docs: ListEdit { set: p.docs("docs"), add: p.docs("addDocs").unwrap_or_default(), remove: vec![] },
        language: p.text("language").and_then(Lang::from_word),
        // Not a parameter: only the user decides.
        mask_secrets: None,
        expected_versions: c.expected_versions.clone(),
    };
    let view = c.app.workspaces.update(c.workspace()?, change)?;
    Ok(c.with_version(results::workspace(&view)?, &view.version))
}

pub fn workspace_archive(c: &Call<'_>) -> Result {
    results::workspace(&c.app.workspaces.archive(c.workspace()?)?)
}

pub fn workspace_restore(c: &Call<'_>) -> Result {
    if let Some(node) = c.arguments.text("nodeId") {
        return Ok(results::changed(&c.app.nodes.restore(c.scope()?, node)?));
    }
    results::workspace(&c.app.workspaces.restore(&c.arguments.needed("workspaceId"))?)
}

pub fn workspace_delete(c: &Call<'_>) -> Result {
    results::value(&c.app.workspaces.delete(c.workspace()?)?)
}

pub fn node_create(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let new = NodeCreate {
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
    Ok(results::changed(&c.app.nodes.create(c.workspace()?, new)?))
}

pub fn node_plan(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let scope = c.scope()?;
    let named = p.text("parentId").unwrap_or("root");
    let parent = c.app.resolver.node_id(&scope.workspace, "parentId", named)?;
    let planned = c.app.nodes.plan(&scope.workspace, parent, &p.needed("outline"), p.owned("rulesHash"))?;
    let mut value = json!({
        "workspaceId": planned.workspace_id,
        "parentId": planned.result.planned.parent_id,
        "outline": planned.result.outline,
        "change": planned.seq,
    });
    if !planned.result.planned.status_changes.is_empty() {
        value["statusChanges"] = json!(planned.result.planned.status_changes);
    }
    Ok(results::with_secrets(value, &planned))
}

/// The number of nodes in the result of `node_next`.
const NEXT_NODES: usize = 5;

pub fn node_next(c: &Call<'_>) -> Result {
    let scope = c.scope()?;
    match c.arguments.flag("start").unwrap_or(false) {
        true => results::value(&c.app.nodes.start_next(scope)?),
        false => results::value(&c.app.nodes.next(scope, NEXT_NODES)?),
    }
}

pub fn node_get(c: &Call<'_>) -> Result {
    results::full(&c.app.nodes.show(c.workspace()?, &c.node()?)?)
}

pub fn node_list(c: &Call<'_>) -> Result {
    let query = node_query(c)?;
    // A page after the parent begins with what lies below it.
    let parent = c.arguments.text("parentId").map(|_| query.under.clone());
    let query = ListQuery { after: query.after.or(parent), ..query };
    results::value(&c.app.nodes.list(c.workspace()?, &query)?)
}

/// Returns the query of a call that lists nodes.
pub fn node_query(c: &Call<'_>) -> Result<ListQuery> {
    let p = &c.arguments;
    let words = p.texts("status").unwrap_or_default();
    let statuses =
        words.iter().map(|word| NodeStatus::parse("status", word)).collect::<std::result::Result<_, _>>()?;
    let workspace = c.workspace()?;
    let node_in = |field, named| c.app.resolver.node_id(workspace, field, named);
    Ok(ListQuery {
        under: node_in("parentId", p.text("parentId").unwrap_or("root"))?,
        depth: p.number("depth"),
        statuses,
        words: ListQuery::split_search_words(p.text("query").unwrap_or_default()),
        limit: p.number("limit").unwrap_or(50),
        after: p.text("after").map(|after| node_in("after", after)).transpose()?,
        ..ListQuery::default()
    })
}

pub fn node_update(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let workspace = c.workspace()?;
    let node_id = |id: &String| c.app.resolver.node_id(workspace, "dependsOn", id);
    let depends_on = p.texts("dependsOn").map(|ids| ids.iter().map(node_id).collect());
    let depends_on = depends_on.transpose()?;
    let change = NodeChange {
        title: p.owned("title"),
        requirement: p.owned("requirement"),
        note: p.owned("note"),
        role: p.text("role").map(|word| parse_role(Some(word))).transpose()?,
        isolated: p.flag("isolated"),
        docs: ListEdit { set: p.docs("docs"), ..ListEdit::default() },
        depends_on: ListEdit { set: depends_on, ..ListEdit::default() },
        expected_versions: c.expected_versions.clone(),
    };
    let updated = c.app.nodes.update(c.workspace()?, &c.node()?, change)?;
    Ok(c.with_version(results::changed(&updated), &updated.result.node.version()))
}

pub fn node_move(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let to = MoveTarget { parent: p.owned("parentId"), before: p.owned("before"), after: p.owned("after") };
    Ok(results::changed(&c.app.nodes.move_to(c.workspace()?, &c.node()?, &to)?))
}

pub fn node_delete(c: &Call<'_>) -> Result {
    let force = c.arguments.flag("force").unwrap_or(false);
    results::value(&c.app.nodes.delete(c.scope()?, c.node()?, force)?)
}

pub fn node_transition(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let args = TransitionArgs {
        action: &p.needed("action"),
        conclusion: p.owned("conclusion"),
        agent: p.text("agent"),
        force: p.flag("force").unwrap_or(false),
    };
    results::value(&c.app.nodes.transition(c.scope()?, c.node()?, args)?)
}

pub fn node_reference(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let edit = match p.text("action") {
        Some("remove") => ReferenceEdit::Remove,
        Some("expire") => ReferenceEdit::Expire,
        Some("activate") => ReferenceEdit::Activate,
        _ => ReferenceEdit::Add { description: p.owned("description").unwrap_or_default() },
    };
    let edited = c.app.nodes.edit_reference(c.workspace()?, &c.node()?, &p.needed("targetId"), edit)?;
    let mut value = results::changed(&edited);
    value["references"] = json!(edited.result.node.references);
    Ok(value)
}

pub fn context_get(c: &Call<'_>) -> Result {
    let scope = c.scope()?;
    let node = match c.arguments.text("nodeId") {
        Some(_) => c.node()?,
        None => c.app.resolver.focus(scope)?.unwrap_or_else(NodeId::root),
    };
    results::value(&c.app.nodes.context(&scope.workspace, &node)?)
}

pub fn context_focus(c: &Call<'_>) -> Result {
    let scope = c.scope()?;
    scope.check_session()?;
    let node = c.arguments.text("nodeId").map(|_| c.node()).transpose()?;
    if let Some(bound) = &scope.binding {
        return results::value(&c.app.nodes.focus(bound, node)?);
    }
    let view = c.app.workspaces.focus(&scope.workspace, node)?;
    let (workspace_id, focus) = (view.workspace_id, view.focused_node_id);
    Ok(json!({"workspaceId": workspace_id, "focusedNodeId": focus, "change": view.seq}))
}

pub fn log_append(c: &Call<'_>) -> Result {
    let logged =
        c.app.nodes.append_log(c.workspace()?, &c.node_or_workspace()?, &c.arguments.needed("log"))?;
    let (node_id, total) = (&logged.result.node_id, logged.result.total);
    let workspace_id = &logged.workspace_id;
    let value =
        json!({"workspaceId": workspace_id, "nodeId": node_id, "logTotal": total, "change": logged.seq});
    Ok(results::with_secrets(value, &logged))
}

pub fn problem_update(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let change = ProblemChange { description: p.owned("description"), next_step: p.owned("nextStep") };
    results::value(&c.app.nodes.update_problem(c.workspace()?, &c.node_or_workspace()?, change)?)
}

pub fn session_bind(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    results::value(&c.app.sessions.bind(&c.session()?, p.text("workspaceId"), p.text("nodeId"))?)
}

pub fn session_unbind(c: &Call<'_>) -> Result {
    results::value(&c.app.sessions.unbind(&c.session()?)?)
}

pub fn memory_save(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    results::value(&c.app.memory.save(NewFact {
        content: p.needed("content"),
        memory_type: p.owned("type"),
        entities: p.texts("entities").unwrap_or_default(),
        confidence: p.fraction("confidence"),
        session: c.caller_session()?,
        supersedes: p.texts("supersedes").unwrap_or_default(),
        paths: p.texts("paths").unwrap_or_default(),
        scope: p.owned("scope"),
    })?)
}

pub fn memory_search(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    let filter = MemoryQuery {
        memory_type: p.owned("type"),
        since: p.owned("since"),
        until: p.owned("until"),
        limit: p.number("limit").unwrap_or(10),
        ..MemoryQuery::default()
    };
    results::value(&c.app.memory.search(&p.needed("query"), &filter)?)
}

pub fn memory_forget(c: &Call<'_>) -> Result {
    let forgotten = c.app.memory.forget(&c.arguments.texts("ids").unwrap_or_default())?;
    Ok(json!({"forgotten": results::value(&forgotten)?}))
}

pub fn memory_summary(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    results::value(&c.app.memory.save_summary(NewSummary {
        topic: p.needed("topic"),
        summary: p.needed("summary"),
        decisions: p.texts("decisions").unwrap_or_default(),
        todos: p.texts("todos").unwrap_or_default(),
        session: c.caller_session()?,
    })?)
}

pub fn session_status(c: &Call<'_>) -> Result {
    c.app.events.session_status(&c.session()?)
}

pub fn context_check(c: &Call<'_>) -> Result {
    let p = &c.arguments;
    c.app.events.context_check(&c.session()?, &p.needed("trigger"), p.owned("prompt"))
}

pub fn problem_clear(c: &Call<'_>) -> Result {
    results::value(&c.app.nodes.clear_problem(c.workspace()?, &c.node_or_workspace()?)?)
}
