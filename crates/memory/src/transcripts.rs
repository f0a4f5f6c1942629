//! Where the ingested transcripts of a project are: below `transcripts/` in the home store, one folder per project.

use std::path::{Path, PathBuf};

use tanmi_base::paths::project_key;

/// Returns the folder of a project's ingested transcripts. Resolves links in the path of the project.
pub fn folder(home: &Path, project: &Path) -> PathBuf {
    home.join("transcripts").join(project_key(project))
}

/// Returns the names and paths of the files in such a folder, for the index.
pub fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| Some((format!("transcripts/{}", entry.file_name().to_str()?), entry.path())))
        .filter(|(name, _)| name.ends_with(".jsonl"))
        .collect();
    files.sort();
    files
}
