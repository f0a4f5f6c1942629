//! Watches for changes by other processes and by people, for the change feed: in every known workspace, and in
//! bindings, ledger, memory and rules.
//!
//! The caller decides how often to poll: [`Watcher::poll_changes`] is cheap, [`Watcher::poll_edits`] compares all
//! files of a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::fs;
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{FeedStart, StoreEvent, Subscription};

use crate::config;
use crate::core::Core;
use crate::pipeline::rules;

/// A change after which a view should reload its data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FeedEvent {
    /// Nodes of a workspace changed.
    Workspace {
        workspace_id: WorkspaceId,
        /// The same workspace can be in several projects, such as clones and work trees.
        project: String,
        /// The sequence number, if the change was committed by the program.
        #[serde(skip_serializing_if = "Option::is_none")]
        change: Option<u64>,
        /// Node ids, or `workspace` for the file of the workspace itself.
        nodes: Vec<String>,
        /// Whether changes may be missing, so that the whole workspace must be reloaded.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        gap: bool,
    },
    /// A workspace was added or removed.
    Workspaces,
    Bindings,
    Ledger,
    Memory {
        project: String,
    },
    Rules,
}

/// A number per event that changes with the data behind the event.
type Revisions = BTreeMap<FeedEvent, u64>;

struct WatchedWorkspace {
    subscription: Box<dyn Subscription>,
    /// A removed workspace is kept here: it can return when the user switches the Git branch.
    is_present: bool,
}

pub struct Watcher {
    core: Arc<Core>,
    workspaces: BTreeMap<(PathBuf, WorkspaceId), WatchedWorkspace>,
    /// Projects that were polled before. Only in these is an unknown workspace a new one.
    projects: BTreeSet<PathBuf>,
    revisions: Revisions,
    memory_revisions: Revisions,
}

impl Watcher {
    pub(crate) fn new(core: Arc<Core>, projects: &[PathBuf]) -> Watcher {
        let mut watcher = Watcher {
            core,
            workspaces: BTreeMap::new(),
            projects: projects.iter().cloned().collect(),
            revisions: BTreeMap::new(),
            memory_revisions: BTreeMap::new(),
        };
        for (project, id) in watcher.list_workspaces(projects) {
            let subscription = watcher.subscribe(&project, &id, FeedStart::Now);
            watcher.workspaces.insert((project, id), WatchedWorkspace { subscription, is_present: true });
        }
        watcher.revisions = watcher.read_revisions(projects);
        watcher.memory_revisions = watcher.read_memory_revisions(projects);
        watcher
    }

    /// Returns changes in the journals, and changes outside of workspaces and memory.
    pub fn poll_changes(&mut self, projects: &[PathBuf]) -> Vec<FeedEvent> {
        let mut events = Vec::new();
        for ((project, id), watched) in self.workspaces.iter_mut().filter(|(_, watched)| watched.is_present) {
            // A workspace that cannot be read now is read again at the next poll.
            let changes = watched.subscription.changes().unwrap_or_default();
            events.extend(changes.into_iter().map(|event| feed_event(project, id, event)));
        }
        let revisions = self.read_revisions(projects);
        events.extend(changed(&self.revisions, &revisions));
        self.revisions = revisions;
        events
    }

    /// Returns added and removed workspaces, memory changes and edits of files, together with the number of
    /// workspaces.
    ///
    /// Edits are looked for in the `wanted` workspaces and in the one that `turn` selects. If the caller counts
    /// `turn` up, every workspace gets its turn.
    pub fn poll_edits(
        &mut self,
        projects: &[PathBuf],
        wanted: &[String],
        turn: usize,
    ) -> (Vec<FeedEvent>, usize) {
        let mut events = Vec::new();
        let present = self.list_workspaces(projects);
        let mut is_changed = false;
        for (key, watched) in &mut self.workspaces {
            let is_present = present.contains(key);
            is_changed |= std::mem::replace(&mut watched.is_present, is_present) != is_present;
        }
        for key in present {
            if !self.workspaces.contains_key(&key) {
                let is_new = self.projects.contains(&key.0);
                let start = if is_new { FeedStart::After(0) } else { FeedStart::Now };
                let subscription = self.subscribe(&key.0, &key.1, start);
                self.workspaces.insert(key, WatchedWorkspace { subscription, is_present: true });
                is_changed = true;
            }
        }
        self.projects.extend(projects.iter().cloned());
        if is_changed {
            events.push(FeedEvent::Workspaces);
        }
        let revisions = self.read_memory_revisions(projects);
        events.extend(changed(&self.memory_revisions, &revisions));
        self.memory_revisions = revisions;
        let watched_keys =
            || self.workspaces.iter().filter(|(_, watched)| watched.is_present).map(|(key, _)| key);
        let count = watched_keys().count();
        let next = watched_keys().nth(turn % count.max(1)).cloned();
        let wanted =
            watched_keys().filter(|(_, id)| wanted.iter().any(|wanted| wanted == id.as_str())).cloned();
        let checked: BTreeSet<(PathBuf, WorkspaceId)> = wanted.chain(next).collect();
        for (project, id) in checked {
            let Some(watched) = self.workspaces.get_mut(&(project.clone(), id.clone())) else { continue };
            let changes = watched.subscription.changes().unwrap_or_default();
            let edits = watched.subscription.edits().unwrap_or_default();
            events.extend(changes.into_iter().chain(edits).map(|event| feed_event(&project, &id, event)));
        }
        (events, count)
    }

    fn list_workspaces(&self, projects: &[PathBuf]) -> BTreeSet<(PathBuf, WorkspaceId)> {
        let of = |project: &PathBuf| {
            let ids = self.core.stores.projects.in_folder(project).feed().ids().unwrap_or_default();
            ids.into_iter().map(|id| (project.clone(), id)).collect::<Vec<_>>()
        };
        projects.iter().flat_map(of).collect()
    }

    fn subscribe(&self, project: &Path, id: &WorkspaceId, start: FeedStart) -> Box<dyn Subscription> {
        self.core.stores.projects.in_folder(project).feed().subscribe(id, start)
    }

    fn read_revisions(&self, projects: &[PathBuf]) -> Revisions {
        let (home, stores, user) = (self.core.home(), &self.core.stores, self.core.env.user.as_deref());
        // Rules depend on rules files, trust and settings.
        let mut files = vec![self.core.trust().path(), config::home_file(home)];
        files.extend(projects.iter().map(PathBuf::as_path).chain(user).map(config::project_file));
        let of_projects = projects.iter().flat_map(|project| rules::paths(user, Some(project), None));
        let of_workspaces =
            self.workspaces.keys().flat_map(|(project, id)| rules::paths(None, Some(project), Some(id)));
        files.extend(of_projects.chain(of_workspaces).map(|(_, path)| path));
        BTreeMap::from([
            (FeedEvent::Bindings, stores.bindings.revision()),
            (FeedEvent::Ledger, stores.ledger.revision(self.core.now())),
            (FeedEvent::Rules, fs::revision(files)),
        ])
    }

    fn read_memory_revisions(&self, projects: &[PathBuf]) -> Revisions {
        let of = |project: &PathBuf| {
            let revision = self.core.stores.projects.in_folder(project).memory().revision();
            (FeedEvent::Memory { project: project.display().to_string() }, revision)
        };
        projects.iter().map(of).collect()
    }
}

fn changed<'a>(before: &'a Revisions, now: &'a Revisions) -> impl Iterator<Item = FeedEvent> + 'a {
    now.iter()
        .filter(|(event, revision)| before.get(*event) != Some(revision))
        .map(|(event, _)| event.clone())
}

fn feed_event(project: &Path, id: &WorkspaceId, event: StoreEvent) -> FeedEvent {
    let (workspace_id, project) = (id.clone(), project.display().to_string());
    let (change, nodes, gap) = match event {
        StoreEvent::Change { seq, nodes } => (Some(seq), nodes, false),
        StoreEvent::Edit { nodes } => (None, nodes, false),
        StoreEvent::Gap { seq } => (Some(seq), Vec::new(), true),
    };
    FeedEvent::Workspace { workspace_id, project, change, nodes, gap }
}
