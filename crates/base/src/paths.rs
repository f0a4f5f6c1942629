//! Where things are: the home store, the project a working directory belongs to, and the names below both.
//!
//! Nothing is created here.

use std::path::{Path, PathBuf};

/// The store folder of a project, and of the home.
pub const STORE_DIR: &str = ".tanmi-workspace";
/// A project's rules, declared context and switches.
pub const PROJECT_DIR: &str = ".tanmi";

/// `TANMI_HOME`, else `~/.tanmi-workspace`.
pub fn home_store() -> Option<PathBuf> {
    match std::env::var_os("TANMI_HOME") {
        Some(home) if !home.is_empty() => std::path::absolute(home).ok(),
        _ => user_home().map(|home| home.join(STORE_DIR)),
    }
}

/// The user's own folder, where `.tanmi/` is.
pub fn user_home() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) { set("USERPROFILE").or_else(|| set("HOME")) } else { set("HOME") }
}

/// The project of a working directory: the nearest ancestor with a store (for a linked git worktree, the main
/// worktree's), else the git root, else the directory itself.
///
/// A home store is no project marker, or everything below the home folder would be one project; only standing in
/// that very folder counts.
pub fn project_root(cwd: &Path, home_store: &Path) -> PathBuf {
    // The store may lie above the main worktree too, which is not a linked one itself.
    let main = cwd.ancestors().find_map(main_worktree);
    root_above(main.as_deref().unwrap_or(cwd), home_store)
}

fn root_above(cwd: &Path, home_store: &Path) -> PathBuf {
    let mut git_root = None;
    for dir in cwd.ancestors() {
        let store = dir.join(STORE_DIR);
        if store.is_dir() && (dir == cwd || !(same_place(&store, home_store) || is_some_home(&store))) {
            return dir.to_owned();
        }
        if git_root.is_none() && dir.join(".git").exists() {
            git_root = Some(dir.to_owned());
        }
    }
    git_root.unwrap_or_else(|| cwd.to_owned())
}

/// Whether this is the home store of somebody: where homes lie in each other, or `TANMI_HOME` names another one.
fn is_some_home(store: &Path) -> bool {
    store.join("registry.json").exists() || store.join("state").exists()
}

fn same_place(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The git folder that a directory belongs to, also where `.git` is a file (submodules, worktrees) or lies above.
pub fn git_dir(dir: &Path) -> Option<PathBuf> {
    let dot_git = dir.ancestors().map(|above| above.join(".git")).find(|path| path.exists())?;
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = read_text(&dot_git)?;
    Some(dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

/// A path in a file of git's.
fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(crate::fs::read_limited(path, 64 << 10).ok()??).ok()
}

/// If `dir` is a linked git worktree: the main one. A submodule's `.git` file has no `commondir` and stays its own.
fn main_worktree(dir: &Path) -> Option<PathBuf> {
    let dot_git = dir.join(".git");
    if !dot_git.is_file() {
        return None;
    }
    let text = read_text(&dot_git)?;
    let git_dir = dir.join(text.strip_prefix("gitdir:")?.trim());
    let common = read_text(&git_dir.join("commondir"))?;
    let common = git_dir.join(common.trim()).canonicalize().ok()?;
    let main = common.parent()?;
    (common.file_name()? == ".git" && main.is_dir()).then(|| main.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dirs: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        for dir in dirs {
            std::fs::create_dir_all(temp.path().join(dir)).unwrap();
        }
        let root = temp.path().canonicalize().unwrap();
        (temp, root)
    }

    #[test]
    fn the_nearest_store_wins_then_git_then_the_directory() {
        let (_temp, root) =
            tree(&["p/.tanmi-workspace", "p/.git", "p/sub/deep", "g/.git", "g/src", "plain/x"]);
        let home = root.join("home/.tanmi-workspace");
        let find = |dir: &str| project_root(&root.join(dir), &home).strip_prefix(&root).unwrap().to_owned();
        assert_eq!(find("p/sub/deep"), Path::new("p"));
        assert_eq!(find("g/src"), Path::new("g"));
        assert_eq!(find("plain/x"), Path::new("plain/x"));
    }

    #[test]
    fn the_home_store_is_no_project_unless_one_stands_in_it() {
        let (_temp, root) = tree(&["home/.tanmi-workspace", "home/code/app"]);
        let home = root.join("home/.tanmi-workspace");
        assert_eq!(project_root(&root.join("home/code/app"), &home), root.join("home/code/app"));
        assert_eq!(project_root(&root.join("home"), &home), root.join("home"));
    }

    #[test]
    fn another_s_home_store_is_no_project_either() {
        for mark in ["state", "registry.json"] {
            let (_temp, root) = tree(&[&format!("outer/.tanmi-workspace/{mark}"), "outer/scratch/app"]);
            let home = root.join("outer/scratch/home/.tanmi-workspace");
            assert_eq!(project_root(&root.join("outer/scratch/app"), &home), root.join("outer/scratch/app"));
        }
    }

    #[test]
    fn a_git_file_that_points_at_itself_leads_nowhere() {
        let (_temp, root) = tree(&["p/.g"]);
        let put = |path: &str, text: &str| {
            crate::fs::write_new(&root.join(path), text.as_bytes(), crate::fs::Durability::Journaled)
                .unwrap();
        };
        put("p/.git", "gitdir: .g");
        put("p/.g/commondir", "../.git");
        let home = root.join("home/.tanmi-workspace");
        assert_eq!(project_root(&root.join("p"), &home), root.join("p"));
    }

    #[test]
    fn a_linked_worktree_belongs_to_the_main_one() {
        let (_temp, root) =
            tree(&["main/.git/worktrees/w", "main/.tanmi-workspace", "w/src", "w/.tanmi-workspace"]);
        let put = |path: &str, text: String| {
            crate::fs::write_new(&root.join(path), text.as_bytes(), crate::fs::Durability::Journaled)
                .unwrap();
        };
        put("w/.git", format!("gitdir: {}\n", root.join("main/.git/worktrees/w").display()));
        put("main/.git/worktrees/w/commondir", "../..\n".into());
        let home = root.join("home/.tanmi-workspace");
        assert_eq!(project_root(&root.join("w/src"), &home), root.join("main"));
    }
}
