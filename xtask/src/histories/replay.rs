//! Carries out the commands of one workspace again, in the order of their numbers, on the in-memory store.
//!
//! Before each command the in-memory store has the documents that the database had. The outcome and every
//! document that the command wrote must be equal, byte for byte. Only ids that the command itself made
//! differ; they are paired and replaced.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tanmi_base::Millis;
use tanmi_workspace::codec;
use tanmi_workspace::command::{Command, LiveSessions};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{OpContext, TransitionRequest};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::{
    Access, ChangeFeed, FeedStart, InMemoryStore, Store, StoreEvent, WORKSPACE, Workspaces,
};

use super::check::Evidence;
use super::record::{ChangeRow, Document, Documents, NodeRow, Record, apply_documents};

/// How long a session is alive after its last request.
const LEASE: Millis = 10 * 60 * 1000;

/// A command that was carried out, and its stored answer.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub record: &'a Record,
    pub answer: &'a Value,
}

impl Run<'_> {
    pub fn seq(&self) -> i64 {
        self.answer["seq"].as_i64().unwrap_or_default()
    }

    /// Returns whether the command wrote something. Only then its number is its own.
    pub fn has_written(&self) -> bool {
        self.answer["docs"].as_array().is_some_and(|docs| !docs.is_empty())
    }

    fn session(&self) -> Option<&str> {
        self.record.body["session"].as_str()
    }

    fn now(&self) -> Millis {
        self.answer["now"].as_i64().unwrap_or_default()
    }

    /// Returns what holds a node that the command starts.
    fn claimant(&self) -> String {
        self.session().map_or_else(|| format!("@{}", self.record.person), str::to_owned)
    }
}

/// When the lease of each session changed, in order, and until when it was valid then.
#[derive(Default)]
pub struct Leases {
    changes: BTreeMap<String, Vec<(Millis, Millis)>>,
    /// Sessions that a refused command may have revived, at a time that is not known.
    woken: BTreeSet<String>,
}

impl Leases {
    pub fn of<'a>(runs: impl Iterator<Item = Run<'a>>, evidence: &Evidence) -> Leases {
        let mut leases = Leases { woken: evidence.woken.clone(), ..Leases::default() };
        let renewals = runs.filter_map(|run| Some((run.session()?.to_owned(), run.now(), run.now() + LEASE)));
        let ends = evidence.lease_ends.iter().map(|end| (end.session.clone(), end.at, end.until));
        for (session, at, until) in renewals.chain(ends) {
            leases.changes.entry(session).or_default().push((at, until));
        }
        leases.changes.values_mut().for_each(|changes| changes.sort_unstable());
        leases
    }
}

/// The leases at the time of a command that was carried out.
struct LeasesAt<'a> {
    leases: &'a Leases,
    now: Millis,
    /// Whether the command looks for the next node and passes over nodes whose holder is alive. Any other
    /// command would have been refused.
    looks_for_next: bool,
    /// The holder from which it took the node over.
    taken_from: Option<&'a str>,
}

impl LiveSessions for LeasesAt<'_> {
    fn is_live(&self, session: &str) -> bool {
        let changes = self.leases.changes.get(session);
        let last = changes.and_then(|changes| changes.iter().rfind(|(at, _)| *at <= self.now));
        let is_revived =
            || self.leases.woken.contains(session) && self.looks_for_next && self.taken_from != Some(session);
        session.starts_with('@') || last.is_some_and(|(_, until)| *until > self.now) || is_revived()
    }
}

/// A workspace that is built up again, change by change.
pub struct Replay<'a> {
    store: InMemoryStore,
    id: WorkspaceId,
    leases: &'a Leases,
    texts: Documents,
    /// The last documents of deleted nodes.
    removed: Documents,
    rows: BTreeMap<String, NodeRow>,
}

impl<'a> Replay<'a> {
    /// Begins with the documents of a new workspace.
    pub fn new(id: &str, texts: Documents, leases: &'a Leases) -> Result<Replay<'a>, String> {
        let id = WorkspaceId::parse(id).map_err(|error| error.to_string())?;
        let text = |name: &str| texts.get(name).ok_or_else(|| format!("the document {name} is missing"));
        let workspace = read_workspace(&id, text(WORKSPACE)?)?.1;
        let root_text = text("root")?.clone();
        let root = read_node("root", &root_text)?.1;
        let store = InMemoryStore::with_kept_changes(4);
        store.insert(&workspace, &root).map_err(|error| error.to_string())?;
        let rows = BTreeMap::from([(String::from("root"), row_of(&root, root_text, 0, None))]);
        Ok(Replay { store, id, leases, texts, removed: Documents::new(), rows })
    }

    /// Returns the documents and the rows of the nodes, as they must be in the database.
    pub fn finish(self) -> (Documents, BTreeMap<String, NodeRow>) {
        (self.texts, self.rows)
    }

    /// Carries out a command and compares. `change` is `None` for a command that wrote nothing.
    pub fn step(&mut self, run: Run<'_>, change: Option<&ChangeRow>) -> Result<(), String> {
        let command = self.command_of(run)?;
        self.check_claim(run, &command)?;
        let mut subscription = self.store.subscribe(&self.id, FeedStart::Now);
        let op = OpContext { now: run.now(), operator: Operator::Ai, auto_log: true, moves_focus: true };
        let started = run.answer["outcome"]["started"]["node"]["id"].as_str();
        let leases = LeasesAt {
            leases: self.leases,
            now: run.now(),
            looks_for_next: matches!(command, Command::StartNext { .. }),
            taken_from: started.and_then(|node| self.rows.get(node)?.holder.as_deref()),
        };
        let committed = self.store.run(&self.id, &command, &op, &leases);
        let committed = committed.map_err(|error| format!("refused by the model: {}", error.code()))?;
        let outcome = serde_json::to_value(&committed.outcome).expect("an outcome is JSON");
        let events = subscription.changes().map_err(|error| error.to_string())?;
        let names: BTreeSet<String> = events
            .into_iter()
            .flat_map(|event| match event {
                StoreEvent::Change { nodes, .. } => nodes,
                _ => Vec::new(),
            })
            .collect();
        let fresh: Vec<&String> = names.iter().filter(|name| self.is_new(name)).collect();
        let mut ids = BTreeMap::new();
        pair_ids(&outcome, &run.answer["outcome"], &fresh, &mut ids);
        let rename = |text: String| ids.iter().fold(text, |text, (ours, theirs)| text.replace(ours, theirs));
        let renamed: Value = serde_json::from_str(&rename(outcome.to_string())).expect("still JSON");
        let (found, expected) = (sort_deleted(run.answer["outcome"].clone()), sort_deleted(renamed));
        if found != expected {
            return Err(format!("the outcome is {found}, and the model has {expected}"));
        }
        let written = self.written(&names, &rename)?;
        let expected: ChangedDocuments =
            change.into_iter().flat_map(ChangeRow::documents).map(|doc| (doc.name, doc.text)).collect();
        if written != expected {
            return Err(format!("the documents are {expected:?}, and the model has {written:?}"));
        }
        let answered: ChangedDocuments = serde_json::from_value::<Vec<Document>>(run.answer["docs"].clone())
            .map_err(|error| format!("the documents of the answer cannot be read: {error}"))?
            .into_iter()
            .map(|doc| (doc.name, doc.text))
            .collect();
        if answered != expected {
            return Err(String::from("the documents of the answer differ from those of the change"));
        }
        if let Some(change) = change {
            self.replace_state(change, ids.keys())?;
        }
        if let Some(fence) = run.answer["fence"].as_i64() {
            let node = claimed_node(&run.answer["outcome"]);
            let row = node.and_then(|node| self.rows.get(node));
            if row.map(|row| row.fence) != Some(fence) {
                return Err(format!("the claim has number {fence}, and the model has {row:?}"));
            }
        }
        Ok(())
    }

    fn is_new(&self, name: &str) -> bool {
        !self.texts.contains_key(name) && !self.removed.contains_key(name)
    }

    /// Returns the command with the claimant that the server sets.
    fn command_of(&self, run: Run<'_>) -> Result<Command, String> {
        let mut command: Command = serde_json::from_value(run.record.body["command"].clone())
            .map_err(|error| format!("the command cannot be read: {error}"))?;
        match &mut command {
            Command::Transition { request: TransitionRequest { claimant, .. } }
            | Command::DeleteNode { claimant, .. }
            | Command::StartNext { claimant } => {
                claimant.session = Some(run.claimant());
                claimant.person = Some(run.record.person.clone());
            }
            _ => {}
        }
        Ok(command)
    }

    /// Checks that a command that ended a claim had it, and that a command with an expectation met it.
    fn check_claim(&self, run: Run<'_>, command: &Command) -> Result<(), String> {
        let last = run.seq() - i64::from(run.has_written());
        if run.record.body["expects"].as_i64().is_some_and(|expected| expected != last) {
            return Err(format!("it expected change {}, and there was {last}", run.record.body["expects"]));
        }
        let Command::Transition { request } = command else { return Ok(()) };
        if !matches!(request.action, Action::Submit | Action::Complete | Action::Fail)
            || request.claimant.force
        {
            return Ok(());
        }
        let Some(row) = self.rows.get(request.node_id.as_str()) else { return Ok(()) };
        let has_fence = run.record.body["fence"].as_i64().is_none_or(|fence| fence == row.fence);
        let is_holder = row.holder.as_ref().is_none_or(|holder| *holder == run.claimant());
        match has_fence && is_holder {
            true => Ok(()),
            false => Err(format!("accepted without the claim, which is {} of {:?}", row.fence, row.holder)),
        }
    }

    /// Returns the documents that the in-memory store has after the command.
    fn written(
        &self,
        names: &BTreeSet<String>,
        rename: &dyn Fn(String) -> String,
    ) -> Result<ChangedDocuments, String> {
        let mut written = ChangedDocuments::new();
        let describe = |error: tanmi_workspace::error::Error| error.to_string();
        let tx = self.store.begin(&self.id, Access::Read, 0).map_err(describe)?;
        for name in names {
            let original = self.texts.get(name).or_else(|| self.removed.get(name));
            let text = if name == WORKSPACE {
                let original = original.map(|text| read_workspace(&self.id, text)).transpose()?;
                let original = original.as_ref().map(|(doc, workspace)| (doc, workspace));
                Some(codec::write_workspace(original, &tx.workspace().map_err(describe)?))
            } else {
                let original = original.map(|text| read_node(name, text)).transpose()?;
                let original = original.as_ref().map(|(doc, node)| (doc, node));
                let id = NodeId::parse(name).map_err(describe)?;
                tx.node(&id).map_err(describe)?.map(|node| codec::write_node(original, &node))
            };
            written.insert(rename(name.clone()), text.map(rename));
        }
        Ok(written)
    }

    /// Puts the documents of the database into the in-memory store, in place of nodes with ids of its own.
    fn replace_state<'b>(
        &mut self,
        change: &ChangeRow,
        own_ids: impl Iterator<Item = &'b String>,
    ) -> Result<(), String> {
        let describe = |error: tanmi_workspace::error::Error| error.to_string();
        let mut tx = self.store.begin(&self.id, Access::Write, change.at).map_err(describe)?;
        for id in own_ids {
            tx.remove_node(&NodeId::parse(id).map_err(describe)?).map_err(describe)?;
        }
        for Document { name, text } in change.documents() {
            let Some(text) = text else {
                self.rows.remove(&name);
                self.removed.extend(self.texts.get_key_value(&name).map(|(n, t)| (n.clone(), t.clone())));
                continue;
            };
            if name == WORKSPACE {
                tx.put_workspace(read_workspace(&self.id, &text)?.1).map_err(describe)?;
                continue;
            }
            let node = read_node(&name, &text)?.1;
            let row = row_of(&node, text, change.seq, self.rows.get(&name));
            self.rows.insert(name, row);
            tx.put_node(node).map_err(describe)?;
        }
        tx.commit().map_err(describe)?;
        apply_documents(&mut self.texts, change.documents());
        Ok(())
    }
}

/// Documents after a change; `None` if it removed them.
type ChangedDocuments = BTreeMap<String, Option<String>>;

pub(super) fn read_node(id: &str, text: &str) -> Result<(codec::Document, Node), String> {
    let damaged = |error: codec::ParseError| format!("{id} cannot be read: {}", error.to_index_text());
    let doc = codec::Document::parse(text.as_bytes()).map_err(damaged)?;
    let id = NodeId::parse(id).map_err(|error| error.to_string())?;
    let node = codec::read_node(&doc, &id).map_err(damaged)?;
    Ok((doc, node))
}

pub(super) fn read_workspace(id: &WorkspaceId, text: &str) -> Result<(codec::Document, Workspace), String> {
    let damaged = |error: codec::ParseError| format!("{id} cannot be read: {}", error.to_index_text());
    let doc = codec::Document::parse(text.as_bytes()).map_err(damaged)?;
    let workspace = codec::read_workspace(&doc, id).map_err(damaged)?;
    Ok((doc, workspace))
}

/// Returns the row of a node. The claim of a new holder has the number of the change.
pub(super) fn row_of(node: &Node, doc: String, seq: i64, before: Option<&NodeRow>) -> NodeRow {
    let holder = node.started_by.clone().filter(|_| !node.status.is_done());
    let is_new_holder = holder.is_some() && before.is_none_or(|before| before.holder != holder);
    let depends_on: Vec<&str> = node.depends_on.iter().map(NodeId::as_str).collect();
    NodeRow {
        id: node.id.to_string(),
        parent: node.parent_id.as_ref().map(NodeId::to_string),
        title: node.title.clone(),
        kind: node.kind.as_str().to_owned(),
        status: node.status.as_str().to_owned(),
        has_problem: node.activity.problem.is_some(),
        depends_on: depends_on.join(","),
        holder,
        fence: if is_new_holder { seq } else { before.map_or(0, |before| before.fence) },
        seq,
        doc,
    }
}

fn claimed_node(outcome: &Value) -> Option<&str> {
    outcome["transition"]["nodeId"].as_str().or(outcome["started"]["node"]["id"].as_str())
}

/// Sorts the ids of deleted nodes. A store returns the nodes of a subtree with parents before children, in
/// any such order.
fn sort_deleted(mut outcome: Value) -> Value {
    if let Some(ids) = outcome.get_mut("ids").and_then(Value::as_array_mut) {
        ids.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
    outcome
}

/// Finds the ids of the database for ids that the model made, by their places in the two outcomes.
fn pair_ids(ours: &Value, theirs: &Value, fresh: &[&String], ids: &mut BTreeMap<String, String>) {
    match (ours, theirs) {
        (Value::String(our), Value::String(their)) if fresh.contains(&our) => {
            ids.insert(our.clone(), their.clone());
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.iter().zip(theirs).for_each(|(our, their)| pair_ids(our, their, fresh, ids));
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, our) in ours {
                if let Some(their) = theirs.get(key) {
                    pair_ids(our, their, fresh, ids);
                }
            }
        }
        _ => {}
    }
}
