//! One connection: its settings, and a cache of prepared statements.

use std::collections::HashMap;
use std::time::Duration;

use postgres::types::ToSql;
use postgres::{Client, Config, NoTls, Row, Statement};

use crate::error::DatabaseError;

/// What every connection sets. Limits on waiting keep one slow transaction from stopping the others.
const SETTINGS: &str = "SET lock_timeout = '3s'; SET statement_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET timezone = 'UTC'; SET synchronous_commit = 'on'";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the database is, and as whom to connect. Its `Debug` form does not contain the password.
#[derive(Clone)]
pub struct Address {
    config: Config,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let database = self.config.get_dbname().unwrap_or_default();
        write!(f, "Address({database:?} on {:?})", self.config.get_hosts())
    }
}

impl Address {
    /// Parses a URL (`postgres://user@host/database`) or a list of `key=value` pairs.
    pub fn parse(text: &str) -> Result<Address, DatabaseError> {
        let mut config: Config =
            text.parse().map_err(|error: postgres::Error| DatabaseError::Address(cause_of(&error)))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("tanmi");
        Ok(Address { config })
    }

    /// Returns whether the address contains a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Opens a connection that takes `role`, if one is given.
    pub(crate) fn connect(&self, role: Option<&str>) -> Result<Connection, DatabaseError> {
        let mut client = self.config.connect(NoTls)?;
        client.batch_execute(SETTINGS)?;
        if let Some(role) = role {
            client.batch_execute(&format!("SET ROLE {role}"))?;
        }
        Ok(Connection { client, statements: HashMap::new() })
    }
}

/// Returns what is wrong with an address. The first line of the driver's error does not repeat the text.
fn cause_of(error: &postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string())
}

pub(crate) struct Connection {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Connection {
    /// Runs a statement with parameters and returns its rows. The statement is prepared once per connection, so each
    /// later call is one round trip.
    pub fn query(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, postgres::Error> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql)?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        self.client.query(&statement, params)
    }

    /// Runs statements without parameters in one round trip.
    pub fn batch(&mut self, sql: &str) -> Result<(), postgres::Error> {
        self.client.batch_execute(sql)
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}
