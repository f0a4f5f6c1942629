//! A small pool of connections. A thread that finds none waits, for a limited time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use postgres::Row;
use postgres::types::ToSql;
use tanmi_workspace::error::Result;

use crate::connection::{Address, Connection};
use crate::error::{DatabaseError, store_error};
use crate::people::{self, Access};
use crate::schema::{self, APP_ROLE};

const MAX_CONNECTIONS: usize = 16;
const CAN_BYPASS: &str = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user";
const MAX_WAIT: Duration = Duration::from_secs(5);

pub struct Pool {
    address: Address,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Connection>,
    /// The number of open connections: idle, in use, and those that are being opened.
    open: usize,
}

impl Pool {
    /// Creates a pool whose connections take the role of the program, which sees one project at a time. Opens none.
    pub fn new(address: Address) -> Pool {
        Pool { address, state: Mutex::default(), returned: Condvar::new() }
    }

    /// Returns what a token gives in the project with this name, or in the only project of its person.
    pub fn authenticate(&self, project: Option<&str>, token: &str) -> Result<Access, DatabaseError> {
        self.with_connection(|connection| people::find_access(connection, project, token))
    }

    /// Fails if a server cannot work with this database: it is away, its schema is missing, too old or too new, or its
    /// role can bypass row-level security.
    pub fn check_ready(&self) -> Result<(), DatabaseError> {
        self.with_connection(|connection| {
            schema::check_version(connection)?;
            let rows = connection.query(CAN_BYPASS, &[])?;
            match rows.first().is_some_and(|row| row.get(0)) {
                true => Err(DatabaseError::RoleTooStrong),
                false => Ok(()),
            }
        })
    }

    /// Runs work outside of a transaction. A connection that failed is closed.
    fn with_connection<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let mut taken = self.take()?;
        let Some(connection) = &mut taken.connection else { return Err(DatabaseError::PoolBusy) };
        let outcome = work(connection);
        if outcome.is_err() && taken.connection.take().is_some() {
            self.release(None);
        }
        outcome
    }

    /// Takes an idle connection, or opens one.
    pub(crate) fn take(&self) -> Result<PooledConnection<'_>, DatabaseError> {
        let deadline = Instant::now() + MAX_WAIT;
        let mut state = self.state();
        loop {
            while let Some(connection) = state.idle.pop() {
                if !connection.is_closed() {
                    return Ok(PooledConnection { pool: self, connection: Some(connection) });
                }
                state.open -= 1;
            }
            if state.open < MAX_CONNECTIONS {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DatabaseError::PoolBusy);
            }
            state = self.returned.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.open += 1;
        drop(state);
        // A schema that changed while the server runs shows at the next connection.
        let opened = self.address.connect(Some(APP_ROLE)).and_then(|mut connection| {
            schema::check_version(&mut connection)?;
            Ok(connection)
        });
        if opened.is_err() {
            self.release(None);
        }
        Ok(PooledConnection { pool: self, connection: Some(opened?) })
    }

    fn release(&self, connection: Option<Connection>) {
        let mut state = self.state();
        match connection.filter(|connection| !connection.is_closed()) {
            Some(connection) => state.idle.push(connection),
            None => state.open -= 1,
        }
        self.returned.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that returns to its pool when it is dropped.
pub(crate) struct PooledConnection<'a> {
    pool: &'a Pool,
    /// `None` after a failure: the state of its transaction is unknown then.
    connection: Option<Connection>,
}

impl PooledConnection<'_> {
    pub fn query(&mut self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.run(|connection| connection.query(sql, params))
    }

    pub fn query_opt(&mut self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Option<Row>> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    pub fn batch(&mut self, sql: &str) -> Result<()> {
        self.run(|connection| connection.batch(sql))
    }

    fn run<T>(&mut self, call: impl FnOnce(&mut Connection) -> Result<T, postgres::Error>) -> Result<T> {
        let Some(connection) = &mut self.connection else {
            return Err(DatabaseError::Failed(String::from("the connection is closed")).into());
        };
        call(connection).map_err(store_error)
    }

    /// Ends the transaction without its changes. A connection that cannot do that is closed.
    pub fn roll_back(&mut self) {
        if self.batch("ROLLBACK").is_err() && self.connection.take().is_some() {
            self.pool.release(None);
        }
    }
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.release(Some(connection));
        }
    }
}
