//! Tests of the services over stores that keep everything in RAM. The project folder does not exist, so a use case that
//! builds a path itself fails here.

use serde_json::json;
use tanmi_session::Binding;
use tanmi_workspace::model::{NodeId, Operator, WorkspaceStatus};
use tanmi_workspace::ops::{ListQuery, NewWorkspace, ProblemChange, Target};

use crate::ledger::LedgerFilter;
use crate::memory::{MemoryQuery, NewFact, NewSummary};
use crate::nodes::{NodeCreate, TransitionArgs};
use crate::resolver::CallTarget;
use crate::sessions::SessionFilter;
use crate::workspaces::WorkspaceFilter;
use crate::{App, Error};

mod masking;
mod memory;
mod toy;

use toy::Machine;

fn workspace(name: &str) -> NewWorkspace {
    NewWorkspace { name: name.into(), goal: String::from("Ship it"), ..NewWorkspace::default() }
}

fn task(title: &str) -> NodeCreate {
    NodeCreate {
        kind: String::from("execution"),
        title: title.into(),
        requirement: String::from("do it"),
        ..NodeCreate::default()
    }
}

fn in_session(session: &str) -> CallTarget<'_> {
    CallTarget { session: Some(session), ..CallTarget::default() }
}

fn start(app: &App, session: &str, node: &NodeId) -> Result<(), Error> {
    let scope = app.resolver.scope(&in_session(session))?;
    app.nodes
        .transition(&scope, node.clone(), TransitionArgs { action: "start", ..TransitionArgs::default() })
        .map(|_| ())
}

#[test]
fn services_over_stores_in_ram_write_no_file_of_project() {
    let machine = Machine::new();
    let app = machine.app();
    let view = app.workspaces.create(workspace("First")).unwrap();
    let scope = app.resolver.scope(&CallTarget::default()).unwrap();
    let ws = &scope.workspace;
    let created = app.nodes.create(ws, task("Step")).unwrap();
    let id = created.result.node_id;
    app.nodes.append_log(ws, &Target::Node(id.clone()), "tried").unwrap();
    let change = ProblemChange { description: Some(String::from("stuck")), next_step: None };
    app.nodes.update_problem(ws, &Target::Node(id.clone()), change).unwrap();
    assert_eq!(app.nodes.view(ws, &id).unwrap().result.ancestors.len(), 1);
    assert_eq!(app.nodes.list(ws, &ListQuery::default()).unwrap().result.nodes.len(), 2);
    assert_eq!(app.nodes.context(ws, &id).unwrap().result.chain.len(), 2);
    app.sessions.bind("s1", None, Some(id.as_str())).unwrap();
    start(&app, "s1", &id).unwrap();
    assert_eq!(app.sessions.view("s1").unwrap()["focusedNode"]["id"], json!(id));
    let list = app.sessions.list(&SessionFilter { limit: 10, ..SessionFilter::default() }).unwrap();
    assert_eq!(list.total, 1);
    app.memory.save(NewFact { content: String::from("Port is 8080"), ..NewFact::default() }).unwrap();
    let summary = NewSummary { topic: "t".into(), summary: "s".into(), ..NewSummary::default() };
    app.memory.save_summary(summary).unwrap();
    let query = MemoryQuery { limit: 5, ..MemoryQuery::default() };
    assert_eq!(app.memory.search("port", &query).unwrap().results.len(), 1);
    assert_eq!(app.memory.list(&query).unwrap().total, Some(2));
    assert!(app.rules.explain(&machine.prompt("s1"), None, None, None).text.contains("Ship it"));
    app.events.context_check("s1", "prompt", None).unwrap();
    let filter = LedgerFilter { limit: 10, ..LedgerFilter::default() };
    assert_eq!(app.ledger.list(&filter).unwrap().total.decisions, 1);
    let lines = app.workspaces.list(&WorkspaceFilter { limit: 5, ..WorkspaceFilter::default() }).unwrap();
    assert_eq!(lines.workspaces[0].workspace_id, view.workspace_id);
    assert!(app.maintenance.take_notices(tanmi_base::Lang::En).is_empty());
    assert!(!machine.folder().exists(), "a use case wrote to the project folder");
    // Session states always belong to the machine.
    let local = ["state"];
    assert_eq!(machine.home_files(), local, "a use case wrote a store file past the interface");
}

#[test]
fn session_argument_metadata_and_environment_are_asked_in_this_order() {
    let machine = Machine::new();
    let app = machine.app_of(|env| env.session = Some(String::from("env")));
    let named = CallTarget { session: Some("named"), meta: Some("meta"), workspace: None };
    assert_eq!(app.resolver.session(&named).unwrap(), "named");
    assert_eq!(app.resolver.session(&CallTarget { session: None, ..named }).unwrap(), "meta");
    assert_eq!(app.resolver.session(&CallTarget::default()).unwrap(), "env");
    let remote = machine.app_of(|env| (env.remote, env.session) = (true, Some(String::from("env"))));
    assert!(matches!(remote.resolver.session(&CallTarget::default()), Err(Error::NoSession)));
    assert_eq!(remote.resolver.session(&named).unwrap(), "named");
}

#[test]
fn caller_session_of_user_in_terminal_is_none() {
    let machine = Machine::new();
    let app = machine.app_of(|env| env.operator = Operator::Human);
    assert_eq!(app.resolver.caller_session(&CallTarget::default()).unwrap(), None);
    let server = machine.app_of(|env| env.long_running = true);
    let connection = server.resolver.caller_session(&CallTarget::default()).unwrap().unwrap();
    assert!(connection.starts_with("mcp-"), "{connection}");
    assert_eq!(server.resolver.session(&CallTarget::default()).unwrap(), connection, "one id per connection");
}

#[test]
fn workspace_argument_binding_and_only_active_are_asked_in_this_order() {
    let machine = Machine::new();
    let app = machine.app();
    let only = app.resolver.scope(&CallTarget::default());
    assert!(matches!(only, Err(Error::NoWorkspace { .. })));
    let first = app.workspaces.create(workspace("First")).unwrap().workspace_id;
    assert_eq!(app.resolver.scope(&CallTarget::default()).unwrap().workspace.id, first);
    app.sessions.bind("s1", None, None).unwrap();
    let second = app.workspaces.create(workspace("Second")).unwrap().workspace_id;
    assert!(matches!(app.resolver.scope(&CallTarget::default()), Err(Error::AmbiguousWorkspace { .. })));
    assert_eq!(app.resolver.scope(&in_session("s1")).unwrap().workspace.id, first);
    let named = CallTarget { workspace: Some(second.as_str()), ..in_session("s1") };
    let scope = app.resolver.scope(&named).unwrap();
    assert_eq!(scope.workspace.id, second);
    assert!(scope.binding.is_none(), "the session is bound to the other workspace");
    let unknown = CallTarget::in_workspace(Some("ws-00000000-aaaaaa"));
    assert!(app.resolver.scope(&unknown).is_err());
}

#[test]
fn workspace_archived_is_not_binding_of_session() {
    let machine = Machine::new();
    let app = machine.app();
    app.workspaces.create(workspace("First")).unwrap();
    app.sessions.bind("s1", None, None).unwrap();
    let scope = app.resolver.scope(&in_session("s1")).unwrap();
    assert_eq!(app.workspaces.archive(&scope.workspace).unwrap().status, WorkspaceStatus::Archived);
    assert!(app.resolver.binding("s1").unwrap().is_none());
}

#[test]
fn node_argument_session_focus_and_workspace_focus_are_asked_in_this_order() {
    let machine = Machine::new();
    let app = machine.app();
    app.workspaces.create(workspace("First")).unwrap();
    let scope = app.resolver.scope(&CallTarget::default()).unwrap();
    let ids: Vec<NodeId> = ["a", "b", "c"]
        .map(|title| app.nodes.create(&scope.workspace, task(title)).unwrap().result.node_id)
        .into();
    assert!(matches!(app.resolver.node(&scope, None), Err(Error::NoFocus { .. })));
    app.workspaces.focus(&scope.workspace, Some(ids[0].clone())).unwrap();
    assert_eq!(app.resolver.node(&scope, None).unwrap(), ids[0]);
    app.sessions.bind("s1", None, Some(ids[1].as_str())).unwrap();
    let bound = app.resolver.scope(&in_session("s1")).unwrap();
    assert_eq!(app.resolver.node(&bound, None).unwrap(), ids[1]);
    assert_eq!(app.resolver.node(&bound, Some(ids[2].as_str())).unwrap(), ids[2]);
    assert_eq!(app.resolver.target(&bound, Some("workspace")).unwrap(), Target::Workspace);
}

#[test]
fn transition_of_node_held_by_live_session_is_refused() {
    let machine = Machine::new();
    let app = machine.app();
    app.workspaces.create(workspace("First")).unwrap();
    let scope = app.resolver.scope(&CallTarget::default()).unwrap();
    let id = app.nodes.create(&scope.workspace, task("a")).unwrap().result.node_id;
    app.sessions.bind("s1", None, None).unwrap();
    app.sessions.bind("s2", None, None).unwrap();
    start(&app, "s1", &id).unwrap();
    assert_eq!(start(&app, "s2", &id).unwrap_err().code(), "NODE_TAKEN");
    let other = app.resolver.scope(&in_session("s2")).unwrap();
    let complete =
        TransitionArgs { action: "complete", conclusion: Some("done".into()), ..TransitionArgs::default() };
    let refused = app.nodes.transition(&other, id.clone(), complete.clone()).unwrap_err();
    assert_eq!(refused.code(), "NODE_TAKEN");
    let own = app.resolver.scope(&in_session("s1")).unwrap();
    assert_eq!(app.nodes.transition(&own, id, complete).unwrap().result.step.to.as_str(), "completed");
}

#[test]
fn delete_of_focused_node_whose_binding_cannot_be_saved_warns() {
    let machine = Machine::new();
    let app = machine.app();
    app.workspaces.create(workspace("First")).unwrap();
    let scope = app.resolver.scope(&CallTarget::default()).unwrap();
    let id = app.nodes.create(&scope.workspace, task("a")).unwrap().result.node_id;
    app.sessions.bind("s1", None, Some(id.as_str())).unwrap();
    let bound = app.resolver.scope(&in_session("s1")).unwrap();
    machine.bindings.fail_writes();
    let deleted = app.nodes.delete(&bound, id.clone(), false).unwrap();
    assert_eq!(deleted.warnings.len(), 1);
    assert!(app.nodes.show(&scope.workspace, &id).is_err(), "the node is deleted all the same");
}

#[test]
fn binding_to_unknown_workspace_counts_as_unbound() {
    let machine = Machine::new();
    let app = machine.app();
    let binding = Binding {
        workspace_id: String::from("ws-00000000-aaaaaa"),
        focused_node_id: None,
        bound_at: 0,
        project: machine.folder(),
        project_id: None,
        other: Default::default(),
    };
    tanmi_session::Bindings::bind(machine.bindings.as_ref(), "s1", &binding).unwrap();
    assert!(app.resolver.binding("s1").unwrap().is_none());
}
