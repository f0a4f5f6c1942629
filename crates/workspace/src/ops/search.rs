//! Searches all texts of nodes. The index has only the titles, so the files are read.

use serde::Serialize;
use tanmi_base::text;

use super::list::ListQuery;
use crate::error::Result;
use crate::model::*;
use crate::store::{NodeBrief, NodeRead, Tx};

/// The maximum number of nodes that are read for one page, so that writers do not wait long for a search.
const TEXTS_PER_PAGE: usize = 500;
/// The maximum width of the text around a match.
const EXCERPT_COLUMNS: usize = 120;

/// A text of a node that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextMatch {
    pub field: &'static str,
    /// The text around the first word that was found.
    pub text: String,
}

/// Searches the texts of nodes, a limited number of them.
pub(super) struct TextSearch<'a> {
    query: &'a ListQuery,
    left: usize,
}

impl<'a> TextSearch<'a> {
    pub fn new(query: &'a ListQuery) -> TextSearch<'a> {
        TextSearch { query, left: TEXTS_PER_PAGE }
    }

    /// Returns whether no more texts are read for this page.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Returns where a node contains the words that its title does not contain, if it contains all words.
    pub fn find(&mut self, tx: &dyn Tx, brief: &NodeBrief) -> Result<Option<TextMatch>> {
        let words = &self.query.words;
        if !self.query.in_texts || words.is_empty() || !self.query.has_status(brief) {
            return Ok(None);
        }
        self.left = self.left.saturating_sub(1);
        let Some(NodeRead::Node(node)) = tx.nodes(std::slice::from_ref(&brief.id))?.pop() else {
            return Ok(None);
        };
        let texts = texts_of(&node);
        let all: Vec<&str> = texts.iter().map(|(_, text)| *text).chain([node.title.as_str()]).collect();
        if !contains_all(&all.join("\n"), words) {
            return Ok(None);
        }
        let title = node.title.to_lowercase();
        let excerpt = |word: &String| {
            texts.iter().find_map(|(field, text)| Some(TextMatch { field, text: excerpt(text, word)? }))
        };
        Ok(words.iter().filter(|word| !title.contains(word.as_str())).find_map(excerpt))
    }
}

/// Returns the texts of a node except its title, the most telling ones first, each with the name of its field.
fn texts_of(node: &Node) -> Vec<(&'static str, &str)> {
    let problem = node.activity.problem.as_ref();
    let mut texts = vec![
        ("conclusion", node.conclusion.as_deref().unwrap_or_default()),
        ("requirement", &node.requirement),
        ("problem", problem.map_or("", |problem| &problem.description)),
        ("nextStep", problem.and_then(|problem| problem.next_step.as_deref()).unwrap_or_default()),
        ("note", &node.note),
    ];
    texts.extend(node.activity.log.iter().rev().map(|entry| ("log", entry.event.as_str())));
    texts
}

/// Returns the text around a lower-case word, on one line. `None` if the text does not contain the word.
fn excerpt(text: &str, word: &str) -> Option<String> {
    let line = text.lines().find(|line| line.to_lowercase().contains(word))?;
    let lower = line.to_lowercase();
    let before = lower.find(word).map_or(0, |at| lower[..at].chars().count());
    let skipped = before.saturating_sub(EXCERPT_COLUMNS / 3);
    let rest: String = line.chars().skip(skipped).collect();
    let dots = if skipped > 0 { "…" } else { "" };
    Some(text::fit(&text::one_line(&format!("{dots}{rest}")), EXCERPT_COLUMNS))
}

/// Returns whether a text contains all of these lower-case words. Case is ignored.
pub(super) fn contains_all(text: &str, words: &[String]) -> bool {
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}
