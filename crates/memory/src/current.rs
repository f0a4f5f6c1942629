//! Finds facts that a newer fact replaces, although it does not say so with `supersedes`.
//!
//! Two facts are compared as [`Statement`]s: the same subject, and a change that is stated ("no longer", 改为), another value
//! in the same sentence, or the opposite. A wrong mark is worse than none, so in doubt a fact stays current.

use tanmi_base::Millis;
use tanmi_base::clock::DAY;
use tanmi_index::{MemoryIndex, MemoryKind, MemoryRow};

use crate::Fact;
use crate::search::Hit;
use statement::{Statement, Term};
use words::{GENERIC, SINGLE_VALUED};

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
    let is_replaced = is_newer && is_same_matter_changed(&older.statement, &newer.statement, frequencies);
    is_replaced.then(|| Replaced { by: newer.id.clone(), at: newer.at })
}

fn is_same_matter_changed(old: &Statement, new: &Statement, frequencies: &Frequencies<'_>) -> bool {
    let has_other_values = !old.values.is_empty() && !new.values.is_empty() && old.values != new.values;
    let has_other_sense = old.is_negative != new.is_negative;
    let has_names = old.name.is_some() && new.name.is_some();
    let can_change = new.has_change || new.has_now || has_other_values || has_other_sense || has_names;
    // Most pairs end here, before their terms are compared.
    if !can_change || new.is_addition || old.contrasts_with(new) {
        return false;
    }
    let shared: Vec<&Term> = old.shared(new).collect();
    let says_more = shared.len() < new.terms.len() || !new.values.is_subset(&old.values) || has_other_sense;
    let Some(subject) = shared_subject(old, new).filter(|_| says_more) else { return false };
    if shared.iter().all(|term| frequencies.is_common(&term.text)) {
        return false;
    }
    let is_beyond = |term: &Term| {
        !subject.iter().any(|own| own.text == term.text) && !GENERIC.contains(&term.text.as_str())
    };
    let beyond = shared.iter().filter(|term| is_beyond(term)).count();
    // In tenths, of the terms of each fact.
    let of_old = shared.len() * 10 / old.terms.len().max(1);
    let of_new = shared.len() * 10 / new.terms.len().max(1);
    let is_changed = new.has_change
        && (beyond >= 1 && shared.len() >= 2 && of_old >= 4 || old.has_same_subject(new) && is_specific(old));
    let is_changed_now = new.has_now && beyond >= 1 && shared.len() >= 2 && of_old >= 5;
    let has_other_value = has_other_values && shared.len() >= 2 && of_old >= 9 && of_new >= 5;
    let is_opposite = has_other_sense && shared.len() >= 2 && of_old >= 7 && of_new >= 5;
    is_changed || is_changed_now || has_other_value || is_opposite || has_other_name(old, new)
}

/// Returns the subject that both facts have. `Some` and empty if neither names one: the facts are orders.
fn shared_subject<'a>(old: &'a Statement, new: &'a Statement) -> Option<Vec<&'a Term>> {
    let (of_old, of_new): (Vec<&Term>, Vec<&Term>) = (old.subject().collect(), new.subject().collect());
    let is_in = |subject: &[&Term], of: &'a Statement, other: &'a Statement| {
        of.shared(other).filter(|term| term.is_subject).count() == subject.len()
    };
    match (of_old.is_empty(), of_new.is_empty()) {
        (true, true) => Some(of_old),
        (false, _) if is_in(&of_old, old, new) => Some(of_old),
        (_, false) if is_in(&of_new, new, old) => Some(of_new),
        _ => None,
    }
}

/// Returns whether the subject names one thing of which there is one value: two words, or four Chinese characters.
fn is_specific(statement: &Statement) -> bool {
    let is_ascii = statement.subject().all(|term| term.text.is_ascii());
    statement.subject().count() >= if is_ascii { 2 } else { 3 }
}

/// Returns whether both facts name the value of the same thing, and name another one: "The default branch is main".
fn has_other_name(old: &Statement, new: &Statement) -> bool {
    let is_single = old.head.chars().all(|c| !c.is_ascii()) || SINGLE_VALUED.contains(&old.head.as_str());
    let (Some(one), Some(two)) = (&old.name, &new.name) else { return false };
    one != two && old.has_same_subject(new) && is_specific(old) && is_single
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
