//! The files that facts are about.

use serde::Serialize;
use tanmi_memory::anchors::{Anchors, FileState, MAX_FILES};
use tanmi_memory::scoped::Scope;
use tanmi_memory::search::Hit;
use tanmi_memory::{MemoryFilter, MemoryRow};

use super::{Memory, MemoryService};
use crate::error::{Error, Result};

/// The facts whose files changed or are gone.
#[derive(Clone, Debug, Serialize)]
pub struct StaleFacts {
    /// The newest first.
    pub results: Vec<Memory>,
    /// The number of facts that name files, of those that were looked at.
    pub checked: usize,
    /// Whether the limit ended the look before the last fact.
    #[serde(rename = "isPartial", skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

/// The number of facts that are read at a time.
const PAGE: usize = 200;

impl MemoryService {
    /// Returns the files that a new fact is about.
    pub(super) fn anchors(&self, scope: Scope, paths: &[String], content: &str) -> Result<Anchors> {
        if scope == Scope::User {
            // A fact for all projects names no files of one.
            return match paths.first() {
                None => Ok(Anchors::default()),
                Some(path) => Err(Error::bad_value("path", path, String::from("--scope project"))),
            };
        }
        if paths.len() > MAX_FILES {
            let (limit, actual) = (MAX_FILES, paths.len());
            return Err(
                tanmi_workspace::Error::TooLong { field: "paths", unit: "entries", limit, actual }.into()
            );
        }
        Anchors::record(self.core.folder(), paths, content)
            .map_err(|(path, problem)| Error::BadFactPath { path, problem })
    }

    /// Returns the files of a fact that still exist.
    pub(super) fn remaining_paths(&self, row: &MemoryRow) -> Vec<String> {
        let files = Anchors::of(row).files.into_iter();
        files.filter(|file| file.state(self.core.folder()) != FileState::Gone).map(|file| file.path).collect()
    }

    pub(super) fn view(&self, row: &MemoryRow) -> Memory {
        let memory = Memory::of(row, None).with_author(row, self.core.project.person());
        memory.with_files(row, self.core.folder())
    }

    pub(super) fn view_hit(&self, hit: &Hit) -> Memory {
        let memory = Memory::of_hit(hit).with_author(&hit.row, self.core.project.person());
        memory.with_files(&hit.row, self.core.folder())
    }

    /// Returns the facts whose files changed or are gone, the newest first.
    pub fn stale(&self, limit: usize) -> Result<StaleFacts> {
        self.check_enabled()?;
        let filter = MemoryFilter { has_files: true, ..MemoryFilter::default() };
        let mut stale = StaleFacts { results: Vec::new(), checked: 0, is_partial: false };
        loop {
            let page = self.store().list(&filter, PAGE, stale.checked)?;
            for row in &page.rows {
                if stale.results.len() >= limit {
                    stale.is_partial = true;
                    return Ok(stale);
                }
                stale.checked += 1;
                stale.results.extend(Some(self.view(row)).filter(Memory::is_stale));
            }
            if page.rows.len() < PAGE {
                return Ok(stale);
            }
        }
    }
}
