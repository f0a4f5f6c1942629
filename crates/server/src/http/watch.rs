//! The thread that looks around while somebody listens: often at journals, now and then at every file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use tanmi_app::watch::{FeedEvent, Watcher};

use super::ServerState;

const GLANCE: Duration = Duration::from_millis(100);
/// Workspaces that somebody looks at, and up to ten others, are swept about so often; of more, each in its turn.
const SWEEP: Duration = Duration::from_secs(1);
/// A sweep of a large workspace may take this share of the time.
const SHARE: u32 = 20;

pub struct WatchHandle {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl WatchHandle {
    pub fn stop(self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

pub fn start(state: Arc<ServerState>, watcher: Watcher) -> io::Result<WatchHandle> {
    let stopped = Arc::new(AtomicBool::new(false));
    let is_stopped = Arc::clone(&stopped);
    let look = move || look(&state, watcher, &is_stopped);
    let thread = thread::Builder::new().name(String::from("watch")).spawn(look)?;
    Ok(WatchHandle { stopped, thread })
}

fn look(state: &ServerState, mut watcher: Watcher, stopped: &AtomicBool) {
    let (mut projects, mut turn, mut sweep_at) = (state.projects(), 0, Instant::now());
    while !stopped.load(Ordering::Relaxed) {
        thread::sleep(GLANCE);
        // Nobody looks: nothing is looked at. Where we were is known, so nothing is missed either.
        if state.feed.listeners() == 0 {
            continue;
        }
        publish(state, watcher.poll_changes(&projects));
        let begun = Instant::now();
        if begun >= sweep_at {
            projects = state.projects();
            let (happened, count) = watcher.poll_edits(&projects, &state.viewed_workspaces(), turn);
            publish(state, happened);
            turn = turn.wrapping_add(1);
            let pause = SWEEP / u32::try_from(count.clamp(1, 10)).unwrap_or(1);
            sweep_at = begun + pause.max(begun.elapsed() * SHARE);
        }
    }
}

fn publish(state: &ServerState, happened: Vec<FeedEvent>) {
    happened.iter().for_each(|happening| state.feed.publish(json!(happening)));
}
