//! Reads the current commit of a git repository from its files, without running git.

use std::path::{Path, PathBuf};

use crate::fs;

/// The size up to which a file of git is read. `packed-refs` of a large repository has a few megabytes.
const MAX_BYTES: u64 = 8 << 20;

/// Returns the id of the commit that is checked out in a folder, or `None` if that cannot be told: the folder
/// is no root of a repository, or the branch has no commit yet. Works for linked worktrees, too.
pub fn head_commit(folder: &Path) -> Option<String> {
    let git_dir = git_dir(folder)?;
    let head = read(&git_dir.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ").map(str::trim) else { return commit_id(&head) };
    if !name.starts_with("refs/") || name.split('/').any(|part| part == "..") {
        return None;
    }
    // Branches of a linked worktree are in the main repository.
    let common =
        read(&git_dir.join("commondir")).map_or_else(|| git_dir.clone(), |path| git_dir.join(path.trim()));
    let loose = [&git_dir, &common].into_iter().find_map(|dir| commit_id(&read(&dir.join(name))?));
    loose.or_else(|| {
        let packed = read(&common.join("packed-refs"))?;
        packed.lines().find_map(|line| commit_id(line.strip_suffix(name)?.strip_suffix(' ')?))
    })
}

/// Returns the folder of the repository: `.git`, or the one that a file `.git` names.
fn git_dir(folder: &Path) -> Option<PathBuf> {
    let path = folder.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let text = read(&path)?;
    Some(folder.join(text.strip_prefix("gitdir: ")?.trim()))
}

fn read(path: &Path) -> Option<String> {
    let (bytes, _) = fs::read_regular(path, MAX_BYTES).ok()??;
    String::from_utf8(bytes).ok()
}

/// Returns a text as a commit id if it is one: SHA-1 or SHA-256 in hexadecimal digits.
fn commit_id(text: &str) -> Option<String> {
    let id = text.trim();
    let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: PathBuf, text: &str) {
        let dir = path.parent().unwrap();
        std::fs::create_dir_all(dir).unwrap();
        fs::write_atomic(&path, text.as_bytes(), dir, fs::Durability::Journaled).unwrap();
    }

    #[test]
    fn head_commit_reads_every_kind_of_repository() {
        let dir = tempfile::tempdir().unwrap();
        let (root, one, two) = (dir.path(), "1".repeat(40), "a".repeat(64));
        assert_eq!(head_commit(root), None);
        put(root.join(".git/HEAD"), "ref: refs/heads/main\n");
        assert_eq!(head_commit(root), None, "a branch without a commit");
        let packed = format!("# pack-refs with: peeled\n{two} refs/heads/main\n{one} refs/heads/not/main\n");
        put(root.join(".git/packed-refs"), &packed);
        assert_eq!(head_commit(root), Some(two.clone()));
        put(root.join(".git/refs/heads/main"), &format!("{one}\n"));
        assert_eq!(head_commit(root), Some(one.clone()), "a loose branch is newer than a packed one");
        put(root.join(".git/HEAD"), &format!("{two}\n"));
        assert_eq!(head_commit(root), Some(two.clone()), "a detached head");
        for bad in ["", "ref: ../../etc/passwd", "ref: refs/../../x", "xyz", "ref: refs/heads/none"] {
            put(root.join(".git/HEAD"), bad);
            assert_eq!(head_commit(root), None, "{bad}");
        }
        put(root.join("tree/.git"), "gitdir: ../.git/worktrees/tree\n");
        put(root.join(".git/worktrees/tree/HEAD"), "ref: refs/heads/main\n");
        put(root.join(".git/worktrees/tree/commondir"), "../..\n");
        assert_eq!(head_commit(&root.join("tree")), Some(one), "a linked worktree");
    }
}
