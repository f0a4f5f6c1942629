//! The choice of facts for a session start, among candidates from the index and the files.

use std::collections::BTreeSet;

use tanmi_index::MemoryRow;

use super::{StartQuery, ToldFact};
use crate::current::{self, Frequencies, Matter, Replaced};
use crate::search::Hit;
use crate::segment;

/// Facts that may be told, the best first. A fact can be in several lists.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub preferences: Vec<MemoryRow>,
    pub recent: Vec<MemoryRow>,
    pub related: Vec<MemoryRow>,
}

/// The maximum number of related facts that are told.
const MAX_RELATED: usize = 5;
/// The maximum number of related facts among which the told ones are chosen.
const MAX_CANDIDATES: usize = 2 * MAX_RELATED;
/// The maximum number of facts that are compared with each other.
const MAX_COMPARED: usize = 64;

/// A hit with a lower score is not related, unless it shares enough terms.
const MIN_SCORE: f32 = 0.08;
/// The number of shared terms, and the share of the terms of the fact in tenths, that make a fact related.
const MIN_SHARED: usize = 2;
const MIN_SHARED_TENTHS: usize = 3;

/// Returns the number of slots for preferences that do not expire: a third of all.
pub(super) fn preference_slots(query: &StartQuery<'_>) -> usize {
    query.facts.div_ceil(3)
}

/// Returns the facts among hits that are about a topic, the best first. The score of a hit depends on the length of the
/// topic and the size of the memory; the share of the terms of a fact that are in the topic does not.
pub(crate) fn related(hits: Vec<Hit>, topic: &str) -> Vec<MemoryRow> {
    let topic: BTreeSet<String> = content_terms(topic);
    let best = hits.first().map_or(0.0, |hit| hit.score);
    let shares_terms = |hit: &Hit| {
        let terms = content_terms(&hit.row.content);
        let shared = terms.intersection(&topic).count();
        shared >= MIN_SHARED && shared * 10 >= terms.len() * MIN_SHARED_TENTHS
    };
    // A hit that only shares a common word is not related.
    let is_related = |hit: &Hit| hit.score >= (best / 2.0).max(MIN_SCORE) || shares_terms(hit);
    hits.into_iter().filter(is_related).take(MAX_CANDIDATES).map(|hit| hit.row).collect()
}

/// Returns the terms of a text that carry meaning: words, and pairs of Chinese characters.
fn content_terms(text: &str) -> BTreeSet<String> {
    let is_single = |term: &str| !term.is_ascii() && term.chars().nth(1).is_none();
    segment::terms(text).into_iter().filter(|term| !segment::is_stop(term) && !is_single(term)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Recent,
    Related,
}

impl Candidates {
    /// Removes facts that were forgotten or superseded since they were indexed.
    pub fn remove(&mut self, hidden: &BTreeSet<String>) {
        for list in [&mut self.preferences, &mut self.recent, &mut self.related] {
            list.retain(|row| !hidden.contains(&row.id));
        }
    }

    /// Returns the recent facts, the newest first, and the related facts. Preferences have their slots among the recent
    /// facts. Near-duplicates are told once, and a replaced fact only after the newer one.
    pub fn choose(
        mut self,
        query: &StartQuery<'_>,
        frequencies: &Frequencies<'_>,
    ) -> (Vec<ToldFact>, Vec<ToldFact>) {
        for list in [&mut self.preferences, &mut self.recent] {
            list.sort_by_key(|row| std::cmp::Reverse((row.at, row.n)));
        }
        self.preferences.truncate(preference_slots(query));
        let recent = self.preferences.into_iter().chain(self.recent).map(|row| (Section::Recent, row));
        let related = self.related.into_iter().map(|row| (Section::Related, row));
        let all: Vec<(Section, MemoryRow)> = recent.chain(related).collect();
        let comparison = Comparison::new(&all, query, frequencies);
        let is_same = |a: usize, b: usize| all[a].1.id == all[b].1.id || comparison.is_duplicate(a, b);
        let mut told: Vec<(Section, usize)> = Vec::new();
        for (at, (section, _)) in all.iter().enumerate() {
            let limit = if *section == Section::Recent { query.facts } else { MAX_RELATED };
            for next in comparison.newest_first(at) {
                let is_full = told.iter().filter(|(of, _)| of == section).count() >= limit;
                if !is_full && !told.iter().any(|(_, other)| is_same(next, *other)) {
                    told.push((*section, next));
                }
            }
        }
        let of_section = |wanted: Section| -> Vec<ToldFact> {
            let chosen = told.iter().filter(|(section, _)| *section == wanted);
            chosen
                .map(|(_, at)| ToldFact { row: all[*at].1.clone(), replaced: comparison.mark(*at).cloned() })
                .collect()
        };
        let mut recent = of_section(Section::Recent);
        recent.sort_by_key(|fact| std::cmp::Reverse((fact.row.at, fact.row.n)));
        (recent, of_section(Section::Related))
    }
}

/// Which facts replace or repeat each other. Facts are compared in full only if they share words.
struct Comparison {
    newer: Vec<Option<(usize, Replaced)>>,
    duplicates: BTreeSet<(usize, usize)>,
}

impl Comparison {
    fn new(
        all: &[(Section, MemoryRow)],
        query: &StartQuery<'_>,
        frequencies: &Frequencies<'_>,
    ) -> Comparison {
        let mut words: Vec<Vec<u64>> =
            all.iter().take(MAX_COMPARED).map(|(_, row)| word_hashes(&row.content)).collect();
        remove_common(&mut words);
        let mut matters: Vec<Option<Option<Matter>>> = vec![None; words.len()];
        let mut comparison = Comparison { newer: vec![None; all.len()], duplicates: BTreeSet::new() };
        let mut newest: Vec<(Option<i64>, i64)> = vec![(None, 0); all.len()];
        for a in 0..words.len() {
            for b in a + 1..words.len() {
                if !has_two_common(&words[a], &words[b]) {
                    continue;
                }
                for at in [a, b] {
                    matters[at].get_or_insert_with(|| Matter::of(&all[at].1));
                }
                let (Some(Some(one)), Some(Some(two))) = (&matters[a], &matters[b]) else { continue };
                if one.is_near_duplicate(two) {
                    comparison.duplicates.extend([(a, b), (b, a)]);
                }
                for (old, new, older, newer) in [(a, b, one, two), (b, a, two, one)] {
                    let age = (all[new].1.at, all[new].1.n);
                    if age > newest[old]
                        && let Some(mark) = current::replaced(older, newer, frequencies, query.now)
                    {
                        (newest[old], comparison.newer[old]) = (age, Some((new, mark)));
                    }
                }
            }
        }
        comparison
    }

    /// Returns a fact after the facts that replace it, the newest first. Ends, because each step leads to a newer fact.
    fn newest_first(&self, at: usize) -> Vec<usize> {
        let mut chain: Vec<usize> =
            std::iter::successors(Some(at), |at| self.newer[*at].as_ref().map(|(newer, _)| *newer)).collect();
        chain.reverse();
        chain
    }

    fn mark(&self, at: usize) -> Option<&Replaced> {
        self.newer[at].as_ref().map(|(_, mark)| mark)
    }

    fn is_duplicate(&self, a: usize, b: usize) -> bool {
        self.duplicates.contains(&(a, b))
    }
}

/// Returns hashes of the beginnings of words and of the pairs of Chinese characters, sorted. Cheaper than terms: a hook
/// compares all facts that it may tell.
fn word_hashes(content: &str) -> Vec<u64> {
    const PREFIX: usize = 4;
    const MAX_CHARS: usize = 600;
    let add = |hash: u64, c: char| (hash ^ u64::from(c as u32)).wrapping_mul(0x0100_0000_01b3);
    let (mut hashes, mut word, mut len, mut last) = (Vec::new(), 0, 0, None);
    for c in content.chars().take(MAX_CHARS).chain([' ']) {
        if c.is_ascii_alphanumeric() {
            if len < PREFIX {
                word = add(word, c.to_ascii_lowercase());
            }
            len += 1;
            last = None;
            continue;
        }
        // Shorter words are mostly those without meaning.
        if len >= 3 {
            hashes.push(word);
        }
        (word, len) = (0, 0);
        let is_wide = !c.is_ascii() && c.is_alphanumeric();
        if let Some(last) = last.filter(|_| is_wide) {
            hashes.push(add(add(1, last), c));
        }
        last = is_wide.then_some(c);
    }
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Removes the words that more than every fourth fact has: they show nothing about a pair of facts.
fn remove_common(words: &mut [Vec<u64>]) {
    const MIN_FACTS: usize = 8;
    let limit = (words.len() / 4).max(MIN_FACTS);
    let mut all: Vec<u64> = words.iter().flatten().copied().collect();
    all.sort_unstable();
    let same = all.chunk_by(|one, other| one == other);
    let common: Vec<u64> = same.filter(|same| same.len() > limit).map(|same| same[0]).collect();
    for list in words {
        list.retain(|hash| common.binary_search(hash).is_err());
    }
}

/// Returns whether two sorted lists have two elements in common.
fn has_two_common(a: &[u64], b: &[u64]) -> bool {
    let (mut at, mut to, mut common) = (0, 0, 0);
    while at < a.len() && to < b.len() && common < 2 {
        match a[at].cmp(&b[to]) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => to += 1,
            std::cmp::Ordering::Equal => (at, to, common) = (at + 1, to + 1, common + 1),
        }
    }
    common >= 2
}
