//! Removes characters that a person does not see but a model reads: zero-width and formatting characters, direction
//! overrides, tag characters, fillers and control characters. Joiners and variation selectors that a script or an
//! emoji needs stay.

use std::borrow::Cow;

use crate::text::find_byte;

/// Returns the text without invisible characters. A line break other than `\n` and `\r\n` becomes a space, so that
/// one line stays one line. Allocates only if something changes.
pub fn remove_invisible(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    // The part of the text before this position is in `out`.
    let mut copied = 0;
    let mut from = 0;
    while let Some(at) = find_byte(&text.as_bytes()[from..], may_be_hidden) {
        let at = from + at;
        let mut rest = text[at..].chars();
        let Some(c) = rest.next() else { break };
        from = at + c.len_utf8();
        let before =
            if copied == at { out.chars().next_back() } else { text[copied..at].chars().next_back() };
        match treatment(before, c, rest.as_str()) {
            Treatment::Keep(more) => from += more,
            treatment => {
                out.push_str(&text[copied..at]);
                out.push_str(if treatment == Treatment::Space { " " } else { "" });
                copied = from;
            }
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// What happens to one character.
#[derive(PartialEq, Eq)]
enum Treatment {
    /// The character stays, and this many bytes after it.
    Keep(usize),
    Space,
    Remove,
}

/// Returns whether a byte may begin a character with a special treatment. Others are skipped without decoding.
fn may_be_hidden(byte: u8) -> bool {
    // The leads begin the blocks of U+0080, U+0340, U+0600, U+1000, U+2000, U+3000, U+F000, U+10000 and U+E0000.
    let is_lead = matches!(byte, 0xC2 | 0xCD | 0xD8 | 0xE1..=0xE3 | 0xEF | 0xF0 | 0xF3);
    is_lead || byte == 0x7F || (byte < 0x20 && byte != b'\n' && byte != b'\t')
}

fn treatment(before: Option<char>, c: char, rest: &str) -> Treatment {
    let after = rest.chars().next();
    let keep_if = |is_needed: bool| if is_needed { Treatment::Keep(0) } else { Treatment::Remove };
    match c {
        '\r' if after == Some('\n') => Treatment::Keep(1),
        '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Treatment::Space,
        '\u{200C}' | '\u{200D}' if joins_letters(before, after) => Treatment::Keep(0),
        '\u{200D}' => keep_if(joins_emoji(before, after)),
        '\u{FE0F}' if after == Some('\u{20E3}') => {
            keep_if(before.is_some_and(|c| c.is_ascii_digit() || c == '#' || c == '*'))
        }
        '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => {
            keep_if(before.is_some_and(|c| is_pictograph(c) || is_han(c)))
        }
        '\u{180B}'..='\u{180D}' | '\u{180F}' => {
            keep_if(before.is_some_and(|c| matches!(c, '\u{1820}'..='\u{18AA}')))
        }
        '\u{1F3F4}' => Treatment::Keep(flag_len(rest)),
        c => keep_if(!c.is_control() && !is_invisible(c)),
    }
}

/// Returns whether a character other than a control character has no visible form.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180E}'
            | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Returns whether a joiner between these characters selects the form of letters, as in Persian or Hindi.
fn joins_letters(before: Option<char>, after: Option<char>) -> bool {
    // Arabic to Sinhala, Tibetan and Myanmar, Khmer and Mongolian, Balinese to Vedic, Arabic forms.
    let is_joining = |c: char| {
        matches!(c, '\u{620}'..='\u{DFF}' | '\u{F00}'..='\u{109F}' | '\u{1780}'..='\u{18AA}'
            | '\u{1B00}'..='\u{1CFF}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}')
            && !is_invisible(c)
            && !matches!(c, '\u{180B}'..='\u{180F}')
    };
    before.is_some_and(is_joining) && after.is_some_and(is_joining)
}

fn joins_emoji(before: Option<char>, after: Option<char>) -> bool {
    before.is_some_and(|c| is_pictograph(c) || c == '\u{FE0F}') && after.is_some_and(is_pictograph)
}

/// Returns whether a character is a symbol or an emoji, which a variation selector may follow.
fn is_pictograph(c: char) -> bool {
    matches!(c, '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '\u{2190}'..='\u{2BFF}' | '〰' | '〽' | '㊗' | '㊙'
        | '\u{1F000}'..='\u{1FAFF}')
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Returns the length of the tag characters that make a black flag that of England, Scotland or Wales, else 0.
fn flag_len(rest: &str) -> usize {
    let tagged = |name: &str| -> String {
        name.chars()
            .map(|c| char::from_u32(0xE0000 + u32::from(c)).unwrap_or(c))
            .chain(['\u{E007F}'])
            .collect()
    };
    if !rest.starts_with('\u{E0067}') {
        return 0;
    }
    ["gbeng", "gbsct", "gbwls"]
        .iter()
        .map(|name| tagged(name))
        .find(|tags| rest.starts_with(tags))
        .map_or(0, |tags| tags.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn remove_invisible_ordinary_text_is_borrowed() {
        for text in [
            "",
            "plain ASCII\n\twith lines\r\n",
            "中文，标点：《书名》〈篇名〉。",
            "می\u{200C}خواهم",
            "क्\u{200D}ष",
            "👩‍❤️‍👨 🏳️‍🌈 👨‍👩‍👧 🏴‍☠️ 👍🏽 1️⃣ #️⃣ ❤️ ©️ ☑︎",
            "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
            "葛\u{E0100}城",
            "한국어 ภาษาไทย 日本語、カナ",
            "e\u{301}",
        ] {
            assert!(matches!(remove_invisible(text), Cow::Borrowed(_)), "{text:?}");
        }
    }

    #[test]
    fn remove_invisible_hidden_characters_are_removed() {
        for (text, expected) in [
            ("sys\u{200B}tem", "system"),
            ("sys\u{AD}t\u{2060}e\u{FEFF}m", "system"),
            ("a\u{202E}b\u{2066}c\u{200F}d\u{61C}", "abcd"),
            ("a\u{3164}b\u{FFA0}c\u{115F}d\u{1160}", "abcd"),
            ("hi\u{E0001}\u{E0069}\u{E0067}\u{E007F}", "hi"),
            ("🏴\u{E0068}\u{E0069}\u{E007F}", "🏴"),
            ("🙂\u{FE0F}\u{FE01}\u{E0101}\u{E0102}", "🙂\u{FE0F}"),
            ("a\u{FE0F}b\u{E0121}c\u{34F}", "abc"),
            ("a\u{200D}b\u{200C}c", "abc"),
            ("🙂\u{200D}text", "🙂text"),
            ("م\u{200C}\u{200C}\u{200D}ی", "م\u{200D}ی"),
            ("\u{1B}[2J\u{7}\u{0}\u{7F}\u{9B}x", "[2Jx"),
            ("a\rb\u{2028}c\u{85}d\u{B}e\r\nf", "a b c d e\r\nf"),
        ] {
            assert_eq!(remove_invisible(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn remove_invisible_is_idempotent_and_never_longer(
            text in "([a<\r\n می☠🏴🙂葛\u{200B}-\u{200F}\u{FE00}\u{FE0F}\u{20E3}\u{E0062}-\u{E0067}\u{E007F}\u{E0100}\u{1820}\u{180B}]|\\PC){0,40}"
        ) {
            let once = remove_invisible(&text);
            prop_assert!(once.len() <= text.len());
            prop_assert!(matches!(remove_invisible(&once), Cow::Borrowed(_)), "{text:?} {once:?}");
        }
    }
}
