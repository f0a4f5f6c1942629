//! The checks after a test: what the clients were told, what the database has, and what the readers saw agree.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::record::{
    Database, Document, Documents, FollowerView, LeaseEnd, NodeRow, Record, StreamRows, Verdict,
    apply_documents, digest_of, extend_digest,
};
use super::replay::{Leases, Replay, Run};

#[cfg(test)]
mod tests;

/// Everything that a test leaves behind.
#[derive(Clone, Default)]
pub struct Evidence {
    pub records: Vec<Record>,
    pub lease_ends: Vec<LeaseEnd>,
    /// Sessions that sent a command after their client left them.
    pub woken: BTreeSet<String>,
    pub database: Database,
    pub followers: Vec<FollowerView>,
    /// The documents of the workspaces that exist, fetched at the end.
    pub snapshots: BTreeMap<String, Documents>,
}

/// The violations, and what was counted on the way.
#[derive(Default)]
pub struct Findings {
    pub violations: Vec<String>,
    /// Commands that were carried out again, with equal results.
    pub replayed: u64,
    /// Changes that readers saw.
    pub followed: u64,
    /// Requests that were refused while a server still had an earlier attempt, which it then carried out.
    pub late: u64,
}

impl Findings {
    fn report(&mut self, violation: String) {
        self.violations.push(violation);
    }
}

pub fn check(evidence: &Evidence) -> Findings {
    let mut findings = Findings::default();
    check_answers(evidence, &mut findings);
    let runs: Vec<Run> = evidence
        .records
        .iter()
        .filter_map(|record| Some(Run { record, answer: evidence.database.answers.get(&record.key)? }))
        .collect();
    let leases = Leases::of(runs.iter().copied().filter(|run| is_command(run)), evidence);
    for (stream, rows) in &evidence.database.streams {
        let own: Vec<Run> = runs.iter().copied().filter(|run| stream_of(run) == Some(stream)).collect();
        check_stream(stream, rows, &own, &leases, &mut findings);
        if !rows.is_deleted {
            check_snapshot(stream, rows, evidence, &mut findings);
        }
    }
    for view in &evidence.followers {
        check_follower(view, evidence, &mut findings);
    }
    findings
}

/// Compares what the clients were told with the stored answers.
fn check_answers(evidence: &Evidence, findings: &mut Findings) {
    let answers = &evidence.database.answers;
    for record in &evidence.records {
        let key = &record.key;
        match (&record.verdict, answers.get(key)) {
            (Verdict::Acknowledged(_), None) => {
                findings.report(format!("{key}: acknowledged, but not stored"))
            }
            (Verdict::Acknowledged(digest), Some(answer)) if *digest != digest_of(answer) => {
                findings.report(format!("{key}: the stored answer differs from the one that the client got"));
            }
            (Verdict::Refused { after_unknown: true, .. }, Some(_)) => findings.late += 1,
            (Verdict::Refused { code, .. }, Some(_)) => {
                findings.report(format!("{key}: refused with {code}, but carried out"));
            }
            (Verdict::Refused { code, .. }, None) if is_defect(code) => {
                findings.report(format!("{key}: refused with {code}: {}", record.body));
            }
            (Verdict::Unsettled, _) => findings.report(format!("{key}: the outcome stayed unknown")),
            _ => {}
        }
    }
    let sent: BTreeSet<&String> = evidence.records.iter().map(|record| &record.key).collect();
    for key in answers.keys().filter(|key| !sent.contains(key)) {
        findings.report(format!("{key}: stored, but not sent"));
    }
}

/// Returns whether a correct server never answers so to the requests of this test.
fn is_defect(code: &str) -> bool {
    let codes =
        ["", "INTERNAL", "KEY_REUSED", "UNAUTHORIZED", "FORBIDDEN", "FOREIGN_SESSION", "UNKNOWN_COMMAND"];
    codes.contains(&code)
}

/// Returns whether a request is a command of a workspace, not of the list of workspaces.
fn is_command(run: &Run<'_>) -> bool {
    run.record.body["stream"].is_string()
}

fn stream_of<'a>(run: &Run<'a>) -> Option<&'a str> {
    let by_name = run.record.body["stream"].as_str();
    by_name.or_else(|| run.answer["workspaceId"].as_str())
}

fn word<'a>(run: &Run<'a>) -> &'a str {
    run.record.body["command"]["command"].as_str().unwrap_or_default()
}

/// Checks the changes of one workspace: each number once, each by one request, and each as the model has it.
fn check_stream(stream: &str, rows: &StreamRows, runs: &[Run<'_>], leases: &Leases, findings: &mut Findings) {
    let numbers: Vec<i64> = rows.changes.iter().map(|change| change.seq).collect();
    if numbers != (1..=rows.head).collect::<Vec<_>>() {
        findings.report(format!("{stream}: the changes up to {} are {numbers:?}", rows.head));
    }
    let mut writers: BTreeMap<i64, Run<'_>> = BTreeMap::new();
    let mut readers: BTreeMap<i64, Vec<Run<'_>>> = BTreeMap::new();
    for run in runs.iter().copied().filter(is_command) {
        if !run.has_written() {
            readers.entry(run.seq()).or_default().push(run);
        } else if let Some(other) = writers.insert(run.seq(), run) {
            let (first, second) = (&other.record.key, &run.record.key);
            findings.report(format!("{stream}: {first} and {second} both have change {}", run.seq()));
        }
    }
    for (seq, run) in &writers {
        if numbers.binary_search(seq).is_err() {
            findings.report(format!("{stream}: change {seq} of {} is missing", run.record.key));
        }
    }
    check_list_changes(stream, rows, runs, &writers, findings);
    let created = runs.iter().find(|run| word(run) == "create_workspace");
    let Some(created) = created else { return findings.report(format!("{stream}: no request created it")) };
    let mut base = Documents::new();
    apply_documents(&mut base, documents_of(&created.answer["created"]["docs"]));
    let mut replay = match Replay::new(stream, base, leases) {
        Ok(replay) => replay,
        Err(reason) => return findings.report(format!("{stream}: {reason}")),
    };
    for seq in 0..=rows.head {
        let change =
            rows.changes.binary_search_by_key(&seq, |change| change.seq).map(|at| &rows.changes[at]).ok();
        let writer = writers.get(&seq).map(|run| (*run, change));
        let same = readers.get(&seq).into_iter().flatten().map(|run| (*run, None));
        for (run, change) in writer.into_iter().chain(same) {
            if let Err(reason) = replay.step(run, change) {
                // What follows is built on this change.
                return findings.report(format!("{stream}: change {seq}, {}: {reason}", run.record.key));
            }
            findings.replayed += 1;
        }
    }
    let (texts, expected) = replay.finish();
    check_tables(stream, rows, &texts, &expected, findings);
}

/// A deletion or restoration of a workspace takes a number too, and each is by one request.
fn check_list_changes(
    stream: &str,
    rows: &StreamRows,
    runs: &[Run<'_>],
    writers: &BTreeMap<i64, Run<'_>>,
    findings: &mut Findings,
) {
    let others: Vec<_> = rows.changes.iter().filter(|change| !writers.contains_key(&change.seq)).collect();
    for change in others.iter().filter(|change| change.names != ["workspace"]) {
        findings.report(format!("{stream}: no request made change {}", change.seq));
    }
    for (command, is_deletion) in [("delete_workspace", true), ("undelete_workspace", false)] {
        let made =
            others.iter().filter(|change| change.docs.first().is_some_and(Option::is_none) == is_deletion);
        let (made, asked) = (made.count(), runs.iter().filter(|run| word(run) == command).count());
        if made != asked {
            findings.report(format!("{stream}: {asked} requests {command} made {made} changes"));
        }
    }
}

fn documents_of(docs: &Value) -> Vec<Document> {
    serde_json::from_value(docs.clone()).unwrap_or_default()
}

/// Compares the tables with the model.
fn check_tables(
    stream: &str,
    rows: &StreamRows,
    texts: &Documents,
    expected: &BTreeMap<String, NodeRow>,
    findings: &mut Findings,
) {
    if texts.get("workspace") != Some(&rows.workspace) {
        findings.report(format!("{stream}: the document of the workspace differs"));
    }
    let found: BTreeMap<String, NodeRow> =
        rows.nodes.iter().map(|row| (row.id.clone(), row.clone())).collect();
    let ids: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    for id in ids {
        if found.get(id) != expected.get(id) {
            let (found, expected) = (found.get(id), expected.get(id));
            findings.report(format!("{stream}: the row is {found:?}, and the model has {expected:?}"));
        }
    }
    let mut counts: BTreeMap<(String, String), i64> = BTreeMap::new();
    for row in expected.values().filter(|row| row.parent.is_some()) {
        for parent in [row.parent.clone().unwrap_or_default(), String::new()] {
            *counts.entry((parent, row.status.clone())).or_default() += 1;
        }
    }
    if counts != rows.counts {
        findings.report(format!("{stream}: the counts are {:?}, and the model has {counts:?}", rows.counts));
    }
}

/// Returns the documents of a workspace, as the database has them.
fn stored_documents(rows: &StreamRows) -> Documents {
    let nodes = rows.nodes.iter().map(|row| (row.id.clone(), row.doc.clone()));
    nodes.chain([(String::from("workspace"), rows.workspace.clone())]).collect()
}

fn check_snapshot(stream: &str, rows: &StreamRows, evidence: &Evidence, findings: &mut Findings) {
    if evidence.snapshots.get(stream) != Some(&stored_documents(rows)) {
        findings.report(format!("{stream}: the snapshot differs from the tables"));
    }
}

/// A reader saw each change once, up to the last one, and its replica equals the workspace.
fn check_follower(view: &FollowerView, evidence: &Evidence, findings: &mut Findings) {
    findings.violations.extend(view.violations.iter().cloned());
    for (stream, rows) in &evidence.database.streams {
        let name = &view.name;
        let Some(followed) = view.streams.get(stream) else {
            if !rows.is_deleted {
                findings.report(format!("reader {name}: {stream} was never seen"));
            }
            continue;
        };
        if followed.position != rows.head {
            let (at, head) = (followed.position, rows.head);
            findings.report(format!("reader {name}: {stream} was read up to {at} of {head}"));
        }
        let seen = rows.changes.iter().filter(|change| change.seq > followed.from);
        let digest = seen.fold(String::new(), |digest, change| {
            extend_digest(&digest, change.seq, &change.documents().collect::<Vec<_>>())
        });
        if followed.digest != digest {
            findings.report(format!("reader {name}: {stream}: the changes differ from the stored ones"));
        }
        if !rows.is_deleted && followed.documents != stored_documents(rows) {
            findings.report(format!("reader {name}: {stream}: the replica differs from the workspace"));
        }
        findings.followed += followed.position.saturating_sub(followed.from).unsigned_abs();
    }
}
