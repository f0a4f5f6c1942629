//! What memory keeps of the past: the earlier versions of a fact, and the digests of sessions.

use std::collections::BTreeSet;

use serde::Serialize;
use tanmi_memory::MemoryFilter;

use super::{Memory, MemoryService};
use crate::calls;
use crate::error::Result;

/// The maximum number of versions of a fact that are listed.
const MAX_VERSIONS: usize = 100;

/// What a session did, derived from its calls. It is told to the next sessions if the session wrote no summary.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDigest {
    pub session_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub platform: String,
    /// Local time of the last call.
    pub at: String,
    /// `title (status) id` of the nodes that it moved last, the latest first.
    pub moved: Vec<String>,
    /// The number of nodes that it moved before these.
    pub more_moved: usize,
    /// `id: description` of the problems that it left open, the latest first.
    pub problems: Vec<String>,
    pub log_lines: usize,
    pub last_log: String,
    /// The number of facts that it saved.
    pub facts: usize,
}

impl MemoryService {
    /// Returns all versions of a fact, the one in force first.
    pub fn history(&self, id: &str) -> Result<Vec<Memory>> {
        let memory = self.scoped();
        let mut newest = self.find(id)?;
        let mut seen = BTreeSet::from([newest.id.clone()]);
        while !newest.replaced_by.is_empty() && seen.insert(newest.replaced_by.clone()) {
            match memory.find(&newest.replaced_by) {
                Ok(newer) => newest = newer,
                Err(tanmi_memory::Error::NotFound { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut seen = BTreeSet::from([newest.id.clone()]);
        let (mut versions, mut at) = (vec![newest], 0);
        while at < versions.len() && versions.len() < MAX_VERSIONS {
            let replaced_by = Some(versions[at].id.clone());
            let filter = MemoryFilter { replaced_by, all: true, ..MemoryFilter::default() };
            let older = memory.list(&filter, MAX_VERSIONS, 0, None)?.rows;
            versions.extend(older.into_iter().filter(|row| seen.insert(row.id.clone())));
            at += 1;
        }
        let view = |row| Memory::of(row, None).with_author(row, self.core.project.person());
        Ok(versions.iter().map(view).collect())
    }

    /// Returns the digests of the sessions that last worked in this project and wrote no summary since, the
    /// latest first.
    pub fn digests(&self) -> Vec<SessionDigest> {
        let (states, project) = (self.core.states(), self.core.project.id().as_str());
        let digest = |session: String| {
            let state = states.read(&session);
            let found = calls::digest_of(&state, project)?;
            Some(SessionDigest {
                session_id: session,
                platform: state.platform,
                moved: found.moved_lines(),
                log_lines: found.log_lines(),
                last_log: found.last_log_line(),
                more_moved: found.more_moved(),
                problems: found.problem_lines(),
                at: found.at,
                facts: found.facts,
            })
        };
        states.sessions_of_project(project).into_iter().filter_map(digest).collect()
    }
}
