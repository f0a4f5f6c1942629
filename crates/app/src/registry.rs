//! The registry in the home store: the project of each workspace, so that a workspace can be found by id from
//! anywhere.
//!
//! The registry is only a cache: a wrong entry is detected and corrected, and a lost file is rebuilt by scanning.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tanmi_base::fs;
use tanmi_base::lock::Lock;
use tanmi_base::paths::{project_store, workspace_folder};
use tanmi_workspace::limits::fit_title;
use tanmi_workspace::model::WorkspaceId;

use crate::error::{Error, Result};

pub struct Registry {
    home: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryEntry {
    pub project: PathBuf,
    pub name: String,
}

/// An entry as it is stored. Keys of newer versions are kept.
#[derive(Debug, Serialize, Deserialize)]
struct StoredEntry {
    #[serde(flatten)]
    known: RegistryEntry,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The content of `registry.json`. Keys of newer versions are kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RegistryFile {
    #[serde(default)]
    version: u32,
    workspaces: BTreeMap<String, StoredEntry>,
    /// Every project that was recorded and still exists. A clone has the same workspace ids as its original, so
    /// `workspaces` can name only one of them.
    #[serde(default)]
    projects: BTreeSet<PathBuf>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl RegistryFile {
    fn entry(&self, id: &WorkspaceId) -> Option<&RegistryEntry> {
        self.workspaces.get(id.as_str()).map(|stored| &stored.known)
    }

    fn set(&mut self, id: &WorkspaceId, entry: RegistryEntry) {
        let other = self.workspaces.remove(id.as_str()).map(|stored| stored.other).unwrap_or_default();
        self.workspaces.insert(id.to_string(), StoredEntry { known: entry, other });
    }
}

/// Large folders that never contain a project.
const SKIPPED: &[&str] = &["node_modules", "target", "proc", "sys", "dev"];
/// The maximum number of folders that a search visits.
const SEARCH_LIMIT: usize = 20_000;

impl Registry {
    pub fn new(home: &Path) -> Registry {
        Registry { home: home.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.home.join("registry.json")
    }

    fn load(&self) -> Result<RegistryFile> {
        let path = self.path();
        let bytes = fs::read_optional(&path).map_err(Error::io(&path))?;
        // A damaged file counts as empty; scanning rebuilds it.
        let mut file: RegistryFile =
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        for entry in file.workspaces.values_mut() {
            entry.known.name = fit_title(&entry.known.name).into_owned();
        }
        Ok(file)
    }

    pub fn entries(&self) -> Result<Vec<(WorkspaceId, RegistryEntry)>> {
        let entries = self.load()?.workspaces.into_iter();
        Ok(entries.filter_map(|(id, entry)| Some((WorkspaceId::parse(&id).ok()?, entry.known))).collect())
    }

    /// Returns existing projects that have or had workspaces.
    pub fn projects(&self) -> Result<Vec<PathBuf>> {
        let file = self.load()?;
        let mut projects = file.projects;
        projects.extend(file.workspaces.into_values().map(|entry| entry.known.project));
        Ok(projects.into_iter().filter(|project| project.is_dir()).collect())
    }

    /// Records the projects of these workspaces. If a workspace occurs several times, the first entry counts.
    /// Writes only if something changed.
    pub fn record_all(&self, found: &[(WorkspaceId, RegistryEntry)]) -> Result<()> {
        let mut seen = BTreeSet::new();
        let first: Vec<&(WorkspaceId, RegistryEntry)> =
            found.iter().filter(|(id, _)| seen.insert(id)).collect();
        let is_new = |file: &RegistryFile| {
            first.iter().any(|(id, entry)| file.entry(id) != Some(entry))
                || found.iter().any(|(_, entry)| !file.projects.contains(&entry.project))
        };
        if is_new(&self.load()?) {
            self.edit(|file| {
                for (id, entry) in first {
                    file.set(id, entry.clone());
                }
                file.projects.extend(found.iter().map(|(_, entry)| entry.project.clone()));
                file.projects.retain(|project| project.is_dir());
            })?;
        }
        Ok(())
    }

    /// Remembers where a workspace is used, if that is news. Its name follows when it is listed.
    pub fn record(&self, id: &WorkspaceId, project: &Path) -> Result<()> {
        let known = self.load()?.entry(id).cloned();
        if known.as_ref().is_some_and(|entry| entry.project == project) {
            return Ok(());
        }
        let name = known.map_or_else(|| id.to_string(), |entry| entry.name);
        self.record_all(&[(id.clone(), RegistryEntry { project: project.to_owned(), name })])
    }

    fn edit(&self, change: impl FnOnce(&mut RegistryFile)) -> Result<()> {
        fs::create_private_dir(&self.home).map_err(Error::io(&self.home))?;
        let _lock =
            Lock::exclusive(&self.home.join("registry.lock")).map_err(tanmi_workspace::Error::from)?;
        let mut file = self.load()?;
        change(&mut file);
        file.version = file.version.max(1);
        let mut text =
            serde_json::to_string_pretty(&file).map_err(|error| Error::io(self.path())(error.into()))?;
        text.push('\n');
        fs::write_private(&self.path(), text.as_bytes()).map_err(Error::io(self.path()))
    }

    /// Returns the project of a workspace. If the project was moved, searches near its old location.
    pub fn find(&self, id: &WorkspaceId) -> Result<Option<PathBuf>> {
        let Some(entry) = self.load()?.entry(id).cloned() else { return Ok(None) };
        if has_workspace(&entry.project, id) {
            return Ok(Some(entry.project));
        }
        // The project store still exists, so the project was not moved: the workspace was deleted.
        if project_store(&entry.project).is_dir() {
            return Ok(None);
        }
        // A moved project was usually renamed, or moved within its parent folder.
        let Some(search_root) =
            entry.project.ancestors().skip(1).find(|dir| dir.is_dir() && dir.parent().is_some())
        else {
            return Ok(None);
        };
        let mut found = None;
        walk(search_root, 4, &mut |project| {
            if has_workspace(project, id) {
                found = Some(project.to_owned());
            }
            found.is_none()
        });
        if let Some(project) = &found {
            let entry = RegistryEntry { project: project.clone(), name: entry.name };
            self.record_all(&[(id.clone(), entry)])?;
        }
        Ok(found)
    }
}

fn has_workspace(project: &Path, id: &WorkspaceId) -> bool {
    workspace_folder(project, id.as_str()).is_dir()
}

/// Calls `visit` with `dir` and every folder below it that has a project store, until `visit` returns false.
pub fn walk(dir: &Path, depth: usize, visit: &mut dyn FnMut(&Path) -> bool) {
    let mut queue = std::collections::VecDeque::from([(dir.to_owned(), depth)]);
    let mut visited = 0;
    while let Some((dir, depth)) = queue.pop_front() {
        visited += 1;
        if visited > SEARCH_LIMIT || (project_store(&dir).is_dir() && !visit(&dir)) {
            return;
        }
        if depth == 0 {
            continue;
        }
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Symbolic links are not followed: they can lead anywhere and form cycles.
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && !name.starts_with('.') && !SKIPPED.contains(&name.as_ref()) {
                queue.push_back((entry.path(), depth - 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_keys_survive_record() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(&dir.path().join("home"));
        let entry = |name: &str| json!({"project": "/gone", "name": name, "note": name});
        let file = json!({
            "version": 3, "future": [1],
            "workspaces": {"ws-a-aaaaaa": entry("a"), "ws-b-bbbbbb": entry("b")}, "projects": [],
        });
        fs::write_private(&registry.path(), file.to_string().as_bytes()).unwrap();
        let id = WorkspaceId::parse("ws-a-aaaaaa").unwrap();
        registry.record(&id, dir.path()).unwrap();
        let read: Value = serde_json::from_slice(&std::fs::read(registry.path()).unwrap()).unwrap();
        assert_eq!((&read["version"], &read["future"]), (&json!(3), &json!([1])));
        let entry = json!({"project": dir.path(), "name": "a", "note": "a"});
        assert_eq!(read["workspaces"]["ws-a-aaaaaa"], entry, "the changed entry");
        assert_eq!(read["workspaces"]["ws-b-bbbbbb"]["note"], "b", "another entry");
    }
}
