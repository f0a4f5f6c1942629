//! A purse of bytes from which the texts of a context are paid, and the list of what it could not pay for.

use serde::Serialize;
use tanmi_base::text;

use super::{ChainNode, ContextLimits, active, doc_size};
use crate::model::{LogEntry, Node, Problem};
use crate::ops::EARLIER_CONCLUSION;

/// Something that is there but was not shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// A node id, or `workspace`.
    pub of: String,
    pub what: &'static str,
    /// Entries of a list, or bytes of a text.
    pub count: usize,
}

pub struct ByteBudget {
    left: usize,
    /// No single text may eat everything.
    share: usize,
    log_entries: usize,
    pub omitted: Vec<Omission>,
}

impl ByteBudget {
    pub fn new(limits: &ContextLimits) -> ByteBudget {
        let share = (limits.max_bytes / 3).max(200);
        ByteBudget { left: limits.max_bytes, share, log_entries: limits.log_entries, omitted: Vec::new() }
    }

    pub fn note(&mut self, of: &str, what: &'static str, count: usize) {
        if count == 0 {
            return;
        }
        match self.omitted.iter_mut().find(|known| known.of == of && known.what == what) {
            Some(known) => known.count += count,
            None => self.omitted.push(Omission { of: of.to_owned(), what, count }),
        }
    }

    /// The texts of a list, each cut to its share, so that one long entry does not hide all the others.
    pub fn shares<T>(
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
                self.note(of, what, 1);
                *text = text::cut(text, share);
            }
        }
    }

    /// A text, cut at a sentence if it is too long.
    pub fn text(&mut self, of: &str, what: &'static str, text: String) -> String {
        let room = self.left.min(self.share);
        if text.len() <= room {
            self.left -= text.len();
            return text;
        }
        let kept = if room < 80 { String::new() } else { text::cut(&text, room) };
        self.left -= kept.len();
        self.note(of, what, text.len() - kept.len().min(text.len()));
        kept
    }

    /// As many of the first entries as fit.
    pub fn first<T>(
        &mut self,
        of: &str,
        what: &'static str,
        list: Vec<T>,
        size: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let count = self.fitting(list.iter().map(&size));
        self.note(of, what, list.len() - count);
        list.into_iter().take(count).collect()
    }

    /// As many of the last entries as fit.
    pub fn last<T>(
        &mut self,
        of: &str,
        what: &'static str,
        mut list: Vec<T>,
        size: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let count = self.fitting(list.iter().rev().map(&size));
        self.note(of, what, list.len() - count);
        list.split_off(list.len() - count)
    }

    fn fitting(&mut self, sizes: impl Iterator<Item = usize>) -> usize {
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
        let requirement = self.text(of, "requirement", node.requirement.clone());
        let problem = node.activity.problem.clone().map(|problem| self.problem(of, problem));
        let conclusion = node.conclusion.clone().map(|text| self.text(of, "conclusion", text));
        let note = self.text(of, "note", node.note.clone());
        let docs = self.first(of, "docs", active(&node.docs), doc_size);
        let mut log: Vec<LogEntry> =
            node.activity.log.iter().filter(|entry| !is_retired(entry)).cloned().collect();
        let older = log.len().saturating_sub(self.log_entries);
        log.drain(..older);
        self.shares(of, "log", &mut log, |entry| &mut entry.event);
        let log = self.last(of, "log", log, |entry| entry.event.len() + 30);
        self.note(of, "log", older);
        ChainNode {
            id: node.id.clone(),
            title: node.title.clone(),
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
}

/// A conclusion that no longer holds is kept in the log for people; an agent is not told of it.
fn is_retired(entry: &LogEntry) -> bool {
    entry.event.starts_with(EARLIER_CONCLUSION.0) || entry.event.starts_with(EARLIER_CONCLUSION.1)
}
