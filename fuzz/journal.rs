//! The target `journal`: any journal and any temporary files of a workspace, as a clone or a crash can leave them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tanmi_base::clock;
use tanmi_base::fs::{self, FileSig, Swap};
use tanmi_base::journal::{Change, ExpectedFile, Journal, JournalPaths, JournalTail, Recovery};
use tanmi_workspace::store::journal_paths;

use super::{NOW, replace};

/// The text of the file that a record or a swap of the input can be based on.
const OLD: &str = "old\n";
/// The text of a file that no record and no swap is based on.
const BY_HAND: &str = "by hand\n";

/// Checks opening and recovery of a journal. The parts of the input are separated by zero bytes: the journal, then the
/// files in the folder for temporary files, each with its name in the first line.
///
/// Words stand for what an input cannot know. In the journal: `@crc` (checksum of the record), `@boot` (id of this
/// start of the machine), `@before` (`Workspace.md` as it is). In a name: `@old` and `@self` (signature of
/// `Workspace.md` and of the file itself).
pub fn journal(data: &[u8]) {
    let dir = std::env::temp_dir().join(format!("tanmi-fuzz-journal-{}", std::process::id()));
    fs::remove_tree(&dir).expect("remove the folder of the last input");
    let folder = Folder::create(&dir);
    let mut parts = data.split(|byte| *byte == 0);
    let journal = folder.expand_journal(parts.next().unwrap_or_default());
    write(&folder.journal(), &journal);
    let displaced: Vec<&[u8]> = parts.filter_map(|part| folder.add_temporary_file(part)).collect();
    folder.check(&journal, &displaced);
    fs::remove_tree(&dir).expect("remove the folder");
}

/// A workspace in a scratch folder, with files around it.
struct Folder<'a> {
    dir: &'a Path,
    paths: JournalPaths,
}

/// The content of each file and link, and `None` for each folder.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

impl Folder<'_> {
    fn create(dir: &Path) -> Folder<'_> {
        let paths = journal_paths(&dir.join("store/ws-a"));
        for folder in ["outside/node-a", "store/ws-a/nodes/node-a", "store/ws-a/nodes/node-b"] {
            std::fs::create_dir_all(dir.join(folder)).expect("create the folders");
        }
        std::fs::create_dir_all(&paths.temp).expect("create the folder for temporary files");
        for file in ["outside/Node.md", "store/Workspace.md", "store/ws-a/nodes/node-a/Node.md"] {
            write(&dir.join(file), BY_HAND.as_bytes());
        }
        write(&paths.root.join("Workspace.md"), OLD.as_bytes());
        write(&paths.root.join("nodes/node-b/Node.md"), b"");
        #[cfg(unix)]
        for link in [paths.root.join("nodes/node-link"), paths.temp.join("link")] {
            std::os::unix::fs::symlink(dir.join("outside"), link).expect("create a link");
        }
        Folder { dir, paths }
    }

    fn journal(&self) -> PathBuf {
        self.paths.root.join(".local/journal")
    }

    fn old_sig(&self) -> FileSig {
        sig(&self.paths.root.join("Workspace.md"))
    }

    fn expand_journal(&self, input: &[u8]) -> Vec<u8> {
        let before = serde_json::to_string(&ExpectedFile::of(self.old_sig(), OLD.as_bytes()));
        let text = replace(input, b"@boot", clock::boot_id().as_bytes());
        let text = replace(&text, b"@before", before.expect("a file as JSON").as_bytes());
        let lines = text.split_inclusive(|byte| *byte == b'\n').flat_map(|line| {
            let Some(json) = line.strip_prefix(b"R @crc ") else { return line.to_vec() };
            let crc = crc32(json.strip_suffix(b"\n").unwrap_or(json));
            [format!("R {crc:08x} ").as_bytes(), json].concat()
        });
        lines.collect()
    }

    /// Writes a temporary file. Returns its content if no program may remove it: it is in the place of a file of the
    /// workspace, and its name does not say that it is the file that was written or expected.
    fn add_temporary_file<'a>(&self, part: &'a [u8]) -> Option<&'a [u8]> {
        let end = part.iter().position(|byte| *byte == b'\n')?;
        let (name, content) = (std::str::from_utf8(&part[..end]).ok()?, &part[end + 1..]);
        let unnamed = self.paths.temp.join("unnamed");
        write(&unnamed, content);
        let text = |sig: FileSig| format!("{:x}.{:x}.{:x}", sig.mtime_ns, sig.size, sig.inode);
        let name = name.replace('/', "_").replace("@old", &text(self.old_sig()));
        let is_foreign = !name.contains("@self");
        let path = self.paths.temp.join(name.replace("@self", &text(sig(&unnamed))));
        if path.exists() || std::fs::rename(&unnamed, &path).is_err() {
            return None;
        }
        let target = Swap::of_temp(&path)?.target().to_owned();
        let is_below_link = target.starts_with("nodes/node-link/");
        let change = Change::Write { path: target, before: None, text: String::new() };
        (is_foreign && !is_below_link && (self.paths.allows)(&change)).then_some(content)
    }

    /// Opens the journal and recovers twice, as if the first process had been killed before its checkpoint.
    fn check(&self, journal: &[u8], displaced: &[&[u8]]) {
        let before = self.tree();
        let _ = JournalTail::from_end(&self.journal()).poll();
        let _ = JournalTail::after(&self.journal(), 1).poll();
        let opened = self.open();
        assert_eq!(self.tree(), before, "opening writes nothing");
        let Some(mut opened) = opened else { return };
        self.paths.clear_temp().expect("temporary files are removed");
        let left = std::fs::read_dir(&self.paths.temp).into_iter().flatten().flatten();
        let mut left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert!(!left.any(|name| name.starts_with("tmp-") || name.starts_with("swap-")));
        if opened.needs_recovery() {
            let first = opened.recover(0);
            let recovered = self.tree();
            match &first {
                Ok(recovery) => check_rest(recovery, journal),
                Err(error) => assert!(fs::refusal(error).is_some(), "recovery fails for ever: {error}"),
            }
            opened = self.open().expect("the journal opens again");
            let second = opened.recover(0);
            assert_eq!(self.tree(), recovered, "a second recovery changes nothing");
            assert_eq!(first.is_ok(), second.is_ok(), "{first:?} {second:?}");
            if first.is_ok() {
                opened.checkpoint().expect("a new journal file");
                assert!(!self.open().expect("the new journal opens").needs_recovery());
            }
        }
        let after = self.tree();
        for content in displaced.iter().chain([&BY_HAND.as_bytes()]) {
            let is_kept = |path: &Path| path.starts_with("store/ws-a") || path.starts_with("store/.trash");
            let mut kept = after.iter().filter(|(path, _)| is_kept(path));
            assert!(kept.any(|(_, found)| found.as_deref() == Some(content)), "a file is lost: {content:?}");
        }
        assert_eq!(outside(&after), outside(&before), "a file outside of the workspace");
        if !opened.needs_recovery() {
            self.check_commit(opened);
        }
    }

    /// Checks that the next change can be made.
    fn check_commit(&self, mut journal: Journal) {
        let (next, path) =
            (journal.seq().checked_add(1).unwrap_or(1), String::from("nodes/node-new/Node.md"));
        let change = Change::Write { path, before: None, text: String::from("new\n") };
        // Fails if the journal created this file.
        if journal.commit(vec![change], NOW).is_ok() {
            journal.mark_applied().expect("the mark is written");
            assert_eq!(journal.seq(), next);
            let reopened = self.open().expect("the journal opens again");
            assert_eq!((reopened.seq(), reopened.needs_recovery()), (next, false));
        }
    }

    fn open(&self) -> Option<Journal> {
        Journal::open_existing(&self.journal(), self.paths.clone()).ok().flatten()
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        add_tree(self.dir, Path::new(""), &mut tree);
        tree
    }
}

/// Checks that a line of the journal that is no entry is kept, with all lines after it.
fn check_rest(recovery: &Recovery, journal: &[u8]) {
    let rest = recovery.damaged.as_ref().map(|path| std::fs::read(path).expect("the rest is kept"));
    let rest = rest.unwrap_or_default();
    let understood = journal.strip_suffix(rest.as_slice()).expect("the rest is the end of the journal");
    let complete_len = understood.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    assert!(rest.is_empty() || complete_len == understood.len(), "the rest begins with a line");
    for line in understood[..complete_len].split_inclusive(|byte| *byte == b'\n') {
        let is_entry = [b"H ", b"R ", b"A ", b"V "].iter().any(|start| line.starts_with(*start));
        assert!(is_entry, "{:?}", String::from_utf8_lossy(line));
    }
}

/// Returns the files that no journal may change.
fn outside(tree: &Tree) -> Vec<(&PathBuf, &Option<Vec<u8>>)> {
    let may_change = ["store/.trash", "store/ws-a/Workspace.md", "store/ws-a/nodes", "store/ws-a/.local"];
    let is_outside = |path: &Path| !may_change.iter().any(|allowed| path.starts_with(allowed));
    tree.iter().filter(|(path, _)| is_outside(path)).collect()
}

fn add_tree(dir: &Path, below: &Path, tree: &mut Tree) {
    for entry in std::fs::read_dir(dir.join(below)).expect("list a folder").flatten() {
        let (path, full) = (below.join(entry.file_name()), entry.path());
        let kind = entry.file_type().expect("the type of a file");
        if kind.is_dir() {
            add_tree(dir, &path, tree);
        }
        let content = if kind.is_file() {
            Some(std::fs::read(full).expect("read a file"))
        } else {
            std::fs::read_link(full).ok().map(|target| target.to_string_lossy().into_owned().into_bytes())
        };
        tree.insert(path, content);
    }
}

fn sig(path: &Path) -> FileSig {
    FileSig::of(path).ok().flatten().expect("the file exists")
}

fn write(path: &Path, bytes: &[u8]) {
    #[allow(clippy::disallowed_methods)] // temporary file
    std::fs::write(path, bytes).expect("write a file");
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
