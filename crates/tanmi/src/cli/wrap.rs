//! Line wrapping for Chinese and English, by columns of a terminal.

use tanmi_base::text;

/// A line does not begin with these.
const CLOSING: &str = "，。；：、！？）》」』”’…,.;:!?)]}";
/// A line does not end with these.
const OPENING: &str = "（《「『“‘([{";

const DEFAULT_WIDTH: usize = 100;
const MAX_WIDTH: usize = 100;

/// Returns the width of the terminal, else `COLUMNS`, limited to a width that is easy to read.
pub fn terminal_width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal.or_else(crate::env::columns).filter(|width| *width > 0).unwrap_or(DEFAULT_WIDTH).min(MAX_WIDTH)
}

/// Breaks a text into lines of at most `width` columns, at spaces and between wide characters.
pub fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for piece in pieces(line) {
        let is_full = text::width(&current) + text::width(piece.trim_end()) > width;
        if is_full && !current.is_empty() {
            lines.push(current.trim_end().to_owned());
            current.clear();
        }
        current.push_str(piece);
    }
    if !current.is_empty() {
        lines.push(current.trim_end().to_owned());
    }
    lines
}

/// Splits a text wherever a line may end; spaces stay with the piece before them.
fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut before, mut is_label) = (0, None, false);
    for (at, c) in line.char_indices() {
        if !is_label && before.is_some_and(|before| can_break(before, c)) {
            pieces.push(&line[start..at]);
            start = at;
        }
        // `[默认：` stays whole, and with the value that follows.
        is_label = c == '[' || (is_label && c != '：' && c != ' ');
        before = Some(c);
    }
    if start < line.len() {
        pieces.push(&line[start..]);
    }
    pieces
}

fn can_break(before: char, after: char) -> bool {
    if after == ' ' || CLOSING.contains(after) || OPENING.contains(before) {
        return false;
    }
    if before == '：' && !is_wide(after) {
        return false;
    }
    before == ' ' || is_wide(before) || is_wide(after)
}

fn is_wide(c: char) -> bool {
    text::width(c.encode_utf8(&mut [0; 4])) == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_breaks_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable word", 5), ["unbreakable", "word"]);
        assert!(wrap("", 5).is_empty());
    }

    #[test]
    fn chinese_breaks_between_characters_and_keeps_punctuation() {
        assert_eq!(wrap("显示工作区的目标", 8), ["显示工作", "区的目标"]);
        assert_eq!(wrap("显示工作，目标", 8), ["显示工", "作，目标"]);
        assert_eq!(wrap("使用 `tanmi tree` 查看", 12), ["使用 `tanmi", "tree` 查看"]);
        assert_eq!(wrap("目标（可选）", 6), ["目标", "（可", "选）"]);
        assert_eq!(wrap("上级节点是：root", 14), ["上级节点", "是：root"]);
        assert_eq!(wrap("父节点 [默认：root]", 12), ["父节点", "[默认：root]"]);
        assert_eq!(wrap("条目 [默认：显示日志]", 12), ["条目 [默认：", "显示日志]"]);
    }
}
