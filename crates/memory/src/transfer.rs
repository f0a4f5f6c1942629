//! The lines of a memory that people share, read from files and written to files, byte for byte.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tanmi_base::{Millis, fs, secrets};
use tanmi_index::MemoryLetter;

use crate::record::{self, Line};
use crate::{AppendSync, Error, Folder, Result, import};

/// The lines that people share, in an order in which they can be applied, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLines {
    pub lines: Vec<String>,
    /// The number of opinions and turns of conversations, which are private.
    pub private: usize,
    /// The number of lines that cannot be parsed, or whose id another record has.
    pub unusable: usize,
    /// The number of lines that seem to contain a secret.
    pub with_secret: usize,
}

/// Reads the lines of a folder. Starts and ends of sessions are not relevant for others.
pub fn read_shared(folder: &Folder, now: Millis) -> Result<SharedLines> {
    let mut files = if folder.exists() { folder.files()? } else { Vec::new() };
    // Marks of summaries are in daily files, and come after their records.
    files.sort_by_key(|(name, _)| name != "sessions.jsonl");
    let mut shared = SharedLines::default();
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut early_marks = Vec::new();
    for (name, path) in &files {
        let read = fs::read_regular(path, fs::MAX_FILE).map_err(Error::io(path))?;
        let Some((bytes, _)) = read else { continue };
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            add_line(line, name, now, &mut shared, &mut known, &mut early_marks);
        }
    }
    for (target, line) in early_marks {
        match known.get(&target) {
            Some(Known::Shared) => shared.lines.push(line),
            Some(Known::Private) => {}
            None => shared.unusable += 1,
        }
    }
    let has_secret = |line: &&String| !secrets::mask(line).1.is_empty();
    shared.with_secret = shared.lines.iter().filter(has_secret).count();
    Ok(shared)
}

enum Known {
    Shared,
    Private,
}

fn add_line(
    line: &[u8],
    file: &str,
    now: Millis,
    shared: &mut SharedLines,
    known: &mut BTreeMap<String, Known>,
    early_marks: &mut Vec<(String, String)>,
) {
    let Ok(text) = str::from_utf8(line) else {
        shared.unusable += 1;
        return;
    };
    match record::read_line(line, file) {
        Line::Record { row, .. } if known.contains_key(&row.id) || text.contains('\0') => {
            shared.unusable += 1
        }
        Line::Record { row, .. } => {
            let is_private = matches!(row.letter, MemoryLetter::O | MemoryLetter::T);
            if is_private {
                shared.private += 1;
            } else {
                // A line of an older tool may say only together with the name of its file what it is.
                let is_complete = matches!(record::read_line(line, ""), Line::Record { row: same, .. }
                    if (&same.id, same.letter) == (&row.id, row.letter));
                shared.lines.push(match is_complete {
                    true => text.to_owned(),
                    false => import::record_line(&row, now),
                });
            }
            known.insert(row.id, if is_private { Known::Private } else { Known::Shared });
        }
        Line::Mark { target, .. } => match known.get(&target) {
            Some(Known::Shared) => shared.lines.push(text.to_owned()),
            Some(Known::Private) => {}
            None => early_marks.push((target, text.to_owned())),
        },
        Line::Session => {}
        Line::Bad => shared.unusable += 1,
    }
}

/// Writes lines to an empty folder: a summary to `sessions.jsonl`, every other line to the file of its day. A line that
/// marks an earlier one is in the same file or a later one.
pub fn write_lines(folder: &Folder, lines: &[String], now: Millis) -> Result<()> {
    folder.create(false)?;
    let lock = folder.lock()?;
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut last_day = PathBuf::new();
    for line in lines {
        let (at, is_summary, is_mark) = match record::read_line(line.as_bytes(), "") {
            Line::Record { row, supersedes } => {
                (row.at, row.letter == MemoryLetter::S, !supersedes.is_empty())
            }
            _ => (record::time_of(line), false, true),
        };
        let day = folder.daily(at.unwrap_or(now));
        let path = match (is_summary, is_mark) {
            (true, _) => folder.sessions(),
            (false, true) => day.max(last_day.clone()),
            (false, false) => day,
        };
        if !is_summary {
            last_day = last_day.max(path.clone());
        }
        let text = texts.entry(path).or_default();
        text.push_str(line);
        text.push('\n');
    }
    texts.iter().try_for_each(|(path, text)| folder.append(&lock, path, text, AppendSync::Yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_765_432_100_000;

    #[test]
    fn shared_lines_leave_out_what_is_private_or_unusable() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::of(dir.path());
        folder.create(false).unwrap();
        let fact = |id: &str, letter: &str| {
            format!(r#"{{"id":"{id}","type":"fact","memory_type":"{letter}","content":"about {id}"}}"#)
        };
        let mark = |kind: &str, id: &str| format!(r#"{{"type":"{kind}","target":"{id}"}}"#);
        let (own, opinion, late) = (fact("f1", "W"), fact("o1", "O"), fact("f2", "B"));
        let daily = [
            mark("forget", "f2"),
            mark("forget", "s1"),
            own.clone(),
            opinion,
            mark("forget", "o1"),
            mark("forget", "f1"),
            mark("restore", "f1"),
            mark("forget", "f1"),
            mark("forget", "unknown"),
            String::from(r#"{"type":"session_start","source":{"session":"s"}}"#),
            String::from("not JSON"),
            own.clone(),
            late.clone(),
        ];
        // An older tool wrote summaries without a type.
        let summary = r#"{"id":"s1","topic":"login","summary":"done"}"#;
        let lock = folder.lock().unwrap();
        folder.append(&lock, &folder.daily(NOW), &daily.join("\n"), AppendSync::No).unwrap();
        folder.append(&lock, &folder.sessions(), summary, AppendSync::No).unwrap();
        drop(lock);
        let shared = read_shared(&folder, NOW).unwrap();
        assert_eq!((shared.private, shared.unusable, shared.with_secret), (1, 3, 0));
        let [first, rest @ ..] = shared.lines.as_slice() else { panic!("{shared:?}") };
        assert!(first.contains(r#""type":"summary""#), "{first}");
        let forget = |id: &str| mark("forget", id);
        assert_eq!(
            rest,
            [forget("s1"), own, forget("f1"), mark("restore", "f1"), forget("f1"), late, forget("f2")]
        );
    }

    #[test]
    fn written_lines_are_read_again_and_a_mark_stays_after_its_record() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::of(dir.path());
        let at = |day: u32| format!(r#""timestamp":"2026-01-{day:02}T10:00:00.000Z""#);
        let fact =
            |id: &str, day: u32| format!(r#"{{"id":"{id}","type":"fact","content":"{id}",{}}}"#, at(day));
        let lines = [
            fact("late", 9),
            fact("early", 3),
            // The clock of the machine that forgot it was slow.
            format!(r#"{{"type":"forget","target":"late",{}}}"#, at(2)),
            format!(r#"{{"type":"summary","id":"s","topic":"t","summary":"x",{}}}"#, at(4)),
        ];
        write_lines(&folder, &lines, NOW).unwrap();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(folder.dir().join("daily/2026-01-03.jsonl")), format!("{}\n", lines[1]));
        assert_eq!(
            read(folder.dir().join("daily/2026-01-09.jsonl")),
            format!("{}\n{}\n", lines[0], lines[2])
        );
        assert_eq!(read(folder.sessions()), format!("{}\n", lines[3]));
        assert_eq!(read_shared(&folder, NOW).unwrap().lines.len(), 4);
    }
}
