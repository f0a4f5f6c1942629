//! Bodies of list sections: rules, docs, references and log entries.
//!
//! An entry is a bullet with indented continuation lines. An entry that would not read back is written as `!` and a
//! JSON value.

use serde_json::{Value, json};

use crate::model::{DocReference, LogEntry, Operator, RefStatus, Reference};

/// A part of the body: an entry, or text between entries (a comment, blank lines).
struct Chunk {
    raw: String,
    item: Option<String>,
    is_bulleted: bool,
}

/// Returns the text of every entry.
pub fn items(body: &str) -> Vec<String> {
    chunks(body).into_iter().filter_map(|chunk| chunk.item).collect()
}

/// Returns the text of every non-empty entry that has a bullet.
pub fn bulleted_items(body: &str) -> Vec<String> {
    let bulleted = chunks(body).into_iter().filter(|chunk| chunk.is_bulleted);
    bulleted.filter_map(|chunk| chunk.item).filter(|item| !item.trim().is_empty()).collect()
}

/// Returns the text between the entries.
pub fn remarks(body: &str) -> String {
    let between = chunks(body).into_iter().filter(|chunk| chunk.item.is_none());
    between.map(|chunk| chunk.raw).filter(|raw| !raw.trim().is_empty()).collect()
}

/// Returns the new body. Entries that did not change and text between entries keep their bytes.
pub fn rewrite<T: PartialEq>(
    body: &str,
    old_entries: &[T],
    new_entries: &[T],
    write: impl Fn(&T) -> String,
) -> String {
    let mut out = String::new();
    let mut old = old_entries.iter();
    let mut next = new_entries.iter().peekable();
    for chunk in chunks(body) {
        if chunk.item.is_none() {
            out.push_str(&chunk.raw);
            continue;
        }
        let Some(old_entry) = old.next() else { continue };
        match next.peek() {
            Some(new) if *old_entry == **new => {
                out.push_str(&chunk.raw);
                next.next();
            }
            // Replaced in place, unless the next entry is an old one that moved up.
            Some(new) if !new_entries.contains(old_entry) && !old.clone().any(|later| later == *new) => {
                out.push_str(&write(new));
                next.next();
            }
            _ => {}
        }
    }
    let mut out = format!("{}\n", out.trim_end_matches('\n'));
    if !out.starts_with('\n') {
        out.insert(0, '\n');
    }
    for entry in next {
        out.push_str(&write(entry));
    }
    out.push('\n');
    out
}

fn chunks(body: &str) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut blank = String::new();
    let mut in_comment = false;
    let mut rest = body;
    for line in body.split_inclusive('\n') {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let from_here = rest;
        rest = &rest[line.len()..];
        // An unclosed comment is read as text; otherwise it would hide every entry after it.
        if in_comment || (text.starts_with("<!--") && from_here.contains("-->")) {
            in_comment = !text.contains("-->");
            chunks.push(Chunk { raw: std::mem::take(&mut blank) + line, item: None, is_bulleted: false });
            continue;
        }
        if text.trim_matches([' ', '\t', '\r']).is_empty() {
            blank.push_str(line);
            continue;
        }
        let open = chunks.last_mut().filter(|chunk| chunk.item.is_some());
        let indented = text.strip_prefix("  ").or_else(|| text.strip_prefix('\t'));
        match (open, bullet(text), indented) {
            // A continuation line, with the blank lines before it.
            (Some(Chunk { raw, item: Some(item), .. }), _, Some(inner)) => {
                raw.push_str(&blank);
                raw.push_str(line);
                item.extend(blank.matches('\n'));
                item.push('\n');
                item.push_str(inner);
                blank.clear();
            }
            // A lazy continuation line of Markdown.
            (Some(Chunk { raw, item: Some(item), .. }), None, None) if blank.is_empty() => {
                raw.push_str(line);
                item.push('\n');
                item.push_str(text);
            }
            (_, bulleted, _) => {
                let item = Some(bulleted.unwrap_or(text.trim()).to_owned());
                let raw = std::mem::take(&mut blank) + line;
                chunks.push(Chunk { raw, item, is_bulleted: bulleted.is_some() });
            }
        }
    }
    if !blank.is_empty() {
        chunks.push(Chunk { raw: blank, item: None, is_bulleted: false });
    }
    chunks
}

/// Returns the text after `- `, `* `, `+ `, `1. ` or `1) ` in the first column.
fn bullet(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        (1..=3).contains(&digits).then(|| line[digits..].strip_prefix(['.', ')'])).flatten()
    })?;
    match rest.strip_prefix([' ', '\t']) {
        Some(text) => Some(text),
        None => rest.is_empty().then_some(rest),
    }
}

/// Returns an entry as plain Markdown if it reads back as an item that satisfies `is_same`, otherwise as JSON.
fn write_item(text: &str, verbatim: impl FnOnce() -> Value, is_same: impl FnOnce(&str) -> bool) -> String {
    let mut lines = text.split('\n');
    let mut plain = format!("- {}\n", lines.next().unwrap_or_default());
    for line in lines {
        if !line.is_empty() {
            plain.push_str("  ");
            plain.push_str(line);
        }
        plain.push('\n');
    }
    let back = items(&format!("{plain}- sentinel\n"));
    match back.as_slice() {
        [item, sentinel] if sentinel == "sentinel" && is_same(item) => plain,
        _ => format!("- !{}\n", verbatim()),
    }
}

fn verbatim(item: &str) -> Option<Value> {
    serde_json::from_str(item.strip_prefix('!')?).ok()
}

pub fn read_rule(item: &str) -> String {
    match verbatim(item) {
        Some(Value::String(text)) => text,
        _ => item.to_owned(),
    }
}

pub fn write_rule(rule: &String) -> String {
    write_item(rule, || json!(rule), |item| read_rule(item) == *rule)
}

pub fn read_doc(item: &str) -> DocReference {
    let (path, description, status) = read_target(item, "path");
    DocReference { path, description, status }
}

pub fn write_doc(doc: &DocReference) -> String {
    let DocReference { path, description, status } = doc;
    let verbatim = || json!({"path": path, "description": description, "status": status});
    write_item(&target_line(path, description, *status), verbatim, |item| read_doc(item) == *doc)
}

pub fn read_reference(item: &str) -> Reference {
    let (target, description, status) = read_target(item, "target");
    Reference { status, ..Reference::new(target, description) }
}

pub fn write_reference(reference: &Reference) -> String {
    let Reference { target_id, description, status, .. } = reference;
    let verbatim = || json!({"target": target_id, "description": description, "status": status});
    write_item(&target_line(target_id, description, *status), verbatim, |item| {
        read_reference(item) == *reference
    })
}

/// Parses `[expired] path: description`. A colon inside a path is not followed by a space.
pub(crate) fn read_target(item: &str, key: &str) -> (String, String, RefStatus) {
    if let Some(Value::Object(fields)) = verbatim(item) {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let status = RefStatus::from_word(&text("status")).unwrap_or(RefStatus::Active);
        return (text(key), text("description"), status);
    }
    let (status, rest) = match item.strip_prefix("[expired]") {
        Some(rest) => (RefStatus::Expired, rest.trim_start()),
        None => (RefStatus::Active, item),
    };
    let split = rest.split_once(": ").or_else(|| rest.split_once('：'));
    let (target, description) = split.unwrap_or((rest.strip_suffix(':').unwrap_or(rest), ""));
    (target.trim().to_owned(), description.trim().to_owned(), status)
}

fn target_line(target: &str, description: &str, status: RefStatus) -> String {
    let mark = if status == RefStatus::Expired { "[expired] " } else { "" };
    if description.is_empty() { format!("{mark}{target}") } else { format!("{mark}{target}: {description}") }
}

/// Parses `[2024-01-01 10:00:00] [AI] event`. An entry without brackets counts as written by a person, without a time.
pub fn read_log(item: &str) -> LogEntry {
    if let Some(Value::Object(fields)) = verbatim(item) {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operator = Operator::from_word(&text("operator")).unwrap_or(Operator::Human);
        return LogEntry { timestamp: text("timestamp"), operator, event: text("event") };
    }
    let (timestamp, rest) = match bracketed(item) {
        Some((stamp, rest)) if stamp.starts_with(|c: char| c.is_ascii_digit()) => (stamp, rest),
        _ => ("", item),
    };
    let (operator, event) = match bracketed(rest) {
        Some((word, rest)) if word.eq_ignore_ascii_case("ai") => (Operator::Ai, rest),
        Some((word, rest)) if word.eq_ignore_ascii_case("human") || word == "人" => (Operator::Human, rest),
        _ => (Operator::Human, rest),
    };
    LogEntry { timestamp: timestamp.to_owned(), operator, event: event.to_owned() }
}

/// Splits `[inner] rest` into `inner` and `rest`.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((inner, rest.strip_prefix(' ').unwrap_or(rest)))
}

pub fn write_log(entry: &LogEntry) -> String {
    let LogEntry { timestamp, operator, event } = entry;
    let verbatim = || json!({"timestamp": timestamp, "operator": operator, "event": event});
    let line = if timestamp.is_empty() {
        format!("[{operator}] {event}")
    } else {
        format!("[{timestamp}] [{operator}] {event}")
    };
    write_item(&line, verbatim, |item| read_log(item) == *entry)
}
