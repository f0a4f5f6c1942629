//! A text with a byte budget: earlier lines are kept, later lines are cut or left out.

use tanmi_base::text;

use crate::escape_tags::escape_tags;

pub struct CappedText {
    text: String,
    bytes_left: usize,
    is_cut: bool,
}

/// The minimum number of bytes after the label of a cut line. A shorter rest is not useful and is left out.
const MIN_VALUE_BYTES: usize = 40;

impl CappedText {
    pub fn new(budget: usize) -> CappedText {
        CappedText { text: String::new(), bytes_left: budget, is_cut: false }
    }

    /// Adds a labelled line, with tags in `value` escaped. An empty value adds nothing.
    pub fn line(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.push_line(&format!("{label}{}", escape_tags(value)), label.len());
        }
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
            text::cut(line, self.bytes_left.saturating_sub(1))
        };
        if kept.len() < line.len() {
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
