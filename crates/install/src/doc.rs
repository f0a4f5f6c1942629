//! Converts the bytes of a file to text and back. Keeps a byte order mark.

use crate::Refusal;

const BOM: &str = "\u{feff}";

pub struct TextFile {
    pub has_bom: bool,
    pub body: String,
}

impl TextFile {
    pub fn of(bytes: &[u8]) -> Result<TextFile, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::NotUtf8)?;
        let body = text.strip_prefix(BOM);
        Ok(TextFile { has_bom: body.is_some(), body: body.unwrap_or(text).to_owned() })
    }

    pub fn encode(&self, body: &str) -> Vec<u8> {
        let bom = if self.has_bom { BOM } else { "" };
        format!("{bom}{body}").into_bytes()
    }

    /// Returns whether lines end with CRLF.
    pub fn has_crlf(&self) -> bool {
        self.body.contains("\r\n")
    }
}

/// Returns line and column of an offset, both starting at 1.
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
