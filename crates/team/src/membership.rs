//! Which projects of this machine a team server keeps: `team.json` in the home store, readable by its user alone.
//!
//! A file with the same name in a project does nothing: the user joins explicitly.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, fs, hash};

/// A project that a team server keeps.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The address of the server, without a slash at its end.
    pub server: String,
    /// The name of the project on the server.
    pub project: String,
    /// The name of the user on the server.
    pub person: String,
    /// The name of this machine, as others see it.
    pub machine: String,
    pub token: String,
    /// Certificates of the authority that signed the one of the server, if it is not known to the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The folders on this machine whose data is this project.
    pub folders: Vec<PathBuf>,
    pub joined_at: Millis,
    /// Keys of newer versions are kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl std::fmt::Debug for Member {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Member({} at {})", self.project, self.server)
    }
}

impl Member {
    /// Returns whether this is the project with this name on this server.
    pub fn is_same_project(&self, other: &Member) -> bool {
        (&self.server, &self.project) == (&other.server, &other.project)
    }

    /// Returns the folder of what stays on this machine: private memories and the outbox. It is not in the
    /// replica, which can be deleted without loss.
    pub fn private_folder(&self, home: &Path) -> PathBuf {
        home.join("team-private").join(self.replica(home).file_name().unwrap_or_default())
    }

    /// Returns the folder of the replica, in the layout of a project. Bindings name it.
    pub fn replica(&self, home: &Path) -> PathBuf {
        let name: String = self
            .project
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .collect();
        let digest = hash::sha256_hex(format!("{}\n{}", self.server, self.project).as_bytes());
        replicas(home).join(format!("{}-{}", tanmi_base::text::fit(&name, 40), &digest[..8]))
    }
}

/// Returns the folder of the replicas of all projects. It is in the home store, so no content of it came with a clone.
pub fn replicas(home: &Path) -> PathBuf {
    home.join("team")
}

#[derive(Default, Serialize, Deserialize)]
struct MembershipFile {
    #[serde(default)]
    version: u32,
    #[serde(default)]
    projects: Vec<Member>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The projects of this machine that a team server keeps.
pub struct Membership {
    home: PathBuf,
}

impl Membership {
    pub fn new(home: &Path) -> Membership {
        Membership { home: home.to_owned() }
    }

    /// Returns the file with the list.
    pub fn path(&self) -> PathBuf {
        self.home.join("team.json")
    }

    /// Returns the projects that were joined. Fails if the file exists and cannot be read: a joined project must not be
    /// taken for a local one.
    pub fn all(&self) -> std::io::Result<Vec<Member>> {
        Ok(self.load()?.projects)
    }

    fn load(&self) -> std::io::Result<MembershipFile> {
        match fs::read_optional(&self.path())? {
            None => Ok(MembershipFile::default()),
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
        }
    }

    /// Changes the list under a lock.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<Member>) -> T) -> std::io::Result<T> {
        fs::create_private_dir(&self.home)?;
        let _lock = Lock::exclusive(&self.home.join("team.lock")).map_err(std::io::Error::other)?;
        let mut file = self.load()?;
        file.version = file.version.max(1);
        let outcome = change(&mut file.projects);
        fs::write_private(&self.path(), &serde_json::to_vec_pretty(&file)?)?;
        Ok(outcome)
    }
}

/// Returns the project of a folder: one that joined, or a replica.
pub fn find_member<'a>(members: &'a [Member], home: &Path, folder: &Path) -> Option<&'a Member> {
    let is_of = |member: &&Member| {
        member.folders.iter().any(|known| known == folder) || member.replica(home) == folder
    };
    members.iter().find(is_of)
}
