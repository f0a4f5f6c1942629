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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
