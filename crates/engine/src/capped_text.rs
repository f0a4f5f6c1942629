//! A text with a budget: what comes first is kept, what no longer fits is cut or left out.

use tanmi_base::text;

use crate::escape_tags::escape_tags;

pub struct CappedText {
    text: String,
    left: usize,
    is_cut: bool,
}

/// With less room than this behind its label, a line says nothing.
const WORTH_IT: usize = 40;

impl CappedText {
    pub fn new(room: usize) -> CappedText {
        CappedText { text: String::new(), left: room, is_cut: false }
    }

    /// One labelled text, if there is one and room for some of it. What looks like a tag in it is none.
    pub fn line(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.put(&format!("{label}{}", escape_tags(value)), label.len());
        }
    }

    pub fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.gap();
        }
        self.put(&format!("## {title}"), 0);
        self.gap();
    }

    fn gap(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            self.text.push('\n');
        }
    }

    fn put(&mut self, line: &str, label: usize) {
        let line = line.trim_end();
        let kept = if line.len() < self.left {
            line.to_owned()
        } else {
            text::cut(line, self.left.saturating_sub(1))
        };
        if kept.len() < line.len() {
            self.is_cut = true;
            if self.left < label + WORTH_IT {
                self.left = 0;
                return;
            }
        }
        self.left -= kept.len() + 1;
        self.text.push_str(&kept);
        self.text.push('\n');
    }

    /// The text, with a pointer to the rest if something had to go.
    pub fn finish(mut self, pointer: &str) -> String {
        if self.is_cut {
            self.text.push_str(pointer);
        }
        self.text.trim_end().to_owned()
    }
}
