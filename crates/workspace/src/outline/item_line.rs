//! The first line of an item: `- [x] **Title** (after: A, B): text`.

use super::escape::unescape;

/// The parts of an item's first line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ItemLine {
    pub is_completed: bool,
    pub title: String,
    /// The text after the colon; empty without one.
    pub text: String,
    pub targets: Vec<String>,
    /// Whether the title has a part that looks like dependencies and is not.
    pub is_unclear: bool,
}

/// Returns the text of a list item without its marker, and the width of the marker.
pub fn strip_marker(line: &str) -> Option<(&str, usize)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match line.as_bytes().get(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(b'.' | b')') if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    match &line[marker..] {
        "" => Some(("", marker + 1)),
        rest => rest.strip_prefix([' ', '\t']).map(|rest| (rest, marker + 1)),
    }
}

/// Returns the text after a check box, and whether the box is checked.
pub fn strip_checkbox(text: &str) -> Option<(&str, bool)> {
    let unchecked = text.strip_prefix("[ ]").map(|rest| (rest, false));
    let (rest, is_checked) = unchecked
        .or_else(|| text.strip_prefix("[x]").or_else(|| text.strip_prefix("[X]")).map(|rest| (rest, true)))?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (rest.trim(), is_checked))
}

/// Parses the text of an item without its marker.
pub fn parse(text: &str) -> ItemLine {
    let (text, is_completed) = strip_checkbox(text.trim()).unwrap_or((text.trim(), false));
    ItemLine { is_completed, ..parse_bold(text).unwrap_or_else(|| parse_plain(text)) }
}

/// Parses a heading: the whole text is the title, except for its dependencies.
pub fn parse_heading(text: &str) -> ItemLine {
    let (title, targets) = split_after(text.trim());
    ItemLine { title: title.to_owned(), targets, ..ItemLine::default() }
}

/// Parses `**Title**`, `**Title**: text` and `**Title:** text`. `None` if the item only begins with bold text.
fn parse_bold(text: &str) -> Option<ItemLine> {
    let inner = text.strip_prefix("**")?;
    let end = find_unescaped(inner, "**").filter(|end| *end > 0)?;
    let (inner, rest) = (&inner[..end], inner[end + 2..].trim_start());
    let (mut targets, rest) = match after_at(rest) {
        Some((targets, length)) => (targets, rest[length..].trim_start()),
        None => (Vec::new(), rest),
    };
    let escaped_end = inner.ends_with("\\:") || inner.ends_with("\\：");
    let (title, text) = match (inner.strip_suffix([':', '：']), rest.strip_prefix([':', '：'])) {
        (_, Some(text)) => (inner, text),
        (Some(title), None) if !escaped_end => (title, rest),
        _ if rest.is_empty() => (inner, rest),
        _ => return None,
    };
    let (text, more) = split_after(text.trim());
    targets.extend(more);
    let title = unescape(title.trim());
    Some(ItemLine { title, text: text.to_owned(), targets, ..ItemLine::default() })
}

fn parse_plain(text: &str) -> ItemLine {
    let (text, mut targets) = split_after(text);
    let (title, text) = match split_inner_after(text) {
        Some((title, more, text)) => {
            targets.extend(more);
            (title, text)
        }
        None => split_colon(text),
    };
    let is_unclear = has_broken_after(title);
    ItemLine { title: title.to_owned(), text: text.to_owned(), targets, is_unclear, ..ItemLine::default() }
}

/// Returns whether a title has `(after: …)` that is not closed, not at the end or in other brackets. Such a
/// title was cut at the colon. A title in bold is taken as it is.
fn has_broken_after(title: &str) -> bool {
    let lower = title.to_ascii_lowercase();
    let ends_open = |rest: &str| rest.trim_end().ends_with(['(', '（', '[', '【']);
    lower.strip_suffix("after").is_some_and(ends_open)
        || ["(after:", "（after:", "(after：", "（after：", "[after:"].iter().any(|part| lower.contains(part))
}

/// Splits at the first colon that a space or the end follows, or a full-width colon.
fn split_colon(text: &str) -> (&str, &str) {
    let is_colon = |(at, c): &(usize, char)| match c {
        '：' => true,
        ':' => text[at + 1..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
    };
    match text.char_indices().find(is_colon) {
        Some((at, c)) => (text[..at].trim(), text[at + c.len_utf8()..].trim()),
        None => (text, ""),
    }
}

/// Splits `(after: …)` off the end of a text.
fn split_after(text: &str) -> (&str, Vec<String>) {
    let at_end = all_after(text).find(|(at, _, length)| at + length == text.len());
    at_end.map_or((text, Vec::new()), |(at, targets, _)| (text[..at].trim_end(), targets))
}

/// Splits `Title (after: …): text`.
fn split_inner_after(text: &str) -> Option<(&str, Vec<String>, &str)> {
    let (at, targets, length) = all_after(text).next()?;
    let rest = text[at + length..].trim_start();
    let has_earlier_colon = split_colon(&text[..at]).0.len() < text[..at].trim().len();
    let text_after = rest.strip_prefix([':', '：']).filter(|_| !has_earlier_colon)?;
    Some((text[..at].trim(), targets, text_after.trim()))
}

/// Returns the position, the texts and the length of every `(after: …)`.
fn all_after(text: &str) -> impl Iterator<Item = (usize, Vec<String>, usize)> {
    let is_opening = |(_, c): &(usize, char)| matches!(c, '(' | '（');
    let openings = text.char_indices().filter(is_opening);
    openings.filter_map(|(at, _)| {
        let (targets, length) = after_at(&text[at..]).filter(|_| !text[..at].ends_with('\\'))?;
        Some((at, targets, length))
    })
}

/// Parses `(after: A, B)` at the start of a text. Returns the texts in it and its length.
fn after_at(text: &str) -> Option<(Vec<String>, usize)> {
    let body = text.strip_prefix(['(', '（'])?;
    let word = body.get(..5).filter(|word| word.eq_ignore_ascii_case("after"))?;
    let body = body[word.len()..].trim_start().strip_prefix([':', '：'])?;
    let start = text.len() - body.len();
    let (mut targets, mut depth, mut from, mut is_escaped) = (Vec::new(), 0, 0, false);
    for (at, c) in body.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' | '（' => depth += 1,
            ')' | '）' if depth == 0 => {
                targets.push(body[from..at].trim().to_owned());
                return Some((targets, start + at + c.len_utf8()));
            }
            ')' | '）' => depth -= 1,
            ',' | '，' | '、' if depth == 0 => {
                targets.push(body[from..at].trim().to_owned());
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    None
}

fn find_unescaped(text: &str, what: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if !is_escaped && text[at..].starts_with(what) {
            return Some(at);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}
