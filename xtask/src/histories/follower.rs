//! A reader of the feed, as a machine of the team is: it fetches each workspace once and applies the changes
//! after that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::record::{Document, Documents, Followed, FollowerView, Head, apply_documents, extend_digest};
use crate::team::http::{Connection, Response};

/// The most changes in one page of the feed.
const FULL_PAGE: usize = 500;
const WAIT_SECONDS: u64 = 3;
/// How long a reader tries to reach the end of all streams after the last request.
const CATCH_UP: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Page {
    changes: Vec<Change>,
    gaps: Vec<String>,
    heads: BTreeMap<String, i64>,
}

#[derive(Deserialize)]
struct Change {
    stream: String,
    seq: i64,
    docs: Vec<Document>,
}

#[derive(Deserialize)]
struct Snapshot {
    docs: Vec<Document>,
    seq0: i64,
    next: Option<String>,
}

pub struct Follower<'a> {
    pub port: u16,
    pub token: &'a str,
    /// Whether it reads each stream from its first change, or only from the state that it fetched.
    pub from_first_change: bool,
    pub view: FollowerView,
    /// The streams that exist, as of the last page.
    existing: Vec<String>,
}

impl<'a> Follower<'a> {
    pub fn new(name: &str, port: u16, token: &'a str, from_first_change: bool) -> Follower<'a> {
        let view = FollowerView { name: name.to_owned(), ..FollowerView::default() };
        Follower { port, token, from_first_change, view, existing: Vec::new() }
    }

    /// Reads until `is_over`, then until it has all changes up to `heads`. Returns what it saw.
    pub fn follow(
        mut self,
        is_over: &AtomicBool,
        heads: impl FnOnce() -> BTreeMap<String, Head>,
    ) -> FollowerView {
        while !is_over.load(Ordering::Acquire) {
            self.read_page();
        }
        let heads = heads();
        let limit = Instant::now() + CATCH_UP;
        while !self.has_all(&heads) && Instant::now() < limit {
            self.read_page();
        }
        self.view
    }

    /// Returns whether all changes were read. A workspace that was deleted before it was fetched has none.
    fn has_all(&self, heads: &BTreeMap<String, Head>) -> bool {
        heads.iter().all(|(stream, (head, is_deleted))| match self.view.streams.get(stream) {
            Some(followed) => followed.position >= *head,
            None => *is_deleted,
        })
    }

    fn get(&self, path: &str) -> Option<Response> {
        let timeout = Duration::from_secs(WAIT_SECONDS + 10);
        let response =
            Connection::open(self.port, self.token, timeout).and_then(|mut connection| connection.get(path));
        response.ok().filter(|response| response.status < 500)
    }

    /// Reads one page. After a failure the same positions are sent again.
    fn read_page(&mut self) {
        let followed = self.view.streams.iter().filter(|(stream, _)| self.existing.contains(stream));
        let have: Vec<String> =
            followed.map(|(stream, followed)| format!("{stream}:{}", followed.position)).collect();
        let path = format!("feed?have={}&wait={WAIT_SECONDS}", have.join(","));
        let Some(response) = self.get(&path) else { return thread::sleep(Duration::from_millis(20)) };
        match serde_json::from_value::<Page>(response.body.clone()) {
            Ok(page) => self.take(page),
            Err(_) => self.report(format!("the feed answered {} {}", response.status, response.body)),
        }
    }

    fn report(&mut self, violation: String) {
        self.view.violations.push(format!("reader {}: {violation}", self.view.name));
    }

    fn take(&mut self, page: Page) {
        let is_full = page.changes.len() >= FULL_PAGE;
        let has_changes = |stream: &String| page.changes.iter().any(|change| change.stream == *stream);
        // A deleted workspace is a gap. It is left when its last changes are read.
        let left: Vec<String> =
            page.gaps.iter().filter(|stream| !has_changes(stream) && !is_full).cloned().collect();
        for stream in &page.gaps {
            if page.heads.contains_key(stream) {
                self.report(format!("{stream}: a gap is reported, but no change was removed"));
            }
        }
        for change in page.changes {
            self.apply(change);
        }
        self.existing.retain(|stream| !left.contains(stream));
        for (stream, head) in page.heads {
            if !self.existing.contains(&stream) && self.fetch(&stream) {
                self.existing.push(stream);
            } else if self.view.streams.get(&stream).is_some_and(|followed| followed.position > head) {
                self.report(format!("{stream}: the last change is {head}, but a later one was read"));
            }
        }
    }

    fn apply(&mut self, change: Change) {
        let Change { stream, seq, docs } = change;
        let Some(followed) = self.view.streams.get_mut(&stream) else {
            return self.report(format!("{stream}: change {seq} of a stream that is not followed"));
        };
        let before = followed.position;
        followed.position = seq;
        followed.digest = extend_digest(&followed.digest, seq, &docs);
        apply_documents(&mut followed.documents, docs);
        if seq != before + 1 {
            self.report(format!("{stream}: change {seq} came after change {before}"));
        }
    }

    /// Fetches a workspace page by page, unless it was fetched before. Returns `false` if it was deleted meanwhile.
    fn fetch(&mut self, stream: &str) -> bool {
        if self.view.streams.contains_key(stream) {
            return true;
        }
        let (mut documents, mut first, mut after) = (Documents::new(), None, String::new());
        loop {
            let path = format!("snapshot?stream={stream}&limit=4{after}");
            let Some(response) = self.get(&path) else { return false };
            let Ok(page) = serde_json::from_value::<Snapshot>(response.body) else { return false };
            // Later pages can contain later changes. Applying those changes again does no harm.
            let seq0 = *first.get_or_insert(page.seq0);
            apply_documents(&mut documents, page.docs);
            match page.next {
                Some(name) => after = format!("&after={name}"),
                None => {
                    let from = if self.from_first_change { 0 } else { seq0 };
                    let digest = String::new();
                    let followed = Followed { from, position: from, digest, documents };
                    self.view.streams.insert(stream.to_owned(), followed);
                    return true;
                }
            }
        }
    }
}
