//! Size limits of all fields. Input over a limit is rejected with an error that names the limit; it is never truncated.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// Maximum characters in a title or name.
pub const TITLE_CHARS: usize = 200;
/// Maximum bytes in a requirement, note, conclusion, problem or next step.
pub const TEXT_BYTES: usize = 256 * 1024;
/// Maximum bytes in a goal, rule, log entry, path or description.
pub const LINE_BYTES: usize = 16 * 1024;
/// Maximum entries in a list of rules, docs or references.
pub const LIST_ITEMS: usize = 500;
/// Maximum levels of the tree below the root.
pub const DEPTH: usize = 64;

/// Checks that a title or name is neither blank nor too long.
pub fn check_title(field: &'static str, text: &str) -> Result<()> {
    check_no_nul(field, text)?;
    if text.trim().is_empty() {
        return Err(Error::Empty { field });
    }
    let chars = text.chars().count();
    if chars > TITLE_CHARS {
        return Err(Error::TooLong { field, unit: "characters", limit: TITLE_CHARS, actual: chars });
    }
    Ok(())
}

/// Returns a title or name as lists and answers show it. A longer one than [`check_title`] accepts can only come from a
/// file that was not written through Tanmi; it is cut.
pub fn fit_title(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(TITLE_CHARS) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.chars().take(TITLE_CHARS - 1).chain(['…']).collect()),
    }
}

pub fn check_text(field: &'static str, text: &str) -> Result<()> {
    check_bytes(field, text, TEXT_BYTES)
}

pub fn check_line(field: &'static str, text: &str) -> Result<()> {
    check_bytes(field, text, LINE_BYTES)
}

/// Same as [`check_line`], but also rejects blank text.
pub fn check_filled_line(field: &'static str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::Empty { field });
    }
    check_line(field, text)
}

pub fn check_list(field: &'static str, len: usize) -> Result<()> {
    if len > LIST_ITEMS {
        return Err(Error::TooLong { field, unit: "entries", limit: LIST_ITEMS, actual: len });
    }
    Ok(())
}

fn check_bytes(field: &'static str, text: &str, limit: usize) -> Result<()> {
    check_no_nul(field, text)?;
    if text.len() > limit {
        return Err(Error::TooLong { field, unit: "bytes", limit, actual: text.len() });
    }
    Ok(())
}

/// Rejects text that contains a NUL character.
pub fn check_no_nul(field: &'static str, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid(field, "包含 NUL 字符", "contains a NUL character"));
    }
    Ok(())
}
