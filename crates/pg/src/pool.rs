//! A small pool of connections. A thread that finds none waits, for a limited time.
//!
//! Writes of one stream come one after the other, so at most [`MAX_WRITERS`] of them get a connection. The others wait
//! without one: a workspace with many writers does not take the connections of all others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tanmi_workspace::error::{Error, Result};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::address::Address;
use crate::connection::{CallError, Connection};
use crate::error::{DatabaseError, DatabaseTrouble};
use crate::people::{self, Access};
use crate::schema::{self, APP_ROLE};

pub(crate) mod logins;
pub(crate) mod status;

const MAX_CONNECTIONS: usize = 16;
/// The number of connections that the writes of one stream use.
const MAX_WRITERS: usize = 4;
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The project and the stream of a write.
type StreamName = (String, String);

pub struct Pool {
    address: Address,
    state: Mutex<PoolState>,
    /// A connection or the place of a writer became free.
    released: Condvar,
    round_trips: AtomicU64,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Connection>,
    /// The number of open connections: idle, in use, and those that are being opened.
    open: usize,
    /// The number of writers of each stream that have a connection or wait for one.
    writers: BTreeMap<StreamName, usize>,
    /// The number of threads that wait for something to be released.
    waiting: usize,
}

impl Pool {
    /// Creates a pool whose connections take the role of the program, which sees one project at a time. Opens none.
    pub fn new(address: Address) -> Pool {
        Pool { address, state: Mutex::default(), released: Condvar::new(), round_trips: AtomicU64::new(0) }
    }

    /// Returns what a token gives in the project with this name, or in the only project of its person.
    pub fn authenticate(&self, project: Option<&str>, token: &str) -> Result<Access, DatabaseError> {
        let (_, access) = self.take(None, |connection| people::find_access(connection, project, token))?;
        Ok(access)
    }

    /// Checks that the database answers, that its schema is the one of this program, and that its role is safe.
    pub fn check_health(&self) -> Result<(), DatabaseError> {
        self.take(None, |connection| {
            connection.check_role()?;
            schema::check_version(connection)
        })
        .map(|_| ())
    }

    /// Returns how many times transactions waited for the database so far. What opens a connection or prepares a
    /// statement does not count.
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }

    /// Begins a transaction that sees one project.
    pub(crate) fn begin(&self, begin: &str, project: &str) -> Result<PooledConnection<'_>, DatabaseError> {
        self.begin_with(in_project(begin, project), None)
    }

    /// Begins a transaction that writes to a stream, and locks it, so writers come one after the other. Waits
    /// while other writers of the stream have their share of the connections. `prepare` runs before the lock.
    /// Statements after this see what was committed before the lock.
    pub(crate) fn begin_write(
        &self,
        prepare: &str,
        project: &str,
        stream: &str,
    ) -> Result<PooledConnection<'_>, DatabaseError> {
        let place = (project.to_owned(), stream.to_owned());
        let (project, stream) = (safe_id(project), safe_id(stream));
        let lock = |table: &str| {
            format!("SELECT 1 FROM {table} WHERE project = '{project}' AND id = '{stream}' FOR UPDATE")
        };
        let begin = in_project("BEGIN", &project);
        let sql = format!("{begin}; {prepare}{}; {}", lock("stream"), lock("workspace"));
        self.begin_with(sql, Some(place))
    }

    fn begin_with(
        &self,
        sql: String,
        place: Option<StreamName>,
    ) -> Result<PooledConnection<'_>, DatabaseError> {
        let (connection, ()) = self.take(place, |connection| {
            self.count();
            Ok(connection.batch(&sql)?)
        })?;
        Ok(connection)
    }

    fn count(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs one statement that writes, and runs it once: after a lost connection it is not known whether it counted.
    pub(crate) fn write(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, DatabaseError> {
        let (mut connection, ()) = self.take(None, |connection| Ok(connection.batch("SELECT 1")?))?;
        connection.call(|connection| Ok(connection.query(sql, params)?))
    }

    /// Takes a connection and makes the first call on it: the beginning of a transaction, or a read. A
    /// connection that the server closed while it was idle is replaced by a new one, on which the call is
    /// repeated.
    fn take<T>(
        &self,
        stream: Option<StreamName>,
        first_call: impl Fn(&mut Connection) -> Result<T, DatabaseError>,
    ) -> Result<(PooledConnection<'_>, T), DatabaseError> {
        let deadline = Instant::now() + MAX_WAIT;
        let place = stream.map(|name| self.enter(name, deadline)).transpose()?;
        loop {
            let (mut connection, is_new) = self.take_until(deadline)?;
            let error = match first_call(&mut connection) {
                Ok(value) => {
                    let connection = Some(connection);
                    return Ok((PooledConnection { pool: self, connection, _place: place }, value));
                }
                Err(error) => error,
            };
            let is_lost = matches!(error, DatabaseError::Trouble(DatabaseTrouble::Away));
            let can_repeat = is_lost && !is_new && !connection.is_timed_out();
            let is_usable = !is_lost && connection.batch("ROLLBACK").is_ok();
            self.release(Some(connection).filter(|_| is_usable));
            if !can_repeat {
                return Err(error);
            }
        }
    }

    /// Waits until a stream has a place for a writer, and takes it.
    fn enter(&self, name: StreamName, deadline: Instant) -> Result<WriterPlace<'_>, DatabaseError> {
        let mut state = self.state();
        while state.writers.get(&name).is_some_and(|writers| *writers >= MAX_WRITERS) {
            state = self.wait(state, deadline)?;
        }
        *state.writers.entry(name.clone()).or_default() += 1;
        Ok(WriterPlace { pool: self, name })
    }

    /// Returns an idle connection, or opens one. Also returns whether it is new.
    fn take_until(&self, deadline: Instant) -> Result<(Connection, bool), DatabaseError> {
        let mut state = self.state();
        loop {
            if let Some(connection) = state.idle.pop() {
                return Ok((connection, false));
            }
            if state.open < MAX_CONNECTIONS {
                break;
            }
            state = self.wait(state, deadline)?;
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
        Ok((opened?, true))
    }

    /// Waits until something is released. Fails at the deadline.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, PoolState>,
        deadline: Instant,
    ) -> Result<MutexGuard<'a, PoolState>, DatabaseError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(DatabaseTrouble::PoolBusy.into());
        }
        state.waiting += 1;
        let mut state = self.released.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        state.waiting -= 1;
        Ok(state)
    }

    /// Takes a connection back. If the server closed it, the idle ones are as old and closed too.
    fn release(&self, connection: Option<Connection>) {
        let mut state = self.state();
        let mut closed = Vec::new();
        match connection.filter(|connection| !connection.is_closed()) {
            Some(connection) => state.idle.push(connection),
            None => {
                closed = std::mem::take(&mut state.idle);
                state.open -= 1 + closed.len();
            }
        }
        self.released.notify_all();
        drop(state);
        // Dropped without the lock: a connection says goodbye to its server.
        drop(closed);
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a writer of a stream. It becomes free when it is dropped.
struct WriterPlace<'a> {
    pool: &'a Pool,
    name: StreamName,
}

impl Drop for WriterPlace<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        if let Some(writers) = state.writers.get_mut(&self.name) {
            *writers -= 1;
            if *writers == 0 {
                state.writers.remove(&self.name);
            }
        }
        self.pool.released.notify_all();
    }
}

/// A connection that returns to its pool when it is dropped.
pub(crate) struct PooledConnection<'a> {
    pool: &'a Pool,
    /// `None` after a failure: the state of its transaction is unknown then.
    connection: Option<Connection>,
    /// Becomes free with the connection.
    _place: Option<WriterPlace<'a>>,
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

    /// Runs calls on the connection itself.
    pub fn call<T, E: From<DatabaseError>>(
        &mut self,
        calls: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(connection) = &mut self.connection else {
            return Err(DatabaseError::from(DatabaseTrouble::Away).into());
        };
        calls(connection)
    }

    /// Returns the name of the history of the database.
    pub fn history(&self) -> String {
        self.connection.as_ref().map(|connection| connection.history.clone()).unwrap_or_default()
    }

    fn run<T>(&mut self, call: impl FnOnce(&mut Connection) -> Result<T, CallError>) -> Result<T> {
        self.pool.count();
        self.call(|connection| call(connection).map_err(DatabaseError::from)).map_err(Error::from)
    }

    /// Ends the transaction without its changes. A connection that cannot do that is closed.
    pub fn roll_back(&mut self) {
        if self.batch("ROLLBACK").is_err() && self.connection.take().is_some() {
            self.pool.release(None);
        }
    }
}

/// Returns the beginning of a transaction that sees the rows of one project.
pub(crate) fn in_project(begin: &str, project: &str) -> String {
    format!("{begin}; SET LOCAL tanmi.project = '{}'", safe_id(project))
}

/// Returns an id as it can stand in a statement. An id contains only letters, digits, hyphens and underscores.
fn safe_id(id: &str) -> String {
    id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect()
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.release(Some(connection));
        }
    }
}
