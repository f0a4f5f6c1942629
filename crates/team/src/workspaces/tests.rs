//! Replicas of many workspaces, and servers whose answers do not agree, with a scripted server.

use tanmi_base::paths::workspace_folder;
use tanmi_workspace::store::ChangeFeed;

use super::*;
use crate::scripted::{Mood, ScriptedServer};

const NOW: Millis = 1_765_432_100_000;

/// A machine with the workspace that the server has.
struct Machine {
    dir: tempfile::TempDir,
    server: ScriptedServer,
    id: WorkspaceId,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let local = FileStore::in_folder(dir.path());
        let new =
            NewWorkspace { name: String::from("Shop"), goal: String::from("Sell"), ..Default::default() };
        let op = OpContext { now: NOW, operator: Operator::Human, auto_log: true, moves_focus: true };
        let id = local.create(new, &op).unwrap().id;
        let texts = local.documents(&id).unwrap();
        let mut documents = vec![(String::from("workspace"), texts.workspace)];
        documents.extend(texts.nodes.into_iter().map(|(id, text)| (id.to_string(), text)));
        let server = ScriptedServer::start();
        server.data().workspaces.insert(id.to_string(), documents);
        Machine { dir, server, id }
    }

    fn workspaces(&self) -> TeamWorkspaces {
        let (member, home) = (self.server.member(), self.dir.path().join("home"));
        let folder = member.replica(&home);
        let connection = Arc::new(Connection::new(&member, &folder, || NOW));
        let memory = Arc::new(TeamMemory::new(&member, &home, connection.clone(), || NOW));
        let replica = Arc::new(FileStore::in_folder(&folder));
        TeamWorkspaces::new(folder, replica, connection, "desk", memory, || NOW)
    }
}

#[test]
fn positions_have_workspace_that_is_older_than_a_thousand_others() {
    let machine = Machine::new();
    let workspaces = machine.workspaces();
    workspaces.sync(&mut |_| {}).unwrap();
    for n in 0..1000 {
        // Newer ones, which cannot be opened: that is fast.
        let folder = workspace_folder(workspaces.folder(), &format!("ws-zz{n:06}-aaaaaa"));
        std::fs::create_dir(&folder).unwrap();
        for name in ["Workspace.md", ".local"] {
            std::fs::File::create(folder.join(name)).unwrap();
        }
    }
    let positions = workspaces.positions().unwrap();
    assert_eq!(positions.keys().collect::<Vec<_>>(), [machine.id.as_str()]);
}

#[test]
fn sync_with_server_that_always_names_a_gap_ends_with_error() {
    let machine = Machine::new();
    machine.server.data().gaps = vec![machine.id.to_string()];
    let failed = machine.workspaces().sync(&mut |_| {}).unwrap_err();
    assert!(matches!(failed, Error::TeamUnreachable { .. }), "{failed}");
    assert!(failed.to_string().contains(machine.id.as_str()), "{failed}");
    machine.server.data().gaps.clear();
    assert_eq!(machine.workspaces().sync(&mut |_| {}).unwrap().workspaces, 1);
}

#[test]
fn delete_and_undelete_succeed_without_copy() {
    let machine = Machine::new();
    let workspaces = machine.workspaces();
    let answer = format!(r#"{{"workspaceId":"{}"}}"#, machine.id);
    machine.server.data().mood = Mood::Say(answer.leak());
    assert_eq!(workspaces.replica().ids().unwrap(), []);
    workspaces.delete(&machine.id, NOW).unwrap();
    assert!(workspaces.undelete(&machine.id).unwrap(), "the copy is fetched later");
    machine.server.data().mood = Mood::Answer;
    assert_eq!(workspaces.summary(&machine.id, NOW).unwrap().0.name, "Shop");
}

#[test]
fn workspace_that_another_process_removed_counts_as_removed() {
    let machine = Machine::new();
    let workspaces = machine.workspaces();
    workspaces.sync(&mut |_| {}).unwrap();
    workspaces.replica().delete(&machine.id, NOW).unwrap();
    let have = tanmi_protocol::Positions::from([(machine.id.to_string(), 1)]);
    let synced = workspaces.apply_page(&have, &tanmi_protocol::FeedPage::default()).unwrap();
    assert!(synced.failed.is_none(), "{:?}", synced.failed);
}
