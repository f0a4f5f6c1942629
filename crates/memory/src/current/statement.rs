//! The parts of a fact that tell whether it replaces another one: its subject, the terms of its predicate, its values,
//! and the words that state a change. Recognised by lists of words, without a grammar.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use tanmi_base::lang::is_han;

use super::words::*;
use crate::segment;
use crate::word_list;

/// A fact as data for comparisons.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// All terms except values, each once, sorted by hash.
    pub terms: Vec<Term>,
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
}

impl Term {
    fn new(text: String, is_subject: bool) -> Term {
        let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Term { hash: text.bytes().fold(0xcbf2_9ce4_8422_2325, add), text, is_subject }
    }

    fn identity(&self) -> (u64, &str) {
        (self.hash, &self.text)
    }
}

/// The number of characters of a fact that are looked at.
const MAX_CHARS: usize = 600;

/// Stands for a verb in the text that is split.
const VERB: char = '\u{1}';

impl Statement {
    pub fn new(content: &str, entities: &str) -> Statement {
        let text = normalize(content);
        let listed = Listed::of(&text);
        let mut statement = Statement {
            has_change: listed.marks & CHANGE != 0,
            has_now: listed.marks & PRESENT != 0,
            is_addition: listed.marks & ADDITION != 0,
            is_negative: listed.marks & NEGATION != 0,
            contrasts: listed.contrasts,
            ..Statement::default()
        };
        statement.read(&mark_verbs(&text, &listed.chinese));
        for entity in entities.split('\n').filter(|entity| !entity.is_empty()) {
            let terms = segment::terms(entity).into_iter().filter(|term| is_term(term));
            statement.terms.extend(terms.map(|term| Term::new(term, false)));
        }
        // Of equal terms, one of the subject stays.
        statement
            .terms
            .sort_unstable_by(|a, b| a.identity().cmp(&b.identity()).then(b.is_subject.cmp(&a.is_subject)));
        statement.terms.dedup_by(|later, kept| later.identity() == kept.identity());
        statement.remove_generic_from_subject();
        statement
    }

    fn read(&mut self, text: &str) {
        let (mut is_subject, mut rest) = (true, Vec::new());
        // The English words of the subject and of the rest. Only the parts of an identifier count: the whole would be a
        // further term that is not shared.
        let mut words = [Vec::new(), Vec::new()];
        let mut before = "";
        for token in tokens(text) {
            let is_verb = is_verb(token);
            let marks = if token.starts_with(is_han) { 0 } else { marks_of(token) };
            if is_verb || marks & CHANGE != 0 {
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
                        self.values.insert(token.to_owned());
                    }
                }
            } else if token.starts_with(is_han) {
                let run = if is_value(before) { without_unit(token) } else { token };
                for term in pairs(run) {
                    self.add(term, is_subject);
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
            for term in segment::terms_of_words(words).into_iter().filter(|term| is_term(term)) {
                self.add(term, is_subject);
            }
        }
        self.name = match rest.as_slice() {
            [one] if is_name(one) => Some((*one).to_owned()),
            _ => None,
        };
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

    fn add(&mut self, term: String, is_subject: bool) {
        if is_subject {
            self.head.clone_from(&term);
        }
        self.terms.push(Term::new(term, is_subject));
    }

    /// Returns the terms of the subject.
    pub fn subject(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().filter(|term| term.is_subject)
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

    /// Returns whether one is about staging and the other about production, or similar.
    pub fn contrasts_with(&self, other: &Statement) -> bool {
        self.contrasts.iter().zip(&other.contrasts).any(|(a, b)| *a != 0 && *b != 0 && a & b == 0)
    }
}

/// What a text says by the words of the lists. A fact is compared at every search and at every session start, so each word
/// of the text is looked up once in all lists.
#[derive(Default)]
struct Listed {
    marks: u8,
    contrasts: [u16; CONTRASTS.len()],
    /// The Chinese words of the lists that occur.
    chinese: Vec<&'static str>,
}

const CHANGE: u8 = 1;
const PRESENT: u8 = 2;
const ADDITION: u8 = 4;
const NEGATION: u8 = 8;

/// The lists of words and phrases, with the mark of a text that contains one.
const MARKED: [(&[&str], u8); 8] = [
    (CHANGES, CHANGE),
    (CHANGES_ZH, CHANGE),
    (NOW, PRESENT),
    (NOW_ZH, PRESENT),
    (ADDITIONS, ADDITION),
    (ADDITIONS_ZH, ADDITION),
    (NEGATIONS, NEGATION),
    (NEGATIONS_ZH, NEGATION),
];

/// A word of the lists.
struct ListedWord {
    word: &'static str,
    marks: u8,
    /// Its group of [`CONTRASTS`], and its position there.
    contrast: Option<(usize, usize)>,
}

/// The words of all lists with their keys, sorted by key. A word can occur several times.
static LISTED: LazyLock<Vec<(u64, ListedWord)>> = LazyLock::new(|| {
    let marked = MARKED.iter().flat_map(|(list, marks)| list.iter().map(|word| (*word, *marks, None)));
    let groups = CONTRASTS.iter().enumerate();
    let contrasts = groups.flat_map(|(group, words)| {
        words.iter().enumerate().map(move |(at, word)| (*word, 0, Some((group, at))))
    });
    let verbs = VERBS_ZH.iter().map(|(verb, ..)| (*verb, 0, None));
    let all = marked.chain(contrasts).chain(verbs);
    let mut words: Vec<(u64, ListedWord)> = all
        .map(|(word, marks, contrast)| (word_list::key(word), ListedWord { word, marks, contrast }))
        .collect();
    words.sort_unstable_by_key(|(key, _)| *key);
    words
});

/// Returns the words of the lists with a key of at least this one.
fn listed_from(key: u64) -> impl Iterator<Item = &'static (u64, ListedWord)> {
    LISTED[LISTED.partition_point(|(other, _)| *other < key)..].iter()
}

/// Returns the entries of the lists for a word.
fn listed(word: &str) -> impl Iterator<Item = &'static ListedWord> {
    let key = word_list::key(word);
    let same_key = listed_from(key).take_while(move |(other, _)| *other == key);
    same_key.map(|(_, listed)| listed).filter(move |listed| listed.word == word)
}

/// Returns the marks of an English word.
fn marks_of(word: &str) -> u8 {
    listed(word).fold(0, |marks, listed| marks | listed.marks)
}

impl Listed {
    fn of(text: &str) -> Listed {
        let mut found = Listed::default();
        let words: Vec<&str> =
            text.split(|c: char| !is_word_char(c)).filter(|word| !word.is_empty()).collect();
        for word in &words {
            listed(word).for_each(|one| found.add(one));
        }
        found.add_phrases(&words.join(" "));
        for (at, c) in text.char_indices().filter(|(_, c)| is_han(*c)) {
            let (rest, first) = (&text[at..], &text[at..at + c.len_utf8()]);
            let all = listed_from(word_list::key(first)).map(|(_, one)| one);
            let same_start = all.take_while(|one| one.word.starts_with(c));
            for one in same_start.filter(|one| rest.starts_with(one.word)) {
                found.add(one);
                found.chinese.push(one.word);
            }
        }
        found
    }

    fn add(&mut self, word: &ListedWord) {
        self.marks |= word.marks;
        if let Some((group, at)) = word.contrast {
            self.contrasts[group] |= 1 << at;
        }
    }

    /// Adds the phrases in the words of a text, which are joined by spaces.
    fn add_phrases(&mut self, words: &str) {
        for at in words.bytes().enumerate().filter(|(_, byte)| *byte == b' ').map(|(at, _)| at) {
            let (before, after) = (&words[..at], &words[at + 1..]);
            for (first, rest, marks) in PHRASES.iter() {
                if before.ends_with(first) && after.starts_with(rest) {
                    self.marks |= marks;
                }
            }
        }
    }
}

/// The phrases of the lists: the first word, the others, and the mark.
static PHRASES: LazyLock<Vec<(&'static str, &'static str, u8)>> = LazyLock::new(|| {
    let all = MARKED.iter().flat_map(|(list, marks)| list.iter().map(|phrase| (*phrase, *marks)));
    all.filter_map(|(phrase, marks)| phrase.split_once(' ').map(|(first, rest)| (first, rest, marks)))
        .collect()
});

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
    text
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
/// `occurring` has the words of the lists that occur in the text. A replacement leads to no further ones.
fn mark_verbs(text: &str, occurring: &[&str]) -> String {
    let mut text = text.to_owned();
    if occurring.is_empty() {
        return text;
    }
    let marks = CHANGES_ZH.iter().chain(NOW_ZH).chain(NEGATIONS_ZH);
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
        || has_short_unit(word)
        || NUMBER_WORDS.contains(&word)
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
    marks & (CHANGE | PRESENT | ADDITION) != 0 || ["longer", "longest", "enough"].contains(&word)
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
