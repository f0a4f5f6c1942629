//! Replacement and removal of a file only if it still is the file that was read.
//!
//! The new file and the old one swap their names in one step, and the displaced file is checked afterwards, when no
//! other program can reach it by its name. The name of the temporary file says which file it was swapped with, what we
//! wrote and what we expected. A swap that a killed process left behind is therefore finished by the same code
//! ([`Swap::settle`]) as one that went through.
//!
//! Invariant: a file that another program wrote is never removed. It gets its place back, or moves to the folder for
//! kept files if a newer file has its place.

use std::io;
use std::path::{Path, PathBuf};

use super::{Durability, FileSig, is_running, sync_dir, sync_parent, temp_path, write_like};

/// The folders of a swap, all on one file system.
#[derive(Clone, Copy, Debug)]
pub struct SwapFolders<'a> {
    /// The folder that the names of targets are relative to.
    pub root: &'a Path,
    /// The folder for temporary files.
    pub temp: &'a Path,
    /// The folder for kept files. It is created when it is needed.
    pub kept: &'a Path,
}

impl<'a> SwapFolders<'a> {
    /// Returns one folder for everything: the temporary and kept files are beside the target.
    pub fn beside(dir: &'a Path) -> SwapFolders<'a> {
        SwapFolders { root: dir, temp: dir, kept: dir }
    }
}

/// How a swap ended.
#[derive(Debug, PartialEq, Eq)]
pub enum SwapOutcome {
    /// The displaced file was the expected one.
    Done,
    /// The file in place is another one, and our change was not made.
    Withdrawn,
    /// Two programs wrote the file. The newer file is in place, and the other one is kept at this path.
    Kept(PathBuf),
}

/// A replacement under way. It is known by the name of its temporary file alone.
#[derive(Debug)]
pub struct Swap {
    temp: PathBuf,
    pid: u32,
    /// The file that we wrote, or the default if the file is to be removed.
    own: FileSig,
    expected: FileSig,
    /// Path of the target relative to the root, with `/`. Empty if it is too long for the name of a file.
    target: String,
}

/// The longest target that fits into the name of the temporary file.
const MAX_TARGET: usize = 100;

impl Swap {
    fn new(folders: &SwapFolders<'_>, path: &Path, own: FileSig, expected: FileSig) -> Swap {
        let target = path.strip_prefix(folders.root).unwrap_or(Path::new("")).to_string_lossy();
        let encoded = target.replace('%', "%25").replace('/', "%2F");
        let encoded = Some(encoded).filter(|name| name.len() <= MAX_TARGET).unwrap_or_default();
        let unique = temp_path(Path::new("")).to_string_lossy().replacen("tmp-", "swap-", 1);
        let sig = |sig: FileSig| format!("{:x}.{:x}.{:x}", sig.mtime_ns, sig.size, sig.inode);
        let temp = folders.temp.join(format!("{unique}-{}-{}-{encoded}", sig(own), sig(expected)));
        Swap { temp, pid: std::process::id(), own, expected, target: target.into_owned() }
    }

    /// Returns the swap that this temporary file belongs to, if its name says so.
    pub fn of_temp(temp: &Path) -> Option<Swap> {
        let name = temp.file_name()?.to_str()?.strip_prefix("swap-")?;
        let parts: Vec<&str> = name.splitn(6, '-').collect();
        let [pid, _, _, own, expected, target] = parts.as_slice() else { return None };
        Some(Swap {
            temp: temp.to_owned(),
            pid: pid.parse().ok()?,
            own: parse_sig(own)?,
            expected: parse_sig(expected)?,
            target: target.replace("%2F", "/").replace("%25", "%"),
        })
    }

    /// Returns the path of the target relative to the root.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns whether the process that began the swap no longer runs. Returns `false` where that cannot be determined.
    pub fn is_abandoned(&self) -> bool {
        is_running(self.pid) == Some(false)
    }

    /// Ends the swap, in any state in which a process can leave it. The caller has checked that the target of a swap of
    /// another process may be written.
    pub fn settle(&self, folders: &SwapFolders<'_>) -> io::Result<SwapOutcome> {
        self.settle_with(folders, exchange)
    }

    fn settle_with(
        &self,
        folders: &SwapFolders<'_>,
        mut exchange: impl FnMut(&Path, &Path) -> io::Result<bool>,
    ) -> io::Result<SwapOutcome> {
        let path = folders.root.join(&self.target);
        let at = |place: &Path| FileSig::of(place).ok().flatten();
        if at(&self.temp) == Some(self.expected) {
            return std::fs::remove_file(&self.temp).map(|()| SwapOutcome::Done);
        }
        // Another program wrote the displaced file, so it gets its place back. If that displaces an even newer file, that
        // one gets the place.
        let mut placed = Some(self.own);
        while at(&path) == placed {
            let displaced = at(&self.temp);
            exchange(&self.temp, &path)?;
            if at(&self.temp) == placed {
                break;
            }
            placed = displaced;
        }
        // A hard link never replaces an existing file.
        if at(&self.temp) == Some(self.own) || std::fs::hard_link(&self.temp, &path).is_ok() {
            return std::fs::remove_file(&self.temp).map(|()| SwapOutcome::Withdrawn);
        }
        self.keep(folders).map(SwapOutcome::Kept)
    }

    /// Moves the displaced file to the folder for kept files.
    pub fn keep(&self, folders: &SwapFolders<'_>) -> io::Result<PathBuf> {
        crate::place::ensure_private_dir(folders.kept)?;
        let kept = kept_path(folders.kept, &self.target);
        std::fs::rename(&self.temp, &kept)?;
        sync_dir(folders.kept);
        Ok(kept)
    }
}

fn parse_sig(text: &str) -> Option<FileSig> {
    let mut parts = text.split('.').map(|part| u64::from_str_radix(part, 16).ok());
    let sig = FileSig { mtime_ns: parts.next()??.cast_signed(), size: parts.next()??, inode: parts.next()?? };
    parts.next().is_none().then_some(sig)
}

/// Returns an unused path for a version of the file `target` that is not in its place.
pub(crate) fn kept_path(kept: &Path, target: &str) -> PathBuf {
    kept.join(format!("{}-{}", target.replace('/', "-"), crate::id::random(KEPT_SUFFIX)))
}

/// The number of random characters at the end of the name of a kept file.
const KEPT_SUFFIX: usize = 6;

/// Returns whether a path can be one that [`kept_path`] returned for `target`.
pub(crate) fn is_kept_path(path: &Path, target: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let suffix = name.strip_prefix(&target.replace('/', "-")).and_then(|rest| rest.strip_prefix('-'));
    suffix.is_some_and(|suffix| suffix.len() == KEPT_SUFFIX)
}

/// Like [`super::write_atomic`], but only if the file still is `expected`. Returns `None` if another program
/// had changed the file; that file stays in place.
pub fn replace_if(
    path: &Path,
    bytes: &[u8],
    folders: &SwapFolders<'_>,
    durability: Durability,
    expected: FileSig,
) -> io::Result<Option<FileSig>> {
    let temp = temp_path(folders.temp);
    let named = write_like(path, &temp, bytes, durability).and_then(|own| {
        // Named only when it is complete. The name then tells recovery everything.
        let swap = Swap::new(folders, path, own, expected);
        std::fs::rename(&temp, &swap.temp).map(|()| swap)
    });
    let swap = named.inspect_err(|_| drop(std::fs::remove_file(&temp)))?;
    let outcome = match exchange(&swap.temp, path) {
        Ok(true) => swap.settle(folders),
        // No atomic swap on this system: the caller's check before this call has to suffice.
        Ok(false) => std::fs::rename(&swap.temp, path).map(|()| SwapOutcome::Done),
        Err(error) => {
            let _ = std::fs::remove_file(&swap.temp);
            Err(error)
        }
    };
    sync_parent(path, durability);
    Ok((outcome? == SwapOutcome::Done).then_some(swap.own))
}

/// Removes a file if it still is `expected`. Returns `false` if it is another file, which stays.
pub fn remove_if(path: &Path, folders: &SwapFolders<'_>, expected: FileSig) -> io::Result<bool> {
    let swap = Swap::new(folders, path, FileSig::default(), expected);
    std::fs::rename(path, &swap.temp)?;
    swap.settle(folders).map(|outcome| outcome == SwapOutcome::Done)
}

/// Returns whether a killed process left a swap with this file beside it.
pub fn has_abandoned_swap(path: &Path) -> bool {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let swaps = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut swaps = swaps.filter_map(|entry| Swap::of_temp(&entry.path()));
    swaps.any(|swap| swap.target == name.to_string_lossy() && swap.is_abandoned())
}

/// Settles the swaps that killed processes left in a folder which other processes use too. Only targets that satisfy
/// `is_target` get their file back; the files of others stay as they are. Returns the targets with a kept file.
pub fn recover_swaps(
    folders: &SwapFolders<'_>,
    is_target: impl Fn(&str) -> bool,
) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match std::fs::read_dir(folders.temp) {
        Err(error) if super::is_absent(&error) => return Ok(Vec::new()),
        other => other?,
    };
    let swaps = entries.flatten().filter_map(|entry| Swap::of_temp(&entry.path()));
    let mut kept = Vec::new();
    for swap in swaps.filter(|swap| swap.is_abandoned() && is_target(swap.target())) {
        if let SwapOutcome::Kept(path) = swap.settle(folders)? {
            kept.push((swap.target, path));
        }
    }
    Ok(kept)
}

/// Swaps two files atomically. Returns `false` where the system or the file system cannot.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::super::{create_atomic, write_atomic, write_new};
    use super::*;

    const FAST: Durability = Durability::Journaled;

    fn sig(path: &Path) -> FileSig {
        FileSig::of(path).unwrap().unwrap()
    }

    fn names(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn changed_file_is_neither_replaced_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, folders) = (dir.path().join("f"), SwapFolders::beside(dir.path()));
        assert!(create_atomic(&path, b"one", dir.path(), FAST).unwrap().is_some());
        assert!(create_atomic(&path, b"two", dir.path(), FAST).unwrap().is_none(), "file exists");
        let read = sig(&path);
        write_atomic(&path, b"theirs", dir.path(), FAST).unwrap();
        assert_eq!(replace_if(&path, b"ours", &folders, FAST, read).unwrap(), None);
        assert!(!remove_if(&path, &folders, read).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        let now = sig(&path);
        assert_eq!(replace_if(&path, b"ours", &folders, FAST, now).unwrap(), Some(sig(&path)));
        assert_eq!((std::fs::read(&path).unwrap(), names(dir.path())), (b"ours".to_vec(), 1));
        assert!(remove_if(&path, &folders, sig(&path)).unwrap() && !path.exists());
        assert_eq!(names(dir.path()), 0);
    }

    /// The files of a swap: at the place of the target, and at the temporary name.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Content {
        Absent,
        Ours,
        Expected,
        Theirs,
        Newest,
    }

    /// Leaves a swap with these files, as a killed process does, settles it and returns all contents by name.
    fn settle_after_kill(in_place: Content, at_temp: Content) -> (Option<String>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        let folders = SwapFolders { root: dir.path(), temp: dir.path(), kept: &kept };
        let source = |content: Content| dir.path().join(format!("{content:?}"));
        for content in [Content::Ours, Content::Expected, Content::Theirs, Content::Newest] {
            write_new(&source(content), format!("{content:?}").as_bytes(), FAST).unwrap();
        }
        let path = dir.path().join("a%2Fb.md");
        let swap = Swap::new(&folders, &path, sig(&source(Content::Ours)), sig(&source(Content::Expected)));
        for (content, place) in [(in_place, &path), (at_temp, &swap.temp)] {
            if content != Content::Absent {
                std::fs::rename(source(content), place).unwrap();
            }
        }
        let found = Swap::of_temp(&swap.temp).unwrap();
        assert_eq!((found.target(), found.own, found.expected), ("a%2Fb.md", swap.own, swap.expected));
        found.settle(&folders).unwrap();
        assert!(!swap.temp.exists());
        let read = |path: PathBuf| std::fs::read_to_string(path).ok();
        let kept = std::fs::read_dir(&kept).into_iter().flatten().flatten();
        (read(path), kept.filter_map(|entry| read(entry.path())).collect())
    }

    #[test]
    fn settle_in_every_state_of_a_killed_process_loses_no_foreign_file() {
        use Content::{Absent, Expected, Newest, Ours, Theirs};
        let cases = [
            // Before the exchange.
            (Expected, Ours, "Expected", None),
            (Theirs, Ours, "Theirs", None),
            // After the exchange.
            (Ours, Expected, "Ours", None),
            (Ours, Theirs, "Theirs", None),
            // Another program wrote a third file since.
            (Newest, Theirs, "Newest", Some("Theirs")),
            (Newest, Expected, "Newest", None),
            // While the file was swapped back.
            (Theirs, Newest, "Theirs", Some("Newest")),
            // A removal, and a file that a person removed.
            (Absent, Theirs, "Theirs", None),
            (Absent, Expected, "", None),
        ];
        for (in_place, at_temp, place, kept) in cases {
            let found = settle_after_kill(in_place, at_temp);
            let expected = (Some(place.to_owned()).filter(|text| !text.is_empty()), kept);
            let found = (found.0, found.1.first().map(String::as_str).map(str::to_owned));
            assert_eq!((found.0, found.1.as_deref()), expected, "{in_place:?} {at_temp:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn settle_puts_newest_file_in_place_if_another_program_writes_meanwhile() {
        for (writes, place, kept) in [(0, "one", None), (1, "two", Some("one")), (2, "three", Some("two"))] {
            let dir = tempfile::tempdir().unwrap();
            let (path, folders) = (dir.path().join("f"), SwapFolders::beside(dir.path()));
            let replace = |text: &str| write_atomic(&path, text.as_bytes(), dir.path(), FAST).unwrap();
            let own = replace("ours");
            let swap = Swap::new(&folders, &path, own, FileSig::default());
            write_new(&swap.temp, b"one", FAST).unwrap();
            let mut newer = ["two", "three"].into_iter().take(writes);
            let outcome = swap.settle_with(&folders, |a, b| {
                // Directly before the swap.
                newer.next().map(replace);
                exchange(a, b)
            });
            let found = match outcome.unwrap() {
                SwapOutcome::Kept(path) => Some(std::fs::read_to_string(path).unwrap()),
                outcome => {
                    assert_eq!(outcome, SwapOutcome::Withdrawn);
                    None
                }
            };
            assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), found.as_deref()), (place, kept));
            assert_eq!(names(dir.path()), 1 + usize::from(kept.is_some()));
        }
    }

    #[test]
    fn recover_swaps_leaves_running_processes_and_other_targets_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folders = SwapFolders::beside(dir.path());
        let swap = Swap::new(&folders, &dir.path().join("a.json"), FileSig::default(), FileSig::default());
        write_new(&swap.temp, b"theirs", FAST).unwrap();
        assert_eq!(recover_swaps(&folders, |_| true).unwrap(), []);
        assert!(swap.temp.exists(), "the process runs");
        let dead = swap.temp.to_string_lossy().replace(&format!("swap-{}-", swap.pid), "swap-4194304-");
        std::fs::rename(&swap.temp, &dead).unwrap();
        recover_swaps(&folders, |target| target == "b.json").unwrap();
        assert!(Path::new(&dead).exists(), "another target");
        recover_swaps(&folders, |target| target == "a.json").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a.json")).unwrap(), b"theirs");
        assert_eq!(names(dir.path()), 1);
    }

    #[test]
    fn replace_if_long_name_works() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x".repeat(250));
        write_new(&path, b"one", FAST).unwrap();
        let folders = SwapFolders::beside(dir.path());
        assert!(replace_if(&path, b"two", &folders, FAST, sig(&path)).unwrap().is_some());
        assert_eq!((std::fs::read(&path).unwrap(), names(dir.path())), (b"two".to_vec(), 1));
    }
}
