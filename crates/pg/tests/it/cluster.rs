//! A PostgreSQL cluster for one test.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tanmi_pg::{Address, PgStore, Pool, create_project, migrate};
use tanmi_workspace::stories::NOW;
use tempfile::TempDir;

/// `initdb` and `postgres` refuse to run as root, so root runs them as this user, which has no rights.
const UNPRIVILEGED: u32 = 65534;

pub struct Cluster {
    /// Holds the data and the socket.
    dir: TempDir,
    /// The folder of the programs.
    bin: PathBuf,
    server: Child,
}

impl Cluster {
    /// Starts a cluster with an empty database. Returns `None` where PostgreSQL is not installed.
    pub fn start() -> Option<Cluster> {
        let Some(bin) = programs() else {
            assert!(
                std::env::var_os("CI").is_none(),
                "PostgreSQL is not installed; scripts/install-postgres installs it"
            );
            println!("PostgreSQL is not installed: test skipped");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("tanmi-pg-").tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        if is_root() {
            std::os::unix::fs::chown(dir.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
        let data = dir.path().join("data");
        let made = unprivileged(&bin.join("initdb"))
            .args([
                "--username=tanmi",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let server = serve(&bin, dir.path());
        let mut cluster = Cluster { dir, bin, server };
        cluster.wait();
        Some(cluster)
    }

    /// Kills the server, as a crash would, and starts it again.
    pub fn crash(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        // The processes of connections notice the death of their server a moment later and keep the data in use until then.
        let limit = Instant::now() + Duration::from_secs(30);
        loop {
            self.server = serve(&self.bin, self.dir.path());
            std::thread::sleep(Duration::from_millis(300));
            if self.server.try_wait().unwrap().is_none() {
                break;
            }
            assert!(Instant::now() < limit, "PostgreSQL does not start again");
        }
        self.wait();
    }

    /// Runs SQL as the owner of the tables.
    pub fn sql(&self, sql: &str) {
        let ran = Command::new(self.bin.join("psql"))
            .args(["--quiet", "-v", "ON_ERROR_STOP=1", "-U", "tanmi", "-d", "postgres", "-c", sql, "-h"])
            .arg(self.dir.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    fn wait(&mut self) {
        let limit = Instant::now() + Duration::from_secs(60);
        let address = self.address();
        while tanmi_pg::schema_state(&address).is_err() {
            let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(self.server.try_wait().unwrap().is_none(), "PostgreSQL ended: {}", log());
            assert!(Instant::now() < limit, "PostgreSQL does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the address for the owner of the tables.
    pub fn address(&self) -> Address {
        Address::parse(&format!("host={} user=tanmi dbname=postgres", self.dir.path().display())).unwrap()
    }

    /// Creates the schema and returns the store of a project.
    pub fn store(&self, project: &str) -> PgStore {
        migrate(&self.address()).unwrap();
        let id = create_project(&self.address(), "team", project, NOW).unwrap();
        PgStore::new(Arc::new(Pool::new(self.address())), id)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn serve(bin: &Path, dir: &Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
    unprivileged(&bin.join("postgres"))
        .arg("-D")
        .arg(dir.join("data"))
        .arg("-k")
        .arg(dir)
        .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=100"])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
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
