//! Moves the project of this folder to the server of a team, byte for byte.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tanmi_base::paths::project_store;
use tanmi_base::{Millis, fs, hash};
use tanmi_memory::{Folder, transfer};
use tanmi_protocol::{Document, ImportRequest, ImportedWorkspace};
use tanmi_team::{Client, ClientError, Member};
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{ChangeFeed, HeldWorkspace, WORKSPACE, WorkspaceDocuments};

use super::transfer::{copy_core_memory, private_lines};
use super::{JoinRequest, JoinResult, TeamService, fetch};
use crate::error::{Error, Result, TeamProblem};
use crate::stores::{LocalWorkspaces, Stores, memory_in_files, workspaces_in_files};

/// The number of lines of the memory in one request.
const LINES: usize = 500;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PushResult {
    #[serde(flatten)]
    pub joined: JoinResult,
    /// The number of workspaces that were moved to the server.
    pub pushed: usize,
    /// The number of lines of the memory that were moved to the server.
    pub lines: usize,
    /// Where the local files are for 30 days.
    pub trash: PathBuf,
}

impl TeamService {
    /// Moves the data of this project to the server and joins it. Can be repeated after an interruption: what
    /// the server has already is skipped, and local files move to the trash only after all of them are there.
    pub fn push(&self, request: JoinRequest, progress: &mut dyn FnMut(usize)) -> Result<PushResult> {
        let (member, role) = self.member_of(request)?;
        let (folder, home) = (self.core.folder().to_owned(), self.core.home());
        // One lock is open for each workspace.
        fs::raise_open_files();
        let mut push = Push {
            client: Client::new(&member),
            store: workspaces_in_files(&folder, home),
            memory: Folder::of(&folder),
            sent: SentWorkspaces::read(&member.private_folder(home)),
            held: Vec::new(),
            lines: Vec::new(),
            now: self.core.now(),
            done: 0,
            progress,
        };
        push.send_workspaces(&BTreeSet::new())?;
        push.send_lines()?;
        // From here on the project is that of the team, and calls that begin now use the server. A local file
        // moves to the trash only after its content is in its new place.
        let mut joined = self.enter(member.clone(), role)?;
        let sent = push.done;
        self.move_memory(&member, &mut push)?;
        let (pushed, changed) = push.move_workspaces()?;
        if push.done > sent {
            // What was added meanwhile is on the server. If it cannot be fetched now, the next sync does it.
            let stores = Stores::local(home);
            let fetched = fetch(&stores, &stores.projects.in_folder(&folder), &mut |_| {});
            joined.workspaces = fetched.map_or(joined.workspaces, |fetched| fetched.workspaces);
        }
        self.rebind(&folder, &joined.replica);
        if let Some(id) = changed.first() {
            return Err(changed_since(id));
        }
        SentWorkspaces::forget(&member.private_folder(home));
        let trash = project_store(&folder).join(".trash");
        Ok(PushResult { joined, pushed, lines: push.lines.len(), trash })
    }

    /// Copies the memory of the folder to where it is now, and moves its folder to the trash.
    fn move_memory(&self, member: &Member, push: &mut Push<'_>) -> Result<()> {
        if !push.memory.exists() {
            return Ok(());
        }
        // Until the folder is moved, no other call adds a line.
        let lock = push.memory.lock()?;
        push.send_lines()?;
        self.copy_private_memory(member, &push.lines)?;
        let trash = project_store(self.core.folder()).join(".trash");
        fs::create_private_dir(&trash).map_err(Error::io(&trash))?;
        // Windows cannot move a folder that contains an open file.
        if cfg!(windows) {
            drop(lock);
        }
        let kept = trash.join(format!("{}-memory", push.now));
        std::fs::rename(push.memory.dir(), &kept).map_err(Error::io(push.memory.dir()))
    }

    /// Copies the memory of the folder that is not shared to the place of private memory of the project.
    fn copy_private_memory(&self, member: &Member, shared: &[String]) -> Result<()> {
        let (folder, home, now) = (self.core.folder(), self.core.home(), self.core.now());
        let private = private_lines(&memory_in_files(folder, home).export(true, now)?, shared);
        if !private.is_empty() {
            let project = Stores::local(home).projects.in_folder(folder);
            let memory = project.memory();
            memory.create(false)?;
            memory.import(&private.join("\n"), now, &mut |_, _| {})?;
        }
        let core = Folder::of(&member.private_folder(home)).memory_md();
        copy_core_memory(&Folder::of(folder).memory_md(), &core)
    }
}

/// A push in progress.
struct Push<'a> {
    client: Client,
    store: LocalWorkspaces,
    memory: Folder,
    sent: SentWorkspaces,
    /// The workspaces that the server has. No other program writes to them until they are in the trash.
    held: Vec<HeldWorkspace>,
    /// The lines that the server has.
    lines: Vec<String>,
    now: Millis,
    /// The number of documents and lines so far.
    done: usize,
    progress: &'a mut dyn FnMut(usize),
}

impl Push<'_> {
    /// Sends the workspaces of the folder, except these, and compares each with what the server has then.
    /// Returns whether there was any.
    fn send_workspaces(&mut self, except: &BTreeSet<WorkspaceId>) -> Result<bool> {
        let ids: Vec<WorkspaceId> = self.store.ids()?.into_iter().filter(|id| !except.contains(id)).collect();
        for id in &ids {
            let held = self.store.hold(id)?;
            self.send_workspace(id, documents_of(self.store.held_documents(&held)?))?;
            self.held.push(held);
        }
        Ok(!ids.is_empty())
    }

    fn send_workspace(&mut self, id: &WorkspaceId, documents: Vec<Document>) -> Result<()> {
        self.done += documents.len();
        match self.sent.digest(id) {
            // An interrupted attempt sent it, and others may have changed it since.
            Some(digest) if *digest == digest_of(&documents) => return Ok(()),
            Some(_) => return Err(changed_since(id)),
            None => {}
        }
        let workspace = Some(ImportedWorkspace { id: id.clone(), documents: documents.clone() });
        self.import(&ImportRequest { workspace, ..ImportRequest::default() })?;
        let fetched = self.client.fetch(id.as_str());
        let (mut fetched, _) = fetched.map_err(|error| self.failed(error))?;
        fetched.sort_by(|a, b| a.name.cmp(&b.name));
        if fetched != documents {
            return Err(Error::Team(TeamProblem::NotEqual { workspace: id.to_string() }));
        }
        self.sent.add(id, &documents)?;
        (self.progress)(self.done);
        Ok(())
    }

    /// Sends the lines of the memory that the server does not have yet.
    fn send_lines(&mut self) -> Result<()> {
        let lines = transfer::read_shared(&self.memory, self.now)?.lines;
        let mut known: HashMap<&str, usize> = HashMap::new();
        for line in &self.lines {
            *known.entry(line).or_default() += 1;
        }
        // A memory that is forgotten twice has two equal lines.
        let is_new = |line: &&String| match known.get_mut(line.as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let new: Vec<String> = lines.iter().filter(is_new).cloned().collect();
        for lines in new.chunks(LINES) {
            self.import(&ImportRequest { lines: lines.to_vec(), ..ImportRequest::default() })?;
            self.done += lines.len();
            (self.progress)(self.done);
        }
        self.lines = lines;
        Ok(())
    }

    fn import(&self, part: &ImportRequest) -> Result<()> {
        self.client.import(part).map(|_| ()).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ClientError) -> Error {
        Error::from(error.into_store_error(self.client.server()))
    }

    /// Moves the local workspaces to the trash, also those that were created since the first look. Returns
    /// their number, and those that another program changed: they stay.
    fn move_workspaces(&mut self) -> Result<(usize, BTreeSet<WorkspaceId>)> {
        let (mut moved, mut changed) = (0, BTreeSet::new());
        loop {
            for held in std::mem::take(&mut self.held) {
                let (id, sent) = (held.id.clone(), self.sent.digest(&held.id).cloned());
                let is_same = |found| Some(digest_of(&documents_of(found))) == sent;
                match self.store.delete_held(held, self.now, is_same)? {
                    true => moved += 1,
                    false => {
                        changed.insert(id);
                    }
                }
            }
            if !self.send_workspaces(&changed)? {
                return Ok((moved, changed));
            }
        }
    }
}

fn changed_since(id: &WorkspaceId) -> Error {
    Error::Team(TeamProblem::ChangedSince { workspace: id.to_string() })
}

/// The workspaces that a push has sent and compared, with the digest of their documents: `pushed.json` in the
/// folder of what stays on this machine, until the push ends.
struct SentWorkspaces {
    path: PathBuf,
    digests: BTreeMap<String, String>,
}

impl SentWorkspaces {
    /// Reads those of an interrupted push. A missing or damaged file tells nothing.
    fn read(private: &Path) -> SentWorkspaces {
        let path = private.join("pushed.json");
        let bytes = fs::read_optional(&path).ok().flatten().unwrap_or_default();
        SentWorkspaces { digests: serde_json::from_slice(&bytes).unwrap_or_default(), path }
    }

    fn digest(&self, id: &WorkspaceId) -> Option<&String> {
        self.digests.get(id.as_str())
    }

    fn add(&mut self, id: &WorkspaceId, documents: &[Document]) -> Result<()> {
        self.digests.insert(id.to_string(), digest_of(documents));
        if let Some(folder) = self.path.parent() {
            fs::create_private_dir(folder).map_err(Error::io(folder))?;
        }
        let text = serde_json::to_vec(&self.digests).unwrap_or_default();
        fs::write_private(&self.path, &text).map_err(Error::io(&self.path))
    }

    /// Removes the file. One that stays names documents that are no longer in the folder.
    fn forget(private: &Path) {
        let _ = std::fs::remove_file(private.join("pushed.json"));
    }
}

fn digest_of(documents: &[Document]) -> String {
    hash::sha256_hex(&serde_json::to_vec(documents).unwrap_or_default())
}

/// Returns the documents of a workspace by name.
fn documents_of(documents: WorkspaceDocuments) -> Vec<Document> {
    let document = |name: &str, text: String| Document { name: name.to_owned(), text: Some(text) };
    let mut found = vec![document(WORKSPACE, documents.workspace)];
    found.extend(documents.nodes.into_iter().map(|(id, text)| document(id.as_str(), text)));
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}
