//! A file's bytes as text, and back: a byte order mark stays where it was.

use crate::Refusal;

const MARK: &str = "\u{feff}";

pub struct Text {
    pub has_mark: bool,
    pub body: String,
}

impl Text {
    pub fn of(bytes: &[u8]) -> Result<Text, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::NotUtf8)?;
        let body = text.strip_prefix(MARK);
        Ok(Text { has_mark: body.is_some(), body: body.unwrap_or(text).to_owned() })
    }

    pub fn with(&self, body: &str) -> Vec<u8> {
        let mark = if self.has_mark { MARK } else { "" };
        format!("{mark}{body}").into_bytes()
    }

    /// Whether lines end as on Windows.
    pub fn has_returns(&self) -> bool {
        self.body.contains("\r\n")
    }
}

/// Line and column of a place, both from 1.
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
