//! The checks accept a true history and find each kind of forgery.

use serde_json::json;
use tanmi_workspace::command::{Command, NoLiveSessions};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{self, NewWorkspace, OpContext};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::{ChangeFeed, FeedStart, InMemoryStore, Store, StoreEvent, Workspaces};

use super::*;
use crate::histories::commands::{create_node, transition};
use crate::histories::record::{ChangeRow, Followed};
use crate::histories::replay::{read_node, read_workspace, row_of};

const NOW: i64 = 1_765_432_100_000;

/// Collects what a server would leave behind.
struct History {
    store: InMemoryStore,
    id: WorkspaceId,
    texts: Documents,
    evidence: Evidence,
}

impl History {
    fn new() -> History {
        let new = NewWorkspace {
            name: String::from("w"),
            goal: String::from("g"),
            rules: Vec::new(),
            docs: Vec::new(),
        };
        let (workspace, root) = ops::new_workspace(new, &op(NOW)).unwrap();
        let (store, id) = (InMemoryStore::new(), workspace.id.clone());
        store.insert(&workspace, &root).unwrap();
        let text = tanmi_workspace::codec::write_workspace(None, &workspace);
        let root_text = tanmi_workspace::codec::write_node(None, &root);
        let texts = Documents::from([(String::from("workspace"), text), (String::from("root"), root_text)]);
        let mut history = History { store, id, texts, evidence: Evidence::default() };
        let docs: Vec<Value> =
            history.texts.iter().map(|(name, text)| json!({"name": name, "text": text})).collect();
        let answer = json!({"workspaceId": history.id, "created": {"seq": 0, "docs": docs, "now": NOW}});
        history.add("key-created", json!({"command": {"command": "create_workspace"}}), answer);
        history.evidence.database.streams.insert(history.id.to_string(), StreamRows::default());
        history
    }

    fn rows(&mut self) -> &mut StreamRows {
        self.evidence.database.streams.get_mut(self.id.as_str()).unwrap()
    }

    fn add(&mut self, key: &str, mut body: Value, answer: Value) {
        body["key"] = json!(key);
        let verdict = Verdict::Acknowledged(digest_of(&answer));
        let (key, person) = (key.to_owned(), String::from("ada"));
        self.evidence.database.answers.insert(key.clone(), answer);
        self.evidence.records.push(Record { key, person, body, verdict });
    }

    /// Runs a command of the session `s`, as the database would.
    fn run(&mut self, command: &Command, fence: Option<i64>, claim: Option<i64>) -> Value {
        let seq = self.rows().head + 1;
        let now = NOW + seq;
        let mut own = command.clone();
        if let Command::Transition { request } = &mut own {
            request.claimant.session = Some(String::from("s"));
        }
        let mut changes = self.store.subscribe(&self.id, FeedStart::Now);
        let committed = self.store.run(&self.id, &own, &op(now), &NoLiveSessions).unwrap();
        let StoreEvent::Change { nodes: names, .. } = changes.changes().unwrap().remove(0) else { panic!() };
        let mut docs = Vec::new();
        for name in &names {
            if name == "workspace" {
                let workspace = self.store.summary(&self.id, now).unwrap().0;
                let (doc, value) = read_workspace(&self.id, &self.texts[name]).unwrap();
                let text = tanmi_workspace::codec::write_workspace(Some((&doc, &value)), &workspace);
                docs.push(Some(text.clone()));
                self.texts.insert(name.clone(), text);
                continue;
            }
            let node = self.store.node(&self.id, &NodeId::parse(name).unwrap(), now).unwrap();
            let original = self.texts.get(name).map(|text| read_node(name, text).unwrap());
            let original = original.as_ref().map(|(doc, node)| (doc, node));
            let text = tanmi_workspace::codec::write_node(original, &node);
            let before = self.rows().nodes.iter().position(|row| row.id == *name);
            let before = before.map(|at| self.rows().nodes.remove(at));
            let row = row_of(&node, text.clone(), seq, before.as_ref());
            self.rows().nodes.push(row);
            docs.push(Some(text.clone()));
            self.texts.insert(name.clone(), text);
        }
        let change = ChangeRow { seq, at: now, names, docs };
        let outcome = serde_json::to_value(&committed.outcome).unwrap();
        let documents: Vec<Document> = change.documents().collect();
        let mut answer = json!({"outcome": outcome, "seq": seq, "docs": documents, "now": now});
        if let Some(claim) = claim {
            answer["fence"] = json!(claim);
        }
        let body = json!({"stream": self.id, "command": command, "session": "s", "fence": fence});
        self.add(&format!("key-{seq}"), body, answer);
        self.rows().head = seq;
        self.rows().changes.push(change);
        outcome
    }

    /// Adds what the readers of the feed saw.
    fn finish(mut self) -> Evidence {
        let texts = self.texts.clone();
        let rows = self.rows();
        rows.workspace = texts["workspace"].clone();
        if !rows.nodes.iter().any(|row| row.id == "root") {
            let root = read_node("root", &texts["root"]).unwrap().1;
            rows.nodes.push(row_of(&root, texts["root"].clone(), 0, None));
        }
        for row in rows.nodes.clone().into_iter().filter(|row| row.parent.is_some()) {
            for parent in [row.parent.clone().unwrap(), String::new()] {
                *rows.counts.entry((parent, row.status.clone())).or_default() += 1;
            }
        }
        let digest = rows.changes.iter().fold(String::new(), |digest, change| {
            extend_digest(&digest, change.seq, &change.documents().collect::<Vec<_>>())
        });
        let followed = Followed { from: 0, position: rows.head, digest, documents: texts.clone() };
        let id = self.id.to_string();
        let streams = BTreeMap::from([(id.clone(), followed)]);
        let view = FollowerView { name: String::from("a"), streams, violations: Vec::new() };
        self.evidence.followers.push(view);
        self.evidence.snapshots.insert(id, texts);
        self.evidence
    }
}

fn op(now: i64) -> OpContext {
    OpContext { now, operator: Operator::Ai, auto_log: true, moves_focus: true }
}

/// A workspace in which one node was created, started and completed, and another one was created.
fn true_history() -> Evidence {
    let mut history = History::new();
    let created = history.run(&create_node(&NodeId::root(), NodeType::Execution, "first"), None, None);
    let node = NodeId::parse(created["node"]["id"].as_str().unwrap()).unwrap();
    history.run(&transition(&node, Action::Start, false), None, Some(2));
    history.run(&transition(&node, Action::Complete, false), Some(2), None);
    history.run(&create_node(&NodeId::root(), NodeType::Execution, "second"), None, None);
    history.finish()
}

fn stream(evidence: &mut Evidence) -> &mut StreamRows {
    evidence.database.streams.values_mut().next().unwrap()
}

fn followed(evidence: &mut Evidence) -> &mut Followed {
    evidence.followers[0].streams.values_mut().next().unwrap()
}

/// Changes a stored answer, and what the client was told with it.
fn forge_answer(evidence: &mut Evidence, key: &str, forge: impl FnOnce(&mut Value)) {
    let answer = evidence.database.answers.get_mut(key).unwrap();
    forge(answer);
    let digest = digest_of(answer);
    let record = evidence.records.iter_mut().find(|record| record.key == key).unwrap();
    record.verdict = Verdict::Acknowledged(digest);
}

#[test]
fn true_history_has_no_violations() {
    let findings = check(&true_history());
    assert_eq!(findings.violations, Vec::<String>::new());
    assert_eq!((findings.replayed, findings.followed), (4, 4));
}

#[test]
fn forged_history_is_found() {
    type Forgery = fn(&mut Evidence);
    let forgeries: &[(&str, Forgery)] = &[
        ("acknowledged, but not stored", |e| drop(e.database.answers.remove("key-4"))),
        ("the stored answer differs", |e| e.database.answers.get_mut("key-4").unwrap()["now"] = json!(1)),
        ("refused with NODE_TAKEN, but carried out", |e| {
            e.records[4].verdict =
                Verdict::Refused { code: String::from("NODE_TAKEN"), after_unknown: false };
        }),
        ("refused with INTERNAL", |e| {
            let verdict = Verdict::Refused { code: String::from("INTERNAL"), after_unknown: false };
            e.records.push(Record { key: String::from("key-9"), verdict, ..e.records[0].clone() });
        }),
        ("the outcome stayed unknown", |e| e.records[4].verdict = Verdict::Unsettled),
        ("stored, but not sent", |e| drop(e.database.answers.insert(String::from("key-9"), json!({})))),
        ("the changes up to 4 are", |e| drop(stream(e).changes.remove(1))),
        ("both have change 4", |e| {
            let twice = Record { key: String::from("key-9"), ..e.records[4].clone() };
            e.database.answers.insert(String::from("key-9"), e.database.answers["key-4"].clone());
            e.records.push(twice);
        }),
        ("no request made change 4", |e| {
            e.records.remove(4);
            e.database.answers.remove("key-4");
        }),
        ("the outcome is", |e| forge_answer(e, "key-4", |a| a["outcome"]["node"]["title"] = json!("x"))),
        ("the documents are", |e| stream(e).changes[3].docs[0].as_mut().unwrap().push('x')),
        ("the documents of the answer differ", |e| {
            forge_answer(e, "key-4", |answer| answer["docs"][0]["text"] = json!("x"));
        }),
        ("the claim has number 7", |e| forge_answer(e, "key-2", |answer| answer["fence"] = json!(7))),
        ("accepted without the claim", |e| e.records[3].body["fence"] = json!(0)),
        ("accepted without the claim", |e| e.records[3].body["session"] = json!("another")),
        ("it expected change 1", |e| e.records[4].body["expects"] = json!(1)),
        ("refused by the model", |e| e.records[3].body["command"]["request"]["conclusion"] = json!(null)),
        ("the row is", |e| stream(e).nodes[0].fence += 1),
        ("the counts are", |e| drop(stream(e).counts.pop_first())),
        ("the snapshot differs", |e| drop(e.snapshots.pop_first())),
        ("was read up to 3 of 4", |e| followed(e).position = 3),
        ("the changes differ", |e| followed(e).digest = extend_digest("", 4, &[])),
        ("the replica differs", |e| drop(followed(e).documents.pop_first())),
        ("was never seen", |e| e.followers[0].streams.clear()),
    ];
    for (expected, forge) in forgeries {
        let mut evidence = true_history();
        forge(&mut evidence);
        let violations = check(&evidence).violations;
        assert!(violations.iter().any(|line| line.contains(expected)), "{expected}: {violations:?}");
    }
}

#[test]
fn request_carried_out_after_refusal_of_retry_is_counted() {
    let mut evidence = true_history();
    evidence.records[4].verdict = Verdict::Refused { code: String::from("NODE_TAKEN"), after_unknown: true };
    let findings = check(&evidence);
    assert_eq!((findings.violations.len(), findings.late), (0, 1));
}
