//! Search: returns the memories that match a query, the best first.
//!
//! The index provides candidates; the better ones are ranked again together with their neighbours. In a large
//! collection, terms that occur everywhere provide candidates only in combination, because one of them alone
//! would match half of the collection.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tanmi_base::Millis;
use tanmi_index::{MemoryFilter, MemoryIndex, MemoryKind, MemoryOutline, MemoryRow};

use crate::Result;
use crate::current::Replaced;
use crate::rank::{self, Collection, DocInContext, MAX_NEIGHBOUR_DISTANCE, SearchQuestion, Terms, WEIGHTS};
use crate::vectors::{Model, similarity};

#[derive(Clone, Debug)]
pub struct Hit {
    pub row: MemoryRow,
    /// From 0 to 1.
    pub score: f32,
    /// The content of the turn before a turn of a conversation; empty if there is none, or if it is hidden.
    pub before: String,
    /// The content of the turn after it.
    pub after: String,
    /// For a fact: the newer fact that replaces it, as inferred by [`crate::current`].
    pub replaced: Option<Replaced>,
}

/// Number of candidates that are ranked without their neighbours.
const CANDIDATES: usize = 120;
/// Number of candidates that are ranked with their neighbours.
const CONTEXT_CANDIDATES: usize = 24;
/// Number of memories that a query may visit in the index.
const MAX_VISITED: f64 = 4_000.0;
/// Number of the newest memories that are searched literally if no term matches.
const LITERAL_SEARCH_ROWS: i64 = 50_000;
/// Score of a literal match.
const LITERAL_SCORE: f32 = 0.1;
/// Number of terms that are combined into groups; the rarest are used.
const MAX_GROUPED_TERMS: usize = 6;

pub fn search(
    index: &MemoryIndex,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
) -> Result<Vec<Hit>> {
    let mut order = rank_by_terms(index, query, filter, limit, now)?;
    if order.is_empty() && !query.trim().is_empty() {
        // The query has only terms that occur in every memory, or a part of a word: search for the literal text.
        let found = index.containing(query.trim(), filter, LITERAL_SEARCH_ROWS, limit)?;
        order = found.into_iter().map(|n| (n, LITERAL_SCORE)).collect();
    }
    load_hits(index, order, limit)
}

/// Weight of vector similarity against terms. With a weak model, a higher weight makes results worse.
const VECTOR_WEIGHT: f32 = 0.2;

/// Searches by terms and by vector similarity.
pub fn search_with(
    index: &MemoryIndex,
    model: &Model,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
) -> Result<Vec<Hit>> {
    let pool_size = CONTEXT_CANDIDATES.max(limit * 2);
    let words: BTreeMap<i64, f32> =
        rank_by_terms(index, query, filter, pool_size, now)?.into_iter().collect();
    let query_vector = model.embed(query);
    let mut by_similarity: Vec<(i64, f32)> = Vec::new();
    index.vectors_of(&model.id)?.each(|n, vector| {
        let score = similarity(&query_vector, vector).max(0.0);
        if words.contains_key(&n) || score > 0.0 {
            by_similarity.push((n, score));
        }
    })?;
    by_similarity.sort_by(|(_, one), (_, two)| two.total_cmp(one));
    let mut order: Vec<(i64, f32)> = Vec::new();
    for (at, (n, score)) in by_similarity.iter().enumerate() {
        let term_score = words.get(n);
        if term_score.is_some() || at < pool_size {
            order.push((*n, (1.0 - VECTOR_WEIGHT) * term_score.unwrap_or(&0.0) + VECTOR_WEIGHT * score));
        }
    }
    let numbers: Vec<i64> = order.iter().map(|(n, _)| *n).collect();
    let wanted: BTreeSet<i64> = index
        .outlines(&numbers)?
        .iter()
        .filter(|outline| (filter.all || !outline.hidden) && matches_filter(outline, filter))
        .map(|outline| outline.n)
        .collect();
    order.retain(|(n, _)| wanted.contains(n));
    order.sort_by(|(a, one), (b, two)| two.total_cmp(one).then(a.cmp(b)));
    load_hits(index, order, limit)
}

/// Computes the missing vectors.
pub fn embed_missing(index: &MemoryIndex, model: &Model) -> Result<()> {
    let vectors = index.vectors_of(&model.id)?;
    loop {
        let missing = vectors.missing(2000)?;
        if missing.is_empty() {
            return Ok(());
        }
        index.transaction(|_| -> Result<()> {
            for (n, content) in &missing {
                vectors.put(*n, &model.embed(content))?;
            }
            Ok(())
        })?;
    }
}

fn load_hits(index: &MemoryIndex, mut order: Vec<(i64, f32)>, limit: usize) -> Result<Vec<Hit>> {
    order.truncate(limit);
    let rows = index.rows(&order.iter().map(|(n, _)| *n).collect::<Vec<_>>())?;
    let hit = |(n, score): (i64, f32)| {
        let row = rows.iter().find(|row| row.n == n)?.clone();
        Some(Hit { row, score, before: String::new(), after: String::new(), replaced: None })
    };
    Ok(order.into_iter().filter_map(hit).collect())
}

/// Adds to each turn the turns before and after it.
pub fn add_neighbours(index: &MemoryIndex, hits: &mut [Hit]) -> Result<()> {
    let turns =
        hits.iter().filter(|hit| hit.row.letter.kind() == MemoryKind::Turn && !hit.row.session.is_empty());
    let numbers: Vec<i64> = turns.flat_map(|hit| [hit.row.n - 1, hit.row.n + 1]).collect();
    if numbers.is_empty() {
        return Ok(());
    }
    let around = index.rows(&numbers)?;
    for hit in
        hits.iter_mut().filter(|hit| hit.row.letter.kind() == MemoryKind::Turn && !hit.row.session.is_empty())
    {
        let neighbour = |step: i64| {
            let near = around
                .iter()
                .find(|row| row.n == hit.row.n + step && row.session == hit.row.session && !row.hidden);
            near.map(|row| row.content.clone()).unwrap_or_default()
        };
        (hit.before, hit.after) = (neighbour(-1), neighbour(1));
    }
    Ok(())
}

/// Ranks memories by terms. Returns numbers and scores, the best first.
fn rank_by_terms(
    index: &MemoryIndex,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
) -> Result<Vec<(i64, f32)>> {
    let question = SearchQuestion::new(query, now);
    if question.terms.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let (docs, length) = index.collection_stats()?;
    let frequencies =
        question.terms.iter().map(|term| index.frequency(term)).collect::<Result<Vec<_>, _>>()?;
    let known = rarest_first(&question.terms, &frequencies);
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let pool_size = CANDIDATES.max(limit * 4);
    let mut first_pass = index.outlines(&find_candidates(index, &known, docs, filter, false, pool_size)?)?;
    if !filter.all && first_pass.iter().filter(|outline| outline.hidden).count() * 4 > first_pass.len() {
        // Most candidates are hidden: filter them in the index instead.
        first_pass = index.outlines(&find_candidates(index, &known, docs, filter, true, pool_size)?)?;
    }
    if first_pass.len() < pool_size / 4 {
        // Terms that never occur together provide no candidates. Then take the newest memories of each of the
        // rarest terms.
        let mut numbers: BTreeSet<i64> = first_pass.iter().map(|outline| outline.n).collect();
        for (_, term) in known.iter().take(3) {
            numbers.extend(index.matching(&[term], filter, true, pool_size / 2)?);
        }
        first_pass = index.outlines(&numbers.into_iter().collect::<Vec<_>>())?;
    }
    let collection = Collection { docs, length, frequencies };
    let mut order = rank_outlines(&question, &collection, &first_pass, filter);
    order.truncate(CONTEXT_CANDIDATES.max(limit * 2));
    let near = with_neighbours(&order, &first_pass);
    let second_pass = index.outlines(&near)?;
    let mut order = rank_outlines(&question, &collection, &second_pass, filter);
    order.truncate(limit);
    Ok(order)
}

/// Returns the terms that occur in the collection with their frequencies, the rarest first.
fn rarest_first<'a>(terms: &'a [String], frequencies: &[u64]) -> Vec<(u64, &'a str)> {
    let mut known: Vec<(u64, &str)> = terms
        .iter()
        .zip(frequencies)
        .filter(|(_, df)| **df > 0)
        .map(|(term, df)| (*df, term.as_str()))
        .collect();
    known.sort_unstable();
    known
}

/// Returns the memories with the most and the rarest of the terms, judged by the matching groups; among equals
/// the newest.
fn find_candidates(
    index: &MemoryIndex,
    known: &[(u64, &str)],
    docs: u64,
    filter: &MemoryFilter,
    is_strict: bool,
    limit: usize,
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
    Ok(order.into_iter().take(limit).map(|(_, n)| n).collect())
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

/// Ranks the memories that pass the filter. Returns their numbers and scores, the best first.
fn rank_outlines(
    question: &SearchQuestion,
    collection: &Collection,
    outlines: &[MemoryOutline],
    filter: &MemoryFilter,
) -> Vec<(i64, f32)> {
    let terms_by_number: BTreeMap<i64, Terms<'_>> = outlines
        .iter()
        .filter(|outline| filter.all || !outline.hidden)
        .map(|outline| {
            let terms = Terms::of(
                &outline.words,
                &outline.speaker,
                outline.is_question,
                outline.at,
                &outline.session,
            );
            (outline.n, terms)
        })
        .collect();
    // In a conversation the answer may contain none of the query terms; a fact must contain at least one.
    let has_query_term =
        |terms: &Terms<'_>| terms.own.iter().any(|term| question.terms.iter().any(|own| own == term));
    let wanted: Vec<&MemoryOutline> = outlines
        .iter()
        .filter(|outline| matches_filter(outline, filter))
        .filter(|outline| {
            terms_by_number
                .get(&outline.n)
                .is_some_and(|terms| outline.letter.kind() == MemoryKind::Turn || has_query_term(terms))
        })
        .collect();
    let docs: Vec<DocInContext<'_>> =
        wanted.iter().map(|outline| doc_in_context(outline.n, &terms_by_number)).collect();
    let scores = rank::scores(question, collection, &docs, &WEIGHTS);
    let mut order: Vec<(&MemoryOutline, f32)> =
        wanted.into_iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
    order.sort_by(|(a, one), (b, two)| two.total_cmp(one).then(b.at.cmp(&a.at)).then(a.n.cmp(&b.n)));
    order.into_iter().map(|(outline, score)| (outline.n, score)).collect()
}

/// Returns the better candidates and their neighbours. In a conversation a neighbour may be the answer, so the
/// range is wider.
fn with_neighbours(order: &[(i64, f32)], outlines: &[MemoryOutline]) -> Vec<i64> {
    let reach = |n: i64| {
        let is_turn =
            outlines.iter().any(|outline| outline.n == n && outline.letter.kind() == MemoryKind::Turn);
        MAX_NEIGHBOUR_DISTANCE as i64 * if is_turn { 2 } else { 1 }
    };
    let numbers: BTreeSet<i64> = order.iter().flat_map(|(n, _)| n - reach(*n)..=n + reach(*n)).collect();
    numbers.into_iter().collect()
}

/// Returns whether a memory passes the filter. Neighbours are filtered too.
fn matches_filter(outline: &MemoryOutline, filter: &MemoryFilter) -> bool {
    filter.letter.is_none_or(|letter| letter == outline.letter)
        && filter.kind.is_none_or(|kind| kind == outline.letter.kind())
        && filter.session.as_ref().is_none_or(|session| *session == outline.session)
        && filter.since.is_none_or(|since| outline.at.is_some_and(|at| at >= since))
        && filter.until.is_none_or(|until| outline.at.is_some_and(|at| at < until))
}

fn doc_in_context<'a>(n: i64, terms_by_number: &'a BTreeMap<i64, Terms<'a>>) -> DocInContext<'a> {
    let reach = MAX_NEIGHBOUR_DISTANCE as i64;
    let terms = &terms_by_number[&n];
    let near = terms_by_number
        .range(n - reach..=n + reach)
        .filter(|(other, near)| **other != n && !terms.session.is_empty() && near.session == terms.session);
    let near = near
        .map(|(other, terms)| (terms, usize::try_from((other - n).abs()).unwrap_or(usize::MAX)))
        .collect();
    DocInContext { terms, near }
}
