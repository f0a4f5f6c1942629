//! What happens around us, for whoever shows it live: changes of other processes and of people in every known
//! workspace, and that bindings, ledger, memories or rules are no longer what they were.
//!
//! How often to look is up to the caller: [`Watcher::poll_changes`] is cheap, [`Watcher::poll_edits`] looks at every file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::clock;
use tanmi_base::fs::FileSig;
use tanmi_base::paths::{PROJECT_DIR, STORE_DIR};
use tanmi_memory::Folder;
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{self, Follower};

use crate::App;

/// Something that a view should look at again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FeedEvent {
    /// Nodes of a workspace are not what they were: ids, or `workspace` for its own file.
    Workspace {
        workspace_id: WorkspaceId,
        /// The same workspace may be in several projects: clones, work trees.
        project: String,
        /// The number of the change, if the program made it.
        #[serde(skip_serializing_if = "Option::is_none")]
        change: Option<u64>,
        nodes: Vec<String>,
        /// More may have happened than is told: look at all of it.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        gap: bool,
    },
    /// A workspace came or went.
    Workspaces,
    Bindings,
    Ledger,
    Memory {
        project: String,
    },
    Rules,
}

struct FollowedWorkspace {
    follower: Follower,
    /// One that went is remembered: it may come back, with another branch.
    is_there: bool,
}

pub struct Watcher {
    app: Arc<App>,
    followers: BTreeMap<(PathBuf, WorkspaceId), FollowedWorkspace>,
    /// Projects that were looked at before: only in those is a workspace that was not there a new one.
    projects: BTreeSet<PathBuf>,
    signs: BTreeMap<FeedEvent, Vec<Option<FileSig>>>,
    memories: BTreeMap<FeedEvent, Vec<Option<FileSig>>>,
}

impl App {
    /// Projects that this one knows of: its own, and all in the registry that are still there.
    pub fn known_projects(&self) -> Vec<PathBuf> {
        let mut projects = self.registry.projects().unwrap_or_default();
        projects.retain(|project| project != self.project());
        projects.insert(0, self.project().to_owned());
        projects
    }
}

impl Watcher {
    /// Begins here: what is there already has not happened now.
    pub fn new(app: Arc<App>, projects: &[PathBuf]) -> Watcher {
        let mut watcher = Watcher {
            app,
            followers: BTreeMap::new(),
            projects: projects.iter().cloned().collect(),
            signs: BTreeMap::new(),
            memories: BTreeMap::new(),
        };
        for (project, id) in watcher.workspaces(projects) {
            let follower = watcher.app.store(&project).follow(&id, false);
            watcher.followers.insert((project, id), FollowedWorkspace { follower, is_there: true });
        }
        watcher.signs = watcher.signs_now(projects);
        watcher.memories = memory_signs(projects);
        watcher
    }

    /// What the journals tell, and the signs of everything else.
    pub fn poll_changes(&mut self, projects: &[PathBuf]) -> Vec<FeedEvent> {
        let mut happened = Vec::new();
        for ((project, id), followed) in self.followers.iter_mut().filter(|(_, followed)| followed.is_there) {
            // A workspace that cannot be read now is looked at again the next time.
            let changes = followed.follower.changes().unwrap_or_default();
            happened.extend(changes.into_iter().map(|happening| seen(project, id, happening)));
        }
        let signs = self.signs_now(projects);
        happened.extend(differing(&self.signs, &signs));
        self.signs = signs;
        happened
    }

    /// Workspaces that came or went, and what people changed in those that are `wanted`, and in one after the other of the
    /// rest. Says how many there are.
    pub fn poll_edits(
        &mut self,
        projects: &[PathBuf],
        wanted: &[String],
        turn: usize,
    ) -> (Vec<FeedEvent>, usize) {
        let mut happened = Vec::new();
        let now = self.workspaces(projects);
        let mut is_changed = false;
        for (key, followed) in &mut self.followers {
            let is_there = now.contains(key);
            is_changed |= std::mem::replace(&mut followed.is_there, is_there) != is_there;
        }
        for key in now {
            if !self.followers.contains_key(&key) {
                let follower = self.app.store(&key.0).follow(&key.1, self.projects.contains(&key.0));
                self.followers.insert(key, FollowedWorkspace { follower, is_there: true });
                is_changed = true;
            }
        }
        self.projects.extend(projects.iter().cloned());
        if is_changed {
            happened.push(FeedEvent::Workspaces);
        }
        let memories = memory_signs(projects);
        happened.extend(differing(&self.memories, &memories));
        self.memories = memories;
        let there = || self.followers.iter().filter(|(_, followed)| followed.is_there).map(|(key, _)| key);
        let count = there().count();
        let next = there().nth(turn % count.max(1)).cloned();
        let wanted = there().filter(|(_, id)| wanted.iter().any(|wanted| wanted == id.as_str())).cloned();
        let looked: BTreeSet<(PathBuf, WorkspaceId)> = wanted.chain(next).collect();
        for (project, id) in looked {
            let Some(followed) = self.followers.get_mut(&(project.clone(), id.clone())) else { continue };
            let changes = followed.follower.changes().unwrap_or_default();
            let edited = followed.follower.edits().unwrap_or_default();
            happened
                .extend(changes.into_iter().chain(edited).map(|happening| seen(&project, &id, happening)));
        }
        (happened, count)
    }

    fn workspaces(&self, projects: &[PathBuf]) -> BTreeSet<(PathBuf, WorkspaceId)> {
        let of = |project: &PathBuf| {
            let ids = self.app.store(project).ids().unwrap_or_default();
            ids.into_iter().map(|id| (project.clone(), id)).collect::<Vec<_>>()
        };
        projects.iter().flat_map(of).collect()
    }

    fn signs_now(&self, projects: &[PathBuf]) -> BTreeMap<FeedEvent, Vec<Option<FileSig>>> {
        let sig = |path: PathBuf| FileSig::of(&path).ok().flatten();
        let home = self.app.home();
        let today = format!("{}.jsonl", clock::utc_day(self.app.now()));
        let mut signs = BTreeMap::from([
            (FeedEvent::Bindings, vec![sig(home.join("session-bindings.json"))]),
            (FeedEvent::Ledger, vec![sig(home.join("ledger").join(today))]),
        ]);
        // What rules there are, which of them may speak, and which are switched off.
        let files =
            |dir: &PathBuf| ["rules.json", "config.json"].map(|name| sig(dir.join(PROJECT_DIR).join(name)));
        let folders = projects.iter().chain(&self.app.env.user).flat_map(files);
        let own = ["trust.json", "config.json"].map(|name| sig(home.join(name)));
        // A workspace may have rules of its own.
        let of_workspaces = self
            .followers
            .keys()
            .filter_map(|(project, id)| sig(project.join(STORE_DIR).join(id.as_str()).join("rules.json")))
            .map(Some);
        signs.insert(FeedEvent::Rules, folders.chain(own).chain(of_workspaces).collect());
        signs
    }
}

fn memory_signs(projects: &[PathBuf]) -> BTreeMap<FeedEvent, Vec<Option<FileSig>>> {
    let sig = |path: PathBuf| FileSig::of(&path).ok().flatten();
    let of = |project: &PathBuf| {
        let folder = Folder::of(project);
        let files = folder.files().unwrap_or_default().into_iter().map(|(_, path)| sig(path));
        let happening = FeedEvent::Memory { project: project.display().to_string() };
        (happening, files.chain([sig(folder.memory_md())]).collect())
    };
    projects.iter().map(of).collect()
}

fn differing<'a>(
    before: &'a BTreeMap<FeedEvent, Vec<Option<FileSig>>>,
    now: &'a BTreeMap<FeedEvent, Vec<Option<FileSig>>>,
) -> impl Iterator<Item = FeedEvent> + 'a {
    now.iter().filter(|(kind, sign)| before.get(*kind) != Some(sign)).map(|(kind, _)| kind.clone())
}

fn seen(project: &Path, id: &WorkspaceId, happening: store::StoreEvent) -> FeedEvent {
    let (workspace_id, project) = (id.clone(), project.display().to_string());
    let (change, nodes, gap) = match happening {
        store::StoreEvent::Change { seq, nodes } => (Some(seq), nodes, false),
        store::StoreEvent::Edit { nodes } => (None, nodes, false),
        store::StoreEvent::Gap { seq } => (Some(seq), Vec::new(), true),
    };
    FeedEvent::Workspace { workspace_id, project, change, nodes, gap }
}
