//! Install receipts: which files were written and what they contained before, so that an uninstall restores every byte.
//!
//! Stored as `install/receipts.json` in the home store, next to copies of the original files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::{Millis, fs, hash};
use tanmi_platform::ClientSpec;

use crate::plan::{ConfigPart, OriginalContent, TargetFile};
use crate::{Error, Result};

const VERSION: u32 = 1;

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    version: u32,
    files: BTreeMap<String, Receipt>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The file name of the copy of the original file; `None` if there was no file.
    before: Option<String>,
    /// The digest of the original file.
    #[serde(default)]
    before_digest: Option<String>,
    /// The digest of the content that was written.
    after: String,
    /// Folders that were created for the file.
    #[serde(default)]
    folders: Vec<PathBuf>,
    pub agent: String,
    /// Whether our hooks were written to the file.
    #[serde(default)]
    hooks: bool,
    /// Whether an installation added the permission for our tools. `None` in receipts of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permission: Option<bool>,
    /// The project of the file; `None` in the user scope.
    #[serde(default)]
    pub project: Option<PathBuf>,
    /// The version of the program that wrote the file.
    pub tanmi: String,
    pub at: Millis,
}

pub struct Receipts {
    dir: PathBuf,
    file: File,
    /// Whether `receipts.json` is missing or could be read.
    is_readable: bool,
}

impl Receipts {
    /// Loads the receipts. An unreadable file counts as empty: an uninstall then removes entries one by one.
    pub fn load(home: &Path) -> Receipts {
        let dir = home.join("install");
        let file = match fs::read_optional(&dir.join("receipts.json")) {
            Ok(None) => Some(File::default()),
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).ok(),
            Err(_) => None,
        };
        Receipts { dir, is_readable: file.is_some(), file: file.unwrap_or_default() }
    }

    fn get(&self, path: &Path) -> Option<&Receipt> {
        self.file.files.get(&key(path))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.file.files.is_empty()
    }

    pub fn has(&self, path: &Path) -> bool {
        self.get(path).is_some()
    }

    /// Returns whether the file was written for this client.
    pub(crate) fn is_of(&self, path: &Path, client: &ClientSpec) -> bool {
        self.get(path).is_some_and(|receipt| receipt.agent == client.id())
    }

    /// Returns whether the file was written for this project.
    pub(crate) fn is_of_project(&self, path: &Path, project: Option<&Path>) -> bool {
        self.get(path).is_some_and(|receipt| receipt.project.as_deref() == project)
    }

    /// Returns whether our hooks were written to the file.
    pub fn has_hooks(&self, path: &Path) -> bool {
        self.get(path).is_some_and(|receipt| receipt.hooks)
    }

    /// Returns whether an installation may have added the permission for our tools. `None` without a receipt.
    pub(crate) fn has_own_permission(&self, path: &Path) -> Option<bool> {
        self.get(path).map(|receipt| receipt.permission.unwrap_or(true))
    }

    /// Records that our hooks were removed from a file that keeps other parts of ours. A file that was edited since the
    /// installation still counts as edited.
    pub(crate) fn record_removed_hooks(&mut self, path: &Path, before: &[u8], after: &[u8]) -> Result<()> {
        let Some(receipt) = self.file.files.get_mut(&key(path)) else { return Ok(()) };
        receipt.hooks = false;
        if receipt.after == hash::sha256_hex(before) {
            receipt.after = hash::sha256_hex(after);
        }
        self.save()
    }

    /// Returns the original content if the file was not changed since we wrote it. `Some(None)` if there was no file.
    pub(crate) fn original(&self, path: &Path, bytes: &[u8]) -> Option<Option<Vec<u8>>> {
        let receipt = self.get(path)?;
        if hash::sha256_hex(bytes) != receipt.after {
            return None;
        }
        match self.before(path) {
            OriginalContent::Unknown => None,
            OriginalContent::Absent => Some(None),
            OriginalContent::Bytes(bytes) => Some(Some(bytes)),
        }
    }

    fn is_intact_copy(&self, path: &Path, bytes: &[u8]) -> bool {
        let digest = self.get(path).and_then(|receipt| receipt.before_digest.as_ref());
        digest.is_some_and(|digest| *digest == hash::sha256_hex(bytes))
    }

    /// Returns the projects whose files we changed.
    pub fn projects(&self) -> Vec<PathBuf> {
        let mut projects: Vec<PathBuf> =
            self.file.files.values().filter_map(|receipt| receipt.project.clone()).collect();
        projects.sort();
        projects.dedup();
        projects
    }

    pub(crate) fn before(&self, path: &Path) -> OriginalContent {
        match self.get(path).map(|receipt| &receipt.before) {
            None => OriginalContent::Unknown,
            Some(None) => OriginalContent::Absent,
            // A copy that was changed is useless.
            Some(Some(copy)) => match fs::read_limited(&self.dir.join(copy), u64::MAX) {
                Ok(Some(bytes)) if self.is_intact_copy(path, &bytes) => OriginalContent::Bytes(bytes),
                _ => OriginalContent::Unknown,
            },
        }
    }

    /// Records a file before it is written, because an extra receipt is harmless and a missing one is not.
    pub(crate) fn record(
        &mut self,
        path: &Path,
        target: &TargetFile,
        before: Option<&[u8]>,
        after: &[u8],
        folders: Vec<PathBuf>,
        now: Millis,
    ) -> Result<()> {
        let copy = match before {
            None => None,
            Some(bytes) => {
                // The name depends on the content, so that the copy in use is never overwritten.
                let content = [key(path).as_bytes(), b"\0", bytes].concat();
                let name = format!("{}.before", &hash::sha256_hex(&content)[..16]);
                let to = self.dir.join(&name);
                fs::write_private(&to, bytes).map_err(Error::io(&to))?;
                Some(name)
            }
        };
        let mut folders = folders;
        folders.extend(self.get(path).map(|receipt| receipt.folders.clone()).unwrap_or_default());
        let permission = match target.parts.contains(&ConfigPart::Permission) {
            true => Some(true),
            false => self.get(path).map_or(Some(false), |receipt| receipt.permission),
        };
        let receipt = Receipt {
            permission,
            before: copy,
            before_digest: before.map(hash::sha256_hex),
            after: hash::sha256_hex(after),
            folders,
            agent: target.client.id().to_owned(),
            hooks: target.parts.contains(&ConfigPart::Hooks),
            project: target.project.clone(),
            tanmi: String::from(env!("CARGO_PKG_VERSION")),
            at: now,
        };
        self.file.files.insert(key(path), receipt);
        self.save()
    }

    /// Removes the receipt of a restored file, and the folders that were created for it if they are empty.
    pub(crate) fn forget(&mut self, path: &Path) -> Result<()> {
        let Some(receipt) = self.file.files.remove(&key(path)) else { return Ok(()) };
        // Innermost first.
        let mut folders = receipt.folders;
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in folders {
            if std::fs::remove_dir(&folder).is_err() {
                // Another file with a receipt is in the folder. The last of these files removes it.
                let other = self.file.files.iter_mut().find(|(path, _)| Path::new(path).starts_with(&folder));
                other.into_iter().for_each(|(_, other)| other.folders.push(folder.clone()));
            }
        }
        if let Some(copy) = receipt.before {
            let _ = std::fs::remove_file(self.dir.join(copy));
        }
        self.save()
    }

    fn save(&mut self) -> Result<()> {
        let path = self.dir.join("receipts.json");
        if self.file.files.is_empty() {
            let _ = std::fs::remove_file(&path);
            return Ok(());
        }
        self.file.version = VERSION;
        let text = serde_json::to_string_pretty(&self.file).unwrap_or_default();
        fs::write_private(&path, format!("{text}\n").as_bytes()).map_err(Error::io(&path))
    }

    /// Removes the copies that no receipt names: replaced ones and those of killed processes.
    pub(crate) fn remove_unused_copies(&self) {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        for entry in entries.filter(|_| self.is_readable) {
            let name = entry.file_name();
            let is_copy = Path::new(&name).extension().is_some_and(|extension| extension == "before");
            let mut receipts = self.file.files.values();
            if is_copy && !receipts.any(|receipt| receipt.before.as_deref().map(OsStr::new) == Some(&name)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Returns the path of the copy of the original file.
    pub fn copy_of(&self, path: &Path) -> Option<PathBuf> {
        Some(self.dir.join(self.get(path)?.before.as_ref()?))
    }
}

fn key(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
