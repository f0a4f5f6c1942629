//! Escapes of titles, as in Markdown: a backslash before punctuation, and `&#10;` for a character by its number.

/// Full-width punctuation that separates the parts of an item, and so can be escaped as ASCII punctuation can.
const WIDE: &str = "（）：，、";

fn is_escapable(c: char) -> bool {
    c.is_ascii_punctuation() || WIDE.contains(c)
}

/// Replaces the escapes of a text by what they stand for.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\\'
            && let Some(next) = rest[1..].chars().next().filter(|next| is_escapable(*next))
        {
            out.push(next);
            rest = &rest[1 + next.len_utf8()..];
        } else if let Some((decoded, length)) = numbered_character(rest) {
            out.push(decoded);
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Returns the character of `&#10;` at the start of a text, and the length of that notation.
fn numbered_character(text: &str) -> Option<(char, usize)> {
    let (number, _) = text.strip_prefix("&#")?.split_once(';')?;
    let decoded = number.parse().ok().and_then(char::from_u32)?;
    Some((decoded, number.len() + 3))
}

/// Escapes `special` characters, and what would be lost at the ends of a text or on one line.
pub fn escape(text: &str, special: &str) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut out = String::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        let is_edge = n == 0 || n == last;
        if c.is_control() || (is_edge && c.is_whitespace()) {
            out.push_str(&format!("&#{};", u32::from(c)));
        } else {
            if matches!(c, '\\' | '&') || special.contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}
