//! Memory in RAM, for tests: the simplest store that keeps to the rules of [`MemoryStore`]. It has no files, and its
//! search only counts common terms.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tanmi_base::{Millis, clock};
use tanmi_index::{MemoryFilter, MemoryKind, MemoryRow};

use crate::current::{self, NO_FREQUENCIES};
use crate::recent::choose::{self, Candidates};
use crate::recent::{StartMemory, StartQuery, is_lasting_preference};
use crate::record::{self, Line};
use crate::search::Hit;
use crate::store::{
    Delivery, ImportResult, Mark, MemoryPage, MemoryStats, MemoryStore, SavedFact, SearchQuery,
};
use crate::sync::SyncResult;
use crate::{Error, Fact, Folder, Result, Summary, import, scoped, segment};

#[derive(Debug, Default)]
pub struct VecMemory {
    data: Mutex<Data>,
}

#[derive(Debug, Default)]
struct Data {
    is_created: bool,
    rows: Vec<MemoryRow>,
    session_lines: Vec<(Millis, String)>,
}

/// The share of common terms from which on a fact is similar.
const SIMILAR_SHARE: f32 = 0.5;

impl VecMemory {
    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Data {
    /// Stores a line of a record.
    fn insert(&mut self, line: &str) {
        self.is_created = true;
        let Line::Record { mut row, supersedes } = record::read_line(line.as_bytes(), "vec") else { return };
        row.n = self.rows.len() as i64 + 1;
        for old in &supersedes {
            self.set_hidden(old, true, &row.id);
        }
        self.rows.push(*row);
    }

    fn set_hidden(&mut self, id: &str, hidden: bool, by: &str) {
        for row in self.rows.iter_mut().filter(|row| row.id == id) {
            row.hidden = hidden;
            row.replaced_by = by.to_owned();
        }
    }

    fn find(&self, id: &str) -> Result<&MemoryRow> {
        self.rows.iter().find(|row| row.id == id).ok_or_else(|| Error::not_found(id))
    }

    /// Returns the id of the version in force that superseded a memory, directly or through other versions.
    fn newer_version(&self, id: &str) -> Option<String> {
        let mut row = self.find(id).ok()?;
        // More steps than rows would be a circle.
        for _ in &self.rows {
            row = self.find(&row.replaced_by).ok().filter(|row| row.id != id)?;
            if !row.hidden {
                return Some(row.id.clone());
            }
        }
        None
    }

    /// Returns the ids of the visible facts with the content of a hidden fact.
    fn same_content(&self, id: &str) -> Vec<String> {
        let is_fact = |row: &MemoryRow| row.letter.kind() == MemoryKind::Fact;
        let Some(own) = self.find(id).ok().filter(|row| row.hidden && is_fact(row)) else {
            return Vec::new();
        };
        let is_same = |row: &&MemoryRow| is_fact(row) && !row.hidden && row.content_hash == own.content_hash;
        self.rows.iter().filter(is_same).map(|row| row.id.clone()).collect()
    }

    /// Returns the rows that pass a filter, the newest first.
    fn newest(&self, filter: &MemoryFilter) -> Vec<&MemoryRow> {
        let mut rows: Vec<&MemoryRow> = self.rows.iter().filter(|row| passes(row, filter)).collect();
        rows.sort_by(|a, b| b.at.cmp(&a.at).then(b.n.cmp(&a.n)));
        rows
    }

    /// Returns the rows with a common term. The score is the share of the terms of the text that a row contains.
    fn search(&self, text: &str, filter: &MemoryFilter) -> Vec<Hit> {
        let wanted: BTreeSet<String> = segment::query_terms(text).into_iter().collect();
        let hit = |row: &MemoryRow| {
            let terms: BTreeSet<String> = segment::terms(&row.content).into_iter().collect();
            let score = wanted.intersection(&terms).count() as f32 / wanted.len().max(1) as f32;
            let (before, after) = (self.neighbour(row, -1), self.neighbour(row, 1));
            (score > 0.0).then(|| Hit { row: row.clone(), score, before, after, replaced: None })
        };
        let mut hits: Vec<Hit> = self.newest(filter).into_iter().filter_map(hit).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits
    }

    fn neighbour(&self, row: &MemoryRow, step: i64) -> String {
        let is_near = |near: &&MemoryRow| {
            row.letter.kind() == MemoryKind::Turn
                && near.n == row.n + step
                && near.session == row.session
                && !near.hidden
        };
        self.rows.iter().find(is_near).map(|near| near.content.clone()).unwrap_or_default()
    }

    fn count(&self, kind: MemoryKind) -> u64 {
        self.rows.iter().filter(|row| row.letter.kind() == kind && !row.hidden).count() as u64
    }
}

fn passes(row: &MemoryRow, filter: &MemoryFilter) -> bool {
    (filter.all || !row.hidden)
        && filter.letter.is_none_or(|letter| letter == row.letter)
        && (!filter.is_lasting_preference || is_lasting_preference(row))
        && (!filter.has_files || row.letter.kind() == MemoryKind::Fact && row.more.contains("\"files\""))
        && filter.kind.is_none_or(|kind| kind == row.letter.kind())
        && filter.session.as_ref().is_none_or(|session| *session == row.session)
        && filter.since.is_none_or(|since| row.at.is_some_and(|at| at >= since))
        && filter.until.is_none_or(|until| row.at.is_some_and(|at| at < until))
        && filter.id_suffix.as_ref().is_none_or(|end| row.id.ends_with(end))
        && filter.replaced_by.as_ref().is_none_or(|newer| *newer == row.replaced_by)
}

impl MemoryStore for VecMemory {
    fn local_folder(&self) -> Option<&Folder> {
        None
    }

    fn exists(&self) -> bool {
        self.data().is_created
    }

    fn create(&self, _: bool) -> Result<bool> {
        Ok(!std::mem::replace(&mut self.data().is_created, true))
    }

    fn save_fact(&self, fact: &Fact) -> Result<SavedFact> {
        let mut data = self.data();
        for target in &fact.supersedes {
            let old = data.find(target)?;
            if old.hidden {
                return Err(Error::NotCurrent { id: old.id.clone(), by: old.replaced_by.clone() });
            }
        }
        let hash = record::content_hash(&fact.content);
        let is_duplicate = |row: &&MemoryRow| {
            row.letter.kind() == MemoryKind::Fact
                && !row.hidden
                && row.content_hash == hash
                && !fact.supersedes.contains(&row.id)
        };
        if let Some(id) = data.rows.iter().find(is_duplicate).map(|row| row.id.clone()) {
            for old in &fact.supersedes {
                data.set_hidden(old, true, &id);
            }
            return Ok(SavedFact { id, is_duplicate: true, similar: Vec::new(), delivery: Delivery::Stored });
        }
        data.insert(&fact.to_line());
        let mut similar = data.search(&fact.content, &MemoryFilter::default());
        current::mark_replaced_by(fact, &mut similar, &NO_FREQUENCIES);
        similar.retain(|hit| {
            (hit.replaced.is_some() || hit.score >= SIMILAR_SHARE)
                && hit.row.letter.kind() == MemoryKind::Fact
                && hit.row.id != fact.id
        });
        Ok(SavedFact { id: fact.id.clone(), is_duplicate: false, similar, delivery: Delivery::Stored })
    }

    fn save_summary(&self, summary: &Summary) -> Result<Delivery> {
        self.data().insert(&summary.to_line());
        Ok(Delivery::Stored)
    }

    fn search(&self, query: &SearchQuery<'_>) -> Result<Vec<Hit>> {
        let mut hits = self.data().search(query.text, query.filter);
        current::order_hits(&mut hits, &NO_FREQUENCIES, query.now);
        hits.truncate(query.limit);
        Ok(hits)
    }

    fn list(&self, filter: &MemoryFilter, limit: usize, skip: usize) -> Result<MemoryPage> {
        let data = self.data();
        let rows = data.newest(filter);
        let total = rows.len() as u64;
        Ok(MemoryPage { rows: rows.into_iter().skip(skip).take(limit).cloned().collect(), total })
    }

    fn find(&self, id: &str) -> Result<MemoryRow> {
        self.data().find(id).cloned()
    }

    fn mark(&self, mark: Mark, ids: &[String], _: Millis, _: &str) -> Result<Vec<MemoryRow>> {
        let mut data = self.data();
        for id in ids {
            data.find(id)?;
        }
        for id in ids {
            if mark == Mark::Promote {
                data.set_hidden(id, true, &format!("{}{id}", scoped::USER_POINTER));
                continue;
            }
            let newer = data.newer_version(id);
            if mark == Mark::Forget && newer.is_some() {
                continue;
            }
            if mark == Mark::Restore {
                for other in data.same_content(id).into_iter().chain(newer) {
                    data.set_hidden(&other, true, id);
                }
            }
            data.set_hidden(id, mark == Mark::Forget, "");
        }
        ids.iter().map(|id| data.find(id).cloned()).collect()
    }

    fn import(&self, lines: &str, now: Millis, _: &mut dyn FnMut(u64, u64)) -> Result<ImportResult> {
        let mut data = self.data();
        data.is_created = true;
        let batch = import::read(lines, |id| Ok(data.find(id).is_ok()))?;
        for row in &batch.records {
            data.insert(&import::record_line(row, now));
        }
        for mark in &batch.marks {
            let by = if mark.hidden { mark.by.as_str() } else { "" };
            data.set_hidden(&mark.target, mark.hidden, by);
        }
        Ok(batch.result)
    }

    fn export(&self, all: bool, now: Millis) -> Result<Vec<String>> {
        let data = self.data();
        let mut rows = data.newest(&MemoryFilter { all, ..MemoryFilter::default() });
        rows.reverse();
        Ok(import::export_lines(rows, now))
    }

    fn sync(&self, _: &mut dyn FnMut(u64, u64)) -> Result<SyncResult> {
        Ok(SyncResult::default())
    }

    fn stats(&self) -> Result<MemoryStats> {
        let data = self.data();
        Ok(MemoryStats {
            place: String::from("RAM"),
            facts: data.count(MemoryKind::Fact),
            summaries: data.count(MemoryKind::Summary),
            turns: data.count(MemoryKind::Turn),
            hidden: data.rows.iter().filter(|row| row.hidden).count() as u64,
            ..MemoryStats::default()
        })
    }

    fn start_memory(&self, query: &StartQuery<'_>) -> StartMemory {
        let data = self.data();
        let newest = data.newest(&MemoryFilter::default());
        let rows = |is_wanted: &dyn Fn(&MemoryRow) -> bool| -> Vec<MemoryRow> {
            let facts = newest.iter().filter(|row| row.letter.kind() == MemoryKind::Fact && is_wanted(row));
            facts.map(|row| (*row).clone()).collect()
        };
        let mut hits = data.search(query.topic, &MemoryFilter::default());
        hits.retain(|hit| hit.row.letter.kind() == MemoryKind::Fact);
        let candidates = Candidates {
            preferences: rows(&is_lasting_preference),
            recent: rows(&|row| query.is_recent(row)),
            related: choose::related(hits, query.topic),
        };
        let (facts, found) = candidates.choose(query, &NO_FREQUENCIES);
        let summary = newest.iter().find(|row| row.letter.kind() == MemoryKind::Summary);
        StartMemory { core: String::new(), summary: summary.map(|row| (*row).clone()), facts, found }
    }

    fn record_session(&self, line: &str, at: Millis) -> Result<()> {
        self.data().session_lines.push((at, line.to_owned()));
        Ok(())
    }

    fn maintain(&self, _: Instant, oldest_session_line: Option<Millis>) -> Result<()> {
        if let Some(oldest) = oldest_session_line {
            self.data().session_lines.retain(|(at, _)| clock::utc_day(*at) >= clock::utc_day(oldest));
        }
        Ok(())
    }

    fn revision(&self) -> u64 {
        let data = self.data();
        (data.rows.len() + data.rows.iter().filter(|row| row.hidden).count()) as u64
    }
}
