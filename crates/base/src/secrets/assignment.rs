//! Finds values after a name: `DB_PASS=…`, `"apiKey": "…"`, `the password is …`, `密码改成了…`.

use super::name::{Class, classify, classify_han};
use super::value::{
    has_digit, has_letter, is_code, is_name_like, is_password, is_placeholder, is_random, is_reference,
    is_strong_password,
};
use super::{Hit, MARK, Match, last_bytes, link};
use crate::text::prefix;
use link::Link;
use std::ops::Range;

const KIND: &str = "password";

/// Number of bytes in which a value is searched. Bounds the work for a text full of names.
const MAX_READ: usize = 256;

/// Number of bytes of a value that decide whether it is a secret.
const MAX_CHECKED: usize = 64;

/// Words that describe a password in prose.
const STATES: &[&str] = &[
    "required",
    "optional",
    "hashed",
    "stored",
    "invalid",
    "incorrect",
    "encrypted",
    "missing",
    "expired",
    "correct",
    "visible",
    "hidden",
    "masked",
    "secret",
    "password",
    "string",
    "unknown",
    "disabled",
    "changeme",
    "plaintext",
];

/// Types before a default value: `password: string = "…"`.
const TYPES: &[&str] = &["string", "str", "String", "&str", "text", "secretstr", "SecretStr", "char"];

/// The name before a value.
pub(super) struct Name<'t> {
    pub(super) text: &'t str,
    pub(super) range: Range<usize>,
    pub(super) class: Class,
}

impl<'t> Name<'t> {
    fn at(hit: Hit<'t>) -> Option<Self> {
        let text = hit.text;
        let known = &text[hit.at..hit.end];
        let stem = known.trim_end_matches([':', '=', ' ', '：']);
        if !stem.is_ascii() {
            return Some(Self { text, range: hit.at..hit.end, class: classify_han(stem)? });
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let before = last_bytes(hit.before(), 48);
        let head = before[before.trim_end_matches(is_part).len()..].trim_start_matches(['-', '.', '_']);
        let stem_end = hit.at + stem.len();
        let after = prefix(&text[stem_end..], 48);
        let tail = &after[..after.find(|c| !is_part(c) || c == '.').unwrap_or(after.len())];
        let range = hit.at - head.len()..stem_end + tail.trim_end_matches('-').len();
        // `AWS::IAM::AccessKey` and `arn:*:secret:…` name a resource. A login in an address is found by itself.
        if ["::", "*:", "://"].iter().any(|end| text[..range.start].ends_with(end)) {
            return None;
        }
        let class = classify(&text[range.clone()], &text[..range.start])?;
        Some(Self { text, range, class })
    }

    pub(super) fn as_str(&self) -> &'t str {
        &self.text[self.range.clone()]
    }

    pub(super) fn before(&self) -> &'t str {
        &self.text[..self.range.start]
    }

    pub(super) fn is_han(&self) -> bool {
        !self.as_str().is_ascii()
    }

    /// Returns whether the name is written as an environment variable.
    pub(super) fn is_variable(&self) -> bool {
        self.as_str().bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    }
}

/// A value in a text, without its quotes.
pub(super) struct Value<'t> {
    pub(super) str: &'t str,
    pub(super) start: usize,
    is_quoted: bool,
}

pub(super) fn find_assigned(hit: Hit<'_>, found: &mut Vec<Match>) {
    let Some(name) = Name::at(hit) else { return };
    let mut value = link::find(&name).and_then(|(link, start)| find_value(&name, link, start));
    if value.is_none() {
        value = find_value_before(&name);
    }
    if let Some(range) = value {
        found.push(Match { range, kind: KIND, rank: 0 });
    }
}

fn find_value(name: &Name<'_>, link: Link, start: usize) -> Option<Range<usize>> {
    let mut value = read_value(name.text, start);
    if TYPES.contains(&value.str) {
        let rest = &name.text[start + value.str.len()..];
        let default =
            rest.trim_start().strip_prefix('=').filter(|rest| !rest.starts_with(['=', '>']))?.trim_start();
        value = read_value(name.text, name.text.len() - default.len());
    }
    if !is_secret(name, link, &value) {
        return None;
    }
    let mut end = value.start + value.str.len();
    if value.str.len() >= MAX_READ - 4 && !value.is_quoted {
        end += value_len(&name.text[end..]);
    }
    Some(value.start..end)
}

/// Returns whether a byte ends a value that is not quoted.
fn ends_value(byte: u8) -> bool {
    static ENDS: [bool; 256] = {
        let mut ends = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            ends[byte] = byte <= 0x20
                || byte >= 0x7f
                || matches!(
                    byte as u8,
                    b'"' | b'\'' | b'`' | b',' | b';' | b')' | b']' | b'}' | b'<' | b'>' | b'|' | b'\\'
                );
            byte += 1;
        }
        ends
    };
    ENDS[usize::from(byte)]
}

/// Returns the length of the value at the start of a text, if it is not quoted.
fn value_len(text: &str) -> usize {
    text.bytes().position(ends_value).unwrap_or(text.len())
}

/// Reads the value at a position: up to the closing quote, or up to a blank or a sign that ends it.
pub(super) fn read_value(text: &str, start: usize) -> Value<'_> {
    const QUOTES: &[(&str, &str)] = &[
        ("\\\"", "\\\""),
        ("**", "**"),
        ("\"", "\""),
        ("'", "'"),
        ("`", "`"),
        ("%22", "%22"),
        ("“", "”"),
        ("‘", "’"),
        ("「", "」"),
        ("『", "』"),
        ("【", "】"),
        ("（", "）"),
    ];
    let rest = prefix(&text[start..], MAX_READ);
    // `b'…'`, `r"…"`, `@"…"`
    let literal =
        rest.strip_prefix(['b', 'r', 'f', 'u', '@', 'L']).filter(|rest| rest.starts_with(['"', '\'']));
    let literal = literal.unwrap_or(rest);
    for (open, close) in QUOTES {
        if let Some(inner) = literal.strip_prefix(open)
            && let Some(len) = inner.find(close)
            && !inner[..len].contains(['\n', '"'])
            && !inner[..len].contains(MARK)
        {
            let start = start + rest.len() - inner.len();
            return Value { str: &inner[..len], start, is_quoted: true };
        }
    }
    let inner = rest.trim_start_matches(['"', '\'', '`', '\\', '“', '「']);
    let mut end = value_len(inner);
    end = inner[..end].find(MARK.trim_end()).unwrap_or(end);
    end = inner[..end].find("%26").unwrap_or(end);
    // The next parameter of a query.
    let next = inner[..end].match_indices('&').find(|(at, _)| {
        let name = inner[at + 1..end].split('=').next().unwrap_or_default();
        at + 1 + name.len() < end
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    });
    end = next.map_or(end, |(at, _)| at);
    let str = inner[..end].trim_end_matches(['.', ':', '?', '/']).trim_end_matches("**");
    Value { str, start: start + rest.len() - inner.len(), is_quoted: false }
}

fn is_secret(name: &Name<'_>, link: Link, value: &Value<'_>) -> bool {
    let str = prefix(value.str, MAX_CHECKED);
    let value = &Value { str, ..*value };
    if str.len() < 4 || is_placeholder(str) || !str.is_ascii() || (!value.is_quoted && is_code(str)) {
        return false;
    }
    if value.is_quoted && str.contains(' ') {
        return name.class == Class::Password && link != Link::Near && is_phrase(str);
    }
    match name.class {
        Class::Password => is_secret_password(name, link, value),
        Class::Key { min } => is_secret_key(name, link, value, min),
        Class::Code => link != Link::Lines && is_secret_code(name, link, str),
    }
}

/// Returns whether quoted words are a password rather than a sentence about one: a word mixes letters and digits.
fn is_phrase(value: &str) -> bool {
    let is_mixed = |word: &str| is_password(word) && has_digit(word) && !is_name_like(word);
    value.len() <= 64 && value.split(' ').count() <= 5 && value.split(' ').any(is_mixed)
}

fn is_secret_password(name: &Name<'_>, link: Link, value: &Value<'_>) -> bool {
    let str = value.str;
    let is_number = str.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        return (6..=20).contains(&str.len())
            && (link == Link::Sign || link == Link::Prose || name.is_han() || name.as_str() == "passcode")
            && !name.as_str().eq_ignore_ascii_case("pass");
    }
    let is_type = str.starts_with(|c: char| c.is_ascii_uppercase())
        && str.trim_end_matches(|c: char| c.is_ascii_digit()).eq_ignore_ascii_case(name.as_str());
    let is_letters = str.bytes().all(|byte| byte.is_ascii_alphabetic());
    let lower = str.to_ascii_lowercase();
    let is_state = STATES.contains(&lower.as_str()) || lower.contains("pass");
    let is_pass = name.as_str().eq_ignore_ascii_case("pass");
    let min = if name.is_han() { 4 } else { 6 };
    match link {
        Link::Sign if is_letters => {
            let is_bare = name.text[name.range.end..].starts_with('=');
            is_bare && !is_state && if name.is_variable() { str.len() >= 6 } else { is_bare_word(value) }
        }
        Link::Prose if is_letters => value.is_quoted && str.len() >= 6 && !is_state,
        Link::Sign => str.len() >= min.min(5) && is_password(str) && (value.is_quoted || !is_type),
        // `optional-but-recommended-for-v2` describes it.
        Link::Prose => {
            str.len() >= min && is_password(str) && !(is_name_like(str) && str.matches('-').count() >= 2)
        }
        Link::Lines => is_strong_password(str) || (str.len() >= 8 && is_random(str)),
        Link::Near if name.is_han() => is_password(str) && has_digit(str) && str.len() >= 6,
        Link::Near if value.is_quoted => is_password(str) && has_digit(str) && str.len() >= 6 && !is_pass,
        Link::Near => is_strong_password(str),
    }
}

/// `PGPASSWORD=correcthorse` contains no digit, but cannot be anything else than a password.
fn is_bare_word(value: &Value<'_>) -> bool {
    !value.is_quoted && value.str.len() >= 8 && value.str.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn is_secret_key(name: &Name<'_>, link: Link, value: &Value<'_>, min: usize) -> bool {
    let str = value.str;
    let is_chosen = name.is_variable() && name.text[name.range.end..].starts_with('=') && {
        let is_plain = str.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_plain && is_password(str)
    };
    // `key: session:0a1b2c3d` names an entry of a store.
    let is_entry = min >= 16
        && str.split_once(':').is_some_and(|(kind, _)| kind.bytes().all(|byte| byte.is_ascii_lowercase()));
    // `the key` alone can be the key of a map.
    let is_mixed = min < 20 || str.bytes().any(|byte| byte.is_ascii_uppercase()) || link::is_in_query(name);
    let min = match link {
        Link::Near if value.is_quoted || name.is_han() => min.max(12),
        Link::Near => min.max(20),
        _ => min,
    };
    str.len() >= min
        && is_mixed
        && !is_entry
        && (is_random(str) || is_strong_password(str) || (is_chosen && min <= 8))
}

fn is_secret_code(name: &Name<'_>, link: Link, value: &str) -> bool {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_near = link == Link::Near && !name.is_han() && !name.as_str().eq_ignore_ascii_case("otp");
    (4..=8).contains(&value.len())
        && is_plain
        && !is_near
        && (is_number || (name.is_han() && has_digit(value) && is_password(value)))
}

/// Finds the value before a name: `hunter2x! is the password`.
fn find_value_before(name: &Name<'_>) -> Option<Range<usize>> {
    const DETERMINERS: &[&str] =
        &["the", "my", "our", "its", "admin", "root", "db", "database", "wifi", "new", "api"];
    let window = last_bytes(name.before(), 80);
    let window_at = name.range.start - window.len();
    let mut before = window.trim_end_matches(' ');
    while let Some(shorter) = DETERMINERS.iter().find_map(|word| before.strip_suffix(word)) {
        before = shorter.strip_suffix(' ')?.trim_end_matches(' ');
    }
    let verbs = [" is", " as", "是", "作为", "当"];
    let before =
        verbs.iter().find_map(|verb| before.strip_suffix(verb))?.trim_end_matches([' ', '`', '"', '\'']);
    let value_at = before.bytes().rposition(ends_value).map_or(0, |end| end + 1);
    let value = &before[value_at..];
    let is_secret = !is_placeholder(value)
        && !is_code(value)
        && (is_strong_password(value) || (value.len() >= 8 && is_random(value)));
    (is_secret && name.class != Class::Code).then(|| window_at + value_at..window_at + before.len())
}

/// Finds quoted passphrases of several words, and words joined by hyphens. Only for this name: a quoted text after
/// "password" may be a sentence about passwords.
pub(super) fn find_passphrase(hit: Hit<'_>, found: &mut Vec<Match>) {
    const SENTENCE: &[&str] =
        &["the", "a", "an", "is", "must", "with", "for", "your", "to", "of", "be", "and", "or"];
    let rest = hit.after().trim_start_matches(['"', '\'', ' ']);
    let rest = rest
        .strip_prefix([':', '='])
        .or_else(|| rest.strip_prefix("is "))
        .or_else(|| rest.strip_prefix("to ").filter(|rest| rest.starts_with(['"', '\'', '`', '“'])))
        .map(str::trim_start);
    let Some(rest) = rest else { return };
    let value = read_value(hit.text, hit.text.len() - rest.len());
    let parts: Vec<&str> = value.str.split([' ', '-']).filter(|part| !part.is_empty()).collect();
    let is_sentence = parts.iter().any(|part| SENTENCE.contains(&part.to_ascii_lowercase().as_str()));
    let is_words = parts.len() >= if value.is_quoted { 3 } else { 4 };
    if is_words
        && !is_sentence
        && has_letter(value.str)
        && !is_placeholder(value.str)
        && !is_reference(value.str)
    {
        let range = value.start..value.start + value.str.len();
        found.push(Match { range, kind: "passphrase", rank: 0 });
    }
}

/// Finds the twelve or more words of a seed phrase.
pub(super) fn find_mnemonic(hit: Hit<'_>, found: &mut Vec<Match>) {
    let after = prefix(hit.after(), 300);
    let skip = |c: char| matches!(c, ' ' | ':' | '：' | '=' | '"' | '\'' | '`' | '\n' | '是' | '为');
    let rest = after.trim_start_matches(skip);
    let rest = rest.strip_prefix("is ").map_or(rest, |rest| rest.trim_start_matches(skip));
    let is_part = |byte: &u8| byte.is_ascii_lowercase() || *byte == b' ';
    let words = rest[..rest.bytes().take_while(is_part).count()].trim_end();
    let count = words.bytes().filter(|byte| *byte == b' ').count() + 1;
    if (12..=24).contains(&count) && words.split(' ').all(|word| (3..=8).contains(&word.len())) {
        let start = hit.end + after.len() - rest.len();
        found.push(Match { range: start..start + words.len(), kind: "passphrase", rank: 0 });
    }
}
