//! Trust: the projects whose texts may be injected, and the files of projects that may be used, each identified by path
//! and content.
//!
//! Stored in `trust.json` in the home store. A project that was created on this machine is trusted. Another project is
//! trusted only after the user confirms it. Memory and workspaces are trusted with their project. Rules, declared
//! context, texts for subagents and settings count only with the content that the user agreed to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tanmi_base::lock::Lock;
use tanmi_base::paths::{CONFIG_DIR, STORE_DIR, project_store};
use tanmi_base::{Lang, Millis, fs, hash};
use tanmi_memory::{Folder, LEGACY_DIR};

use crate::core::Core;
use crate::error::{Error, Result};
use crate::stores::Project;

mod identity;
pub(crate) use identity::read as folder_id;
pub mod pending;
mod project;

pub use project::{Consent, ProjectFile, ProjectStatus, ProjectTrust};

/// The content of `trust.json`. Keys of newer versions are kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct TrustFile {
    version: u32,
    /// By resolved path.
    projects: BTreeMap<String, ProjectEntry>,
    /// The agreed files by resolved path. The key is from the time when only rules files had entries.
    #[serde(rename = "rules")]
    files: BTreeMap<String, FileEntry>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ProjectEntry {
    at: Millis,
    /// `created` on this machine, or `trusted` by the user.
    how: String,
    /// The id in the folder of the project. `None` in an entry of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The memory folder that the user agreed to, relative to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct FileEntry {
    at: Millis,
    /// Hash of the agreed content.
    sha256: String,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl TrustFile {
    /// Compares an entry with the id in the folder of its project.
    fn status(&self, key: &str, project: &Path) -> ProjectStatus {
        match self.projects.get(key) {
            None => ProjectStatus::Unknown,
            Some(ProjectEntry { id: None, .. }) => ProjectStatus::TrustedByPath,
            Some(entry) if entry.id == identity::read(project) => ProjectStatus::Trusted,
            Some(_) => ProjectStatus::Replaced,
        }
    }

    /// Removes the entries of a project, of its memory folder and of its files. Returns whether there were any.
    fn remove(&mut self, project: &str) -> bool {
        let before = self.projects.len() + self.files.len();
        self.projects.retain(|path, _| !is_part_of(project, path));
        self.files.retain(|path, _| !Path::new(path).starts_with(project));
        self.projects.len() + self.files.len() != before
    }

    fn insert_files(&mut self, files: &[ProjectFile], now: Millis) {
        for file in files {
            let entry =
                FileEntry { at: now, sha256: hash::sha256_hex(&file.bytes), other: Default::default() };
            self.files.insert(file.path.display().to_string(), entry);
        }
    }
}

/// Returns whether a project entry is that of `project`, or that of its memory folder, which older versions recorded.
fn is_part_of(project: &str, path: &str) -> bool {
    let memory = [project_store(Path::new(project)).join("memory"), Path::new(project).join(LEGACY_DIR)];
    path == project || memory.iter().any(|dir| dir == Path::new(path))
}

/// The name of the file in the home store.
pub(crate) const TRUST_FILE: &str = "trust.json";

pub struct Trust {
    home: PathBuf,
}

impl Trust {
    pub fn new(home: &Path) -> Trust {
        Trust { home: home.to_owned() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.join(TRUST_FILE)
    }

    /// A file that cannot be read means that nothing is trusted.
    fn load(&self) -> TrustFile {
        self.read().unwrap_or_default()
    }

    fn read(&self) -> Result<TrustFile> {
        let path = self.path();
        let Some(bytes) = fs::read_optional(&path).map_err(Error::io(&path))? else {
            return Ok(TrustFile::default());
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let reason = crate::config::malformed_json(&error);
            Error::BadFile { path, line: error.line(), reason }
        })
    }

    /// Returns why `trust.json` cannot be read, if so. Nothing is trusted then.
    pub fn damage(&self) -> Option<Error> {
        self.read().err()
    }

    /// Renames a `trust.json` that cannot be parsed, so that the user can agree to projects again.
    pub fn set_aside(&self) -> Result<()> {
        let _lock = self.lock()?;
        match self.read() {
            Err(Error::BadFile { path, .. }) => {
                fs::set_aside(&path).map_err(Error::io(&path))?;
                Ok(())
            }
            read => read.map(|_| ()),
        }
    }

    fn lock(&self) -> Result<Lock> {
        fs::create_private_dir(&self.home).map_err(Error::io(&self.home))?;
        Ok(Lock::exclusive(&self.home.join("trust.lock")).map_err(tanmi_workspace::Error::from)?)
    }

    /// Returns the consent to one project. Reads nothing yet.
    pub fn of_project(&self, project: &Path) -> ProjectTrust {
        ProjectTrust::new(&self.home, project)
    }

    /// Returns the folders of all projects that have an entry, also if only a file of theirs has one.
    pub fn projects(&self) -> Vec<PathBuf> {
        let TrustFile { projects, files, .. } = self.load();
        let is_ours = |dir: &&Path| dir.ends_with(CONFIG_DIR) || dir.ends_with(STORE_DIR);
        let project_of =
            |file: String| Some(Path::new(&file).ancestors().find(is_ours)?.parent()?.to_owned());
        projects.into_keys().map(PathBuf::from).chain(files.into_keys().filter_map(project_of)).collect()
    }

    pub fn has_project(&self, project: &Path) -> bool {
        self.of_project(project).is_trusted()
    }

    /// Trusts a project, its memory folder and exactly this content of its files. `how` is `created` or `trusted`.
    pub fn add_project(&self, project: &Path, how: &str, files: &[ProjectFile], now: Millis) -> Result<()> {
        let key = key(project);
        self.edit(|file| {
            let id = match file.status(&key, project) {
                ProjectStatus::Trusted => file.projects.get(&key).and_then(|entry| entry.id.clone()),
                ProjectStatus::TrustedByPath | ProjectStatus::Unknown => None,
                ProjectStatus::Replaced => {
                    file.remove(&key);
                    None
                }
            };
            // Any id in the folder that is not recorded came with the folder, or belongs to another path.
            let id =
                id.map_or_else(|| identity::renew(project).map_err(Error::io(project_store(project))), Ok)?;
            let other = file.projects.remove(&key).map(|entry| entry.other).unwrap_or_default();
            let memory = Some(memory_of(project));
            file.projects
                .insert(key, ProjectEntry { at: now, how: how.to_owned(), id: Some(id), memory, other });
            file.insert_files(files, now);
            Ok(())
        })
    }

    /// Agrees to exactly this content of files of a project, without trust in the project itself.
    pub fn add_files(&self, project: &Path, files: &[ProjectFile], now: Millis) -> Result<()> {
        let key = key(project);
        self.edit(|file| {
            if file.status(&key, project) == ProjectStatus::Replaced {
                file.remove(&key);
            }
            file.insert_files(files, now);
            Ok(())
        })
    }

    /// Removes trust from a project and from every file inside it. Returns whether there was any.
    pub fn remove_project(&self, project: &Path) -> Result<bool> {
        let project = key(project);
        let mut was_trusted = false;
        self.edit(|file| {
            was_trusted = file.remove(&project);
            Ok(())
        })?;
        Ok(was_trusted)
    }

    /// Completes an entry of an older version, which trusts any content at a path: records the id of the folder and
    /// agrees to the present content. Errors are ignored, the entry then stays as it is.
    pub(crate) fn upgrade(&self, project: &Path, now: Millis) {
        let path = key(project);
        let is_old = |file: &TrustFile| {
            file.projects.iter().any(|(key, entry)| entry.id.is_none() && is_part_of(&path, key))
        };
        if !is_old(&self.load()) {
            return;
        }
        let files = pending::files_of(&self.of_project(project));
        let _ = self.edit(|file| {
            let is_own = |(key, _): &(&String, &mut ProjectEntry)| is_part_of(&path, key);
            let known = file.projects.iter_mut().filter(is_own).find_map(|(_, entry)| entry.id.clone());
            let id = match known.filter(|id| identity::read(project).as_ref() == Some(id)) {
                Some(id) => id,
                None => identity::renew(project).map_err(Error::io(project_store(project)))?,
            };
            for (_, entry) in file.projects.iter_mut().filter(is_own).filter(|(_, entry)| entry.id.is_none())
            {
                (entry.id, entry.memory) = (Some(id.clone()), Some(memory_of(project)));
            }
            if file.projects.contains_key(&path) {
                let files = files.into_iter().map(|(_, file)| file);
                file.insert_files(&files.collect::<Vec<_>>(), now);
            }
            Ok(())
        });
    }

    fn edit(&self, change: impl FnOnce(&mut TrustFile) -> Result<()>) -> Result<()> {
        let _lock = self.lock()?;
        // A file with a typo is not overwritten: the recorded trust would be lost.
        let mut file = self.read()?;
        change(&mut file)?;
        file.version = file.version.max(1);
        let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
        text.push('\n');
        let path = self.path();
        fs::write_private(&path, text.as_bytes()).map_err(Error::io(&path))
    }
}

/// Returns the key of a path. Different paths to the same place have the same key.
fn key(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Returns the memory folder of a project, relative to it.
fn memory_of(project: &Path) -> String {
    let folder = Folder::of(project);
    folder.dir().strip_prefix(project).unwrap_or(folder.dir()).display().to_string()
}

/// Returns whether a folder contains nothing of a project yet: no store, no configuration and no memory of an older
/// tool. What is created there is then the user's own. Also a dangling link counts as content.
pub(crate) fn is_clean(project: &Path) -> bool {
    let exists = |path: PathBuf| std::fs::symlink_metadata(path).is_ok();
    let store = project_store(project);
    let is_empty_store = || {
        !fs::is_link(&store) && std::fs::read_dir(&store).is_ok_and(|mut entries| entries.next().is_none())
    };
    !exists(project.join(CONFIG_DIR))
        && !exists(project.join(LEGACY_DIR))
        && (!exists(store.clone()) || is_empty_store())
}

impl Core {
    /// Trusts a project in whose folder data was just created, if the folder was clean before: all of its
    /// content is the user's own. Otherwise content may have come with the folder, and the returned notice
    /// says how to trust it.
    pub fn trust_created(&self, project: &dyn Project, was_clean: bool, lang: Lang) -> Option<&'static str> {
        // Only content in files of this machine can come with a clone.
        project.maintenance()?;
        let trust = self.trust();
        if was_clean {
            // Without a home store the project still works; its memory is only not injected.
            let _ = trust.add_project(project.folder(), "created", &[], self.now());
            return None;
        }
        (!trust.has_project(project.folder())).then(|| {
            lang.pick(
                "此文件夹原先已有 Tanmi 的内容，因此项目未被信任：记忆、声明的上下文、规则和设置不会生效；\
                 请用户在终端中运行 `tanmi trust` 查看",
                "This folder already had content for Tanmi, so the project is not trusted: memory, declared context, \
                 rules and settings do not count until the user reviews them with `tanmi trust` in a terminal",
            )
        })
    }
}

#[cfg(test)]
mod tests;
