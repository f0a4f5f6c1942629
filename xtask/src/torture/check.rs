//! Everything that was promised, looked for once everybody is gone.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{Promises, World};

/// One line for each promise that was not kept.
pub fn everything(world: &World) -> Vec<String> {
    let mut broken = Vec::new();
    let promises = world.promises.lock().expect("promises");
    nodes(world, &promises, &mut broken);
    memories(world, &promises, &mut broken);
    bindings(world, &promises, &mut broken);
    order(world, &mut broken);
    leftovers(&world.root, &mut broken);
    broken
}

fn nodes(world: &World, promises: &Promises, broken: &mut Vec<String>) {
    let listed = printed(world, &["node", "list", "--limit", "100000", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
    let rows = listed["nodes"].as_array().into_iter().flatten();
    let ids: BTreeSet<&str> = rows.filter_map(|node| node["id"].as_str()).collect();
    let gone = promises.nodes.iter().filter(|id| !ids.contains(id.as_str()));
    broken.extend(gone.map(|id| format!("node {id} is gone")));
    for (node, mark) in promises.logs.iter().chain(&promises.notes) {
        let text = std::fs::read_to_string(world.node_file(node)).unwrap_or_default();
        let is_it = |line: &&str| line.trim() == mark || line.ends_with(&format!(" {mark}"));
        let count = text.lines().filter(is_it).count();
        if count != 1 {
            broken.push(format!("{mark:?} is {count} times in {node}"));
        }
    }
}

fn memories(world: &World, promises: &Promises, broken: &mut Vec<String>) {
    let exported = printed(world, &["memory", "export"]);
    for fact in &promises.facts {
        let count = exported.matches(&format!("\"{fact}\"")).count();
        if count != 1 {
            broken.push(format!("{fact:?} is remembered {count} times"));
        }
    }
    let gone = promises.summaries.iter().filter(|topic| !exported.contains(*topic));
    broken.extend(gone.map(|topic| format!("summary {topic} is gone")));
}

fn bindings(world: &World, promises: &Promises, broken: &mut Vec<String>) {
    let path = world.home().join(".tanmi-workspace/session-bindings.json");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let bindings: Value = serde_json::from_str(&text).unwrap_or_default();
    let gone = promises.bindings.iter().filter(|id| bindings.get(id).is_none());
    broken.extend(gone.map(|id| format!("binding of {id} is gone")));
}

/// What a crash may leave for a person to mend is mended; then nothing may be left to mend.
fn order(world: &World, broken: &mut Vec<String>) {
    printed(world, &["workspace", "check", "--fix", "--json"]);
    printed(world, &["doctor", "--fix", "--json"]);
    let output = world.command(&["doctor", "--json"]).output().expect("it runs");
    if !output.status.success() {
        broken.push(format!("not in order: {}", String::from_utf8_lossy(&output.stdout)));
    }
}

fn printed(world: &World, args: &[&str]) -> String {
    let output = world.command(args).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Files that no living process will take away.
fn leftovers(dir: &Path, broken: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            leftovers(&path, broken);
        } else if name.starts_with("tmp-") || name.ends_with(".swp") {
            broken.push(format!("{} was left behind", path.display()));
        }
    }
}
