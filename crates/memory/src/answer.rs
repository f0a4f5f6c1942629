//! Which kinds of details a text contains, and which kind a question asks for: when → a time, how many → a number,
//! where and who → a name, which book → a title in quotation marks.

use tanmi_base::lang::is_han;

/// The details of a text, as a bit set that the index stores.
pub type Features = u8;

/// The text is a question: it ends with a question mark.
pub const QUESTION: Features = 1;
pub const TIME: Features = 2;
pub const NUMBER: Features = 4;
/// A name: a capitalized word inside a sentence.
pub const NAME: Features = 8;
/// A title in quotation marks.
pub const TITLE: Features = 16;
/// The text contains a question, which the next turn probably answers.
pub const ASKS: Features = 32;
/// The kinds of details that an answer can contain.
pub const DETAILS: Features = TIME | NUMBER | NAME | TITLE;

/// Invariant: sorted.
const TIME_WORDS: &[&str] = &[
    "afternoon",
    "ago",
    "april",
    "august",
    "century",
    "day",
    "days",
    "decade",
    "december",
    "evening",
    "february",
    "friday",
    "january",
    "july",
    "june",
    "last",
    "march",
    "monday",
    "month",
    "months",
    "morning",
    "next",
    "night",
    "november",
    "october",
    "recently",
    "saturday",
    "september",
    "since",
    "sunday",
    "thursday",
    "today",
    "tomorrow",
    "tonight",
    "tuesday",
    "wednesday",
    "week",
    "weekend",
    "weeks",
    "year",
    "years",
    "yesterday",
];
const TIME_WORDS_ZH: &[&str] = &[
    "今天",
    "昨天",
    "前天",
    "明天",
    "后天",
    "上周",
    "下周",
    "本周",
    "周末",
    "上个月",
    "下个月",
    "去年",
    "今年",
    "明年",
    "早上",
    "上午",
    "下午",
    "晚上",
    "小时",
    "分钟",
    "月",
    "号",
    "点",
];
/// Invariant: sorted.
const NUMBER_WORDS: &[&str] = &[
    "couple", "dozen", "eight", "few", "five", "four", "half", "hundred", "million", "nine", "once", "seven",
    "several", "six", "ten", "thousand", "three", "twice", "two",
];
const NUMERALS_ZH: &str = "两三四五六七八九十百千万";

/// Returns the details that a text contains.
pub fn features(text: &str) -> Features {
    let mut found = 0;
    if text.trim_end().ends_with(['?', '？']) {
        found |= QUESTION;
    }
    if text.contains(['?', '？']) {
        found |= ASKS;
    }
    if has_title(text) {
        found |= TITLE;
    }
    // The speaker in front of a turn is not a name in it.
    let text = text.split_once(": ").filter(|(head, _)| is_speaker(head)).map_or(text, |(_, rest)| rest);
    let mut is_sentence_start = true;
    for word in text.split(|c: char| c.is_whitespace() || is_han(c)).filter(|word| !word.is_empty()) {
        found |= word_features(word, is_sentence_start);
        is_sentence_start = word.ends_with(['.', '!', '?', ':', '"', '\n']);
    }
    if text.chars().any(|c| NUMERALS_ZH.contains(c)) {
        found |= NUMBER;
    }
    if TIME_WORDS_ZH.iter().any(|word| text.contains(word)) {
        found |= TIME;
    }
    found
}

fn is_speaker(head: &str) -> bool {
    !head.is_empty() && head.len() <= 40 && head.split(' ').count() <= 3
}

fn word_features(word: &str, is_sentence_start: bool) -> Features {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let mut found = 0;
    if bare.starts_with(|c: char| c.is_ascii_digit()) {
        found |= NUMBER;
        let is_year = bare.len() == 4 && (bare.starts_with("19") || bare.starts_with("20"));
        if is_year || bare.contains(':') || bare.ends_with("am") || bare.ends_with("pm") {
            found |= TIME;
        }
    }
    let is_pronoun = bare == "I" || bare.starts_with("I'") || bare.starts_with("I’");
    if !is_sentence_start && !is_pronoun && bare.starts_with(char::is_uppercase) {
        found |= NAME;
    }
    let lower = bare.to_ascii_lowercase();
    if TIME_WORDS.binary_search(&lower.as_str()).is_ok() {
        found |= TIME;
    }
    if NUMBER_WORDS.binary_search(&lower.as_str()).is_ok() {
        found |= NUMBER;
    }
    found
}

fn has_title(text: &str) -> bool {
    [('"', '"'), ('“', '”'), ('《', '》'), ('「', '」')]
        .iter()
        .any(|(open, close)| text.split_once(*open).is_some_and(|(_, rest)| rest.contains(*close)))
}

/// Phrases of a question, and the details that its answer contains.
const ASKED: &[(&str, Features)] = &[
    ("when ", TIME),
    ("what time", TIME),
    ("what date", TIME),
    ("which day", TIME),
    ("what day", TIME),
    ("which month", TIME),
    ("which year", TIME),
    ("how long", TIME | NUMBER),
    ("how often", TIME | NUMBER),
    ("how many", NUMBER),
    ("how much", NUMBER),
    ("how old", NUMBER),
    ("what number", NUMBER),
    ("where ", NAME),
    ("who ", NAME),
    ("whose ", NAME),
    ("whom ", NAME),
    ("which country", NAME),
    ("which city", NAME),
    ("what country", NAME),
    ("what city", NAME),
    ("which state", NAME),
    ("which company", NAME),
    ("what company", NAME),
    ("book", TITLE),
    ("novel", TITLE),
    ("movie", TITLE),
    ("film", TITLE),
    ("song", TITLE),
    ("called", TITLE | NAME),
    ("named", TITLE | NAME),
    ("name of", TITLE | NAME),
    ("什么时候", TIME),
    ("何时", TIME),
    ("哪天", TIME),
    ("哪一天", TIME),
    ("哪年", TIME),
    ("哪一年", TIME),
    ("几月", TIME),
    ("几号", TIME),
    ("几点", TIME),
    ("多久", TIME | NUMBER),
    ("多长时间", TIME | NUMBER),
    ("多少", NUMBER),
    ("几个", NUMBER),
    ("几次", NUMBER),
    ("哪本书", TITLE),
    ("哪部", TITLE),
    ("书名", TITLE),
    ("书籍", TITLE),
    ("电影", TITLE),
    ("哪首", TITLE),
];

/// Returns the details that the answer to a question contains, or none if the question does not say.
pub fn asked(question: &str) -> Features {
    let mut lower = question.to_lowercase();
    lower.push(' ');
    ASKED.iter().filter(|(phrase, _)| has_phrase(&lower, phrase)).fold(0, |all, (_, features)| all | features)
}

/// Returns whether a text contains a phrase at the start of a word.
fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_finds_times_numbers_names_and_titles() {
        let cases: &[(&str, Features)] = &[
            ("Anna: I moved to Lisbon last May.", TIME | NAME),
            ("We bought two of them.", NUMBER),
            ("It starts at 7pm", NUMBER | TIME),
            ("Have you read \"dune\"? I did.", ASKS | TITLE),
            ("Have you read it?", ASKS | QUESTION),
            ("我读了《局外人》", TITLE),
            ("昨天改了三处", TIME | NUMBER),
            ("Nothing of that kind here. But I'm fine.", 0),
        ];
        for (text, want) in cases {
            assert_eq!(features(text), *want, "{text}");
        }
        assert!(TIME_WORDS.is_sorted() && NUMBER_WORDS.is_sorted());
    }

    #[test]
    fn asked_returns_details_that_question_words_name() {
        let cases: &[(&str, Features)] = &[
            ("When did she move?", TIME),
            ("How many retries?", NUMBER),
            ("Where do backups go?", NAME),
            ("somewhere else", 0),
            ("which book did he read", TITLE),
            ("什么时候发布", TIME),
            ("重试多少次", NUMBER),
            ("why is it slow", 0),
        ];
        for (text, want) in cases {
            assert_eq!(asked(text), *want, "{text}");
        }
    }
}
