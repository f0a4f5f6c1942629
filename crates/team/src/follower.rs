//! Keeps the replica of a joined project up to date while a server process lives: one thread, which waits for
//! changes of the server, renews the leases of sessions, and delivers writes that wait.
//!
//! One process of the machine follows a project at a time, by a file lock; another takes over when it exits.
//! The thread owns no state that matters: it ends with its process at any moment, as after a kill.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tanmi_base::lock::Lock;
use tanmi_base::{Millis, id};
use tanmi_protocol::{FeedPage, MEMORY};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::WorkspaceId;

use crate::claims::note_lost_claims;
use crate::membership::Membership;
use crate::workspaces::TeamWorkspaces;

/// How long the server waits for a change, in seconds.
const WAIT: u64 = 25;
/// How often leases are renewed. A lease lasts five times as long.
const BEAT_EVERY: Duration = Duration::from_secs(120);
/// How soon the presence is asked for again after a change.
const BEAT_AFTER_CHANGE: Duration = Duration::from_secs(5);
/// How often a process looks whether the one that follows has exited.
const TAKE_OVER_EVERY: Duration = Duration::from_secs(2);
/// The longest pause after errors. Other calls fail at once until a request of the thread is answered.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Returns the sessions whose leases a process renews.
pub type SessionsInUse = Box<dyn Fn() -> Vec<String> + Send>;

/// The thread that follows a project.
pub struct Follower {
    workspaces: Arc<TeamWorkspaces>,
    sessions: SessionsInUse,
    home: PathBuf,
    replica: PathBuf,
    clock: fn() -> Millis,
    /// Held by the process that follows.
    lock: Option<Lock>,
    beat_at: Option<Instant>,
    /// Whether a change may have moved a claim since the last beat.
    has_changed: bool,
    /// The workspaces that the last page brought whole.
    fetched: BTreeSet<WorkspaceId>,
}

impl Follower {
    /// `home` is the home store, `replica` the folder of the replica.
    pub fn new(
        workspaces: Arc<TeamWorkspaces>,
        sessions: SessionsInUse,
        home: PathBuf,
        replica: PathBuf,
        clock: fn() -> Millis,
    ) -> Follower {
        Follower {
            workspaces,
            sessions,
            home,
            replica,
            clock,
            lock: None,
            beat_at: None,
            has_changed: false,
            fetched: BTreeSet::new(),
        }
    }

    /// Follows until the project is left. After errors it pauses, each time for longer.
    pub fn run(mut self) {
        let mut failures = 0;
        loop {
            let step = match self.is_joined() {
                Ok(false) => return,
                Ok(true) => self.step(),
                Err(error) => Err(error),
            };
            match step {
                Ok(()) => failures = 0,
                Err(_) => {
                    failures += 1;
                    thread::sleep(pause_after(failures));
                }
            }
        }
    }

    /// Returns whether the project is still joined. The replica of one that was left is not written again.
    fn is_joined(&self) -> Result<bool> {
        let membership = Membership::new(&self.home);
        let members = membership.all().map_err(Error::io(membership.path()))?;
        Ok(members.iter().any(|member| member.replica(&self.home) == self.replica))
    }

    fn step(&mut self) -> Result<()> {
        let every = if self.has_changed { BEAT_AFTER_CHANGE } else { BEAT_EVERY };
        if self.beat_at.is_none_or(|at| at.elapsed() >= every) {
            self.beat()?;
        }
        if self.lock.is_none() {
            let path = self.replica.join("follow.lock");
            self.lock = Lock::try_exclusive(&path).map_err(Error::io(&path))?;
        }
        match self.lock {
            Some(_) => self.follow(),
            None => {
                thread::sleep(TAKE_OVER_EVERY);
                Ok(())
            }
        }
    }

    /// Renews leases, and writes down who works on what.
    fn beat(&mut self) -> Result<()> {
        let sessions = (self.sessions)();
        self.workspaces.beat(&sessions)?;
        (self.beat_at, self.has_changed) = (Some(Instant::now()), false);
        Ok(())
    }

    /// Waits for changes and applies them.
    fn follow(&mut self) -> Result<()> {
        let workspaces = &*self.workspaces;
        // Another process may have brought changes.
        note_lost_claims(workspaces, &self.home, &[], (self.clock)());
        let have = workspaces.positions()?;
        let wait = if self.has_changed { BEAT_AFTER_CHANGE.as_secs() } else { WAIT };
        let connection = workspaces.connection();
        let mut followed = have.clone();
        followed.insert(String::from(MEMORY), workspaces.memory().position());
        let page = connection.poll(|client| client.feed(&followed, wait));
        let page = page.map_err(|error| error.into_store_error(connection.server()))?;
        let page = page.in_history(connection.state().history.as_deref(), &have);
        if !self.is_joined()? {
            return Ok(());
        }
        self.has_changed |= !page.changes.is_empty() || !page.gaps.is_empty();
        let synced = workspaces.apply_page(&have, &page)?;
        note_lost_claims(workspaces, &self.home, &page.changes, (self.clock)());
        self.exchange_memory(&page)?;
        workspaces.check_progress(&self.fetched, &synced)?;
        self.fetched = synced.fetched;
        synced.failed.map_or(Ok(()), Err)
    }

    /// Fetches what others saved, and delivers what waits for the server.
    fn exchange_memory(&self, page: &FeedPage) -> Result<()> {
        let memory = self.workspaces.memory();
        let head = page.heads.get(MEMORY).copied().unwrap_or_default();
        let known = self.workspaces.connection().state().memory_history;
        let is_current = head == memory.position()
            && known.is_none_or(|known| page.history.is_empty() || known == page.history);
        if is_current && memory.outbox().is_empty() {
            return Ok(());
        }
        let failed = |error: tanmi_memory::Error| Error::io(&self.replica)(io::Error::other(error));
        memory.exchange().map(|_| ()).map_err(failed)
    }
}

/// Returns how long to pause after a number of errors in a row: longer each time, and at random, so that the
/// machines of a team do not all return at once.
fn pause_after(failures: u32) -> Duration {
    let most = Duration::from_secs(1 << failures.min(6)).min(MAX_PAUSE);
    let random = id::random(4).bytes().fold(0_u32, |sum, byte| sum * 31 + u32::from(byte)) % 1000;
    most / 2 + most * random / 2000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_after_errors_grows_up_to_its_limit() {
        assert!((1..=2).contains(&pause_after(1).as_secs()), "{:?}", pause_after(1));
        for failures in 2..50 {
            let pause = pause_after(failures);
            assert!(pause >= Duration::from_secs(2) && pause <= MAX_PAUSE, "{failures}: {pause:?}");
        }
        assert!(pause_after(20) >= MAX_PAUSE / 2);
    }

    #[test]
    fn follower_goes_on_while_membership_cannot_be_read_and_ends_after_project_left() {
        use crate::connection::Connection;
        use crate::memory::TeamMemory;
        use tanmi_workspace::store::FileStore;
        let home = tempfile::tempdir().unwrap();
        let server = crate::scripted::ScriptedServer::start();
        let (member, clock) = (server.member(), || 1_765_432_100_000);
        let replica = member.replica(home.path());
        let connection = Arc::new(Connection::new(&member, &replica, clock));
        let memory = Arc::new(TeamMemory::new(&member, home.path(), connection.clone(), clock));
        let store = Arc::new(FileStore::in_folder(&replica));
        let workspaces = TeamWorkspaces::new(replica.clone(), store, connection, "desk", memory, clock);
        let follower = Follower::new(
            Arc::new(workspaces),
            Box::new(Vec::new),
            home.path().to_owned(),
            replica.clone(),
            clock,
        );
        let file = Membership::new(home.path()).path();
        tanmi_base::fs::write_private(&file, b"{").unwrap();
        let thread = thread::spawn(move || follower.run());
        thread::sleep(Duration::from_millis(300));
        assert!(!thread.is_finished(), "a damaged file does not mean that the project was left");
        assert!(!replica.exists(), "and nothing is written meanwhile");
        tanmi_base::fs::write_private(&file, b"{}").unwrap();
        thread.join().unwrap();
    }
}
