//! Converts the bytes of a file to text and back. Keeps a byte order mark and the ends of lines.

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

    /// Returns the line end for new lines: CRLF if the text contains it.
    pub fn line_end(&self) -> &'static str {
        line_end(&self.body)
    }

    /// Returns an edited text with the line ends that its lines have in this text. New lines get [`Self::line_end`].
    pub fn restore_line_ends(&self, edited: &str) -> String {
        let bare = |line: &&str| line.trim_end_matches(['\r', '\n']).to_owned();
        let split = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
        let (old, new) = (split(&self.body), split(edited));
        let (old_bare, new_bare): (Vec<String>, Vec<String>) =
            (old.iter().map(bare).collect(), new.iter().map(bare).collect());
        let mut out = String::new();
        for change in similar::capture_diff_slices(similar::Algorithm::Myers, &old_bare, &new_bare)
            .iter()
            .flat_map(|op| op.iter_changes(&old_bare, &new_bare))
        {
            let Some(at) = change.new_index() else { continue };
            let same = change.old_index().map_or("", |at| old[at]);
            let end = match (new[at].ends_with('\n'), same.ends_with('\n')) {
                (false, _) => "",
                (true, false) => self.line_end(),
                (true, true) => &same[bare(&same).len()..],
            };
            out.push_str(&new_bare[at]);
            out.push_str(end);
        }
        out
    }
}

/// Returns the line end for new lines of a text.
pub fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns line and column of an offset, both starting at 1.
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
