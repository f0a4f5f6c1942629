//! One connection: its settings, a cache of prepared statements, and a limit on how long a call may take.
//!
//! The driver is asynchronous. Each connection has a runtime of its own, which runs only during a call.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use crate::error::{DatabaseError, DatabaseTrouble};

/// What every connection sets. Limits on waiting keep one slow transaction from stopping the others.
const SETTINGS: &str = "SET lock_timeout = '3s'; SET statement_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET timezone = 'UTC'; SET synchronous_commit = 'on'";
/// How long a call may take. The database ends a statement earlier, unless its machine or its processes stand still.
const CALL_TIMEOUT: Duration = Duration::from_secs(7);
/// How long the goodbye of a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// A role that sees the rows of every project would make the checks of the tables useless.
const IS_UNSAFE: &str =
    "SELECT rolsuper OR rolbypassrls AS is_unsafe FROM pg_catalog.pg_roles WHERE rolname = current_user";

/// Names the history of a database. It differs after a restore: into another database, into another cluster, or of the
/// files of a cluster.
const HISTORY: &str = "SELECT concat_ws('-', s.system_identifier, d.oid, c.timeline_id) AS history
FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d WHERE d.datname = current_database()";

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum CallError {
    Driver(tokio_postgres::Error),
    /// The database did not answer in time.
    TimedOut,
}

/// The network part of the driver. It sends and receives while it is polled, and is over when the connection is closed.
type Transport = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// A client of the driver that is used by blocking calls.
pub(crate) struct Link {
    runtime: Runtime,
    client: Option<Client>,
    /// `None` after it ended or a call timed out.
    transport: Option<Transport>,
    is_timed_out: bool,
}

impl Link {
    /// Waits until a connection is made.
    pub fn connect<S, T>(
        limit: Duration,
        connecting: impl Future<
            Output = Result<(Client, tokio_postgres::Connection<S, T>), tokio_postgres::Error>,
        >,
    ) -> Result<Link, CallError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Without a runtime the machine has no resources for a connection.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|_| CallError::TimedOut)?;
        let connected = runtime.block_on(async { tokio::time::timeout(limit, connecting).await });
        let (client, transport) = connected.map_err(|_| CallError::TimedOut)?.map_err(CallError::Driver)?;
        Ok(Link { runtime, client: Some(client), transport: Some(Box::pin(transport)), is_timed_out: false })
    }

    /// Runs a call of the client.
    fn call<T>(
        &mut self,
        call: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, CallError> {
        let Some(client) = self.client.as_ref().filter(|_| !self.is_timed_out) else {
            return Err(CallError::TimedOut);
        };
        let transport = &mut self.transport;
        let outcome = self.runtime.block_on(async {
            let mut call = pin!(call(client));
            // The error of the transport says more than that of the call, which it ends.
            let both = poll_fn(|cx| {
                match transport.as_mut().map(|transport| transport.as_mut().poll(cx)) {
                    Some(Poll::Ready(ended)) => {
                        *transport = None;
                        if let Err(error) = ended {
                            return Poll::Ready(Err(error));
                        }
                    }
                    Some(Poll::Pending) | None => {}
                }
                call.as_mut().poll(cx)
            });
            tokio::time::timeout(CALL_TIMEOUT, both).await
        });
        match outcome {
            Ok(answer) => answer.map_err(CallError::Driver),
            Err(_) => {
                self.is_timed_out = true;
                Err(CallError::TimedOut)
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Without its client, the transport says goodbye to the server and ends.
        self.client = None;
        if let Some(transport) = self.transport.take().filter(|_| !self.is_timed_out) {
            let _ = self.runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, transport).await });
        }
    }
}

pub(crate) struct Connection {
    link: Link,
    statements: HashMap<&'static str, Statement>,
    /// Names the history of the database; empty if the database does not tell it.
    pub history: String,
}

impl Connection {
    /// Prepares a new connection. It takes `role`, if one is given, which must be subject to row-level security.
    pub fn open(link: Link, role: Option<&str>) -> Result<Connection, DatabaseError> {
        let mut connection = Connection { link, statements: HashMap::new(), history: String::new() };
        connection.batch(SETTINGS)?;
        if let Some(role) = role {
            connection.batch(&format!("SET ROLE {role}"))?;
            connection.check_role()?;
            // Not every operator of a database allows this query.
            let rows = connection.query(HISTORY, &[]).unwrap_or_default();
            connection.history = rows.first().map(|row| row.get("history")).unwrap_or_default();
        }
        Ok(connection)
    }

    /// Fails if the role of the connection can bypass row-level security.
    pub fn check_role(&mut self) -> Result<(), DatabaseError> {
        let rows = self.query(IS_UNSAFE, &[])?;
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
    ) -> Result<Vec<Row>, CallError> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.link.call(async |client| client.prepare(sql).await)?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        self.link.call(async |client| client.query(&statement, params).await)
    }

    /// Runs statements without parameters in one round trip.
    pub fn batch(&mut self, sql: &str) -> Result<(), CallError> {
        self.link.call(async |client| client.batch_execute(sql).await)
    }

    pub fn is_closed(&self) -> bool {
        self.link.is_timed_out || self.link.client.as_ref().is_none_or(Client::is_closed)
    }

    /// Returns whether the database did not answer a call in time. The connection cannot be used any more.
    pub fn is_timed_out(&self) -> bool {
        self.link.is_timed_out
    }
}
