//! Lines of memory in and out of the database.

use tanmi_memory::contract::NOW;
use tanmi_pg::{ImportedLines, PgStore};

use crate::cluster::Cluster;

fn fact(id: &str, content: &str) -> String {
    format!(r#"{{"id":"{id}","type":"fact","memory_type":"W","content":"{content}","mine":1}}"#)
}

fn mark(kind: &str, id: &str) -> String {
    format!(r#"{{"type":"{kind}","target":"{id}","timestamp":"2026-01-01T00:00:00.000Z"}}"#)
}

fn import(store: &PgStore, lines: &[String]) -> ImportedLines {
    store.import_lines(lines, NOW, &mut |_| {}).unwrap()
}

fn export(store: &PgStore) -> Vec<String> {
    store.export(&mut |_, _, _| Ok(())).unwrap()
}

#[test]
fn lines_imported_twice_are_exported_once_in_order() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("app");
    let lines = [
        fact("f1", "one"),
        fact("f2", "two"),
        mark("forget", "f1"),
        mark("restore", "f1"),
        mark("forget", "f1"),
    ];
    assert_eq!(import(&store, &lines[..4]), ImportedLines { added: 4, known: 0 });
    // The last line is equal to an earlier one, and is not the same mark.
    assert_eq!(import(&store, &lines), ImportedLines { added: 1, known: 4 });
    assert_eq!(import(&store, &lines), ImportedLines { added: 0, known: 5 });
    assert_eq!(export(&store), lines);
    assert_eq!(cluster.sql("SELECT id FROM memory WHERE hidden").trim(), "f1");
    assert_eq!(store.find_other_lines(&lines).unwrap(), Vec::<String>::new());
    assert_eq!(store.find_other_lines(&[fact("f2", "three")]).unwrap(), ["f2"]);
    assert_eq!(store.check().unwrap(), []);
    // A content that is in force is not in force twice.
    import(&store, &[fact("f3", "two")]);
    assert_eq!(cluster.sql("SELECT replaced_by FROM memory WHERE id = 'f3'").trim(), "f2");
    assert_eq!(store.check().unwrap(), []);
    assert!(store.import_lines(&[fact("o1", "tabs").replace("\"W\"", "\"O\"")], NOW, &mut |_| {}).is_err());
}

#[test]
fn lines_without_their_first_changes_are_exported_as_records_with_marks() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("app");
    let lines = [fact("f1", "one"), fact("f2", "two"), mark("forget", "f1")];
    import(&store, &lines[..2]);
    import(&store, &lines[2..]);
    cluster.sql("DELETE FROM change WHERE stream = 'memory' AND seq = 1");
    let exported = export(&store);
    assert_eq!((&exported[0], &exported[2], exported.len()), (&lines[0], &lines[1], 3), "{exported:?}");
    assert!(exported[1].contains(r#""type":"forget""#), "{exported:?}");
}
