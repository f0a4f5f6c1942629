//! Keeps the replica of the workspaces up to date: changes of the server, whole workspaces, and a comparison
//! with the server.

use std::collections::{BTreeMap, BTreeSet};

use tanmi_base::fs;
use tanmi_base::paths::project_store;
use tanmi_protocol::{Document, FeedPage, Positions};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::store::{ChangeFeed, WORKSPACE};

use super::TeamWorkspaces;

/// What a synchronisation changed.
#[derive(Debug, Default)]
pub struct Synced {
    /// The number of workspaces that the replica has now.
    pub workspaces: usize,
    /// The number of changes that were applied.
    pub changes: usize,
    /// The workspaces that were fetched whole.
    pub fetched: BTreeSet<WorkspaceId>,
    /// The number of workspaces that the server no longer has.
    pub removed: usize,
    /// Why the changes of a workspace could not be applied.
    pub failed: Option<Error>,
}

impl TeamWorkspaces {
    /// Writes the documents of a change into the replica. A replica that is behind catches up first.
    pub(super) fn apply(&self, id: &WorkspaceId, seq: u64, docs: &[Document]) -> Result<()> {
        if docs.is_empty() {
            // The command changed nothing, and `seq` is that of an earlier change.
            return self.catch_up(id, seq);
        }
        let documents: Vec<(&str, Option<&str>)> =
            docs.iter().map(|doc| (doc.name.as_str(), doc.text.as_deref())).collect();
        let before = seq.saturating_sub(1);
        match self.replica.apply_documents(id, (before, seq), &documents, (self.clock)()) {
            Ok(true) => Ok(()),
            Ok(false) | Err(Error::WorkspaceNotFound { .. }) => self.catch_up(id, seq),
            // What cannot be read or written in part is fetched whole.
            Err(_) => self.fetch(id),
        }
    }

    /// Brings the replica of a workspace to the change `seq` or a later one.
    pub fn catch_up(&self, id: &WorkspaceId, seq: u64) -> Result<()> {
        loop {
            let Ok(Some(position)) = self.replica.position(id, (self.clock)()) else { return self.fetch(id) };
            if position >= seq {
                return Ok(());
            }
            let have = Positions::from([(id.to_string(), position.cast_signed())]);
            let page = self.read_feed(&have)?;
            if page.changes.is_empty() {
                return self.fetch(id);
            }
            self.apply_stream(id, position, &page)?;
        }
    }

    /// Applies the changes of one workspace in a page of the feed, which begins after `position`.
    fn apply_stream(&self, id: &WorkspaceId, position: u64, page: &FeedPage) -> Result<usize> {
        let of_stream = || page.changes.iter().filter(|change| change.stream == id.as_str());
        let Some(last) = of_stream().next_back().map(|change| change.seq.cast_unsigned()) else {
            return Ok(0);
        };
        let docs = of_stream().flat_map(|change| &change.docs);
        let documents: Vec<(&str, Option<&str>)> =
            docs.map(|doc| (doc.name.as_str(), doc.text.as_deref())).collect();
        match self.replica.apply_documents(id, (position, last), &documents, (self.clock)()) {
            Ok(_) => Ok(of_stream().count()),
            Err(_) => self.fetch(id).map(|()| 1),
        }
    }

    /// Returns the position of every workspace of the replica. One that cannot be read, or whose changes
    /// could not be applied, is fetched again.
    pub fn positions(&self) -> Result<Positions> {
        let failing = self.connection.state().failing;
        let mut positions = Positions::new();
        for id in self.replica.ids()?.into_iter().filter(|id| !failing.contains_key(id.as_str())) {
            if let Ok(Some(position)) = self.replica.position(&id, (self.clock)()) {
                positions.insert(id.to_string(), position.cast_signed());
            }
        }
        Ok(positions)
    }

    /// Reads the changes after these positions.
    fn read_feed(&self, have: &Positions) -> Result<FeedPage> {
        let page = self.connection.read(|client| client.feed(have, 0)).map_err(|error| self.failed(error))?;
        Ok(page.in_history(self.connection.state().history.as_deref(), have))
    }

    /// Applies a page of the feed to the replica: changes, workspaces that are new or have a gap, and deleted
    /// ones. `have` are the positions that the page was read for. A workspace that fails does not stop the
    /// others: it is fetched whole the next time, and `doctor` reports it. Fails at once if the server cannot
    /// be reached.
    pub fn apply_page(&self, have: &Positions, page: &FeedPage) -> Result<Synced> {
        let mut synced = Synced::default();
        let mut failed = BTreeMap::new();
        let new = page.heads.keys().filter(|stream| !have.contains_key(*stream));
        for id in have.keys().chain(new).filter_map(|stream| WorkspaceId::parse(stream).ok()) {
            match self.apply_workspace(&id, have, page, &mut synced) {
                Ok(()) => {}
                Err(error @ Error::TeamUnreachable { .. }) => return Err(error),
                Err(error) => {
                    failed.insert(id.to_string(), error);
                }
            }
        }
        self.connection.note_time(page.now);
        let reasons = failed.iter().map(|(id, error)| (id.clone(), error.to_string())).collect();
        self.connection.update_state(|state| {
            state.failing = reasons;
            if !page.history.is_empty() {
                state.history = Some(page.history.clone());
            }
        });
        synced.failed = failed.into_values().next();
        Ok(synced)
    }

    /// Applies the part of a page that is about one workspace.
    fn apply_workspace(
        &self,
        id: &WorkspaceId,
        have: &Positions,
        page: &FeedPage,
        synced: &mut Synced,
    ) -> Result<()> {
        let position = have.get(id.as_str()).filter(|_| !page.gaps.iter().any(|gap| gap == id.as_str()));
        if !page.heads.contains_key(id.as_str()) {
            self.delete_copy(id, (self.clock)())?;
            synced.removed += 1;
        } else if let Some(position) = position {
            synced.changes += self.apply_stream(id, position.cast_unsigned(), page)?;
        } else {
            self.fetch(id)?;
            synced.fetched.insert(id.clone());
        }
        Ok(())
    }

    /// Fails if a page brought only whole workspaces that the page before it had brought too: then neither
    /// the replica nor the answers of the server go on, and the next page would be the same.
    pub fn check_progress(&self, before: &BTreeSet<WorkspaceId>, synced: &Synced) -> Result<()> {
        let Some(id) = synced.fetched.first().filter(|_| synced.fetched == *before) else { return Ok(()) };
        if synced.changes + synced.removed > 0 {
            return Ok(());
        }
        self.replica.position(id, (self.clock)())?;
        Err(Error::TeamUnreachable {
            server: self.connection.server().to_owned(),
            reason: format!("its answers about {id} do not agree"),
            may_have_run: false,
        })
    }

    /// Brings the whole replica to the state of the server. `progress` gets the number of changes so far.
    pub fn sync(&self, progress: &mut dyn FnMut(usize)) -> Result<Synced> {
        let mut total = Synced::default();
        let mut fetched = BTreeSet::new();
        loop {
            let have = self.positions()?;
            let synced = self.apply_page(&have, &self.read_feed(&have)?)?;
            self.check_progress(&fetched, &synced)?;
            fetched.clone_from(&synced.fetched);
            total.changes += synced.changes;
            total.fetched.extend(synced.fetched);
            total.removed += synced.removed;
            progress(total.changes + total.fetched.len());
            if synced.changes + fetched.len() + synced.removed == 0 {
                let store = project_store(&self.folder);
                // By this folder a deleted replica is told from one of a project without workspaces.
                fs::create_private_dir(&store).map_err(Error::io(&store))?;
                total.workspaces = have.len();
                // If this fails, the next sync or the follower of a server process tells who works on what.
                let _ = self.beat(&[]);
                return synced.failed.map_or(Ok(total), Err);
            }
        }
    }

    /// Fetches a whole workspace.
    pub fn fetch(&self, id: &WorkspaceId) -> Result<()> {
        let fetched = self.connection.read(|client| client.fetch(id.as_str()));
        let (documents, seq) = fetched.map_err(|error| self.failed(error))?;
        let texts: Vec<(&str, &str)> =
            documents.iter().filter_map(|doc| Some((doc.name.as_str(), doc.text.as_deref()?))).collect();
        fs::create_private_dir(&self.folder).map_err(Error::io(&self.folder))?;
        self.replica.replace_documents(id, seq, &texts, (self.clock)())
    }

    /// Fetches the whole replica if it was deleted. A server that is away is reported by the calls that need it.
    pub fn restore_deleted(&self) {
        if !project_store(&self.folder).is_dir() {
            let _ = self.sync(&mut |_| {});
        }
    }

    /// Fetches every workspace again and compares it with the replica. Returns what the replica had otherwise; it is
    /// replaced, and texts that did not come from the server are kept aside.
    pub fn check(&self, progress: &mut dyn FnMut(usize)) -> Result<Vec<String>> {
        let mut different = Vec::new();
        for (done, id) in self.replica.ids()?.into_iter().enumerate() {
            let before = self.replica.documents(&id);
            self.fetch(&id)?;
            let after = self.replica.documents(&id)?;
            progress(done + 1);
            let Ok(before) = before else {
                different.push(id.to_string());
                continue;
            };
            if before.workspace != after.workspace {
                different.push(format!("{id}/{WORKSPACE}"));
            }
            let is_same = |(node, text): &&(NodeId, String)| {
                let other = before.nodes.binary_search_by(|(known, _)| known.cmp(node));
                other.is_ok_and(|at| before.nodes[at].1 == *text)
            };
            let changed = after.nodes.iter().filter(|node| !is_same(node));
            different.extend(changed.map(|(node, _)| format!("{id}/{node}")));
            let gone = before
                .nodes
                .iter()
                .filter(|(node, _)| after.nodes.binary_search_by(|(known, _)| known.cmp(node)).is_err());
            different.extend(gone.map(|(node, _)| format!("{id}/{node}")));
        }
        Ok(different)
    }
}
