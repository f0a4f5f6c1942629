//! `state/<session>.json`: what hooks remember of a session from one event to the next. The file is its own lock and is
//! written in place, without fsync: losing it costs a repeated reminder.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::fs::{self, Durability};
use tanmi_base::lock::{Lock, LockError};
use tanmi_base::{Millis, id};

use crate::process::ClientProcess;
use crate::{Error, Result, check_session};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionState {
    pub session: String,
    pub platform: String,
    /// Hash of the context that was last told.
    #[serde(skip_serializing_if = "Option::is_none", rename = "seen")]
    pub seen_context: Option<String>,
    /// Which declared context it was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// What it was last told of each node that was in its focus.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, String>,
    /// Prompts since the last start.
    pub prompts: u32,
    /// Prompts, saved facts and steps of nodes in all, and whether a summary was saved or asked for.
    #[serde(skip_serializing_if = "is_zero", rename = "allPrompts")]
    pub total_prompts: u32,
    #[serde(skip_serializing_if = "is_zero", rename = "saves")]
    pub saved_facts: u32,
    #[serde(skip_serializing_if = "is_zero", rename = "steps")]
    pub transitions: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub summarized: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "asked")]
    pub summary_requested: bool,
    /// The context was compacted away since it was told.
    pub compacted: bool,
    /// The person took the session off its workspace.
    pub unbound: bool,
    /// When each kind of hook was last seen, since the last start and bind.
    pub hooks: BTreeMap<String, Millis>,
    /// When each throttled thing was last said.
    #[serde(rename = "said")]
    pub last_injected: BTreeMap<String, Millis>,
    /// Who answered each kind of event last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, EventClaim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientProcess>,
    /// The last sign of life.
    pub alive_at: Millis,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One event of a client can reach us twice, where it also runs the hooks of another client's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventClaim {
    /// The platform that the installed command names.
    pub via: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    pub at: Millis,
}

/// A state has a few hundred bytes.
const MAX_BYTES: u64 = 1 << 20;

pub struct States {
    dir: PathBuf,
}

impl States {
    pub fn new(home: &Path) -> States {
        States { dir: home.join("state") }
    }

    fn path(&self, session: &str) -> PathBuf {
        self.dir.join(format!("{}.json", id::safe_name(session)))
    }

    /// What is known; nothing, if nothing is or the file cannot be read.
    pub fn read(&self, session: &str) -> SessionState {
        parse(&fs::read_optional(&self.path(session)).ok().flatten().unwrap_or_default(), session)
    }

    /// Changes the state under its lock and says what `change` says.
    pub fn update<T>(&self, session: &str, change: impl FnOnce(&mut SessionState) -> T) -> Result<T> {
        check_session(session)?;
        let path = self.path(session);
        let lock = match Lock::exclusive(&path) {
            // Made only when it is missing: this runs on every prompt.
            Err(LockError::Io { source, .. }) if fs::is_absent(&source) => {
                fs::create_private_dir(&self.dir).map_err(Error::io(&self.dir))?;
                Lock::exclusive(&path)?
            }
            other => other?,
        };
        let Some(mut file) = lock.file() else { return Err(Error::Busy { path }) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::io(&path))?;
        let mut state = parse(&bytes, session);
        let outcome = change(&mut state);
        let mut text = serde_json::to_vec(&state).unwrap_or_default();
        // One write in place, never shorter than what was there: no moment in which the file is half of something.
        text.resize(text.len().max(bytes.len()), b' ');
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&text));
        written.map_err(Error::io(&path))?;
        Ok(outcome)
    }

    fn client_path(&self, client: &ClientProcess) -> PathBuf {
        self.dir.join(format!("client-{}-{}", client.pid, client.started))
    }

    /// Remembers that a session lives in this client process; the latest stands last. Written only when it is news.
    pub fn register(&self, client: &ClientProcess, session: &str) -> Result<()> {
        let path = self.client_path(client);
        let is_last = |known: &[String]| known.last().is_some_and(|last| last == session);
        if is_last(&self.registered(client)) {
            return Ok(());
        }
        fs::create_private_dir(&self.dir).map_err(Error::io(&self.dir))?;
        let _lock = Lock::exclusive(&self.dir.join("clients.lock"))?;
        let mut known = self.registered(client);
        known.retain(|other| other != session);
        known.push(session.to_owned());
        let text = serde_json::to_vec(&known).unwrap_or_default();
        fs::write_atomic(&path, &text, &self.dir, Durability::Journaled).map(|_| ()).map_err(Error::io(&path))
    }

    fn registered(&self, client: &ClientProcess) -> Vec<String> {
        let read = fs::read_optional(&self.client_path(client)).ok().flatten();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// The sessions whose hooks were seen in this client process, the latest first.
    pub fn of_client(&self, client: &ClientProcess) -> Vec<SessionState> {
        self.registered(client).iter().rev().map(|session| self.read(session)).collect()
    }

    /// The latest sign of life and whose it was, the files that cannot be read and have not changed since `settled`, and
    /// how many sessions have shown no sign of life since `old`.
    pub fn summarize(&self, old: Millis, settled: Millis) -> (Option<(Millis, String)>, Vec<PathBuf>, usize) {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let (mut latest, mut broken, mut over) = (None, Vec::new(), 0);
        for path in files.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let read = fs::read_limited(&path, MAX_BYTES).ok().flatten();
            match read.and_then(|bytes| serde_json::from_slice::<SessionState>(&bytes).ok()) {
                None if modified(&path) < settled => broken.push(path),
                None => {}
                Some(state) => {
                    over += usize::from(state.alive_at < old);
                    latest = latest
                        .max(Some((state.alive_at, state.platform)).filter(|(_, name)| !name.is_empty()));
                }
            }
        }
        (latest, broken, over)
    }

    /// Every session that was ever heard of and not pruned since.
    pub fn all(&self) -> Vec<SessionState> {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let state = |path: PathBuf| {
            serde_json::from_slice::<SessionState>(&fs::read_limited(&path, MAX_BYTES).ok()??).ok()
        };
        files.filter_map(state).filter(|state| !state.session.is_empty()).collect()
    }

    /// Removes what has shown no sign of life since `before`.
    pub fn prune(&self, before: Millis) -> usize {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut removed = 0;
        for path in files.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let read = fs::read_limited(&path, MAX_BYTES).ok().flatten();
            let state = read.and_then(|bytes| serde_json::from_slice::<SessionState>(&bytes).ok());
            // One that cannot be read may be in the making.
            let alive_at = state.map_or_else(|| modified(&path), |state| state.alive_at);
            if alive_at < before {
                removed += usize::from(std::fs::remove_file(&path).is_ok());
            }
        }
        let clients = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        for entry in clients.filter(|entry| entry.file_name().to_string_lossy().starts_with("client-")) {
            if modified(&entry.path()) < before {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        removed
    }
}

fn modified(path: &Path) -> Millis {
    fs::FileSig::of(path).ok().flatten().map_or(0, |sig| sig.mtime_ns / 1_000_000)
}

fn parse(bytes: &[u8], session: &str) -> SessionState {
    let state = serde_json::from_slice::<SessionState>(bytes).ok();
    // Two ids never share a file, but a file may be anybody's.
    state
        .filter(|state| state.session == session)
        .unwrap_or_else(|| SessionState { session: session.to_owned(), ..SessionState::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_apart_and_stay_in_their_folder() {
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
    fn a_broken_state_is_an_empty_one() {
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
    fn sessions_are_found_by_their_client() {
        let home = tempfile::tempdir().unwrap();
        let states = States::new(home.path());
        let client = |pid| Some(ClientProcess { pid, started: 5 });
        for (session, pid, alive) in [("a", 1, 10), ("b", 2, 20), ("c", 1, 30)] {
            states.update(session, |state| (state.client, state.alive_at) = (client(pid), alive)).unwrap();
            states.register(&client(pid).unwrap(), session).unwrap();
        }
        let ids: Vec<String> = states.of_client(&client(1).unwrap()).into_iter().map(|s| s.session).collect();
        assert_eq!(ids, ["c", "a"]);
        assert!(
            states.of_client(&ClientProcess { pid: 1, started: 6 }).is_empty(),
            "another process of that number"
        );
        assert_eq!(states.prune(15), 1);
    }
}
