//! What was written where, and what was there before: so that taking it out gives back every byte.
//!
//! `install/receipts.json` in the home store, with the originals beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::{Millis, fs, hash};

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
    /// The copy of what was there, and its digest; `None` if nothing was.
    before: Option<String>,
    #[serde(default)]
    before_digest: Option<String>,
    /// Digest of what was written.
    after: String,
    /// Folders that had to be made.
    #[serde(default)]
    folders: Vec<PathBuf>,
    pub agent: String,
    /// Whether it has hooks of ours in it.
    #[serde(default)]
    hooks: bool,
    /// The project whose file it is; `None` for the user's own.
    #[serde(default)]
    pub project: Option<PathBuf>,
    /// Which version of the program wrote it, and when.
    pub tanmi: String,
    pub at: Millis,
}

pub struct Receipts {
    dir: PathBuf,
    file: File,
}

impl Receipts {
    /// A file that cannot be read costs exactness, not the uninstall.
    pub fn load(home: &Path) -> Receipts {
        let dir = home.join("install");
        let bytes = fs::read_optional(&dir.join("receipts.json")).ok().flatten();
        let file = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Receipts { dir, file }
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

    /// Whether our hooks were put into it.
    pub fn has_hooks(&self, path: &Path) -> bool {
        self.get(path).is_some_and(|receipt| receipt.hooks)
    }

    /// What was there, if nobody wrote to it since. `Some(None)`: nothing was.
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

    fn is_copy(&self, path: &Path, bytes: &[u8]) -> bool {
        let digest = self.get(path).and_then(|receipt| receipt.before_digest.as_ref());
        digest.is_some_and(|digest| *digest == hash::sha256_hex(bytes))
    }

    /// Projects that have something of ours in their files.
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
            // A copy that is no longer what it was is worth nothing.
            Some(Some(copy)) => match fs::read_limited(&self.dir.join(copy), u64::MAX) {
                Ok(Some(bytes)) if self.is_copy(path, &bytes) => OriginalContent::Bytes(bytes),
                _ => OriginalContent::Unknown,
            },
        }
    }

    /// Noted before the file is written: a receipt too many does no harm.
    pub(crate) fn note(
        &mut self,
        path: &Path,
        place: &TargetFile,
        before: Option<&[u8]>,
        after: &[u8],
        folders: Vec<PathBuf>,
        now: Millis,
    ) -> Result<()> {
        let copy = match before {
            None => None,
            Some(bytes) => {
                let name = format!("{}.before", &hash::sha256_hex(key(path).as_bytes())[..16]);
                let to = self.dir.join(&name);
                fs::write_private(&to, bytes).map_err(Error::io(&to))?;
                Some(name)
            }
        };
        let mut folders = folders;
        folders.extend(self.get(path).map(|receipt| receipt.folders.clone()).unwrap_or_default());
        let receipt = Receipt {
            before: copy,
            before_digest: before.map(hash::sha256_hex),
            after: hash::sha256_hex(after),
            folders,
            agent: place.agent.id().to_owned(),
            hooks: place.parts.contains(&ConfigPart::Hooks),
            project: place.project.clone(),
            tanmi: String::from(env!("CARGO_PKG_VERSION")),
            at: now,
        };
        self.file.files.insert(key(path), receipt);
        self.save()
    }

    /// The file is as it was: the folders that were made for it go, as far as they are empty.
    pub(crate) fn forget(&mut self, path: &Path) -> Result<()> {
        let Some(receipt) = self.file.files.remove(&key(path)) else { return Ok(()) };
        // The innermost first.
        let mut folders = receipt.folders;
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in folders {
            if std::fs::remove_dir(&folder).is_err() {
                // Another file of ours is in it; it goes with the last of them.
                let heir = self.file.files.iter_mut().find(|(path, _)| Path::new(path).starts_with(&folder));
                heir.into_iter().for_each(|(_, heir)| heir.folders.push(folder.clone()));
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

    /// The copy of what a file was before us.
    pub fn copy_of(&self, path: &Path) -> Option<PathBuf> {
        Some(self.dir.join(self.get(path)?.before.as_ref()?))
    }
}

fn key(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
