//! The identity of a project folder: a random id in a file that git ignores.
//!
//! `trust.json` records the id together with the path. A folder that was deleted and cloned anew has another
//! id or none, and a copy of the id at another path is not recorded there.

use std::io;
use std::path::{Path, PathBuf};

use tanmi_base::paths::project_store;
use tanmi_base::{fs, id};

const MAX_BYTES: u64 = 64;

fn local_dir(project: &Path) -> PathBuf {
    project_store(project).join(".local")
}

fn id_file(project: &Path) -> PathBuf {
    local_dir(project).join("project-id")
}

/// Returns the id in the folder of a project, if there is a valid one.
pub fn read(project: &Path) -> Option<String> {
    // A link could lead to the id of another folder, which the user trusts.
    fs::check_folder(&project_store(project)).ok()?;
    fs::check_folder(&local_dir(project)).ok()?;
    let (bytes, _) = fs::read_regular(&id_file(project), MAX_BYTES).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim_end().to_owned()).filter(|id| !id.is_empty())
}

/// Writes a new random id, in place of any file that is there, and returns it.
pub fn renew(project: &Path) -> io::Result<String> {
    let (store, local) = (project_store(project), local_dir(project));
    if let Some(link) = [&store, &local].into_iter().find(|dir| fs::is_link(dir)) {
        return Err(io::Error::other(format!("{} is a symbolic link", link.display())));
    }
    if !store.is_dir() {
        // Only this folder: a project that was moved away is not created again.
        std::fs::create_dir(&store)?;
    }
    let id = id::secret(32).ok_or_else(|| io::Error::other("the system has no random numbers"))?;
    // A file of its own, because the `.gitignore` of a cloned store may not exclude this folder.
    fs::write_private(&local.join(".gitignore"), b"*\n")?;
    fs::write_private(&id_file(project), format!("{id}\n").as_bytes())?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renew_replaces_any_id_with_a_new_private_one() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), None);
        let first = renew(dir.path()).unwrap();
        assert_eq!(read(dir.path()).as_ref(), Some(&first));
        assert_ne!(renew(dir.path()).unwrap(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(id_file(dir.path())), 0o600);
        }
    }

    #[test]
    fn read_long_or_empty_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        renew(dir.path()).unwrap();
        for text in ["", "\n", &"x".repeat(65)] {
            fs::write_private(&id_file(dir.path()), text.as_bytes()).unwrap();
            assert_eq!(read(dir.path()), None, "{text:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn link_is_neither_read_nor_written_through() {
        use std::os::unix::fs::symlink;
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        renew(other.path()).unwrap();
        renew(dir.path()).unwrap();
        std::fs::remove_file(id_file(dir.path())).unwrap();
        symlink(id_file(other.path()), id_file(dir.path())).unwrap();
        assert_eq!(read(dir.path()), None);
        fs::remove_tree(&local_dir(dir.path())).unwrap();
        symlink(other.path(), local_dir(dir.path())).unwrap();
        assert!(renew(dir.path()).is_err());
        assert!(!other.path().join("project-id").exists());
    }
}
