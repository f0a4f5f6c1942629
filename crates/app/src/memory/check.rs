//! Validates the arguments of memory calls: types, lengths and dates. Nothing is read or written here.

use tanmi_base::clock::{self, DAY};
use tanmi_base::{Millis, secrets};
use tanmi_memory::scoped::Scope;
use tanmi_memory::{MemoryFilter, MemoryLetter, MemoryType, dates};

use super::MemoryQuery;
use crate::error::{Error, Result};

pub(super) fn memory_type(word: &str) -> Result<MemoryType> {
    MemoryType::from_word(word).ok_or_else(|| Error::BadValue {
        key: "type",
        value: word.to_owned(),
        expected: MemoryType::WORDS.join(" | "),
    })
}

pub(super) fn scope(word: Option<&str>) -> Result<Option<Scope>> {
    let Some(word) = word else { return Ok(None) };
    let expected = Scope::WORDS.join(" | ");
    Scope::from_word(word).map(Some).ok_or_else(|| Error::bad_value("scope", word, expected))
}

pub(super) fn check_confidence(confidence: Option<f64>) -> Result<()> {
    match confidence.filter(|value| !(0.0..=1.0).contains(value)) {
        Some(value) => Err(Error::bad_value("confidence", &value.to_string(), String::from("0–1"))),
        None => Ok(()),
    }
}

pub(super) fn check_text(field: &'static str, content: &str, limit: usize) -> Result<()> {
    if content.trim().is_empty() {
        return Err(tanmi_workspace::Error::Empty { field }.into());
    }
    tanmi_workspace::limits::check_no_nul(field, content)?;
    if content.len() > limit {
        let actual = content.len();
        return Err(tanmi_workspace::Error::TooLong { field, unit: "bytes", limit, actual }.into());
    }
    Ok(())
}

pub(super) fn check_list(field: &'static str, list: &[String]) -> Result<()> {
    for item in list {
        check_text(field, item, 2000)?;
    }
    if list.len() > 100 {
        return Err(tanmi_workspace::Error::TooLong {
            field,
            unit: "entries",
            limit: 100,
            actual: list.len(),
        }
        .into());
    }
    Ok(())
}

pub(super) fn mask_all(list: &[String], masked: &mut Vec<&'static str>) -> Vec<String> {
    list.iter()
        .map(|item| {
            let (item, found) = secrets::mask(item);
            masked.extend(found);
            item.trim().to_owned()
        })
        .collect()
}

pub(super) fn filter(wanted: &MemoryQuery, now: Millis) -> Result<MemoryFilter> {
    let letter = match wanted.memory_type.as_deref() {
        None => None,
        Some("S" | "s") => Some(MemoryLetter::S),
        Some("T" | "t") => Some(MemoryLetter::T),
        Some(word) => Some(memory_type(word)?.into()),
    };
    let day = |key: &'static str, text: &Option<String>| -> Result<Option<Millis>> {
        let Some(text) = text else { return Ok(None) };
        let relative = clock::parse_duration(text).map(|back| now - back);
        let named = || dates::day_start(text, now);
        let at = relative.or_else(named).or_else(|| dates::parse(text));
        let expected = String::from("YYYY-MM-DD | 7d");
        at.map(Some).ok_or_else(|| Error::BadValue { key, value: text.clone(), expected })
    };
    let until = day("until", &wanted.until)?;
    // A day given as the end is included.
    let until = until.map(|at| if at % DAY == 0 { at + DAY } else { at + 1 });
    Ok(MemoryFilter {
        letter,
        session: wanted.session.clone(),
        since: day("since", &wanted.since)?,
        until,
        all: wanted.all,
        ..MemoryFilter::default()
    })
}
