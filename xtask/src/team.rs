//! A team for tests and benchmarks: a PostgreSQL cluster with one project, its people, and server processes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use serde_json::Value;
use tanmi_cluster::{Cluster, Durability};

pub mod check;
pub mod http;
pub mod machine;

/// The name of the project.
pub const PROJECT: &str = "shop";

/// A program, and a home without any state.
pub struct Program {
    tanmi: PathBuf,
    home: tempfile::TempDir,
}

impl Program {
    pub fn new(tanmi: &Path) -> Program {
        // The program runs in another folder.
        let tanmi = tanmi.canonicalize().expect("path of the program");
        Program { tanmi, home: tempfile::tempdir().expect("create a temporary folder") }
    }

    fn command(&self, database: &str, args: &[&str]) -> Command {
        let mut command = Command::new(&self.tanmi);
        command.args(args).arg("--json").current_dir(self.home.path()).env_clear();
        command.env("HOME", self.home.path()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.env("TANMI_DATABASE_URL", database);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Creates the schema and the project. Returns the token of its admin.
    pub fn set_up(&self, database: &str) -> String {
        let args = ["team", "setup", "--team", "Acme", "--project-name", PROJECT, "--admin", "ada"];
        token_of(&mut self.command(database, &args))
    }

    /// Creates a token for a person.
    pub fn create_token(&self, database: &str, person: &str) -> String {
        let args =
            ["team", "token", "create", "--project-name", PROJECT, "--person", person, "--role", "member"];
        token_of(&mut self.command(database, &args))
    }

    /// Starts a server on a port; 0 chooses a free one. Returns `None` if it ends before it is ready.
    pub fn serve(&self, database: &str, port: u16) -> Option<Server> {
        let listen = format!("127.0.0.1:{port}");
        let mut args = vec!["serve", "--listen", &listen];
        // One token makes all requests here. A program of a former version has no limit.
        let help = self.command(database, &["serve", "--help"]).output().expect("run the program");
        if String::from_utf8_lossy(&help.stdout).contains("--rate-limit") {
            args.extend(["--rate-limit", "0"]);
        }
        let mut child = self.command(database, &args).spawn().expect("start the program");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut output = String::new();
        // The output is one JSON value on several lines.
        while stdout.read_line(&mut output).expect("read the output of the server") > 0 {
            let Ok(report) = serde_json::from_str::<Value>(&output) else { continue };
            let port = report["url"].as_str().and_then(|url| url.rsplit_once(':')?.1.parse().ok());
            return Some(Server { child, port: port.expect("the server prints its address") });
        }
        let _ = child.wait();
        None
    }
}

fn token_of(command: &mut Command) -> String {
    let output = command.output().expect("run the program");
    let made: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    made["token"].as_str().unwrap_or_else(|| panic!("{command:?} printed no token")).to_owned()
}

/// A server process; dropping the value kills it.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a cluster with an empty database.
pub fn start_cluster(durability: Durability) -> Result<Cluster, String> {
    match Cluster::start(durability) {
        Ok(Some(cluster)) => Ok(cluster),
        Ok(None) => Err(String::from("PostgreSQL is not installed; run scripts/install-postgres")),
        Err(error) => Err(format!("cannot start PostgreSQL: {error}")),
    }
}

/// Prints what is wrong after a run and returns its exit code.
pub fn print_violations(violations: &[String]) -> ExitCode {
    for line in violations.iter().take(20) {
        println!("VIOLATION: {}", tanmi_base::text::fit(line, 4000));
    }
    println!("{} violations", violations.len());
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
