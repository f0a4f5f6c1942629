//! Memories as all interfaces show them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tanmi_base::{clock, text};
use tanmi_memory::anchors::{Anchors, FileAnchor, FileState};
use tanmi_memory::record::Holder;
use tanmi_memory::scoped::Scope;
use tanmi_memory::search::Hit;
use tanmi_memory::{Author, MemoryRow, dates, record};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SaveResult {
    pub id: String,
    /// Whether a fact with the same content existed. No new fact was stored; the facts in `supersedes` are superseded
    /// by the existing one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    /// Whether it waits on this machine until the server of the team can be reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Kinds of secrets that were masked before the text was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<&'static str>,
    /// Facts that look like the same matter, first those that this one replaces (`replaced`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<Memory>,
    /// How to supersede the similar facts that are outdated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the user should know about the memory folder: no session is told what it contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
}

/// A memory as all interfaces show it.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    pub id: String,
    pub content: String,
    /// W, B or O for a fact, S for a summary, T for a turn.
    #[serde(rename = "type")]
    pub letter: &'static str,
    /// `project`, or `user` for a memory that holds in all projects.
    pub scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The file that contains it.
    pub source: String,
    pub timestamp: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub speaker: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The person of the team who saved it, and the machine, if that is another person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// Whether it waits for the server of the team. Other people do not see it yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// The files that it is about, and whether they changed since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FactFile>,
    /// The commit that was checked out when it was saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// For a turn: the beginning of the turn before it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// For a turn: the beginning of the turn after it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Whether it is forgotten or superseded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    #[serde(rename = "replacedBy", skip_serializing_if = "String::is_empty")]
    pub replaced_by: String,
    /// The newer fact that replaces it, as inferred from the texts. The fact is not hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedFact>,
    /// The parts of a summary, which `content` has without labels.
    #[serde(skip)]
    pub parts: Option<SummaryParts>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryParts {
    pub topic: String,
    pub summary: String,
    pub decisions: Vec<String>,
    pub todos: Vec<String>,
}

/// A file that a fact is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactFile {
    pub path: String,
    pub state: FileState,
}

/// An inferred replacement of a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplacedFact {
    pub by: String,
    /// The day of the newer fact, YYYY-MM-DD.
    pub on: String,
}

impl Memory {
    pub(super) fn of(row: &MemoryRow, score: Option<f32>) -> Memory {
        let stamp = row.at.map(dates::iso);
        Memory {
            id: row.id.clone(),
            content: row.content.clone(),
            letter: row.letter.as_str(),
            scope: Scope::of(row).as_str(),
            score: score.map(|score| f64::from((score * 10_000.0).round()) / 10_000.0),
            source: row.file.clone(),
            timestamp: stamp.or_else(|| Some(row.stamp.clone()).filter(|stamp| !stamp.is_empty())),
            session: row.session.clone(),
            speaker: row.speaker.clone(),
            entities: record::entities(row),
            confidence: row.confidence,
            author: None,
            queued: Holder::of(row) == Holder::Outbox,
            files: Vec::new(),
            commit: None,
            before: String::new(),
            after: String::new(),
            hidden: row.hidden,
            replaced_by: row.replaced_by.clone(),
            replaced: None,
            parts: serde_json::from_str(&row.more).ok(),
        }
    }

    /// Adds the files of a fact, compared with those in a project.
    pub(super) fn with_files(mut self, row: &MemoryRow, project: &Path) -> Memory {
        let Anchors { files, commit } = Anchors::of(row);
        let file = |file: FileAnchor| FactFile { state: file.state(project), path: file.path };
        (self.files, self.commit) = (files.into_iter().map(file).collect(), commit);
        self
    }

    /// Adds the author, unless that is the user.
    pub(super) fn with_author(mut self, row: &MemoryRow, user: Option<&str>) -> Memory {
        self.author = Author::of(row).filter(|author| Some(author.person.as_str()) != user);
        self
    }

    /// Returns whether a file that the fact is about changed or is gone.
    pub fn is_stale(&self) -> bool {
        self.files.iter().any(|file| file.state != FileState::Same)
    }

    pub(super) fn of_hit(hit: &Hit) -> Memory {
        let neighbour = |content: &str| text::fit(&text::one_line(content), NEIGHBOUR_COLUMNS);
        Memory {
            before: neighbour(&hit.before),
            after: neighbour(&hit.after),
            replaced: hit
                .replaced
                .as_ref()
                .map(|newer| ReplacedFact { by: newer.by.clone(), on: clock::utc_day(newer.at) }),
            ..Memory::of(&hit.row, Some(hit.score))
        }
    }
}

/// The width of the text of a neighbouring turn.
const NEIGHBOUR_COLUMNS: usize = 200;

#[derive(Clone, Debug, Serialize)]
pub struct MemoryResults {
    pub results: Vec<Memory>,
    /// The number of all matching memories. Absent for a search, which ranks and does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What the reader should know about the search: the model was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}
