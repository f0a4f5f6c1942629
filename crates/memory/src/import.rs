//! Memories as JSON lines: reads lines to import, and writes lines that can be imported.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tanmi_base::{Millis, secrets};
use tanmi_index::{MemoryKind, MemoryRow};

use crate::anchors::Anchors;
use crate::record::{self, Author, Line};
use crate::store::ImportResult;
use crate::{Result, dates};

/// The new records of an import, masked, and the marks that apply to them.
#[derive(Debug, Default)]
pub struct ImportBatch {
    pub records: Vec<MemoryRow>,
    /// In the order of the lines: the last mark of a record counts.
    pub marks: Vec<ImportMark>,
    pub result: ImportResult,
}

#[derive(Debug)]
pub struct ImportMark {
    pub target: String,
    pub hidden: bool,
    /// The id of the record that supersedes the target, or empty.
    pub by: String,
}

impl ImportMark {
    /// Returns the word of the mark in a line.
    pub fn kind(&self) -> &'static str {
        if self.hidden { hiding_mark(&self.by) } else { "restore" }
    }
}

/// Reads the lines of an import. `is_known` returns whether a record with this id is stored.
pub fn read(lines: &str, mut is_known: impl FnMut(&str) -> Result<bool>) -> Result<ImportBatch> {
    let mut batch = ImportBatch::default();
    let mut added: BTreeSet<String> = BTreeSet::new();
    for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (mut row, supersedes) = match record::read_line(line.as_bytes(), "import") {
            Line::Record { row, supersedes }
                if !row.content.contains('\0') && record::has_known_type(line) =>
            {
                (row, supersedes)
            }
            Line::Mark { target, hidden, by } => {
                batch.marks.push(ImportMark { target, hidden, by });
                continue;
            }
            // Session starts and ends of another home store are not relevant here.
            Line::Session => continue,
            Line::Record { .. } | Line::Bad => {
                batch.result.bad_lines += 1;
                batch.result.first_bad_line.get_or_insert(at + 1);
                continue;
            }
        };
        if added.contains(&row.id) || is_known(&row.id)? {
            batch.result.known += 1;
            continue;
        }
        // Kept in order with all other marks, because the last mark of a record counts.
        let by = &row.id;
        batch.marks.extend(supersedes.into_iter().map(|target| ImportMark {
            target,
            hidden: true,
            by: by.clone(),
        }));
        batch.result.masked += mask_row(&mut row);
        batch.result.added += 1;
        added.insert(row.id.clone());
        batch.records.push(*row);
    }
    // A stored record changes only if a new one supersedes it.
    batch.marks.retain(|mark| added.contains(&mark.target) || (mark.hidden && added.contains(&mark.by)));
    Ok(batch)
}

/// Returns records as lines that can be imported. A hidden record is followed by the mark that hides it.
pub fn export_lines<'a>(rows: impl IntoIterator<Item = &'a MemoryRow>, now: Millis) -> Vec<String> {
    let mut lines = Vec::new();
    for row in rows {
        // The index does not know who wrote a record.
        lines.push(line_of(row, now, None));
        if row.hidden {
            let by = &row.replaced_by;
            lines.push(record::mark_line(hiding_mark(by), &row.id, by, now, "export"));
        }
    }
    lines
}

fn hiding_mark(replacement: &str) -> &'static str {
    if replacement.is_empty() { "forget" } else { "replace" }
}

/// Returns an imported record as a line. A record without a time gets `now`.
pub fn record_line(row: &MemoryRow, now: Millis) -> String {
    line_of(row, now, Some("import"))
}

fn line_of(row: &MemoryRow, now: Millis, by: Option<&str>) -> String {
    if row.letter.kind() == MemoryKind::Summary {
        let mut more: Value = serde_json::from_str(&row.more).unwrap_or_default();
        if let Some(more) = more.as_object_mut() {
            more.remove("author");
        }
        let mut line = json!({
            "id": row.id, "type": "summary", "timestamp": dates::iso(row.at.unwrap_or(now)),
            "source": {"session": row.session},
        });
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        add_author(&mut line, row);
        return line.to_string();
    }
    let is_turn = row.letter.kind() == MemoryKind::Turn;
    let mut line = json!({
        "id": row.id, "type": row.letter.kind().as_str(), "content": row.content,
        "timestamp": dates::iso(row.at.unwrap_or(now)), "source": {"session": row.session},
    });
    if let Some(by) = by {
        line["source"]["by"] = json!(by);
    }
    if !is_turn {
        line["memory_type"] = json!(row.letter.as_str());
    }
    let entities = record::entities(row);
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
    if let Some(line) = line.as_object_mut() {
        line.extend(Anchors::of(row).to_fields());
    }
    add_author(&mut line, row);
    line.to_string()
}

fn add_author(line: &mut Value, row: &MemoryRow) {
    if let (Some(source), Some(Value::Object(author))) =
        (line["source"].as_object_mut(), Author::of(row).map(|author| json!(author)))
    {
        source.extend(author);
    }
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
    if let Ok(mut more @ Value::Object(_)) = serde_json::from_str::<Value>(&row.more) {
        mask_value(&mut more, &mut mask);
        row.more = more.to_string();
    }
    count
}

fn mask_value(value: &mut Value, mask: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = mask(text),
        Value::Array(list) => list.iter_mut().for_each(|item| mask_value(item, mask)),
        Value::Object(fields) => fields.values_mut().for_each(|item| mask_value(item, mask)),
        _ => {}
    }
}
