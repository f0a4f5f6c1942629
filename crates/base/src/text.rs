//! Cutting and measuring text: budgets in bytes, widths in terminal columns. Callers decide what to cut.

use unicode_width::UnicodeWidthChar;

/// Returns the bytes without the byte order mark that some editors write at the start of a file.
pub fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes)
}

/// The byte order mark of UTF-8.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// Returns the longest prefix of at most `max` bytes that ends on a character boundary.
pub fn prefix(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the position of the first byte that `is_wanted` accepts. It looks at whole chunks, which the compiler turns
/// into vector instructions.
pub fn find_byte(bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    const CHUNK: usize = 32;
    let (mut at, mut rest) = (0, bytes);
    while let Some((chunk, after)) = rest.split_first_chunk::<CHUNK>() {
        if chunk.iter().fold(false, |found, byte| found | is_wanted(*byte)) {
            break;
        }
        (at, rest) = (at + CHUNK, after);
    }
    rest.iter().position(|byte| is_wanted(*byte)).map(|found| at + found)
}

/// Cuts text to at most `max` bytes and marks the cut. Cuts at the end of a line or sentence if one lies in the
/// last half.
pub fn cut(text: &str, max: usize) -> String {
    const MARK: &str = " …";
    if text.len() <= max {
        return text.to_owned();
    }
    let head = prefix(text, max.saturating_sub(MARK.len()));
    let at_line = head.rfind('\n');
    let at_sentence = head
        .char_indices()
        .filter(|(at, c)| {
            matches!(c, '。' | '！' | '？' | '；')
                || (matches!(c, '.' | '!' | '?') && head[at + 1..].starts_with(' '))
        })
        .map(|(at, c)| at + c.len_utf8())
        .next_back();
    match at_line.max(at_sentence) {
        Some(end) if end >= head.len() / 2 => format!("{}{MARK}", head[..end].trim_end()),
        _ => format!("{}{MARK}", head.trim_end()),
    }
}

/// Returns the number of terminal columns of a text. Wide characters count two, control characters none.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Estimates the number of model tokens of a text: four ASCII characters per token, one character of any other
/// script.
pub fn estimate_tokens(text: &str) -> usize {
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    let latin = text.bytes().filter(u8::is_ascii).count();
    others + latin.div_ceil(4)
}

/// Returns the longest prefix that fits into `columns`, with an ellipsis if the text was cut.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut out = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// Returns a text as one line for a terminal. Line breaks and other control characters are made visible.
pub fn one_line(text: &str) -> String {
    let is_unsafe = |c: char| c.is_control() || is_direction_override(c);
    // Most texts have no such character, and copying one as a whole takes a fraction of the work: hooks tell
    // many texts.
    if !text.contains(is_unsafe) {
        return text.to_owned();
    }
    let shown = |c| match c {
        '\n' => '⏎',
        c if is_unsafe(c) => '\u{FFFD}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Returns a text for a terminal. Control characters other than line breaks and tabs are made visible.
pub fn printable(text: &str) -> String {
    let is_unsafe = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_direction_override(c);
    text.chars().map(|c| if is_unsafe(c) { '\u{FFFD}' } else { c }).collect()
}

/// Returns whether a character overrides the text direction, which would reorder the rest of the line.
fn is_direction_override(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cut_long_text_ends_at_sentence_or_line() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("First sentence. Second one is long", 24), "First sentence. …");
        assert_eq!(cut("第一句。第二句很长很长", 24), "第一句。 …");
        assert_eq!(cut("line one\nline two", 14), "line one …");
    }

    #[test]
    fn width_cjk_counts_two_columns() {
        assert_eq!(width("任务 ab"), 7);
        assert_eq!(fit("任务列表", 5), "任务…");
    }

    proptest! {
        #[test]
        fn find_byte_equals_position(bytes in prop::collection::vec(0u8..60, 0..150)) {
            prop_assert_eq!(find_byte(&bytes, |byte| byte == 7), bytes.iter().position(|byte| *byte == 7));
        }
        #[test]
        fn cut_never_exceeds_byte_budget(text in "\\PC{0,200}", max in 4usize..120) {
            prop_assert!(cut(&text, max).len() <= max);
        }
        #[test]
        fn fit_never_exceeds_columns(text in "\\PC{0,60}", columns in 1usize..40) {
            prop_assert!(width(&fit(&text, columns)) <= columns);
        }
    }
}
