//! A question and the memories that answer it, best first.

use std::collections::{BTreeMap, BTreeSet};

use tanmi_base::Millis;
use tanmi_index::{MemoryFilter, MemoryIndex, MemoryRow};

use crate::Result;
use crate::rank::{self, Collection, Placed, Question, REACH, Terms, WEIGHTS};
use crate::sync::doc_of;

#[derive(Clone, Debug)]
pub struct Hit {
    pub row: MemoryRow,
    /// 0 to 1.
    pub score: f32,
}

/// Looked at more closely.
const CANDIDATES: usize = 120;
/// From here on only the rarest terms are looked up: the others would bring half of everything.
const MANY: u64 = 30_000;
const RAREST: usize = 5;

pub fn search(
    index: &MemoryIndex,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
) -> Result<Vec<Hit>> {
    let question = Question::new(query, now);
    if question.terms.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let (docs, length) = index.collection()?;
    let frequencies =
        question.terms.iter().map(|term| index.frequency(term)).collect::<Result<Vec<_>, _>>()?;
    let terms = looked_up(&question.terms, &frequencies, docs);
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let found = index.candidates(&terms, filter, CANDIDATES.max(limit * 4))?;
    let rows = with_neighbours(index, &found, filter)?;
    let ready: BTreeMap<i64, Terms<'_>> =
        rows.iter().map(|row| (row.n, Terms::of(&doc_of(row), &row.terms))).collect();
    // In a conversation the answer may have none of the question's words; a fact stands for itself.
    let has_own =
        |row: &MemoryRow| ready[&row.n].own.iter().any(|term| question.terms.iter().any(|own| own == term));
    let wanted: Vec<&MemoryRow> =
        rows.iter().filter(|row| is_wanted(row, filter) && (row.kind == "turn" || has_own(row))).collect();
    let placed: Vec<Placed<'_>> = wanted.iter().map(|row| placed(row, &ready)).collect();
    let collection = Collection { docs, length, frequencies };
    let scores = rank::scores(&question, &collection, &placed, &WEIGHTS);
    let mut hits: Vec<Hit> = wanted
        .into_iter()
        .zip(scores)
        .filter(|(_, score)| *score > 0.0)
        .map(|(row, score)| Hit { row: row.clone(), score })
        .collect();
    hits.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then(b.row.at.cmp(&a.row.at)).then(a.row.n.cmp(&b.row.n))
    });
    hits.truncate(limit);
    Ok(hits)
}

/// The terms that bring candidates: all that occur, or in a large collection the rarest.
fn looked_up<'a>(terms: &'a [String], frequencies: &[u64], docs: u64) -> Vec<&'a str> {
    let mut known: Vec<(u64, &str)> = terms
        .iter()
        .zip(frequencies)
        .filter(|(_, df)| **df > 0)
        .map(|(term, df)| (*df, term.as_str()))
        .collect();
    if docs > MANY {
        known.sort_unstable();
        known.truncate(RAREST);
        // One that is everywhere is worth its time only if nothing rarer is there.
        let rare = known.iter().filter(|(df, _)| *df < docs / 20).count();
        if rare > 0 {
            known.truncate(rare.max(1));
        }
    }
    known.into_iter().map(|(_, term)| term).collect()
}

/// The candidates and what stands around them: an answer often has none of the question's words, but its neighbour has.
fn with_neighbours(index: &MemoryIndex, found: &[i64], filter: &MemoryFilter) -> Result<Vec<MemoryRow>> {
    let reach = REACH as i64;
    let mut numbers: BTreeSet<i64> = BTreeSet::new();
    for n in found {
        numbers.extend(n - 2 * reach..=n + 2 * reach);
    }
    let numbers: Vec<i64> = numbers.into_iter().collect();
    let mut rows = index.rows(&numbers)?;
    if !filter.all {
        rows.retain(|row| !row.hidden);
    }
    Ok(rows)
}

/// Neighbours obey the filter like everybody else.
fn is_wanted(row: &MemoryRow, filter: &MemoryFilter) -> bool {
    filter.letter.as_ref().is_none_or(|letter| *letter == row.letter)
        && filter.session.as_ref().is_none_or(|session| *session == row.session)
        && filter.since.is_none_or(|since| row.at.is_some_and(|at| at >= since))
        && filter.until.is_none_or(|until| row.at.is_some_and(|at| at < until))
}

fn placed<'a>(row: &MemoryRow, ready: &'a BTreeMap<i64, Terms<'a>>) -> Placed<'a> {
    let reach = REACH as i64;
    let near = ready
        .range(row.n - reach..=row.n + reach)
        .filter(|(n, other)| **n != row.n && !row.session.is_empty() && other.session == row.session);
    let near =
        near.map(|(n, terms)| (terms, usize::try_from((n - row.n).abs()).unwrap_or(usize::MAX))).collect();
    Placed { terms: &ready[&row.n], near }
}
