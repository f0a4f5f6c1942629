//! `check` finds every kind of contradiction, each made with SQL.

use tanmi_memory::contract::NOW;
use tanmi_pg::PgStore;
use tanmi_workspace::command::{Command, NoLiveSessions};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{Claimant, TransitionRequest};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::Workspaces;
use tanmi_workspace::stories::{new_node, new_workspace, op};

use crate::cluster::Cluster;

/// A workspace with a plan, tasks of which one is started, one done and one deleted, and two facts.
fn fill(store: &PgStore) -> (WorkspaceId, NodeId) {
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let run = |command: Command| store.run(&id, &command, &op(NOW), &NoLiveSessions).unwrap().outcome;
    let create = |parent: &NodeId, kind, title: &str| {
        let node = new_node(parent, kind, title);
        run(Command::CreateNode { node }).into_node().unwrap().0.id
    };
    let plan = create(&NodeId::root(), NodeType::Planning, "plan");
    let task = create(&plan, NodeType::Execution, "task");
    let gone = create(&plan, NodeType::Execution, "gone");
    let step = |action| {
        let claimant = Claimant { session: Some(String::from("s-1")), ..Claimant::default() };
        Command::Transition {
            request: TransitionRequest { node_id: task.clone(), action, conclusion: None, claimant },
        }
    };
    run(step(Action::Start));
    run(Command::DeleteNode { node_id: gone, claimant: Claimant::default() });
    let line = |id: &str, text: &str| {
        format!(r#"{{"id":"{id}","type":"fact","memory_type":"W","content":"{text}"}}"#)
    };
    let lines = [line("fact-1", "one"), line("fact-2", "two")];
    store.import_lines(&lines, NOW, &mut |_| {}).unwrap();
    (id, task)
}

#[test]
fn check_finds_each_contradiction_and_names_its_row() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("app");
    let (ws, task) = fill(&store);
    assert_eq!(store.check().unwrap(), []);
    cluster.sql(
        "ALTER TABLE node DROP CONSTRAINT node_check2; ALTER TABLE node DROP CONSTRAINT node_check1; \
         DROP INDEX memory_content",
    );
    let node = format!("node {ws}/{task}");
    let cases: &[(&str, &str, &str)] = &[
        ("UPDATE stream SET seq = seq + 1 WHERE id <> 'memory'", "STREAM_GAP", &format!("stream {ws}")),
        ("DELETE FROM change WHERE seq = 2 AND stream <> 'memory'", "STREAM_GAP", &format!("stream {ws}")),
        ("DELETE FROM change WHERE stream = 'memory'", "STREAM_GAP", "stream memory"),
        ("UPDATE workspace SET doc = 'x'", "UNREADABLE", &format!("workspace {ws}")),
        ("UPDATE node SET doc = 'x' WHERE title = 'task'", "UNREADABLE", &node),
        ("UPDATE node SET title = 'other' WHERE title = 'task'", "NODE_OUTDATED", &node),
        ("UPDATE node SET has_problem = true WHERE title = 'task'", "NODE_OUTDATED", &node),
        ("UPDATE node SET seq = 99 WHERE title = 'task'", "NODE_OUTDATED", &node),
        ("UPDATE node SET holder = 's-2' WHERE title = 'task'", "NODE_OUTDATED", &node),
        ("UPDATE node SET status = 'completed' WHERE title = 'task'", "HOLDER_ON_DONE", &node),
        ("DELETE FROM node WHERE title = 'plan'", "PARENT_MISSING", &node),
        ("DELETE FROM node WHERE id = 'root'", "ROOT_MISSING", &format!("workspace {ws}")),
        ("UPDATE node SET parent = id WHERE title = 'plan'", "UNREACHABLE", &node),
        ("UPDATE tally SET n = n + 1 WHERE parent = ''", "TALLY_WRONG", &format!("tally {ws}/\"\"/")),
        ("DELETE FROM tally", "TALLY_WRONG", &format!("tally {ws}/")),
        (
            "INSERT INTO dependency SELECT project, ws, id, 'root' FROM node WHERE title = 'task'",
            "DEPENDENCY_WRONG",
            &format!("dependency {ws}/{task}"),
        ),
        ("UPDATE trash SET doc = 'x'", "UNREADABLE", &format!("trash {ws}/")),
        ("UPDATE memory SET line = 'x' WHERE id = 'fact-1'", "UNREADABLE", "memory fact-1"),
        ("UPDATE memory SET content_hash = 1 WHERE id = 'fact-1'", "MEMORY_OUTDATED", "memory fact-1"),
        ("UPDATE memory SET kind = 'summary' WHERE id = 'fact-1'", "MEMORY_OUTDATED", "memory fact-1"),
        (
            "UPDATE memory SET content_hash = (SELECT content_hash FROM memory WHERE id = 'fact-1')",
            "FACT_TWICE",
            "memory fact-1",
        ),
    ];
    // Each contradiction is undone by copying the tables back.
    let tables = ["stream", "change", "workspace", "node", "tally", "dependency", "trash", "memory"];
    for table in tables {
        cluster.sql(&format!("CREATE TABLE copy_{table} AS SELECT * FROM {table}"));
    }
    let columns = cluster.sql(
        "SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
         WHERE attrelid = 'node'::regclass AND attnum > 0 AND attgenerated = ''",
    );
    for (sql, code, place) in cases {
        cluster.sql(&format!("SET session_replication_role = replica; {sql}"));
        let findings = store.check().unwrap();
        let found = findings.iter().any(|finding| finding.code == *code && finding.place.starts_with(place));
        assert!(found, "{sql}: expected {code} {place}, found {findings:?}");
        for table in tables {
            let columns = if table == "node" { columns.trim() } else { "*" };
            let target = if table == "node" { format!("node ({columns})") } else { table.to_owned() };
            cluster.sql(&format!(
                "SET session_replication_role = replica; DELETE FROM {table}; \
                 INSERT INTO {target} SELECT {columns} FROM copy_{table}"
            ));
        }
        assert_eq!(store.check().unwrap(), [], "after {sql}");
    }
}
