use super::*;

fn row(id: &str, parent: &str, status: &str, order: i64) -> NodeRow {
    NodeRow { id: id.into(), parent: parent.into(), status: status.into(), order, ..NodeRow::default() }
}

#[test]
fn status_counts_follow_every_change() {
    let index = NodeIndex::in_memory().unwrap();
    let status_counts = |parent: &str| index.status_counts(parent).unwrap();
    index.put(&row("root", "", "pending", 0)).unwrap();
    index.put(&row("a", "root", "pending", 1)).unwrap();
    index.put(&row("b", "root", "pending", 2)).unwrap();
    assert_eq!(status_counts("root"), [("pending".into(), 2)]);
    index.put(&row("b", "root", "completed", 2)).unwrap();
    assert_eq!(status_counts("root"), [("completed".into(), 1), ("pending".into(), 1)]);
    index.put(&row("b", "a", "completed", 1)).unwrap();
    assert_eq!(
        (status_counts("root"), status_counts("a")),
        (vec![("pending".into(), 1)], vec![("completed".into(), 1)])
    );
    assert_eq!(status_counts(""), [("completed".into(), 1), ("pending".into(), 1)]);
    index.remove("b").unwrap();
    assert_eq!((status_counts("a"), status_counts("")), (vec![], vec![("pending".into(), 1)]));
    index.put(&row("root", "", "monitoring", 0)).unwrap();
    assert_eq!(status_counts(""), [("pending".into(), 1)], "the root is not counted");
}

#[test]
fn child_counts_of_several_parents_are_read_together() {
    let index = NodeIndex::in_memory().unwrap();
    for (id, parent, status) in
        [("a", "root", "pending"), ("b", "root", "pending"), ("c", "a", "pending"), ("d", "a", "completed")]
    {
        index.put(&row(id, parent, status, 0)).unwrap();
    }
    let counts = index.child_counts(&["root", "a", "b", "unknown"]).unwrap();
    assert_eq!(counts, HashMap::from([("root".into(), 2), ("a".into(), 2)]));
    assert!(index.child_counts(&[]).unwrap().is_empty());
}

#[test]
fn branches_name_each_node_with_children() {
    let index = NodeIndex::in_memory().unwrap();
    for (id, parent, status) in [
        ("root", "", "monitoring"),
        ("a", "root", "monitoring"),
        ("b", "a", "pending"),
        ("c", "a", "pending"),
    ] {
        index.put(&row(id, parent, status, 0)).unwrap();
    }
    let mut branches = index.branches().unwrap();
    branches.sort_by(|a, b| a.id.cmp(&b.id));
    let branch = |id: &str, parent: &str, status: &str, children| BranchRow {
        id: id.into(),
        parent: parent.into(),
        status: status.into(),
        children,
    };
    assert_eq!(branches, [branch("a", "root", "pending", 2), branch("root", "", "monitoring", 1)]);
    index.remove("b").unwrap();
    index.remove("c").unwrap();
    assert_eq!(index.branches().unwrap(), [branch("root", "", "monitoring", 1)], "no empty branch");
}

#[test]
fn children_paged_returns_each_child_once() {
    let index = NodeIndex::in_memory().unwrap();
    for n in 0..7 {
        index.put(&row(&format!("n{n}"), "root", "pending", n / 2)).unwrap();
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = index.children("root", after.as_ref(), 3).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.position());
        seen.extend(page.into_iter().map(|row| row.id));
    }
    assert_eq!(seen, ["n0", "n1", "n2", "n3", "n4", "n5", "n6"]);
}

/// A query of this view never ends.
#[test]
fn open_index_with_view_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.sqlite");
    assert!(matches!(NodeIndex::open(&path, "one").unwrap(), OpenOutcome::New(_)));
    let hostile = "DROP TABLE meta; CREATE VIEW meta(key, value) AS SELECT 'boot', max(i) FROM
        (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n);";
    Connection::open(&path).unwrap().execute_batch(hostile).unwrap();
    assert!(NodeIndex::open_existing(&path, "one").is_none());
    assert!(NodeIndex::open_current(&path, "one").unwrap().is_none());
    assert!(matches!(NodeIndex::open(&path, "one").unwrap(), OpenOutcome::New(_)));
}

#[test]
fn open_index_of_other_boot_or_damaged_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.sqlite");
    let opens_new = |boot| matches!(NodeIndex::open(&path, boot).unwrap(), OpenOutcome::New(_));
    assert!(opens_new("one"));
    assert!(!opens_new("one"));
    assert!(opens_new("two"));
    tanmi_base::fs::write_atomic(&path, &[7; 9000], dir.path(), tanmi_base::fs::Durability::Journaled)
        .unwrap();
    assert!(opens_new("two"));
    assert!(!opens_new("two"));
}

/// Checks the table of dependencies and every query that uses it, through inserts, updates and removals.
#[test]
fn dependencies_follow_every_change() {
    let index = NodeIndex::in_memory().unwrap();
    let on = |ids: &[&str]| ids.iter().map(|id| String::from(*id)).collect::<Vec<_>>();
    let with = |row: NodeRow, ids: &[&str]| NodeRow { depends_on: on(ids), kind: "execution".into(), ..row };
    let ids = |query: NodeQuery<'_>| {
        let rows = index.select(&query, 10).unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>().join(" ")
    };
    let unblocked = || ids(NodeQuery::Unblocked { parent: "root", after: None });
    for (n, (id, depends_on)) in
        [("a", &[][..]), ("b", &["a"]), ("c", &["a", "b"]), ("d", &["gone"])].iter().enumerate()
    {
        index.put(&with(row(id, "root", "pending", n as i64), depends_on)).unwrap();
    }
    assert_eq!(index.get("c").unwrap().unwrap().depends_on, ["a", "b"]);
    assert_eq!((unblocked().as_str(), ids(NodeQuery::Blocked).as_str()), ("a", "b c d"));
    assert_eq!(ids(NodeQuery::Dependents { target: "a" }), "b c");
    index.put(&with(row("a", "root", "completed", 0), &[])).unwrap();
    assert_eq!(unblocked(), "b");
    index.put(&with(row("c", "root", "pending", 2), &["a"])).unwrap();
    assert_eq!((unblocked().as_str(), ids(NodeQuery::Dependents { target: "b" }).as_str()), ("b c", ""));
    let after = index.get("b").unwrap().unwrap().position();
    assert_eq!(ids(NodeQuery::Unblocked { parent: "root", after: Some(&after) }), "c");
    index.put(&with(row("a", "root", "failed", 0), &[])).unwrap();
    assert_eq!(unblocked(), "", "a failed dependency blocks");
    index.remove("a").unwrap();
    assert_eq!(unblocked(), "", "a dependency that does not exist blocks");
    index.put(&with(row("a", "root", "completed", 0), &[])).unwrap();
    assert_eq!(unblocked(), "b c");
    index.remove("a").unwrap();
    assert_eq!(unblocked(), "");
    index.remove("b").unwrap();
    index.put(&with(row("d", "root", "pending", 3), &[])).unwrap();
    assert_eq!(index.dependencies(None).unwrap(), [(String::from("c"), String::from("a"))]);
    assert_eq!(index.dependencies(Some("a")).unwrap(), index.dependencies(None).unwrap());
    assert_eq!(index.dependencies(Some("c")).unwrap(), []);
}

#[test]
fn held_nodes_are_selected_until_they_are_done() {
    let index = NodeIndex::in_memory().unwrap();
    let held = |id: &str, status: &str, at: i64| NodeRow {
        holder: String::from("session"),
        status_changed_at: at,
        ..row(id, "root", status, 0)
    };
    for row in [held("late", "implementing", 2), held("early", "planning", 1), held("done", "failed", 0)] {
        index.put(&row).unwrap();
    }
    index.put(&row("free", "root", "implementing", 0)).unwrap();
    let rows = index.select(&NodeQuery::Held, 10).unwrap();
    assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["early", "late"]);
}

/// Both queries of the search for the next node read their own index, in its order.
#[test]
fn unblocked_and_blocked_queries_use_their_index() {
    let index = NodeIndex::in_memory().unwrap();
    for (query, name) in [
        (NodeQuery::Unblocked { parent: "root", after: None }, "USING INDEX unblocked (parent=?)"),
        (NodeQuery::Blocked, "USING INDEX blocked"),
        (NodeQuery::Held, "USING INDEX held"),
        (NodeQuery::OpenChildren { parent: "root" }, "USING INDEX open (parent=?)"),
    ] {
        let (condition, named) = query.selection();
        let sql = format!("EXPLAIN QUERY PLAN SELECT {COLUMNS} FROM nodes AS n WHERE {condition}");
        let mut statement = index.db.prepare(&sql).unwrap();
        let plan = statement.query_map(&*named, |row| row.get::<_, String>(3)).unwrap();
        let plan = plan.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ");
        assert!(plan.ends_with(name) && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}

#[test]
fn insert_node_builds_no_table_for_the_conditions_of_indexes() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(SCHEMA).unwrap();
    let values = vec!["''"; 21].join(",");
    let mut statement = db.prepare(&format!("EXPLAIN INSERT INTO nodes VALUES({values})")).unwrap();
    let codes = statement.query_map([], |row| row.get::<_, String>(1)).unwrap();
    let codes: Vec<String> = codes.collect::<rusqlite::Result<_>>().unwrap();
    assert!(codes.len() > 20 && !codes.iter().any(|code| code == "OpenEphemeral"), "{codes:?}");
}

#[test]
fn open_current_is_a_reader_until_it_begins_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.sqlite");
    assert!(matches!(NodeIndex::open(&path, "boot").unwrap(), OpenOutcome::New(_)));
    assert!(NodeIndex::open_current(&path, "other boot").unwrap().is_none());
    let index = NodeIndex::open_current(&path, "boot").unwrap().unwrap();
    assert!(!index.is_writer.get() && !index.db.is_autocommit());
    index.rollback();
    for (at, begin) in [NodeIndex::begin, NodeIndex::begin_refresh].into_iter().enumerate() {
        begin(&index).unwrap();
        index.put(&row(&format!("n{at}"), "root", "pending", 0)).unwrap();
        index.commit().unwrap();
        let count = at as u64 + 1;
        assert_eq!(index.status_counts("root").unwrap(), [("pending".into(), count)], "triggers count it");
        assert!(index.is_writer.get());
    }
}
