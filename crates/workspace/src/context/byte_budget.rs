//! The byte budget of a context, and the list of texts that did not fit. Entries of lists and nodes count
//! with about the bytes that they have as JSON, not only with their texts.

use serde::Serialize;
use tanmi_base::text;

use super::{ChainNode, ContextLimits, active, doc_size};
use crate::limits::{TITLE_CHARS, fit_title};
use crate::model::{LogEntry, Node, Problem};
use crate::ops::EARLIER_CONCLUSION;
use crate::store::NodeBrief;

/// The bytes of a context without its name, texts and nodes.
const CONTEXT_BYTES: usize = 320;
/// The bytes of a node without its title and texts.
const NODE_BYTES: usize = 160;
/// The minimum bytes of a text that is cut. A shorter rest is not useful and is left out.
const MIN_TEXT_BYTES: usize = 80;
/// The bytes of an omission without its names.
const OMISSION_BYTES: usize = 30;

/// A text or list entries that were left out of the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// A node id, or `workspace`.
    pub of: String,
    pub what: &'static str,
    /// Number of list entries or of bytes of a text.
    pub count: usize,
}

pub struct ByteBudget {
    left: usize,
    /// Maximum bytes of a single text.
    share: usize,
    log_entries: usize,
    pub omitted: Vec<Omission>,
}

impl ByteBudget {
    pub fn new(limits: &ContextLimits) -> ByteBudget {
        let share = (limits.max_bytes / 3).max(200);
        let left = limits.max_bytes.saturating_sub(CONTEXT_BYTES);
        ByteBudget { left, share, log_entries: limits.log_entries, omitted: Vec::new() }
    }

    pub fn note_omission(&mut self, of: &str, what: &'static str, count: usize) {
        if count == 0 {
            return;
        }
        match self.omitted.iter_mut().find(|known| known.of == of && known.what == what) {
            Some(known) => known.count += count,
            None => {
                self.spend(of.len() + what.len() + OMISSION_BYTES);
                self.omitted.push(Omission { of: of.to_owned(), what, count });
            }
        }
    }

    fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Returns a title as the context shows it.
    pub fn title(&mut self, title: &str) -> String {
        let title = fit_title(title).into_owned();
        self.spend(title.len());
        title
    }

    /// Returns whether a further node fits, at least with its title and the beginning of a text.
    pub fn has_room_for_node(&self) -> bool {
        self.left >= NODE_BYTES + TITLE_CHARS + MIN_TEXT_BYTES
    }

    /// Truncates each text of a list to a share of the budget, so that one long entry does not displace the others.
    pub fn cut_to_shares<T>(
        &mut self,
        of: &str,
        what: &'static str,
        list: &mut [T],
        text: impl Fn(&mut T) -> &mut String,
    ) {
        let share = self.share / 4;
        for entry in list {
            let text = text(entry);
            if text.len() > share {
                self.note_omission(of, what, 1);
                *text = text::cut(text, share);
            }
        }
    }

    /// Returns a text, truncated at a sentence if it is too long.
    pub fn text(&mut self, of: &str, what: &'static str, text: String) -> String {
        let available = self.left.min(self.share);
        if text.len() <= available {
            self.left -= text.len();
            return text;
        }
        let kept = if available < MIN_TEXT_BYTES { String::new() } else { text::cut(&text, available) };
        self.left -= kept.len();
        self.note_omission(of, what, text.len() - kept.len().min(text.len()));
        kept
    }

    /// Returns as many of the first entries as fit.
    pub fn take_first<T>(
        &mut self,
        of: &str,
        what: &'static str,
        list: Vec<T>,
        size: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let count = self.count_fitting(list.iter().map(&size));
        self.note_omission(of, what, list.len() - count);
        list.into_iter().take(count).collect()
    }

    /// Returns as many of the last entries as fit.
    pub fn take_last<T>(
        &mut self,
        of: &str,
        what: &'static str,
        mut list: Vec<T>,
        size: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let count = self.count_fitting(list.iter().rev().map(&size));
        self.note_omission(of, what, list.len() - count);
        list.split_off(list.len() - count)
    }

    fn count_fitting(&mut self, sizes: impl Iterator<Item = usize>) -> usize {
        let mut count = 0;
        for size in sizes {
            if size > self.left {
                break;
            }
            self.left -= size;
            count += 1;
        }
        count
    }

    pub fn problem(&mut self, of: &str, problem: Problem) -> Problem {
        Problem {
            description: self.text(of, "problem", problem.description),
            next_step: problem.next_step.map(|next| self.text(of, "nextStep", next)),
            updated_at: problem.updated_at,
        }
    }

    pub fn node(&mut self, node: &Node) -> ChainNode {
        let of = node.id.as_str();
        self.spend(NODE_BYTES);
        let title = self.title(&node.title);
        let requirement = self.text(of, "requirement", node.requirement.clone());
        let problem = node.activity.problem.clone().map(|problem| self.problem(of, problem));
        let conclusion = node.conclusion.clone().map(|text| self.text(of, "conclusion", text));
        let note = self.text(of, "note", node.note.clone());
        let docs = self.take_first(of, "docs", active(&node.docs), doc_size);
        let mut log: Vec<LogEntry> =
            node.activity.log.iter().filter(|entry| !is_earlier_conclusion(entry)).cloned().collect();
        let older = log.len().saturating_sub(self.log_entries);
        log.drain(..older);
        self.cut_to_shares(of, "log", &mut log, |entry| &mut entry.event);
        let log = self.take_last(of, "log", log, |entry| entry.event.len() + 70);
        self.note_omission(of, "log", older);
        ChainNode {
            id: node.id.clone(),
            title,
            kind: node.kind,
            status: node.status,
            role: node.role,
            isolated: node.isolated,
            requirement,
            note,
            docs,
            conclusion,
            problem,
            log,
            damage: None,
        }
    }

    /// Returns the block of a node whose file cannot be read.
    pub fn damaged_node(&mut self, brief: NodeBrief) -> ChainNode {
        self.spend(2 * NODE_BYTES);
        ChainNode {
            title: self.title(&brief.title),
            id: brief.id,
            kind: brief.kind,
            status: brief.status,
            role: brief.role,
            isolated: brief.isolated,
            requirement: String::new(),
            note: String::new(),
            docs: Vec::new(),
            conclusion: None,
            problem: None,
            log: Vec::new(),
            damage: brief.damage,
        }
    }
}

/// Returns whether a log entry keeps an earlier conclusion. Such entries are for people and not for agents.
fn is_earlier_conclusion(entry: &LogEntry) -> bool {
    entry.event.starts_with(EARLIER_CONCLUSION.0) || entry.event.starts_with(EARLIER_CONCLUSION.1)
}
