//! One machine of a team: a home and a checkout that joined the project.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tanmi_team::{Member, Membership};

use super::PROJECT;

pub struct Machine {
    tanmi: PathBuf,
    home: tempfile::TempDir,
    pub number: usize,
}

impl Machine {
    /// Returns a machine that joined the project of the server at a port, without a request to it.
    pub fn new(tanmi: &Path, number: usize, person: &str, token: &str, port: u16) -> Machine {
        let home = tempfile::tempdir().expect("create a temporary folder");
        let tanmi = tanmi.canonicalize().expect("path of the program");
        let machine = Machine { tanmi, home, number };
        let checkout = machine.checkout();
        std::fs::create_dir_all(&checkout).expect("create a folder");
        join(&machine.store(), &checkout, port, person, &machine.name(), token);
        machine
    }

    /// Returns the folder that is the home of the user.
    pub fn root(&self) -> PathBuf {
        self.home.path().canonicalize().expect("path of the home")
    }

    pub fn checkout(&self) -> PathBuf {
        self.root().join("checkout")
    }

    pub fn store(&self) -> PathBuf {
        self.root().join(".tanmi-workspace")
    }

    /// Returns the folder of the replica.
    pub fn replica(&self) -> PathBuf {
        let folders = std::fs::read_dir(self.store().join("team")).expect("the replica exists").flatten();
        folders.map(|entry| entry.path()).find(|path| path.is_dir()).expect("the replica exists")
    }

    pub fn name(&self) -> String {
        format!("machine{}", self.number)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.tanmi);
        command.args(args).current_dir(self.checkout()).env_clear();
        command.env("HOME", self.root()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command that must succeed and returns its JSON.
    pub fn run(&self, args: &[&str]) -> Value {
        let output = self.command(&[args, &["--json"]].concat()).output().expect("run the program");
        let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (printed(&output.stdout), printed(&output.stderr));
        assert!(output.status.success(), "{args:?}: {stdout} {stderr}");
        serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{args:?}: {stdout} {stderr}"))
    }

    pub fn create_workspace(&self) -> String {
        let made = self.run(&["workspace", "init", "--name", "Shop", "--goal", "Sell"]);
        made["workspaceId"].as_str().expect("the id of the workspace").to_owned()
    }

    /// Brings the replica to the state of the server.
    pub fn sync(&self) -> Result<(), String> {
        let output = self.command(&["team", "sync"]).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{}: {}", self.name(), String::from_utf8_lossy(&output.stderr))),
        }
    }
}

/// Records in a home store that a folder is the project of the server at a port.
pub fn join(store: &Path, folder: &Path, port: u16, person: &str, machine: &str, token: &str) -> Member {
    let member = Member {
        server: format!("http://127.0.0.1:{port}"),
        project: PROJECT.to_owned(),
        person: person.to_owned(),
        machine: machine.to_owned(),
        token: token.to_owned(),
        ca: None,
        folders: vec![folder.to_owned()],
        joined_at: 1,
        other: serde_json::Map::new(),
    };
    Membership::new(store).change(|members| members.push(member.clone())).expect("join");
    member
}
