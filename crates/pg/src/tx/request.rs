//! What a transaction does besides the workspace: sessions with leases, claims, and the answers of requests.

use std::collections::BTreeSet;

use postgres::Row;
use postgres::types::ToSql;
use tanmi_base::Millis;
use tanmi_workspace::error::{Error, Holder, Result};
use tanmi_workspace::model::NodeId;

use super::PgTx;
use crate::audit::{self, AuditEvent};
use crate::pool::PooledConnection;

const FIND_REQUEST: &str =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, r.digest, r.answer
FROM (SELECT 1) AS one LEFT JOIN request r ON r.project = $1 AND r.key = $2";
/// Also returns the last change of every stream.
pub(crate) const STORE_REQUEST: &str = "WITH stored AS (
    INSERT INTO request (project, key, digest, answer, at) VALUES ($1, $2, $3, $4, $5)
) SELECT s.id, s.seq FROM stream s LEFT JOIN workspace w ON w.project = s.project AND w.id = s.id
WHERE s.project = $1 AND w.deleted_at IS NULL";
/// Returns no row if the session belongs to another person.
pub(crate) const RENEW: &str =
    "INSERT INTO session (project, id, person, machine, lease_until) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (project, id) DO UPDATE SET machine = excluded.machine, lease_until = excluded.lease_until
WHERE session.person = excluded.person RETURNING id";
const LIVE: &str = "SELECT id FROM session WHERE project = $1 AND lease_until > $2";
const CLAIM: &str = "SELECT n.fence, n.holder, p.name, s.machine FROM node n
LEFT JOIN session s ON s.project = n.project AND s.id = n.holder
LEFT JOIN person p ON p.id = s.person
WHERE n.project = $1 AND n.ws = $2 AND n.id = $3";

/// Who makes a change.
#[derive(Clone, Debug)]
pub struct Author {
    pub person: String,
    pub session: Option<String>,
    pub machine: String,
}

impl PgTx<'_> {
    /// Returns the time of the database, which becomes that of the transaction, and the stored digest and answer of a
    /// request. A statement of its own: it sees what was committed while the transaction waited for its lock.
    pub fn open_request(&mut self, key: &str) -> Result<(Millis, Option<(String, String)>)> {
        let (now, stored) = find_request(&mut self.connection.borrow_mut(), &self.project, key)?;
        self.now = now;
        Ok((now, stored))
    }

    /// Sets when the lease of a session ends. Returns `false` if the session belongs to another person.
    pub fn renew_lease(&self, session: &str, person: &str, machine: &str, until: Millis) -> Result<bool> {
        let params: [&(dyn ToSql + Sync); 5] = [&self.project, &session, &person, &machine, &until];
        Ok(!self.connection.borrow_mut().query(RENEW, &params)?.is_empty())
    }

    /// Returns the sessions whose lease has not ended.
    pub fn live_sessions(&self, now: Millis) -> Result<BTreeSet<String>> {
        let rows = self.connection.borrow_mut().query(LIVE, &[&self.project, &now])?;
        Ok(rows.iter().map(|row| row.get("id")).collect())
    }

    /// Returns the number of the current claim on a node and its holder.
    pub fn claim(&self, node: &NodeId) -> Result<Option<(i64, Option<Holder>)>> {
        let rows = self.select_rows(CLAIM, &[&node.as_str()])?;
        let holder = |row: &Row| {
            let text = |column: &str| row.get::<_, Option<String>>(column);
            let (person, machine) = (text("name").unwrap_or_default(), text("machine").unwrap_or_default());
            text("holder").map(|session| match session.strip_prefix('@') {
                Some(name) => Holder { person: name.to_owned(), machine, session },
                None => Holder { session, person, machine },
            })
        };
        Ok(rows.first().map(|row| (row.get("fence"), holder(row))))
    }

    /// Returns the number of the current claim on a node.
    pub fn fence(&self, node: &NodeId) -> Result<Option<i64>> {
        Ok(self.claim(node)?.map(|(fence, _)| fence))
    }

    /// Adds an entry to the audit, with the change.
    pub fn record_audit(&self, event: &AuditEvent<'_>) -> Result<()> {
        audit::record(event, |sql, params| self.connection.borrow_mut().query(sql, params))
    }

    pub fn set_author(&mut self, author: Author) {
        self.author = Some(author);
    }

    /// Commits the change together with the answer to its request. Returns the last change of every stream before it.
    pub fn commit_request(mut self, key: &str, digest: &str, answer: &str) -> Result<Vec<Row>> {
        let params: [&(dyn ToSql + Sync); 5] = [&self.project, &key, &digest, &answer, &self.now];
        let heads = self.connection.borrow_mut().query(STORE_REQUEST, &params)?;
        self.finish()?;
        Ok(heads)
    }
}

/// Returns the time of the database, and the stored digest and answer of a request.
pub(crate) fn find_request(
    connection: &mut PooledConnection<'_>,
    project: &str,
    key: &str,
) -> Result<(Millis, Option<(String, String)>)> {
    if !(8..=100).contains(&key.chars().count()) || key.contains('\0') {
        let (zh, en) = ("应为 8 到 100 个字符", "expected 8 to 100 characters");
        return Err(Error::invalid("key", String::from(zh), String::from(en)));
    }
    let rows = connection.query(FIND_REQUEST, &[&project, &key])?;
    let Some(row) = rows.first() else { return Err(Error::UnexpectedOutcome) };
    let digest: Option<String> = row.get("digest");
    Ok((row.get("now"), digest.map(|digest| (digest, row.get("answer")))))
}
