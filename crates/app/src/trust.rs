//! What the person has agreed to: projects whose own texts may reach a model, and rules files by their very content.
//!
//! `trust.json` in the home store. A project that this machine created is trusted; one that came from elsewhere is not,
//! until somebody says so.

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
    /// By where they are.
    pub rules: BTreeMap<String, TrustedRules>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrustedProject {
    pub at: Millis,
    /// `created` here, or `trusted` by the person.
    pub how: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrustedRules {
    pub at: Millis,
    /// Digest of the content that was agreed to.
    pub sha256: String,
}

pub struct Trust {
    home: PathBuf,
}

impl Trust {
    pub fn new(home: &Path) -> Trust {
        Trust { home: home.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.home.join("trust.json")
    }

    /// A file that cannot be read means that nothing is trusted.
    fn load(&self) -> TrustFile {
        let bytes = fs::read_optional(&self.path()).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Whether this very content was agreed to, in this very place.
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

    /// The project, and every rules file that was agreed to inside it.
    pub fn remove_project(&self, project: &Path) -> Result<bool> {
        let inside = key(project);
        let mut removed = false;
        self.edit(|file| {
            removed = file.projects.remove(&inside).is_some();
            let before = file.rules.len();
            file.rules.retain(|path, _| !Path::new(path).starts_with(&inside));
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
            // What somebody agreed to is not thrown away because of a slip of the pen.
            return Err(Error::BadFile { path, line: error.line(), reason: error.to_string() });
        }
        let mut file = self.load();
        change(&mut file);
        file.version = 1;
        let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
        text.push('\n');
        fs::write_private(&path, text.as_bytes()).map_err(Error::io(&path))
    }
}

/// One name for one place, whatever way leads to it.
fn key(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
