//! Taking memories in from elsewhere, and giving them out.

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
    /// Ids that were there already.
    pub known: usize,
    pub bad_lines: usize,
    /// The first of them, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_bad_line: Option<usize>,
    pub masked: usize,
}

impl App {
    /// Takes JSON lines. Ids are kept, and what is known already stays as it is, unless something replaces it that was not
    /// known. Other words about a record count only where that record came in with them.
    pub fn memory_import(&self, lines: &str, mut progress: impl FnMut(u64, u64)) -> Result<ImportResult> {
        let folder = self.memory_begin()?;
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
                // When a session of another home began or ended says nothing here.
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
            // In their order with all other words: the last one counts.
            marks.extend(supersedes.into_iter().map(|old| (old, true, row.id.clone())));
            imported.masked += mask_row(&mut row);
            let path = if row.kind == "summary" {
                folder.sessions()
            } else {
                folder.daily(row.at.unwrap_or(self.now()))
            };
            let day = days.entry(path.clone()).or_default();
            day.push_str(&imported_line(&row, self.now()));
            day.push('\n');
            added.insert(row.id, path);
            imported.added += 1;
        }
        for (target, hidden, by) in &marks {
            // Beside the record it is about: what was forgotten is never there without the word that hides it. Words about
            // summaries stand in days, too, or one of tomorrow could not take them back.
            let path = match added.get(target) {
                Some(path) if *path != folder.sessions() => path.clone(),
                Some(_) => folder.daily(self.now()),
                None if *hidden && added.contains_key(by) => folder.latest_daily(self.now()),
                None => continue,
            };
            let kind = if *hidden { hidden_by(by) } else { "restore" };
            let day = days.entry(path).or_default();
            day.push_str(&record::mark_line(kind, target, by, self.now(), "import"));
            day.push('\n');
        }
        // One sync for all of them where the system can: thousands of days would otherwise be thousands of waits.
        let durable = if cfg!(target_os = "linux") { AppendSync::No } else { AppendSync::Yes };
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
            lines.push(imported_line(row, self.now()));
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

fn imported_line(row: &MemoryRow, now: Millis) -> String {
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
