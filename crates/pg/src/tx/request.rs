//! What a transaction does besides the workspace: sessions with leases, claims, and the answers of requests.

use std::collections::BTreeSet;

use tanmi_base::Millis;
use tanmi_protocol::Positions;
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::{NodeId, WorkspaceId};
use tokio_postgres::Row;

use super::PgTx;
use crate::audit::{self, AuditEvent};
use crate::flush::StoredRequest;
use crate::pool::PooledConnection;
use crate::rows;
use crate::run::LEASE;
use crate::store::PgStore;

/// The time of the database, and the renewed session, if it does not belong to another person. The parameters
/// are: project, key of the request, session, person, machine, lease.
macro_rules! open_ctes {
    () => {
        "WITH clock AS (
            SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
        ), renewed AS (
            INSERT INTO session (project, id, person, machine, lease_until)
            SELECT $1, $3::text, $4::text, $5::text, now + $6::bigint FROM clock WHERE $3::text IS NOT NULL
            ON CONFLICT (project, id) DO UPDATE SET machine = excluded.machine, lease_until = excluded.lease_until
            WHERE session.person = excluded.person RETURNING id
        )"
    };
}
pub(crate) use open_ctes;

/// A statement of its own: it sees what was committed while the transaction waited for its lock. Only holders
/// of nodes are asked whether they are alive.
const OPEN: &str = concat!(
    open_ctes!(),
    " SELECT clock.now, r.digest, r.answer, EXISTS (SELECT 1 FROM renewed) AS is_renewed, s.seq, w.doc,
        ARRAY(SELECT h.id FROM node n JOIN session h ON h.project = n.project AND h.id = n.holder
            WHERE n.project = $1 AND n.ws = $7 AND n.holder IS NOT NULL AND h.lease_until > clock.now) AS live
    FROM clock LEFT JOIN request r ON r.project = $1 AND r.key = $2
    LEFT JOIN workspace w ON w.project = $1 AND w.id = $7 AND w.deleted_at IS NULL
    LEFT JOIN stream s ON s.project = w.project AND s.id = w.id"
);
const FIND_REQUEST: &str =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, r.digest, r.answer
FROM (SELECT 1) AS one LEFT JOIN request r ON r.project = $1 AND r.key = $2";
/// Also returns the last change of every stream.
pub(crate) const STORE_REQUEST: &str = "WITH stored AS (
    INSERT INTO request (project, key, digest, answer, at) VALUES ($1, $2, $3, $4, $5)
) SELECT s.id, s.seq FROM stream s LEFT JOIN workspace w ON w.project = s.project AND w.id = s.id
WHERE s.project = $1 AND w.deleted_at IS NULL";

/// Commits a renewed lease, which may be lost in a crash, without waiting for the disk.
pub(crate) const COMMIT_LEASE: &str = "SET LOCAL synchronous_commit = off; COMMIT";

/// Who makes a change.
#[derive(Clone, Debug)]
pub struct Author {
    pub person: String,
    pub session: Option<String>,
    pub machine: String,
}

/// What the first statement of a request found.
pub(crate) struct Opened<'a> {
    pub connection: PooledConnection<'a>,
    /// The time of the database.
    pub now: Millis,
    /// The digest and the answer of an earlier request with the same key.
    pub stored: Option<(String, String)>,
    /// Whether the session of the request belongs to another person.
    pub is_foreign: bool,
    /// The sessions that hold nodes of the workspace and whose lease has not ended.
    pub live: BTreeSet<String>,
    /// The number of the last change and the document of the workspace, if it exists.
    header: Option<(i64, String)>,
}

impl PgStore {
    /// Begins a write for a request and renews the lease of its session.
    pub(crate) fn open_request(
        &self,
        workspace: &WorkspaceId,
        key: &str,
        author: &Author,
    ) -> Result<Opened<'_>> {
        check_key(key)?;
        let mut connection = self.pool.begin_write("", &self.project, workspace.as_str())?;
        let Author { person, session, machine } = author;
        let rows = connection
            .query(OPEN, &[&self.project, &key, session, person, machine, &LEASE, &workspace.as_str()])
            .inspect_err(|_| connection.roll_back())?;
        let Some(row) = rows.first() else { return Err(Error::UnexpectedOutcome) };
        let seq: Option<i64> = row.get("seq");
        let live: Vec<String> = row.get("live");
        Ok(Opened {
            now: row.get("now"),
            stored: stored_answer(row),
            is_foreign: session.is_some() && !row.get::<_, bool>("is_renewed"),
            live: live.into_iter().chain(session.clone()).collect(),
            header: seq.map(|seq| (seq, row.get("doc"))),
            connection,
        })
    }
}

impl<'a> Opened<'a> {
    /// Returns the transaction on the workspace, if it exists.
    pub fn into_tx(self, store: &PgStore, workspace: &WorkspaceId, author: Author) -> Result<PgTx<'a>> {
        let Opened { mut connection, header, now, .. } = self;
        if header.is_none() {
            // Keeps the lease.
            connection.batch(COMMIT_LEASE)?;
        }
        let mut tx = PgTx::open(connection, &store.project, workspace, header, now)?;
        tx.author = Some(author);
        Ok(tx)
    }
}

impl PgTx<'_> {
    /// Adds an entry to the audit, with the change.
    pub fn record_audit(&self, event: &AuditEvent<'_>) -> Result<()> {
        audit::record(event, |sql, params| self.connection.borrow_mut().query(sql, params))
    }

    /// Returns the number that the claim on a node has when the transaction is committed.
    pub fn fence(&self, node: &NodeId) -> Result<Option<i64>> {
        let Some(claim) = self.claim(node)? else { return Ok(None) };
        let holder = self.put_nodes.get(node).and_then(|put| put.as_ref().and_then(rows::holder));
        let is_new =
            holder.is_some() && holder != claim.holder.as_ref().map(|holder| holder.session.as_str());
        Ok(Some(if is_new { self.seq + 1 } else { claim.fence }))
    }

    /// Commits the change together with the answer to its request. Returns the last change of every stream before it.
    pub fn commit_request(mut self, request: StoredRequest<'_>) -> Result<Positions> {
        self.finish(Some(request))
    }

    /// Ends the transaction of a refused request. Returns whether the lease of its session was kept, which is
    /// not possible if the database has some of the changes.
    pub fn refuse(mut self) -> bool {
        if self.has_sent.get() {
            return false;
        }
        self.is_over = self.connection.borrow_mut().batch(COMMIT_LEASE).is_ok();
        self.is_over
    }
}

/// Returns the digest and the answer of a stored request.
pub(crate) fn stored_answer(row: &Row) -> Option<(String, String)> {
    Some((row.get::<_, Option<String>>("digest")?, row.get("answer")))
}

/// Fails if the key of a request cannot be stored.
pub(crate) fn check_key(key: &str) -> Result<()> {
    if (8..=100).contains(&key.chars().count()) && !key.contains('\0') {
        return Ok(());
    }
    let (zh, en) = ("应为 8 到 100 个字符", "expected 8 to 100 characters");
    Err(Error::invalid("key", String::from(zh), String::from(en)))
}

/// Returns the time of the database, and the stored digest and answer of a request.
pub(crate) fn find_request(
    connection: &mut PooledConnection<'_>,
    project: &str,
    key: &str,
) -> Result<(Millis, Option<(String, String)>)> {
    check_key(key)?;
    let rows = connection.query(FIND_REQUEST, &[&project, &key])?;
    let Some(row) = rows.first() else { return Err(Error::UnexpectedOutcome) };
    Ok((row.get("now"), stored_answer(row)))
}
