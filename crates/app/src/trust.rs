//! Trust: the projects whose texts may be injected, and the rules files that may run, each identified by path and
//! content.
//!
//! Stored in `trust.json` in the home store. A project that was created on this machine is trusted. Another project
//! is trusted only after the user confirms it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, fs, hash};

use crate::error::{Error, Result};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct TrustFile {
    version: u32,
    pub projects: BTreeMap<String, TrustedProject>,
    /// By path.
    pub rules: BTreeMap<String, TrustedRules>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrustedProject {
    pub at: Millis,
    /// `created` on this machine, or `trusted` by the user.
    pub how: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrustedRules {
    pub at: Millis,
    /// Hash of the trusted content.
    pub sha256: String,
}

pub struct Trust {
    home: PathBuf,
}

impl Trust {
    pub fn new(home: &Path) -> Trust {
        Trust { home: home.to_owned() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.join("trust.json")
    }

    /// A file that cannot be read means that nothing is trusted.
    fn load(&self) -> TrustFile {
        let bytes = fs::read_optional(&self.path()).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Returns whether this content is trusted at this path.
    pub fn has_rules(&self, path: &Path, bytes: &[u8]) -> bool {
        let file = self.load();
        file.rules.get(&key(path)).is_some_and(|trusted| trusted.sha256 == hash::sha256_hex(bytes))
    }

    pub fn add_rules(&self, path: &Path, bytes: &[u8], now: Millis) -> Result<()> {
        let entry = TrustedRules { at: now, sha256: hash::sha256_hex(bytes) };
        self.edit(|file| {
            file.rules.insert(key(path), entry);
        })
    }

    pub fn add_project(&self, project: &Path, how: &str, now: Millis) -> Result<()> {
        let entry = TrustedProject { at: now, how: how.to_owned() };
        self.edit(|file| {
            file.projects.insert(key(project), entry);
        })
    }

    /// Removes trust from a project and from every rules file inside it. Returns whether there was any.
    pub fn remove_project(&self, project: &Path) -> Result<bool> {
        let project = key(project);
        let mut removed = false;
        self.edit(|file| {
            removed = file.projects.remove(&project).is_some();
            let before = file.rules.len();
            file.rules.retain(|path, _| !Path::new(path).starts_with(&project));
            removed |= file.rules.len() != before;
        })?;
        Ok(removed)
    }

    pub fn has_project(&self, project: &Path) -> bool {
        self.load().projects.contains_key(&key(project))
    }

    fn edit(&self, change: impl FnOnce(&mut TrustFile)) -> Result<()> {
        fs::create_private_dir(&self.home).map_err(Error::io(&self.home))?;
        let _lock = Lock::exclusive(&self.home.join("trust.lock")).map_err(tanmi_workspace::Error::from)?;
        let path = self.path();
        if let Some(bytes) = fs::read_optional(&path).map_err(Error::io(&path))?
            && let Err(error) = serde_json::from_slice::<TrustFile>(&bytes)
        {
            // A file with a typo is not overwritten: the recorded trust would be lost.
            let reason = crate::config::malformed_json(&error);
            return Err(Error::BadFile { path, line: error.line(), reason });
        }
        let mut file = self.load();
        change(&mut file);
        file.version = 1;
        let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
        text.push('\n');
        fs::write_private(&path, text.as_bytes()).map_err(Error::io(&path))
    }
}

/// Returns the key of a path. Different paths to the same place have the same key.
fn key(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
