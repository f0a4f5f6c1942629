//! Splits text into terms, in the same way for memories and for queries.
//!
//! Words are lower-cased and stemmed. Identifiers (`user-auth`, `app.config.ts`, `parseJson`, `C++`) count in
//! full and in parts. Chinese, Japanese and Korean text counts as single characters and as pairs, which needs no
//! dictionary.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use tanmi_base::lang::is_han;

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

/// Returns whether a term carries no meaning by itself. Such terms are not indexed.
pub fn is_stop(term: &str) -> bool {
    let mut chars = term.chars();
    match (chars.next(), chars.next()) {
        (Some(one), None) if is_cjk(one) => STOP_CHARS.contains(one),
        _ => STOP_WORDS.binary_search(&term).is_ok(),
    }
}

enum Run {
    Cjk(Vec<char>),
    Word(String),
}

fn is_cjk(c: char) -> bool {
    is_han(c) || matches!(c, '\u{3040}'..='\u{30FF}' | '\u{AC00}'..='\u{D7AF}' | '\u{3105}'..='\u{312F}')
}

/// Returns whether a character joins the parts of an identifier inside a word.
fn is_joiner(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | '\\' | ':' | '@' | '\'')
}

fn split_runs(text: &str) -> Vec<Run> {
    let mut out = Vec::new();
    let chars: Vec<char> = text.chars().map(to_halfwidth).collect();
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

/// Converts fullwidth Latin letters and signs to the usual ones.
fn to_halfwidth(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '\u{3000}' => ' ',
        '’' => '\'',
        _ => c,
    }
}

fn add_cjk_terms(chars: &[char], out: &mut Vec<String>) {
    out.extend(chars.iter().map(char::to_string));
    out.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
}

fn add_word_terms(word: &str, stemmer: &Stemmer, out: &mut Vec<String>) {
    // Drop a possessive ending.
    let word = word.strip_suffix("'s").unwrap_or(word);
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
    match IRREGULAR.binary_search_by(|(form, _)| (*form).cmp(word)) {
        Ok(at) => Cow::Owned(stemmer.stem(IRREGULAR[at].1).into_owned()),
        Err(_) => stemmer.stem(word),
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

/// Phrases that only mark a question and carry no topic.
const QUESTION_PHRASES: &[&str] = &[
    "为什么",
    "是什么",
    "有什么",
    "什么时候",
    "什么",
    "怎么样",
    "怎么",
    "怎样",
    "如何",
    "哪些",
    "哪个",
    "哪里",
    "哪儿",
    "多少",
    "是否",
    "是不是",
    "有没有",
    "谁",
    "几个",
    "请问",
    "请告诉我",
    "告诉我",
    "还记得",
    "记得",
    "曾经",
    "可以",
    "一下",
    "我们",
    "你们",
    "他们",
];

/// Replaces a removed phrase. The characters before and after it form no pair.
const SEPARATOR: &str = ",";

fn remove_question_phrases(text: &str) -> String {
    let mut text = text.to_owned();
    if !text.chars().any(is_han) {
        return text;
    }
    for phrase in QUESTION_PHRASES {
        if text.contains(phrase) {
            text = text.replace(phrase, SEPARATOR);
        }
    }
    text
}

const STOP_CHARS: &str = "的了是我你他她它们这那和与及或就都也很还又吗呢吧啊呀么之其把被让给对于以而但并";

/// Invariant: sorted. Contains stems for words that are stemmed.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "ani", "any", "are", "as", "at", "be",
    "been", "befor", "before", "being", "both", "but", "by", "can", "could", "did", "do", "doe", "does",
    "doing", "don", "dure", "during", "each", "ever", "few", "for", "from", "further", "had", "has", "have",
    "having", "he", "her", "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "in",
    "into", "is", "it", "itself", "just", "ll", "m", "me", "might", "more", "most", "must", "my", "myself",
    "no", "nor", "not", "now", "of", "off", "on", "onc", "once", "onli", "only", "or", "other", "our",
    "ours", "ourselv", "out", "over", "own", "pleas", "please", "re", "s", "same", "shall", "she", "should",
    "so", "some", "such", "t", "than", "that", "the", "their", "theirs", "them", "themselv", "then", "there",
    "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "us", "ve", "veri",
    "very", "was", "we", "were", "what", "when", "where", "whether", "whi", "which", "while", "who", "whom",
    "whose", "why", "will", "with", "would", "you", "your", "yours", "yourself",
];

/// Irregular forms that stemming does not unite. Invariant: sorted.
const IRREGULAR: &[(&str, &str)] = &[
    ("ate", "eat"),
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("best", "good"),
    ("better", "good"),
    ("bit", "bite"),
    ("bitten", "bite"),
    ("blew", "blow"),
    ("blown", "blow"),
    ("bought", "buy"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("costed", "cost"),
    ("dealt", "deal"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("dug", "dig"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("fled", "flee"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("forgave", "forgive"),
    ("forgiven", "forgive"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("found", "find"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("given", "give"),
    ("gone", "go"),
    ("got", "get"),
    ("gotten", "get"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("halves", "half"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("hung", "hang"),
    ("kept", "keep"),
    ("knew", "know"),
    ("knives", "knife"),
    ("known", "know"),
    ("laid", "lay"),
    ("learnt", "learn"),
    ("leaves", "leaf"),
    ("led", "lead"),
    ("left", "leave"),
    ("lent", "lend"),
    ("lives", "life"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("rang", "ring"),
    ("ridden", "ride"),
    ("risen", "rise"),
    ("rode", "ride"),
    ("rose", "rise"),
    ("rung", "ring"),
    ("said", "say"),
    ("sang", "sing"),
    ("sank", "sink"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("shaken", "shake"),
    ("shone", "shine"),
    ("shook", "shake"),
    ("shot", "shoot"),
    ("shown", "show"),
    ("slept", "sleep"),
    ("slid", "slide"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("spun", "spin"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("struck", "strike"),
    ("stuck", "stick"),
    ("sung", "sing"),
    ("sunk", "sink"),
    ("swam", "swim"),
    ("swept", "sweep"),
    ("swore", "swear"),
    ("sworn", "swear"),
    ("swum", "swim"),
    ("taken", "take"),
    ("taught", "teach"),
    ("teeth", "tooth"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("tore", "tear"),
    ("torn", "tear"),
    ("understood", "understand"),
    ("went", "go"),
    ("withdrawn", "withdraw"),
    ("withdrew", "withdraw"),
    ("wives", "wife"),
    ("woke", "wake"),
    ("woken", "wake"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("worse", "bad"),
    ("worst", "bad"),
    ("written", "write"),
    ("wrote", "write"),
];

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
            ("don’t", &["dont", "don't", "don", "t"]),
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
        assert!(STOP_WORDS.is_sorted() && IRREGULAR.is_sorted());
    }

    proptest::proptest! {
        #[test]
        fn terms_any_text_does_not_panic(text in ".{0,80}") {
            for term in terms(&text) {
                proptest::prop_assert!(!term.is_empty());
            }
            query_terms(&text);
        }
    }
}
