//! Removes what the database keeps for a limited time, once an hour.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use tanmi_pg::Expired;

use super::TeamState;
use super::log::LogLevel;

const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How soon the thread notices that the server stops.
const STEP: Duration = Duration::from_millis(150);

/// Starts the thread that removes what has expired. Several servers of one database do it beside each other.
pub fn watch(state: Arc<TeamState>) -> io::Result<JoinHandle<()>> {
    let closing = state.heads.closing();
    thread::Builder::new().name(String::from("retention")).spawn(move || {
        let mut last: Option<Instant> = None;
        while !*closing.borrow() {
            if last.is_none_or(|last| last.elapsed() >= INTERVAL) {
                last = Some(Instant::now());
                remove_expired(&state, &|| *closing.borrow());
            }
            thread::sleep(STEP);
        }
    })
}

/// Removes what has expired in all projects. What fails is tried again an hour later.
fn remove_expired(state: &TeamState, should_stop: &dyn Fn() -> bool) {
    let failed = |error: tanmi_workspace::Error| {
        state.log.write(LogLevel::Warn, "retention_failed", json!({"code": error.code()}));
    };
    let projects = match state.pool.project_ids() {
        Ok(projects) => projects,
        Err(error) => return failed(error),
    };
    for project in projects {
        match state.store(&project).remove_expired(should_stop) {
            Ok(removed) if removed == Expired::default() => {}
            Ok(Expired { answers, changes, nodes }) => {
                let fields =
                    json!({"project": project, "answers": answers, "changes": changes, "nodes": nodes});
                state.log.write(LogLevel::Info, "expired_removed", fields);
            }
            Err(error) => failed(error),
        }
    }
}
