//! Splits text into terms, in the same way for memories and for queries.
//!
//! Words are lower-cased and stemmed. Identifiers (`user-auth`, `app.config.ts`, `parseJson`, `C++`) count in
//! full and in parts. Chinese, Japanese and Korean text counts as single characters and as pairs, which needs no
//! dictionary; traditional characters count as simplified ones.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use tanmi_base::lang::is_han;

use crate::variants;

mod words;

use words::{IRREGULAR, IRREGULAR_FORMS, QUESTION_PHRASES, STOP_CHARS, STOP_WORDS};

/// Returns the terms of a text in their order, with repetitions.
pub fn terms(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = Vec::new();
    for run in split_runs(text) {
        match run {
            Run::Cjk(chars) => add_cjk_terms(&chars, &mut out),
            Run::Word(word) => add_word_terms(&word, &stemmer, &mut out),
        }
    }
    out
}

/// Returns the terms of words that consist of letters and digits, as [`terms`] of the words joined by spaces.
pub fn terms_of_words(words: &[&str]) -> Vec<String> {
    if !words.iter().all(|word| word.is_ascii()) {
        return terms(&words.join(" "));
    }
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = Vec::with_capacity(words.len());
    words.iter().filter(|word| !word.is_empty()).for_each(|word| add_word_terms(word, &stemmer, &mut out));
    out
}

/// Returns the distinct terms of a query without the words that occur in every question, unless no other word is
/// left.
pub fn query_terms(text: &str) -> Vec<String> {
    let all = terms(&remove_question_phrases(text));
    let mut kept: Vec<String> = all.iter().filter(|term| !is_stop(term)).cloned().collect();
    if kept.is_empty() {
        kept = terms(text);
    }
    let mut seen = std::collections::BTreeSet::new();
    kept.retain(|term| seen.insert(term.clone()));
    kept
}

/// The words of a query for its translation.
#[derive(Debug, Default)]
pub struct QueryWords {
    /// Runs of Han characters.
    pub han: Vec<Vec<char>>,
    /// Stems of the other words in their order. A stop word is an empty stem.
    pub stems: Vec<String>,
}

/// Returns the words of a query without question phrases.
pub fn query_words(text: &str) -> QueryWords {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut words = QueryWords::default();
    for run in split_runs(&remove_question_phrases(text)) {
        match run {
            Run::Cjk(chars) => words.han.push(chars),
            Run::Word(word) => words.stems.extend(word_stems(&word, &stemmer)),
        }
    }
    words
}

/// Returns the stems of an English phrase without its stop words.
pub fn stems(phrase: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let words = split_runs(phrase).into_iter().filter_map(|run| match run {
        Run::Word(word) => Some(word),
        Run::Cjk(_) => None,
    });
    words.flat_map(|word| word_stems(&word, &stemmer)).filter(|stem| !stem.is_empty()).collect()
}

fn word_stems(word: &str, stemmer: &Stemmer) -> Vec<String> {
    let parts = split_parts(expand_contraction(word));
    let stem_of = |part: &String| stem(&part.to_lowercase(), stemmer).into_owned();
    parts.iter().map(stem_of).map(|stem| if is_stop(&stem) { String::new() } else { stem }).collect()
}

/// Returns the pairs of a Chinese word, or its character if it has only one.
pub fn cjk_pairs(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    if chars.len() < 2 {
        return vec![word.to_owned()];
    }
    chars.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// Returns whether a term carries no meaning by itself. Such terms are not indexed.
pub fn is_stop(term: &str) -> bool {
    let mut chars = term.chars();
    match (chars.next(), chars.next()) {
        (Some(one), None) if is_cjk(one) => is_stop_char(one),
        _ => STOP_WORDS.contains(term),
    }
}

/// Returns whether a Chinese character is a particle, which carries no meaning by itself.
pub fn is_stop_char(c: char) -> bool {
    STOP_CHARS.contains(c)
}

enum Run {
    Cjk(Vec<char>),
    Word(String),
}

pub(crate) fn is_cjk(c: char) -> bool {
    is_han(c) || matches!(c, '\u{3040}'..='\u{30FF}' | '\u{AC00}'..='\u{D7AF}' | '\u{3105}'..='\u{312F}')
}

/// Returns whether a character joins the parts of an identifier inside a word.
fn is_joiner(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | '\\' | ':' | '@' | '\'')
}

fn split_runs(text: &str) -> Vec<Run> {
    let mut out = Vec::new();
    let chars: Vec<char> = text.chars().map(normalize).collect();
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        if is_cjk(chars[at]) {
            // A line break or a single space does not separate two characters of one word.
            let mut run = Vec::new();
            while let Some(next) = chars[at..].iter().position(|c| !c.is_whitespace())
                && next <= 1
                && is_cjk(chars[at + next])
            {
                run.push(chars[at + next]);
                at += next + 1;
            }
            out.push(Run::Cjk(run));
        } else if chars[at].is_alphanumeric() {
            while at < chars.len() && is_word_at(&chars, at) {
                at += 1;
            }
            // `C++`, `C#`, `F#`.
            while at < chars.len() && matches!(chars[at], '+' | '#') && at - start <= 3 {
                at += 1;
            }
            out.push(Run::Word(chars[start..at].iter().collect()));
        } else {
            at += 1;
        }
    }
    out
}

fn is_word_at(chars: &[char], at: usize) -> bool {
    let c = chars[at];
    if c.is_alphanumeric() {
        return !is_cjk(c);
    }
    is_joiner(c) && chars.get(at + 1).is_some_and(|next| next.is_alphanumeric() && !is_cjk(*next))
}

/// Converts fullwidth Latin letters and signs to the usual ones, and traditional characters to simplified ones.
pub(crate) fn normalize(c: char) -> char {
    match c {
        '\0'..='\x7F' => c,
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '\u{3000}' => ' ',
        '’' => '\'',
        _ if is_han(c) => variants::fold(c),
        _ => c,
    }
}

fn add_cjk_terms(chars: &[char], out: &mut Vec<String>) {
    out.extend(chars.iter().map(char::to_string));
    out.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
}

fn add_word_terms(word: &str, stemmer: &Stemmer, out: &mut Vec<String>) {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        // Most words: nothing to split or to convert.
        return out.push(stem(word, stemmer).into_owned());
    }
    let word = expand_contraction(word);
    let parts = split_parts(word);
    let full = word.to_lowercase();
    if parts.len() != 1 || parts[0].to_lowercase() != full {
        // `sha-256` is also written `sha256`, and `user_service` `userservice`.
        let joined: String = full.chars().filter(|c| c.is_alphanumeric()).collect();
        out.extend(strip_number(&joined, stemmer));
        if parts.len() > 1 && joined != full && joined.len() <= 30 {
            out.push(joined);
        }
        out.push(full);
    }
    for part in &parts {
        let part = part.to_lowercase();
        out.extend(strip_number(&part, stemmer));
        out.push(stem(&part, stemmer).into_owned());
    }
}

/// Returns a word without a possessive ending or the second part of a contraction: `user's` → user, `we've` → we,
/// `doesn't` → does. The dropped parts (is, have, not, …) are words that are not indexed.
fn expand_contraction(word: &str) -> &str {
    let Some(at) = word.rfind('\'').filter(|at| *at > 0) else { return word };
    let (head, tail) = (&word[..at], &word[at + 1..]);
    match tail.to_ascii_lowercase().as_str() {
        "s" | "re" | "ve" | "ll" | "d" | "m" => head,
        "t" if head.ends_with(['n', 'N']) => match head.to_ascii_lowercase().as_str() {
            "can" => "can",
            "won" => "will",
            "shan" => "shall",
            _ => &head[..head.len() - 1],
        },
        _ => word,
    }
}

/// Returns the name without its trailing number, so that `OAuth2` also matches `oauth`.
fn strip_number(word: &str, stemmer: &Stemmer) -> Option<String> {
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_name =
        name.len() > 2 && name.len() < word.len() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_name.then(|| stem(name, stemmer).into_owned())
}

fn stem<'a>(word: &'a str, stemmer: &Stemmer) -> Cow<'a, str> {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Cow::Borrowed(word);
    }
    match IRREGULAR_FORMS.position(word) {
        Some(at) => Cow::Owned(stemmer.stem(IRREGULAR[at].1).into_owned()),
        None if !can_have_suffix(word) => Cow::Borrowed(word),
        None => stemmer.stem(word),
    }
}

/// Returns whether a word ends with the two letters with which a suffix ends that the stemmer removes or
/// replaces. Looking is much faster than stemming.
fn can_have_suffix(word: &str) -> bool {
    match word.as_bytes() {
        [.., before, last] => match last {
            b'e' | b's' | b'y' => true,
            b'c' => *before == b'i',
            b'd' => *before == b'e',
            b'g' | b't' => *before == b'n',
            b'i' => b"cglt".contains(before),
            b'l' => b"alu".contains(before),
            b'm' => *before == b's',
            b'n' => *before == b'o',
            b'r' => b"eo".contains(before),
            _ => false,
        },
        _ => false,
    }
}

/// Splits an identifier: `app.config.ts` → app, config, ts; `parseJsonFile` → parse, Json, File; `v10` stays.
fn split_parts(word: &str) -> Vec<String> {
    let mut out = Vec::new();
    for piece in
        word.split(|c: char| is_joiner(c) || matches!(c, '+' | '#')).filter(|piece| !piece.is_empty())
    {
        let chars: Vec<char> = piece.chars().collect();
        let mut start = 0;
        for at in 1..chars.len() {
            let (before, here) = (chars[at - 1], chars[at]);
            let starts_word = before.is_lowercase() && here.is_uppercase()
                || before.is_uppercase()
                    && here.is_uppercase()
                    && chars.get(at + 1).is_some_and(|next| next.is_lowercase());
            if starts_word {
                out.push(chars[start..at].iter().collect());
                start = at;
            }
        }
        out.push(chars[start..].iter().collect());
    }
    out
}

/// Replaces a removed phrase. The characters before and after it form no pair.
const SEPARATOR: &str = ",";

fn remove_question_phrases(text: &str) -> String {
    let mut text = text.to_owned();
    if !text.chars().any(is_han) {
        return text;
    }
    text = text.chars().map(normalize).collect();
    for phrase in QUESTION_PHRASES {
        if text.contains(phrase) {
            text = text.replace(phrase, SEPARATOR);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_splits_words_identifiers_and_cjk() {
        let cases: &[(&str, &[&str])] = &[
            ("Testing tests", &["test", "test"]),
            ("user-auth", &["userauth", "user-auth", "user", "auth"]),
            ("app.config.ts", &["appconfigts", "app.config.ts", "app", "config", "ts"]),
            (
                "OAuth2 SHA-256",
                &["oauth", "oauth2", "o", "auth", "auth2", "sha", "sha256", "sha-256", "sha", "256"],
            ),
            ("don’t I'm it's we've CAN'T", &["do", "i", "it", "we", "can"]),
            ("won't user's o'clock", &["will", "user", "oclock", "o'clock", "o", "clock"]),
            ("資料庫 资料库", &["资", "料", "库", "资", "料", "库", "资料", "料库", "库资", "资料", "料库"]),
            ("parseJSONFile", &["parsejsonfile", "pars", "json", "file"]),
            ("C++ C# v10", &["c++", "c", "c#", "c", "v10"]),
            ("JWT认证", &["jwt", "认", "证", "认证"]),
            ("ＪＷＴ　Caroline's", &["jwt", "carolin"]),
            ("库", &["库"]),
            ("数据\n库 表", &["数", "据", "库", "表", "数据", "据库", "库表"]),
            ("数据  库", &["数", "据", "数据", "库"]),
            ("…!?", &[]),
            ("end. Next", &["end", "next"]),
        ];
        for (text, want) in cases {
            assert_eq!(terms(text), *want, "{text}");
        }
    }

    #[test]
    fn query_terms_drops_question_words() {
        assert_eq!(query_terms("what is JWT?"), ["jwt"]);
        assert_eq!(query_terms("what is it?"), ["what", "is", "it"], "no other word is left");
        let zh = query_terms("为什么选择 Redis 缓存？");
        assert!(
            zh.contains(&"缓存".to_owned())
                && zh.contains(&"redi".to_owned())
                && !zh.contains(&"什么".to_owned())
        );
    }

    proptest::proptest! {
        #[test]
        fn stem_word_without_suffix_is_the_word(word in "[a-z]{3,9}", start in "[a-z]{0,4}(ab|ing|at|iz|y|e)", end in "[a-z]{0,2}(l|t|n|r|m|d|c|g|i)") {
            let stemmer = Stemmer::create(Algorithm::English);
            for word in [&word, &format!("{start}{word}"), &format!("{word}{end}")] {
                if !can_have_suffix(word) {
                    proptest::prop_assert_eq!(stemmer.stem(word), word.as_str());
                }
            }
        }

        #[test]
        fn terms_of_words_are_those_of_their_text(words in proptest::collection::vec("[a-zA-Z0-9é库かな]{0,6}", 0..6)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            proptest::prop_assert_eq!(terms_of_words(&words), terms(&words.join(" ")));
        }

        #[test]
        fn terms_any_text_does_not_panic(text in ".{0,80}") {
            for term in terms(&text) {
                proptest::prop_assert!(!term.is_empty());
            }
            query_terms(&text);
        }
    }
}
