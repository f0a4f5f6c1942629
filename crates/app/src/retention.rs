//! Retention: removes what is past its time, at most once a day and a bounded part of it at a time.
//!
//! It runs at the start of a session and when a session is bound. The modification time of `state/retention` tells
//! when it last ran, so that a start on the same day costs one look at that file. The state of a bound session lives as
//! long as its binding: both are kept while the session is active or its client runs.

use std::path::Path;

use tanmi_base::Millis;
use tanmi_base::clock::DAY;
use tanmi_base::fs::{self, FileSig};
use tanmi_session::{Binding, States};

use crate::stores::Stores;

/// Bindings and states of sessions that were inactive for longer are removed.
const STALE_AFTER: Millis = 30 * DAY;
/// The number of files of each kind that one run looks at.
const MAX_FILES: usize = 512;

/// Removes bindings and states of inactive sessions, and expired days of the ledger with their texts. Errors
/// are ignored: they do not concern the call that triggered it, and the next day it runs again.
pub fn run_if_due(home: &Path, stores: &Stores, log_retain_days: u32, now: Millis) {
    let mark = home.join("state/retention");
    let last = FileSig::of(&mark).ok().flatten().map(|sig| sig.mtime_ns / 1_000_000);
    let is_due = !last.is_some_and(|last| (0..DAY).contains(&(now - last)));
    // Marked first, so that sessions that start together do not all do it. Fails if there is no state yet.
    if !is_due || fs::touch_private(&mark, now).is_err() {
        return;
    }
    let (states, oldest) = (States::new(home), now - STALE_AFTER);
    let is_stale =
        |session: &str, binding: &Binding| binding.bound_at < oldest && !states.is_active(session, oldest);
    let _ = stores.bindings.prune(&is_stale);
    states.prune(oldest, MAX_FILES);
    let _ = stores.ledger.prune(now - Millis::from(log_retain_days) * DAY, MAX_FILES);
}
