//! Search: returns the memories that match a query, the best first.
//!
//! The index provides candidates; the better ones are ranked again together with their neighbours. Candidates
//! are ranked in portions of fixed size, and a further portion only if the ones before it have too few
//! results. So the number of wanted results does not change their order.

use std::collections::{BTreeMap, BTreeSet};

use tanmi_base::Millis;
use tanmi_index::{LexiconIndex, MemoryFilter, MemoryIndex, MemoryKind, MemoryOutline, MemoryRow};

use crate::Result;
use crate::current::Replaced;
use crate::expand::{self, Vocabulary};
use crate::rank::{self, Collection, DocInContext, MAX_NEIGHBOUR_DISTANCE, SearchQuestion, Terms, WEIGHTS};
use crate::vectors::Model;

mod candidates;
mod semantic;
#[cfg(test)]
mod tests;

use candidates::{Candidates, find_candidates, rarest_first};
pub use semantic::embed_missing;

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

/// Number of candidates that are ranked together without their neighbours.
const CANDIDATES: usize = 120;
/// Number of candidates that are ranked together with their neighbours.
const CONTEXT_CANDIDATES: usize = 24;
/// Number of the newest memories that are searched literally if no term matches.
const LITERAL_SEARCH_ROWS: i64 = 50_000;
/// Score of a literal match.
const LITERAL_SCORE: f32 = 0.1;

/// What a search for a question uses besides the terms of the question.
#[derive(Clone, Copy, Default)]
pub struct SearchAids<'a> {
    /// Dictionaries of the user, in addition to the glossary.
    pub lexicon: Option<&'a LexiconIndex>,
    pub model: Option<&'a Model>,
}

/// Returns the memories that share terms with a text.
pub fn search(
    index: &MemoryIndex,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
) -> Result<Vec<Hit>> {
    let search = TermSearch::new(index, query, filter, now, None)?;
    let order = search.map_or(Ok(Vec::new()), |search| search.rank(limit))?;
    load_hits_or_find_literally(index, query, filter, order, limit)
}

/// Returns the memories that answer a question: also memories in the other language, and those of a day that
/// the question names.
pub fn answer(
    index: &MemoryIndex,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
    aids: SearchAids<'_>,
) -> Result<Vec<Hit>> {
    let search = TermSearch::new(index, query, filter, now, Some(aids.lexicon))?;
    let rank = |limit: usize| search.as_ref().map_or(Ok(Vec::new()), |search| search.rank(limit));
    let order = match aids.model {
        Some(model) => semantic::rank(index, model, query, filter, limit, &rank)?,
        None => rank(limit)?,
    };
    load_hits_or_find_literally(index, query, filter, order, limit)
}

/// Loads the memories of an order. If it is empty, the query has only terms that occur in every memory, or a part of a
/// word: then searches for the literal text.
fn load_hits_or_find_literally(
    index: &MemoryIndex,
    query: &str,
    filter: &MemoryFilter,
    mut order: Vec<(i64, f32)>,
    limit: usize,
) -> Result<Vec<Hit>> {
    if order.is_empty() && !query.trim().is_empty() {
        let found = index.containing(query.trim(), filter, LITERAL_SEARCH_ROWS, limit)?;
        order = found.into_iter().map(|n| (n, LITERAL_SCORE)).collect();
    }
    load_hits(index, order, limit)
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

/// A search by the terms of a question.
struct TermSearch<'a> {
    index: &'a MemoryIndex,
    filter: &'a MemoryFilter,
    question: SearchQuestion,
    collection: Collection,
    /// The terms that provide candidates, with their frequencies.
    known: Vec<(String, u64)>,
    /// Whether a memory of a day that the question names matches without a common term.
    has_days: bool,
}

impl<'a> TermSearch<'a> {
    /// Prepares a search. `translate` is given for a question, with the dictionaries of the user. Returns `None` if no
    /// term is known.
    fn new(
        index: &'a MemoryIndex,
        query: &str,
        filter: &'a MemoryFilter,
        now: Millis,
        translate: Option<Option<&LexiconIndex>>,
    ) -> Result<Option<TermSearch<'a>>> {
        let mut question = SearchQuestion::new(query, now);
        let (docs, length) = index.collection_stats()?;
        let frequency = |term: &str| Ok(index.frequency(term)?);
        let mut frequencies =
            question.terms.iter().map(|term| frequency(term)).collect::<Result<Vec<_>>>()?;
        let mut day_terms = Vec::new();
        if let Some(lexicon) = translate {
            // The frequencies of the question's own terms are known already.
            let own =
                |term: &str| question.terms.iter().position(|own| own == term).map(|at| frequencies[at]);
            let any = |term: &str| own(term).map_or_else(|| frequency(term), Ok);
            let expansion = expand::expand(query, lexicon, &Vocabulary { docs, frequency: &any })?;
            question.add_terms(expansion, &mut frequencies);
            for term in question.day_terms().into_iter().filter(|term| !question.terms.contains(term)) {
                let df = frequency(&term)?;
                day_terms.push((term, df));
            }
        }
        let mut known: Vec<(String, u64)> =
            question.terms.iter().cloned().zip(frequencies.iter().copied()).collect();
        known.extend(day_terms);
        known.retain(|(_, df)| *df > 0);
        let collection = Collection { docs, length, frequencies };
        let search = TermSearch { index, filter, question, collection, known, has_days: translate.is_some() };
        Ok((!search.known.is_empty()).then_some(search))
    }

    /// Returns numbers and scores of at least `limit` memories, if as many match, the best first.
    fn rank(&self, limit: usize) -> Result<Vec<(i64, f32)>> {
        let mut order: Vec<(i64, f32)> = Vec::new();
        if limit == 0 {
            return Ok(order);
        }
        let mut candidates = self.candidates(false)?;
        let mut is_first = true;
        while order.len() < limit && !candidates.is_empty() {
            let mut outlines = self.index.outlines(&candidates.take(CANDIDATES))?;
            if std::mem::take(&mut is_first) && !self.filter.all && is_mostly_hidden(&outlines) {
                // Filter hidden memories in the index instead.
                candidates = self.candidates(true)?;
                outlines = self.index.outlines(&candidates.take(CANDIDATES))?;
            }
            let ranked = self.rank_outlines(&outlines);
            for portion in ranked.chunks(CONTEXT_CANDIDATES) {
                if order.len() < limit {
                    self.rank_with_neighbours(portion, &outlines, &mut order)?;
                }
            }
        }
        Ok(order)
    }

    /// Ranks candidates and their neighbours, and appends them to the order.
    fn rank_with_neighbours(
        &self,
        portion: &[(i64, f32)],
        outlines: &[MemoryOutline],
        order: &mut Vec<(i64, f32)>,
    ) -> Result<()> {
        let near = self.index.outlines(&with_neighbours(portion, outlines))?;
        let ranked = self.rank_outlines(&near);
        let known: BTreeSet<i64> = order.iter().map(|(n, _)| *n).collect();
        let worst = order.last().map_or(1.0, |(_, score)| *score);
        let new = ranked.into_iter().filter(|(n, _)| !known.contains(n));
        order.extend(new.map(|(n, score)| (n, score.min(worst))));
        Ok(())
    }

    /// Returns the candidates. Hidden memories are left out if `is_strict` is set.
    fn candidates(&self, is_strict: bool) -> Result<Candidates> {
        let known = rarest_first(&self.known);
        let mut found = find_candidates(self.index, &known, self.collection.docs, self.filter, is_strict)?;
        if found.len() < CANDIDATES / 4 {
            // Terms that never occur together provide no candidates. Then take the newest memories of each of the
            // rarest terms.
            for (_, term) in known.iter().take(3) {
                found.extend(self.index.matching(&[term], self.filter, true, CANDIDATES / 2)?);
            }
        }
        Ok(found)
    }

    /// Ranks the memories that pass the filter. Returns their numbers and scores, the best first.
    fn rank_outlines(&self, outlines: &[MemoryOutline]) -> Vec<(i64, f32)> {
        let is_visible = |outline: &&MemoryOutline| self.filter.all || !outline.hidden;
        let terms_by_number: BTreeMap<i64, Terms<'_>> =
            outlines.iter().filter(is_visible).map(|outline| (outline.n, terms_of(outline))).collect();
        let wanted: Vec<&MemoryOutline> = outlines
            .iter()
            .filter(|outline| matches_filter(outline, self.filter))
            .filter(|outline| terms_by_number.get(&outline.n).is_some_and(|terms| self.can_answer(terms)))
            .collect();
        let docs: Vec<DocInContext<'_>> =
            wanted.iter().map(|outline| doc_in_context(outline.n, &terms_by_number)).collect();
        let scores = rank::scores(&self.question, &self.collection, &docs, &WEIGHTS);
        let mut order: Vec<(&MemoryOutline, f32)> =
            wanted.into_iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
        order.sort_by(|(a, one), (b, two)| two.total_cmp(one).then(b.at.cmp(&a.at)).then(a.n.cmp(&b.n)));
        order.into_iter().map(|(outline, score)| (outline.n, score)).collect()
    }

    /// Returns whether a memory can be a result. In a conversation the answer may contain none of the query
    /// terms; a fact must contain at least one, or be of the day that the question names.
    fn can_answer(&self, terms: &Terms<'_>) -> bool {
        terms.is_turn
            || terms
                .own
                .iter()
                .any(|term| self.question.can_have(term) && self.question.terms.iter().any(|own| own == term))
            || self.has_days && self.question.day_score(terms.at) >= 1.0
    }
}

fn is_mostly_hidden(outlines: &[MemoryOutline]) -> bool {
    outlines.iter().filter(|outline| outline.hidden).count() * 4 > outlines.len()
}

fn terms_of(outline: &MemoryOutline) -> Terms<'_> {
    let is_turn = outline.letter.kind() == MemoryKind::Turn;
    Terms::of(&outline.words, &outline.speaker, outline.features, is_turn, outline.at, &outline.session)
}

/// Returns the better candidates and their neighbours. In a conversation a neighbour may be the answer, so the
/// range is wider.
fn with_neighbours(order: &[(i64, f32)], outlines: &[MemoryOutline]) -> Vec<i64> {
    let reach = |n: i64| {
        let is_turn =
            outlines.iter().any(|outline| outline.n == n && outline.letter.kind() == MemoryKind::Turn);
        MAX_NEIGHBOUR_DISTANCE * if is_turn { 2 } else { 1 }
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
    let reach = MAX_NEIGHBOUR_DISTANCE;
    let terms = &terms_by_number[&n];
    let near = terms_by_number
        .range(n - reach..=n + reach)
        .filter(|(other, near)| **other != n && !terms.session.is_empty() && near.session == terms.session);
    DocInContext { terms, near: near.map(|(other, terms)| (terms, other - n)).collect() }
}
