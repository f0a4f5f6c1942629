//! The file `log` in the home store: one line per problem, for a user who asks why nothing was injected.

use std::path::Path;

use tanmi_base::{Millis, fs, hash, text};
use tanmi_session::SessionState;

use super::Caller;

/// A larger log is renamed to `log.1`, which replaces the previous `log.1`.
const MAX_BYTES: u64 = 1 << 20;
/// The same warning is written at most once per hour and session, because hooks run at every prompt.
const REPEAT_AFTER: Millis = 3_600_000;

pub fn log_line(caller: &Caller<'_>, line: &str) {
    write(caller.home, caller.now, line);
}

/// Appends a line to the log. Does nothing if the home store does not exist.
pub fn write(home: &Path, now: Millis, line: &str) {
    if !home.is_dir() {
        return;
    }
    let path = home.join("log");
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > MAX_BYTES) {
        let _ = std::fs::rename(&path, home.join("log.1"));
    }
    let _ = fs::append_private(&path, format!("{now} {}\n", text::one_line(line)).as_bytes());
}

/// Returns the warnings that are due, and notes in the session state that they are written.
pub fn take_due<'a>(caller: &Caller<'_>, state: &mut SessionState, warnings: &'a [String]) -> Vec<&'a str> {
    let mut due = Vec::new();
    for warning in warnings {
        let key = format!("log:{}", &hash::md5_hex(warning.as_bytes())[..8]);
        let is_due =
            state.last_injected.get(&key).is_none_or(|at| !(0..REPEAT_AFTER).contains(&(caller.now - at)));
        if is_due {
            due.push(warning.as_str());
            state.last_injected.insert(key, caller.now);
        }
    }
    due
}
