//! `cargo xtask recall DIR…`: measures the recall of the memory ranking on labelled data sets, for tuning its weights.
//!
//! A data set is a folder with `docs.jsonl` and `queries.jsonl`. Only the ranking is measured, in one
//! process; the recall that users get is measured through the command line.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tanmi_memory::expand::{Vocabulary, expand};
use tanmi_memory::rank::{self, Collection, Doc, DocInContext, SearchQuestion, Terms, WEIGHTS, Weights};
use tanmi_memory::{LexiconIndex, answer, dates};

#[derive(clap::Args)]
pub struct Options {
    /// Folders of data sets, each with docs.jsonl and queries.jsonl
    #[arg(value_name = "DIR")]
    sets: Vec<PathBuf>,
    /// Use another value for a weight of the ranking
    #[arg(long = "weight", value_name = "NAME=VALUE")]
    weights: Vec<String>,
    /// Measure once for each of several values of a weight
    #[arg(long, value_name = "NAME=VALUE,VALUE")]
    sweep: Vec<String>,
    /// Dictionaries to translate with: the file lexicon.sqlite of a home store
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,
    /// Print queries without a correct result among the first ten
    #[arg(long)]
    misses: bool,
    /// Print the recall of each category too
    #[arg(long)]
    categories: bool,
}

/// One document of a data set.
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

/// Reads a JSON Lines file.
fn read_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

pub fn run(options: &Options) {
    for sweep in &options.sweep {
        let (name, values) = sweep.split_once('=').expect("--sweep takes NAME=VALUE,VALUE");
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

/// Prints the recall on every data set with changed weights.
fn measure(options: &Options, changes: &[String]) {
    let mut weights = WEIGHTS;
    for change in changes {
        let (name, value) = change.split_once('=').expect("--weight takes NAME=VALUE");
        set_weight(&mut weights, name, value.parse().expect("a weight is a number"));
    }
    let lexicon = options.lexicon.as_ref().map(|path| {
        LexiconIndex::open_existing(path).unwrap_or_else(|| panic!("{}: no dictionaries", path.display()))
    });
    for set in &options.sets {
        let mut namespaces: BTreeMap<String, Vec<Memory>> = BTreeMap::new();
        for doc in read_lines(&set.join("docs.jsonl")) {
            let text = |key: &str| doc[key].as_str().unwrap_or_default().to_owned();
            let mut memory = Memory {
                terms: String::new(),
                id: text("id"),
                content: text("text"),
                speaker: text("speaker"),
                session: text("session"),
                at: dates::parse(&text("ts")),
            };
            memory.terms = rank::join_terms(&rank::body_terms(&memory.doc()));
            namespaces.entry(text("ns")).or_default().push(memory);
        }
        let mut ranks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let indexed: HashMap<&str, Namespace<'_>> = namespaces
            .iter()
            .map(|(name, memories)| (name.as_str(), Namespace::new(memories, lexicon.as_ref())))
            .collect();
        for query in read_lines(&set.join("queries.jsonl")) {
            let namespace = &indexed[query["ns"].as_str().expect("a query has an ns")];
            let gold: Vec<&str> = query["gold"]
                .as_array()
                .expect("a query has gold ids")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            let found = namespace.search(query["query"].as_str().expect("a query has a text"), &weights);
            let rank = found.iter().position(|id| gold.contains(id)).unwrap_or(usize::MAX);
            if options.misses && rank >= 10 {
                let texts: Vec<&str> = namespace
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
            let recall_at =
                |k: usize| 100.0 * ranks.iter().filter(|rank| **rank < k).count() as f64 / ranks.len() as f64;
            let set = set.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            println!(
                "{set:<20} {name:<14} {:5} queries  recall@1 {:5.1}  @5 {:5.1}  @10 {:5.1}",
                ranks.len(),
                recall_at(1),
                recall_at(5),
                recall_at(10)
            );
        }
    }
}

fn set_weight(weights: &mut Weights, name: &str, value: f32) {
    match name {
        "k1" => weights.k1 = value,
        "b" => weights.b = value,
        "near" => weights.near = value,
        "asks" => weights.question = value,
        "fade" => weights.fade = value,
        "reply" => weights.reply = value,
        "next" => weights.next = value,
        "answer" => weights.answer = value,
        "detail" => weights.detail = value,
        "turn" => weights.turn = value,
        "speaker" => weights.speaker = value,
        "day" => weights.day = value,
        "session" => weights.session = value,
        "pair" => weights.pair = value,
        "substitute" => weights.substitute = value,
        "latin" => weights.latin = value,
        _ => panic!("unknown weight: {name}"),
    }
}

/// The documents of one namespace (`ns`), prepared for ranking.
struct Namespace<'a> {
    memories: &'a [Memory],
    docs: Vec<Terms<'a>>,
    /// The number of documents that contain a term.
    frequencies: HashMap<String, u64>,
    /// The average number of terms per document.
    length: f32,
    lexicon: Option<&'a LexiconIndex>,
}

impl<'a> Namespace<'a> {
    fn new(memories: &'a [Memory], lexicon: Option<&'a LexiconIndex>) -> Namespace<'a> {
        let docs: Vec<Terms<'a>> = memories
            .iter()
            .map(|m| {
                let is_turn = !m.speaker.is_empty();
                Terms::of(&m.terms, &m.speaker, answer::features(&m.content), is_turn, m.at, &m.session)
            })
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
        Namespace { memories, docs, frequencies, length, lexicon }
    }

    /// Returns a document together with its neighbours in the same session.
    fn in_context(&self, at: usize) -> DocInContext<'_> {
        let terms = &self.docs[at];
        let reach = rank::MAX_NEIGHBOUR_DISTANCE;
        let near = (-reach..=reach).filter(|position| *position != 0).filter_map(|position| {
            let other = at.checked_add_signed(isize::try_from(position).ok()?)?;
            let terms =
                self.docs.get(other).filter(|o| o.session == terms.session && !o.session.is_empty())?;
            Some((terms, position))
        });
        DocInContext { terms, near: near.collect() }
    }

    /// Returns the ids of the ten best documents.
    fn search(&self, query: &str, weights: &Weights) -> Vec<&'a str> {
        let mut question = SearchQuestion::new(query, 0);
        let frequency = |term: &str| self.frequencies.get(term).copied().unwrap_or(0);
        let mut frequencies = question.terms.iter().map(|term| frequency(term)).collect();
        let vocabulary = Vocabulary { docs: self.docs.len() as u64, frequency: &|term| Ok(frequency(term)) };
        let added = expand(query, self.lexicon, &vocabulary).expect("the dictionaries can be read");
        question.add_terms(added, &mut frequencies);
        let collection = Collection { docs: self.docs.len() as u64, length: self.length, frequencies };
        let docs: Vec<DocInContext<'_>> = (0..self.docs.len()).map(|at| self.in_context(at)).collect();
        let scores = rank::scores(&question, &collection, &docs, weights);
        let mut order: Vec<usize> = (0..self.docs.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        order.into_iter().take(10).map(|at| self.memories[at].id.as_str()).collect()
    }
}
