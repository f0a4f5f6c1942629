//! Finds the client process, from a hook it runs and from a server it started. Both find the same process, which
//! assigns a server call to the session that the hook reported.

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
mod portable;

#[cfg(target_os = "linux")]
use linux::ProcFiles as SystemTable;
#[cfg(not(target_os = "linux"))]
use portable::SysinfoTable as SystemTable;

/// The process of a client. Pids are reused; together with the start time a pid is unique.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProcess {
    pub pid: u32,
    pub started: u64,
}

/// A process, as far as the search for a client needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProcessInfo {
    name: String,
    parent_pid: u32,
    /// When the process started, in the unit of its table. The numbers of one table can be compared.
    started: u64,
}

/// The processes of the machine.
trait ProcessTable {
    /// Returns this process. Its name is not used.
    fn current(&self) -> Option<ProcessInfo>;

    /// Returns a running process.
    fn process(&self, pid: u32) -> Option<ProcessInfo>;
}

/// Programs that may run between a client and its hook or server.
const LAUNCHERS: &[&str] =
    &["sh", "bash", "dash", "zsh", "fish", "env", "timeout", "npx", "uvx", "cmd", "powershell", "pwsh"];
/// Start of the process name that npm sets for a package it runs.
const NPM: &str = "npm exec";
/// The number of ancestors that are looked at. Also ends the search in a cycle, which reused pids can form.
const MAX_ANCESTORS: usize = 6;

/// Returns the client that runs this hook: the process that an environment variable names, else the nearest ancestor
/// that is not a launcher.
pub fn client_of_hook(named: Option<&str>) -> Option<ClientProcess> {
    find_client(&SystemTable, named)
}

/// Returns the client that started this server. Skips launchers.
pub fn client_of_server() -> Option<ClientProcess> {
    find_client_ancestor(&SystemTable)
}

/// Returns this process. `None` where the system cannot tell.
pub fn current_process() -> Option<ClientProcess> {
    let pid = std::process::id();
    SystemTable.process(pid).map(|info| ClientProcess { pid, started: info.started })
}

/// Returns whether this process is still running. Returns `false` where the system cannot tell.
pub fn is_running(client: &ClientProcess) -> bool {
    has_process(&SystemTable, client)
}

fn find_client(table: &impl ProcessTable, named: Option<&str>) -> Option<ClientProcess> {
    if let Some(pid) = named.and_then(|pid| pid.trim().parse().ok()) {
        return table.process(pid).map(|info| ClientProcess { pid, started: info.started });
    }
    find_client_ancestor(table)
}

fn has_process(table: &impl ProcessTable, client: &ClientProcess) -> bool {
    table.process(client.pid).is_some_and(|info| info.started == client.started)
}

fn find_client_ancestor(table: &impl ProcessTable) -> Option<ClientProcess> {
    let mut child = table.current()?;
    for _ in 0..MAX_ANCESTORS {
        let pid = child.parent_pid;
        // A process whose parent is process 1 was orphaned: its client has ended.
        if pid <= 1 {
            return None;
        }
        let info = table.process(pid)?;
        // The parent has ended, and a newer process has its pid.
        if info.started > child.started {
            return None;
        }
        if !is_launcher(&info.name) {
            return Some(ClientProcess { pid, started: info.started });
        }
        child = info;
    }
    None
}

fn is_launcher(name: &str) -> bool {
    LAUNCHERS.contains(&name) || name.starts_with(NPM)
}

#[cfg(test)]
mod tests;
