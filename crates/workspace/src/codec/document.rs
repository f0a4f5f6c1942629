//! Splits a Markdown file into front-matter keys and `##` sections without losing a byte.
//!
//! The modules `node` and `workspace` interpret the keys and sections.

use serde::{Serialize, Serializer};
use tanmi_base::{Bilingual, Lang};

use super::scalar;

/// Why and at which line a file cannot be parsed. The first line is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub line: usize,
    pub reason: Bilingual,
}

/// Separates the two languages in the index.
const LANGUAGE_SEPARATOR: char = '\u{1f}';

impl ParseError {
    pub fn new(line: usize, zh: impl Into<String>, en: impl Into<String>) -> ParseError {
        ParseError { line, reason: Bilingual::new(zh, en) }
    }

    /// Returns the line and the reason.
    pub fn text(&self, lang: Lang) -> String {
        format!("{}: {}", self.line, self.reason.pick(lang))
    }

    /// Returns the text that the index stores.
    pub fn to_index_text(&self) -> String {
        format!("{}{LANGUAGE_SEPARATOR}{}", self.text(Lang::En), self.reason.zh)
    }

    /// Reads the text that the index stores.
    pub fn from_index_text(text: &str) -> ParseError {
        let (line, reason) = text.split_once(": ").unwrap_or(("1", text));
        let (en, zh) = reason.split_once(LANGUAGE_SEPARATOR).unwrap_or((reason, reason));
        ParseError::new(line.parse().unwrap_or(1), zh, en)
    }
}

/// JSON has the English text.
impl Serialize for ParseError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text(Lang::En))
    }
}

/// The canonical name of a section and the aliases that are accepted. ASCII case of the canonical name is ignored.
#[derive(Clone, Copy, Debug)]
pub struct SectionNames {
    pub canonical: &'static str,
    pub aliases: &'static [&'static str],
}

impl SectionNames {
    fn matches(&self, heading: &str) -> bool {
        heading.eq_ignore_ascii_case(self.canonical) || self.aliases.contains(&heading)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Whether the file starts with a byte order mark.
    has_bom: bool,
    /// Whether lines end with CRLF.
    has_crlf: bool,
    front_matter: Vec<Entry>,
    preamble: String,
    sections: Vec<Section>,
    front_matter_end: usize,
}

/// A key with all text up to the next key. Comments and blank lines are entries without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: Option<String>,
    raw: String,
    line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    heading: String,
    body: String,
}

impl Section {
    fn name(&self) -> &str {
        self.heading.trim_start_matches('#').trim()
    }
}

impl Document {
    pub fn parse(bytes: &[u8]) -> Result<Document, ParseError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            ParseError::new(line, "不是有效的 UTF-8", "not valid UTF-8")
        })?;
        let (has_bom, text) = match text.strip_prefix('\u{FEFF}') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if text.trim().is_empty() {
            return Err(ParseError::new(1, "文件为空", "the file is empty"));
        }
        // Editors that write CRLF do so on every line. In other files a carriage return is content.
        let has_crlf = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
        let normalized = if has_crlf { text.replace("\r\n", "\n") } else { text.to_owned() };
        let text = normalized.as_str();
        let mut lines = text.split_inclusive('\n');
        if lines.next().map(str::trim_end) != Some("---") {
            let zh = "缺少 front matter；第一行必须是 ---";
            let en = "the front matter is missing; the first line must be ---";
            return Err(ParseError::new(1, zh, en));
        }
        let mut doc = Document { has_bom, has_crlf, ..Document::default() };
        let mut number = 1;
        let mut is_closed = false;
        for line in lines.by_ref() {
            number += 1;
            if line.trim_end() == "---" {
                is_closed = true;
                break;
            }
            doc.push_front_line(line, number)?;
        }
        if !is_closed {
            let (zh, en) = ("front matter 缺少结束行 ---", "the front matter has no closing line ---");
            return Err(ParseError::new(number, zh, en));
        }
        // An unclosed bracket would swallow keys added after it.
        if let Some(open) = doc
            .front_matter
            .iter()
            .rfind(|entry| entry.key.is_some())
            .filter(|entry| is_open_flow(&entry.raw))
        {
            return Err(ParseError::new(
                open.line,
                "括号没有闭合；以括号开头的文本要加引号",
                "a bracket is not closed; put text that starts with a bracket in quotes",
            ));
        }
        doc.front_matter_end = number;
        doc.split_body(&lines.collect::<String>());
        Ok(doc)
    }

    fn push_front_line(&mut self, line: &str, number: usize) -> Result<(), ParseError> {
        let is_blank = line.trim().is_empty();
        let is_continuation =
            !is_blank && (line.starts_with([' ', '\t']) || line.trim_end() == "-" || line.starts_with("- "));
        let last_key = self.front_matter.iter().rposition(|entry| entry.key.is_some());
        if let Some(at) = last_key
            && (is_continuation || (!is_blank && is_open_flow(&self.front_matter[at].raw)))
        {
            // Blank lines and comments inside a value belong to it.
            let filler: String = self.front_matter.drain(at + 1..).map(|entry| entry.raw).collect();
            self.front_matter[at].raw.push_str(&filler);
            self.front_matter[at].raw.push_str(line);
            return Ok(());
        }
        let is_filler = is_blank || line.starts_with('#');
        let key = match line.split_once(':') {
            _ if is_filler => None,
            Some((key, rest)) if is_key(key, rest) => Some(key.trim().to_owned()),
            _ => return Err(ParseError::new(number, "应为 `key: value`", "expected `key: value`")),
        };
        self.front_matter.push(Entry { key, raw: line.to_owned(), line: number });
        Ok(())
    }

    fn split_body(&mut self, body: &str) {
        let mut at = 0;
        let mut start = 0;
        let mut heading: Option<String> = None;
        while at < body.len() {
            let line = line_at(body, at);
            if let Some(end) = fence_end(body, at) {
                at = end;
            } else if is_heading(line) {
                self.close_section(heading.replace(line.to_owned()), &body[start..at]);
                at += line.len();
                start = at;
            } else {
                at += line.len();
            }
        }
        self.close_section(heading, &body[start..]);
    }

    fn close_section(&mut self, heading: Option<String>, body: &str) {
        match heading {
            Some(heading) => self.sections.push(Section { heading, body: body.to_owned() }),
            None => self.preamble = body.to_owned(),
        }
    }

    pub fn render(&self) -> String {
        let mut out = String::new();
        if self.has_bom {
            out.push('\u{FEFF}');
        }
        out.push_str("---\n");
        for entry in &self.front_matter {
            out.push_str(&entry.raw);
        }
        out.push_str("---\n");
        out.push_str(&self.preamble);
        if self.preamble.is_empty() && !self.sections.is_empty() {
            out.push('\n');
        }
        for section in &self.sections {
            out.push_str(&section.heading);
            out.push_str(&section.body);
        }
        // The file ends with a single newline.
        let end = out.trim_end_matches('\n').len();
        if out.len() > end + 1 {
            out.truncate(end + 1);
        }
        if self.has_crlf { out.replace('\n', "\r\n") } else { out }
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.front_matter.iter().find(|entry| entry.key.as_deref() == Some(key))
    }

    /// Returns the line of a key, or the end of the front matter if the key is missing.
    pub fn line_of(&self, key: &str) -> usize {
        self.entry(key).map_or(self.front_matter_end, |entry| entry.line)
    }

    /// Returns the value of a key as text.
    pub fn get(&self, key: &str) -> Option<String> {
        let entry = self.entry(key)?;
        let (_, value) = entry.raw.split_once(':')?;
        Some(scalar::read(value))
    }

    /// Returns the value, or `None` if it is empty, `null` or `~`. Strips a comment after the value, so this is for
    /// words and numbers only.
    pub fn get_nullable(&self, key: &str) -> Option<String> {
        let value = self.get(key)?;
        let value = value.split_once(" #").map_or(value.as_str(), |(value, _)| value).trim();
        (!matches!(value, "" | "null" | "~")).then(|| value.to_owned())
    }

    /// Returns an error about the value of a key.
    pub fn error(&self, key: &str, zh: impl Into<String>, en: impl Into<String>) -> ParseError {
        ParseError::new(self.line_of(key), zh, en)
    }

    pub fn missing(&self, key: &str) -> ParseError {
        self.error(key, format!("缺少 {key}"), format!("{key} is missing"))
    }

    pub fn unknown_word(&self, key: &str, word: &str, words: &[&str]) -> ParseError {
        let words = words.join(", ");
        self.error(
            key,
            format!("未知的 {key} {word:?}；应为其中之一：{words}"),
            format!("unknown {key} {word:?}; expected one of {words}"),
        )
    }

    pub fn not_a_node_id(&self, key: &str, id: &str) -> ParseError {
        self.error(key, format!("{key} {id:?} 不是节点 ID"), format!("{key} {id:?} is not a node id"))
    }

    pub fn wrong_id(&self, written: &str, folder: impl std::fmt::Display) -> ParseError {
        self.error(
            "id",
            format!("id 是 {written:?}，但文件夹名是 {folder}"),
            format!("id is {written:?}, but the folder is named {folder}"),
        )
    }

    pub fn integer(&self, key: &str) -> Result<Option<i64>, ParseError> {
        let Some(value) = self.get_nullable(key) else { return Ok(None) };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ParseError::new(
                self.line_of(key),
                format!("{key} 应为整数，而不是 {value:?}"),
                format!("{key} must be a whole number, not {value:?}"),
            )),
        }
    }

    pub fn boolean(&self, key: &str) -> Result<bool, ParseError> {
        match self.get_nullable(key).as_deref() {
            None | Some("false" | "no") => Ok(false),
            Some("true" | "yes") => Ok(true),
            Some(other) => {
                let zh = format!("{key} 应为 true 或 false，而不是 {other:?}");
                let en = format!("{key} must be true or false, not {other:?}");
                Err(ParseError::new(self.line_of(key), zh, en))
            }
        }
    }

    /// Sets a key to text that needs no quoting.
    pub fn set(&mut self, key: &'static str, plain: &str) {
        let raw = format!("{key}: {plain}\n");
        match self.front_matter.iter_mut().find(|entry| entry.key.as_deref() == Some(key)) {
            Some(entry) => entry.raw = raw,
            None => self.front_matter.push(Entry { key: Some(key.to_owned()), raw, line: 0 }),
        }
    }

    /// Sets a key to any text.
    pub fn set_text(&mut self, key: &'static str, value: &str) {
        self.set(key, &scalar::write(value));
    }

    pub fn unset(&mut self, key: &str) {
        self.front_matter.retain(|entry| entry.key.as_deref() != Some(key));
    }

    /// Returns the raw body of the first section with this name.
    pub fn section(&self, names: &SectionNames) -> Option<&str> {
        self.sections
            .iter()
            .find(|section| names.matches(section.name()))
            .map(|section| section.body.as_str())
    }

    /// Replaces, adds or (with `None`) removes a section. A new section is inserted according to `order`.
    pub fn set_section(&mut self, names: &SectionNames, order: &[SectionNames], body: Option<String>) {
        let at = self.sections.iter().position(|section| names.matches(section.name()));
        match (at, body) {
            (Some(at), Some(body)) => self.sections[at].body = body,
            // A second section with this name would be read instead, so the first one stays and becomes empty.
            (Some(at), None)
                if self.sections[at + 1..].iter().any(|section| names.matches(section.name())) =>
            {
                self.sections[at].body = String::from("\n");
            }
            (Some(at), None) => {
                self.sections.remove(at);
            }
            (None, None) => {}
            (None, Some(body)) => {
                let at = self.insert_position(names, order);
                if let Some(before) = at.checked_sub(1) {
                    end_with_blank_line(&mut self.sections[before].body);
                } else if !self.preamble.is_empty() {
                    end_with_blank_line(&mut self.preamble);
                }
                self.sections.insert(at, Section { heading: format!("## {}\n", names.canonical), body });
            }
        }
        // The section that was last may end without a newline.
        let last = self.sections.len().saturating_sub(1);
        for section in &mut self.sections[..last] {
            end_with_line(&mut section.body);
        }
    }

    /// Closes unclosed fences in sections that are not in `ours`, so that they do not reach into a section that is.
    pub fn close_foreign_fences(&mut self, ours: &[SectionNames]) {
        // Only the first section with a name is ours.
        let mut taken: Vec<bool> = vec![false; ours.len()];
        let mut is_foreign =
            |section: &&mut Section| match ours.iter().position(|names| names.matches(section.name())) {
                Some(at) => std::mem::replace(&mut taken[at], true),
                None => true,
            };
        let foreign =
            self.sections.iter_mut().filter(|section| is_foreign(section)).map(|section| &mut section.body);
        for body in foreign.chain(std::iter::once(&mut self.preamble)) {
            if let Some(fence) = open_fence(body) {
                end_with_line(body);
                body.push_str(&format!("{fence}\n\n"));
            }
        }
    }

    fn insert_position(&self, names: &SectionNames, order: &[SectionNames]) -> usize {
        let rank = |name: &str| order.iter().position(|names| names.matches(name));
        let mine = rank(names.canonical);
        let earlier = self.sections.iter().rposition(
            |section| matches!((rank(section.name()), mine), (Some(other), Some(mine)) if other < mine),
        );
        match earlier {
            Some(at) => at + 1,
            None if self.sections.iter().any(|section| rank(section.name()).is_some()) => 0,
            None => self.sections.len(),
        }
    }
}

fn end_with_line(body: &mut String) {
    if !body.is_empty() && !body.ends_with('\n') {
        body.push('\n');
    }
}

fn end_with_blank_line(body: &mut String) {
    end_with_line(body);
    if !body.ends_with("\n\n") {
        body.push('\n');
    }
}

/// Returns whether YAML would read this as a key: the colon is followed by whitespace or ends the line.
fn is_key(key: &str, rest: &str) -> bool {
    !key.trim().is_empty() && (rest.starts_with([' ', '\t', '\r', '\n']) || rest.is_empty())
}

/// Returns whether a list or map in brackets continues on the next line.
fn is_open_flow(raw: &str) -> bool {
    let value = raw.split_once(':').map_or("", |(_, value)| value).trim_start();
    let count = |c: char| value.matches(c).count();
    value.starts_with(['[', '{']) && (count('[') > count(']') || count('{') > count('}'))
}

pub(super) fn line_at(text: &str, at: usize) -> &str {
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    &text[at..end]
}

/// Returns the offset after the closing line if a code fence opens at the line at `at` and is closed.
///
/// Only fences in the first column count: the text of list items is indented, so a fence in an item cannot swallow a
/// section. A fence that is never closed is ignored, so a typo swallows nothing either.
pub(super) fn fence_end(text: &str, at: usize) -> Option<usize> {
    let opening = line_at(text, at);
    let (mark, length) = fence_opener(opening)?;
    let mut next = at + opening.len();
    while next < text.len() {
        let line = line_at(text, next);
        next += line.len();
        let bare = line.trim_end();
        if bare.len() >= length && bare.chars().all(|c| c == mark) {
            return Some(next);
        }
    }
    None
}

fn fence_opener(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    (length >= 3 && !(mark == '`' && line[length..].contains('`'))).then_some((mark, length))
}

/// Returns the first fence in `text` that is not closed there. Text after `text` might close it.
pub(super) fn open_fence(text: &str) -> Option<String> {
    let mut at = 0;
    while at < text.len() {
        let line = line_at(text, at);
        match (fence_end(text, at), fence_opener(line)) {
            (Some(end), _) => at = end,
            (None, Some((mark, length))) => return Some(mark.to_string().repeat(length)),
            (None, None) => at += line.len(),
        }
    }
    None
}

/// Indents headings and fences by one column, so that they are read as text. Used for lines whose surrounding
/// comment or fence is removed.
pub(super) fn as_plain_lines(text: &str) -> String {
    let plain = |line: &str| match is_heading(line) || fence_opener(line).is_some() {
        true => format!(" {line}"),
        false => line.to_owned(),
    };
    text.split_inclusive('\n').map(plain).collect()
}

/// Returns whether a line starts a section.
pub(super) fn is_heading(line: &str) -> bool {
    line.starts_with("## ") || line.trim_end() == "##"
}
