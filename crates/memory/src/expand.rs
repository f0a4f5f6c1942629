//! Query expansion between Chinese and English: a word of the query that the collection hardly contains is searched
//! for in the other language too.
//!
//! Translations come from the built-in glossary and from the dictionaries that the user added.

use std::collections::BTreeSet;

use tanmi_index::LexiconIndex;

use crate::{Result, glossary, segment};

/// Maximum number of characters of a Chinese word.
const MAX_CHARS: usize = 6;
/// Maximum number of words of an English phrase.
const MAX_WORDS: usize = 3;
/// Maximum number of translations of one word.
const MAX_TRANSLATIONS: usize = 12;
/// Maximum number of terms that are added to a query. Each costs a look into the index.
const MAX_TERMS: usize = 40;
/// Maximum length of a query that is expanded, in characters or words. A longer text is not a question.
const MAX_QUERY: usize = 64;

/// A term that was added to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedTerm {
    pub term: String,
    pub weight: f32,
    /// Number of memories that contain it.
    pub frequency: u64,
    /// Whether no memory contains the word itself, so that only its translations can match.
    pub is_substitute: bool,
}

/// The collection as far as expansion needs it.
pub struct Vocabulary<'a> {
    pub docs: u64,
    /// Returns the number of memories that contain a term.
    pub frequency: &'a dyn Fn(&str) -> Result<u64>,
}

impl Vocabulary<'_> {
    /// Returns how many memories contain the rarest of the terms, if these are few.
    fn rare_frequency(&self, terms: &[String]) -> Result<Option<u64>> {
        let mut rarest = u64::MAX;
        for term in terms {
            rarest = rarest.min((self.frequency)(term)?);
        }
        Ok(Some(rarest).filter(|rarest| *rarest <= few(self.docs)))
    }
}

/// Returns how many memories are few in a collection.
fn few(docs: u64) -> u64 {
    docs / 50 + 1
}

/// Returns terms of the other language for the words of a query that occur in no or few memories.
pub fn expand(
    text: &str,
    lexicon: Option<&LexiconIndex>,
    vocabulary: &Vocabulary<'_>,
) -> Result<Vec<AddedTerm>> {
    let words = segment::query_words(text);
    let mut added = Vec::new();
    for run in words.han.iter().filter(|run| run.len() <= MAX_QUERY) {
        expand_chinese(run, lexicon, vocabulary, &mut added)?;
    }
    if words.stems.len() <= MAX_QUERY {
        expand_english(&words.stems, lexicon, vocabulary, &mut added)?;
    }
    Ok(added)
}

/// Splits a run of characters into the longest known words, and translates them.
fn expand_chinese(
    run: &[char],
    lexicon: Option<&LexiconIndex>,
    vocabulary: &Vocabulary<'_>,
    added: &mut Vec<AddedTerm>,
) -> Result<()> {
    let mut at = 0;
    while at < run.len() {
        let longest = MAX_CHARS.min(run.len() - at);
        let mut step = 1;
        for len in (1..=longest).rev() {
            let word: String = run[at..at + len].iter().collect();
            let phrases = english_for(&word, lexicon)?;
            if phrases.is_empty() {
                continue;
            }
            if let Some(frequency) = vocabulary.rare_frequency(&segment::cjk_pairs(&word))? {
                add(phrases, frequency == 0, vocabulary, added)?;
            }
            step = len;
            break;
        }
        at += step;
    }
    Ok(())
}

/// Returns the stems of the English phrases for a Chinese word.
fn english_for(word: &str, lexicon: Option<&LexiconIndex>) -> Result<Vec<Vec<String>>> {
    let mut phrases: Vec<Vec<String>> = glossary::english_for(word).map(segment::stems).collect();
    if let Some(lexicon) = lexicon {
        let stored = lexicon.english_for(word, MAX_TRANSLATIONS)?;
        phrases.extend(stored.iter().map(|phrase| phrase.split(' ').map(String::from).collect()));
    }
    phrases.retain(|phrase: &Vec<String>| !phrase.is_empty());
    Ok(phrases)
}

/// Splits a list of stems into the longest known phrases, and translates them.
fn expand_english(
    stems: &[String],
    lexicon: Option<&LexiconIndex>,
    vocabulary: &Vocabulary<'_>,
    added: &mut Vec<AddedTerm>,
) -> Result<()> {
    let known = glossary::chinese_in(stems);
    let mut at = 0;
    while at < stems.len() {
        let longest = MAX_WORDS.min(stems.len() - at);
        let mut step = 1;
        for len in (1..=longest).rev() {
            let phrase = &stems[at..at + len];
            let of_glossary = known.iter().filter(|found| found.start == at && found.len == len);
            let mut words: Vec<String> = of_glossary.map(|found| found.chinese.to_owned()).collect();
            if let Some(lexicon) = lexicon {
                words.extend(lexicon.chinese_for(&phrase.join(" "), MAX_TRANSLATIONS)?);
            }
            if words.is_empty() {
                continue;
            }
            if let Some(frequency) = vocabulary.rare_frequency(phrase)? {
                let pairs = words.iter().map(|word| segment::cjk_pairs(word)).collect();
                add(pairs, frequency == 0, vocabulary, added)?;
            }
            step = len;
            break;
        }
        at += step;
    }
    Ok(())
}

/// Adds the terms of the translations of one word that occur in the collection. They share a weight, so that a word
/// with many meanings does not outweigh the others.
fn add(
    translations: Vec<Vec<String>>,
    is_substitute: bool,
    vocabulary: &Vocabulary<'_>,
    added: &mut Vec<AddedTerm>,
) -> Result<()> {
    let known: BTreeSet<String> = added.iter().map(|one| one.term.clone()).collect();
    let mut found: Vec<AddedTerm> = Vec::new();
    let mut matching = 0;
    for terms in translations.iter().take(MAX_TRANSLATIONS) {
        let mut has_match = false;
        for term in terms {
            let is_known = known.contains(term) || found.iter().any(|one| one.term == *term);
            if is_known || added.len() + found.len() >= MAX_TERMS {
                continue;
            }
            let frequency = (vocabulary.frequency)(term)?;
            if frequency > 0 {
                has_match = true;
                let weight = 1.0 / (terms.len() as f32).sqrt();
                found.push(AddedTerm { term: term.clone(), weight, frequency, is_substitute });
            }
        }
        matching += usize::from(has_match);
    }
    let share = (matching.max(1) as f32).sqrt();
    added.extend(found.into_iter().map(|one| AddedTerm { weight: one.weight / share, ..one }));
    Ok(())
}
