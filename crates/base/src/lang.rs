//! The two languages of the program, and how one is chosen. The texts themselves live next to the code that uses
//! them.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    Zh,
    #[default]
    En,
}

impl Lang {
    /// Detects the language of a text: Chinese if it contains Han characters, else English. Returns `None` for a
    /// text without letters or digits; the caller then falls back to the locale.
    pub fn of_text(text: &str) -> Option<Lang> {
        if text.chars().any(is_han) {
            return Some(Lang::Zh);
        }
        text.chars().any(char::is_alphanumeric).then_some(Lang::En)
    }

    /// Detects the language of texts that belong together: Chinese if one of them is.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Lang> {
        let mut found = None;
        for lang in texts.into_iter().filter_map(Lang::of_text) {
            match lang {
                Lang::Zh => return Some(Lang::Zh),
                Lang::En => found = Some(Lang::En),
            }
        }
        found
    }

    /// The words of the languages in files, settings and arguments.
    pub const WORDS: &[&str] = &["zh", "en"];

    pub fn from_word(word: &str) -> Option<Lang> {
        match word {
            "zh" => Some(Lang::Zh),
            "en" => Some(Lang::En),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        self.pick("zh", "en")
    }

    /// Returns the language of the locale, from the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set.
    pub fn of_locale() -> Lang {
        let set = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().filter_map(|name| std::env::var(name).ok());
        match set.filter(|value| !value.is_empty()).map(|value| value.starts_with("zh")).next() {
            Some(true) => Lang::Zh,
            _ => Lang::En,
        }
    }

    /// Returns the text in this language.
    pub fn pick<T>(self, zh: T, en: T) -> T {
        match self {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }
}

/// A text in both languages, for a place where the reader's language is not known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Bilingual {
    pub zh: String,
    pub en: String,
}

impl Bilingual {
    pub fn new(zh: impl Into<String>, en: impl Into<String>) -> Bilingual {
        Bilingual { zh: zh.into(), en: en.into() }
    }

    pub fn pick(&self, lang: Lang) -> &str {
        lang.pick(&self.zh, &self.en)
    }
}

pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}
