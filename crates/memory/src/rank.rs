//! Ranking: how well a memory answers a question. BM25 over its terms and, with less weight, over those of its
//! neighbours in the conversation, with a bonus for the speaker and the day that the question names.
//!
//! Candidates come from the index; this module orders a few hundred of them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tanmi_base::Millis;

use crate::answer::{self, Features};
use crate::dates::{self, DatePattern};
use crate::expand::AddedTerm;
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
    /// Factor on `near` for a turn directly after a question, which probably answers it.
    pub reply: f32,
    /// Factor on `near` for the turns after a turn.
    pub next: f32,
    /// Bonus for a turn with the kind of detail that the question asks for.
    pub answer: f32,
    /// Bonus for a turn for each kind of detail in it.
    pub detail: f32,
    /// Factor on a turn. A fact was worth saving; a turn was only said.
    pub turn: f32,
    /// Bonus for a memory of the speaker that the question names.
    pub speaker: f32,
    pub day: f32,
    /// Bonus for a session that is about the question as a whole.
    pub session: f32,
    /// Penalty for a memory that is a question itself.
    pub question: f32,
    /// Bonus for query terms that are adjacent in the text too.
    pub pair: f32,
    /// Factor on a term of the other language for a word that no memory contains: only its translations can match.
    pub substitute: f32,
    /// Factor on a word in Latin script of a question that also has Chinese words. A Chinese word of two
    /// characters counts three times: as two characters and as their pair.
    pub latin: f32,
}

pub const WEIGHTS: Weights = Weights {
    k1: 0.6,
    b: 0.15,
    near: 0.25,
    fade: 0.7,
    reply: 5.0,
    next: 0.6,
    answer: 0.15,
    detail: 0.05,
    turn: 1.0 / 2.8,
    speaker: 0.3,
    day: 0.5,
    session: 1.2,
    question: 0.25,
    pair: 0.25,
    substitute: 2.0,
    latin: 2.0,
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
    pub features: Features,
    /// Whether it is a turn of a conversation.
    pub is_turn: bool,
    pub at: Option<Millis>,
    pub session: &'a str,
}

impl<'a> Terms<'a> {
    pub fn of(
        join_terms: &'a str,
        speaker: &str,
        features: Features,
        is_turn: bool,
        at: Option<Millis>,
        session: &'a str,
    ) -> Terms<'a> {
        // Most terms are longer than three bytes, so the list rarely grows.
        let mut own = Vec::with_capacity(join_terms.len() / 4);
        own.extend(join_terms.split(' ').filter(|term| !term.is_empty()));
        let speaker = if speaker.is_empty() { Vec::new() } else { segment::terms(speaker) };
        Terms { own, speaker, features, is_turn, at, session }
    }
}

/// Joins terms into one text. Invariant: no term contains a space.
pub fn join_terms(terms: &[String]) -> String {
    terms.join(" ")
}

/// A memory with its neighbours: those of its session within [`MAX_NEIGHBOUR_DISTANCE`], each with its position
/// relative to the memory, negative if before it.
pub struct DocInContext<'a> {
    pub terms: &'a Terms<'a>,
    pub near: Vec<(&'a Terms<'a>, i64)>,
}

/// Maximum distance of a neighbour.
pub const MAX_NEIGHBOUR_DISTANCE: i64 = 2;

/// A query prepared for ranking.
pub struct SearchQuestion {
    /// The terms of the query, followed by those of the other language that were added.
    pub terms: Vec<String>,
    /// The weights of the terms.
    pub weights: Vec<f32>,
    /// For each term, whether it is a translation of a word that no memory contains.
    substitutes: Vec<bool>,
    /// Number of terms of the query itself.
    own: usize,
    /// The last bytes of the terms, as a bit set of their lowest six bits.
    ends: u64,
    pub days: Vec<DatePattern>,
    /// The details that the answer contains.
    pub asked: Features,
}

impl SearchQuestion {
    pub fn new(text: &str, now: Millis) -> SearchQuestion {
        let terms = segment::query_terms(text);
        SearchQuestion {
            weights: vec![1.0; terms.len()],
            substitutes: vec![false; terms.len()],
            own: terms.len(),
            ends: terms.iter().fold(0, |ends, term| ends | end_bit(term)),
            terms,
            days: dates::find_dates(text, now),
            asked: answer::asked(text),
        }
    }

    /// Adds terms of the other language, and their frequencies to those of the query's own terms.
    pub fn add_terms(&mut self, added: Vec<AddedTerm>, frequencies: &mut Vec<u64>) {
        for one in added {
            if !self.terms.contains(&one.term) {
                self.ends |= end_bit(&one.term);
                self.terms.push(one.term);
                self.weights.push(one.weight);
                self.substitutes.push(one.is_substitute);
                frequencies.push(one.frequency);
            }
        }
    }

    /// Returns the factor on each term: the weights of terms that were added, and the balance between the two scripts.
    fn factors(&self, weights: &Weights) -> Vec<f32> {
        let is_han = |term: &String| term.starts_with(segment::is_cjk);
        let is_mixed = self.terms[..self.own].iter().any(is_han);
        let terms = self.terms.iter().zip(&self.weights).enumerate();
        terms
            .map(|(at, (term, weight))| {
                let is_latin_in_chinese = is_mixed && at < self.own && !is_han(term);
                let of_script = if is_latin_in_chinese { weights.latin } else { 1.0 };
                let of_origin = if self.substitutes[at] { weights.substitute } else { 1.0 };
                weight * of_script * of_origin
            })
            .collect()
    }

    /// Returns whether a term can be one of the query. Most terms of a memory are excluded here, before they
    /// are looked up.
    pub fn can_have(&self, term: &str) -> bool {
        self.ends & end_bit(term) != 0
    }

    /// Returns how well a time matches the days that the question names, from 0 to 1.
    pub fn day_score(&self, at: Option<Millis>) -> f32 {
        if self.days.is_empty() {
            return 0.0;
        }
        let date = at.and_then(DatePattern::utc_date);
        date.map_or(0.0, |date| self.days.iter().map(|day| day.match_score(date)).fold(0.0, f32::max))
    }

    /// Returns the terms of the days that the question names, as [`body_terms`] writes them.
    pub fn day_terms(&self) -> Vec<String> {
        self.days.iter().flat_map(DatePattern::terms).collect()
    }
}

fn end_bit(term: &str) -> u64 {
    term.as_bytes().last().map_or(0, |byte| 1 << (byte & 63))
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
        .map(|doc| scorer.score_text(doc) + weights.day * question.day_score(doc.terms.at))
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
    question: &'a SearchQuestion,
    index: HashMap<&'a str, usize, BuildHasherDefault<FastHasher>>,
    idf: Vec<f32>,
    /// The score of a memory that contains every term of the query itself.
    best: f32,
    length: f32,
    weights: &'a Weights,
}

impl<'a> Scorer<'a> {
    fn new(question: &'a SearchQuestion, collection: &Collection, weights: &'a Weights) -> Scorer<'a> {
        let factors = question.factors(weights);
        let terms = collection.frequencies.iter().zip(factors);
        let idf: Vec<f32> = terms.map(|(df, factor)| idf(*df, collection.docs) * factor).collect();
        let best =
            idf[..question.own].iter().map(|idf| idf * (weights.k1 + 1.0)).sum::<f32>().max(f32::EPSILON);
        let index = question.terms.iter().enumerate().map(|(at, term)| (term.as_str(), at)).collect();
        Scorer { question, index, idf, best, length: collection.length.max(1.0), weights }
    }

    /// Returns the position of a term among those of the query.
    fn position(&self, term: &str) -> Option<usize> {
        if self.question.can_have(term) { self.index.get(term).copied() } else { None }
    }

    fn score_text(&self, doc: &DocInContext<'_>) -> f32 {
        let weights = self.weights;
        let own = &doc.terms.own;
        let mut counts = vec![0.0f32; self.idf.len()];
        self.count(own, 1.0, &mut counts);
        for (terms, position) in &doc.near {
            self.count(&terms.own, weights.near * self.neighbour_factor(doc, terms, *position), &mut counts);
        }
        let mut score = self.bm25(&counts, own.len() as f32 / self.length);
        score += weights.pair * self.pair_score(own);
        if doc.terms.speaker.iter().any(|term| self.position(term).is_some()) {
            score *= 1.0 + weights.speaker;
        }
        if doc.terms.features & answer::QUESTION != 0 {
            score *= 1.0 - weights.question;
        }
        if doc.terms.is_turn {
            score *= self.turn_factor(doc.terms.features);
        }
        score / self.best
    }

    /// Returns how much the terms of a neighbour count, relative to [`Weights::near`].
    fn neighbour_factor(&self, doc: &DocInContext<'_>, neighbour: &Terms<'_>, position: i64) -> f32 {
        let weights = self.weights;
        let is_reply = doc.terms.is_turn && position < 0 && neighbour.features & answer::ASKS != 0;
        let by_distance = if position.abs() > 1 { weights.fade } else { 1.0 };
        match position {
            -1 if is_reply => weights.reply,
            1.. if doc.terms.is_turn => weights.next * by_distance,
            _ => by_distance,
        }
    }

    fn turn_factor(&self, features: Features) -> f32 {
        let weights = self.weights;
        let details = features & answer::DETAILS;
        let is_answer = self.question.asked & details != 0;
        weights.turn
            * (1.0 + weights.detail * details.count_ones() as f32)
            * (1.0 + if is_answer { weights.answer } else { 0.0 })
    }

    fn count(&self, terms: &[&str], weight: f32, counts: &mut [f32]) {
        for at in terms.iter().filter_map(|term| self.position(term)) {
            counts[at] += weight;
        }
    }

    fn bm25(&self, counts: &[f32], length: f32) -> f32 {
        let Weights { k1, b, .. } = *self.weights;
        let norm = k1 * (1.0 - b + b * length);
        let matched = counts.iter().zip(&self.idf).filter(|(count, _)| **count > 0.0);
        matched.map(|(count, idf)| idf * count * (k1 + 1.0) / (count + norm)).sum()
    }

    fn pair_score(&self, terms: &[&str]) -> f32 {
        let positions: Vec<Option<usize>> = terms.iter().map(|term| self.position(term)).collect();
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
