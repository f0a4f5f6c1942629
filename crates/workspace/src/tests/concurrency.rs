//! Tests of readers and writers of one file store at the same time.

use std::thread;
use std::time::Duration;

use tanmi_base::lock::Lock;

use super::*;
use crate::store::{Access, Workspaces};

/// Long enough for a thread that does not have to wait to finish a read. If it were not, a defect could go
/// unnoticed; no test fails because of it.
const SHORT: Duration = Duration::from_millis(50);

fn fixture() -> (tempfile::TempDir, FileStore, WorkspaceId, NodeId) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::in_folder(dir.path());
    let b = TestWorkspace::new(&store, &[]);
    let (id, task) = (b.id.clone(), b.add_execution(&NodeId::root(), "task"));
    // The first read scans if it has to, so that later ones need not.
    assert_eq!(title(&store, &id, &task), "task");
    (dir, store, id, task)
}

fn title(store: &FileStore, id: &WorkspaceId, node: &NodeId) -> String {
    store.node(id, node, NOW).unwrap().title
}

#[test]
fn reader_in_transaction_does_not_block_other_readers() {
    let (dir, store, id, task) = fixture();
    // Another process would have a store of its own.
    let other = FileStore::in_folder(dir.path());
    let reader = store.begin(&id, Access::Read, NOW).unwrap();
    for store in [&store, &other] {
        // If the lock were exclusive, this thread would fail with a timeout.
        let read = thread::scope(|scope| scope.spawn(|| title(store, &id, &task)).join().unwrap());
        assert_eq!(read, "task");
    }
    assert_eq!(reader.node(&task).unwrap().unwrap().title, "task");
    assert_eq!(reader.commit().unwrap(), 1, "a commit without writes returns the number of the last change");
}

#[test]
fn read_during_write_returns_committed_state() {
    let (dir, store, id, task) = fixture();
    let other = FileStore::in_folder(dir.path());
    let mut writer = store.begin(&id, Access::Write, NOW).unwrap();
    let mut node = writer.node(&task).unwrap().unwrap();
    node.title = String::from("written");
    writer.put_node(node).unwrap();
    thread::scope(|scope| {
        let readers = [&store, &other].map(|store| {
            let (id, task) = (&id, &task);
            scope.spawn(move || title(store, id, task))
        });
        thread::sleep(SHORT);
        writer.commit().unwrap();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), "written");
        }
    });
}

#[test]
fn reader_that_comes_after_waiting_writer_reads_its_change() {
    let (dir, store, id, task) = fixture();
    let turnstile = dir.path().join(".tanmi-workspace").join(id.as_str()).join(".local/turnstile");
    let first_reader = store.begin(&id, Access::Read, NOW).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let store = FileStore::in_folder(dir.path());
            let change = NodeChange { title: Some(String::from("written")), ..NodeChange::default() };
            store::change(&store, &id, NOW, |tx| update_node(tx, &task, change.clone(), &op(NOW))).unwrap();
        });
        // The writer holds the turnstile while it waits.
        let is_waiting = (0..100).any(|_| {
            thread::sleep(SHORT);
            Lock::try_exclusive(&turnstile).unwrap().is_none()
        });
        assert!(is_waiting);
        let second_reader = scope.spawn(|| title(&FileStore::in_folder(dir.path()), &id, &task));
        thread::sleep(SHORT);
        drop(first_reader);
        writer.join().unwrap();
        assert_eq!(second_reader.join().unwrap(), "written");
    });
}

#[test]
fn read_of_edited_file_beside_reader_returns_edit() {
    let (dir, store, id, task) = fixture();
    let path = dir.path().join(".tanmi-workspace").join(id.as_str()).join("nodes").join(task.as_str());
    let path = path.join("Node.md");
    let text = std::fs::read_to_string(&path).unwrap().replace("task", "edited by hand");
    let reader = store.begin(&id, Access::Read, NOW).unwrap();
    tanmi_base::fs::write_atomic(&path, text.as_bytes(), dir.path(), tanmi_base::fs::Durability::Journaled)
        .unwrap();
    assert_eq!(error_code(reader.brief(&task)), "CONTENDED", "the index is not written under a shared lock");
    drop(reader);
    assert_eq!(store.brief(&id, &task, NOW).unwrap().unwrap().title, "edited by hand");
    let reader = store.begin(&id, Access::Read, NOW).unwrap();
    assert_eq!(reader.brief(&task).unwrap().unwrap().title, "edited by hand", "the index is current again");
}

#[test]
fn shared_reader_cannot_write() {
    let (_dir, store, id, task) = fixture();
    let mut reader = store.begin(&id, Access::Read, NOW).unwrap();
    let mut node = reader.node(&task).unwrap().unwrap();
    node.title = String::from("other");
    assert_eq!(error_code(reader.put_node(node)), "IO");
    assert_eq!(error_code(reader.remove_node(&task)), "IO");
}
