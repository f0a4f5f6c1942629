//! Finds what connects a name with its value: a sign, a word, markup, or only a blank.

use super::assignment::Name;
use super::last_bytes;
use super::name::Class;
use crate::text::prefix;

/// The connection between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// `=`, `:`, a table cell, an element, an argument.
    Sign,
    /// `is`, `was`, `是`
    Prose,
    /// A sign, and the value on the next line.
    Lines,
    /// Nothing but a blank or a quote.
    Near,
}

/// The longer of two that start alike comes first.
const SIGNS: &[&str] = &["=>", ":=", "->", "→", "=", ":", "：", "＝", "%3D", "%3d", "%3A", "%3a"];

const NOT_SIGNS: &[&str] = &["==", "=~", "::", "=>>"];

const VERBS: &[&str] = &[
    "is now",
    "is currently",
    "is still",
    "is set to",
    "is",
    "was changed to",
    "was set to",
    "was reset to",
    "was",
    "are",
    "were",
    "will be",
    "should be",
    "has been changed to",
    "changed to",
    "set to",
    "reset to",
    "equals",
    "to",
    "remains",
    "becomes",
];

const PREPOSITIONS: &[&str] = &["for ", "of ", "on ", "in ", "at ", "from ", "to "];

/// Characters between a Chinese name and its value.
const HAN_LINKS: &str =
    "是为爲為改成了设置定換换变更修重调整替配就还叫用的现在已经新旧默认初始统一暂时目前都填写输入即";

/// Returns the link after a name and the position of the value.
pub(super) fn find(name: &Name<'_>) -> Option<(Link, usize)> {
    let after = prefix(&name.text[name.range.end..], 160);
    if let Some(rest) = after.strip_prefix("'s ").or_else(|| after.strip_prefix("’s ")) {
        return Some((Link::Prose, name.range.end + after.len() - rest.len()));
    }
    let closed = after.trim_start_matches(['"', '\'', '`', '\\', '*', ']', '”', '’', '」']);
    let is_quoted = closed.len() < after.len();
    let spaced = closed.trim_start_matches([' ', '\t']);
    let spaced = skip_remark(spaced).unwrap_or(spaced);
    let (link, rest) = find_sign(spaced)
        .or_else(|| find_field(spaced))
        .or_else(|| find_markup(name, closed, is_quoted))
        .or_else(|| find_verb(spaced))
        .or_else(|| find_han(name, closed))
        .or_else(|| find_near(name, after))?;
    Some((link, name.range.end + after.len() - rest.len()))
}

/// Returns whether the name is that of a parameter in the query of an address.
pub(super) fn is_in_query(name: &Name<'_>) -> bool {
    name.before().ends_with(['?', '&'])
}

/// Skips a remark between name and sign: `password (staging): …`.
fn skip_remark(text: &str) -> Option<&str> {
    let inner = text.strip_prefix(['(', '（'])?;
    let end = inner.find([')', '）']).filter(|end| *end <= 40)?;
    let rest = inner[end..].trim_start_matches([')', '）', ' ']);
    find_sign(rest).or_else(|| find_verb(rest)).map(|_| rest)
}

fn find_sign(text: &str) -> Option<(Link, &str)> {
    if NOT_SIGNS.iter().any(|sign| text.starts_with(sign)) {
        return None;
    }
    let rest = SIGNS.iter().find_map(|sign| text.strip_prefix(sign))?;
    let value = rest.trim_start_matches("%20").trim_start_matches([' ', '\t', '*']);
    let value = value.strip_prefix("= ").unwrap_or(value);
    if let Some(next) = value.strip_prefix("\\\n") {
        return Some((Link::Sign, next.trim_start()));
    }
    let block = value.trim_start_matches(['|', '>', '-']);
    match block.trim_start_matches('\r').strip_prefix('\n') {
        Some(next) => Some((Link::Lines, next.trim_start())),
        None => Some((Link::Sign, value)),
    }
}

/// Finds the value in a table cell, an element or an argument.
fn find_markup<'t>(name: &Name<'_>, closed: &'t str, is_quoted: bool) -> Option<(Link, &'t str)> {
    let spaced = closed.trim_start_matches(' ');
    if let Some(cell) = spaced.strip_prefix('|').filter(|rest| rest.starts_with(' ')) {
        return Some((Link::Sign, cell.trim_start_matches(' ')));
    }
    if let Some(cell) = closed.strip_prefix('\t') {
        return Some((Link::Sign, cell));
    }
    if let Some(value) = closed.strip_prefix('>').filter(|_| is_quoted || name.before().ends_with(['<', ':']))
    {
        return Some((Link::Sign, value));
    }
    if let Some(rest) = closed.strip_prefix("</key>") {
        return Some((Link::Sign, rest.trim_start().strip_prefix("<string>")?));
    }
    let argument = if is_quoted { closed.strip_prefix([',', '(']) } else { closed.strip_prefix('(') };
    let argument = argument?.trim_start_matches(' ');
    let is_setter = is_quoted || {
        let lower = name.as_str().to_ascii_lowercase();
        let method = lower.rsplit('.').next().unwrap_or_default();
        ["set", "with", "use", "pass"].iter().any(|start| method.starts_with(start))
    };
    (is_setter && argument.starts_with(['"', '\''])).then_some((Link::Sign, argument))
}

/// Finds the value in a field of its own: `name: DB_PASSWORD`, `value: …`.
fn find_field(text: &str) -> Option<(Link, &str)> {
    let rest = text.trim_start_matches([',', ' ', '\n', '\r', '\t', '{', '"', '\'', '\\']);
    let rest = ["value", "Value", "default"].iter().find_map(|field| rest.strip_prefix(field))?;
    find_sign(rest.trim_start_matches(['"', '\'', '\\', ' ']))
}

fn find_verb(text: &str) -> Option<(Link, &str)> {
    if let Some(len) = verb_len(text) {
        let rest = text[len..].trim_start_matches([':', ' ', '：', '=']);
        // `changed the password to the one …` continues; `password to staging is …` has another verb.
        return Some((Link::Prose, find_late_verb(text).unwrap_or(rest)));
    }
    PREPOSITIONS.iter().find(|word| text.starts_with(**word))?;
    find_late_verb(text).map(|rest| (Link::Prose, rest))
}

/// Returns the length of the verb at the start of a text.
fn verb_len(text: &str) -> Option<usize> {
    let is_verb = |verb: &&&str| text.strip_prefix(**verb).is_some_and(|rest| rest.starts_with([' ', ':']));
    VERBS.iter().find(is_verb).map(|verb| verb.len())
}

/// Finds the verb after the words that say what a secret is for: `password for the staging database is …`.
fn find_late_verb(text: &str) -> Option<&str> {
    PREPOSITIONS.iter().find(|word| text.starts_with(**word))?;
    let phrase = prefix(text, 60);
    let phrase = &phrase[..phrase.find(['\n', ',', ';', '，', '。']).unwrap_or(phrase.len())];
    let at = [" is ", " was ", ": ", " = ", " is: "].iter().filter_map(|verb| phrase.find(verb)).min()?;
    let rest = text[at..].trim_start();
    let len = verb_len(rest).unwrap_or(1);
    Some(rest[len..].trim_start_matches([':', ' ', '=']))
}

fn find_han<'t>(name: &Name<'_>, text: &'t str) -> Option<(Link, &'t str)> {
    let is_link = |c: char| HAN_LINKS.contains(c) || matches!(c, ' ' | '：' | ':' | '=' | '，');
    let rest = text.trim_start_matches(is_link);
    let linked = &text[..text.len() - rest.len()];
    let verbs = ['是', '为', '為', '成', '叫', '用', '：', ':', '=', '即'];
    let has_han = name.is_han() || !linked.is_ascii();
    if has_han && linked.chars().count() <= 10 && linked.contains(verbs) {
        return Some((Link::Prose, rest));
    }
    let is_near = name.is_han() && linked.trim().is_empty();
    is_near.then(|| (Link::Near, rest.trim_start_matches(['(', '（', '|', ' '])))
}

/// Finds a value right after a name: after a flag, in a `.netrc`, in prose.
fn find_near<'t>(name: &Name<'_>, after: &'t str) -> Option<(Link, &'t str)> {
    // `the token, 0a1b…, was leaked`
    let is_key = matches!(name.class, Class::Key { .. });
    let after = if is_key { after.strip_prefix(',').unwrap_or(after) } else { after };
    let rest = after.trim_start_matches(' ');
    if rest.len() == after.len() || rest.starts_with('\n') {
        return None;
    }
    let before = last_bytes(name.before(), 48);
    let words: Vec<&str> = before.split_whitespace().rev().take(3).collect();
    let is_flag = before.ends_with('-');
    let is_instruction = words.first().is_some_and(|word| matches!(*word, "ENV" | "setx" | "set" | "config"))
        || name.as_str() == "requirepass";
    // `login bob password …`
    let is_login = words.get(1).is_some_and(|word| matches!(*word, "login" | "user" | "username"));
    let is_used = name.class == Class::Password
        && words
            .first()
            .is_some_and(|word| ["use", "with", "using"].iter().any(|verb| verb.eq_ignore_ascii_case(word)));
    match () {
        () if is_flag || is_instruction || is_login => Some((Link::Sign, rest)),
        () if is_used => Some((Link::Prose, rest)),
        () => Some((Link::Near, rest)),
    }
}
