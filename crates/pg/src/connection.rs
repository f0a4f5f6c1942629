//! One connection: its settings, and a cache of prepared statements.

use std::collections::HashMap;

use postgres::types::ToSql;
use postgres::{Client, Row, Statement};

use crate::error::{DatabaseError, DatabaseTrouble};

/// What every connection sets. Limits on waiting keep one slow transaction from stopping the others.
const SETTINGS: &str = "SET lock_timeout = '3s'; SET statement_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET timezone = 'UTC'; SET synchronous_commit = 'on'";
/// A role that sees the rows of every project would make the checks of the tables useless.
const IS_UNSAFE: &str =
    "SELECT rolsuper OR rolbypassrls AS is_unsafe FROM pg_catalog.pg_roles WHERE rolname = current_user";

pub(crate) struct Connection {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Connection {
    /// Prepares a new connection. It takes `role`, if one is given, which must be subject to row-level security.
    pub fn open(client: Client, role: Option<&str>) -> Result<Connection, DatabaseError> {
        let mut connection = Connection { client, statements: HashMap::new() };
        connection.batch(SETTINGS)?;
        if let Some(role) = role {
            connection.batch(&format!("SET ROLE {role}"))?;
            connection.check_role()?;
        }
        Ok(connection)
    }

    /// Fails if the role of the connection can bypass row-level security.
    pub fn check_role(&mut self) -> Result<(), DatabaseError> {
        let rows = self.client.query(IS_UNSAFE, &[])?;
        match rows.first().is_none_or(|row| row.get("is_unsafe")) {
            true => Err(DatabaseTrouble::UnsafeRole.into()),
            false => Ok(()),
        }
    }

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
