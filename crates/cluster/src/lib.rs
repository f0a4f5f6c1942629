//! A PostgreSQL cluster of its own for a test or a benchmark. Not part of the program.
//!
//! `initdb` and `postgres` refuse to run as root, so root runs them as a user without rights. The server ends with the
//! process that started it.

#![cfg(unix)]

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// The user without rights that runs the programs of PostgreSQL if this process runs as root.
const UNPRIVILEGED: u32 = 65534;
/// How long a cluster may take to start, also after a crash.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Whether the server waits until its writes are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// For benchmarks.
    Disk,
    /// For tests: survives a crash of the server, but not of the machine.
    Process,
}

pub struct Cluster {
    /// Contains the data and the socket.
    dir: TempDir,
    /// The folder of the programs.
    bin: PathBuf,
    server: Child,
    /// Settings of the server, as `name=value`.
    settings: Vec<String>,
    /// The stopped processes of the server.
    frozen: Vec<Pid>,
}

impl Cluster {
    /// Starts a cluster with an empty database. Returns `None` where PostgreSQL is not installed.
    pub fn start(durability: Durability) -> io::Result<Option<Cluster>> {
        Cluster::start_with(durability, &[], |_| {})
    }

    /// Starts a cluster with further settings, as `name=value`. `prepare` gets the folder of the data before the start.
    pub fn start_with(
        durability: Durability,
        settings: &[&str],
        prepare: impl FnOnce(&Path),
    ) -> io::Result<Option<Cluster>> {
        let Some(bin) = programs() else { return Ok(None) };
        let dir = tempfile::Builder::new().prefix("tanmi-pg-").tempdir()?;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700))?;
        if is_root() {
            std::os::unix::fs::chown(dir.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED))?;
        }
        let options =
            ["--username=tanmi", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "-D"];
        let made = unprivileged(&bin.join("initdb")).args(options).arg(dir.path().join("data")).output()?;
        if !made.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&made.stderr)));
        }
        prepare(&dir.path().join("data"));
        let fsync = match durability {
            Durability::Disk => "fsync=on",
            Durability::Process => "fsync=off",
        };
        let settings: Vec<String> = ["listen_addresses=", "max_connections=150", fsync]
            .iter()
            .chain(settings)
            .map(|setting| String::from(*setting))
            .collect();
        let server = serve(&bin, dir.path(), &settings)?;
        let mut cluster = Cluster { dir, bin, server, settings, frozen: Vec::new() };
        cluster.wait()?;
        Ok(Some(cluster))
    }

    /// Kills the server, as a crash would, and starts it again.
    pub fn crash(&mut self) -> io::Result<()> {
        self.stop()?;
        self.resume()
    }

    /// Kills the server. [`Cluster::resume`] starts it again.
    pub fn stop(&mut self) -> io::Result<()> {
        self.server.kill()?;
        self.server.wait().map(|_| ())
    }

    /// Ends the server and all its connections at once. Unlike after [`Cluster::stop`], no connection works
    /// any more when this returns. [`Cluster::resume`] starts it again.
    pub fn shut_down(&mut self) -> io::Result<()> {
        kill(Pid::from_raw(self.server.id() as i32), Signal::SIGQUIT)?;
        self.server.wait().map(|_| ())
    }

    /// Returns the ids of all processes of the server.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        let server = Pid::from_raw(self.server.id() as i32);
        let all = std::iter::once(server).chain(children_of(server)?);
        Ok(all.map(|pid| pid.as_raw() as u32).collect())
    }

    /// Stops all processes of the server, as if its machine stood still: connections stay open, and no answer comes.
    pub fn freeze(&mut self) -> io::Result<()> {
        let server = Pid::from_raw(self.server.id() as i32);
        kill(server, Signal::SIGSTOP)?;
        self.frozen.push(server);
        // A stopped server starts no further process.
        for pid in children_of(server)? {
            // The process may have ended.
            if kill(pid, Signal::SIGSTOP).is_ok() {
                self.frozen.push(pid);
            }
        }
        Ok(())
    }

    /// Lets the stopped processes go on.
    pub fn thaw(&mut self) {
        for pid in self.frozen.drain(..).rev() {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }

    /// Starts the server again after [`Cluster::stop`].
    pub fn resume(&mut self) -> io::Result<()> {
        // The processes of connections notice the death of their server a moment later and keep the data in
        // use until then.
        let limit = Instant::now() + START_TIMEOUT;
        loop {
            self.server = serve(&self.bin, self.dir.path(), &self.settings)?;
            std::thread::sleep(Duration::from_millis(300));
            if self.server.try_wait()?.is_none() {
                return self.wait();
            }
            if Instant::now() > limit {
                return Err(self.failure("does not start again"));
            }
        }
    }

    /// Runs SQL as the owner of the cluster and returns what it printed, without headers.
    pub fn sql(&self, sql: &str) -> io::Result<String> {
        let mut psql = self.program("psql");
        let ran = psql.args(["--quiet", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql]).output()?;
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
            false => Err(io::Error::other(String::from_utf8_lossy(&ran.stderr))),
        }
    }

    /// Returns a program of PostgreSQL, set to connect to this cluster as its owner.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        command.env("PGHOST", self.dir.path()).env("PGPORT", self.port());
        command.env("PGUSER", "tanmi").env("PGDATABASE", "postgres");
        command
    }

    /// Returns the address for the owner of the cluster, as `key=value` pairs.
    pub fn address(&self) -> String {
        self.address_of("tanmi")
    }

    /// Returns the address for a user.
    pub fn address_of(&self, user: &str) -> String {
        format!("host={} port={} user={user} dbname=postgres", self.dir.path().display(), self.port())
    }

    fn port(&self) -> &str {
        self.settings.iter().find_map(|setting| setting.strip_prefix("port=")).unwrap_or("5432")
    }

    /// Returns the folder of the cluster, which contains the socket.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn wait(&mut self) -> io::Result<()> {
        let limit = Instant::now() + START_TIMEOUT;
        while self.sql("SELECT 1").is_err() {
            if self.server.try_wait()?.is_some() {
                return Err(self.failure("ended"));
            }
            if Instant::now() > limit {
                return Err(self.failure("does not answer"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn failure(&self, what: &str) -> io::Error {
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        io::Error::other(format!("PostgreSQL {what}: {log}"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A stopped process would not notice that its server ended.
        self.thaw();
        let _ = self.stop();
    }
}

fn serve(bin: &Path, dir: &Path, settings: &[String]) -> io::Result<Child> {
    let log = std::fs::File::options().create(true).append(true).open(dir.join("log"))?;
    unprivileged(&bin.join("postgres"))
        .arg("-D")
        .arg(dir.join("data"))
        .arg("-k")
        .arg(dir)
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
}

/// Returns the processes that a process started.
fn children_of(parent: Pid) -> io::Result<Vec<Pid>> {
    let output = Command::new("ps").args(["-e", "-o", "pid=,ppid="]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pair = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<i32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    let pairs = text.lines().filter_map(pair);
    Ok(pairs.filter(|(_, of)| *of == parent.as_raw()).map(|(pid, _)| Pid::from_raw(pid)).collect())
}

/// Gives a file to the user that runs the server.
pub fn hand_over(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    match is_root() {
        true => std::os::unix::fs::chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)),
        false => Ok(()),
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Returns a command that runs as an unprivileged user and ends with this process.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        let id = UNPRIVILEGED.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    }
    command.args(["--pdeathsig", "QUIT", "--"]).arg(program).current_dir("/");
    command
}

/// Returns the folder of `initdb`. Debian keeps it out of the search path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.into_iter().rev().chain(std::env::split_paths(&path));
    all.into_iter().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}
