//! Which process a client is, seen from a hook it runs and from a server it started. Both find the same one, so a call
//! to the server belongs to the session that the hook reported.

use serde::{Deserialize, Serialize};

/// A process number is used again one day; with its start time it is unique.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProcess {
    pub pid: u32,
    pub started: u64,
}

/// Programs that stand between a client and what it runs.
const LAUNCHERS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "env", "timeout", "npx", "uvx"];
/// npm puts what it runs behind its name.
const NPM: &str = "npm exec";

/// The client that runs this hook: the one it names itself by `CLAUDE_PID`, else the nearest ancestor that is no shell.
pub fn client_of_hook(named: Option<&str>) -> Option<ClientProcess> {
    if let Some(pid) = named.and_then(|pid| pid.trim().parse().ok()) {
        return look(pid).map(|seen| ClientProcess { pid, started: seen.started });
    }
    nearest()
}

/// The client that started this server. A launcher in between is stepped over.
pub fn client_of_server() -> Option<ClientProcess> {
    nearest()
}

/// Whether that very process is still there. Where the system cannot tell, it is not.
pub fn is_running(client: &ClientProcess) -> bool {
    look(client.pid).is_some_and(|seen| seen.started == client.started)
}

fn nearest() -> Option<ClientProcess> {
    let mut pid = parent()?;
    for _ in 0..6 {
        // Whoever is adopted by the first process has lost its client.
        if pid <= 1 {
            return None;
        }
        let seen = look(pid)?;
        if !is_launcher(&seen.name) {
            return Some(ClientProcess { pid, started: seen.started });
        }
        pid = seen.parent;
    }
    None
}

fn is_launcher(name: &str) -> bool {
    LAUNCHERS.contains(&name) || name.starts_with(NPM)
}

struct ProcessInfo {
    name: String,
    parent: u32,
    started: u64,
}

#[cfg(unix)]
fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

#[cfg(not(unix))]
fn parent() -> Option<u32> {
    None
}

/// `/proc/<pid>/stat`: the name in parentheses may hold anything, so the rest is counted from its end.
#[cfg(target_os = "linux")]
fn look(pid: u32) -> Option<ProcessInfo> {
    use std::io::Read;
    // The kernel writes the line anew for a reader, and gives all of it at once: fifty numbers and a short name.
    let mut line = [0; 2048];
    let read = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    let stat = String::from_utf8_lossy(&line[..read]);
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = rest.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(ProcessInfo { name, parent, started })
}

/// Elsewhere the system has no file to ask, and the session has to be named.
#[cfg(not(target_os = "linux"))]
fn look(_: u32) -> Option<ProcessInfo> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent() {
        let me = look(std::process::id()).unwrap();
        assert!(me.parent > 0 && me.started > 0);
        let named = client_of_hook(Some(&std::process::id().to_string())).unwrap();
        assert_eq!(named, ClientProcess { pid: std::process::id(), started: me.started });
        assert_eq!(client_of_hook(Some("999999999")), None);
    }

    #[test]
    fn launchers_are_stepped_over_and_clients_are_not() {
        for name in ["sh", "bash", "npx", "npm exec", "npm exec tanmi-"] {
            assert!(is_launcher(name), "{name}");
        }
        for name in ["claude", "node", "npm", "shell"] {
            assert!(!is_launcher(name), "{name}");
        }
    }
}
