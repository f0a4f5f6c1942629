//! Wakes the readers of the feed when something changed: at once for the changes of this server, and within a
//! fraction of a second for those of another server on the same database.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tanmi_pg::{PgStore, Pool};
use tokio::sync::watch;

/// How often the database is asked for changes of other servers, while readers wait.
const INTERVAL: Duration = Duration::from_millis(150);

/// A page of the feed that several readers at the same positions get.
pub struct SharedPage {
    /// When the read began. A reader that asked later may not get it, because another server can have made a
    /// change since.
    pub read_at: Instant,
    pub positions: String,
    pub body: Bytes,
    /// Whether a reader at these positions has not seen all of it.
    pub has_news: bool,
}

pub struct Feed {
    wake: watch::Sender<()>,
    /// Held while a page is read, so that readers at the same positions share it.
    pub page: tokio::sync::Mutex<Option<SharedPage>>,
    /// The number of changes that was last seen in the database.
    seen: Mutex<Option<i64>>,
}

/// The feeds of all projects that were read from this server.
pub struct Heads {
    pool: Arc<Pool>,
    feeds: Mutex<HashMap<String, Arc<Feed>>>,
    closed: watch::Sender<bool>,
}

impl Heads {
    pub fn new(pool: Arc<Pool>) -> Heads {
        Heads { pool, feeds: Mutex::default(), closed: watch::Sender::new(false) }
    }

    /// Returns the feed of a project.
    pub fn feed(&self, project: &str) -> Arc<Feed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            Arc::new(Feed {
                wake: watch::Sender::new(()),
                page: tokio::sync::Mutex::new(None),
                seen: Mutex::new(None),
            })
        };
        Arc::clone(feeds.entry(project.to_owned()).or_insert_with(new))
    }

    /// Wakes the readers of a project after a change by this server.
    pub fn notify(&self, project: &str) {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(project) {
            feed.wake();
        }
    }

    /// Returns the number of readers that wait for changes.
    pub fn reader_count(&self) -> usize {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.values().map(|feed| feed.wake.receiver_count()).sum()
    }

    /// Returns a receiver that changes when the server stops.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }

    /// Ends the waits of all readers.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Looks for changes by other servers in the projects that have readers.
    fn poll(&self) {
        let feeds: Vec<(String, Arc<Feed>)> = {
            let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
            let has_readers = |feed: &Feed| feed.wake.receiver_count() > 0;
            feeds
                .iter()
                .filter(|(_, feed)| has_readers(feed))
                .map(|(id, f)| (id.clone(), f.clone()))
                .collect()
        };
        for (project, feed) in feeds {
            // A database that is away has no changes. The next poll tries again.
            let Ok(total) = PgStore::new(Arc::clone(&self.pool), project).total_changes() else { continue };
            let before = feed.seen.lock().unwrap_or_else(PoisonError::into_inner).replace(total);
            if before != Some(total) {
                feed.wake();
            }
        }
    }
}

impl Feed {
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.wake.subscribe()
    }

    fn wake(&self) {
        self.wake.send_replace(());
    }
}

/// Starts the thread that looks for changes by other servers.
pub fn watch(heads: Arc<Heads>) -> io::Result<JoinHandle<()>> {
    let closing = heads.closing();
    thread::Builder::new().name(String::from("feed")).spawn(move || {
        while !*closing.borrow() {
            heads.poll();
            thread::sleep(INTERVAL);
        }
    })
}
