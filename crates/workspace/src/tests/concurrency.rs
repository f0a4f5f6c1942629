//! Tests of readers and writers of one file store at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::store::{Access, Workspaces};

fn fixture() -> (tempfile::TempDir, FileStore, WorkspaceId, NodeId) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
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
    let other = FileStore::new(dir.path());
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
    let other = FileStore::new(dir.path());
    let mut writer = store.begin(&id, Access::Write, NOW).unwrap();
    let mut node = writer.node(&task).unwrap().unwrap();
    node.title = String::from("written");
    writer.put_node(node).unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let spawn_reader = |store| {
            let (id, task, is_done) = (&id, &task, &is_done);
            scope.spawn(move || {
                let title = title(store, id, task);
                is_done.store(true, Ordering::SeqCst);
                title
            })
        };
        let readers = [&store, &other].map(spawn_reader);
        assert!(!is_done.load(Ordering::SeqCst), "a reader waits for the writer");
        writer.commit().unwrap();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), "written");
        }
    });
}

#[test]
fn writer_among_constant_readers_finishes() {
    let (dir, store, id, task) = fixture();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let store = FileStore::new(dir.path());
                while !is_done.load(Ordering::SeqCst) {
                    let reader = store.begin(&id, Access::Read, NOW).unwrap();
                    assert!(reader.node(&task).unwrap().is_some());
                }
            });
        }
        for n in 0..20 {
            let change = NodeChange { title: Some(format!("title {n}")), ..NodeChange::default() };
            store::change(&store, &id, NOW, |tx| update_node(tx, &task, change.clone(), &op(NOW))).unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
    assert_eq!(title(&store, &id, &task), "title 19");
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
