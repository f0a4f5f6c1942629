//! The search for a client, on a table in RAM, and the tables of real systems.

use super::*;

/// Processes as (pid, name, parent, start time). The first one is the current process.
struct FakeTable(&'static [(u32, &'static str, u32, u64)]);

impl ProcessTable for FakeTable {
    fn current(&self) -> Option<ProcessInfo> {
        self.process(self.0.first()?.0)
    }

    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        let row = self.0.iter().find(|row| row.0 == pid);
        row.map(|&(_, name, parent_pid, started)| ProcessInfo { name: name.to_owned(), parent_pid, started })
    }
}

/// A name, a table, and the pid and start time of the client.
type AncestorCase = (&'static str, FakeTable, Option<(u32, u64)>);

#[test]
fn find_client_ancestor_returns_nearest_running_ancestor_that_is_no_launcher() {
    let cases: &[AncestorCase] = &[
        ("parent", FakeTable(&[(90, "tanmi", 80, 9), (80, "claude", 1, 8)]), Some((80, 8))),
        (
            "launchers are skipped",
            FakeTable(&[
                (90, "tanmi", 80, 9),
                (80, "npm exec tanmi-", 70, 8),
                (70, "sh", 60, 7),
                (60, "node", 50, 6),
                (50, "bash", 1, 5),
            ]),
            Some((60, 6)),
        ),
        ("orphan", FakeTable(&[(90, "tanmi", 1, 9), (1, "init", 0, 1)]), None),
        ("orphaned launcher", FakeTable(&[(90, "tanmi", 80, 9), (80, "sh", 1, 8), (1, "init", 0, 1)]), None),
        ("no parent", FakeTable(&[(90, "tanmi", 0, 9)]), None),
        ("parent ended", FakeTable(&[(90, "tanmi", 80, 9)]), None),
        ("pid of the parent reused", FakeTable(&[(90, "tanmi", 80, 9), (80, "claude", 1, 10)]), None),
        (
            "pid of a launcher's parent reused",
            FakeTable(&[(90, "tanmi", 80, 9), (80, "sh", 70, 8), (70, "claude", 1, 9)]),
            None,
        ),
        ("same start time", FakeTable(&[(90, "tanmi", 80, 9), (80, "claude", 1, 9)]), Some((80, 9))),
        ("cycle", FakeTable(&[(90, "tanmi", 80, 9), (80, "sh", 70, 8), (70, "bash", 80, 8)]), None),
        ("own parent", FakeTable(&[(90, "sh", 90, 9)]), None),
        (
            "more launchers than are looked at",
            FakeTable(&[
                (90, "tanmi", 80, 9),
                (80, "sh", 70, 8),
                (70, "sh", 60, 7),
                (60, "sh", 50, 6),
                (50, "sh", 40, 5),
                (40, "sh", 30, 4),
                (30, "sh", 20, 3),
                (20, "claude", 1, 2),
            ]),
            None,
        ),
        ("no table", FakeTable(&[]), None),
    ];
    for (name, table, expected) in cases {
        let found = find_client_ancestor(table).map(|client| (client.pid, client.started));
        assert_eq!(found, *expected, "{name}");
    }
}

#[test]
fn find_client_named_pid_replaces_the_search() {
    let table = FakeTable(&[(90, "tanmi", 80, 9), (80, "node", 70, 8), (70, "claude", 1, 7)]);
    for (named, expected) in
        [(Some(" 70\n"), Some(70)), (Some("60"), None), (Some("x"), Some(80)), (None, Some(80))]
    {
        assert_eq!(find_client(&table, named).map(|client| client.pid), expected, "{named:?}");
    }
}

#[test]
fn has_process_reused_pid_is_another_process() {
    let table = FakeTable(&[(90, "tanmi", 80, 9)]);
    for (pid, started, expected) in [(90, 9, true), (90, 8, false), (80, 9, false)] {
        assert_eq!(has_process(&table, &ClientProcess { pid, started }), expected, "{pid} {started}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn client_of_hook_named_pid_is_resolved() {
    let me = SystemTable.process(std::process::id()).unwrap();
    assert!(me.parent_pid > 0 && me.started > 0);
    let named = client_of_hook(Some(&std::process::id().to_string())).unwrap();
    assert_eq!(named, ClientProcess { pid: std::process::id(), started: me.started });
    assert_eq!(client_of_hook(Some("999999999")), None);
}

#[cfg(target_os = "linux")]
#[test]
fn portable_table_agrees_with_the_table_of_linux() {
    let table = portable::SysinfoTable;
    let mut parent = table.current().unwrap();
    assert_eq!(parent.parent_pid, SystemTable.current().unwrap().parent_pid);
    for pid in [std::process::id(), parent.parent_pid] {
        let (portable, linux) = (table.process(pid).unwrap(), SystemTable.process(pid).unwrap());
        assert_eq!((&portable.name, portable.parent_pid), (&linux.name, linux.parent_pid));
        assert!(portable.started <= parent.started);
        parent = portable;
    }
    assert_eq!(table.process(999_999_999), None);
}

#[test]
fn program_name_extension_of_windows_is_removed() {
    for (name, expected) in [("bash.exe", "bash"), ("CMD.EXE", "CMD"), ("node", "node"), ("a.b", "a.b")] {
        assert_eq!(portable::program_name(name), expected);
    }
}

#[test]
fn is_launcher_matches_shells_and_npm_but_not_clients() {
    for name in ["sh", "bash", "npx", "npm exec", "npm exec tanmi-", "cmd", "pwsh"] {
        assert!(is_launcher(name), "{name}");
    }
    for name in ["claude", "node", "npm", "shell"] {
        assert!(!is_launcher(name), "{name}");
    }
}
