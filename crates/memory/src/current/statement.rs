//! The parts of a fact that tell whether it replaces another one: its subject, the terms of its predicate, its values,
//! and the words that state a change. Recognised by lists of words, without a grammar.

use std::collections::BTreeSet;

use tanmi_base::lang::is_han;

use super::words::*;
use crate::segment;

/// A fact as data for comparisons.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// The terms before the first verb, without those that every subject may have.
    pub subject: BTreeSet<String>,
    /// All terms except values.
    pub terms: BTreeSet<String>,
    /// Numbers that state an amount, a time or a version.
    pub values: BTreeSet<String>,
    /// The text after the first verb, if it is a single name.
    pub name: Option<String>,
    /// The last term of the subject.
    pub head: String,
    pub has_change: bool,
    pub has_now: bool,
    pub is_addition: bool,
    pub is_negative: bool,
    /// For each group of [`CONTRASTS`], the words of it that occur.
    contrasts: Vec<BTreeSet<&'static str>>,
}

/// The number of characters of a fact that are looked at.
const MAX_CHARS: usize = 600;

/// Stands for a verb in the text that is split.
const VERB: char = '\u{1}';

impl Statement {
    pub fn new(content: &str, entities: &str) -> Statement {
        let text: String =
            content.chars().take(MAX_CHARS).flat_map(char::to_lowercase).map(halfwidth).collect();
        let words: Vec<&str> =
            text.split(|c: char| !is_word_char(c)).filter(|word| !word.is_empty()).collect();
        let joined = words.join(" ");
        let has = |list: &[&str]| {
            words.iter().any(|word| list.contains(word))
                || list.iter().any(|phrase| phrase.contains(' ') && joined.contains(phrase))
        };
        let is_chinese = text.contains(is_han);
        let has_zh = |list: &[&str]| is_chinese && list.iter().any(|word| text.contains(word));
        let occurs = |word: &str| {
            if word.is_ascii() { words.contains(&word) } else { is_chinese && text.contains(word) }
        };
        let mut statement = Statement {
            has_change: has(CHANGES) || has_zh(CHANGES_ZH),
            has_now: has(NOW) || has_zh(NOW_ZH),
            is_addition: has(ADDITIONS) || has_zh(ADDITIONS_ZH),
            is_negative: has(NEGATIONS) || has_zh(NEGATIONS_ZH),
            contrasts: CONTRASTS
                .iter()
                .map(|group| group.iter().copied().filter(|word| occurs(word)).collect())
                .collect(),
            ..Statement::default()
        };
        statement.read(&mark_verbs(&text));
        for entity in entities.split('\n') {
            let terms = segment::terms(entity).into_iter().filter(|term| is_term(term));
            statement.terms.extend(terms);
        }
        statement
    }

    fn read(&mut self, text: &str) {
        let (mut is_subject, mut rest) = (true, Vec::new());
        // The English words of the subject and of the rest. Only the parts of an identifier count: the whole would be a
        // further term that is not shared.
        let mut words = [String::new(), String::new()];
        let mut before = "";
        let tokens = tokens(text);
        for token in &tokens {
            let is_verb = is_verb(token);
            if is_verb || CHANGES.contains(&token.as_str()) {
                is_subject = false;
            }
            let is_number = is_value(token);
            if is_number {
                // In Chinese the value often stands before any verb; in English a number in the subject is a name.
                let is_name = (is_subject && !before.starts_with(is_han))
                    || NUMBERED.contains(&before)
                    || NUMBERED_ZH.iter().any(|word| before.ends_with(word));
                match is_name {
                    true => self.add(format!("#{token}"), is_subject),
                    false => {
                        is_subject &= before.is_empty();
                        self.values.insert(token.clone());
                    }
                }
            } else if token.starts_with(is_han) {
                let run = if is_value(before) { without_unit(token) } else { token };
                for term in pairs(run) {
                    self.add(term, is_subject);
                }
            } else if !is_marker(token) && !is_unit_after(before, token) {
                let words = &mut words[usize::from(!is_subject)];
                for part in token.split(|c: char| !c.is_alphanumeric()) {
                    words.push(' ');
                    words.push_str(part);
                }
            }
            if !is_subject && !is_number && !is_verb && token.contains(char::is_alphanumeric) {
                rest.push(token);
            }
            before = token;
        }
        for (words, is_subject) in words.iter().zip([true, false]) {
            for term in segment::terms(words).into_iter().filter(|term| is_term(term)) {
                self.add(term, is_subject);
            }
        }
        self.name = match rest.as_slice() {
            [one] if is_name(one) => Some((*one).clone()),
            _ => None,
        };
        for word in GENERIC {
            if self.subject.len() > 1 {
                self.subject.remove(*word);
            }
        }
    }

    fn add(&mut self, term: String, is_subject: bool) {
        if is_subject {
            self.head.clone_from(&term);
            self.subject.insert(term.clone());
        }
        self.terms.insert(term);
    }

    /// Returns whether one is about staging and the other about production, or similar.
    pub fn contrasts_with(&self, other: &Statement) -> bool {
        self.contrasts
            .iter()
            .zip(&other.contrasts)
            .any(|(a, b)| !a.is_empty() && !b.is_empty() && a.is_disjoint(b))
    }
}

fn halfwidth(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '’' => '\'',
        _ => c,
    }
}

fn is_word_char(c: char) -> bool {
    (c.is_alphanumeric() && !is_han(c)) || c == '\''
}

/// Replaces the verbs and the words of change in Chinese text by [`VERB`]. A verb at the start is part of the subject.
fn mark_verbs(text: &str) -> String {
    if !text.chars().any(is_han) {
        return text.to_owned();
    }
    let mut text = text.to_owned();
    let marks = CHANGES_ZH.iter().chain(NOW_ZH).chain(NEGATIONS_ZH);
    for word in marks {
        text = text.replace(word, &VERB.to_string());
    }
    for (verb, not_after, not_before) in VERBS_ZH {
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(verb) {
            let (head, tail) = (&rest[..at], &rest[at + verb.len()..]);
            let last = head.chars().next_back().or_else(|| out.chars().next_back());
            let is_part = last.is_none_or(|c| not_after.contains(c))
                || tail.chars().next().is_some_and(|c| not_before.contains(c));
            out.push_str(head);
            if is_part {
                out.push_str(verb)
            } else {
                out.push(VERB)
            }
            rest = tail;
        }
        out.push_str(rest);
        text = out;
    }
    text
}

/// Splits a text into words, runs of Chinese characters, and [`VERB`].
fn tokens(text: &str) -> Vec<String> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Word,
        Chinese,
        Verb,
        Other,
    }
    let chars: Vec<char> = text.chars().collect();
    let kind_at = |at: usize| match chars[at] {
        VERB => Kind::Verb,
        // Particles carry no meaning.
        c if is_han(c) && segment::is_stop(&c.to_string()) => Kind::Other,
        c if is_han(c) => Kind::Chinese,
        c if c.is_alphanumeric() => Kind::Word,
        '.' | '-' | '_' | '/' | ':' | '\'' | '@' => {
            let is_inside = at > 0
                && chars.get(at + 1).is_some_and(|next| is_word_char(*next))
                && is_word_char(chars[at - 1]);
            if is_inside { Kind::Word } else { Kind::Other }
        }
        _ => Kind::Other,
    };
    let mut out: Vec<String> = Vec::new();
    let mut last = Kind::Other;
    for (at, c) in chars.iter().enumerate() {
        let kind = kind_at(at);
        match (kind, out.last_mut()) {
            (Kind::Other, _) => {}
            (kind, Some(open)) if kind == last => open.push(*c),
            _ => out.push(c.to_string()),
        }
        last = kind;
    }
    out
}

/// Returns whether a word is a number, a time or a version: `16`, `3.12`, `02:00`, `v2`.
fn is_value(word: &str) -> bool {
    let word = word.strip_prefix('v').unwrap_or(word);
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte))
        || has_short_unit(word)
        || NUMBER_WORDS.contains(&word)
}

/// Returns whether a number has its unit attached: `30s`, `10mb`.
fn has_short_unit(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < word.len() && UNITS.binary_search(&unit).is_ok()
}

const NUMBER_WORDS: &[&str] =
    &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty"];

fn without_unit(run: &str) -> &str {
    UNITS_ZH.iter().find_map(|unit| run.strip_prefix(unit)).unwrap_or(run)
}

/// Returns the pairs of characters of a Chinese run. A single character says too little.
fn pairs(run: &str) -> Vec<String> {
    let chars: Vec<char> = run.chars().collect();
    chars.windows(2).map(|pair| pair.iter().collect()).collect()
}

fn is_unit_after(before: &str, token: &str) -> bool {
    is_value(before) && UNITS.binary_search(&token).is_ok()
}

fn is_verb(token: &str) -> bool {
    token.starts_with(VERB) || VERBS.binary_search(&token).is_ok()
}

/// Returns whether a word only states a change or the present.
fn is_marker(word: &str) -> bool {
    [CHANGES, NOW, ADDITIONS].iter().any(|list| list.contains(&word))
        || ["longer", "longest", "enough"].contains(&word)
}

fn is_term(term: &str) -> bool {
    let is_single = term.starts_with(is_han) && term.chars().nth(1).is_none();
    !is_single && !segment::is_stop(term) && VERBS.binary_search(&term).is_err()
}

/// Returns whether a word can be the name of something, not a property such as `slow` or `protected`.
fn is_name(word: &str) -> bool {
    !word.starts_with(is_han)
        && !["ed", "ing", "able", "ly", "ous", "ive", "ful", "slow", "fast"]
            .iter()
            .any(|end| word.ends_with(end))
}
