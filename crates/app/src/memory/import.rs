//! Imports and exports memories as JSON lines.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_base::{Millis, fs, secrets};
use tanmi_index::{MemoryFilter, MemoryRow};
use tanmi_memory::record::{self, Line};
use tanmi_memory::{AppendSync, dates};

use crate::App;
use crate::error::{Error, Result};

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportResult {
    pub added: usize,
    /// The number of records whose ids existed already.
    pub known: usize,
    pub bad_lines: usize,
    /// The 1-based number of the first bad line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_bad_line: Option<usize>,
    pub masked: usize,
}

impl App {
    /// Imports JSON lines. Ids are kept. A record that exists already stays as it is, unless a newly imported record
    /// supersedes it. Other marks (forget, restore) apply only to records of the same import.
    pub fn memory_import(&self, lines: &str, mut progress: impl FnMut(u64, u64)) -> Result<ImportResult> {
        let folder = self.open_or_create_memory()?;
        let lock = folder.lock()?;
        let (index, _) = self.memory_index(&folder, |_, _| {})?;
        let mut imported = ImportResult::default();
        let mut added: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut marks = Vec::new();
        let mut days: BTreeMap<PathBuf, String> = BTreeMap::new();
        for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (mut row, supersedes) = match record::read_line(line.as_bytes(), "import") {
                Line::Record { row, supersedes } if !row.content.contains('\0') => (row, supersedes),
                Line::Mark { target, hidden, by } => {
                    marks.push((target, hidden, by));
                    continue;
                }
                // Session starts and ends of another home store are not relevant here.
                Line::Session => continue,
                Line::Record { .. } | Line::Bad => {
                    imported.bad_lines += 1;
                    imported.first_bad_line.get_or_insert(at + 1);
                    continue;
                }
            };
            let is_known = index.find(&row.id).map_err(tanmi_memory::Error::from)?.is_some();
            if is_known || added.contains_key(&row.id) {
                imported.known += 1;
                continue;
            }
            // Kept in order with all other marks, because the last mark of a record counts.
            marks.extend(supersedes.into_iter().map(|old| (old, true, row.id.clone())));
            imported.masked += mask_row(&mut row);
            let path = if row.kind == "summary" {
                folder.sessions()
            } else {
                folder.daily(row.at.unwrap_or(self.now()))
            };
            let day = days.entry(path.clone()).or_default();
            day.push_str(&record_line(&row, self.now()));
            day.push('\n');
            added.insert(row.id, path);
            imported.added += 1;
        }
        for (target, hidden, by) in &marks {
            // A mark goes into the same file as its record, so that a forgotten record is never read without the
            // mark that hides it. Marks of summaries go into daily files, so that a later mark can revoke them.
            let path = match added.get(target) {
                Some(path) if *path != folder.sessions() => path.clone(),
                Some(_) => folder.daily(self.now()),
                None if *hidden && added.contains_key(by) => folder.latest_daily(self.now()),
                None => continue,
            };
            let kind = if *hidden { hiding_mark(by) } else { "restore" };
            let day = days.entry(path).or_default();
            day.push_str(&record::mark_line(kind, target, by, self.now(), "import"));
            day.push('\n');
        }
        // On Linux one sync of the file system replaces the sync of every file: an import can write thousands of
        // days.
        let append_sync = if cfg!(target_os = "linux") { AppendSync::No } else { AppendSync::Yes };
        for (path, text) in &days {
            folder.append(&lock, path, text, append_sync)?;
        }
        let dir = std::fs::File::open(folder.dir()).map_err(Error::io(folder.dir()))?;
        fs::sync_file_system(&dir).map_err(Error::io(folder.dir()))?;
        drop(index);
        self.memory_index(&folder, &mut progress)?;
        Ok(imported)
    }

    /// Returns every record as a line that can be imported, oldest first. `all` includes hidden records, each
    /// followed by the mark that hides it.
    pub fn memory_export(&self, all: bool) -> Result<Vec<String>> {
        let (index, _) = self.memory_index(&self.memory_folder(), |_, _| {})?;
        let filter = MemoryFilter { all, ..MemoryFilter::default() };
        let mut rows = index.newest(None, &filter, usize::MAX >> 1, 0).map_err(tanmi_memory::Error::from)?;
        rows.reverse();
        let mut lines = Vec::with_capacity(rows.len());
        for row in &rows {
            lines.push(record_line(row, self.now()));
            if row.hidden {
                let by = &row.replaced_by;
                lines.push(record::mark_line(hiding_mark(by), &row.id, by, self.now(), "export"));
            }
        }
        Ok(lines)
    }
}

fn hiding_mark(replacement: &str) -> &'static str {
    if replacement.is_empty() { "forget" } else { "replace" }
}

fn record_line(row: &MemoryRow, now: Millis) -> String {
    if row.kind == "summary" {
        let more: Value = serde_json::from_str(&row.more).unwrap_or_default();
        let mut line = json!({
            "id": row.id, "type": "summary", "timestamp": dates::iso(row.at.unwrap_or(now)),
            "source": {"session": row.session},
        });
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        return line.to_string();
    }
    let is_turn = row.kind == "turn";
    let mut line = json!({
        "id": row.id, "type": if is_turn { "turn" } else { "fact" }, "content": row.content,
        "timestamp": dates::iso(row.at.unwrap_or(now)), "source": {"session": row.session, "by": "import"},
    });
    if !is_turn {
        line["memory_type"] = json!(row.letter);
    }
    let entities = super::entities(row);
    let fields: [(&str, bool, Value); 3] = [
        ("entities", !entities.is_empty(), json!(entities)),
        ("speaker", !row.speaker.is_empty(), json!(row.speaker)),
        ("confidence", row.confidence.is_some(), json!(row.confidence)),
    ];
    for (key, is_present, value) in fields {
        if is_present {
            line[key] = value;
        }
    }
    line.to_string()
}

/// Masks the secrets in all texts of a row, and returns how many there were.
fn mask_row(row: &mut MemoryRow) -> usize {
    let mut count = 0;
    let mut mask = |text: &str| {
        let (text, masked) = secrets::mask(text);
        count += masked.len();
        text.into_owned()
    };
    row.content = mask(&row.content);
    row.entities = mask(&row.entities);
    row.speaker = mask(&row.speaker);
    if let Ok(Value::Object(mut more)) = serde_json::from_str::<Value>(&row.more) {
        for value in more.values_mut() {
            match value {
                Value::String(text) => *text = mask(text),
                Value::Array(list) => {
                    for item in list.iter_mut() {
                        if let Value::String(text) = item {
                            *text = mask(text);
                        }
                    }
                }
                _ => {}
            }
        }
        row.more = Value::Object(more).to_string();
    }
    count
}
