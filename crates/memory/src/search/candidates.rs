//! The memories that are ranked: those that contain terms of the query.
//!
//! In a large collection, terms that occur everywhere provide candidates only in combination, because one of them alone
//! would match half of the collection.

use std::collections::HashMap;

use tanmi_index::{MemoryFilter, MemoryIndex};

use crate::{Result, rank};

/// Number of memories that a query may visit in the index.
const MAX_VISITED: f64 = 4_000.0;
/// Number of terms that are combined into groups; the rarest are used.
const MAX_GROUPED_TERMS: usize = 6;

/// Returns the terms that occur in the collection with their frequencies, the rarest first.
pub(super) fn rarest_first(terms: &[(String, u64)]) -> Vec<(u64, &str)> {
    let mut known: Vec<(u64, &str)> =
        terms.iter().filter(|(_, df)| *df > 0).map(|(term, df)| (*df, term.as_str())).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// Returns the memories with the most and the rarest of the terms, judged by the matching groups, the best first; among
/// equals the newest.
pub(super) fn find_candidates(
    index: &MemoryIndex,
    known: &[(u64, &str)],
    docs: u64,
    filter: &MemoryFilter,
    is_strict: bool,
) -> Result<Vec<i64>> {
    let mut found: HashMap<i64, u64> = HashMap::new();
    for group in term_groups(known, docs) {
        let terms: Vec<&str> = members(group).map(|at| known[at].1).collect();
        for n in index.matching(&terms, filter, is_strict, MAX_VISITED as usize)? {
            *found.entry(n).or_default() |= group;
        }
    }
    let weight_of = |set: u64| members(set).map(|at| rank::idf(known[at].0, docs)).sum::<f32>();
    let mut order: Vec<(f32, i64)> = found.into_iter().map(|(n, set)| (weight_of(set), n)).collect();
    order.sort_by(|(one, a), (two, b)| two.total_cmp(one).then(b.cmp(a)));
    Ok(order.into_iter().map(|(_, n)| n).collect())
}

/// Returns the positions of the terms in a bit set.
fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |at| set & (1 << at) != 0)
}

/// Returns the groups of terms that provide candidates, as bit sets. Groups are as small as the size of the
/// collection allows.
fn term_groups(known: &[(u64, &str)], docs: u64) -> Vec<u64> {
    let known = &known[..known.len().min(u64::BITS as usize)];
    let total: u64 = known.iter().map(|(df, _)| df).sum();
    if (total as f64) < MAX_VISITED {
        return (0..known.len()).map(|at| 1 << at).collect();
    }
    let known = &known[..known.len().min(MAX_GROUPED_TERMS)];
    let docs = docs.max(1) as f64;
    let mut remaining = MAX_VISITED;
    let mut chosen: Vec<u64> = Vec::new();
    let mut subsets: Vec<u64> = (1..1u64 << known.len()).collect();
    subsets.sort_by_key(|set| (set.count_ones(), *set));
    for set in subsets {
        let expected = members(set).map(|at| known[at].0 as f64 / docs).product::<f64>() * docs;
        // A chosen subset of this group already provides all memories that the group would.
        if expected <= remaining && !chosen.iter().any(|other| other & set == *other) {
            remaining -= expected;
            chosen.push(set);
        }
    }
    chosen
}
