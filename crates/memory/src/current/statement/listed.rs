//! Looks the words of a text up in the lists of [`crate::current::words`].

use std::sync::LazyLock;

use tanmi_base::lang::is_han;

use super::is_word_char;
use crate::current::words::*;
use crate::word_list;

/// What a text says by the words of the lists. A fact is compared at every search and at every session start,
/// so each word of the text is looked up once in all lists.
#[derive(Default)]
pub struct Listed {
    pub marks: u8,
    pub contrasts: [u16; CONTRASTS.len()],
    /// The Chinese words of the lists that occur.
    pub chinese: Vec<&'static str>,
}

pub const CHANGE: u8 = 1;
pub const PRESENT: u8 = 2;
pub const ADDITION: u8 = 4;
pub const NEGATION: u8 = 8;
pub const AMOUNT_CHANGE: u8 = 16;
pub const OPEN: u8 = 32;
pub const PAST: u8 = 64;
pub const STATE: u8 = 128;

/// The lists of words and phrases, with the mark of a text that contains one.
const MARKED: [(&[&str], u8); 16] = [
    (CHANGES, CHANGE),
    (CHANGES_ZH, CHANGE),
    (NOW, PRESENT),
    (NOW_ZH, PRESENT),
    (ADDITIONS, ADDITION),
    (ADDITIONS_ZH, ADDITION),
    (NEGATIONS, NEGATION),
    (NEGATIONS_ZH, NEGATION),
    (AMOUNT_CHANGES, AMOUNT_CHANGE),
    (AMOUNT_CHANGES_ZH, AMOUNT_CHANGE),
    (OPEN_WORDS, OPEN),
    (OPEN_WORDS_ZH, OPEN),
    (PAST_WORDS, PAST),
    (PAST_WORDS_ZH, PAST),
    (STATES, STATE),
    (STATES_ZH, STATE),
];

/// A word or a phrase of the lists.
struct ListedWord {
    word: &'static str,
    /// The words that follow in a phrase.
    rest: &'static str,
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
    let entry = |(phrase, marks, contrast): (&'static str, u8, _)| {
        let (word, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
        (word_list::key(word), ListedWord { word, rest, marks, contrast })
    };
    let mut words: Vec<(u64, ListedWord)> = all.map(entry).collect();
    words.sort_unstable_by_key(|(key, _)| *key);
    words
});

/// Returns the words of the lists with a key of at least this one.
fn listed_from(key: u64) -> impl Iterator<Item = &'static (u64, ListedWord)> {
    LISTED[LISTED.partition_point(|(other, _)| *other < key)..].iter()
}

/// Returns the entries of the lists for a word, and for phrases that begin with it.
fn listed(word: &str) -> impl Iterator<Item = &'static ListedWord> {
    let key = word_list::key(word);
    let same_key = listed_from(key).take_while(move |(other, _)| *other == key);
    same_key.map(|(_, listed)| listed).filter(move |listed| listed.word == word)
}

/// Returns the marks of an English word.
pub fn marks_of(word: &str) -> u8 {
    listed(word).filter(|listed| listed.rest.is_empty()).fold(0, |marks, listed| marks | listed.marks)
}

impl Listed {
    pub fn of(text: &str) -> Listed {
        let mut found = Listed::default();
        let words: Vec<&str> =
            text.split(|c: char| !is_word_char(c)).filter(|word| !word.is_empty()).collect();
        for (at, word) in words.iter().enumerate() {
            listed(word).filter(|one| one.continues_in(&words[at + 1..])).for_each(|one| found.add(one));
        }
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

    /// Returns whether one of these marks is set.
    pub fn has(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }

    fn add(&mut self, word: &ListedWord) {
        self.marks |= word.marks;
        if let Some((group, at)) = word.contrast {
            self.contrasts[group] |= 1 << at;
        }
    }
}

impl ListedWord {
    /// Returns whether these words, which follow the first word of a phrase in a text, begin with the rest of it.
    fn continues_in(&self, after: &[&str]) -> bool {
        let mut after = after.iter();
        self.rest.is_empty() || self.rest.split(' ').all(|word| after.next() == Some(&word))
    }
}
