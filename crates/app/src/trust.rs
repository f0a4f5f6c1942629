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
pub struct TrustFile {
    pub projects: BTreeMap<String, TrustedProject>,
    /// By the digest of their content.
    pub rules: BTreeMap<String, TrustedRules>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustedProject {
    pub at: Millis,
    /// `created` here, or `trusted` by the person.
    pub how: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustedRules {
    pub at: Millis,
    /// Where it was when it was agreed to.
    pub path: String,
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
    pub fn load(&self) -> TrustFile {
        let bytes = fs::read_optional(&self.path()).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Whether this very content was agreed to.
    pub fn has_rules(&self, bytes: &[u8]) -> bool {
        self.load().rules.contains_key(&hash::sha256_hex(bytes))
    }

    pub fn add_rules(&self, path: &Path, bytes: &[u8], now: Millis) -> Result<()> {
        let entry = TrustedRules { at: now, path: path.display().to_string() };
        self.edit(|file| {
            file.rules.insert(hash::sha256_hex(bytes), entry);
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
            file.rules.retain(|_, rules| !Path::new(&rules.path).starts_with(&inside));
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
        let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
        text.push('\n');
        fs::write_private(&path, text.as_bytes()).map_err(Error::io(&path))
    }
}

/// One name for one folder, whatever way leads to it.
fn key(project: &Path) -> String {
    project.canonicalize().unwrap_or_else(|_| project.to_owned()).display().to_string()
}
