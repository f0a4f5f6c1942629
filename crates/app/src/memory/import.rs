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
    /// Takes JSON lines. Ids are kept, and what is known already stays as it is.
    pub fn memory_import(&self, lines: &str, mut progress: impl FnMut(u64, u64)) -> Result<Imported> {
        let folder = self.memory_begin()?;
        let lock = folder.lock()?;
        let (index, _) = self.memory_index(&folder, |_, _| {})?;
        let mut imported = Imported::default();
        let mut seen = BTreeSet::new();
        let mut days: BTreeMap<PathBuf, String> = BTreeMap::new();
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let Line::Record { mut row, supersedes } = record::read_line(line.as_bytes(), "import") else {
                imported.bad_lines += 1;
                continue;
            };
            if !seen.insert(row.id.clone())
                || index.find(&row.id).map_err(tanmi_memory::Error::from)?.is_some()
            {
                imported.known += 1;
                continue;
            }
            if row.content.contains('\0') {
                imported.bad_lines += 1;
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

    /// Every record as it would be imported, the oldest first.
    pub fn memory_export(&self, all: bool) -> Result<Vec<String>> {
        let (index, _) = self.memory_index(&self.memory_folder(), |_, _| {})?;
        let filter = MemoryFilter { all, ..MemoryFilter::default() };
        let mut rows = index.newest(None, &filter, usize::MAX >> 1, 0).map_err(tanmi_memory::Error::from)?;
        rows.reverse();
        Ok(rows.iter().map(|row| imported_line(row, &[], self.now())).collect())
    }
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
