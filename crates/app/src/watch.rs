//! Watches for changes by other processes and by people, for the change feed: in every known workspace, and in
//! bindings, ledger, memory and rules.
//!
//! The caller decides how often to poll: [`Watcher::poll_changes`] is cheap, [`Watcher::poll_edits`] compares all
//! files of a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::clock;
use tanmi_base::fs::FileSig;
use tanmi_base::paths::{CONFIG_DIR, STORE_DIR};
use tanmi_memory::Folder;
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{self, ChangeFeed, FeedStart, Subscription};

use crate::App;

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

/// The signatures of the files behind each event.
type Signatures = BTreeMap<FeedEvent, Vec<Option<FileSig>>>;

struct FollowedWorkspace {
    subscription: Box<dyn Subscription>,
    /// A removed workspace is kept here: it can return when the user switches the Git branch.
    is_present: bool,
}

pub struct Watcher {
    app: Arc<App>,
    followers: BTreeMap<(PathBuf, WorkspaceId), FollowedWorkspace>,
    /// Projects that were polled before. Only in these is an unknown workspace a new one.
    projects: BTreeSet<PathBuf>,
    signatures: Signatures,
    memory_signatures: Signatures,
}

impl App {
    /// Returns this project, followed by all existing projects of the registry.
    pub fn known_projects(&self) -> Vec<PathBuf> {
        let mut projects = self.registry.projects().unwrap_or_default();
        projects.retain(|project| project != self.project());
        projects.insert(0, self.project().to_owned());
        projects
    }
}

impl Watcher {
    /// Starts watching. The current state is the baseline, so existing data is not reported as changed.
    pub fn new(app: Arc<App>, projects: &[PathBuf]) -> Watcher {
        let mut watcher = Watcher {
            app,
            followers: BTreeMap::new(),
            projects: projects.iter().cloned().collect(),
            signatures: BTreeMap::new(),
            memory_signatures: BTreeMap::new(),
        };
        for (project, id) in watcher.workspaces(projects) {
            let subscription = watcher.app.store(&project).subscribe(&id, FeedStart::Now);
            watcher.followers.insert((project, id), FollowedWorkspace { subscription, is_present: true });
        }
        watcher.signatures = watcher.read_signatures(projects);
        watcher.memory_signatures = read_memory_signatures(projects);
        watcher
    }

    /// Returns changes in the journals, and changes of file signatures outside of workspaces and memory.
    pub fn poll_changes(&mut self, projects: &[PathBuf]) -> Vec<FeedEvent> {
        let mut events = Vec::new();
        for ((project, id), followed) in self.followers.iter_mut().filter(|(_, followed)| followed.is_present)
        {
            // A workspace that cannot be read now is read again at the next poll.
            let changes = followed.subscription.changes().unwrap_or_default();
            events.extend(changes.into_iter().map(|event| feed_event(project, id, event)));
        }
        let signatures = self.read_signatures(projects);
        events.extend(changed(&self.signatures, &signatures));
        self.signatures = signatures;
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
        let present = self.workspaces(projects);
        let mut is_changed = false;
        for (key, followed) in &mut self.followers {
            let is_present = present.contains(key);
            is_changed |= std::mem::replace(&mut followed.is_present, is_present) != is_present;
        }
        for key in present {
            if !self.followers.contains_key(&key) {
                let is_new = self.projects.contains(&key.0);
                let from = if is_new { FeedStart::After(0) } else { FeedStart::Now };
                let subscription = self.app.store(&key.0).subscribe(&key.1, from);
                self.followers.insert(key, FollowedWorkspace { subscription, is_present: true });
                is_changed = true;
            }
        }
        self.projects.extend(projects.iter().cloned());
        if is_changed {
            events.push(FeedEvent::Workspaces);
        }
        let signatures = read_memory_signatures(projects);
        events.extend(changed(&self.memory_signatures, &signatures));
        self.memory_signatures = signatures;
        let followed_keys =
            || self.followers.iter().filter(|(_, followed)| followed.is_present).map(|(key, _)| key);
        let count = followed_keys().count();
        let next = followed_keys().nth(turn % count.max(1)).cloned();
        let wanted =
            followed_keys().filter(|(_, id)| wanted.iter().any(|wanted| wanted == id.as_str())).cloned();
        let checked: BTreeSet<(PathBuf, WorkspaceId)> = wanted.chain(next).collect();
        for (project, id) in checked {
            let Some(followed) = self.followers.get_mut(&(project.clone(), id.clone())) else { continue };
            let changes = followed.subscription.changes().unwrap_or_default();
            let edits = followed.subscription.edits().unwrap_or_default();
            events.extend(changes.into_iter().chain(edits).map(|event| feed_event(&project, &id, event)));
        }
        (events, count)
    }

    fn workspaces(&self, projects: &[PathBuf]) -> BTreeSet<(PathBuf, WorkspaceId)> {
        let of = |project: &PathBuf| {
            let ids = self.app.store(project).ids().unwrap_or_default();
            ids.into_iter().map(|id| (project.clone(), id)).collect::<Vec<_>>()
        };
        projects.iter().flat_map(of).collect()
    }

    fn read_signatures(&self, projects: &[PathBuf]) -> Signatures {
        let sig = |path: PathBuf| FileSig::of(&path).ok().flatten();
        let home = self.app.home();
        let today = format!("{}.jsonl", clock::utc_day(self.app.now()));
        let mut signatures = BTreeMap::from([
            (FeedEvent::Bindings, vec![sig(home.join("session-bindings.json"))]),
            (FeedEvent::Ledger, vec![sig(home.join("ledger").join(today))]),
        ]);
        // Rules depend on rules files, trust and settings.
        let files =
            |dir: &PathBuf| ["rules.json", "config.json"].map(|name| sig(dir.join(CONFIG_DIR).join(name)));
        let folders = projects.iter().chain(&self.app.env.user).flat_map(files);
        let of_home = ["trust.json", "config.json"].map(|name| sig(home.join(name)));
        let of_workspaces = self
            .followers
            .keys()
            .filter_map(|(project, id)| sig(project.join(STORE_DIR).join(id.as_str()).join("rules.json")))
            .map(Some);
        signatures.insert(FeedEvent::Rules, folders.chain(of_home).chain(of_workspaces).collect());
        signatures
    }
}

fn read_memory_signatures(projects: &[PathBuf]) -> Signatures {
    let sig = |path: PathBuf| FileSig::of(&path).ok().flatten();
    let of = |project: &PathBuf| {
        let folder = Folder::of(project);
        let files = folder.files().unwrap_or_default().into_iter().map(|(_, path)| sig(path));
        let event = FeedEvent::Memory { project: project.display().to_string() };
        (event, files.chain([sig(folder.memory_md())]).collect())
    };
    projects.iter().map(of).collect()
}

fn changed<'a>(before: &'a Signatures, now: &'a Signatures) -> impl Iterator<Item = FeedEvent> + 'a {
    now.iter()
        .filter(|(event, signatures)| before.get(*event) != Some(signatures))
        .map(|(event, _)| event.clone())
}

fn feed_event(project: &Path, id: &WorkspaceId, event: store::StoreEvent) -> FeedEvent {
    let (workspace_id, project) = (id.clone(), project.display().to_string());
    let (change, nodes, gap) = match event {
        store::StoreEvent::Change { seq, nodes } => (Some(seq), nodes, false),
        store::StoreEvent::Edit { nodes } => (None, nodes, false),
        store::StoreEvent::Gap { seq } => (Some(seq), Vec::new(), true),
    };
    FeedEvent::Workspace { workspace_id, project, change, nodes, gap }
}
