//! Search by vector similarity, together with search by terms.

use std::collections::{BTreeMap, BTreeSet};

use tanmi_index::{MemoryFilter, MemoryIndex};

use super::matches_filter;
use crate::Result;
use crate::vectors::{Model, similarity};

/// Weight of vector similarity against terms. With a weak model, a higher weight makes results worse.
const VECTOR_WEIGHT: f32 = 0.2;
/// Score by terms from which on the best memory by terms stays the first: a model knows less about it than its words.
const STRONG_MATCH: f32 = 0.15;
/// Number of the best memories of each kind of search that are compared.
const POOL: usize = 100;
/// Number of memories that are found by the signs of their vectors and compared in full.
const RESCORED: usize = 400;

/// Ranks memories by terms and by similarity. `rank_by_terms` returns the best memories by terms.
pub(super) fn rank(
    index: &MemoryIndex,
    model: &Model,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    rank_by_terms: &dyn Fn(usize) -> Result<Vec<(i64, f32)>>,
) -> Result<Vec<(i64, f32)>> {
    let by_terms = rank_by_terms(limit.max(POOL))?;
    let (compared, rest) = by_terms.split_at(by_terms.len().min(POOL));
    let similar = find_similar(index, model, query, filter, compared)?;
    // Scores by terms are low for turns and for long questions: similarity counts relative to the best of them.
    let scale = VECTOR_WEIGHT * compared.first().map_or(1.0, |(_, best)| *best);
    let mut scores: BTreeMap<i64, f32> = similar.into_iter().map(|(n, score)| (n, scale * score)).collect();
    for (n, score) in compared {
        *scores.entry(*n).or_default() += (1.0 - VECTOR_WEIGHT) * score;
    }
    if let Some((first, _)) = compared.first().filter(|(_, score)| *score >= STRONG_MATCH) {
        let best = scores.values().copied().fold(0.0, f32::max);
        scores.insert(*first, best + f32::EPSILON);
    }
    let mut order: Vec<(i64, f32)> = scores.into_iter().collect();
    order.sort_by(|(a, one), (b, two)| two.total_cmp(one).then(a.cmp(b)));
    let known: BTreeSet<i64> = order.iter().map(|(n, _)| *n).collect();
    let worst = order.last().map_or(1.0, |(_, score)| *score);
    let rest = rest.iter().filter(|(n, _)| !known.contains(n));
    order.extend(rest.map(|(n, score)| (*n, score.min(worst))));
    Ok(order)
}

/// Returns the similarity of the memories that are closest to the query, and of those that were found by terms.
fn find_similar(
    index: &MemoryIndex,
    model: &Model,
    query: &str,
    filter: &MemoryFilter,
    by_terms: &[(i64, f32)],
) -> Result<Vec<(i64, f32)>> {
    let query = model.embed(query);
    let vectors = index.vectors_of(&model.id)?;
    let found: BTreeSet<i64> = by_terms.iter().map(|(n, _)| *n).collect();
    let mut numbers = vectors.nearest_by_sign(&query, RESCORED)?;
    numbers.extend(&found);
    let mut scored: Vec<(i64, f32)> = Vec::new();
    vectors.visit(&numbers, |n, vector| scored.push((n, similarity(&query, vector).max(0.0))))?;
    scored.retain(|(n, score)| *score > 0.0 || found.contains(n));
    scored.sort_by(|(a, one), (b, two)| two.total_cmp(one).then(a.cmp(b)));
    let outlines = index.outlines(&scored.iter().map(|(n, _)| *n).collect::<Vec<_>>())?;
    let wanted: BTreeSet<i64> = outlines
        .iter()
        .filter(|outline| (filter.all || !outline.hidden) && matches_filter(outline, filter))
        .map(|outline| outline.n)
        .collect();
    scored.retain(|(n, _)| wanted.contains(n));
    let mut rank = 0;
    scored.retain(|(n, _)| {
        rank += 1;
        rank <= POOL || found.contains(n)
    });
    Ok(scored)
}

/// Computes the missing vectors.
pub fn embed_missing(index: &MemoryIndex, model: &Model) -> Result<()> {
    let vectors = index.vectors_of(&model.id)?;
    loop {
        let missing = vectors.missing(2000)?;
        if missing.is_empty() {
            return Ok(());
        }
        let embedded: Vec<(i64, Vec<u8>)> =
            missing.iter().map(|(n, content)| (*n, model.embed(content))).collect();
        index.transaction(|_| -> Result<()> { Ok(vectors.put(&embedded)?) })?;
    }
}
