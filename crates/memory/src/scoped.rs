//! The memory of the project together with the memory of the user, which holds in all projects.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tanmi_base::Millis;
use tanmi_index::{MemoryFilter, MemoryKind, MemoryRow};

use crate::record::Author;
use crate::search::Hit;
use crate::store::{ImportResult, Mark, MemoryPage, MemoryStats, MemoryStore, SearchQuery};
use crate::sync::SyncResult;
use crate::{Result, current, import};

/// Where a memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Project,
    User,
}

impl Scope {
    pub const WORDS: &[&str] = &["project", "user"];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Project => "project",
            Scope::User => "user",
        }
    }

    pub fn from_word(word: &str) -> Option<Scope> {
        [Scope::Project, Scope::User].into_iter().find(|scope| scope.as_str() == word)
    }

    /// Returns the scope of a memory that [`ScopedMemory`] returned.
    pub fn of(row: &MemoryRow) -> Scope {
        if row.file.starts_with(USER_FILES) { Scope::User } else { Scope::Project }
    }
}

/// Begins the names of the files of the user's memory in results.
const USER_FILES: &str = "user/";
/// Begins the pointer from a fact of a project to the same fact in the user's memory.
pub(crate) const USER_POINTER: &str = "user:";

#[derive(Clone)]
pub struct ScopedMemory {
    pub project: Arc<dyn MemoryStore>,
    pub user: Arc<dyn MemoryStore>,
}

impl ScopedMemory {
    pub fn store(&self, scope: Scope) -> &dyn MemoryStore {
        match scope {
            Scope::Project => self.project.as_ref(),
            Scope::User => self.user.as_ref(),
        }
    }

    /// Returns the scopes to read, the user's only if there is a memory.
    fn scopes(&self, wanted: Option<Scope>) -> impl Iterator<Item = Scope> {
        let has_user = self.user.exists();
        let all = [Scope::User, Scope::Project].into_iter();
        all.filter(move |scope| wanted.is_none_or(|wanted| wanted == *scope))
            .filter(move |scope| *scope == Scope::Project || has_user)
    }

    /// Returns the memories that match, the best first.
    pub fn search(&self, query: &SearchQuery<'_>, scope: Option<Scope>) -> Result<Vec<Hit>> {
        let mut hits: Vec<Hit> = Vec::new();
        let mut memories = 0;
        for scope in self.scopes(scope) {
            let found = self.store(scope).search(query)?;
            memories += usize::from(!found.is_empty());
            hits.extend(found.into_iter().map(|hit| Hit { row: with_scope(hit.row, scope), ..hit }));
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        remove_repeated(&mut hits, |hit| &hit.row.id);
        if memories > 1 {
            // Each memory has compared its own facts.
            current::order_hits(&mut hits, &current::NO_FREQUENCIES, query.now);
        }
        hits.truncate(query.limit);
        Ok(hits)
    }

    /// Returns memories, the newest first.
    pub fn list(
        &self,
        filter: &MemoryFilter,
        limit: usize,
        skip: usize,
        scope: Option<Scope>,
    ) -> Result<MemoryPage> {
        let scopes: Vec<Scope> = self.scopes(scope).collect();
        if let [scope] = scopes.as_slice() {
            let mut page = self.store(*scope).list(filter, limit, skip)?;
            page.rows = page.rows.into_iter().map(|row| with_scope(row, *scope)).collect();
            return Ok(page);
        }
        let mut merged = MemoryPage { rows: Vec::new(), total: 0 };
        for scope in scopes {
            let page = self.store(scope).list(filter, limit.saturating_add(skip), 0)?;
            merged.total += page.total;
            merged.rows.extend(page.rows.into_iter().map(|row| with_scope(row, scope)));
        }
        if filter.all {
            // A promoted fact is in both memories: hidden in that of the project.
            let of_user = self.user.list(filter, i64::MAX as usize, 0)?.rows;
            let repeated = of_user.iter().filter(|row| self.project.find(&row.id).is_ok()).count();
            merged.total -= (repeated as u64).min(merged.total);
        }
        merged.rows.sort_by(|a, b| b.at.cmp(&a.at).then(b.n.cmp(&a.n)));
        remove_repeated(&mut merged.rows, |row| &row.id);
        merged.rows = merged.rows.into_iter().skip(skip).take(limit).collect();
        Ok(merged)
    }

    /// Returns the memory with this id. A promoted fact is found in the memory of the user.
    pub fn find(&self, id: &str) -> Result<MemoryRow> {
        let of_project = self.project.find(id);
        if of_project.as_ref().is_ok_and(|row| !row.hidden) || !self.user.exists() {
            return of_project;
        }
        self.user.find(id).map(|row| with_scope(row, Scope::User)).or(of_project)
    }

    /// Marks memories and returns them, see [`MemoryStore::mark`].
    pub fn mark(&self, mark: Mark, ids: &[String], at: Millis, by: &str) -> Result<Vec<MemoryRow>> {
        let rows = ids.iter().map(|id| self.find(id)).collect::<Result<Vec<_>>>()?;
        for row in &rows {
            self.store(Scope::of(row)).mark(mark, std::slice::from_ref(&row.id), at, by)?;
        }
        let again = |row: &MemoryRow| {
            let scope = Scope::of(row);
            self.store(scope).find(&row.id).map(|row| with_scope(row, scope))
        };
        rows.iter().map(again).collect()
    }

    /// Moves a fact of the project to the memory of the user, and returns it. First the user's memory has it,
    /// under the same id, then the project's is hidden. A call after an interrupted one does the rest; a
    /// second one changes nothing.
    pub fn promote(&self, row: &MemoryRow, now: Millis, by: &str) -> Result<MemoryRow> {
        if Scope::of(row) == Scope::User {
            return Ok(row.clone());
        }
        // Files are those of the project.
        let mut moved = MemoryRow { more: String::new(), hidden: false, ..row.clone() };
        Author::set(Author::of(row).as_ref(), &mut moved);
        self.user.create(false)?;
        self.user.import(&import::record_line(&moved, now), now, &mut |_, _| {})?;
        let id = std::slice::from_ref(&row.id);
        if self.user.find(&row.id)?.hidden {
            self.user.mark(Mark::Restore, id, now, by)?;
        }
        if !row.hidden {
            self.project.mark(Mark::Promote, id, now, by)?;
        }
        Ok(with_scope(self.user.find(&row.id)?, Scope::User))
    }

    /// Returns whether a fact of the project was promoted.
    pub fn is_promoted(row: &MemoryRow) -> bool {
        row.replaced_by.strip_prefix(USER_POINTER) == Some(&row.id)
    }

    /// Imports lines, see [`MemoryStore::import`]. Lines of the user's memory name their scope.
    pub fn import(
        &self,
        lines: &str,
        now: Millis,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ImportResult> {
        let is_of_user = |line: &str| {
            line.contains("\"scope\"")
                && serde_json::from_str::<Value>(line).is_ok_and(|line| line["scope"] == Scope::User.as_str())
        };
        // Lines of the other scope become empty, so that the numbers of bad lines stay.
        let of_scope = |wants_user: bool| {
            let own = |line| if is_of_user(line) == wants_user { line } else { "" };
            lines.lines().map(own).collect::<Vec<_>>().join("\n")
        };
        let mut result = self.project.import(&of_scope(false), now, progress)?;
        let user_lines = of_scope(true);
        if !user_lines.trim().is_empty() {
            self.user.create(false)?;
            result.add(self.user.import(&user_lines, now, progress)?, 0);
        }
        Ok(result)
    }

    /// Returns every record as a line that can be imported, those of the user with their scope.
    pub fn export(&self, all: bool, now: Millis) -> Result<Vec<String>> {
        let mut lines = self.project.export(all, now)?;
        if self.user.exists() {
            let add_scope = |line: &String| {
                let mut line: Value = serde_json::from_str(line).unwrap_or_default();
                line["scope"] = json!(Scope::User.as_str());
                line.to_string()
            };
            lines.extend(self.user.export(all, now)?.iter().map(add_scope));
        }
        Ok(lines)
    }

    /// Makes everything that was saved searchable.
    pub fn sync(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<SyncResult> {
        let mut synced = self.project.sync(progress)?;
        if self.user.exists() {
            let of_user = self.user.sync(progress)?;
            synced.added += of_user.added;
            synced.bad_lines += of_user.bad_lines;
        }
        Ok(synced)
    }

    /// Returns the counts of both; the place is that of the project.
    pub fn stats(&self) -> Result<MemoryStats> {
        let mut stats = self.project.stats()?;
        if self.user.exists() {
            let of_user = self.user.stats()?;
            stats.facts += of_user.facts;
            stats.summaries += of_user.summaries;
            stats.hidden += of_user.hidden;
            stats.files += of_user.files;
            stats.bad_lines += of_user.bad_lines;
            stats.index_bytes += of_user.index_bytes;
        }
        Ok(stats)
    }

    /// Returns whether a memory is a fact that can be moved to the user's memory.
    pub fn can_promote(row: &MemoryRow) -> bool {
        row.letter.kind() == MemoryKind::Fact
    }
}

fn with_scope(mut row: MemoryRow, scope: Scope) -> MemoryRow {
    if scope == Scope::User {
        row.file.insert_str(0, USER_FILES);
    }
    row
}

/// Keeps the first of each id: an interrupted promotion leaves a fact in both memories.
fn remove_repeated<T>(list: &mut Vec<T>, id: impl Fn(&T) -> &String) {
    let mut seen = BTreeSet::new();
    list.retain(|item| seen.insert(id(item).clone()));
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use tanmi_base::place::ProjectPlace;

    use super::*;
    use crate::FileMemory;

    const NOW: Millis = 1_765_432_100_000;

    fn memory_in(dir: &Path) -> ScopedMemory {
        let (project, home) = (dir.join("project"), dir.join("home"));
        std::fs::create_dir_all(project.join(".tanmi-workspace")).unwrap();
        ScopedMemory {
            project: Arc::new(FileMemory::new(Arc::new(ProjectPlace::new(&project, None)), &home)),
            user: Arc::new(FileMemory::of_user(&home)),
        }
    }

    #[test]
    fn import_result_has_first_bad_line_of_both_memories() {
        let good = |id: &str, scope: &str| json!({"id": id, "type": "fact", "content": id, "scope": scope});
        let bad = |scope: &str| json!({"scope": scope, "type": "fact"});
        for (lines, first_bad_line) in [
            ([good("f1", "project"), bad("user"), good("f2", "user"), bad("project")], 2),
            ([bad("project"), good("f1", "user"), bad("user"), good("f2", "project")], 1),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let lines = lines.map(|line| line.to_string()).join("\n");
            let memory = memory_in(dir.path());
            memory.project.create(false).unwrap();
            let result = memory.import(&lines, NOW, &mut |_, _| {}).unwrap();
            let first_bad_line = Some(first_bad_line);
            let expected = ImportResult { added: 2, bad_lines: 2, first_bad_line, ..ImportResult::default() };
            assert_eq!(result, expected);
        }
    }

    #[test]
    fn search_one_memory_keeps_its_decision_about_common_terms() {
        let dir = tempfile::tempdir().unwrap();
        let memory = memory_in(dir.path());
        let line = |(n, text): (i64, String)| json!({"id": format!("f{n}"), "type": "fact", "content": text, "timestamp": (NOW - 1_000 + n).to_string()});
        let facts = ["The release owner is Anna", "The release owner is Bob"].map(String::from);
        let others = (0..60).map(|n| format!("Meeting {n}x with the release owner about item{n}"));
        let lines: Vec<String> =
            (0..).zip(facts.into_iter().chain(others)).map(|one| line(one).to_string()).collect();
        memory.project.create(false).unwrap();
        memory.import(&lines.join("\n"), NOW, &mut |_, _| {}).unwrap();
        let filter = MemoryFilter::default();
        let query =
            SearchQuery { text: "release owner Anna Bob", filter: &filter, limit: 10, now: NOW, model: None };
        let hits = memory.search(&query, None).unwrap();
        assert!(hits.len() == 10 && hits.iter().any(|hit| hit.row.id == "f0"));
        // All facts are about the release owner, so these words do not show that two are about one matter.
        assert!(hits.iter().all(|hit| hit.replaced.is_none()));
    }
}
