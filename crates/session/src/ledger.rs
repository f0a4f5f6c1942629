//! The ledger: one short line per decision with injected text, and each distinct text once. Hooks append and
//! never read. [`Ledger`] is the interface, [`FileLedger`] keeps it in the home store.
//!
//! Decisions are made elsewhere. A lost line only affects a report, so nothing is synced.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::fs::{self, Durability};
use tanmi_base::{Millis, clock, hash, secrets};

use crate::{Error, Result};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerEntry {
    pub at: Millis,
    pub session: String,
    pub platform: String,
    /// The caller: `hook`, `mcp` or `api`.
    pub source: String,
    pub event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The focused node, or the node that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Ids of the rules that contributed text, in their order.
    pub rules: Vec<String>,
    pub bytes: usize,
    /// Estimated number of tokens.
    pub tokens: usize,
    /// Microseconds from the start of the program to the decision.
    pub micros: u64,
    /// Digest of the text, which is stored under `texts/`.
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct LedgerRead {
    /// Entries, the oldest first.
    pub entries: Vec<LedgerEntry>,
    /// Number of lines that could not be read. The other lines are not affected.
    pub unreadable: usize,
}

/// The entries that were added to a day of the ledger after a position.
#[derive(Clone, Debug, Default)]
pub struct LedgerTail {
    /// Entries in the order in which they were added.
    pub entries: Vec<LedgerEntry>,
    /// The position after the last entry.
    pub position: u64,
}

/// The record of injected texts.
pub trait Ledger: Send + Sync {
    /// Appends an entry, and stores its text with secrets masked unless that text is already stored.
    fn append(&self, entry: LedgerEntry, text: &str) -> Result<()>;
    /// Returns the entries from the day `from` (`YYYY-MM-DD`) through the day `to`, both inclusive.
    fn read(&self, from: Option<&str>, to: Option<&str>) -> Result<LedgerRead>;
    /// Returns the days that have entries, the oldest first.
    fn days(&self) -> Result<Vec<String>>;
    /// Returns the entries of a day after a position, 0 for all of them. Returns `None` if the day has no
    /// such position, because its entries were replaced.
    fn read_after(&self, day: &str, position: u64) -> Result<Option<LedgerTail>>;
    /// Returns the text of an entry, with secrets masked.
    fn text(&self, digest: &str) -> Option<String>;
    /// Removes the days before the day of `before`, and texts that no remaining entry refers to. Looks at no more than
    /// `limit` of each; every text has its turn as the days go by.
    fn prune(&self, before: Millis, limit: usize) -> Result<()>;
    /// Returns a number that changes when an entry is added on the day of `now`.
    fn revision(&self, now: Millis) -> u64;
}

/// The ledger in the home store: one file per day.
pub struct FileLedger {
    dir: PathBuf,
}

impl FileLedger {
    pub fn new(home: &Path) -> FileLedger {
        FileLedger { dir: home.join("ledger") }
    }

    fn texts(&self) -> PathBuf {
        self.dir.join("texts")
    }

    fn file(&self, at: Millis) -> PathBuf {
        self.dir.join(format!("{}.jsonl", clock::utc_day(at)))
    }
}

impl Ledger for FileLedger {
    fn append(&self, entry: LedgerEntry, text: &str) -> Result<()> {
        let (text, _) = secrets::mask(text);
        let digest = hash::md5_hex(text.as_bytes());
        let texts = self.texts();
        let path = texts.join(&digest);
        if !path.exists() {
            fs::create_private_dir(&texts).map_err(Error::io(&texts))?;
            fs::replace_private(&path, text.as_bytes(), &texts, Durability::Journaled)
                .map_err(Error::io(&path))?;
        }
        let file = self.file(entry.at);
        let mut line = serde_json::to_vec(&LedgerEntry { text: digest, ..entry }).unwrap_or_default();
        line.push(b'\n');
        fs::append_private(&file, &line).map_err(Error::io(&file))
    }

    fn read(&self, from: Option<&str>, to: Option<&str>) -> Result<LedgerRead> {
        let mut read = LedgerRead::default();
        for day in self.days()? {
            if from.is_some_and(|from| day.as_str() < from) || to.is_some_and(|to| day.as_str() > to) {
                continue;
            }
            let path = self.dir.join(format!("{day}.jsonl"));
            let Ok(bytes) = fs::read_optional(&path) else {
                read.unreadable += 1;
                continue;
            };
            let bytes = bytes.unwrap_or_default();
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
                match serde_json::from_slice(line) {
                    Ok(entry) => read.entries.push(entry),
                    Err(_) => read.unreadable += 1,
                }
            }
        }
        // Several processes append, so lines are not always in the order of time.
        read.entries.sort_by_key(|entry| entry.at);
        Ok(read)
    }

    fn days(&self) -> Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Err(error) if fs::is_absent(&error) => return Ok(Vec::new()),
            other => other.map_err(Error::io(&self.dir))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut days: Vec<String> = names
            .filter_map(|name| {
                name.strip_suffix(".jsonl").filter(|day| clock::is_day(day)).map(str::to_owned)
            })
            .collect();
        days.sort();
        Ok(days)
    }

    fn read_after(&self, day: &str, position: u64) -> Result<Option<LedgerTail>> {
        let path = self.dir.join(format!("{day}.jsonl"));
        let read = || -> io::Result<Option<Vec<u8>>> {
            let mut file = std::fs::File::open(&path)?;
            let length = file.metadata()?.len();
            if length < position {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(position))?;
            file.read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        let bytes = match read() {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) if fs::is_absent(&error) => return Ok(None),
            Err(error) => return Err(Error::io(&path)(error)),
        };
        // A line without its end may still be written.
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes[..complete].split(|byte| *byte == b'\n');
        let entries = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Ok(Some(LedgerTail { entries, position: position + complete as u64 }))
    }

    fn text(&self, digest: &str) -> Option<String> {
        let is_digest = digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bytes = is_digest.then(|| std::fs::read(self.texts().join(digest)).ok()).flatten()?;
        String::from_utf8(bytes).ok()
    }

    fn prune(&self, before: Millis, limit: usize) -> Result<()> {
        self.remove_expired(before, limit).map_err(Error::io(&self.dir))
    }

    fn revision(&self, now: Millis) -> u64 {
        fs::revision([self.file(now)])
    }
}

impl FileLedger {
    fn remove_expired(&self, before: Millis, limit: usize) -> io::Result<()> {
        let days = self.days().unwrap_or_default();
        let oldest = clock::utc_day(before);
        let (expired, kept) = days.split_at(days.partition_point(|day| *day < oldest));
        for day in expired.iter().take(limit) {
            std::fs::remove_file(self.dir.join(format!("{day}.jsonl")))?;
        }
        let mut texts: Vec<String> = match std::fs::read_dir(self.texts()) {
            Err(error) if fs::is_absent(&error) => return Ok(()),
            entries => entries?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect(),
        };
        // Listed before the entries are read, and without the latest ones: a text is written before its entry.
        let since = fs::FileSig::of(&self.dir)?.map_or(0, |sig| sig.mtime_ns) - 1_000_000_000;
        choose_window(&mut texts, before, limit);
        texts.retain(|name| {
            let sig = fs::FileSig::of(&self.texts().join(name)).ok().flatten();
            sig.is_some_and(|sig| sig.mtime_ns < since)
        });
        let left = expired.iter().skip(limit).chain(kept);
        let Some(needed) = self.needed_texts(left)?.filter(|_| !texts.is_empty()) else { return Ok(()) };
        for name in texts.iter().filter(|name| !needed.contains(*name)) {
            std::fs::remove_file(self.texts().join(name))?;
        }
        Ok(())
    }

    /// Returns the digests of all texts that the entries of these days refer to. `None` if that is unknown, because an
    /// entry cannot be read or there is too much to read.
    fn needed_texts<'a>(
        &self,
        days: impl Iterator<Item = &'a String>,
    ) -> io::Result<Option<BTreeSet<String>>> {
        let (mut needed, mut left) = (BTreeSet::new(), MAX_READ);
        for day in days {
            let path = self.dir.join(format!("{day}.jsonl"));
            let Some(bytes) = fs::read_optional(&path)? else { continue };
            let Some(rest) = left.checked_sub(bytes.len()) else { return Ok(None) };
            left = rest;
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
                let Ok(TextOf { text }) = serde_json::from_slice(line) else { return Ok(None) };
                needed.insert(text);
            }
        }
        Ok(Some(needed))
    }
}

/// The part of a [`LedgerEntry`] that names its text.
#[derive(Deserialize)]
struct TextOf {
    text: String,
}

/// Upper limit for the entries that are read to find unneeded texts.
const MAX_READ: usize = 32 << 20;

/// Cuts a list to at most `limit` names. Which ones depends on the day, so that every name has its turn.
pub(crate) fn choose_window(names: &mut Vec<String>, at: Millis, limit: usize) {
    names.sort();
    let day = usize::try_from(at / clock::DAY).unwrap_or(0);
    if let Some(start) = day.wrapping_mul(limit).checked_rem(names.len()) {
        names.rotate_left(start);
    }
    names.truncate(limit);
}

#[cfg(test)]
mod tests {
    use tanmi_base::clock::DAY;

    use super::*;

    fn entry(at: Millis, session: &str) -> LedgerEntry {
        LedgerEntry { at, session: session.into(), bytes: 3, ..LedgerEntry::default() }
    }

    #[test]
    fn append_writes_one_file_per_day_and_each_text_once() {
        let home = tempfile::tempdir().unwrap();
        let ledger = FileLedger::new(home.path());
        for (at, session) in [(0, "a"), (1, "b"), (DAY, "a")] {
            ledger.append(entry(at, session), "上下文").unwrap();
        }
        assert_eq!(ledger.days().unwrap(), ["1970-01-01", "1970-01-02"]);
        let all = ledger.read(None, None).unwrap();
        assert_eq!((all.entries.len(), all.unreadable), (3, 0));
        assert_eq!(ledger.text(&all.entries[0].text).as_deref(), Some("上下文"));
        assert_eq!(std::fs::read_dir(home.path().join("ledger/texts")).unwrap().count(), 1);
        assert_eq!(ledger.read(Some("1970-01-02"), None).unwrap().entries.len(), 1);
        assert_eq!(ledger.text("../../session-bindings.json"), None);
    }

    #[test]
    fn append_masks_secrets_and_read_skips_bad_lines() {
        let home = tempfile::tempdir().unwrap();
        let ledger = FileLedger::new(home.path());
        ledger.append(entry(0, "a"), "DB_PASSWORD=hunter2!x").unwrap();
        let file = home.path().join("ledger/1970-01-01.jsonl");
        fs::append_private(&file, b"{torn\n\xff\n").unwrap();
        ledger.append(entry(2, "b"), "y").unwrap();
        let read = ledger.read(None, None).unwrap();
        assert_eq!((read.entries.len(), read.unreadable), (2, 2));
        assert_eq!(ledger.text(&read.entries[0].text).unwrap(), "DB_PASSWORD=[masked: password]");
    }

    #[test]
    fn read_after_position_returns_new_complete_lines() {
        let home = tempfile::tempdir().unwrap();
        let ledger = FileLedger::new(home.path());
        ledger.append(entry(0, "a"), "x").unwrap();
        let first = ledger.read_after("1970-01-01", 0).unwrap().unwrap();
        ledger.append(entry(1, "b"), "y").unwrap();
        fs::append_private(&home.path().join("ledger/1970-01-01.jsonl"), b"{\"at\": 2").unwrap();
        let second = ledger.read_after("1970-01-01", first.position).unwrap().unwrap();
        let sessions = |tail: &LedgerTail| tail.entries.iter().map(|e| e.session.clone()).collect::<Vec<_>>();
        assert_eq!((sessions(&first), sessions(&second)), (vec!["a".into()], vec!["b".into()]));
        assert!(ledger.read_after("1970-01-01", second.position).unwrap().unwrap().entries.is_empty());
        assert!(ledger.read_after("1970-01-01", 9999).unwrap().is_none(), "the file is shorter");
        assert!(ledger.read_after("1970-01-02", 0).unwrap().is_none(), "there is no such day");
    }

    #[test]
    fn prune_removes_old_days_and_their_texts() {
        let home = tempfile::tempdir().unwrap();
        let ledger = FileLedger::new(home.path());
        ledger.append(entry(0, "a"), "old").unwrap();
        ledger.append(entry(40 * DAY, "a"), "new").unwrap();
        let texts = home.path().join("ledger/texts");
        let old = ledger.read(None, None).unwrap().entries[0].text.clone();
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
        std::fs::File::open(texts.join(&old)).unwrap().set_modified(long_ago).unwrap();
        ledger.prune(30 * DAY, 100).unwrap();
        assert_eq!(ledger.days().unwrap(), ["1970-02-10"]);
        assert_eq!((ledger.text(&old), std::fs::read_dir(texts).unwrap().count()), (None, 1));
        ledger.prune(30 * DAY, 100).unwrap();
    }

    #[test]
    fn append_from_many_threads_loses_no_line() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let home = home.path();
                scope.spawn(move || {
                    for n in 0..50 {
                        let text = format!("{}", n % 7);
                        FileLedger::new(home).append(entry(n, &format!("s{thread}")), &text).unwrap();
                    }
                });
            }
        });
        let read = FileLedger::new(home.path()).read(None, None).unwrap();
        assert_eq!((read.entries.len(), read.unreadable), (400, 0));
    }
}
