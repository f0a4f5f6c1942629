//! A PostgreSQL cluster for one test.

use std::sync::Arc;

use tanmi_cluster::Durability;
use tanmi_pg::{Address, PgStore, Pool, create_project, migrate};
use tanmi_workspace::stories::NOW;

pub struct Cluster(tanmi_cluster::Cluster);

impl Cluster {
    /// Starts a cluster with an empty database. Returns `None` where PostgreSQL is not installed.
    pub fn start() -> Option<Cluster> {
        let cluster = tanmi_cluster::Cluster::start(Durability::Process).unwrap();
        if cluster.is_none() {
            assert!(
                std::env::var_os("CI").is_none(),
                "PostgreSQL is not installed; scripts/install-postgres installs it"
            );
            println!("PostgreSQL is not installed: test skipped");
        }
        cluster.map(Cluster)
    }

    /// Kills the server, as a crash would, and starts it again.
    pub fn crash(&mut self) {
        self.0.crash().unwrap();
    }

    /// Runs SQL as the owner of the tables.
    pub fn sql(&self, sql: &str) -> String {
        self.0.sql(sql).unwrap()
    }

    /// Returns the address for the owner of the tables.
    pub fn address(&self) -> Address {
        Address::parse(&self.0.address()).unwrap()
    }

    /// Creates the schema and returns the store of a project.
    pub fn store(&self, project: &str) -> PgStore {
        migrate(&self.address()).unwrap();
        let id = create_project(&self.address(), "team", project, NOW).unwrap();
        PgStore::new(Arc::new(Pool::new(self.address())), id)
    }
}
