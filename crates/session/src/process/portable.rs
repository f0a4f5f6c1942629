//! The process table of systems other than Linux, through the crate sysinfo. On macOS it calls `proc_pidinfo`, on
//! Windows it takes a snapshot of all processes.
//!
//! The code for those systems has been compiled but never run. Linux runs this table in a test only.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use super::{ProcessInfo, ProcessTable};

pub(super) struct SysinfoTable;

impl ProcessTable for SysinfoTable {
    fn current(&self) -> Option<ProcessInfo> {
        self.process(std::process::id())
    }

    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        let pid = Pid::from_u32(pid);
        let mut system = System::new();
        system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&[pid]),
            false,
            ProcessRefreshKind::nothing(),
        );
        let process = system.process(pid)?;
        let name = process.name().to_string_lossy();
        // The start time is 0 if the user may not see the process; then the pid could be of any process.
        Some(process.start_time()).filter(|started| *started > 0).map(|started| ProcessInfo {
            name: program_name(&name).to_owned(),
            parent_pid: process.parent().map_or(0, Pid::as_u32),
            started,
        })
    }
}

/// Returns the name of a program without the extension that Windows adds.
pub(super) fn program_name(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((program, extension)) if extension.eq_ignore_ascii_case("exe") => program,
        _ => name,
    }
}
