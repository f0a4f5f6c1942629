//! Text into terms, the same way for what is stored and for what is asked.
//!
//! Words are lower-cased and stemmed; identifiers (`user-auth`, `app.config.ts`, `parseJson`, `C++`) count whole and in
//! parts; Chinese and its neighbours count as single characters and as pairs, which needs no dictionary.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use tanmi_base::lang::is_han;

/// Terms of a text, in their order, repetitions included.
pub fn terms(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = Vec::new();
    for run in runs(text) {
        match run {
            Run::Cjk(chars) => cjk(&chars, &mut out),
            Run::Word(word) => word_terms(&word, &stemmer, &mut out),
        }
    }
    out
}

/// Terms of a question: without the words that every question has, unless nothing else is left.
pub fn query_terms(text: &str) -> Vec<String> {
    let all = terms(&without_questions(text));
    let mut kept: Vec<String> = all.iter().filter(|term| !is_stop(term)).cloned().collect();
    if kept.is_empty() {
        kept = terms(text);
    }
    let mut seen = std::collections::BTreeSet::new();
    kept.retain(|term| seen.insert(term.clone()));
    kept
}

/// Whether a term says nothing by itself; such words are not indexed either.
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

/// Inside a word: what joins the parts of an identifier.
fn joins(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | '\\' | ':' | '@' | '\'')
}

fn runs(text: &str) -> Vec<Run> {
    let mut out = Vec::new();
    let chars: Vec<char> = text.chars().map(fold).collect();
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        if is_cjk(chars[at]) {
            // A line that was wrapped, or a space for looks, does not part two characters of one word.
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
    joins(c) && chars.get(at + 1).is_some_and(|next| next.is_alphanumeric() && !is_cjk(*next))
}

/// Wide forms of Latin letters and signs become the usual ones.
fn fold(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '\u{3000}' => ' ',
        '’' => '\'',
        _ => c,
    }
}

fn cjk(chars: &[char], out: &mut Vec<String>) {
    out.extend(chars.iter().map(char::to_string));
    out.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
}

fn word_terms(word: &str, stemmer: &Stemmer, out: &mut Vec<String>) {
    // A possessive is the word itself.
    let word = word.strip_suffix("'s").unwrap_or(word);
    let parts = parts(word);
    let whole = word.to_lowercase();
    if parts.len() != 1 || parts[0].to_lowercase() != whole {
        // `sha-256` is also written `sha256`, and `user_service` `userservice`.
        let joined: String = whole.chars().filter(|c| c.is_alphanumeric()).collect();
        out.extend(without_number(&joined, stemmer));
        if parts.len() > 1 && joined != whole && joined.len() <= 30 {
            out.push(joined);
        }
        out.push(whole);
    }
    for part in &parts {
        let part = part.to_lowercase();
        out.extend(without_number(&part, stemmer));
        out.push(stem(&part, stemmer).into_owned());
    }
}

/// `OAuth2` is about oauth.
fn without_number(word: &str, stemmer: &Stemmer) -> Option<String> {
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

/// `app.config.ts` → app, config, ts; `parseJsonFile` → parse, Json, File; `v10` stays.
fn parts(word: &str) -> Vec<String> {
    let mut out = Vec::new();
    for piece in word.split(|c: char| joins(c) || matches!(c, '+' | '#')).filter(|piece| !piece.is_empty()) {
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

/// Phrases that make a sentence a question and say nothing of what is asked.
const QUESTIONS: &[&str] = &[
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

/// Characters on its two sides make no pair.
const PARTED: &str = ",";

fn without_questions(text: &str) -> String {
    let mut text = text.to_owned();
    if !text.chars().any(is_han) {
        return text;
    }
    for phrase in QUESTIONS {
        if text.contains(phrase) {
            text = text.replace(phrase, PARTED);
        }
    }
    text
}

const STOP_CHARS: &str = "的了是我你他她它们这那和与及或就都也很还又吗呢吧啊呀么之其把被让给对于以而但并";

/// Sorted. Stems, where the word has one.
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

/// Forms that no rule of stemming brings together. Sorted.
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
    fn words_identifiers_and_characters() {
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
    fn questions_lose_what_every_question_has() {
        assert_eq!(query_terms("what is JWT?"), ["jwt"]);
        assert_eq!(query_terms("what is it?"), ["what", "is", "it"], "unless nothing else is left");
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
        fn any_text_is_taken(text in ".{0,80}") {
            for term in terms(&text) {
                proptest::prop_assert!(!term.is_empty());
            }
            query_terms(&text);
        }
    }
}
