//! `log` in the home store: one line for the person who wonders why nothing happened.

use std::path::Path;

use tanmi_base::{Millis, fs, hash, text};
use tanmi_session::SessionState;

use super::Caller;

/// Then it is set aside, and the one before it goes.
const MAX_BYTES: u64 = 1 << 20;
/// The same complaint is written once an hour and session: hooks run on every prompt.
const AGAIN_AFTER: Millis = 3_600_000;

pub fn note(caller: &Caller<'_>, line: &str) {
    write(caller.home, caller.now, line);
}

/// Never creates the home store.
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

pub fn complain(caller: &Caller<'_>, state: &mut SessionState, complaints: &[String]) {
    for complaint in complaints {
        let key = format!("log:{}", &hash::md5_hex(complaint.as_bytes())[..8]);
        let is_new =
            state.last_injected.get(&key).is_none_or(|at| !(0..AGAIN_AFTER).contains(&(caller.now - at)));
        if is_new {
            note(caller, complaint);
            state.last_injected.insert(key, caller.now);
        }
    }
}
