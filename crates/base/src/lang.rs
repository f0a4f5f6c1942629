//! Which of the two languages a text is shown in. The texts themselves live with what they speak of.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    Zh,
    #[default]
    En,
}

impl Lang {
    /// Han characters in the text at hand mean Chinese, other text English; no text leaves it to the locale.
    pub fn of_text(text: &str) -> Option<Lang> {
        if text.chars().any(is_han) {
            return Some(Lang::Zh);
        }
        text.chars().any(char::is_alphanumeric).then_some(Lang::En)
    }

    /// From `LC_ALL`, `LC_MESSAGES` and `LANG`, the first that is set.
    pub fn of_locale() -> Lang {
        let set = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().filter_map(|name| std::env::var(name).ok());
        match set.filter(|value| !value.is_empty()).map(|value| value.starts_with("zh")).next() {
            Some(true) => Lang::Zh,
            _ => Lang::En,
        }
    }

    /// One of two texts.
    pub fn pick<T>(self, zh: T, en: T) -> T {
        match self {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }
}

pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}
