//! How well a memory answers a question: BM25 over its terms and, with less weight, over those of its neighbours in the
//! conversation, with something extra for the speaker and the day that the question names.
//!
//! Candidates come from the index; here a few hundred of them are put in order.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tanmi_base::Millis;

use crate::dates::{self, DatePattern};
use crate::segment;

/// A memory as ranking sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doc<'a> {
    pub content: &'a str,
    pub speaker: &'a str,
    pub entities: &'a str,
    pub at: Option<Millis>,
}

/// Short memories repeat little and vary in length: lower k1 and b than for documents.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    pub k1: f32,
    pub b: f32,
    /// What a term in the memory before or after it counts for.
    pub near: f32,
    /// And what is left of that one memory further.
    pub fade: f32,
    /// For a memory of the speaker whom the question names.
    pub speaker: f32,
    pub day: f32,
    /// For a session that is about the question as a whole.
    pub session: f32,
    /// What a memory loses that asks something itself.
    pub asks: f32,
    /// For terms of the question that stand side by side in the text too.
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
    asks: 0.25,
    pair: 0.25,
};

/// The terms of a memory for the index: its own, and what it says by its speaker, its entities and its day.
pub fn body_terms(doc: &Doc<'_>) -> Vec<String> {
    let mut terms = segment::terms(doc.content);
    if !doc.speaker.is_empty() && !doc.content.starts_with(doc.speaker) {
        terms.extend(segment::terms(doc.speaker));
    }
    terms.extend(segment::terms(doc.entities));
    if let Some(date) = doc.at.and_then(DatePattern::of) {
        terms.push(date.to_string());
        terms.push(date.year().to_string());
        terms.extend(segment::terms(dates::month_name(date.month())));
        terms.push(format!("{}月{}日", date.month(), date.day()));
    }
    terms.retain(|term| !segment::is_stop(term));
    terms
}

/// A memory made ready.
pub struct Terms<'a> {
    /// Its own terms, as [`joined`] put them together.
    pub own: Vec<&'a str>,
    pub speaker: Vec<String>,
    /// Whether it asks something.
    pub asks: bool,
    pub at: Option<Millis>,
    pub session: &'a str,
}

impl<'a> Terms<'a> {
    pub fn of(joined: &'a str, speaker: &str, asks: bool, at: Option<Millis>, session: &'a str) -> Terms<'a> {
        let own = joined.split(' ').filter(|term| !term.is_empty()).collect();
        let speaker = if speaker.is_empty() { Vec::new() } else { segment::terms(speaker) };
        Terms { own, speaker, asks, at, session }
    }
}

/// Whether a text that ends like this asks something.
pub fn asks(end: &str) -> bool {
    end.trim_end().ends_with(['?', '？'])
}

/// Terms as one text. None of them has a space in it.
pub fn joined(terms: &[String]) -> String {
    terms.join(" ")
}

/// A memory among its neighbours: those of its session within [`REACH`], each with its distance.
pub struct DocInContext<'a> {
    pub terms: &'a Terms<'a>,
    pub near: Vec<(&'a Terms<'a>, usize)>,
}

/// How far a neighbour may be.
pub const REACH: usize = 2;

/// A question, made ready.
pub struct SearchQuestion {
    pub terms: Vec<String>,
    pub days: Vec<DatePattern>,
}

impl SearchQuestion {
    pub fn new(text: &str, now: Millis) -> SearchQuestion {
        SearchQuestion { terms: segment::query_terms(text), days: dates::named(text, now) }
    }
}

/// What is known of the whole collection.
pub struct Collection {
    pub docs: u64,
    /// Terms per memory on average.
    pub length: f32,
    /// In how many memories each term of the question occurs, in the question's order.
    pub frequencies: Vec<u64>,
}

/// One score for each memory, in their order; 0 to 1.
pub fn scores(
    question: &SearchQuestion,
    collection: &Collection,
    docs: &[DocInContext<'_>],
    weights: &Weights,
) -> Vec<f32> {
    let scale = Scorer::new(question, collection, weights);
    let mut scores: Vec<f32> = docs
        .iter()
        .map(|doc| {
            let date = doc.terms.at.and_then(DatePattern::of);
            let fit =
                date.map_or(0.0, |date| question.days.iter().map(|day| day.fits(date)).fold(0.0, f32::max));
            scale.text(doc) + weights.day * fit
        })
        .collect();
    lift_sessions(docs, &mut scores, weights.session);
    scores.into_iter().map(|score| score / (1.0 + score)).collect()
}

/// For a handful of short words that are asked for a hundred thousand times (FNV-1a).
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

/// What a term says that is in so many of the memories.
pub fn idf(df: u64, docs: u64) -> f32 {
    let n = docs.max(1) as f32;
    let df = (df as f32).min(n);
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

struct Scorer<'a> {
    index: HashMap<&'a str, usize, BuildHasherDefault<FastHasher>>,
    idf: Vec<f32>,
    /// What a memory that has everything would get.
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

    fn text(&self, doc: &DocInContext<'_>) -> f32 {
        let weights = self.weights;
        let own = &doc.terms.own;
        let mut counts = vec![0.0f32; self.idf.len()];
        self.count(own, 1.0, &mut counts);
        for (terms, distance) in &doc.near {
            let weight = weights.near * weights.fade.powi(i32::try_from(*distance).unwrap_or(9) - 1);
            self.count(&terms.own, weight, &mut counts);
        }
        let mut score = self.bm25(&counts, own.len() as f32 / self.length);
        score += weights.pair * self.pairs(own);
        if doc.terms.speaker.iter().any(|term| self.index.contains_key(term.as_str())) {
            score *= 1.0 + weights.speaker;
        }
        if doc.terms.asks {
            score *= 1.0 - weights.asks;
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
        let some = counts.iter().zip(&self.idf).filter(|(count, _)| **count > 0.0);
        some.map(|(count, idf)| idf * count * (k1 + 1.0) / (count + norm)).sum()
    }

    fn pairs(&self, terms: &[&str]) -> f32 {
        let places: Vec<Option<usize>> = terms.iter().map(|term| self.index.get(term).copied()).collect();
        let mut found = std::collections::BTreeSet::new();
        for two in places.windows(2) {
            if let [Some(a), Some(b)] = two
                && *b == a + 1
            {
                found.insert(*a);
            }
        }
        found.into_iter().map(|a| self.idf[a].min(self.idf[a + 1])).sum()
    }
}

/// A session that is about the question lifts each of its memories.
fn lift_sessions(docs: &[DocInContext<'_>], scores: &mut [f32], weight: f32) {
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
