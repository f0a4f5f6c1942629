//! Lists of words that are known when the program is built, for lookups.

/// A sorted list of words. The first bytes of each word are kept as a number, because numbers are compared
/// with less work than texts: at a session start and in a search, each word of many facts is looked up in
/// several lists.
pub(crate) struct WordList<const N: usize> {
    words: &'static [&'static str],
    keys: [u64; N],
}

impl<const N: usize> WordList<N> {
    /// Returns the list of these words. A list that is not sorted does not compile.
    pub const fn new(words: &'static [&'static str]) -> WordList<N> {
        let mut keys = [0; N];
        let mut at = 0;
        while at < N {
            keys[at] = key(words[at]);
            assert!(at == 0 || keys[at - 1] <= keys[at]);
            at += 1;
        }
        WordList { words, keys }
    }

    pub fn position(&self, word: &str) -> Option<usize> {
        let wanted = key(word);
        let from = self.keys.partition_point(|key| *key < wanted);
        (from..N).take_while(|at| self.keys[*at] == wanted).find(|at| self.words[*at] == word)
    }

    pub fn contains(&self, word: &str) -> bool {
        self.position(word).is_some()
    }
}

/// Returns the first eight bytes of a word as a number. Words have the same order as their numbers, or the same number.
pub(crate) const fn key(word: &str) -> u64 {
    let bytes = word.as_bytes();
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let (mut key, mut at) = (0, 0);
    while at < 8 {
        key = key << 8 | if at < bytes.len() { bytes[at] as u64 } else { 0 };
        at += 1;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_finds_each_word_and_no_other() {
        const WORDS: &[&str] = &["a", "ab", "replaced", "replacement", "replaces", "从", "从库"];
        static LIST: WordList<{ WORDS.len() }> = WordList::new(WORDS);
        for (at, word) in WORDS.iter().enumerate() {
            assert_eq!(LIST.position(word), Some(at), "{word}");
        }
        for other in ["", "\0", "a\0", "abc", "replace", "replacem", "replacements", "zz", "库"] {
            assert!(!LIST.contains(other), "{other}");
        }
    }
}
