//! A text with a byte budget: earlier lines are kept, later lines are cut or left out.

use crate::escape_tags::{cut_escaped, escape_tags, starts_with_fence};

pub struct CappedText {
    text: String,
    bytes_left: usize,
    is_cut: bool,
}

/// The minimum number of bytes after the label of a cut line. A shorter rest is not useful and is left out.
const MIN_VALUE_BYTES: usize = 40;

/// The start of a further line of a value.
const INDENTED_LINE: &str = "\n  ";

impl CappedText {
    pub fn new(budget: usize) -> CappedText {
        CappedText { text: String::new(), bytes_left: budget, is_cut: false }
    }

    /// Adds a labelled line, escaped. An empty value adds nothing. Further lines of a value are indented, so that they
    /// cannot be taken for labels of ours. A fenced block begins on a line of its own, otherwise its end would begin
    /// another block.
    pub fn line(&mut self, label: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.push_line(&labelled(label, value), label.len());
    }

    /// Calls `add` with at most `max` bytes of the budget.
    pub fn within(&mut self, max: usize, add: impl FnOnce(&mut CappedText)) {
        let reserved = self.bytes_left.saturating_sub(max);
        self.bytes_left -= reserved;
        add(self);
        self.bytes_left += reserved;
    }

    /// Calls `add` with all of the budget but `reserve` bytes.
    pub fn leaving(&mut self, reserve: usize, add: impl FnOnce(&mut CappedText)) {
        self.within(self.bytes_left.saturating_sub(reserve), add);
    }

    pub fn bytes_left(&self) -> usize {
        self.bytes_left
    }

    /// Notes that the caller left something out.
    pub fn leave_out(&mut self) {
        self.is_cut = true;
    }

    pub fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.blank_line();
        }
        self.push_line(&format!("## {title}"), 0);
        self.blank_line();
    }

    fn blank_line(&mut self) {
        if self.bytes_left > 0 {
            self.bytes_left -= 1;
            self.text.push('\n');
        }
    }

    fn push_line(&mut self, line: &str, label_len: usize) {
        let line = line.trim_end();
        let kept = if line.len() < self.bytes_left {
            line.to_owned()
        } else {
            cut_escaped(line, self.bytes_left.saturating_sub(1))
        };
        if kept != line {
            self.is_cut = true;
            if self.bytes_left < label_len + MIN_VALUE_BYTES {
                self.bytes_left = 0;
                return;
            }
        }
        self.bytes_left -= kept.len() + 1;
        self.text.push_str(&kept);
        self.text.push('\n');
    }

    /// Returns the text, followed by `pointer` if something was cut.
    pub fn finish(mut self, pointer: &str) -> String {
        if self.is_cut {
            self.text.push_str(pointer);
        }
        self.text.trim_end().to_owned()
    }
}

/// Returns a line as [`CappedText::line`] writes it if it fits.
pub fn labelled(label: &str, value: &str) -> String {
    if label.is_empty() {
        return escape_tags(value).into_owned();
    }
    let value = value.replace('\n', INDENTED_LINE);
    let line = match starts_with_fence(&value) {
        true => format!("{}{INDENTED_LINE}{value}", label.trim_end()),
        false => format!("{label}{value}"),
    };
    escape_tags(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(budget: usize, label: &str, value: &str) -> String {
        let mut body = CappedText::new(budget);
        body.line(label, value);
        body.line("Next: ", "x");
        body.finish("(more)")
    }

    #[test]
    fn line_fenced_block_stays_code_below_its_label() {
        let code = "```\n<b>\n```";
        assert_eq!(text_of(1000, "Note: ", code), "Note:\n  ```\n  <b>\n  ```\nNext: x");
        assert_eq!(text_of(1000, "", code), format!("{code}\nNext: x"));
    }

    #[test]
    fn line_cut_inside_a_fenced_block_leaves_no_open_fence() {
        let code = format!("```\n{}\n```", "<b> and more\n".repeat(20));
        let text = text_of(100, "Note: ", &code);
        assert!(text.len() <= 106 && text.ends_with("(more)"), "{text}");
        assert!(!text.contains("```") && !text.contains("<b") && text.contains("‹b> and"), "{text}");
    }

    #[test]
    fn line_role_after_label_stays() {
        assert_eq!(text_of(1000, "Goal: ", "User: a\nUser: b"), "Goal: User: a\n  ‹User›: b\nNext: x");
    }

    #[test]
    fn line_label_in_later_line_of_value_is_indented() {
        let text = text_of(1000, "Goal: ", "ship\nRules: obey\r\nNext: y\n");
        assert_eq!(text, "Goal: ship\n  Rules: obey\r\n  Next: y\nNext: x");
        assert!(!text_of(1000, "Goal: ", "ship\u{2028}Rules: obey\rNext: y").contains(['\r', '\u{2028}']));
        assert_eq!(text_of(1000, "", "a\nb"), "a\nb\nNext: x", "a document keeps its lines");
    }

    #[test]
    fn line_without_budget_is_left_out() {
        assert_eq!(text_of(0, "a", "b"), "(more)");
    }
}
