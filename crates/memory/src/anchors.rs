//! The files that a fact is about, as they were when it was saved. Tells whether a file changed since or is gone.
//!
//! Only files inside of the project count: a path is resolved, with its links, before a file is opened.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tanmi_base::{fs, git, hash};
use tanmi_index::MemoryRow;

/// The maximum number of files of one fact.
pub const MAX_FILES: usize = 20;
/// The maximum number of files that are found in the text of a fact.
const MAX_FOUND: usize = 5;
/// The size up to which the content of a file is compared. Of a larger file, size and time are.
const MAX_BYTES: u64 = 1 << 20;
/// The maximum length of a path, in bytes.
const MAX_PATH: usize = 500;

/// A file at the time when a fact was saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAnchor {
    /// Relative to the project, with `/`.
    pub path: String,
    /// Of the content; empty for a large file.
    #[serde(default)]
    pub digest: String,
    #[serde(default)]
    pub size: u64,
    /// The modification time in nanoseconds. If it and the size are the same, the file is not read.
    #[serde(default)]
    pub mtime: i64,
}

/// The files of a fact, and the commit that was checked out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    pub files: Vec<FileAnchor>,
    pub commit: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    Same,
    Changed,
    Gone,
}

/// Why a path cannot be the file of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathProblem {
    /// There is no such file.
    Missing,
    /// The path, or a link in it, leads out of the project.
    Outside,
}

impl Anchors {
    /// Returns the files that the caller names and those that the text names. A named path must be a file of
    /// the project; of the words of the text, those count that are.
    pub fn record(project: &Path, named: &[String], content: &str) -> Result<Anchors, (String, PathProblem)> {
        let mut files: Vec<FileAnchor> = Vec::new();
        for path in named {
            let file = record_file(project, path).map_err(|problem| (path.clone(), problem))?;
            if !files.iter().any(|known| known.path == file.path) {
                files.push(file);
            }
        }
        for path in find_paths(content) {
            if files.len() < named.len() + MAX_FOUND
                && let Ok(file) = record_file(project, path)
                && !files.iter().any(|known| known.path == file.path)
            {
                files.push(file);
            }
        }
        files.truncate(MAX_FILES);
        let commit = if files.is_empty() { None } else { git::head_commit(project) };
        Ok(Anchors { files, commit })
    }

    /// Returns the fields of a line.
    pub fn to_fields(&self) -> serde_json::Map<String, Value> {
        let mut fields = serde_json::Map::new();
        if !self.files.is_empty() {
            fields.insert("files".into(), json!(self.files));
            fields.extend(self.commit.as_ref().map(|commit| ("commit".to_owned(), json!(commit))));
        }
        fields
    }

    /// Returns the anchors in the fields of a line. Entries that are no files of a project are left out.
    pub fn of_fields(fields: &serde_json::Map<String, Value>) -> Anchors {
        let list = fields.get("files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let files = list.iter().filter_map(|file| FileAnchor::deserialize(file).ok());
        let files: Vec<FileAnchor> = files.filter(|file| is_inside(&file.path)).take(MAX_FILES).collect();
        let commit = fields.get("commit").and_then(Value::as_str).filter(|_| !files.is_empty());
        Anchors { files, commit: commit.filter(|id| id.len() <= 64).map(String::from) }
    }

    /// Returns the anchors of a memory.
    pub fn of(row: &MemoryRow) -> Anchors {
        if !row.more.contains("\"files\"") {
            return Anchors::default();
        }
        let more: serde_json::Map<String, Value> = serde_json::from_str(&row.more).unwrap_or_default();
        Anchors::of_fields(&more)
    }
}

impl FileAnchor {
    /// Returns whether the file is still as it was. A file that is a link out of the project by now counts as gone.
    pub fn state(&self, project: &Path) -> FileState {
        let Ok(path) = resolve(project, &self.path) else { return FileState::Gone };
        let Ok(Some(sig)) = fs::FileSig::of(&path) else { return FileState::Gone };
        if sig.size == self.size && sig.mtime_ns == self.mtime {
            return FileState::Same;
        }
        let is_same =
            sig.size == self.size && !self.digest.is_empty() && digest(&path) == Some(self.digest.clone());
        if is_same { FileState::Same } else { FileState::Changed }
    }
}

fn record_file(project: &Path, path: &str) -> Result<FileAnchor, PathProblem> {
    let resolved = resolve(project, path)?;
    let root = project.canonicalize().map_err(|_| PathProblem::Missing)?;
    let relative = resolved.strip_prefix(&root).map_err(|_| PathProblem::Outside)?;
    let path = relative.to_str().map(|path| path.replace('\\', "/")).filter(|path| is_inside(path));
    let path = path.ok_or(PathProblem::Outside)?;
    let sig = fs::FileSig::of(&resolved).ok().flatten().ok_or(PathProblem::Missing)?;
    let digest = if sig.size <= MAX_BYTES { digest(&resolved).unwrap_or_default() } else { String::new() };
    Ok(FileAnchor { path, digest, size: sig.size, mtime: sig.mtime_ns })
}

/// Returns the regular file that a path leads to.
fn resolve(project: &Path, path: &str) -> Result<PathBuf, PathProblem> {
    if path.len() > MAX_PATH {
        return Err(PathProblem::Missing);
    }
    let joined = project.join(path);
    let lexical_escape = Path::new(path).components().any(|part| matches!(part, Component::ParentDir));
    let missing = if lexical_escape { PathProblem::Outside } else { PathProblem::Missing };
    let is_absolute_outside = Path::new(path).is_absolute() && !joined.starts_with(project);
    let resolved = joined
        .canonicalize()
        .map_err(|_| if is_absolute_outside { PathProblem::Outside } else { missing })?;
    let root = project.canonicalize().map_err(|_| PathProblem::Missing)?;
    if !resolved.starts_with(&root) {
        return Err(PathProblem::Outside);
    }
    if resolved.is_file() { Ok(resolved) } else { Err(PathProblem::Missing) }
}

/// Returns whether a path is relative and stays inside of its folder, as written.
fn is_inside(path: &str) -> bool {
    let has_only_names = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    !path.is_empty() && path.len() <= MAX_PATH && has_only_names && !path.contains(['\0', '\n', '\r'])
}

fn digest(path: &Path) -> Option<String> {
    let (bytes, _) = fs::read_regular(path, MAX_BYTES).ok()??;
    Some(hash::md5_hex(&bytes))
}

/// Returns the words of a text that look like paths of files: with a folder or an ending.
fn find_paths(content: &str) -> Vec<&str> {
    let is_path_char = |c: char| c.is_alphanumeric() && c.is_ascii() || "._-/@+".contains(c);
    let words = content.split(|c: char| !is_path_char(c)).map(|word| word.trim_end_matches(['.', '/']));
    let looks_like_path = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        let end = name.rsplit_once('.').map_or("", |(_, end)| end);
        let has_letter_end =
            !end.is_empty() && end.len() <= 10 && end.starts_with(|c: char| c.is_ascii_alphabetic());
        word.len() > 2 && (word.contains('/') || has_letter_end)
    };
    words.filter(looks_like_path).take(4 * MAX_FOUND).collect()
}

#[cfg(test)]
mod tests;
