//! A question and the memories that answer it, best first.
//!
//! The index brings candidates, of which the better ones are looked at with their neighbours. In a large collection terms
//! that are everywhere bring candidates only together: one of them alone would bring half of everything.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tanmi_base::Millis;
use tanmi_index::{MemoryFilter, MemoryIndex, MemoryOutline, MemoryRow};

use crate::Result;
use crate::rank::{self, Collection, DocInContext, REACH, SearchQuestion, Terms, WEIGHTS};
use crate::vectors::{Model, similarity};

#[derive(Clone, Debug)]
pub struct Hit {
    pub row: MemoryRow,
    /// 0 to 1.
    pub score: f32,
}

/// Looked at by themselves.
const CANDIDATES: usize = 120;
/// Looked at among their neighbours.
const CLOSER: usize = 24;
/// How many memories a question may touch in the index.
const TOUCHED: f64 = 4_000.0;
/// How many of the newest memories are read through for a text that no term finds.
const LOOKED_THROUGH: i64 = 50_000;
/// The score of one found so.
const AS_IT_STANDS: f32 = 0.1;
/// Terms that are put together into groups, the rarest.
const GROUPED: usize = 6;

pub fn search(
    index: &MemoryIndex,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
) -> Result<Vec<Hit>> {
    let mut order = by_words(index, query, filter, limit, now)?;
    if order.is_empty() && !query.trim().is_empty() {
        // Words that are in everything, or a part of a word: then the text as it stands.
        let found = index.containing(query.trim(), filter, LOOKED_THROUGH, limit)?;
        order = found.into_iter().map(|n| (n, AS_IT_STANDS)).collect();
    }
    hits(index, order, limit)
}

/// What the meaning counts for, against the words. A weak model with more weight makes results worse.
const MEANING: f32 = 0.2;

/// By words and by meaning, with a model.
pub fn search_with(
    index: &MemoryIndex,
    model: &Model,
    query: &str,
    filter: &MemoryFilter,
    limit: usize,
    now: Millis,
) -> Result<Vec<Hit>> {
    let wide = CLOSER.max(limit * 2);
    let words: BTreeMap<i64, f32> = by_words(index, query, filter, wide, now)?.into_iter().collect();
    let asked = model.embed(query);
    let mut meant: Vec<(i64, f32)> = Vec::new();
    index.each_vector(|n, vector| {
        let close = similarity(&asked, vector).max(0.0);
        if words.contains_key(&n) || close > 0.0 {
            meant.push((n, close));
        }
    })?;
    meant.sort_by(|(_, one), (_, two)| two.total_cmp(one));
    let mut order: Vec<(i64, f32)> = Vec::new();
    for (at, (n, close)) in meant.iter().enumerate() {
        let by_words = words.get(n);
        if by_words.is_some() || at < wide {
            order.push((*n, (1.0 - MEANING) * by_words.unwrap_or(&0.0) + MEANING * close));
        }
    }
    let numbers: Vec<i64> = order.iter().map(|(n, _)| *n).collect();
    let wanted: BTreeSet<i64> = index
        .outlines(&numbers)?
        .iter()
        .filter(|outline| (filter.all || !outline.hidden) && is_wanted(outline, filter))
        .map(|outline| outline.n)
        .collect();
    order.retain(|(n, _)| wanted.contains(n));
    order.sort_by(|(a, one), (b, two)| two.total_cmp(one).then(a.cmp(b)));
    hits(index, order, limit)
}

/// Makes the vectors that are missing.
pub fn embed_missing(index: &MemoryIndex, model: &Model) -> Result<()> {
    index.use_model(&model.id)?;
    loop {
        let missing = index.without_vector(2000)?;
        if missing.is_empty() {
            return Ok(());
        }
        index.transaction(|index| -> Result<()> {
            for (n, content) in &missing {
                index.put_vector(*n, &model.embed(content))?;
            }
            Ok(())
        })?;
    }
}

fn hits(index: &MemoryIndex, mut order: Vec<(i64, f32)>, limit: usize) -> Result<Vec<Hit>> {
    order.truncate(limit);
    let rows = index.rows(&order.iter().map(|(n, _)| *n).collect::<Vec<_>>())?;
    let hit = |(n, score): (i64, f32)| {
        let row = rows.iter().find(|row| row.n == n)?.clone();
        Some(Hit { row, score })
    };
    Ok(order.into_iter().filter_map(hit).collect())
}

/// Numbers and scores, best first.
fn by_words(
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
    let (docs, length) = index.collection()?;
    let frequencies =
        question.terms.iter().map(|term| index.frequency(term)).collect::<Result<Vec<_>, _>>()?;
    let known = rarest_first(&question.terms, &frequencies);
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let wide = CANDIDATES.max(limit * 4);
    let mut alone = index.outlines(&candidates(index, &known, docs, filter, false, wide)?)?;
    if !filter.all && alone.iter().filter(|outline| outline.hidden).count() * 4 > alone.len() {
        // Mostly what was forgotten: then each is asked for what it is.
        alone = index.outlines(&candidates(index, &known, docs, filter, true, wide)?)?;
    }
    if alone.len() < wide / 4 {
        // Terms that never meet bring nothing together; then each of the rarest brings its newest.
        let mut numbers: BTreeSet<i64> = alone.iter().map(|outline| outline.n).collect();
        for (_, term) in known.iter().take(3) {
            numbers.extend(index.matching(&[term], filter, true, wide / 2)?);
        }
        alone = index.outlines(&numbers.into_iter().collect::<Vec<_>>())?;
    }
    let collection = Collection { docs, length, frequencies };
    let mut order = ranked(&question, &collection, &alone, filter);
    order.truncate(CLOSER.max(limit * 2));
    let near = neighbourhood(&order, &alone);
    let around = index.outlines(&near)?;
    let mut order = ranked(&question, &collection, &around, filter);
    order.truncate(limit);
    Ok(order)
}

/// The terms that occur at all, with how often.
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

/// Memories with the most and the rarest of the terms, as far as their groups tell; among equals the newest.
fn candidates(
    index: &MemoryIndex,
    known: &[(u64, &str)],
    docs: u64,
    filter: &MemoryFilter,
    is_strict: bool,
    limit: usize,
) -> Result<Vec<i64>> {
    let mut found: HashMap<i64, u64> = HashMap::new();
    for group in groups(known, docs) {
        let terms: Vec<&str> = members(group).map(|at| known[at].1).collect();
        for n in index.matching(&terms, filter, is_strict, TOUCHED as usize)? {
            *found.entry(n).or_default() |= group;
        }
    }
    let weigh = |set: u64| members(set).map(|at| rank::idf(known[at].0, docs)).sum::<f32>();
    let mut order: Vec<(f32, i64)> = found.into_iter().map(|(n, set)| (weigh(set), n)).collect();
    order.sort_by(|(one, a), (two, b)| two.total_cmp(one).then(b.cmp(a)));
    Ok(order.into_iter().take(limit).map(|(_, n)| n).collect())
}

/// Places of the terms in a set of them.
fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |at| set & (1 << at) != 0)
}

/// Which terms, or which of them together, bring candidates: as few together as the size of the collection allows.
fn groups(known: &[(u64, &str)], docs: u64) -> Vec<u64> {
    let known = &known[..known.len().min(u64::BITS as usize)];
    let total: u64 = known.iter().map(|(df, _)| df).sum();
    if (total as f64) < TOUCHED {
        return (0..known.len()).map(|at| 1 << at).collect();
    }
    let known = &known[..known.len().min(GROUPED)];
    let docs = docs.max(1) as f64;
    let mut left = TOUCHED;
    let mut chosen: Vec<u64> = Vec::new();
    let mut subsets: Vec<u64> = (1..1u64 << known.len()).collect();
    subsets.sort_by_key(|set| (set.count_ones(), *set));
    for set in subsets {
        let expected = members(set).map(|at| known[at].0 as f64 / docs).product::<f64>() * docs;
        // A group within this one brings everything that this one would.
        if expected <= left && !chosen.iter().any(|other| other & set == *other) {
            left -= expected;
            chosen.push(set);
        }
    }
    chosen
}

/// The numbers of what is wanted among these, with their scores, best first.
fn ranked(
    question: &SearchQuestion,
    collection: &Collection,
    outlines: &[MemoryOutline],
    filter: &MemoryFilter,
) -> Vec<(i64, f32)> {
    let ready: BTreeMap<i64, Terms<'_>> = outlines
        .iter()
        .filter(|outline| filter.all || !outline.hidden)
        .map(|outline| {
            let terms =
                Terms::of(&outline.words, &outline.speaker, outline.asks, outline.at, &outline.session);
            (outline.n, terms)
        })
        .collect();
    // In a conversation the answer may have none of the question's words; a fact stands for itself.
    let has_own =
        |terms: &Terms<'_>| terms.own.iter().any(|term| question.terms.iter().any(|own| own == term));
    let wanted: Vec<&MemoryOutline> = outlines
        .iter()
        .filter(|outline| is_wanted(outline, filter))
        .filter(|outline| ready.get(&outline.n).is_some_and(|terms| outline.kind == "turn" || has_own(terms)))
        .collect();
    let placed: Vec<DocInContext<'_>> = wanted.iter().map(|outline| placed(outline.n, &ready)).collect();
    let scores = rank::scores(question, collection, &placed, &WEIGHTS);
    let mut order: Vec<(&MemoryOutline, f32)> =
        wanted.into_iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
    order.sort_by(|(a, one), (b, two)| two.total_cmp(one).then(b.at.cmp(&a.at)).then(a.n.cmp(&b.n)));
    order.into_iter().map(|(outline, score)| (outline.n, score)).collect()
}

/// The better ones and what stands around them; in a conversation the neighbours themselves may be the answer.
fn neighbourhood(order: &[(i64, f32)], outlines: &[MemoryOutline]) -> Vec<i64> {
    let reach = |n: i64| {
        let is_turn = outlines.iter().any(|outline| outline.n == n && outline.kind == "turn");
        REACH as i64 * if is_turn { 2 } else { 1 }
    };
    let numbers: BTreeSet<i64> = order.iter().flat_map(|(n, _)| n - reach(*n)..=n + reach(*n)).collect();
    numbers.into_iter().collect()
}

/// Neighbours obey the filter like everybody else.
fn is_wanted(outline: &MemoryOutline, filter: &MemoryFilter) -> bool {
    filter.letter.as_ref().is_none_or(|letter| *letter == outline.letter)
        && filter.session.as_ref().is_none_or(|session| *session == outline.session)
        && filter.since.is_none_or(|since| outline.at.is_some_and(|at| at >= since))
        && filter.until.is_none_or(|until| outline.at.is_some_and(|at| at < until))
}

fn placed<'a>(n: i64, ready: &'a BTreeMap<i64, Terms<'a>>) -> DocInContext<'a> {
    let reach = REACH as i64;
    let terms = &ready[&n];
    let near = ready
        .range(n - reach..=n + reach)
        .filter(|(other, near)| **other != n && !terms.session.is_empty() && near.session == terms.session);
    let near = near
        .map(|(other, terms)| (terms, usize::try_from((other - n).abs()).unwrap_or(usize::MAX)))
        .collect();
    DocInContext { terms, near }
}
