//! The decisions of a write: which lines a store appends for a fact or a mark. They are the same for every store.

use std::collections::BTreeSet;

use tanmi_base::Millis;
use tanmi_index::{MemoryKind, MemoryRow};

use crate::record::mark_line;
use crate::store::Mark;
use crate::{Error, Result, scoped};

/// What a decision looks up.
pub trait StoredMemories {
    /// Returns the memory with this id, also a hidden one.
    fn find(&self, id: &str) -> Result<Option<MemoryRow>>;

    /// Returns the visible facts with this content.
    fn find_same_content(&self, content_hash: i64) -> Result<Vec<MemoryRow>>;
}

/// A fact that is to be saved.
pub struct NewFact<'a> {
    pub content_hash: i64,
    pub supersedes: &'a [String],
    pub at: Millis,
    pub by: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FactDecision {
    /// The line of the fact is appended.
    Add,
    /// The visible fact `id` has the same content. `lines` let it supersede what the new fact would supersede.
    Duplicate { id: String, lines: Vec<String> },
}

/// Decides how a fact is saved. Fails if a fact that it supersedes is unknown or not current.
pub fn save_fact(stored: &impl StoredMemories, fact: &NewFact<'_>) -> Result<FactDecision> {
    for target in fact.supersedes {
        let old = stored.find(target)?.ok_or_else(|| Error::not_found(target))?;
        if old.hidden {
            return Err(Error::NotCurrent { id: old.id, by: old.replaced_by });
        }
    }
    let same = stored.find_same_content(fact.content_hash)?;
    let Some(known) = same.into_iter().find(|known| !fact.supersedes.contains(&known.id)) else {
        return Ok(FactDecision::Add);
    };
    let replace = |old: &String| mark_line("replace", old, &known.id, fact.at, fact.by);
    let lines = fact.supersedes.iter().map(replace).collect();
    Ok(FactDecision::Duplicate { id: known.id, lines })
}

/// Returns the lines of a mark. A restored memory supersedes the version that superseded it and a fact with the same
/// content, so that one of them is in force. A superseded version is hidden already, and stays superseded when it is
/// forgotten.
pub fn mark_lines(
    stored: &impl StoredMemories,
    mark: Mark,
    row: &MemoryRow,
    at: Millis,
    by: &str,
) -> Result<Vec<String>> {
    if mark == Mark::Promote {
        let pointer = format!("{}{}", scoped::USER_POINTER, row.id);
        return Ok(vec![mark_line(mark.as_str(), &row.id, &pointer, at, by)]);
    }
    let newer = newer_version(stored, row)?;
    if mark == Mark::Forget && newer.is_some() {
        return Ok(Vec::new());
    }
    let mut replaced: BTreeSet<String> = newer.into_iter().collect();
    if mark == Mark::Restore && row.hidden && row.letter.kind() == MemoryKind::Fact {
        let same = stored.find_same_content(row.content_hash)?;
        replaced.extend(same.into_iter().map(|same| same.id));
    }
    let mut lines: Vec<String> =
        replaced.iter().map(|newer| mark_line("replace", newer, &row.id, at, by)).collect();
    lines.push(mark_line(mark.as_str(), &row.id, "", at, by));
    Ok(lines)
}

/// Returns the id of the version in force that superseded a memory, directly or through other versions.
fn newer_version(stored: &impl StoredMemories, row: &MemoryRow) -> Result<Option<String>> {
    let mut seen = BTreeSet::from([row.id.clone()]);
    let mut id = row.replaced_by.clone();
    while !id.is_empty() && seen.insert(id.clone()) {
        let Some(newer) = stored.find(&id)? else { break };
        if !newer.hidden {
            return Ok(Some(id));
        }
        id = newer.replaced_by;
    }
    Ok(None)
}
