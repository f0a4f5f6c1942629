//! Cutting and measuring text: budgets in bytes, widths in terminal columns. What is cut, and why, is decided elsewhere.

use unicode_width::UnicodeWidthChar;

/// The longest prefix of at most `max` bytes that ends between characters.
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

/// Cuts to at most `max` bytes, at the end of a line or sentence if one lies in the last half, and marks the cut.
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

/// Columns a terminal needs; wide characters count two, control characters none.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// What a text costs a model, roughly: four Latin characters to a token, one of any other script.
pub fn estimate_tokens(text: &str) -> usize {
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    let latin = text.bytes().filter(u8::is_ascii).count();
    others + latin.div_ceil(4)
}

/// The longest prefix that fits into `columns`, with an ellipsis if anything had to go.
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

/// One line for a terminal: line breaks and other control characters shown, not obeyed.
pub fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' => '⏎',
            c if c.is_control() || is_direction(c) => '\u{FFFD}',
            c => c,
        })
        .collect()
}

/// Lines for a terminal: control characters other than line ends and tabs shown, not obeyed.
pub fn printable(text: &str) -> String {
    let is_obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_direction(c);
    text.chars().map(|c| if is_obeyed(c) { '\u{FFFD}' } else { c }).collect()
}

/// Direction overrides would reorder the rest of the line.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cuts_at_sentences_and_lines() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("First sentence. Second one is long", 24), "First sentence. …");
        assert_eq!(cut("第一句。第二句很长很长", 24), "第一句。 …");
        assert_eq!(cut("line one\nline two", 14), "line one …");
    }

    #[test]
    fn widths_of_cjk() {
        assert_eq!(width("任务 ab"), 7);
        assert_eq!(fit("任务列表", 5), "任务…");
    }

    proptest! {
        #[test]
        fn a_cut_never_exceeds_its_budget(text in "\\PC{0,200}", max in 4usize..120) {
            prop_assert!(cut(&text, max).len() <= max);
        }
        #[test]
        fn a_fit_never_exceeds_its_columns(text in "\\PC{0,60}", columns in 1usize..40) {
            prop_assert!(width(&fit(&text, columns)) <= columns);
        }
    }
}
