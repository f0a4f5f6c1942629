//! Words of this program in an error that another process sent.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// A word of this program: the name of a parameter, a unit.
pub type Word = &'static str;
pub type Words = &'static [&'static str];

/// The most words that are kept. This program has fewer; a server that sends more does not fill the memory.
const MAX_WORDS: usize = 1000;
/// The most lists of words that are kept.
const MAX_LISTS: usize = 100;
/// The longest word that is kept.
const MAX_LENGTH: usize = 100;

static KNOWN: Mutex<BTreeSet<Word>> = Mutex::new(BTreeSet::new());
static LISTS: Mutex<BTreeSet<Words>> = Mutex::new(BTreeSet::new());

/// Returns a word as one of this program.
pub fn keep(word: &str) -> Word {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(word) {
        return known;
    }
    if known.len() >= MAX_WORDS || word.len() > MAX_LENGTH {
        return "value";
    }
    let word: Word = Box::leak(word.to_owned().into_boxed_str());
    known.insert(word);
    word
}

pub fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
    Ok(keep(&String::deserialize(deserializer)?))
}

pub fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
    let list: Vec<Word> =
        Vec::<String>::deserialize(deserializer)?.iter().take(MAX_WORDS).map(|word| keep(word)).collect();
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lists.get(list.as_slice()) {
        return Ok(known);
    }
    if lists.len() >= MAX_LISTS {
        return Ok(&[]);
    }
    let list: Words = Vec::leak(list);
    lists.insert(list);
    Ok(list)
}
