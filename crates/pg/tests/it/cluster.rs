//! A PostgreSQL cluster for one test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tanmi_cluster::Durability;
use tanmi_pg::{Address, PgStore, Pool, create_project, migrate};
use tanmi_workspace::stories::NOW;

pub struct Cluster(tanmi_cluster::Cluster);

impl Cluster {
    /// Starts a cluster with an empty database. Returns `None` where PostgreSQL is not installed.
    pub fn start() -> Option<Cluster> {
        Cluster::start_with(&[], |_| {})
    }

    /// Starts a cluster with these settings. `prepare` gets the folder of the data before the start.
    pub fn start_with(settings: &[&str], prepare: impl FnOnce(&Path)) -> Option<Cluster> {
        let cluster = tanmi_cluster::Cluster::start_with(Durability::Process, settings, prepare).unwrap();
        if cluster.is_none() {
            assert!(
                std::env::var_os("CI").is_none(),
                "PostgreSQL is not installed; scripts/install-postgres installs it"
            );
            println!("PostgreSQL is not installed: test skipped");
        }
        cluster.map(Cluster)
    }

    /// Ends the server and all its connections at once.
    pub fn kill(&mut self) {
        self.0.shut_down().unwrap();
    }

    /// Starts a killed server again.
    pub fn restart(&mut self) {
        self.0.resume().unwrap();
    }

    /// Kills the server, as a crash would, and starts it again.
    pub fn crash(&mut self) {
        self.0.crash().unwrap();
    }

    /// Stops all processes of the server. Connections stay open, and no answer comes.
    pub fn freeze(&mut self) {
        self.0.freeze().unwrap();
    }

    /// Lets the stopped processes go on.
    pub fn thaw(&mut self) {
        self.0.thaw();
    }

    /// Runs SQL as the owner of the tables.
    pub fn sql(&self, sql: &str) -> String {
        self.0.sql(sql).unwrap()
    }

    /// Returns the command that runs SQL as the owner of the tables.
    pub fn psql(&self, sql: &str) -> Command {
        let mut command = self.0.program("psql");
        command.args(["--quiet", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        command
    }

    /// Returns the address for the owner of the tables.
    pub fn address(&self) -> Address {
        self.address_of("tanmi")
    }

    /// Returns the address for a user.
    pub fn address_of(&self, user: &str) -> Address {
        Address::parse(&self.0.address_of(user)).unwrap()
    }

    /// Returns the folder of the data.
    pub fn data(&self) -> PathBuf {
        self.0.dir().join("data")
    }

    /// Creates the schema and returns the store of a project.
    pub fn store(&self, project: &str) -> PgStore {
        migrate(&self.address()).unwrap();
        let id = create_project(&self.address(), "team", project, NOW).unwrap();
        PgStore::new(Arc::new(Pool::new(self.address())), id)
    }
}

/// Gives a file to the user that runs the server.
pub fn hand_over(path: &Path, mode: u32) {
    tanmi_cluster::hand_over(path, mode).unwrap();
}
