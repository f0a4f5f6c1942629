//! Use cases for the ledger: filtered entries, totals, days and injected texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::clock::{self, DAY};
use tanmi_base::{Millis, text};
use tanmi_event::Source;
use tanmi_session::{LedgerEntry, LedgerRead};

use crate::core::Core;
use crate::error::{Error, Result};

#[derive(Clone, Debug, Default)]
pub struct LedgerFilter {
    pub session: Option<String>,
    pub event: Option<String>,
    pub platform: Option<String>,
    pub rule: Option<String>,
    pub workspace: Option<String>,
    pub node: Option<String>,
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
    /// By rule. The text of several rules counts for each of them.
    pub rules: BTreeMap<String, Totals>,
    /// By node, without the injections about none.
    pub nodes: Vec<NodeTotals>,
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

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTotals {
    pub workspace_id: String,
    pub node_id: String,
    #[serde(flatten)]
    pub totals: Totals,
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
        self.core.run_retention();
        let LedgerRead { entries, unreadable } = self.read(filter)?;
        let mut view = LedgerView {
            entries: Vec::new(),
            total: Totals::default(),
            days: BTreeMap::new(),
            sessions: BTreeMap::new(),
            rules: BTreeMap::new(),
            nodes: Vec::new(),
            unreadable,
        };
        let mut nodes: BTreeMap<(&str, &str), Totals> = BTreeMap::new();
        for entry in &entries {
            view.total.add(entry);
            view.days.entry(clock::utc_day(entry.at)).or_default().add(entry);
            view.sessions.entry(entry.session.clone()).or_default().add(entry);
            for rule in &entry.rules {
                view.rules.entry(rule.clone()).or_default().add(entry);
            }
            if let (Some(workspace), Some(node)) = (&entry.workspace, &entry.node) {
                nodes.entry((workspace, node)).or_default().add(entry);
            }
        }
        let of_node = |((workspace, node), totals): ((&str, &str), Totals)| NodeTotals {
            workspace_id: workspace.to_owned(),
            node_id: node.to_owned(),
            totals,
        };
        view.nodes = nodes.into_iter().map(of_node).collect();
        let skipped = entries.len().saturating_sub(filter.limit);
        for entry in entries.into_iter().skip(skipped) {
            let content = filter.texts.then(|| self.core.stores.ledger.text(&entry.text)).flatten();
            view.entries.push(LedgerLine { entry, content });
        }
        Ok(view)
    }

    /// Returns the entries that pass the filter, the oldest first.
    fn read(&self, filter: &LedgerFilter) -> Result<LedgerRead> {
        if let Some(event) = &filter.event {
            crate::rules::parse_event_kind(event)?;
        }
        for (key, day) in [("since", &filter.since), ("until", &filter.until)] {
            if let Some(day) = day.as_deref().filter(|day| !clock::is_day(day)) {
                return Err(Error::bad_value(key, day, String::from("YYYY-MM-DD")));
            }
        }
        let mut read = self.core.stores.ledger.read(filter.since.as_deref(), filter.until.as_deref())?;
        let is_wanted =
            |wanted: &Option<String>, value: Option<&str>| wanted.is_none() || wanted.as_deref() == value;
        read.entries.retain(|entry| {
            is_wanted(&filter.session, Some(&entry.session))
                && is_wanted(&filter.event, Some(&entry.event))
                && is_wanted(&filter.platform, Some(&entry.platform))
                && is_wanted(&filter.workspace, entry.workspace.as_deref())
                && is_wanted(&filter.node, entry.node.as_deref())
                && filter.rule.as_ref().is_none_or(|rule| entry.rules.contains(rule))
        });
        Ok(read)
    }

    /// Returns the injected text of a ledger entry, with secrets masked.
    pub fn text(&self, digest: &str) -> Result<String> {
        let missing = || Error::TextNotFound { digest: text::fit(&text::one_line(digest), 60) };
        self.core.stores.ledger.text(digest).ok_or_else(missing)
    }

    /// Returns the number and size of injections and the duration of hooks for each day, oldest first.
    /// Without `since` in the filter, for each of the last `days`.
    pub fn days(&self, days: usize, filter: &LedgerFilter) -> Result<Vec<LedgerDay>> {
        let from =
            clock::utc_day(self.core.now() - Millis::try_from(days.saturating_sub(1)).unwrap_or(0) * DAY);
        let from = filter.since.clone().unwrap_or(from);
        let to = filter.until.clone().unwrap_or_else(|| clock::utc_day(self.core.now()));
        let mut found: BTreeMap<String, (LedgerDay, Vec<u64>)> = BTreeMap::new();
        let filter = LedgerFilter { since: Some(from.clone()), until: Some(to.clone()), ..filter.clone() };
        for entry in self.read(&filter)?.entries {
            let day = clock::utc_day(entry.at);
            // An entry with a wrong clock must not add a day outside the range.
            if !(from.as_str()..=to.as_str()).contains(&day.as_str()) {
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
