//! The built-in glossary: Chinese software words and their English equivalents.
//!
//! `glossary.txt` has one line per Chinese word, sorted by bytes: `缓存=cache,caching,buffer`. It was written for this
//! project. It is searched in place; nothing is built from it when the program starts.

use crate::segment;

const TEXT: &str = include_str!("glossary.txt");

/// Returns the English phrases for a Chinese word in simplified characters.
pub fn english_for(word: &str) -> impl Iterator<Item = &'static str> + use<> {
    find_line(word).into_iter().flat_map(|phrases| phrases.split(','))
}

/// Returns the English part of the line of a word.
fn find_line(word: &str) -> Option<&'static str> {
    let (mut low, mut high) = (0, TEXT.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = TEXT.as_bytes()[..middle].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = TEXT[start..].split('\n').next().unwrap_or_default();
        let (key, phrases) = line.split_once('=')?;
        match key.cmp(word) {
            std::cmp::Ordering::Less => low = start + line.len() + 1,
            std::cmp::Ordering::Greater => high = start,
            std::cmp::Ordering::Equal => return Some(phrases),
        }
    }
    None
}

/// A part of a list of stems that the glossary knows.
#[derive(Debug, PartialEq, Eq)]
pub struct Match {
    pub start: usize,
    pub len: usize,
    pub chinese: &'static str,
}

/// Returns the phrases of the glossary that occur in a list of stems, by one pass over the glossary.
pub fn chinese_in(stems: &[String]) -> Vec<Match> {
    let mut is_first_byte = [false; 256];
    for byte in stems.iter().filter_map(|stem| stem.bytes().next()) {
        is_first_byte[usize::from(byte)] = true;
    }
    let bytes = TEXT.as_bytes();
    let mut found = Vec::new();
    // Look at the first bytes of each phrase only: few phrases have to be stemmed.
    for (at, pair) in bytes.windows(2).enumerate() {
        if !matches!(pair[0], b'=' | b',') || !is_first_byte[usize::from(pair[1])] {
            continue;
        }
        let phrase = TEXT[at + 1..].split([',', '\n']).next().unwrap_or_default();
        let is_near = |stem: &String| stem.as_bytes().get(..2) == phrase.as_bytes().get(..2);
        if !stems.iter().any(is_near) {
            continue;
        }
        let words = segment::stems(phrase);
        let line = TEXT[..at].rfind('\n').map_or(0, |end| end + 1);
        let chinese = TEXT[line..].split('=').next().unwrap_or_default();
        let positions = stems.windows(words.len().max(1)).enumerate();
        let matching = positions.filter(|(_, window)| *window == words);
        found.extend(matching.map(|(start, window)| Match { start, len: window.len(), chinese }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanmi_base::lang::is_han;

    #[test]
    fn glossary_is_sorted_without_duplicates_and_has_1500_pairs() {
        let lines: Vec<(&str, Vec<&str>)> = TEXT
            .lines()
            .map(|line| line.split_once('=').unwrap_or_else(|| panic!("{line}")))
            .map(|(word, phrases)| (word, phrases.split(',').collect()))
            .collect();
        assert!(lines.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted, every word once");
        for (word, phrases) in &lines {
            assert!(word.chars().all(|c| is_han(c) && segment::normalize(c) == c), "{word}");
            let is_phrase = |phrase: &&str| {
                phrase.trim() == *phrase
                    && phrase.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && phrase
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, ' ' | '-' | '/'))
            };
            assert!(phrases.iter().all(is_phrase), "{word}: {phrases:?}");
            let mut unique = phrases.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), phrases.len(), "{word}");
        }
        assert!(lines.iter().map(|(_, phrases)| phrases.len()).sum::<usize>() >= 1_500);
    }

    #[test]
    fn english_for_finds_every_word() {
        for line in TEXT.lines() {
            let (word, phrases) = line.split_once('=').unwrap();
            assert_eq!(english_for(word).collect::<Vec<_>>().join(","), phrases);
        }
        for unknown in ["", "不在里面", "a", "鿿鿿", "缓存的"] {
            assert_eq!(english_for(unknown).count(), 0, "{unknown}");
        }
    }

    #[test]
    fn chinese_in_finds_phrases_by_stem() {
        let found = |text: &str| {
            let all = chinese_in(&segment::stems(text));
            all.into_iter().map(|found| (found.start, found.len, found.chinese)).collect::<Vec<_>>()
        };
        assert!(found("rate limiting of caches").contains(&(0, 2, "限流")));
        assert!(found("the caches").iter().any(|(_, _, chinese)| *chinese == "缓存"));
        assert_eq!(found("zzz"), []);
        assert_eq!(found(""), []);
    }
}
