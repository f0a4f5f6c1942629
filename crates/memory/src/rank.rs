//! Ranking: how well a memory answers a question. BM25 over its terms and, with less weight, over those of its
//! neighbours in the conversation, with a bonus for the speaker and the day that the question names.
//!
//! Candidates come from the index; this module orders a few hundred of them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tanmi_base::Millis;

use crate::dates::{self, DatePattern};
use crate::segment;

/// The fields of a memory that its terms are made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doc<'a> {
    pub content: &'a str,
    pub speaker: &'a str,
    pub entities: &'a str,
    pub at: Option<Millis>,
}

/// Weights of ranking. k1 and b are lower than for documents, because memories are short, repeat little and vary
/// in length.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    pub k1: f32,
    pub b: f32,
    /// Weight of a term in the memory directly before or after.
    pub near: f32,
    /// Factor on `near` for each further step of distance.
    pub fade: f32,
    /// Bonus for a memory of the speaker that the question names.
    pub speaker: f32,
    pub day: f32,
    /// Bonus for a session that is about the question as a whole.
    pub session: f32,
    /// Penalty for a memory that is a question itself.
    pub question: f32,
    /// Bonus for query terms that are adjacent in the text too.
    pub pair: f32,
}

pub const WEIGHTS: Weights = Weights {
    k1: 0.6,
    b: 0.15,
    near: 0.25,
    fade: 0.7,
    speaker: 0.2,
    day: 0.5,
    session: 1.2,
    question: 0.25,
    pair: 0.25,
};

/// Returns the terms of a memory for the index: those of its content, its speaker, its entities and its day.
pub fn body_terms(doc: &Doc<'_>) -> Vec<String> {
    let mut terms = segment::terms(doc.content);
    if !doc.speaker.is_empty() && !doc.content.starts_with(doc.speaker) {
        terms.extend(segment::terms(doc.speaker));
    }
    terms.extend(segment::terms(doc.entities));
    if let Some(date) = doc.at.and_then(DatePattern::utc_date) {
        terms.push(date.to_string());
        terms.push(date.year().to_string());
        terms.extend(segment::terms(dates::month_name(date.month())));
        terms.push(format!("{}月{}日", date.month(), date.day()));
    }
    terms.retain(|term| !segment::is_stop(term));
    terms
}

/// A memory prepared for ranking.
pub struct Terms<'a> {
    /// The terms of its content, as joined by [`join_terms`].
    pub own: Vec<&'a str>,
    pub speaker: Vec<String>,
    /// Whether it is a question.
    pub is_question: bool,
    pub at: Option<Millis>,
    pub session: &'a str,
}

impl<'a> Terms<'a> {
    pub fn of(
        join_terms: &'a str,
        speaker: &str,
        is_question: bool,
        at: Option<Millis>,
        session: &'a str,
    ) -> Terms<'a> {
        let own = join_terms.split(' ').filter(|term| !term.is_empty()).collect();
        let speaker = if speaker.is_empty() { Vec::new() } else { segment::terms(speaker) };
        Terms { own, speaker, is_question, at, session }
    }
}

/// Returns whether a text ends like a question.
pub fn is_question(end: &str) -> bool {
    end.trim_end().ends_with(['?', '？'])
}

/// Joins terms into one text. Invariant: no term contains a space.
pub fn join_terms(terms: &[String]) -> String {
    terms.join(" ")
}

/// A memory with its neighbours: those of its session within [`MAX_NEIGHBOUR_DISTANCE`], each with its distance.
pub struct DocInContext<'a> {
    pub terms: &'a Terms<'a>,
    pub near: Vec<(&'a Terms<'a>, usize)>,
}

/// Maximum distance of a neighbour.
pub const MAX_NEIGHBOUR_DISTANCE: usize = 2;

/// A query prepared for ranking.
pub struct SearchQuestion {
    pub terms: Vec<String>,
    pub days: Vec<DatePattern>,
}

impl SearchQuestion {
    pub fn new(text: &str, now: Millis) -> SearchQuestion {
        SearchQuestion { terms: segment::query_terms(text), days: dates::find_dates(text, now) }
    }
}

/// Statistics of the collection.
pub struct Collection {
    pub docs: u64,
    /// Average number of terms per memory.
    pub length: f32,
    /// Number of memories that contain each query term, in the order of the query terms.
    pub frequencies: Vec<u64>,
}

/// Returns the score of each memory, from 0 to 1, in the order of `docs`.
pub fn scores(
    question: &SearchQuestion,
    collection: &Collection,
    docs: &[DocInContext<'_>],
    weights: &Weights,
) -> Vec<f32> {
    let scorer = Scorer::new(question, collection, weights);
    let mut scores: Vec<f32> = docs
        .iter()
        .map(|doc| {
            let date = doc.terms.at.and_then(DatePattern::utc_date);
            let fit = date.map_or(0.0, |date| {
                question.days.iter().map(|day| day.match_score(date)).fold(0.0, f32::max)
            });
            scorer.score_text(doc) + weights.day * fit
        })
        .collect();
    boost_sessions(docs, &mut scores, weights.session);
    scores.into_iter().map(|score| score / (1.0 + score)).collect()
}

/// FNV-1a, a fast hash for a few short words that are looked up a hundred thousand times.
#[derive(Default)]
struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Returns the inverse document frequency of a term.
pub fn idf(df: u64, docs: u64) -> f32 {
    let n = docs.max(1) as f32;
    let df = (df as f32).min(n);
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

struct Scorer<'a> {
    index: HashMap<&'a str, usize, BuildHasherDefault<FastHasher>>,
    idf: Vec<f32>,
    /// The score of a memory that contains every term.
    best: f32,
    length: f32,
    weights: &'a Weights,
}

impl<'a> Scorer<'a> {
    fn new(question: &'a SearchQuestion, collection: &Collection, weights: &'a Weights) -> Scorer<'a> {
        let idf: Vec<f32> = collection.frequencies.iter().map(|df| idf(*df, collection.docs)).collect();
        let best = idf.iter().map(|idf| idf * (weights.k1 + 1.0)).sum::<f32>().max(f32::EPSILON);
        let index = question.terms.iter().enumerate().map(|(at, term)| (term.as_str(), at)).collect();
        Scorer { index, idf, best, length: collection.length.max(1.0), weights }
    }

    fn score_text(&self, doc: &DocInContext<'_>) -> f32 {
        let weights = self.weights;
        let own = &doc.terms.own;
        let mut counts = vec![0.0f32; self.idf.len()];
        self.count(own, 1.0, &mut counts);
        for (terms, distance) in &doc.near {
            let weight = weights.near * weights.fade.powi(i32::try_from(*distance).unwrap_or(9) - 1);
            self.count(&terms.own, weight, &mut counts);
        }
        let mut score = self.bm25(&counts, own.len() as f32 / self.length);
        score += weights.pair * self.pair_score(own);
        if doc.terms.speaker.iter().any(|term| self.index.contains_key(term.as_str())) {
            score *= 1.0 + weights.speaker;
        }
        if doc.terms.is_question {
            score *= 1.0 - weights.question;
        }
        score / self.best
    }

    fn count(&self, terms: &[&str], weight: f32, counts: &mut [f32]) {
        for at in terms.iter().filter_map(|term| self.index.get(term)) {
            counts[*at] += weight;
        }
    }

    fn bm25(&self, counts: &[f32], length: f32) -> f32 {
        let Weights { k1, b, .. } = *self.weights;
        let norm = k1 * (1.0 - b + b * length);
        let matched = counts.iter().zip(&self.idf).filter(|(count, _)| **count > 0.0);
        matched.map(|(count, idf)| idf * count * (k1 + 1.0) / (count + norm)).sum()
    }

    fn pair_score(&self, terms: &[&str]) -> f32 {
        let positions: Vec<Option<usize>> = terms.iter().map(|term| self.index.get(term).copied()).collect();
        let mut found = std::collections::BTreeSet::new();
        for pair in positions.windows(2) {
            if let [Some(a), Some(b)] = pair
                && *b == a + 1
            {
                found.insert(*a);
            }
        }
        found.into_iter().map(|a| self.idf[a].min(self.idf[a + 1])).sum()
    }
}

/// Raises the score of each memory by how well its session matches the question.
fn boost_sessions(docs: &[DocInContext<'_>], scores: &mut [f32], weight: f32) {
    let mut sessions: HashMap<&str, f32> = HashMap::new();
    for (doc, score) in docs.iter().zip(scores.iter()).filter(|(doc, _)| !doc.terms.session.is_empty()) {
        *sessions.entry(doc.terms.session).or_default() += score * score;
    }
    let top = sessions.values().copied().fold(f32::EPSILON, f32::max).sqrt();
    for (doc, score) in docs.iter().zip(scores) {
        if let Some(of_session) = sessions.get(doc.terms.session) {
            *score *= 1.0 + weight * of_session.sqrt() / top;
        }
    }
}
