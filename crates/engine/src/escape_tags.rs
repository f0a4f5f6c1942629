//! Escapes stored text. Stored text is data, so it must not contain what a client, Tanmi or a model takes for
//! structure: tags, special tokens, the role that begins a turn, and invisible characters.
//!
//! Code in backticks keeps its angle brackets, except those of tags that could end the text around it.

use std::borrow::Cow;
use std::ops::Range;

use tanmi_base::invisible::remove_invisible;
use tanmi_base::text::{self, find_byte};

mod code;

use code::{Fences, Spans, fence_at, run_len};

/// Name prefixes of tags that a client or Tanmi interprets, also in code or with blanks before the name.
const TAGS: &[&str] = &[
    "tanmi-",
    "system-reminder",
    "system_reminder",
    "hook_context",
    "hook_prompt",
    "task-notification",
    "persisted-output",
    "user-prompt",
    "function_",
    "antml",
    "invoke",
    "tool_",
    "local-command",
    "command-",
    "user_query",
    "user_instructions",
    "environment_context",
    "session_context",
    "start_of_turn",
    "end_of_turn",
    "bash-",
];

/// Names that begin a turn of a conversation when a colon follows.
const ROLES: &[&str] = &["Human", "Assistant", "System", "User", "Developer"];

/// Special tokens of models that are written in square brackets.
const BRACKET_TOKENS: &[&str] = &[
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[TOOL_RESULTS]",
];

/// Names of `<` in HTML.
const ENTITIES: &[&str] = &["&lt;", "&#60;", "&#060;", "&#x3c;", "&#x03c;", "&#x003c;"];

/// Returns the text with `‹` for each `<` that could begin a tag, `‹Human›:` for a role at the start of a line, and
/// without invisible characters. Code keeps its bytes, except for invisible characters and tags of [`TAGS`].
///
/// Invariants: idempotent; linear time; at most three times as long. Allocates only if something changes.
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    escape_with(text, true)
}

/// Returns an escaped text on one line, for names, titles, paths and ids.
pub(crate) fn escape_line(text: &str) -> String {
    escape_tags(&text::one_line(text)).into_owned()
}

/// Cuts an escaped text to at most `max` bytes. Code whose end was cut off is escaped like other text.
pub(crate) fn cut_escaped(text: &str, max: usize) -> String {
    let cut = text::cut(text, max);
    match escape_with(&cut, true) {
        Cow::Borrowed(_) => cut,
        Cow::Owned(_) => text::cut(&escape_with(&cut, false), max),
    }
}

/// Returns whether a text begins with a fenced block.
pub(crate) fn starts_with_fence(text: &str) -> bool {
    let line = 0..text.find('\n').unwrap_or(text.len());
    fence_at(text, &line).is_some()
}

fn escape_with(text: &str, keeps_code: bool) -> Cow<'_, str> {
    match remove_invisible(text) {
        Cow::Borrowed(text) => Escaper::new(text, keeps_code).run(),
        Cow::Owned(text) => Cow::Owned(Escaper::new(&text, keeps_code).run().into_owned()),
    }
}

struct Escaper<'a> {
    text: &'a str,
    keeps_code: bool,
    out: String,
    /// The part of the text before this position is in `out`.
    copied: usize,
}

impl<'a> Escaper<'a> {
    fn new(text: &'a str, keeps_code: bool) -> Escaper<'a> {
        Escaper { text, keeps_code, out: String::new(), copied: 0 }
    }

    fn run(mut self) -> Cow<'a, str> {
        let mut fences = Fences::default();
        let mut at = 0;
        while at < self.text.len() {
            let end = self.text[at..].find('\n').map_or(self.text.len(), |len| at + len + 1);
            let mut line = at..end;
            at = end;
            if let Some(fence) = fence_at(self.text, &line) {
                if let Some(block_end) = self.fence_end(&mut fences, &fence, end) {
                    self.code(fence.end..block_end);
                    at = block_end;
                    continue;
                }
                self.unclosed_fence(&fence);
                line.start = fence.end;
            } else {
                self.role(&line);
            }
            self.line(line);
        }
        self.finish()
    }

    fn fence_end(&self, fences: &mut Fences, fence: &Range<usize>, body: usize) -> Option<usize> {
        if self.keeps_code { fences.end(self.text, fence, body) } else { None }
    }

    fn finish(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(&self.text[self.copied..]);
        Cow::Owned(self.out)
    }

    fn replace(&mut self, range: Range<usize>, with: &str) {
        self.out.push_str(&self.text[self.copied..range.start]);
        self.out.push_str(with);
        self.copied = range.end;
    }

    /// Replaces the backticks of a fence without an end, because the text after this one would be in its block. Tildes
    /// stay: they also underline headings.
    fn unclosed_fence(&mut self, fence: &Range<usize>) {
        if self.text.as_bytes()[fence.start] == b'`' {
            self.replace(fence.clone(), &"‵".repeat(fence.len()));
        }
    }

    /// Escapes a role at the start of a line: `Human:` becomes `‹Human›:`.
    fn role(&mut self, line: &Range<usize>) {
        let is_markup = |c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_' | '>');
        let rest = self.text[line.clone()].trim_start_matches(is_markup);
        if !rest.starts_with(|c: char| c.is_ascii_uppercase()) {
            return;
        }
        let is_role = |role: &&&str| {
            starts_with_ignoring_case(rest, role)
                && rest[role.len()..].trim_start_matches(is_markup).starts_with([':', '：', '﹕'])
        };
        if let Some(role) = ROLES.iter().find(is_role) {
            let start = line.end - rest.len();
            let range = start..start + role.len();
            let escaped = format!("‹{}›", &self.text[range.clone()]);
            self.replace(range, &escaped);
        }
    }

    /// Escapes one line, or the rest of one, that is not in a fenced block.
    fn line(&mut self, line: Range<usize>) {
        let bytes = self.text.as_bytes();
        let mut spans = Spans::default();
        let mut at = line.start;
        while let Some(found) = find_byte(&bytes[at..line.end], is_special) {
            at += found;
            match bytes[at] {
                // An escaped backtick does not begin a span.
                b'\\' => at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'`' | b'\\'))),
                b'`' => {
                    let len = run_len(&bytes[at..line.end], b'`');
                    at += len;
                    if !self.keeps_code {
                        continue;
                    }
                    if let Some(end) = spans.content_end(bytes, at, len, line.end) {
                        self.code(at..end);
                        at = end + len;
                    }
                }
                b'[' => {
                    if BRACKET_TOKENS.iter().any(|token| self.text[at..].starts_with(token)) {
                        self.replace(at..at + 1, "‹");
                    }
                    at += 1;
                }
                _ => {
                    let len = bracket_len(&self.text[at..]);
                    if len > 0 && opens_tag(&self.text[at + len..]) {
                        self.replace(at..at + len, "‹");
                    }
                    at += len.max(1);
                }
            }
        }
    }

    /// Escapes code, where only known tags and special tokens count.
    fn code(&mut self, range: Range<usize>) {
        let bytes = self.text.as_bytes();
        let mut at = range.start;
        while let Some(found) = find_byte(&bytes[at..range.end], |byte| matches!(byte, b'<' | 0xEF)) {
            at += found;
            let len = bracket_len(&self.text[at..]);
            let rest = &self.text[at + len..];
            if len > 0 && (opens_known_tag(rest) || is_special_token(rest)) {
                self.replace(at..at + len, "‹");
            }
            at += len.max(1);
        }
    }
}

/// Returns whether a byte may begin something to escape in a line, or code. 0xEF begins `＜` and `﹤`.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'<' | b'&' | b'[' | b'`' | b'\\' | 0xEF)
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
}

/// Returns the number of bytes of the `<` that a text begins with, in any form, or 0. In code, entities are not
/// searched for.
fn bracket_len(text: &str) -> usize {
    match text.chars().next() {
        Some('<') => 1,
        Some('＜' | '﹤') => 3,
        Some('&') => {
            ENTITIES.iter().find(|name| starts_with_ignoring_case(text, name)).map_or(0, |name| name.len())
        }
        _ => 0,
    }
}

/// Returns whether `<` before this text could begin a tag for a lenient reader. `a < b`, `x <= y`, `<3` and `<-` are no
/// tags.
fn opens_tag(rest: &str) -> bool {
    let name = rest.trim_start_matches(is_ignored);
    name.starts_with(|c: char| {
        c.is_alphabetic() || matches!(c, '/' | '!' | '?' | '|' | '_' | '／' | '！' | '？' | '｜' | '＿')
    }) || opens_known_tag(rest)
        || is_spaced_tag(rest)
}

/// Returns whether a reader may overlook this character after `<`.
fn is_ignored(c: char) -> bool {
    match c {
        ' ' | '\t' | '\n' | '\r' => false,
        // The last two are what `one_line` makes of control characters and line breaks.
        '\\' | '\u{2800}' | '\u{FFFD}' | '⏎' => true,
        '\u{300}'..='\u{36F}'
        | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}' => true,
        c => c.is_whitespace(),
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_ignored(c)
}

/// Returns whether the text continues with a name of [`TAGS`].
fn opens_known_tag(rest: &str) -> bool {
    let name = rest.trim_start_matches(|c: char| matches!(c, '/' | '／') || is_blank(c));
    TAGS.iter().any(|tag| starts_with_ignoring_case(name, tag))
}

/// Returns whether the text continues with blanks, a name and directly `>`, as in `< /name>`.
fn is_spaced_tag(rest: &str) -> bool {
    const MAX_NAME: usize = 64;
    let name = rest.trim_start_matches(|c: char| matches!(c, '/' | '／') || is_blank(c));
    if !name.starts_with(char::is_alphabetic) {
        return false;
    }
    let end = name.chars().take(MAX_NAME).find(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_' | ':'));
    matches!(end, Some('>' | '＞' | '﹥'))
}

/// Returns whether the text continues a special token such as `<|im_start|>`.
fn is_special_token(rest: &str) -> bool {
    let Some(name) = rest.strip_prefix(['|', '｜']) else { return false };
    let end = name.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '▁'));
    end.len() < name.len() && end.starts_with(['|', '｜'])
}

#[cfg(test)]
mod tests;
