//! Damaged files of the home store that were renamed, so that a new file can take their place.

use std::io;
use std::path::{Path, PathBuf};

/// Stands between the name of the file and a random word.
const MARK: &str = ".damaged-";

/// Renames a damaged file in its folder. Returns its new path.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let kept = path.with_file_name(format!("{}{}.json", prefix(path), crate::id::random(6)));
    std::fs::rename(path, &kept)?;
    Ok(kept)
}

/// Returns the paths to which [`set_aside`] renamed a file.
pub fn find_set_aside(path: &Path) -> Vec<PathBuf> {
    let prefix = prefix(path);
    let entries = path.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let kept = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    let mut kept: Vec<PathBuf> = kept.map(|entry| entry.path()).collect();
    kept.sort();
    kept
}

fn prefix(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}{MARK}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_aside_file_is_found_under_its_own_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let (trust, other) = (dir.path().join("trust.json"), dir.path().join("other.json"));
        super::super::write_private(&trust, b"{").unwrap();
        let kept = set_aside(&trust).unwrap();
        assert!(!trust.exists());
        assert_eq!(find_set_aside(&trust), [kept]);
        assert!(find_set_aside(&other).is_empty());
    }
}
