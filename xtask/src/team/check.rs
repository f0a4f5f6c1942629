//! Compares the replicas and the writes with the tables of the database, which are read by SQL.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tanmi_cluster::Cluster;

use super::machine::Machine;
use crate::histories::tables::read_rows;

/// How often a machine may try to synchronise after everything was healed.
const ATTEMPTS: usize = 5;

/// What a write made, by a text that no other write has: one word of letters, digits, `-` and `.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Node,
    Log,
    Conclusion,
    Fact,
}

pub struct Write {
    pub kind: Kind,
    pub text: String,
    pub is_acknowledged: bool,
}

/// Synchronises every machine and returns the violations.
pub fn check(cluster: &Cluster, machines: &[&Machine], writes: &[Write]) -> Vec<String> {
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
    let lines = lines.iter().filter_map(|row| row["line"].as_str());
    let found = FoundWords::new(documents.values().map(String::as_str), lines);
    violations.extend(writes.iter().filter_map(|write| check_write(write, &found)));
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
            Some(copy) => {
                let difference = first_difference(text, &String::from_utf8_lossy(&copy));
                violations.push(format!("{}: {} differs: {difference}", machine.name(), path.display()));
            }
            None => violations.push(format!("{}: {} is missing", machine.name(), path.display())),
        }
    }
    for path in found.keys() {
        violations.push(format!("{}: {} is not on the server", machine.name(), path.display()));
    }
}

/// Returns the first line that differs, of the server and of the replica.
fn first_difference(server: &str, replica: &str) -> String {
    let (mut one, mut other) = (server.lines(), replica.lines());
    loop {
        match (one.next(), other.next()) {
            (None, None) => return String::from("line ends"),
            (server, replica) if server != replica => return format!("{server:?}, not {replica:?}"),
            _ => {}
        }
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

/// How often each word is in the database.
#[derive(Default)]
struct FoundWords<'a> {
    /// Titles of nodes, as a whole.
    titles: HashMap<&'a str, usize>,
    /// Words in the other lines of documents.
    texts: HashMap<&'a str, usize>,
    /// Words in facts and summaries.
    facts: HashMap<&'a str, usize>,
}

impl<'a> FoundWords<'a> {
    fn new(documents: impl Iterator<Item = &'a str>, facts: impl Iterator<Item = &'a str>) -> FoundWords<'a> {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.';
        let mut found = FoundWords::default();
        for line in documents.flat_map(str::lines) {
            match line.strip_prefix("title: ") {
                Some(title) => *found.titles.entry(title).or_default() += 1,
                None => line.split(is_end).for_each(|word| *found.texts.entry(word).or_default() += 1),
            }
        }
        for word in facts.flat_map(|fact| fact.split(is_end)) {
            *found.facts.entry(word).or_default() += 1;
        }
        found
    }

    fn count(&self, write: &Write) -> usize {
        let words = match write.kind {
            Kind::Node => &self.titles,
            Kind::Log | Kind::Conclusion => &self.texts,
            Kind::Fact => &self.facts,
        };
        words.get(write.text.as_str()).copied().unwrap_or_default()
    }
}

/// Returns what is wrong with a write: an acknowledged one is there once, and every other one at most once.
fn check_write(write: &Write, found: &FoundWords) -> Option<String> {
    let count = found.count(write);
    let is_wrong = count > 1 || (write.is_acknowledged && count == 0);
    let told = if write.is_acknowledged { "acknowledged" } else { "not acknowledged" };
    is_wrong.then(|| format!("{:?} {} was {told} and is there {count} times", write.kind, write.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_write_lost_or_doubled_is_violation() {
        let document =
            "---\ntitle: a-1.\n---\n\n## Conclusion\n\na-2.\n\n## Log\n\n- [x] [AI] a-3.\n- [x] [AI] a-3.\n";
        let found = FoundWords::new([document].into_iter(), [r#"{"content":"a-4."}"#].into_iter());
        let check = |kind, text: &str, is_acknowledged| {
            check_write(&Write { kind, text: text.to_owned(), is_acknowledged }, &found).is_none()
        };
        for (kind, text) in [(Kind::Node, "a-1."), (Kind::Conclusion, "a-2."), (Kind::Fact, "a-4.")] {
            assert!(check(kind, text, true) && check(kind, text, false), "{text}");
        }
        assert!(!check(Kind::Log, "a-3.", true) && !check(Kind::Log, "a-3.", false), "there twice");
        assert!(!check(Kind::Log, "a-30.", true) && check(Kind::Log, "a-30.", false), "not there");
        assert!(!check(Kind::Node, "a-2.", true) && !check(Kind::Fact, "a-1.", true), "another kind");
    }
}
