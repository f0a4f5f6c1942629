//! `cargo xtask recall DIR…`: recall of the ranking alone on labelled sets (`docs.jsonl`, `queries.jsonl`), in one process,
//! for tuning. What users get is measured through the command line.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tanmi_memory::dates;
use tanmi_memory::rank::{self, Collection, Doc, DocInContext, SearchQuestion, Terms, WEIGHTS, Weights};

#[derive(clap::Args)]
pub struct Options {
    /// Folders of sets
    sets: Vec<PathBuf>,
    /// Other weights, as name=value
    #[arg(long = "weight", value_name = "NAME=VALUE")]
    weights: Vec<String>,
    /// One weight with several values, as name=value,value
    #[arg(long)]
    sweep: Vec<String>,
    /// Show what was not found
    #[arg(long)]
    misses: bool,
    /// Per category
    #[arg(long)]
    categories: bool,
}

struct Memory {
    id: String,
    content: String,
    speaker: String,
    session: String,
    at: Option<i64>,
    terms: String,
}

impl Memory {
    fn doc(&self) -> Doc<'_> {
        Doc { content: &self.content, speaker: &self.speaker, entities: "", at: self.at }
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a set");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

pub fn run(options: &Options) {
    for sweep in &options.sweep {
        let (name, values) = sweep.split_once('=').expect("name=values");
        for value in values.split(',') {
            let mut weights = options.weights.clone();
            weights.push(format!("{name}={value}"));
            println!("{name}={value}");
            measure(options, &weights);
        }
    }
    if options.sweep.is_empty() {
        measure(options, &options.weights);
    }
}

fn measure(options: &Options, changes: &[String]) {
    let mut weights = WEIGHTS;
    for change in changes {
        let (name, value) = change.split_once('=').expect("name=value");
        set(&mut weights, name, value.parse().expect("a number"));
    }
    for set in &options.sets {
        let mut spaces: BTreeMap<String, Vec<Memory>> = BTreeMap::new();
        for doc in lines(&set.join("docs.jsonl")) {
            let text = |key: &str| doc[key].as_str().unwrap_or_default().to_owned();
            let mut memory = Memory {
                terms: String::new(),
                id: text("id"),
                content: text("text"),
                speaker: text("speaker"),
                session: text("session"),
                at: dates::parse(&text("ts")),
            };
            memory.terms = rank::joined(&rank::body_terms(&memory.doc()));
            spaces.entry(text("ns")).or_default().push(memory);
        }
        let mut ranks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let indexed: HashMap<&str, Space<'_>> =
            spaces.iter().map(|(name, memories)| (name.as_str(), Space::new(memories))).collect();
        for query in lines(&set.join("queries.jsonl")) {
            let space = &indexed[query["ns"].as_str().expect("a space")];
            let gold: Vec<&str> =
                query["gold"].as_array().expect("gold").iter().filter_map(Value::as_str).collect();
            let found = space.search(query["query"].as_str().expect("a query"), &weights);
            let rank = found.iter().position(|id| gold.contains(id)).unwrap_or(usize::MAX);
            if options.misses && rank >= 10 {
                let texts: Vec<&str> = space
                    .memories
                    .iter()
                    .filter(|m| gold.contains(&m.id.as_str()))
                    .map(|m| m.content.as_str())
                    .collect();
                println!("? {}\n    {:?}", query["query"].as_str().unwrap_or_default(), texts);
            }
            for name in ["all", query["category"].as_str().unwrap_or_default()] {
                ranks.entry(name.to_owned()).or_default().push(rank);
            }
        }
        for (name, ranks) in ranks.iter().filter(|(name, _)| options.categories || *name == "all") {
            let at =
                |k: usize| 100.0 * ranks.iter().filter(|rank| **rank < k).count() as f64 / ranks.len() as f64;
            let set = set.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            println!(
                "{set:<20} {name:<14} {:5} questions  {:5.1} {:5.1} {:5.1}",
                ranks.len(),
                at(1),
                at(5),
                at(10)
            );
        }
    }
}

fn set(weights: &mut Weights, name: &str, value: f32) {
    match name {
        "k1" => weights.k1 = value,
        "b" => weights.b = value,
        "near" => weights.near = value,
        "asks" => weights.asks = value,
        "fade" => weights.fade = value,
        "speaker" => weights.speaker = value,
        "day" => weights.day = value,
        "session" => weights.session = value,
        "pair" => weights.pair = value,
        _ => panic!("no weight {name}"),
    }
}

struct Space<'a> {
    memories: &'a [Memory],
    docs: Vec<Terms<'a>>,
    frequencies: HashMap<String, u64>,
    length: f32,
}

impl<'a> Space<'a> {
    fn new(memories: &'a [Memory]) -> Space<'a> {
        let docs: Vec<Terms<'a>> = memories
            .iter()
            .map(|m| Terms::of(&m.terms, &m.speaker, rank::asks(&m.content), m.at, &m.session))
            .collect();
        let mut frequencies: HashMap<String, u64> = HashMap::new();
        let mut length = 0;
        for doc in &docs {
            length += doc.own.len();
            let unique: std::collections::HashSet<&str> = doc.own.iter().copied().collect();
            for term in unique {
                *frequencies.entry(term.to_owned()).or_default() += 1;
            }
        }
        let length = length as f32 / docs.len().max(1) as f32;
        Space { memories, docs, frequencies, length }
    }

    fn placed(&self, at: usize) -> DocInContext<'_> {
        let terms = &self.docs[at];
        let from = at.saturating_sub(rank::REACH);
        let near = (from..=at + rank::REACH).filter(|other| *other != at).filter_map(|other| {
            let terms =
                self.docs.get(other).filter(|o| o.session == terms.session && !o.session.is_empty())?;
            Some((terms, other.abs_diff(at)))
        });
        DocInContext { terms, near: near.collect() }
    }

    fn search(&self, query: &str, weights: &Weights) -> Vec<&'a str> {
        let question = SearchQuestion::new(query, 0);
        let frequencies =
            question.terms.iter().map(|term| self.frequencies.get(term).copied().unwrap_or(0)).collect();
        let collection = Collection { docs: self.docs.len() as u64, length: self.length, frequencies };
        let placed: Vec<DocInContext<'_>> = (0..self.docs.len()).map(|at| self.placed(at)).collect();
        let scores = rank::scores(&question, &collection, &placed, weights);
        let mut order: Vec<usize> = (0..self.docs.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        order.into_iter().take(10).map(|at| self.memories[at].id.as_str()).collect()
    }
}
