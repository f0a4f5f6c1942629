//! Moves a project to the server of a team, and back into the files of its folder, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tanmi_base::paths::project_store;
use tanmi_base::{fs, hash};
use tanmi_memory::{Folder, transfer};
use tanmi_protocol::{Document, ImportRequest, ImportedWorkspace};
use tanmi_team::{Client, ClientError, Member, find_member};
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{WORKSPACE, WorkspaceDocuments, Workspaces};

use super::{JoinRequest, JoinResult, TeamService};
use crate::error::{Error, Result, TeamProblem};
use crate::stores::{Stores, memory_in_files, workspaces_in_files};

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

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveResult {
    pub server: String,
    pub project: String,
    pub folder: PathBuf,
    pub workspaces: usize,
    pub lines: usize,
    /// Why the latest state could not be fetched before. The files are then those of the replica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfetched: Option<String>,
}

impl TeamService {
    /// Moves the data of this project to the server and joins it. Can be repeated after an interruption: what the server
    /// has already is skipped, and local files move to the trash only after all of them are there.
    pub fn push(&self, request: JoinRequest, progress: &mut dyn FnMut(usize)) -> Result<PushResult> {
        let (member, role) = self.member_of(request)?;
        let (folder, home, now) = (self.core.folder().to_owned(), self.core.home(), self.core.now());
        let store = workspaces_in_files(&folder, home);
        let ids: Vec<WorkspaceId> = store.headers()?.into_iter().map(|(id, _)| id).collect();
        let memory = Folder::of(&folder);
        let lines = transfer::read_shared(&memory, now)?.lines;
        self.send(&member, &ids, &lines, progress)?;
        // From here on the project is that of the team. A local file moves to the trash only after its content is in its new
        // place.
        let joined = self.enter(member.clone(), role)?;
        self.copy_private_memory(&member, &lines)?;
        for id in &ids {
            store.delete(id, now)?;
        }
        let trash = project_store(&folder).join(".trash");
        if memory.exists() {
            fs::create_private_dir(&trash).map_err(Error::io(&trash))?;
            let kept = trash.join(format!("{now}-memory"));
            std::fs::rename(memory.dir(), &kept).map_err(Error::io(memory.dir()))?;
        }
        self.rebind(&folder, &joined.replica);
        SentWorkspaces::forget(&member.private_folder(home));
        Ok(PushResult { joined, pushed: ids.len(), lines: lines.len(), trash })
    }

    /// Copies the memory of the folder that is not shared to the place of private memory of the project.
    fn copy_private_memory(&self, member: &Member, shared: &[String]) -> Result<()> {
        let (folder, home, now) = (self.core.folder(), self.core.home(), self.core.now());
        let local = Folder::of(folder);
        if !local.exists() {
            return Ok(());
        }
        let private = private_lines(&memory_in_files(folder, home).export(true, now)?, shared);
        if !private.is_empty() {
            let project = Stores::local(home).projects.in_folder(folder);
            let memory = project.memory();
            memory.create(false)?;
            memory.import(&private.join("\n"), now, &mut |_, _| {})?;
        }
        copy_core_memory(&local.memory_md(), &Folder::of(&member.private_folder(home)).memory_md())
    }

    /// Sends workspaces and lines, and compares the workspaces with those that the server has then.
    fn send(
        &self,
        member: &Member,
        ids: &[WorkspaceId],
        lines: &[String],
        progress: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let client = Client::new(member);
        let store = workspaces_in_files(self.core.folder(), self.core.home());
        let failed = |error: ClientError| Error::from(error.into_store_error(&member.server));
        let mut sent = SentWorkspaces::read(&member.private_folder(self.core.home()));
        let mut done = 0;
        for id in ids {
            let documents = documents_of(store.documents(id)?);
            done += documents.len();
            // An interrupted attempt sent it, and others may have changed it since.
            if sent.contains(id, &documents) {
                continue;
            }
            let workspace = Some(ImportedWorkspace { id: id.clone(), documents: documents.clone() });
            client.import(&ImportRequest { workspace, ..ImportRequest::default() }).map_err(failed)?;
            let (mut fetched, _) = client.fetch(id.as_str()).map_err(failed)?;
            fetched.sort_by(|a, b| a.name.cmp(&b.name));
            if fetched != documents || documents_of(store.documents(id)?) != documents {
                return Err(Error::Team(TeamProblem::NotEqual { workspace: id.to_string() }));
            }
            sent.add(id, &documents)?;
            progress(done);
        }
        for lines in lines.chunks(LINES) {
            let part = ImportRequest { lines: lines.to_vec(), ..ImportRequest::default() };
            client.import(&part).map_err(failed)?;
            done += lines.len();
            progress(done);
        }
        Ok(())
    }

    /// Writes the data of this project back into the files of its folder, and ends its membership.
    pub fn leave(&self, discard: bool, progress: &mut dyn FnMut(usize)) -> Result<LeaveResult> {
        self.check_user()?;
        let team = self.team()?;
        let (folder, home, now) = (self.core.folder().to_owned(), self.core.home(), self.core.now());
        let members = self.members()?;
        let Some(member) = find_member(&members, home, self.core.project.folder()) else {
            return Err(Error::Team(TeamProblem::NotJoined { project: folder }));
        };
        let unfetched = self.sync(false, &mut |_| {}).err();
        let counts = team.memory().outbox().counts();
        let count = counts.queued + counts.undelivered;
        if count > 0 && !discard {
            return Err(Error::Team(TeamProblem::OutboxNotEmpty { count }));
        }
        let store = workspaces_in_files(&folder, home);
        let ids: Vec<WorkspaceId> = team.replica().headers()?.into_iter().map(|(id, _)| id).collect();
        for (done, id) in ids.iter().enumerate() {
            let documents = team.replica().documents(id)?;
            // An interrupted attempt wrote some of them.
            if store.exists(id)? {
                store.delete(id, now)?;
            }
            store.insert_documents(&documents)?;
            progress(done + 1);
        }
        let lines = self.write_memory(&folder)?;
        let core = Folder::of(&member.private_folder(home)).memory_md();
        copy_core_memory(&core, &Folder::of(&folder).memory_md())?;
        self.rebind(&member.replica(home), &folder);
        self.forget_folder(member, &folder)?;
        Ok(LeaveResult {
            server: member.server.clone(),
            project: member.project.clone(),
            folder,
            workspaces: ids.len(),
            lines,
            unfetched: unfetched.map(|error| error.message(self.core.lang())),
        })
    }

    /// Writes the shared lines of the memory as they are, and then the private records.
    fn write_memory(&self, folder: &Path) -> Result<usize> {
        let (home, now) = (self.core.home(), self.core.now());
        let memory = self.core.project.memory();
        let shared = transfer::read_shared(&Folder::of(self.core.project.folder()), now)?.lines;
        let all = if memory.exists() { memory.export(true, now)? } else { Vec::new() };
        let target = Folder::of(folder);
        if !shared.is_empty() && !target.exists() {
            transfer::write_lines(&target, &shared, now)?;
        }
        let private = private_lines(&all, &shared);
        if !private.is_empty() {
            let memory = memory_in_files(folder, home);
            memory.create(self.core.config.share_memory)?;
            memory.import(&private.join("\n"), now, &mut |_, _| {})?;
        }
        Ok(shared.len())
    }

    /// Ends the membership of a folder. The replica and what was private go with the last one.
    fn forget_folder(&self, member: &Member, folder: &Path) -> Result<()> {
        let membership = self.membership();
        let change = |members: &mut Vec<Member>| {
            for known in members.iter_mut().filter(|known| known.is_same_project(member)) {
                known.folders.retain(|known| known != folder);
            }
            members.retain(|known| !known.folders.is_empty());
            members.iter().any(|known| known.is_same_project(member))
        };
        let is_used = membership.change(change).map_err(Error::io(membership.path()))?;
        if !is_used {
            for folder in [member.replica(self.core.home()), member.private_folder(self.core.home())] {
                fs::remove_tree(&folder).map_err(Error::io(folder))?;
            }
        }
        Ok(())
    }

    /// Makes the bindings of sessions name the other folder of the project. A session whose binding cannot be changed is
    /// told that it is lost.
    fn rebind(&self, from: &Path, to: &Path) {
        let bindings = self.core.stores.bindings.as_ref();
        for (session, mut binding) in bindings.all().unwrap_or_default() {
            if binding.project == from {
                to.clone_into(&mut binding.project);
                binding.project_id = crate::trust::folder_id(to);
                let _ = bindings.bind(&session, &binding);
            }
        }
    }
}

/// The workspaces that a push has sent and compared, with the digest of their documents: `pushed.json` in the folder of what
/// stays on this machine, until the push ends.
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

    fn contains(&self, id: &WorkspaceId, documents: &[Document]) -> bool {
        self.digests.get(id.as_str()) == Some(&digest_of(documents))
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

/// Copies the core memory of a project, which is private, unless there is one.
fn copy_core_memory(from: &Path, to: &Path) -> Result<()> {
    let Some(bytes) = fs::read_optional(from).map_err(Error::io(from))? else { return Ok(()) };
    if to.exists() {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_private_dir(folder).map_err(Error::io(folder))?;
    }
    fs::write_private(to, &bytes).map_err(Error::io(to))
}

/// Returns the records that are not among the shared lines.
fn private_lines(all: &[String], shared: &[String]) -> Vec<String> {
    let id = |line: &String| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        value["id"].as_str().map(str::to_owned)
    };
    let known: BTreeSet<String> = shared.iter().filter_map(id).collect();
    all.iter().filter(|line| id(line).is_some_and(|id| !known.contains(&id))).cloned().collect()
}

/// Returns the documents of a workspace by name.
fn documents_of(documents: WorkspaceDocuments) -> Vec<Document> {
    let document = |name: &str, text: String| Document { name: name.to_owned(), text: Some(text) };
    let mut found = vec![document(WORKSPACE, documents.workspace)];
    found.extend(documents.nodes.into_iter().map(|(id, text)| document(id.as_str(), text)));
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}
