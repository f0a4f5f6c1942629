//! What this machine knows about a server besides the data: the last contact, keys of commands whose answer
//! was lost, and the numbers of claims. In `state.json` beside the replica, for all processes; it can be
//! deleted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tanmi_base::fs::{self, Durability};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, hash};

/// How long the key of a lost command is used again.
const KEY_FOR: Millis = 10 * 60 * 1000;
/// The most keys and claims that are kept.
const MAX_KEYS: usize = 200;
const MAX_CLAIMS: usize = 1000;
/// Contacts closer than this are not recorded one by one.
const CONTACT_STEP: Millis = 1000;

/// The key of a command whose answer was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LostKey {
    digest: String,
    key: String,
    at: Millis,
}

/// The content of `state.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaState {
    /// When the server last answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_at: Option<Millis>,
    /// When no connection could be made, if that was after the last contact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Millis>,
    /// How far the clock of the server is ahead of ours.
    pub skew: Millis,
    /// The history of the database that the workspaces of the replica are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// The same for the shared memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_history: Option<String>,
    /// The workspaces whose last changes could not be applied to the replica, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failing: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<LostKey>,
    /// The number of the claim by workspace, node and session.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    claims: BTreeMap<String, i64>,
    /// Those of the claims that their session was told to have lost.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    told_claims: BTreeMap<String, i64>,
    /// Keys of newer versions are kept.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl ReplicaState {
    /// Records that the server answered.
    pub fn note_contact(&mut self, now: Millis) {
        self.failed_at = None;
        if self.contact_at.is_none_or(|at| (now - at).abs() >= CONTACT_STEP) {
            self.contact_at = Some(now);
        }
    }

    /// Returns the key of the same command whose answer was lost a short time ago.
    pub fn lost_key(&self, digest: &str, now: Millis) -> Option<&str> {
        let is_same = |lost: &&LostKey| lost.digest == digest && (now - lost.at).abs() <= KEY_FOR;
        self.keys.iter().find(is_same).map(|lost| lost.key.as_str())
    }

    pub fn keep_key(&mut self, digest: &str, key: &str, now: Millis) {
        self.forget_key(digest);
        self.keys.retain(|lost| (now - lost.at).abs() <= KEY_FOR);
        self.keys.push(LostKey { digest: digest.to_owned(), key: key.to_owned(), at: now });
        let excess = self.keys.len().saturating_sub(MAX_KEYS);
        self.keys.drain(..excess);
    }

    pub fn forget_key(&mut self, digest: &str) {
        self.keys.retain(|lost| lost.digest != digest);
    }

    pub fn claim(&self, claim: &str) -> Option<i64> {
        self.claims.get(claim).copied()
    }

    /// Returns the claims that were not told to be lost, with their numbers.
    pub fn untold_claims(&self) -> impl Iterator<Item = (&str, i64)> {
        let is_untold = |claim: &(&String, &i64)| self.told_claims.get(claim.0) != Some(claim.1);
        self.claims.iter().filter(is_untold).map(|(claim, fence)| (claim.as_str(), *fence))
    }

    /// Records that the session of a claim was told that it is lost.
    pub fn set_claim_told(&mut self, claim: &str, fence: i64) {
        self.told_claims.insert(claim.to_owned(), fence);
    }

    /// Records the number of a claim; `None` if it ended.
    pub fn set_claim(&mut self, claim: &str, fence: Option<i64>) {
        match fence {
            Some(fence) => {
                self.claims.remove(claim);
                self.make_room_for_claim();
                self.claims.insert(claim.to_owned(), fence);
            }
            None => {
                self.claims.remove(claim);
                self.told_claims.remove(claim);
            }
        }
    }

    /// Forgets claims if there are too many: first those whose session knows that they are lost, then those
    /// with the lowest numbers.
    fn make_room_for_claim(&mut self) {
        if self.claims.len() < MAX_CLAIMS {
            return;
        }
        let told = std::mem::take(&mut self.told_claims);
        self.claims.retain(|claim, fence| told.get(claim) != Some(fence));
        while self.claims.len() >= MAX_CLAIMS {
            let lowest = self.claims.iter().min_by_key(|(_, fence)| **fence).map(|(claim, _)| claim.clone());
            lowest.and_then(|claim| self.claims.remove(&claim));
        }
    }
}

/// Returns a digest of a request without its key.
pub fn digest_of(request: &impl Serialize) -> String {
    let mut value = serde_json::to_value(request).unwrap_or_default();
    value["key"] = Value::Null;
    hash::sha256_hex(value.to_string().as_bytes())
}

/// The file `state.json` of a replica.
pub struct StateFile {
    folder: PathBuf,
}

impl StateFile {
    /// `folder` is that of the replica.
    pub fn new(folder: &Path) -> StateFile {
        StateFile { folder: folder.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    /// Returns the state; a missing or damaged one counts as empty.
    pub fn read(&self) -> ReplicaState {
        let bytes = fs::read_optional(&self.path()).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Changes the state. Writes only if something changed. Errors are ignored: without the file every call
    /// tries to connect, and a repeated command has a new key.
    pub fn update(&self, change: impl FnOnce(&mut ReplicaState)) {
        let write = || {
            fs::create_private_dir(&self.folder)?;
            let _lock = Lock::exclusive(&self.folder.join("state.lock")).map_err(std::io::Error::other)?;
            let before = self.read();
            let mut state = before.clone();
            change(&mut state);
            if state != before {
                let text = serde_json::to_vec_pretty(&state)?;
                fs::replace_private(&self.path(), &text, &self.folder, Durability::Journaled)?;
            }
            Ok::<(), std::io::Error>(())
        };
        let _ = write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_beyond_limit_are_forgotten_told_ones_first_and_then_the_lowest() {
        let mut state = ReplicaState::default();
        for fence in 0..MAX_CLAIMS as i64 {
            state.set_claim(&format!("claim-{fence}"), Some(fence));
        }
        state.set_claim_told("claim-500", 500);
        state.set_claim("next", Some(2000));
        assert_eq!((state.claim("claim-500"), state.claim("claim-0")), (None, Some(0)));
        state.set_claim("last", Some(2001));
        assert_eq!((state.claim("claim-0"), state.claim("claim-1")), (None, Some(1)));
        assert_eq!((state.claim("next"), state.claim("last")), (Some(2000), Some(2001)));
        assert_eq!((state.claims.len(), state.told_claims.len()), (MAX_CLAIMS, 0));
    }
}
