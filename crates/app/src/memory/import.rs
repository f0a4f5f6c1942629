//! Taking memories in from elsewhere, and giving them out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_base::{Millis, fs, secrets};
use tanmi_index::{MemoryFilter, MemoryRow};
use tanmi_memory::record::{self, Line};
use tanmi_memory::{Durable, dates};

use crate::App;
use crate::error::{Error, Result};

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    pub added: usize,
    /// Ids that were there already.
    pub known: usize,
    pub bad_lines: usize,
    pub masked: usize,
}

impl App {
    /// Takes JSON lines. Ids are kept, and what is known already stays as it is: a word about a record counts only where
    /// that record came in with it.
    pub fn memory_import(&self, lines: &str, mut progress: impl FnMut(u64, u64)) -> Result<Imported> {
        let folder = self.memory_begin()?;
        let lock = folder.lock()?;
        let (index, _) = self.memory_index(&folder, |_, _| {})?;
        let mut imported = Imported::default();
        let mut added = BTreeSet::new();
        let mut marks = Vec::new();
        let mut days: BTreeMap<PathBuf, String> = BTreeMap::new();
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let (mut row, supersedes) = match record::read_line(line.as_bytes(), "import") {
                Line::Record { row, supersedes } if !row.content.contains('\0') => (row, supersedes),
                Line::Mark { target, hidden, by } => {
                    marks.push((target, hidden, by));
                    continue;
                }
                // When a session of another home began or ended says nothing here.
                Line::Session => continue,
                Line::Record { .. } | Line::Bad => {
                    imported.bad_lines += 1;
                    continue;
                }
            };
            let is_known = index.find(&row.id).map_err(tanmi_memory::Error::from)?.is_some();
            if is_known || !added.insert(row.id.clone()) {
                imported.known += 1;
                continue;
            }
            imported.masked += mask_row(&mut row);
            let path = if row.kind == "summary" {
                folder.sessions()
            } else {
                folder.daily(row.at.unwrap_or(self.now()))
            };
            let day = days.entry(path).or_default();
            day.push_str(&imported_line(&row, &supersedes, self.now()));
            day.push('\n');
            imported.added += 1;
        }
        marks.retain(|(target, ..)| added.contains(target));
        if !marks.is_empty() {
            // Behind everything they speak of: days are read in their order.
            let last = days.keys().filter(|path| **path != folder.sessions()).max().cloned();
            let last = last.unwrap_or_default().max(folder.latest_daily(self.now()));
            let day = days.entry(last).or_default();
            for (target, hidden, by) in &marks {
                let kind = if *hidden { hidden_by(by) } else { "restore" };
                day.push_str(&record::mark_line(kind, target, by, self.now(), "import"));
                day.push('\n');
            }
        }
        // One sync for all of them where the system can: thousands of days would otherwise be thousands of waits.
        let durable = if cfg!(target_os = "linux") { Durable::No } else { Durable::Yes };
        for (path, text) in &days {
            folder.append(&lock, path, text, durable)?;
        }
        let dir = std::fs::File::open(folder.dir()).map_err(Error::io(folder.dir()))?;
        fs::sync_file_system(&dir).map_err(Error::io(folder.dir()))?;
        drop(index);
        self.memory_index(&folder, &mut progress)?;
        Ok(imported)
    }

    /// Every record as it would be imported, the oldest first. With `all` also what is hidden, each followed by the word
    /// that hides it.
    pub fn memory_export(&self, all: bool) -> Result<Vec<String>> {
        let (index, _) = self.memory_index(&self.memory_folder(), |_, _| {})?;
        let filter = MemoryFilter { all, ..MemoryFilter::default() };
        let mut rows = index.newest(None, &filter, usize::MAX >> 1, 0).map_err(tanmi_memory::Error::from)?;
        rows.reverse();
        let mut lines = Vec::with_capacity(rows.len());
        for row in &rows {
            lines.push(imported_line(row, &[], self.now()));
            if row.hidden {
                let by = &row.replaced_by;
                lines.push(record::mark_line(hidden_by(by), &row.id, by, self.now(), "export"));
            }
        }
        Ok(lines)
    }
}

fn hidden_by(replacement: &str) -> &'static str {
    if replacement.is_empty() { "forget" } else { "replace" }
}

fn imported_line(row: &MemoryRow, supersedes: &[String], now: Millis) -> String {
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
    let is_turn = row.kind == "turn" || !row.speaker.is_empty();
    let mut line = json!({
        "id": row.id, "type": if is_turn { "turn" } else { "fact" }, "content": row.content,
        "timestamp": dates::iso(row.at.unwrap_or(now)), "source": {"session": row.session, "by": "import"},
    });
    if !is_turn {
        line["memory_type"] = json!(row.letter);
    }
    let entities = super::entities(row);
    let fields: [(&str, bool, Value); 4] = [
        ("entities", !entities.is_empty(), json!(entities)),
        ("speaker", !row.speaker.is_empty(), json!(row.speaker)),
        ("confidence", row.confidence.is_some(), json!(row.confidence)),
        ("supersedes", !supersedes.is_empty(), json!(supersedes)),
    ];
    for (key, is_there, value) in fields {
        if is_there {
            line[key] = value;
        }
    }
    line.to_string()
}

/// Takes the secrets out of everything that is going to be written; says how many.
fn mask_row(row: &mut MemoryRow) -> usize {
    let mut count = 0;
    let mut clean = |text: &str| {
        let (text, masked) = secrets::mask(text);
        count += masked.len();
        text.into_owned()
    };
    row.content = clean(&row.content);
    row.entities = clean(&row.entities);
    row.speaker = clean(&row.speaker);
    if let Ok(Value::Object(mut more)) = serde_json::from_str::<Value>(&row.more) {
        for value in more.values_mut() {
            match value {
                Value::String(text) => *text = clean(text),
                Value::Array(list) => {
                    for item in list.iter_mut() {
                        if let Value::String(text) = item {
                            *text = clean(text);
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
