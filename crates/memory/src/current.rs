//! Finds facts that a newer fact replaces, although it does not say so with `supersedes`.
//!
//! Two facts are compared as [`Statement`]s: the same subject, and a change that is stated ("no longer",
//! 改为), another value in the same sentence, or the opposite. A wrong mark is worse than none, so in doubt a
//! fact stays current.

use tanmi_base::Millis;
use tanmi_base::clock::DAY;
use tanmi_index::{MemoryIndex, MemoryKind, MemoryRow};

use crate::Fact;
use crate::search::Hit;
use statement::Statement;

mod compare;
mod statement;
#[cfg(test)]
mod tests;
mod words;

/// The newer fact that replaces a fact, as inferred from their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub by: String,
    pub at: Millis,
}

/// A fact prepared for comparisons.
#[derive(Clone, Debug)]
pub struct Matter {
    id: String,
    at: Millis,
    /// Of facts with the same time, the one that was read later is newer.
    n: i64,
    statement: Statement,
}

impl Matter {
    /// Returns `None` for a memory that cannot replace or be replaced: it is no fact, hidden, or without a time.
    pub fn of(row: &MemoryRow) -> Option<Matter> {
        let at = row.at.filter(|_| !row.hidden && row.letter.kind() == MemoryKind::Fact)?;
        Some(Matter {
            id: row.id.clone(),
            at,
            n: row.n,
            statement: Statement::new(&row.content, &row.entities),
        })
    }

    /// Returns whether two facts say the same in nearly the same words.
    pub fn is_near_duplicate(&self, other: &Matter) -> bool {
        let (a, b) = (&self.statement, &other.statement);
        let (fewer, more) = (a.terms.len().min(b.terms.len()), a.terms.len().max(b.terms.len()));
        if fewer * 10 < more * NEAR_DUPLICATE_TENTHS || a.values != b.values || a.is_negative != b.is_negative
        {
            return false;
        }
        let shared = a.shared(b).count();
        shared >= 2 && shared * 10 >= (fewer + more - shared) * NEAR_DUPLICATE_TENTHS && !a.contrasts_with(b)
    }
}

/// Facts that share this many tenths of their terms are near-duplicates.
const NEAR_DUPLICATE_TENTHS: usize = 8;

/// How many memories of a collection contain a term.
pub struct Frequencies<'a> {
    pub docs: u64,
    pub of: &'a dyn Fn(&str) -> u64,
}

/// For a collection that is too small to have common terms.
pub const NO_FREQUENCIES: Frequencies<'static> = Frequencies { docs: 0, of: &|_| 0 };

/// In a smaller collection, no term counts as common.
const MIN_DOCS: u64 = 50;

impl Frequencies<'_> {
    /// Returns whether every fifth memory contains the term; it then does not show that two facts are about one matter.
    fn is_common(&self, term: &str) -> bool {
        self.docs >= MIN_DOCS && (self.of)(term) * 5 > self.docs
    }
}

/// Returns the replacement if `newer` replaces `older`. Invariant: never true in both directions, because a replacement
/// is newer. A fact with a time after `now` replaces none.
pub fn replaced(
    older: &Matter,
    newer: &Matter,
    frequencies: &Frequencies<'_>,
    now: Millis,
) -> Option<Replaced> {
    let is_newer = (newer.at, newer.n) > (older.at, older.n) && newer.at <= now.saturating_add(DAY);
    let is_replaced = is_newer && compare::is_replaced(&older.statement, &newer.statement, frequencies);
    is_replaced.then(|| Replaced { by: newer.id.clone(), at: newer.at })
}

/// Marks the facts that another hit replaces, and puts the newer fact directly before the first fact that it replaces.
/// Looks at the first [`MAX_COMPARED`] hits.
pub fn put_newer_first(index: &MemoryIndex, hits: &mut Vec<Hit>, now: Millis) {
    with_frequencies(index, |frequencies| order_hits(hits, frequencies, now));
}

/// Calls `work` with the frequencies in an index.
pub fn with_frequencies<T>(index: &MemoryIndex, work: impl FnOnce(&Frequencies<'_>) -> T) -> T {
    let docs = index.collection_stats().map_or(0, |(docs, _)| docs);
    let of = |term: &str| index.frequency(term).unwrap_or(0);
    work(&Frequencies { docs, of: &of })
}

/// Marks the hits that a new fact replaces.
pub fn mark_replaced_by(fact: &Fact, hits: &mut [Hit], frequencies: &Frequencies<'_>) {
    let row = MemoryRow {
        id: fact.id.clone(),
        content: fact.content.clone(),
        entities: fact.entities.join("\n"),
        at: Some(fact.at),
        n: i64::MAX,
        ..MemoryRow::default()
    };
    let Some(newer) = Matter::of(&row) else { return };
    for hit in hits {
        let older = Matter::of(&hit.row).filter(|older| older.id != newer.id);
        hit.replaced = older.and_then(|older| replaced(&older, &newer, frequencies, fact.at));
    }
}

/// The number of hits that are compared with each other.
const MAX_COMPARED: usize = 40;

/// The number of hits that a search looks at to find newer facts, also if fewer are wanted.
pub const POOL: usize = 20;

/// Returns the position of the newest fact that scores nearly as well as an older one, and seems to be about
/// the same. The order of such facts says nothing about which is right, so the newer one comes first, without
/// a mark on the other. Of equal times, neither is newer: they were imported together.
fn find_newer_alike(hits: &[Hit], matters: &[Option<Matter>], at: usize, now: Millis) -> Option<usize> {
    let is_short = |matter: &&Matter| matter.statement.terms.len() <= MAX_ALIKE_TERMS;
    let older = matters[at].as_ref().filter(is_short)?;
    let is_alike = |(by, newer): &(usize, &Matter)| {
        is_short(newer)
            && newer.at > older.at
            && newer.at <= now.saturating_add(DAY)
            && hits[*by].score >= hits[at].score * ALIKE_SCORE
            && compare::can_concern_same_matter(&older.statement, &newer.statement)
    };
    let newer = matters.iter().enumerate().filter_map(|(by, newer)| Some((by, newer.as_ref()?)));
    newer.filter(is_alike).max_by_key(|(_, newer)| (newer.at, newer.n)).map(|(by, _)| by)
}

/// A longer text says many things, so two of them share terms without being about one matter.
const MAX_ALIKE_TERMS: usize = 40;

/// A fact scores nearly as well as another one with at least this share of its score.
const ALIKE_SCORE: f32 = 0.75;

/// See [`put_newer_first`].
pub fn order_hits(hits: &mut Vec<Hit>, frequencies: &Frequencies<'_>, now: Millis) {
    let compared = hits.len().min(MAX_COMPARED);
    let matters: Vec<Option<Matter>> = hits[..compared].iter().map(|hit| Matter::of(&hit.row)).collect();
    // For each hit the position of the newest one that replaces it. Positions only lead to newer facts, so no chain
    // returns to its start.
    let mut newer: Vec<Option<usize>> = vec![None; hits.len()];
    for (at, older) in matters.iter().enumerate() {
        let Some(older) = older else { continue };
        let candidates = matters.iter().enumerate().filter_map(|(at, one)| {
            let one = one.as_ref()?;
            Some((at, one, replaced(older, one, frequencies, now)?))
        });
        if let Some((by, _, mark)) = candidates.max_by_key(|(_, one, _)| (one.at, one.n)) {
            newer[at] = Some(by);
            hits[at].replaced = Some(mark);
        }
    }
    for (at, newer) in newer.iter_mut().enumerate().take(compared) {
        *newer = newer.or_else(|| find_newer_alike(hits, &matters, at, now));
    }
    let mut order: Vec<usize> = Vec::with_capacity(hits.len());
    let mut is_placed = vec![false; hits.len()];
    for at in 0..hits.len() {
        let chain: Vec<usize> = std::iter::successors(Some(at), |at| newer[*at]).collect();
        for next in chain.into_iter().rev() {
            if !std::mem::replace(&mut is_placed[next], true) {
                // The score of a fact that moves up is at least that of the fact it replaces.
                hits[next].score = hits[next].score.max(hits[at].score);
                order.push(next);
            }
        }
    }
    let mut moved: Vec<Option<Hit>> = hits.drain(..).map(Some).collect();
    hits.extend(order.into_iter().filter_map(|at| moved[at].take()));
}
