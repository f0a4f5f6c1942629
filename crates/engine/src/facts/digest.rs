//! What the last session did, for the next one.

use tanmi_base::text;

/// What a session did, derived from its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigestFacts {
    /// The session and the time of its last call.
    pub id: String,
    /// Local time of the last call.
    pub at: String,
    /// The nodes that it moved, the latest first. The text is the status.
    pub moved: Vec<WorkedNode>,
    /// The problems that it left open, the latest first. The title is empty if it is not known, and for the workspace.
    pub problems: Vec<WorkedNode>,
    /// Its log entries, by node; the node with the last one comes first.
    pub logs: Vec<WorkedLog>,
    /// The number of facts that it saved.
    pub facts: usize,
    /// Whether the session made more calls than are kept.
    pub is_partial: bool,
    /// Whether this session was told of it and still knows it.
    pub is_known: bool,
}

impl DigestFacts {
    /// Returns whether there is more to tell than how much the session logged.
    pub fn has_news(&self) -> bool {
        let is_empty =
            self.moved.is_empty() && self.problems.is_empty() && self.logs.is_empty() && self.facts == 0;
        !is_empty
    }

    /// Returns the nodes that were moved last as `title (status) id`.
    pub fn moved_lines(&self) -> Vec<String> {
        let line = |node: &WorkedNode| format!("{} ({}) {}", node.short_title(), node.text, node.id);
        self.moved.iter().take(NAMED).map(line).collect()
    }

    /// Returns the number of nodes that were moved before these.
    pub fn more_moved(&self) -> usize {
        self.moved.len().saturating_sub(NAMED)
    }

    /// Returns the last problems as `title id: description`.
    pub fn problem_lines(&self) -> Vec<String> {
        let line = |node: &WorkedNode| {
            format!("{} {}: {}", node.short_title(), node.id, node.text).trim_start().to_owned()
        };
        self.problems.iter().take(NAMED).map(line).collect()
    }

    /// Returns the number of log entries.
    pub fn log_lines(&self) -> usize {
        self.logs.iter().map(|log| log.lines).sum()
    }

    /// Returns the last log entry, with its node unless that is among the named ones. Empty if there is none.
    pub fn last_log_line(&self) -> String {
        let Some(WorkedLog { last, .. }) = self.logs.first() else { return String::new() };
        match self.moved.iter().take(NAMED).any(|moved| moved.is_same(last)) {
            true => last.text.clone(),
            false => last.line(),
        }
    }
}

/// The log entries of a session for a node or a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkedLog {
    pub lines: usize,
    /// The last one. The title is empty if it is not known, and for the workspace.
    pub last: WorkedNode,
}

/// The number of nodes, and of problems, that a digest names.
const NAMED: usize = 4;
/// The maximum width of a title in a digest.
const TITLE_COLUMNS: usize = 40;

/// A node on which a session worked, with one text about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkedNode {
    pub workspace: String,
    pub id: String,
    pub title: String,
    pub text: String,
}

impl WorkedNode {
    /// Returns `title id: text`.
    fn line(&self) -> String {
        format!("{} {}: {}", self.short_title(), self.id, self.text).trim_start().to_owned()
    }

    /// Returns the title, cut so that a line also has room for the rest.
    fn short_title(&self) -> String {
        text::fit(&self.title, TITLE_COLUMNS)
    }

    pub fn is_same(&self, other: &WorkedNode) -> bool {
        self.workspace == other.workspace && self.id == other.id
    }
}
