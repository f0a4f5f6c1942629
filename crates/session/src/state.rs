//! `state/<session>.json`: what hooks remember about a session from one event to the next. The file is its own
//! lock and is written in place, without fsync: losing it only causes a repeated reminder.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::fs::{self, Durability};
use tanmi_base::lock::{Lock, LockError};
use tanmi_base::{Millis, id};

use crate::process::{ClientProcess, is_running};
use crate::{Error, Result, check_session, ledger};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionState {
    pub session: String,
    pub platform: String,
    /// Hash of the context that was last injected.
    #[serde(skip_serializing_if = "Option::is_none", rename = "seen")]
    pub seen_context: Option<String>,
    /// The rules that were last injected; `None` if they are too long to keep.
    #[serde(skip_serializing_if = "Option::is_none", rename = "rules")]
    pub told_rules: Option<Vec<String>>,
    /// Hash of the problem that was last injected in full.
    #[serde(skip_serializing_if = "Option::is_none", rename = "problem")]
    pub told_problem: Option<String>,
    /// Hash of the declared context that was last injected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// Hash of what was last injected about each node that had the focus.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, String>,
    /// Number of prompts since the last session start.
    pub prompts: u32,
    /// Number of prompts in the whole session.
    #[serde(skip_serializing_if = "is_zero", rename = "allPrompts")]
    pub total_prompts: u32,
    /// When the session started, or was first seen.
    pub started_at: Millis,
    /// Number of prompts since the session saved a summary.
    #[serde(skip_serializing_if = "is_zero", rename = "newPrompts")]
    pub prompts_since_summary: u32,
    /// Number of nodes that the session completed since it saved a summary.
    #[serde(skip_serializing_if = "is_zero", rename = "newCompleted")]
    pub completed_since_summary: u32,
    /// When a summary was last requested from the agent.
    #[serde(skip_serializing_if = "Option::is_none", rename = "askedAt")]
    pub summary_requested_at: Option<Millis>,
    /// The session created nodes or was bound to a plan without started work, and since then neither started a node nor was
    /// told to show the plan to the user.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "plan")]
    pub has_unconfirmed_plan: bool,
    /// What the session did since its last summary, the latest call last. Lines, so that a prompt does not parse them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The session saved a summary since it started or was resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "summary")]
    pub has_summary: bool,
    /// The projects of these summaries. Empty if an older version saved the summary.
    #[serde(skip_serializing_if = "Vec::is_empty", rename = "summaryOf")]
    pub summarized_projects: Vec<String>,
    /// The client ended the session.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "ended")]
    pub has_ended: bool,
    /// The last digest of another session that was injected.
    #[serde(skip_serializing_if = "Option::is_none", rename = "digest")]
    pub told_digest: Option<String>,
    /// Claims of the session that others ended, and that it was not told of yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_claims: Vec<LostClaim>,
    /// Writes of the session that waited for the server of a team and were refused, and that it was not told of yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused_writes: Vec<RefusedWrite>,
    /// The result of a bind told the agent what is in progress and next, and the context was not injected since.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "overview")]
    pub told_overview: bool,
    /// A binding hint told what is in progress in the latest workspace, and the session still knows it.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "latest")]
    pub told_latest: bool,
    /// The client compacted the conversation since the context was last injected.
    pub compacted: bool,
    /// The user unbound the session.
    #[serde(rename = "unbound")]
    pub was_unbound_by_user: bool,
    /// When each kind of hook last ran, since the last session start or bind.
    pub hooks: BTreeMap<String, Millis>,
    /// When each throttled type of text was last injected.
    #[serde(rename = "said")]
    pub last_injected: BTreeMap<String, Millis>,
    /// The reminder that was last injected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reminder: Option<LastReminder>,
    /// Which platform's hook handled each kind of event last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", rename = "claims")]
    pub handled_events: BTreeMap<String, HandledEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientProcess>,
    /// The MCP server whose connection is the session, if the client has no hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ClientProcess>,
    /// Time of the last activity.
    pub alive_at: Millis,
}

/// The most lost claims that a session is told of at once.
const MAX_LOST: usize = 20;

impl SessionState {
    /// Notes a lost claim, or one that is back, for the next prompt.
    pub fn add_lost_claim(&mut self, lost: LostClaim) {
        self.lost_claims.retain(|known| known.node != lost.node);
        self.lost_claims.push(lost);
        self.lost_claims.drain(..self.lost_claims.len().saturating_sub(MAX_LOST));
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A claim on a node that ended without its session, or that is back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LostClaim {
    pub node: String,
    pub title: String,
    /// The session, or the person and the machine, that ended it. `@person` is the user; empty if it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Whether another session holds the node now.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "taken")]
    pub is_taken: bool,
    /// Whether the node was deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "deleted")]
    pub is_deleted: bool,
    /// Whether the deleted node was restored, so that the session holds it again.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "restored")]
    pub is_restored: bool,
}

/// A write that waited for the server of a team, which then refused it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedWrite {
    /// The id of its entry in the outbox.
    pub id: String,
    pub text: String,
    pub reason: String,
}

/// A reminder that was injected, with the fields of the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastReminder {
    /// The type of the reminder, such as `log_timeout`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(rename = "time")]
    pub at: Millis,
}

/// The hook that handled an event. One event of a client can arrive twice if the client also runs the hooks in
/// the settings of another client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandledEvent {
    /// The platform in the installed hook command.
    pub via: String,
    /// The prompt id or the id of the subagent, where the client sends one.
    #[serde(skip_serializing_if = "Option::is_none", rename = "prompt")]
    pub event_id: Option<String>,
    pub at: Millis,
}

/// Upper limit for reading a state file; a real one has a few hundred bytes.
const MAX_BYTES: u64 = 1 << 20;
/// The number of sessions that are remembered per project.
const MAX_PROJECT_SESSIONS: usize = 8;

/// The maximum number of sessions in a search, which delays the start of a server.
const MAX_SEARCHED: usize = 512;

pub struct States {
    dir: PathBuf,
}

/// The state of a session under its lock. Changes are lost unless they are saved.
pub struct LockedState {
    pub state: SessionState,
    path: PathBuf,
    lock: Lock,
    /// The length of the file.
    length: usize,
}

impl LockedState {
    /// Writes the state and releases the lock.
    pub fn save(self) -> Result<()> {
        let Some(mut file) = self.lock.file() else { return Err(Error::busy(&self.path)) };
        let mut text = serde_json::to_vec(&self.state).unwrap_or_default();
        // Write once in place, padded to at least the previous length, so that no reader sees a partial file.
        text.resize(text.len().max(self.length), b' ');
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&text));
        written.map_err(Error::io(&self.path))
    }
}

impl States {
    pub fn new(home: &Path) -> States {
        States { dir: home.join("state") }
    }

    fn path(&self, session: &str) -> PathBuf {
        self.dir.join(format!("{}.json", id::safe_name(session)))
    }

    /// Returns the state of a session. A missing or unreadable file gives an empty state.
    pub fn read(&self, session: &str) -> SessionState {
        parse(&fs::read_optional(&self.path(session)).ok().flatten().unwrap_or_default(), session)
    }

    /// Returns whether a session has a state.
    pub fn exists(&self, session: &str) -> bool {
        self.path(session).exists()
    }

    /// Changes the state under its lock. Returns the result of `change`.
    pub fn update<T>(&self, session: &str, change: impl FnOnce(&mut SessionState) -> T) -> Result<T> {
        let mut locked = self.lock(session)?;
        let outcome = change(&mut locked.state);
        locked.save()?;
        Ok(outcome)
    }

    /// Locks the state of a session and reads it.
    pub fn lock(&self, session: &str) -> Result<LockedState> {
        check_session(session)?;
        let path = self.path(session);
        let lock = match Lock::exclusive(&path) {
            // Create the folder only when it is missing: this runs on every prompt.
            Err(LockError::Io { source, .. }) if fs::is_absent(&source) => {
                fs::create_private_dir(&self.dir).map_err(Error::io(&self.dir))?;
                Lock::exclusive(&path)?
            }
            other => other?,
        };
        let Some(mut file) = lock.file() else { return Err(Error::busy(&path)) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::io(&path))?;
        Ok(LockedState { state: parse(&bytes, session), path, lock, length: bytes.len() })
    }

    fn client_path(&self, client: &ClientProcess) -> PathBuf {
        self.dir.join(format!("client-{}-{}", client.pid, client.started))
    }

    fn project_path(&self, project: &str) -> PathBuf {
        self.dir.join(format!("project-{project}"))
    }

    /// Records that a session runs in this client process; the latest session comes last. Writes only on a
    /// change.
    pub fn register(&self, client: &ClientProcess, session: &str) -> Result<()> {
        self.add_last(&self.client_path(client), session, usize::MAX)
    }

    /// Records that a session worked in this project; the latest session comes last. Writes only on a change.
    pub fn register_in_project(&self, project: &str, session: &str) -> Result<()> {
        self.add_last(&self.project_path(project), session, MAX_PROJECT_SESSIONS)
    }

    /// Puts a session at the end of the list at `path`, and drops the first sessions if there are more than `max`.
    fn add_last(&self, path: &Path, session: &str, max: usize) -> Result<()> {
        if session_ids(path).last().is_some_and(|last| last == session) {
            return Ok(());
        }
        fs::create_private_dir(&self.dir).map_err(Error::io(&self.dir))?;
        let _lock = Lock::exclusive(&self.dir.join("clients.lock"))?;
        let mut known = session_ids(path);
        known.retain(|other| other != session);
        known.push(session.to_owned());
        known.drain(..known.len().saturating_sub(max));
        let text = serde_json::to_vec(&known).unwrap_or_default();
        fs::replace_private(path, &text, &self.dir, Durability::Journaled).map_err(Error::io(path))
    }

    fn session_ids_of_client(&self, client: &ClientProcess) -> Vec<String> {
        session_ids(&self.client_path(client))
    }

    /// Returns the ids of the sessions that last worked in this project, the latest first.
    pub fn sessions_of_project(&self, project: &str) -> Vec<String> {
        let mut ids = session_ids(&self.project_path(project));
        ids.reverse();
        ids
    }

    /// Returns the id of the session whose hooks ran last in this client process.
    pub fn latest_session_of_client(&self, client: &ClientProcess) -> Option<String> {
        self.session_ids_of_client(client).pop()
    }

    /// Returns the sessions whose hooks ran in this client process, the latest first.
    pub fn sessions_of_client(&self, client: &ClientProcess) -> Vec<SessionState> {
        self.session_ids_of_client(client).iter().rev().map(|session| self.read(session)).collect()
    }

    /// Returns the latest activity with its platform, the unreadable files that have not changed since `settled`,
    /// and the number of sessions without activity since `old`.
    pub fn summarize(&self, old: Millis, settled: Millis) -> (Option<(Millis, String)>, Vec<PathBuf>, usize) {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let (mut latest, mut damaged, mut inactive) = (None, Vec::new(), 0);
        for path in files.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let read = fs::read_limited(&path, MAX_BYTES).ok().flatten();
            match read.and_then(|bytes| serde_json::from_slice::<SessionState>(&bytes).ok()) {
                None if modified_at(&path) < settled => damaged.push(path),
                None => {}
                Some(state) => {
                    inactive += usize::from(state.alive_at < old);
                    latest = latest
                        .max(Some((state.alive_at, state.platform)).filter(|(_, name)| !name.is_empty()));
                }
            }
        }
        (latest, damaged, inactive)
    }

    /// Returns the state of every session that has not been pruned.
    pub fn all(&self) -> Vec<SessionState> {
        self.iter().collect()
    }

    fn iter(&self) -> impl Iterator<Item = SessionState> {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let state = |path: PathBuf| {
            serde_json::from_slice::<SessionState>(&fs::read_limited(&path, MAX_BYTES).ok()??).ok()
        };
        files.filter_map(state).filter(|state| !state.session.is_empty())
    }

    /// Returns whether a hook of a platform handled an event since then. Looks at no more than
    /// [`MAX_SEARCHED`] sessions.
    pub fn has_hook_since(&self, platform: &str, since: Millis) -> bool {
        let has_hook = |state: SessionState| {
            state.platform == platform && state.handled_events.values().any(|event| event.at >= since)
        };
        self.iter().take(MAX_SEARCHED).any(has_hook)
    }

    /// Returns whether a session was active since `before`, or is the latest one of a client that still runs.
    pub fn is_active(&self, session: &str, before: Millis) -> bool {
        self.was_active(&self.read(session), before)
    }

    fn was_active(&self, state: &SessionState, before: Millis) -> bool {
        let is_open = |client: &ClientProcess| {
            self.latest_session_of_client(client).as_ref() == Some(&state.session) && is_running(client)
        };
        state.alive_at >= before || state.client.as_ref().is_some_and(is_open)
    }

    /// Removes the states of sessions that are not active ([`States::is_active`]) and the files of ended
    /// clients and of projects. Looks at no more than `limit` files; every file has its turn as the days go
    /// by. Returns the number of removed states.
    pub fn prune(&self, before: Millis, limit: usize) -> usize {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
        ledger::choose_window(&mut names, before, limit);
        let mut removed = 0;
        for name in names {
            let path = self.dir.join(&name);
            if let Some(client) = name.strip_prefix("client-") {
                if modified_at(&path) < before && !parse_client(client).is_some_and(|it| is_running(&it)) {
                    let _ = std::fs::remove_file(&path);
                }
            } else if name.starts_with("project-") && !name.ends_with(".json") {
                if modified_at(&path) < before {
                    let _ = std::fs::remove_file(&path);
                }
            } else if name.ends_with(".json") {
                let read = fs::read_limited(&path, MAX_BYTES).ok().flatten();
                let state = read.and_then(|bytes| serde_json::from_slice::<SessionState>(&bytes).ok());
                // An unreadable file may be about to be written, so its modification time counts.
                let is_kept = state
                    .map_or_else(|| modified_at(&path) >= before, |state| self.was_active(&state, before));
                removed += usize::from(!is_kept && std::fs::remove_file(&path).is_ok());
            }
        }
        removed
    }
}

/// Returns the sessions in the list at `path`.
fn session_ids(path: &Path) -> Vec<String> {
    let read = fs::read_optional(path).ok().flatten();
    read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Parses the end of the name of a client file: the pid and the start time.
fn parse_client(name: &str) -> Option<ClientProcess> {
    let (pid, started) = name.split_once('-')?;
    Some(ClientProcess { pid: pid.parse().ok()?, started: started.parse().ok()? })
}

fn modified_at(path: &Path) -> Millis {
    fs::FileSig::of(path).ok().flatten().map_or(0, |sig| sig.mtime_ns / 1_000_000)
}

fn parse(bytes: &[u8], session: &str) -> SessionState {
    let state = serde_json::from_slice::<SessionState>(bytes).ok();
    // Two session ids never share a file, but the file may have been put there by another program.
    state
        .filter(|state| state.session == session)
        .unwrap_or_else(|| SessionState { session: session.to_owned(), ..SessionState::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_hostile_session_ids_have_separate_files_in_folder() {
        let home = tempfile::tempdir().unwrap();
        let states = States::new(home.path());
        for session in ["a", "A", "../../../etc/x", "会话", "a/b"] {
            states.update(session, |state| state.prompts += 1).unwrap();
            states.update(session, |state| state.prompts += 1).unwrap();
            assert_eq!((states.read(session).prompts, states.read(session).session.as_str()), (2, session));
        }
        let files = std::fs::read_dir(home.path().join("state")).unwrap().flatten();
        assert_eq!(files.filter(|file| file.path().extension().is_some_and(|end| end == "json")).count(), 5);
        assert!(states.update("", |_| ()).is_err());
    }

    #[test]
    fn read_damaged_file_is_empty_state() {
        let home = tempfile::tempdir().unwrap();
        let states = States::new(home.path());
        states.update("a", |state| state.prompts = 7).unwrap();
        let path = home.path().join("state/a.json");
        fs::write_atomic(&path, b"{", home.path(), Durability::Journaled).unwrap();
        assert_eq!(states.read("a").prompts, 0);
        states.update("a", |state| state.prompts += 1).unwrap();
        assert_eq!(states.read("a").prompts, 1);
    }

    #[test]
    fn has_hook_since_other_platform_or_earlier_is_false() {
        let home = tempfile::tempdir().unwrap();
        let states = States::new(home.path());
        let handled = HandledEvent { via: String::from("x"), event_id: None, at: 10 };
        let change = |state: &mut SessionState| {
            state.platform = String::from("x");
            state.handled_events.insert(String::from("session_start"), handled);
        };
        states.update("a", change).unwrap();
        // Activity of the session itself is not a hook.
        states.update("a", |state| state.alive_at = 99).unwrap();
        assert!(states.has_hook_since("x", 10));
        assert!(!states.has_hook_since("x", 11) && !states.has_hook_since("y", 10));
    }

    #[test]
    fn sessions_of_project_are_bounded_and_pruned() {
        let home = tempfile::tempdir().unwrap();
        let states = States::new(home.path());
        (0..10).for_each(|n| states.register_in_project("p", &format!("s{n}")).unwrap());
        states.register_in_project("p", "s5").unwrap();
        assert_eq!(states.sessions_of_project("p"), ["s5", "s9", "s8", "s7", "s6", "s4", "s3", "s2"]);
        assert!(states.sessions_of_project("q").is_empty());
        states.update("project-p", |state| state.alive_at = Millis::MAX).unwrap();
        states.prune(1, 100);
        assert_eq!(states.sessions_of_project("p").len(), 8);
        states.prune(Millis::MAX, 100);
        assert!(states.sessions_of_project("p").is_empty());
        assert_eq!(states.read("project-p").alive_at, Millis::MAX, "a session, not a list");
    }

    #[test]
    fn of_client_returns_latest_session_first() {
        let home = tempfile::tempdir().unwrap();
        let states = States::new(home.path());
        let client = |pid| Some(ClientProcess { pid, started: 5 });
        for (session, pid, alive) in [("a", 1, 10), ("b", 2, 20), ("c", 1, 30)] {
            states.update(session, |state| (state.client, state.alive_at) = (client(pid), alive)).unwrap();
            states.register(&client(pid).unwrap(), session).unwrap();
        }
        let ids: Vec<String> =
            states.sessions_of_client(&client(1).unwrap()).into_iter().map(|s| s.session).collect();
        assert_eq!(ids, ["c", "a"]);
        assert!(
            states.sessions_of_client(&ClientProcess { pid: 1, started: 6 }).is_empty(),
            "another process with the same pid"
        );
        assert_eq!(states.prune(15, 100), 1);
    }
}
