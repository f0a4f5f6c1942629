//! The memories that are ranked: those that contain terms of the query.
//!
//! In a large collection, terms that occur everywhere provide candidates only in combination, because one of them alone
//! would match half of the collection.

use std::collections::BinaryHeap;

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

/// The memories that can be ranked, the best first. Only those that are taken are brought into order:
/// thousands may match, and most searches look at the first portion.
#[derive(Default)]
pub(super) struct Candidates {
    /// The bits of the weight of each memory, which have the order of the weights, and its number.
    heap: BinaryHeap<(u32, i64)>,
    /// The memories that come after those.
    more: Vec<i64>,
}

impl Candidates {
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.more.is_empty()
    }

    pub fn len(&self) -> usize {
        self.heap.len() + self.more.len()
    }

    /// Adds memories that are not among the candidates, after them.
    pub fn extend(&mut self, numbers: Vec<i64>) {
        for n in numbers {
            if !self.more.contains(&n) && !self.heap.iter().any(|(_, known)| *known == n) {
                self.more.push(n);
            }
        }
    }

    /// Removes and returns the best candidates, at most `count`.
    pub fn take(&mut self, count: usize) -> Vec<i64> {
        let mut taken: Vec<i64> =
            std::iter::from_fn(|| self.heap.pop()).map(|(_, n)| n).take(count).collect();
        let rest = self.more.len().min(count - taken.len());
        taken.extend(self.more.drain(..rest));
        taken
    }
}

/// Returns the memories with the most and the rarest of the terms, judged by the matching groups; among
/// equals the newest are better.
pub(super) fn find_candidates(
    index: &MemoryIndex,
    known: &[(u64, &str)],
    docs: u64,
    filter: &MemoryFilter,
    is_strict: bool,
) -> Result<Candidates> {
    let mut found: Vec<(i64, u64)> = Vec::new();
    for group in term_groups(known, docs) {
        let terms: Vec<&str> = members(group).map(|at| known[at].1).collect();
        let matching = index.matching(&terms, filter, is_strict, MAX_VISITED as usize)?;
        found.extend(matching.into_iter().map(|n| (n, group)));
    }
    // Thousands of memories: sorting numbers is faster than a map of them. Those of a group are in order
    // already, and this kind of sorting makes use of that.
    found.sort();
    let idfs: Vec<f32> = known.iter().map(|(df, _)| rank::idf(*df, docs)).collect();
    let weight_of = |set: u64| members(set).map(|at| idfs[at]).sum::<f32>();
    let heap = found
        .chunk_by(|(one, _), (other, _)| one == other)
        .map(|same| (weight_of(same.iter().fold(0, |set, (_, group)| set | group)), same[0].0))
        // The bits of floats that are not negative have the same order.
        .map(|(weight, n)| (weight.to_bits(), n))
        .collect();
    Ok(Candidates { heap, more: Vec::new() })
}

/// Returns the positions of the terms in a bit set.
fn members(set: u64) -> impl Iterator<Item = usize> {
    let is_left = |set: &u64| *set != 0;
    let rest =
        std::iter::successors(Some(set).filter(is_left), move |set| Some(set & (set - 1)).filter(is_left));
    rest.map(|set| set.trailing_zeros() as usize)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_the_set_bits_from_the_lowest() {
        for (set, want) in [(0, vec![]), (1, vec![0]), (0b1010, vec![1, 3]), (1 << 63 | 4, vec![2, 63])] {
            assert_eq!(members(set).collect::<Vec<_>>(), want);
        }
    }

    #[test]
    fn candidates_are_taken_from_the_best_and_added_ones_last() {
        let mut candidates =
            Candidates { heap: [(1, 5), (7, 2), (7, 9), (3, 4)].into_iter().collect(), more: Vec::new() };
        candidates.extend(vec![9, 8, 1, 8]);
        assert_eq!(candidates.len(), 6);
        assert_eq!(candidates.take(3), [9, 2, 4]);
        assert_eq!(candidates.take(2), [5, 8]);
        assert_eq!(candidates.take(9), [1]);
        assert!(candidates.is_empty() && candidates.take(1).is_empty());
    }

    #[test]
    fn idf_is_never_negative() {
        for (df, docs) in [(0, 0), (1, 1), (7, 5), (1, 1_000_000), (1_000_000, 1_000_000)] {
            assert!(rank::idf(df, docs) >= 0.0, "{df} {docs}");
        }
    }
}
