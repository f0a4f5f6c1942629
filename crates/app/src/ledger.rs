//! Use cases for the ledger: filtered entries, totals, days and injected texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::clock::{self, DAY};
use tanmi_base::{Millis, text};
use tanmi_event::Source;
use tanmi_session::LedgerEntry;

use crate::core::Core;
use crate::error::{Error, Result};

#[derive(Clone, Debug, Default)]
pub struct LedgerFilter {
    pub session: Option<String>,
    pub event: Option<String>,
    pub platform: Option<String>,
    pub rule: Option<String>,
    /// Days as `YYYY-MM-DD`, UTC, both inclusive.
    pub since: Option<String>,
    pub until: Option<String>,
    pub limit: usize,
    /// Whether to include the injected texts.
    pub texts: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct LedgerView {
    /// The latest `limit` entries, oldest first.
    pub entries: Vec<LedgerLine>,
    pub total: Totals,
    pub days: BTreeMap<String, Totals>,
    pub sessions: BTreeMap<String, Totals>,
    /// The number of lines that could not be parsed.
    pub unreadable: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct LedgerLine {
    #[serde(flatten)]
    pub entry: LedgerEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Totals {
    pub decisions: usize,
    pub bytes: usize,
    pub tokens: usize,
}

impl Totals {
    fn add(&mut self, entry: &LedgerEntry) {
        self.decisions += 1;
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.tokens = self.tokens.saturating_add(entry.tokens);
    }
}

/// One day of the ledger.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerDay {
    pub day: String,
    pub decisions: usize,
    pub tokens: usize,
    pub bytes: usize,
    /// The number of hook runs.
    pub hooks: usize,
    /// `median`, `p95` and `slowest`: microseconds from the start of a hook to its decision.
    pub median: u64,
    pub p95: u64,
    pub slowest: u64,
}

/// The use cases for the ledger.
#[derive(Clone)]
pub struct LedgerService {
    core: Arc<Core>,
}

impl LedgerService {
    pub(crate) fn new(core: Arc<Core>) -> LedgerService {
        LedgerService { core }
    }

    pub fn list(&self, filter: &LedgerFilter) -> Result<LedgerView> {
        if let Some(event) = &filter.event {
            crate::rules::parse_event_kind(event)?;
        }
        for (key, day) in [("since", &filter.since), ("until", &filter.until)] {
            if let Some(day) = day.as_deref().filter(|day| !clock::is_day(day)) {
                return Err(Error::bad_value(key, day, String::from("YYYY-MM-DD")));
            }
        }
        let ledger = &self.core.stores.ledger;
        self.core.run_retention();
        let read = ledger.read(filter.since.as_deref(), filter.until.as_deref())?;
        let is_wanted =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        let entries: Vec<LedgerEntry> = read
            .entries
            .into_iter()
            .filter(|entry| {
                is_wanted(&filter.session, &entry.session)
                    && is_wanted(&filter.event, &entry.event)
                    && is_wanted(&filter.platform, &entry.platform)
                    && filter.rule.as_ref().is_none_or(|rule| entry.rules.contains(rule))
            })
            .collect();
        let mut view = LedgerView {
            entries: Vec::new(),
            total: Totals::default(),
            days: BTreeMap::new(),
            sessions: BTreeMap::new(),
            unreadable: read.unreadable,
        };
        for entry in &entries {
            view.total.add(entry);
            view.days.entry(clock::utc_day(entry.at)).or_default().add(entry);
            view.sessions.entry(entry.session.clone()).or_default().add(entry);
        }
        let skipped = entries.len().saturating_sub(filter.limit);
        for entry in entries.into_iter().skip(skipped) {
            let content = filter.texts.then(|| ledger.text(&entry.text)).flatten();
            view.entries.push(LedgerLine { entry, content });
        }
        Ok(view)
    }

    /// Returns the injected text of a ledger entry, with secrets masked.
    pub fn text(&self, digest: &str) -> Result<String> {
        let missing = || Error::TextNotFound { digest: text::fit(&text::one_line(digest), 60) };
        self.core.stores.ledger.text(digest).ok_or_else(missing)
    }

    /// Returns the number and size of injections and the duration of hooks for each of the last days, oldest first.
    pub fn days(&self, days: usize) -> Result<Vec<LedgerDay>> {
        let from =
            clock::utc_day(self.core.now() - Millis::try_from(days.saturating_sub(1)).unwrap_or(0) * DAY);
        let mut found: BTreeMap<String, (LedgerDay, Vec<u64>)> = BTreeMap::new();
        let today = clock::utc_day(self.core.now());
        for entry in self.core.stores.ledger.read(Some(&from), Some(&today))?.entries {
            let day = clock::utc_day(entry.at);
            // An entry with a wrong clock must not add a day outside the range.
            if !(from.as_str()..=today.as_str()).contains(&day.as_str()) {
                continue;
            }
            let (line, micros) = found.entry(day).or_default();
            line.decisions += 1;
            line.tokens = line.tokens.saturating_add(entry.tokens);
            line.bytes = line.bytes.saturating_add(entry.bytes);
            if entry.source == Source::Hook.as_str() {
                micros.push(entry.micros);
            }
        }
        let day = |(day, (line, mut micros)): (String, (LedgerDay, Vec<u64>))| {
            micros.sort_unstable();
            let percentile = |percent: usize| {
                micros.get((micros.len() * percent / 100).min(micros.len().saturating_sub(1)))
            };
            let (median, p95) = (percentile(50).copied().unwrap_or(0), percentile(95).copied().unwrap_or(0));
            LedgerDay {
                day,
                hooks: micros.len(),
                median,
                p95,
                slowest: micros.last().copied().unwrap_or(0),
                ..line
            }
        };
        Ok(found.into_iter().map(day).collect())
    }
}
