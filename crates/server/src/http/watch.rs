//! The thread that finds changes while the feed has subscribers: it polls the journals often and compares file
//! signatures (a sweep) less often.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use tanmi_app::watch::{FeedEvent, Watcher};

use super::ServerState;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval in which viewed workspaces and up to ten others are swept. Further workspaces take turns.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Sweeps start at least this many times the duration of a sweep apart, so that they use at most 1/20 of the time.
const SWEEP_PAUSE_FACTOR: u32 = 20;

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
    let run = move || run(&state, watcher, &is_stopped);
    let thread = thread::Builder::new().name(String::from("watch")).spawn(run)?;
    Ok(WatchHandle { stopped, thread })
}

fn run(state: &ServerState, mut watcher: Watcher, stopped: &AtomicBool) {
    let (mut projects, mut turn, mut sweep_at) = (state.projects(), 0, Instant::now());
    while !stopped.load(Ordering::Relaxed) {
        thread::sleep(POLL_INTERVAL);
        // Without subscribers there is nothing to do. The watcher keeps its position, so no change is missed.
        if state.feed.subscriber_count() == 0 {
            continue;
        }
        publish(state, watcher.poll_changes(&projects));
        let started = Instant::now();
        if started >= sweep_at {
            projects = state.projects();
            let (events, count) = watcher.poll_edits(&projects, &state.viewed_workspaces(), turn);
            publish(state, events);
            turn = turn.wrapping_add(1);
            let pause = SWEEP_INTERVAL / u32::try_from(count.clamp(1, 10)).unwrap_or(1);
            sweep_at = started + pause.max(started.elapsed() * SWEEP_PAUSE_FACTOR);
        }
    }
}

fn publish(state: &ServerState, events: Vec<FeedEvent>) {
    events.iter().for_each(|event| state.feed.publish(json!(event)));
}
