//! Runs the same random operations on every implementation of [`Workspaces`]. Every result and the final
//! state must be equal, even if indexes are deleted and the file store is reopened in between. A section that
//! the user added to a file must be kept.

use proptest::prelude::*;

use super::remote::RemoteWorkspaces;
use super::*;
use crate::stories::{Operation, Runner, operation};

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_all_implementations_agree(operations in prop::collection::vec(operation(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let open_files = || Box::new(FileStore::in_folder(dir.path()));
        let in_memory = InMemoryStore::new();
        let mut memory = Runner::new(in_memory.clone());
        let mut remote = Runner::new(RemoteWorkspaces::default());
        let mut files = Runner::new(FileStore::in_folder(dir.path()));
        let workspace_dir = dir.path().join(".tanmi-workspace").join(files.workspace.as_str());
        let mut edited = Vec::new();
        for operation in &operations {
            match operation {
                Operation::DeleteIndex => {
                    let _ = std::fs::remove_file(workspace_dir.join(".local/index.sqlite"));
                }
                Operation::Reopen => files.workspaces = open_files(),
                Operation::AddUserSection { node } => {
                    let id = files.pick(*node);
                    let path = workspace_dir.join("nodes").join(id.as_str()).join("Node.md");
                    if let Ok(text) = std::fs::read_to_string(&path) {
                        let text = format!("{text}\n## Mine\n\nkept\n");
                        tanmi_base::fs::write_atomic(&path, text.as_bytes(), dir.path(),
                            tanmi_base::fs::Durability::Journaled).unwrap();
                        edited.push(path);
                    }
                }
                _ => {}
            }
            let expected = memory.run(operation);
            prop_assert_eq!(&expected, &files.run(operation), "files: {:?}", operation);
            prop_assert_eq!(&expected, &remote.run(operation), "remote: {:?}", operation);
        }
        let expected = memory.state();
        prop_assert_eq!(&expected, &files.state(), "files");
        prop_assert_eq!(&expected, &remote.state(), "remote");
        prop_assert_eq!(memory.snapshots(&in_memory), files.snapshots(&*open_files()), "files");
        files.workspaces = open_files();
        prop_assert_eq!(&expected, &files.state(), "after reopening the file store");
        for path in edited {
            if let Ok(text) = std::fs::read_to_string(&path) {
                prop_assert!(text.contains("## Mine\n\nkept"), "{}", text);
            }
        }
    }
}

#[test]
fn deleted_workspace_is_restored_with_same_state() {
    let dir = tempfile::tempdir().unwrap();
    let files = Runner::new(FileStore::in_folder(dir.path()));
    for mut runner in [Runner::new(InMemoryStore::new()), files, Runner::new(RemoteWorkspaces::default())] {
        runner.run(&Operation::Create { parent: 0, planning: false, title: String::from("task") });
        let (all, id, before) = (&runner.workspaces, &runner.workspace, runner.state());
        all.delete(id, runner.now).unwrap();
        assert!(!all.exists(id).unwrap());
        assert_eq!(error_code(all.summary(id, runner.now)), "WORKSPACE_NOT_FOUND");
        assert!(all.undelete(id).unwrap() && !all.undelete(id).unwrap());
        assert_eq!(runner.state(), before);
    }
}
