//! The user's consent to one project, and reads of the project's files that respect it.

use std::cell::{Cell, OnceCell};
use std::io;
use std::path::{Path, PathBuf};

use tanmi_base::paths::{CONFIG_DIR, project_store};
use tanmi_base::{fs, hash};

use super::{ProjectEntry, Trust, TrustFile, key};

/// Whether the user trusts a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectStatus {
    /// The user never agreed to the project.
    Unknown,
    /// The user agreed to this folder.
    Trusted,
    /// The user agreed with an older version, which recorded only the path.
    TrustedByPath,
    /// The user agreed to another folder at this path, or the id of the folder was deleted.
    Replaced,
}

/// Whether the user agreed to the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    Given,
    /// The user agreed to other content of the file.
    Outdated,
    Missing,
}

/// A file of a project with the content that was read.
#[derive(Clone, Debug)]
pub struct ProjectFile {
    /// The resolved path.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// The user's consent to one project. `trust.json` is read once, at the first question.
pub struct ProjectTrust {
    home: PathBuf,
    project: PathBuf,
    record: OnceCell<TrustRecord>,
    config_dir: OnceCell<Option<PathBuf>>,
    has_refused: Cell<bool>,
}

struct TrustRecord {
    /// The resolved folder of the project.
    root: String,
    file: TrustFile,
    status: ProjectStatus,
}

impl ProjectTrust {
    pub(super) fn new(home: &Path, project: &Path) -> ProjectTrust {
        ProjectTrust {
            home: home.to_owned(),
            project: project.to_owned(),
            record: OnceCell::new(),
            config_dir: OnceCell::new(),
            has_refused: Cell::new(false),
        }
    }

    pub fn project(&self) -> &Path {
        &self.project
    }

    fn record(&self) -> &TrustRecord {
        self.record.get_or_init(|| {
            let (root, file) = (key(&self.project), Trust::new(&self.home).load());
            let status = match self.is_replica(&self.project) {
                true => ProjectStatus::Trusted,
                false => file.status(&root, &self.project),
            };
            TrustRecord { root, file, status }
        })
    }

    /// Returns whether a folder is in a replica of a team server, which the user agreed to by joining. Only
    /// this program writes there.
    fn is_replica(&self, folder: &Path) -> bool {
        folder.starts_with(tanmi_team::replicas(&self.home))
    }

    fn entry(&self) -> Option<&ProjectEntry> {
        self.record().file.projects.get(&self.record().root)
    }

    pub fn status(&self) -> ProjectStatus {
        self.record().status
    }

    pub fn is_trusted(&self) -> bool {
        matches!(self.status(), ProjectStatus::Trusted | ProjectStatus::TrustedByPath)
    }

    /// Returns whether a file of a trusted project was refused, because the user did not agree to its content.
    pub fn has_refused(&self) -> bool {
        self.has_refused.get()
    }

    /// Returns the folder `.tanmi` of the project, if there is one. A link is never followed, because another
    /// program can fill its target later.
    pub fn config_dir(&self) -> Option<&Path> {
        let find = || {
            let dir = self.project.join(CONFIG_DIR);
            std::fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir()).then_some(dir)
        };
        self.config_dir.get_or_init(find).as_deref()
    }

    /// Reads a file in `.tanmi`; `None` if it is missing.
    pub fn read_config_file(&self, name: &str, max: u64) -> io::Result<Option<ProjectFile>> {
        match self.config_dir() {
            Some(dir) => self.read(&dir.join(name), max),
            None => Ok(None),
        }
    }

    /// Reads a file of the project; `None` if it is missing. A link that leads out of the project is an error.
    pub fn read(&self, path: &Path, max: u64) -> io::Result<Option<ProjectFile>> {
        if !path.exists() {
            return Ok(None);
        }
        let path = path.canonicalize()?;
        if !self.contains(&path) {
            return Err(io::Error::other("a link that leads out of the project"));
        }
        Ok(fs::read_limited(&path, max)?.map(|bytes| ProjectFile { path, bytes }))
    }

    /// Returns whether a resolved path is inside the project.
    pub fn contains(&self, resolved: &Path) -> bool {
        resolved.starts_with(&self.record().root)
    }

    /// Returns whether the user agreed to this content of a rules file. Does not need trust in the project.
    pub fn consent_to_rules(&self, file: &ProjectFile) -> Consent {
        let consent = match self.status() {
            ProjectStatus::Replaced => Consent::Missing,
            _ => self.recorded_consent(file),
        };
        self.note_refusal(consent)
    }

    /// Returns whether the user agreed to this content of a file, and to the project.
    pub fn consent_to(&self, file: &ProjectFile) -> Consent {
        let consent = match self.status() {
            ProjectStatus::Unknown | ProjectStatus::Replaced => Consent::Missing,
            ProjectStatus::TrustedByPath => Consent::Given,
            ProjectStatus::Trusted => self.recorded_consent(file),
        };
        self.note_refusal(consent)
    }

    fn recorded_consent(&self, file: &ProjectFile) -> Consent {
        match self.record().file.files.get(&file.path.display().to_string()) {
            None => Consent::Missing,
            Some(agreed) if agreed.sha256 == hash::sha256_hex(&file.bytes) => Consent::Given,
            Some(_) => Consent::Outdated,
        }
    }

    fn note_refusal(&self, consent: Consent) -> Consent {
        if consent != Consent::Given && self.is_trusted() {
            self.has_refused.set(true);
        }
        consent
    }

    /// Returns whether the user agreed to the memory in this folder. The folder in the project store is
    /// trusted with the project; another one only if it was there when the user agreed.
    pub fn has_memory(&self, dir: &Path) -> bool {
        if self.is_replica(dir) {
            return true;
        }
        let is_own = dir == project_store(&self.project).join("memory");
        let is_recorded = || {
            let name = dir.strip_prefix(&self.project).unwrap_or(dir).display().to_string();
            self.entry().is_some_and(|entry| entry.memory == Some(name))
        };
        match self.status() {
            ProjectStatus::TrustedByPath => true,
            ProjectStatus::Trusted if is_own || is_recorded() => true,
            // Older versions recorded a memory folder that they created in an untrusted project.
            _ => {
                let status = self.record().file.status(&key(dir), &self.project);
                matches!(status, ProjectStatus::Trusted | ProjectStatus::TrustedByPath)
            }
        }
    }
}
