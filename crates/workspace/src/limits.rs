//! Limits on the size of texts, lists and the tree. Text over a limit is rejected with the limit named, never truncated.

use crate::error::{Error, Result};

/// Characters in a title or name.
pub const TITLE_CHARS: usize = 200;
/// Bytes in a requirement, note, conclusion, problem or next step.
pub const TEXT_BYTES: usize = 256 * 1024;
/// Bytes in a goal, rule, log line, path or description.
pub const LINE_BYTES: usize = 16 * 1024;
/// Entries in a list of rules, docs or references.
pub const LIST_ITEMS: usize = 500;
/// Levels of the tree below the root.
pub const DEPTH: usize = 64;

/// Checks a title or name: not empty, and at most [`TITLE_CHARS`] characters.
pub fn title(field: &'static str, text: &str) -> Result<()> {
    no_nul(field, text)?;
    if text.trim().is_empty() {
        return Err(Error::Empty { field });
    }
    let chars = text.chars().count();
    if chars > TITLE_CHARS {
        return Err(Error::TooLong { field, unit: "characters", limit: TITLE_CHARS, actual: chars });
    }
    Ok(())
}

pub fn text(field: &'static str, text: &str) -> Result<()> {
    bytes(field, text, TEXT_BYTES)
}

pub fn line(field: &'static str, text: &str) -> Result<()> {
    bytes(field, text, LINE_BYTES)
}

/// As [`line`], but the text must not be empty.
pub fn filled_line(field: &'static str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::Empty { field });
    }
    line(field, text)
}

pub fn list(field: &'static str, len: usize) -> Result<()> {
    if len > LIST_ITEMS {
        return Err(Error::TooLong { field, unit: "entries", limit: LIST_ITEMS, actual: len });
    }
    Ok(())
}

fn bytes(field: &'static str, text: &str, limit: usize) -> Result<()> {
    no_nul(field, text)?;
    if text.len() > limit {
        return Err(Error::TooLong { field, unit: "bytes", limit, actual: text.len() });
    }
    Ok(())
}

/// Rejects text that contains a NUL character.
pub fn no_nul(field: &'static str, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid(field, "包含 NUL 字符", "contains a NUL character"));
    }
    Ok(())
}
