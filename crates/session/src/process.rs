//! Finds the client process, from a hook it runs and from a server it started. Both find the same process, which
//! assigns a server call to the session that the hook reported.

use serde::{Deserialize, Serialize};

/// The process of a client. Pids are reused; together with the start time a pid is unique.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProcess {
    pub pid: u32,
    pub started: u64,
}

/// Programs that may run between a client and its hook or server.
const LAUNCHERS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "env", "timeout", "npx", "uvx"];
/// Start of the process name that npm sets for a package it runs.
const NPM: &str = "npm exec";

/// Returns the client that runs this hook: the process in `CLAUDE_PID` if that is set, else the nearest ancestor
/// that is not a launcher.
pub fn client_of_hook(named: Option<&str>) -> Option<ClientProcess> {
    if let Some(pid) = named.and_then(|pid| pid.trim().parse().ok()) {
        return process_info(pid).map(|info| ClientProcess { pid, started: info.started });
    }
    find_client_ancestor()
}

/// Returns the client that started this server. Skips launchers.
pub fn client_of_server() -> Option<ClientProcess> {
    find_client_ancestor()
}

/// Returns whether this process is still running. Returns `false` where the system cannot tell.
pub fn is_running(client: &ClientProcess) -> bool {
    process_info(client.pid).is_some_and(|info| info.started == client.started)
}

fn find_client_ancestor() -> Option<ClientProcess> {
    let mut pid = parent_pid()?;
    for _ in 0..6 {
        // A process whose parent is process 1 was orphaned: its client has ended.
        if pid <= 1 {
            return None;
        }
        let info = process_info(pid)?;
        if !is_launcher(&info.name) {
            return Some(ClientProcess { pid, started: info.started });
        }
        pid = info.parent_pid;
    }
    None
}

fn is_launcher(name: &str) -> bool {
    LAUNCHERS.contains(&name) || name.starts_with(NPM)
}

struct ProcessInfo {
    name: String,
    parent_pid: u32,
    started: u64,
}

#[cfg(unix)]
fn parent_pid() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

#[cfg(not(unix))]
fn parent_pid() -> Option<u32> {
    None
}

/// Reads `/proc/<pid>/stat`. The name in parentheses may contain any character, so fields are counted from its
/// end.
#[cfg(target_os = "linux")]
fn process_info(pid: u32) -> Option<ProcessInfo> {
    use std::io::Read;
    // The kernel creates the line for each reader and returns it in one read: fifty numbers and a short name.
    let mut line = [0; 2048];
    let read = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    let stat = String::from_utf8_lossy(&line[..read]);
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = rest.split_whitespace();
    let parent_pid = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(ProcessInfo { name, parent_pid, started })
}

/// Other systems have no such file; the session must be given explicitly.
#[cfg(not(target_os = "linux"))]
fn process_info(_: u32) -> Option<ProcessInfo> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn client_of_hook_named_pid_is_resolved() {
        let me = process_info(std::process::id()).unwrap();
        assert!(me.parent_pid > 0 && me.started > 0);
        let named = client_of_hook(Some(&std::process::id().to_string())).unwrap();
        assert_eq!(named, ClientProcess { pid: std::process::id(), started: me.started });
        assert_eq!(client_of_hook(Some("999999999")), None);
    }

    #[test]
    fn is_launcher_matches_shells_and_npm_but_not_clients() {
        for name in ["sh", "bash", "npx", "npm exec", "npm exec tanmi-"] {
            assert!(is_launcher(name), "{name}");
        }
        for name in ["claude", "node", "npm", "shell"] {
            assert!(!is_launcher(name), "{name}");
        }
    }
}
