//! Masks keys, tokens and passwords in a text before the text is stored.
//!
//! Written by hand instead of with regular expressions, because this runs in hooks. [`trigger`] looks once at every
//! byte and calls a finder where a known word or prefix starts, so a text without any costs one pass. A finder
//! reports only the secret itself; names and the text around it stay readable.

mod assignment;
mod command;
mod http;
mod link;
mod name;
mod private_key;
mod token;
mod trigger;
mod value;

use std::borrow::Cow;
use std::ops::Range;

/// A secret in a text.
#[derive(Debug, Clone)]
struct Match {
    range: Range<usize>,
    /// What was found, as told in the mask.
    kind: &'static str,
    /// Of two overlapping matches, the one with the lower rank names the secret.
    rank: usize,
}

/// A place in a text where a trigger was found: `text[at..end]`.
#[derive(Clone, Copy)]
struct Hit<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl<'t> Hit<'t> {
    fn before(self) -> &'t str {
        &self.text[..self.at]
    }

    fn after(self) -> &'t str {
        &self.text[self.end..]
    }

    /// Returns the text of the line before the hit, of which at most 200 bytes.
    fn line_before(self) -> &'t str {
        let before = last_bytes(self.before(), 200);
        before.rsplit('\n').next().unwrap_or(before)
    }
}

const MARK: &str = "[masked: ";

/// Maximum number of passes. A mask can complete another pattern, which the next pass finds.
const MAX_PASSES: usize = 8;

/// Returns the text with its secrets masked, and the names of the masked patterns.
pub fn mask(text: &str) -> (Cow<'_, str>, Vec<&'static str>) {
    let (mut masked, mut kinds) = mask_once(text);
    if kinds.is_empty() {
        return (masked, kinds);
    }
    for _ in 1..MAX_PASSES {
        let (again, more) = mask_once(&masked);
        if more.is_empty() {
            break;
        }
        masked = Cow::Owned(again.into_owned());
        kinds.extend(more);
    }
    (masked, kinds)
}

fn mask_once(text: &str) -> (Cow<'_, str>, Vec<&'static str>) {
    let mut found = match normalize(text) {
        None => trigger::find_all(text),
        Some((plain, origins)) => {
            let mut found = trigger::find_all(&plain);
            for one in &mut found {
                one.range = origin(&origins, one.range.start)..origin(&origins, one.range.end);
            }
            found
        }
    };
    if found.is_empty() {
        return (Cow::Borrowed(text), Vec::new());
    }
    found.sort_by_key(|one| (one.range.start, one.rank));
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    let mut kinds = Vec::new();
    for one in merge(found) {
        out.push_str(&text[from..one.range.start]);
        out.push_str(MARK);
        out.push_str(one.kind);
        out.push(']');
        kinds.push(one.kind);
        from = one.range.end;
    }
    out.push_str(&text[from..]);
    (Cow::Owned(out), kinds)
}

/// Joins matches that overlap. Expects them in the order of the text.
fn merge(found: Vec<Match>) -> Vec<Match> {
    let mut merged: Vec<Match> = Vec::with_capacity(found.len());
    for one in found {
        match merged.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                last.range.end = last.range.end.max(one.range.end);
                if one.rank < last.rank {
                    (last.rank, last.kind) = (one.rank, one.kind);
                }
            }
            _ => merged.push(one),
        }
    }
    merged
}

/// Returns the text without invisible characters and with full-width letters as ASCII, if it contains any: they
/// hide a name from a scanner, but not from a reader. Each origin is a position in the plain text and the
/// position in the original from which the text is the same again.
fn normalize(text: &str) -> Option<(String, Vec<(usize, usize)>)> {
    // The first bytes of these characters in UTF-8.
    let has_first_byte = text.bytes().any(|byte| matches!(byte, 0xC2 | 0xE2 | 0xEF));
    if !has_first_byte || !text.chars().any(|c| is_invisible(c) || is_full_width(c)) {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut origins = vec![(0, 0)];
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        if is_invisible(c) {
            origins.push((plain.len(), end));
        } else if is_full_width(c) {
            plain.extend(char::from_u32(u32::from(c) - 0xFEE0));
            origins.push((plain.len(), end));
        } else {
            plain.push(c);
        }
    }
    Some((plain, origins))
}

/// Returns the position in the original text for a position in the plain text.
fn origin(origins: &[(usize, usize)], at: usize) -> usize {
    let known = origins.partition_point(|(plain, _)| *plain <= at).saturating_sub(1);
    origins.get(known).map_or(at, |(plain, original)| original + (at - plain))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

fn is_full_width(c: char) -> bool {
    matches!(c, '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff3f}' | '\u{ff41}'..='\u{ff5a}')
}

/// Returns the last bytes of a text, at most `max`, from a character boundary on.
fn last_bytes(text: &str, max: usize) -> &str {
    let mut start = text.len().saturating_sub(max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
