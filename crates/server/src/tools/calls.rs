//! From a checked call to a use case and back. One line of meaning per tool.

use std::cell::OnceCell;

use serde_json::{Map, Value, json};
use tanmi_app::memory::{MemoryQuery, NewFact, NewSummary};
use tanmi_app::node::{NodeCreate, Step, role};
use tanmi_app::session::SessionBinding;
use tanmi_app::workspace::WorkspaceFilter;
use tanmi_app::{App, Error};
use tanmi_base::Lang;
use tanmi_workspace::model::{NodeId, NodeStatus, WorkspaceStatus};
use tanmi_workspace::ops::{
    ListEdit, ListQuery, NewWorkspace, NodeChange, ProblemChange, ReferenceEdit, WorkspaceChange,
};

use super::params::Checked;
use super::{Spec, answer};

type Result<T = Value> = std::result::Result<T, Error>;

/// One call: its arguments, and the session it belongs to, looked up once and only if it matters.
pub struct Call<'a> {
    pub app: &'a App,
    pub arguments: Checked<'a>,
    /// The session that the protocol names.
    pub meta: Option<String>,
    /// The versions that an edit may be an edit of.
    pub expects: Option<Vec<String>>,
    bound: OnceCell<Option<SessionBinding>>,
}

/// A call as it arrives.
pub struct Asked<'a> {
    pub app: &'a App,
    pub spec: &'a Spec,
    pub arguments: &'a Map<String, Value>,
    pub meta: Option<String>,
    pub expects: Option<Vec<String>>,
    pub lang: Lang,
}

/// From arguments to the answer; what is wrong comes as JSON with its code.
pub fn perform(asked: &Asked<'_>) -> std::result::Result<Value, Value> {
    perform_with(asked, |call| self::call(call, asked.spec.name))
}

/// As [`perform`], for what only HTTP has.
pub fn perform_with(
    asked: &Asked<'_>,
    work: impl FnOnce(&Call<'_>) -> Result,
) -> std::result::Result<Value, Value> {
    let arguments = Checked::new(asked.spec, asked.arguments).map_err(|misfit| misfit.to_json())?;
    let (app, meta, expects) = (asked.app, asked.meta.clone(), asked.expects.clone());
    let call = Call { app, arguments, meta, expects, bound: OnceCell::new() };
    let session = if asked.spec.reads { None } else { call.session().ok() };
    app.knowing(session.as_deref(), || work(&call)).map_err(|error| error.to_json(asked.lang))
}

impl Call<'_> {
    pub fn session(&self) -> Result<String> {
        self.app.session_of_call(self.arguments.text("sessionId"), self.meta.as_deref())
    }

    fn bound(&self) -> Result<Option<&SessionBinding>> {
        if self.bound.get().is_none() {
            let bound = self.app.binding_of(&self.session()?)?;
            let _ = self.bound.set(bound);
        }
        Ok(self.bound.get().and_then(Option::as_ref))
    }

    /// Whoever names the version of an edit is told the next one; nobody else needs it.
    fn with_version(&self, mut answer: Value, version: &str) -> Value {
        if self.expects.is_some() {
            answer["version"] = json!(version);
        }
        answer
    }

    /// The workspace that was named, or the one the session is bound to.
    fn workspace(&self) -> Result<Option<String>> {
        match self.arguments.text("workspaceId") {
            Some(id) => Ok(Some(id.to_owned())),
            None => Ok(self.bound()?.map(|bound| bound.workspace_id.clone())),
        }
    }

    /// The binding, if this call is about its workspace.
    fn binding_in(&self, workspace: &str) -> Option<&SessionBinding> {
        self.bound().ok().flatten().filter(|bound| bound.workspace_id == workspace)
    }

    /// The node that was named, or the one in focus.
    fn node(&self) -> Result<String> {
        if let Some(node) = self.arguments.text("nodeId") {
            return Ok(node.to_owned());
        }
        let workspace = self.workspace()?;
        let focus = workspace.as_deref().and_then(|id| self.binding_in(id)?.focused_node_id.clone());
        focus.map_or_else(|| self.app.focused_node(workspace.as_deref()), Ok)
    }
}

pub fn call(c: &Call<'_>, name: &str) -> Result {
    let (app, p) = (c.app, &c.arguments);
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
            answer::value(&app.workspace_list(&WorkspaceFilter {
                all,
                status,
                limit,
                scan: None,
                projects: Vec::new(),
            })?)
        }
        "workspace_get" => answer::workspace(&app.workspace_show(c.workspace()?.as_deref())?),
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
                expects: c.expects.clone(),
            };
            let view = app.workspace_update(c.workspace()?.as_deref(), change)?;
            Ok(c.with_version(answer::workspace(&view)?, &view.version))
        }
        "workspace_archive" => answer::workspace(&app.workspace_archive(c.workspace()?.as_deref())?),
        "workspace_restore" => answer::workspace(&app.workspace_restore(&p.needed("workspaceId"))?),
        "workspace_delete" => answer::value(&app.workspace_delete(&p.needed("workspaceId"))?),
        "node_create" => {
            let new = NodeCreate {
                workspace: c.workspace()?,
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
        "node_get" => answer::whole(&app.node_show(c.workspace()?.as_deref(), &c.node()?)?),
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
                words: ListQuery::words_of(p.text("query").unwrap_or_default()),
                limit: p.number("limit").unwrap_or(50),
                after: p.text("after").map(|after| NodeId::parse_field("after", after)).transpose()?,
            };
            answer::value(&app.node_list(c.workspace()?.as_deref(), &query)?)
        }
        "node_update" => {
            let change = NodeChange {
                title: p.owned("title"),
                requirement: p.owned("requirement"),
                note: p.owned("note"),
                role: p.text("role").map(|word| role(Some(word))).transpose()?,
                isolated: p.flag("isolated"),
                docs: ListEdit { set: p.docs("docs"), ..ListEdit::default() },
                expects: c.expects.clone(),
            };
            let updated = app.node_update(c.workspace()?.as_deref(), &c.node()?, change)?;
            Ok(c.with_version(answer::changed(&updated), &updated.result.node.version()))
        }
        "node_move" => Ok(answer::changed(&app.node_move(
            c.workspace()?.as_deref(),
            &p.needed("nodeId"),
            &p.needed("parentId"),
        )?)),
        "node_delete" => {
            let workspace = c.workspace()?;
            let bound = workspace.as_deref().and_then(|id| c.binding_in(id));
            answer::value(&app.node_delete(workspace.as_deref(), &p.needed("nodeId"), bound)?)
        }
        "node_transition" => {
            let (node, workspace) = (c.node()?, c.workspace()?);
            let session = c.session().ok();
            answer::value(&app.node_transition(Step {
                workspace: workspace.as_deref(),
                node: &node,
                action: &p.needed("action"),
                conclusion: p.owned("conclusion"),
                session: session.as_deref(),
                bound: workspace.as_deref().and_then(|id| c.binding_in(id)),
                agent: p.text("agent").map(String::from),
                force: p.flag("force").unwrap_or(false),
            })?)
        }
        "node_reference" => {
            let edit = match p.text("action") {
                Some("remove") => ReferenceEdit::Remove,
                Some("expire") => ReferenceEdit::Expire,
                Some("activate") => ReferenceEdit::Activate,
                _ => ReferenceEdit::Add { description: p.owned("description").unwrap_or_default() },
            };
            let edited =
                app.node_reference(c.workspace()?.as_deref(), &c.node()?, &p.needed("targetId"), edit)?;
            let mut value = answer::changed(&edited);
            value["references"] = json!(edited.result.node.references);
            Ok(value)
        }
        "context_get" => {
            let workspace = c.workspace()?;
            let focus = workspace.as_deref().and_then(|id| c.binding_in(id)?.focused_node_id.clone());
            let node = p.owned("nodeId").or(focus);
            answer::value(&app.context(workspace.as_deref(), node.as_deref())?)
        }
        "context_focus" => {
            let workspace = c.workspace()?;
            if let Some(bound) = workspace.as_deref().and_then(|id| c.binding_in(id)) {
                app.session_focus(bound, p.text("nodeId"))?;
                return Ok(json!({"workspaceId": bound.workspace_id, "focusedNodeId": p.text("nodeId")}));
            }
            let view = app.workspace_focus(workspace.as_deref(), p.text("nodeId"))?;
            Ok(json!({"workspaceId": view.workspace_id, "focusedNodeId": view.focused_node_id}))
        }
        "log_append" => {
            let logged = app.log_append(c.workspace()?.as_deref(), &c.node()?, &p.needed("log"))?;
            let (node_id, total) = (&logged.result.node_id, logged.result.total);
            Ok(json!({"workspaceId": logged.workspace_id, "nodeId": node_id, "logTotal": total}))
        }
        "problem_update" => {
            let change =
                ProblemChange { description: p.owned("description"), next_step: p.owned("nextStep") };
            answer::value(&app.problem_update(c.workspace()?.as_deref(), &c.node()?, change)?)
        }
        "session_bind" => {
            let workspace = p.needed("workspaceId");
            answer::value(&app.session_bind(&c.session()?, &workspace, p.text("nodeId"))?)
        }
        "session_unbind" => answer::value(&app.session_unbind(&c.session()?)?),
        "memory_save" => answer::value(&app.memory_save(NewFact {
            content: p.needed("content"),
            memory_type: p.owned("type"),
            entities: p.texts("entities").unwrap_or_default(),
            confidence: p.share("confidence"),
            session: c.session().ok(),
            supersedes: p.texts("supersedes").unwrap_or_default(),
        })?),
        "memory_search" => {
            let wanted = MemoryQuery {
                memory_type: p.owned("type"),
                since: p.owned("since"),
                until: p.owned("until"),
                limit: p.number("limit").unwrap_or(10),
                ..MemoryQuery::default()
            };
            answer::value(&app.memory_search(&p.needed("query"), &wanted)?)
        }
        "memory_summary" => answer::value(&app.memory_summary(NewSummary {
            topic: p.needed("topic"),
            summary: p.needed("summary"),
            decisions: p.texts("decisions").unwrap_or_default(),
            todos: p.texts("todos").unwrap_or_default(),
            session: c.session().ok(),
        })?),
        "session_status" => app.session_status(&c.session()?),
        "context_check" => app.context_check(&c.session()?, &p.needed("trigger"), p.owned("prompt")),
        "problem_clear" => answer::value(&app.problem_clear(c.workspace()?.as_deref(), &c.node()?)?),
        // The table and this match are compared by a test.
        other => {
            Err(tanmi_workspace::Error::Invalid { field: "name", reason: format!("{other} has no handler") }
                .into())
        }
    }
}
