//! The parts of a fact that tell whether it replaces another one: its subject, the terms of its predicate, its values,
//! and the words that state a change. Recognised by lists of words, without a grammar.

use std::collections::BTreeSet;

use tanmi_base::lang::is_han;

use super::words::*;
use crate::segment;
use listed::{ADDITION, AMOUNT_CHANGE, CHANGE, Listed, NEGATION, OPEN, PAST, PRESENT, STATE, marks_of};

mod ended;
mod listed;
mod numbers;

/// A fact as data for comparisons.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// All terms except values, each once, sorted by hash.
    pub terms: Vec<Term>,
    /// Numbers that state an amount, a time or a version.
    pub values: BTreeSet<String>,
    /// Those in the first clause.
    pub main_values: BTreeSet<String>,
    /// The text after the first verb, if it is a single name.
    pub name: Option<String>,
    /// Words such as "built with" stand before the name. They have one value.
    pub is_linked: bool,
    /// The last term of the subject.
    pub head: String,
    pub has_change: bool,
    pub has_now: bool,
    pub is_addition: bool,
    pub is_negative: bool,
    /// It changes an amount: "raised".
    pub has_amount_change: bool,
    /// It asks or considers something, or tells how something was before.
    pub is_open_or_past: bool,
    /// It states what something is or uses, not what it does: such a fact ends with a change of its subject.
    pub has_state: bool,
    /// What no longer holds, if the fact says so: "no longer …", "instead of …", 不再….
    pub ended: Option<Box<Statement>>,
    /// Verbs of the lists that say what something does. They are no terms, because most sentences have one of them.
    pub verbs: BTreeSet<String>,
    /// For each group of [`CONTRASTS`], the words of it that occur, as a bit set.
    contrasts: [u16; CONTRASTS.len()],
}

/// A term of a fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// Compared before the text, because that takes less work.
    hash: u64,
    pub text: String,
    /// Whether it is part of the subject: it occurs before the first verb, and not every subject may have it.
    pub is_subject: bool,
    /// Whether it is in the first clause. Later ones often give the reason.
    pub is_main: bool,
}

impl Term {
    fn new(text: String, is_subject: bool, is_main: bool) -> Term {
        let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Term { hash: text.bytes().fold(0xcbf2_9ce4_8422_2325, add), text, is_subject, is_main }
    }

    fn identity(&self) -> (u64, &str) {
        (self.hash, &self.text)
    }
}

/// The number of characters of a fact that are looked at.
const MAX_CHARS: usize = 600;

/// A first clause with fewer terms says too little by itself.
const MIN_MAIN: usize = 3;

/// Stands for a verb in the text that is split.
const VERB: char = '\u{1}';

impl Statement {
    pub fn new(content: &str, entities: &str) -> Statement {
        let text = normalize(content);
        let listed = Listed::of(&text);
        let mut statement = Statement {
            has_change: listed.has(CHANGE) || listed.has(AMOUNT_CHANGE),
            has_now: listed.has(PRESENT),
            has_amount_change: listed.has(AMOUNT_CHANGE),
            is_open_or_past: listed.has(OPEN)
                || text.contains('?')
                || (listed.has(PAST) && !listed.has(CHANGE | PRESENT)),
            has_state: listed.has(STATE),
            is_addition: listed.has(ADDITION),
            is_negative: listed.has(NEGATION),
            contrasts: listed.contrasts,
            ..Statement::default()
        };
        let marked = mark_verbs(&text, &listed.chinese);
        let (main, rest) = marked.split_at(main_clause(&marked));
        statement.read(main, true);
        statement.read(rest, false);
        if listed.has(CHANGE | AMOUNT_CHANGE | NEGATION) {
            statement.ended = ended::clauses(&text).map(Box::new);
        }
        for entity in entities.split('\n').filter(|entity| !entity.is_empty()) {
            let terms = segment::terms(entity).into_iter().filter(|term| is_term(term));
            statement.terms.extend(terms.map(|term| Term::new(term, false, true)));
        }
        statement.sort_terms();
        statement.remove_generic_from_subject();
        statement
    }

    /// Sorts the terms and removes repetitions. Of equal terms, one of the subject stays, or else one of the
    /// first clause.
    fn sort_terms(&mut self) {
        let rank = |term: &Term| (!term.is_subject, !term.is_main);
        self.terms
            .sort_unstable_by(|a, b| a.identity().cmp(&b.identity()).then_with(|| rank(a).cmp(&rank(b))));
        self.terms.dedup_by(|later, kept| later.identity() == kept.identity());
    }

    /// Adds the terms and values of the first clause, or of the rest of a text.
    fn read(&mut self, text: &str, is_main: bool) {
        let (mut is_subject, mut rest) = (is_main, Vec::new());
        // The English words of the subject and of the rest. Only the parts of an identifier count: the whole would be a
        // further term that is not shared.
        let mut words = [Vec::new(), Vec::new()];
        let mut before = "";
        for token in tokens(text) {
            let is_verb = is_verb(token);
            let marks = if token.starts_with(is_han) { 0 } else { marks_of(token) };
            if is_verb || marks & (CHANGE | AMOUNT_CHANGE) != 0 {
                is_subject = false;
            }
            let is_number = is_value(token);
            if is_number {
                // In Chinese the value often stands before any verb; in English a number in the subject is a name.
                let is_name = (is_subject && !before.starts_with(is_han))
                    || NUMBERED.contains(&before)
                    || NUMBERED_ZH.iter().any(|word| before.ends_with(word));
                match is_name {
                    true => self.add(format!("#{token}"), is_subject, is_main),
                    false => {
                        is_subject &= before.is_empty();
                        self.values.insert(token.to_owned());
                        if is_main {
                            self.main_values.insert(token.to_owned());
                        }
                    }
                }
            } else if token.starts_with(is_han) {
                let run = if is_value(before) { without_unit(token) } else { token };
                for term in pairs(run) {
                    self.add(term, is_subject, is_main);
                }
            } else if !is_marker(token, marks) && !is_unit_after(before, token) {
                let words = &mut words[usize::from(!is_subject)];
                match token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                    true => words.push(token),
                    false => words.extend(token.split(|c: char| !c.is_alphanumeric())),
                }
            }
            if !is_subject && !is_number && !is_verb && token.contains(char::is_alphanumeric) {
                rest.push(token);
            }
            before = token;
        }
        for (words, is_subject) in words.iter().zip([true, false]) {
            for term in segment::terms_of_words(words) {
                if is_term(&term) {
                    self.add(term, is_subject, is_main);
                } else if VERBS.contains(&term) && !WEAK_VERBS.contains(&term.as_str()) {
                    self.verbs.insert(term);
                }
            }
        }
        if !is_main {
            return;
        }
        let is_link = |word: &&str| LINKS.contains(word);
        self.is_linked = rest
            .iter()
            .copied()
            .take_while(|word| is_link(word))
            .any(|word| word.ends_with("ed") || word.ends_with("t") || word.ends_with("n"));
        let is_filler = |word: &&str| is_link(word) || marks_of(word) & PRESENT != 0;
        let mut named: Vec<&str> = rest.into_iter().skip_while(is_link).collect();
        while named.last().is_some_and(is_filler) {
            named.pop();
        }
        self.name = match named.as_slice() {
            [one] if is_name(one) || self.can_be_name_zh(one) => Some((*one).to_owned()),
            _ => None,
        };
    }

    /// Returns whether a Chinese word after the verb names the value of the subject: 默认语言是英文.
    fn can_be_name_zh(&self, word: &str) -> bool {
        const MAX_NAME: usize = 4;
        word.starts_with(is_han)
            && word.chars().count() <= MAX_NAME
            && SINGLE_VALUED_ZH.contains(&self.head.as_str())
    }

    /// Removes the terms that every subject may have, in the order of their list; one term stays.
    fn remove_generic_from_subject(&mut self) {
        let mut left = self.subject().count();
        let place = |term: &Term| GENERIC.iter().position(|word| *word == term.text);
        let terms = self.terms.iter_mut().filter(|term| term.is_subject);
        let mut generic: Vec<(usize, &mut Term)> =
            terms.filter_map(|term| Some((place(term)?, term))).collect();
        generic.sort_unstable_by_key(|(place, _)| *place);
        for (_, term) in generic {
            term.is_subject = left == 1;
            left -= usize::from(left > 1);
        }
    }

    fn add(&mut self, term: String, is_subject: bool, is_main: bool) {
        if is_subject {
            self.head.clone_from(&term);
        }
        self.terms.push(Term::new(term, is_subject, is_main));
    }

    /// Returns the terms of the subject.
    pub fn subject(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().filter(|term| term.is_subject)
    }

    /// Returns whether a term is one of the subject.
    pub fn is_subject(&self, term: &Term) -> bool {
        self.subject().any(|own| own.identity() == term.identity())
    }

    /// Returns whether both have the same subject.
    pub fn has_same_subject(&self, other: &Statement) -> bool {
        self.subject().map(Term::identity).eq(other.subject().map(Term::identity))
    }

    /// Returns the terms of this statement that the other one has, too.
    pub fn shared<'a>(&'a self, other: &'a Statement) -> impl Iterator<Item = &'a Term> {
        let mut rest = other.terms.as_slice();
        self.terms.iter().filter(move |term| {
            while let Some((first, after)) = rest.split_first()
                && first.identity() < term.identity()
            {
                rest = after;
            }
            rest.first().is_some_and(|first| first.identity() == term.identity())
        })
    }

    /// Returns the share of its terms that the other statement has, in tenths.
    pub fn tenths_shared(&self, other: &Statement) -> usize {
        self.shared(other).count() * 10 / self.terms.len().max(1)
    }

    /// Same as [`Statement::tenths_shared`], of the terms of the first clause, if it is long enough to say something.
    pub fn tenths_shared_of_main(&self, other: &Statement) -> usize {
        let of_main = |term: &&Term| term.is_main;
        match self.terms.iter().filter(of_main).count() {
            0..MIN_MAIN => 0,
            all => self.shared(other).filter(of_main).count() * 10 / all,
        }
    }

    /// Returns whether this statement says what ended: the values and verbs, and at least half of the terms.
    pub fn states_most_of(&self, ended: &Statement) -> bool {
        let shared = ended.shared(self).count();
        self.has_values_and_verbs_of(ended) && shared * 2 >= ended.terms.len()
    }

    /// Returns whether this statement says all of what ended, and what ended is something definite.
    pub fn states_all_of(&self, ended: &Statement) -> bool {
        let is_definite = !ended.terms.is_empty() || !ended.values.is_empty();
        is_definite && self.has_values_and_verbs_of(ended) && ended.shared(self).count() == ended.terms.len()
    }

    fn has_values_and_verbs_of(&self, ended: &Statement) -> bool {
        ended.values.is_subset(&self.values) && ended.verbs.is_subset(&self.verbs)
    }

    /// Returns whether one is about staging and the other about production, or similar.
    pub fn contrasts_with(&self, other: &Statement) -> bool {
        self.contrasts.iter().zip(&other.contrasts).any(|(a, b)| *a != 0 && *b != 0 && a & b == 0)
    }
}

/// Returns the start of a text in lower case, with fullwidth letters and signs as the usual ones.
fn normalize(content: &str) -> String {
    let mut text = String::with_capacity(content.len().min(4 * MAX_CHARS));
    for c in content.chars().take(MAX_CHARS) {
        match c {
            _ if c.is_ascii() => text.push(c.to_ascii_lowercase()),
            _ if is_han(c) => text.push(c),
            _ => text.extend(c.to_lowercase().map(halfwidth)),
        }
    }
    let text = ["我们", "用户说", "用户要求", "用户希望"]
        .iter()
        .find_map(|who| text.strip_prefix(who))
        .map_or(text.clone(), str::to_owned);
    numbers::with_digits(text)
}

/// Returns the end of the first clause.
fn main_clause(text: &str) -> usize {
    let sign = text.find([',', ';', '，', '；', '。', '：']);
    let word = [". ", " because ", " since ", " so that "].iter().filter_map(|word| text.find(word)).min();
    sign.into_iter().chain(word).min().unwrap_or(text.len())
}

fn halfwidth(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '’' => '\'',
        _ => c,
    }
}

pub(super) fn is_word_char(c: char) -> bool {
    (c.is_alphanumeric() && !is_han(c)) || c == '\''
}

/// Replaces the verbs and the words of change in Chinese text by [`VERB`]. A verb at the start is part of the subject.
/// `occurring` has the words of the lists that occur in the text. A replacement leads to no further ones.
fn mark_verbs(text: &str, occurring: &[&str]) -> String {
    let mut text = text.to_owned();
    if occurring.is_empty() {
        return text;
    }
    let marks = CHANGES_ZH.iter().chain(AMOUNT_CHANGES_ZH).chain(NOW_ZH).chain(NEGATIONS_ZH);
    for word in marks.filter(|word| occurring.contains(word)) {
        text = text.replace(word, &VERB.to_string());
    }
    for (verb, not_after, not_before) in VERBS_ZH.iter().filter(|(verb, ..)| occurring.contains(verb)) {
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
fn tokens(text: &str) -> Vec<&str> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Word,
        Chinese,
        Verb,
        Other,
    }
    let kind_at = |at: usize, c: char| match c {
        _ if c.is_ascii_alphanumeric() => Kind::Word,
        VERB => Kind::Verb,
        // Particles carry no meaning.
        _ if is_han(c) && segment::is_stop_char(c) => Kind::Other,
        _ if is_han(c) => Kind::Chinese,
        '.' | '-' | '_' | '/' | ':' | '\'' | '@' => {
            let is_inside = text[at + 1..].chars().next().is_some_and(is_word_char)
                && text[..at].chars().next_back().is_some_and(is_word_char);
            if is_inside { Kind::Word } else { Kind::Other }
        }
        _ if c.is_alphanumeric() => Kind::Word,
        _ => Kind::Other,
    };
    let mut out: Vec<&str> = Vec::new();
    let (mut start, mut last) = (0, Kind::Other);
    let ends = text.char_indices().map(|(at, c)| (at, kind_at(at, c))).chain([(text.len(), Kind::Other)]);
    for (at, kind) in ends {
        if kind != last {
            if last != Kind::Other {
                out.push(&text[start..at]);
            }
            (start, last) = (at, kind);
        }
    }
    out
}

/// Returns whether a word is a number, a time or a version: `16`, `3.12`, `02:00`, `v2`.
fn is_value(word: &str) -> bool {
    let word = word.strip_prefix('v').unwrap_or(word);
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte))
        || is_scientific(word)
        || has_short_unit(word)
        || NUMBER_WORDS.contains(&word)
}

/// Returns whether a word is a number such as `3e-4`.
fn is_scientific(word: &str) -> bool {
    let is_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    word.split_once("e-").is_some_and(|(number, exponent)| is_digits(number) && is_digits(exponent))
}

/// Returns whether a number has its unit attached: `30s`, `10mb`.
fn has_short_unit(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < word.len() && UNITS.contains(unit)
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
    is_value(before) && UNITS.contains(token)
}

fn is_verb(token: &str) -> bool {
    token.starts_with(VERB) || VERBS.contains(token)
}

/// Returns whether a word only states a change or the present.
fn is_marker(word: &str, marks: u8) -> bool {
    marks & (CHANGE | AMOUNT_CHANGE | PRESENT | ADDITION) != 0
        || ["longer", "longest", "enough"].contains(&word)
}

fn is_term(term: &str) -> bool {
    let is_single = term.starts_with(is_han) && term.chars().nth(1).is_none();
    !is_single && !segment::is_stop(term) && !VERBS.contains(term)
}

/// Returns whether a word can be the name of something, not a property such as `slow` or `protected`.
fn is_name(word: &str) -> bool {
    !word.starts_with(is_han)
        && !["ed", "ing", "able", "ly", "ous", "ive", "ful", "slow", "fast"]
            .iter()
            .any(|end| word.ends_with(end))
}
