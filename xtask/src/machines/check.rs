//! Compares the replicas and the writes with the tables of the database, which are read by SQL.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tanmi_cluster::Cluster;

use super::machine::{Kind, Machine, Write};
use crate::histories::tables::read_rows;

/// How often a machine may try to synchronise after everything was healed.
const ATTEMPTS: usize = 5;

/// Synchronises every machine and returns the violations.
pub fn check(cluster: &Cluster, machines: &[Machine], writes: &[Write]) -> Vec<String> {
    let mut violations = Vec::new();
    // The first round delivers what waits, and the second one fetches what the others delivered.
    for _ in 0..2 {
        for machine in machines {
            let synced = (0..ATTEMPTS).map(|_| machine.sync()).find(Result::is_ok);
            if synced.is_none() {
                violations.push(format!("{}: cannot synchronise", machine.name()));
            }
        }
    }
    let documents = read_documents(cluster);
    for machine in machines {
        check_replica(machine, &documents, &mut violations);
        check_outbox(machine, &mut violations);
    }
    let lines = read_rows::<Value>(cluster, "SELECT line FROM memory ORDER BY project, id");
    let lines: Vec<&str> = lines.iter().filter_map(|row| row["line"].as_str()).collect();
    for write in writes {
        check_write(write, &documents, &lines, &mut violations);
    }
    violations
}

/// Returns the documents of the server by their path in a project store.
fn read_documents(cluster: &Cluster) -> BTreeMap<PathBuf, String> {
    let rows = |query: &str| read_rows::<Value>(cluster, query);
    let text = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let workspaces = rows("SELECT id, doc FROM workspace WHERE deleted_at IS NULL ORDER BY id");
    let mut documents: BTreeMap<PathBuf, String> = workspaces
        .iter()
        .map(|row| (Path::new(&text(row, "id")).join("Workspace.md"), text(row, "doc")))
        .collect();
    for row in rows("SELECT ws, id, doc FROM node ORDER BY ws, id") {
        let path = Path::new(&text(&row, "ws")).join("nodes").join(text(&row, "id")).join("Node.md");
        documents.insert(path, text(&row, "doc"));
    }
    documents
}

fn check_replica(machine: &Machine, documents: &BTreeMap<PathBuf, String>, violations: &mut Vec<String>) {
    let store = machine.replica().join(".tanmi-workspace");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(&store).expect("read the replica").flatten() {
        if entry.file_name().to_string_lossy().starts_with("ws-") {
            collect(&store, &entry.path(), &mut found);
        }
    }
    for (path, text) in documents {
        match found.remove(path) {
            Some(copy) if copy == text.as_bytes() => {}
            Some(_) => violations.push(format!("{}: {} differs", machine.name(), path.display())),
            None => violations.push(format!("{}: {} is missing", machine.name(), path.display())),
        }
    }
    for path in found.keys() {
        violations.push(format!("{}: {} is not on the server", machine.name(), path.display()));
    }
}

/// Adds the documents below a folder by their path in the store.
fn collect(store: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("read the replica").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if name != ".local" {
                collect(store, &path, found);
            }
        } else if name == "Node.md" || name == "Workspace.md" {
            let inside = path.strip_prefix(store).expect("the path is below the store").to_owned();
            found.insert(inside, std::fs::read(&path).expect("read a document"));
        }
    }
}

fn check_outbox(machine: &Machine, violations: &mut Vec<String>) {
    let (mut waiting, mut refused) = (0, 0);
    count_entries(&machine.store(), &mut waiting, &mut refused);
    if waiting > 0 {
        violations.push(format!("{}: {waiting} writes still wait", machine.name()));
    }
    if refused > 0 {
        println!("{}: the server refused {refused} queued writes", machine.name());
    }
}

/// Counts the entries of the outboxes below a folder, and those that were refused.
fn count_entries(folder: &Path, waiting: &mut usize, refused: &mut usize) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_in = |name: &str| folder.ends_with(name) && path.extension().is_some_and(|end| end == "json");
        *waiting += usize::from(is_in("outbox"));
        *refused += usize::from(is_in("undelivered"));
        if path.is_dir() {
            count_entries(&path, waiting, refused);
        }
    }
}

fn check_write(
    write: &Write,
    documents: &BTreeMap<PathBuf, String>,
    lines: &[&str],
    violations: &mut Vec<String>,
) {
    let count = |text: &str| text.matches(&write.text).count();
    let found: usize = match write.kind {
        Kind::Node => {
            documents.values().filter(|text| text.contains(&format!("title: {}\n", write.text))).count()
        }
        Kind::Log => documents
            .iter()
            .filter(|(path, _)| path.ends_with("Workspace.md"))
            .map(|(_, text)| count(text))
            .sum(),
        Kind::Fact => lines.iter().filter(|line| line.contains(&write.text)).count(),
    };
    if found > 1 || (write.is_acknowledged && found == 0) {
        let told = if write.is_acknowledged { "acknowledged" } else { "not acknowledged" };
        violations.push(format!("{:?} {} was {told} and is there {found} times", write.kind, write.text));
    }
}
