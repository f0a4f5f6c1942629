//! Queries of the ledger: filtered entries, totals and injected texts.

use std::collections::BTreeMap;

use serde::Serialize;
use tanmi_base::{Millis, clock};
use tanmi_session::{Ledger, LedgerEntry, is_day};

use crate::App;
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

impl App {
    pub fn ledger(&self, filter: &LedgerFilter) -> Result<LedgerView> {
        if let Some(event) = &filter.event {
            crate::rules::parse_event_kind(event)?;
        }
        for (key, day) in [("since", &filter.since), ("until", &filter.until)] {
            if let Some(day) = day.as_deref().filter(|day| !is_day(day)) {
                return Err(Error::bad_value(key, day, String::from("YYYY-MM-DD")));
            }
        }
        let ledger = Ledger::new(self.home());
        self.prune_ledger();
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
    pub fn ledger_text(&self, digest: &str) -> Result<String> {
        let missing =
            || Error::TextNotFound { digest: tanmi_base::text::fit(&tanmi_base::text::one_line(digest), 60) };
        Ledger::new(self.home()).text(digest).ok_or_else(missing)
    }

    /// Deletes expired days. Errors are ignored: they do not concern the call that triggered it.
    pub(crate) fn prune_ledger(&self) {
        let retained = Millis::from(self.config().log_retain_days) * 86_400_000;
        let _ = Ledger::new(self.home()).prune(&clock::utc_day(self.now() - retained));
    }
}
