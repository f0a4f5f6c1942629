use super::*;

fn row(at: i64, kind: &str, session: &str) -> ActivityRow {
    ActivityRow { at, kind: kind.into(), session: session.into(), ..ActivityRow::default() }
}

fn times(index: &ActivityIndex, filter: &ActivityFilter) -> Vec<i64> {
    index.list(filter, 100).unwrap().into_iter().map(|(_, row)| row.at).collect()
}

#[test]
fn list_pages_by_position_return_every_entry_once() {
    let index = ActivityIndex::in_memory().unwrap();
    // Many entries at the same time, from two sources.
    let rows: Vec<ActivityRow> = (0..40).map(|n| row(n / 10, "log", "s")).collect();
    index.replace("a", "one", 1, &rows, None).unwrap();
    index.append("b", "two", 1, &rows).unwrap();
    let (mut seen, mut filter) = (Vec::new(), ActivityFilter::default());
    loop {
        let page = index.list(&filter, 7).unwrap();
        let Some((last, _)) = page.last() else { break };
        filter.before = Some(*last);
        seen.extend(page.into_iter().map(|(position, _)| position));
    }
    assert_eq!(seen.len(), 80);
    assert!(seen.is_sorted_by(|a, b| a > b), "the latest first, without a repetition");
}

#[test]
fn list_returns_entries_that_pass_every_filter() {
    let index = ActivityIndex::in_memory().unwrap();
    index.append("a", "one", 1, &[row(1, "log", "s"), row(2, "step", "s"), row(3, "log", "")]).unwrap();
    let kinds = |kinds: &[&str]| ActivityFilter {
        kinds: kinds.iter().map(ToString::to_string).collect(),
        ..ActivityFilter::default()
    };
    assert_eq!(times(&index, &kinds(&[])), [3, 2, 1]);
    assert_eq!(times(&index, &kinds(&["log"])), [3, 1]);
    let of_session = |session: &str| ActivityFilter { session: Some(session.into()), ..kinds(&["log"]) };
    assert_eq!(times(&index, &of_session("s")), [1]);
    assert_eq!(times(&index, &of_session("")), [0; 0]);
    assert_eq!(times(&index, &ActivityFilter { since: Some(2), until: Some(3), ..kinds(&[]) }), [2]);
    assert_eq!(index.count(&kinds(&["log", "step"])).unwrap(), 3);
}

#[test]
fn replace_removes_previous_rows_of_source_only() {
    let index = ActivityIndex::in_memory().unwrap();
    let state = |status: &str| NodeStateRow {
        project: "p".into(),
        workspace: "w".into(),
        status: status.into(),
        ..NodeStateRow::default()
    };
    index.replace("w", "n1", 1, &[row(1, "log", ""), row(2, "log", "")], Some(&state("failed"))).unwrap();
    index.replace("w", "n2", 1, &[row(3, "log", "")], Some(&state("failed"))).unwrap();
    index.replace("w", "n1", 2, &[row(4, "log", "")], Some(&state("completed"))).unwrap();
    assert_eq!(times(&index, &ActivityFilter::default()), [4, 3]);
    let positions = index.list(&ActivityFilter::default(), 1).unwrap();
    assert_eq!((positions[0].0.source, positions[0].0.n), (1, 0), "an entry keeps its position");
    assert_eq!(index.sources("w").unwrap()["n1"], 2);
    let failed =
        NodeStateFilter { project: "p", workspace: "w", statuses: &["failed"], ..NodeStateFilter::default() };
    assert_eq!(index.node_states(&failed, 10).unwrap().1, 1);
    index.remove("w", "n2").unwrap();
    assert_eq!(index.node_states(&failed, 10).unwrap().1, 0);
    assert_eq!((times(&index, &ActivityFilter::default()), index.scopes().unwrap().len()), (vec![4], 1));
}

#[test]
fn open_damaged_index_or_one_of_another_boot_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("activity.sqlite");
    let fill = |boot: &str| {
        let index = ActivityIndex::open(&path, boot).unwrap();
        let before = index.scopes().unwrap().len();
        index.append("a", "one", 1, &[row(1, "log", "")]).unwrap();
        before
    };
    assert_eq!((fill("x"), fill("x"), fill("y")), (0, 1, 0));
    tanmi_base::fs::write_atomic(&path, b"broken", dir.path(), tanmi_base::fs::Durability::Journaled)
        .unwrap();
    assert_eq!(fill("y"), 0);
}

#[test]
fn write_after_file_was_deleted_reports_a_lost_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("activity.sqlite");
    let index = ActivityIndex::open(&path, "x").unwrap();
    crate::discard(&path);
    let written = index.transaction(|index| index.append("a", "one", 1, &[row(1, "log", "")]));
    assert!(written.unwrap_err().is_lost());
}
