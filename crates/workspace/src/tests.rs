//! Tests of the workspace domain: examples of the specification on both stores, and random operations with
//! equal results on every implementation of [`store::Workspaces`].

use tanmi_base::{Lang, Millis};

use crate::command::{LiveSessions, NoLiveSessions};
use crate::model::*;
use crate::ops::*;
use crate::state::Action;
use crate::store::{self, FileStore, InMemoryStore, Store, Tx};
use crate::stories::{NOW, new_node, new_workspace, op};
use crate::{Error, Result};

mod concurrency;
mod equivalence;
mod examples;
mod feed;
mod files;
mod plans;
mod remote;
mod walks;

/// Answers for all holders alike.
struct Holders {
    are_live: bool,
}

impl LiveSessions for Holders {
    fn is_live(&self, _: &str) -> bool {
        self.are_live
    }
}

fn delete_unclaimed(tx: &mut dyn Tx, id: &NodeId, op: &OpContext) -> Result<DeletedSubtree> {
    delete_node(tx, id, &Claimant::default(), op, &NoLiveSessions)
}

/// A workspace in one store, with shortcuts for operations on it.
struct TestWorkspace<'a> {
    store: &'a dyn Store,
    id: WorkspaceId,
    now: std::cell::Cell<Millis>,
}

impl<'a> TestWorkspace<'a> {
    fn new(store: &'a dyn Store, rules: &[&str]) -> TestWorkspace<'a> {
        let workspace = init(store, new_workspace(rules), &op(NOW)).unwrap();
        TestWorkspace { store, id: workspace.id, now: std::cell::Cell::new(NOW) }
    }

    /// Advances the clock by one second and returns the context of the next operation.
    fn tick(&self) -> OpContext {
        self.now.set(self.now.get() + 1000);
        op(self.now.get())
    }

    fn change<T>(&self, work: impl FnMut(&mut dyn Tx) -> Result<T>) -> Result<T> {
        store::change(self.store, &self.id, self.now.get(), work).map(|(outcome, _)| outcome)
    }

    fn view<T>(&self, work: impl FnMut(&dyn Tx) -> Result<T>) -> T {
        store::view(self.store, &self.id, self.now.get(), work).unwrap()
    }

    fn try_create(&self, parent: &NodeId, kind: NodeType, title: &str) -> Result<NodeId> {
        let op = self.tick();
        self.change(|tx| Ok(create_node(tx, new_node(parent, kind, title), &op)?.0.id))
    }

    fn add_planning(&self, parent: &NodeId, title: &str) -> NodeId {
        self.try_create(parent, NodeType::Planning, title).unwrap()
    }

    fn add_execution(&self, parent: &NodeId, title: &str) -> NodeId {
        self.try_create(parent, NodeType::Execution, title).unwrap()
    }

    fn apply(&self, node: &NodeId, action: Action) -> Result<Transition> {
        let op = self.tick();
        let conclusion = Some(format!("{action} 的结论"));
        self.change(|tx| {
            let request = TransitionRequest {
                node_id: node.clone(),
                action,
                conclusion: conclusion.clone(),
                claimant: Default::default(),
            };
            transition(tx, request, &op, &NoLiveSessions)
        })
    }

    fn node(&self, id: &NodeId) -> Node {
        self.view(|tx| tx.node(id)).unwrap()
    }

    fn status(&self, id: &NodeId) -> &'static str {
        self.node(id).status.as_str()
    }
}

/// Runs a test on an in-memory store and on a file store.
fn on_both_stores(test: impl Fn(&TestWorkspace<'_>)) {
    let memory = InMemoryStore::new();
    test(&TestWorkspace::new(&memory, &[]));
    let dir = tempfile::tempdir().unwrap();
    let files = FileStore::in_folder(dir.path());
    test(&TestWorkspace::new(&files, &[]));
}

/// Returns the error code of a result that must be an error.
fn error_code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.unwrap_err().code()
}
