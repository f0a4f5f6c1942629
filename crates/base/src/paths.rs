//! Locations: the home store, the project of a working directory, and the folder names in both.
//!
//! Nothing is created here.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::owner;
use crate::place::store_metadata;

/// Folder name of the project store and of the home store.
pub const STORE_DIR: &str = ".tanmi-workspace";
/// Folder of custom rules, declared context and settings, in a project and in the user's home folder.
pub const CONFIG_DIR: &str = ".tanmi";

/// Returns the home store: `TANMI_HOME`, else `~/.tanmi-workspace`.
pub fn home_store() -> Option<PathBuf> {
    match std::env::var_os("TANMI_HOME") {
        Some(home) if !home.is_empty() => std::path::absolute(home).ok(),
        _ => user_home().map(|home| home.join(STORE_DIR)),
    }
}

/// Returns the user's home folder, which contains the user's `.tanmi/`.
pub fn user_home() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) { set("USERPROFILE").or_else(|| set("HOME")) } else { set("HOME") }
}

/// Returns the project store of a project.
pub fn project_store(project: &Path) -> PathBuf {
    project.join(STORE_DIR)
}

/// Returns the folder of a workspace in its project store.
pub fn workspace_folder(project: &Path, workspace: &str) -> PathBuf {
    project.join(STORE_DIR).join(workspace)
}

/// Returns a short name of a project that is the same for every path to it.
pub fn project_key(project: &Path) -> String {
    let full = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    crate::hash::md5_hex(full.as_os_str().as_encoded_bytes())[..16].to_owned()
}

/// Returns whether a project has a store or configuration of this program.
pub fn has_project_files(project: &Path) -> bool {
    project.join(STORE_DIR).exists() || project.join(CONFIG_DIR).exists()
}

/// Returns the project of a working directory: the nearest ancestor with a project store, else the git root,
/// else the directory itself. A linked git worktree belongs to the project of its main worktree. The owner of
/// the store is not checked here but when the store is used, so that the caller learns of it.
///
/// A home store does not mark a project, otherwise everything below the home folder would be one project. It
/// counts only if the working directory is the folder that contains it.
pub fn project_root(cwd: &Path, home_store: &Path) -> PathBuf {
    find_root(cwd, home_store, |_, _| true).unwrap_or_else(|| cwd.to_owned())
}

/// Same as [`project_root`] for callers that report no error: the search ends below a store that belongs to another
/// user. `None` if the working directory is the folder of that store.
pub fn own_project_root(cwd: &Path, home_store: &Path) -> Option<PathBuf> {
    find_root(cwd, home_store, |folder, store| {
        let is_own = |meta: &Metadata| owner::other_owner(meta).is_none();
        (is_own(store) && std::fs::metadata(folder).is_ok_and(|meta| is_own(&meta)))
            || owner::is_allowed(home_store, folder)
    })
}

fn find_root(cwd: &Path, home_store: &Path, accepts: impl Fn(&Path, &Metadata) -> bool) -> Option<PathBuf> {
    // In a linked worktree, search upwards from the main worktree: its project store may be in an ancestor.
    let main = cwd.ancestors().find_map(main_worktree);
    let start = main.as_deref().unwrap_or(cwd);
    let mut git_root = None;
    for dir in start.ancestors() {
        let store = dir.join(STORE_DIR);
        if let Some(meta) = store_folder(&store)
            && (dir == start || !(is_same_path(&store, home_store) || has_home_store_files(&store)))
        {
            if accepts(dir, &meta) {
                return Some(dir.to_owned());
            }
            return git_root.or_else(|| (dir != start).then(|| start.to_owned()));
        }
        if git_root.is_none() && dir.join(".git").exists() {
            git_root = Some(dir.to_owned());
        }
    }
    Some(git_root.unwrap_or_else(|| start.to_owned()))
}

/// Returns the metadata of a store, or of the symbolic link to one. `None` if it is not a folder.
fn store_folder(store: &Path) -> Option<Metadata> {
    let meta = store_metadata(store).ok()??;
    (meta.is_dir() || (meta.is_symlink() && store.is_dir())).then_some(meta)
}

/// Returns whether a store folder is a home store, also one of another home folder or of another `TANMI_HOME`.
fn has_home_store_files(store: &Path) -> bool {
    store.join("registry.json").exists() || store.join("state").exists()
}

fn is_same_path(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Returns the git folder of a directory, also if `.git` is a file (submodules, worktrees) or lies in an
/// ancestor.
pub fn git_dir(dir: &Path) -> Option<PathBuf> {
    let dot_git = dir.ancestors().map(|above| above.join(".git")).find(|path| path.exists())?;
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = read_text(&dot_git)?;
    Some(dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Reads a small text file of git.
fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(crate::fs::read_limited(path, 64 << 10).ok()??).ok()
}

/// Returns the main worktree if `dir` is a linked git worktree. Both name each other: the `.git` file of the
/// worktree names a folder `.git/worktrees/<name>` of the main worktree, and the file `gitdir` in that folder
/// names the `.git` file. Otherwise a `.git` file that came with a folder could claim another project. After
/// a worktree was moved by hand, `git worktree repair` restores the link.
fn main_worktree(dir: &Path) -> Option<PathBuf> {
    let dot_git = dir.join(".git");
    if !dot_git.is_file() {
        return None;
    }
    let text = read_text(&dot_git)?;
    let git_dir = dir.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let worktrees = git_dir.parent()?;
    let common = worktrees.parent()?;
    if worktrees.file_name()? != "worktrees" || common.file_name()? != ".git" {
        return None;
    }
    let named = git_dir.join(read_text(&git_dir.join("gitdir"))?.trim());
    is_same_path(&named, &dot_git).then(|| common.parent().map(Path::to_owned))?
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
    fn project_root_prefers_store_then_git_then_directory() {
        let (_temp, root) =
            tree(&["p/.tanmi-workspace", "p/.git", "p/sub/deep", "g/.git", "g/src", "plain/x"]);
        let home = root.join("home/.tanmi-workspace");
        let find = |dir: &str| project_root(&root.join(dir), &home).strip_prefix(&root).unwrap().to_owned();
        assert_eq!(find("p/sub/deep"), Path::new("p"));
        assert_eq!(find("g/src"), Path::new("g"));
        assert_eq!(find("plain/x"), Path::new("plain/x"));
    }

    #[test]
    fn project_root_ignores_home_store_below_home_folder() {
        let (_temp, root) = tree(&["home/.tanmi-workspace", "home/code/app"]);
        let home = root.join("home/.tanmi-workspace");
        assert_eq!(project_root(&root.join("home/code/app"), &home), root.join("home/code/app"));
        assert_eq!(project_root(&root.join("home"), &home), root.join("home"));
    }

    #[test]
    fn project_root_ignores_other_home_stores() {
        for mark in ["state", "registry.json"] {
            let (_temp, root) = tree(&[&format!("outer/.tanmi-workspace/{mark}"), "outer/scratch/app"]);
            let home = root.join("outer/scratch/home/.tanmi-workspace");
            assert_eq!(project_root(&root.join("outer/scratch/app"), &home), root.join("outer/scratch/app"));
        }
    }

    fn write_file(path: &Path, text: &str) {
        crate::fs::write_new(path, text.as_bytes(), crate::fs::Durability::Journaled).unwrap();
    }

    /// Returns a scratch folder with a main worktree `main` and the linked worktree `w`.
    fn worktree() -> (tempfile::TempDir, PathBuf) {
        let (temp, root) =
            tree(&["main/.git/worktrees/w", "main/.tanmi-workspace", "w/src", "w/.tanmi-workspace"]);
        let git_dir = root.join("main/.git/worktrees/w");
        write_file(&root.join("w/.git"), &format!("gitdir: {}\n", git_dir.display()));
        write_file(&git_dir.join("commondir"), "../..\n");
        write_file(&git_dir.join("gitdir"), &format!("{}\n", root.join("w/.git").display()));
        (temp, root)
    }

    #[test]
    fn project_root_git_file_pointing_to_itself_returns_its_folder() {
        let (_temp, root) = tree(&["p/.g"]);
        write_file(&root.join("p/.git"), "gitdir: .g");
        write_file(&root.join("p/.g/commondir"), "../.git");
        let home = root.join("home/.tanmi-workspace");
        assert_eq!(project_root(&root.join("p"), &home), root.join("p"));
    }

    #[test]
    fn project_root_linked_worktree_is_main_worktree() {
        let (_temp, root) = worktree();
        let home = root.join("home/.tanmi-workspace");
        assert_eq!(project_root(&root.join("w/src"), &home), root.join("main"));
    }

    #[test]
    fn project_root_relative_worktree_links_are_followed() {
        let (_temp, root) = worktree();
        let home = root.join("home/.tanmi-workspace");
        for path in ["w/.git", "main/.git/worktrees/w/gitdir"] {
            std::fs::remove_file(root.join(path)).unwrap();
        }
        write_file(&root.join("w/.git"), "gitdir: ../main/.git/worktrees/w\n");
        write_file(&root.join("main/.git/worktrees/w/gitdir"), "../../../../w/.git\n");
        assert_eq!(project_root(&root.join("w/src"), &home), root.join("main"));
    }

    #[test]
    fn project_root_git_file_that_main_worktree_does_not_name_is_ignored() {
        let (_temp, root) = worktree();
        let home = root.join("home/.tanmi-workspace");
        // A copy of the worktree, and a folder with a git folder of its own that names another project.
        for dir in ["copy", "clone/evil/worktrees/x"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        write_file(&root.join("copy/.git"), &std::fs::read_to_string(root.join("w/.git")).unwrap());
        assert_eq!(project_root(&root.join("copy"), &home), root.join("copy"));
        for git_dir in ["evil", "evil/worktrees/x"] {
            let git_dir = Path::new("clone").join(git_dir);
            write_file(&root.join(&git_dir).join("commondir"), &root.join("main/.git").display().to_string());
            write_file(&root.join(&git_dir).join("gitdir"), &root.join("clone/.git").display().to_string());
            let _ = std::fs::remove_file(root.join("clone/.git"));
            let name = root.join(&git_dir);
            write_file(&root.join("clone/.git"), &format!("gitdir: {}", name.display()));
            assert_eq!(project_root(&root.join("clone"), &home), root.join("clone"), "{}", name.display());
        }
    }
}
