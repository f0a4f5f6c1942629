//! The process table of Linux: the files in `/proc`.

use std::io::Read;

use super::{ProcessInfo, ProcessTable};

pub(super) struct ProcFiles;

impl ProcessTable for ProcFiles {
    /// Asks only for the parent, which needs no file. The kernel gives an orphan to an older process, so a parent is
    /// never newer than its child, and any start time will do.
    fn current(&self) -> Option<ProcessInfo> {
        let parent_pid = std::os::unix::process::parent_id();
        Some(ProcessInfo { name: String::new(), parent_pid, started: u64::MAX })
    }

    /// Reads `/proc/<pid>/stat`. The name in parentheses may contain any character, so fields are counted from its
    /// end.
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
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
}
