//! What the machines of a team read to keep their replicas: changes with their documents, whole workspaces, and which
//! sessions are alive.

use serde_json::Value;
use tanmi_base::Millis;
use tanmi_protocol::{Beat, Document, DocumentPage, FeedChange, FeedPage, MEMORY, Positions};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::store::WORKSPACE;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::memory;
use crate::people::Caller;
use crate::run::LEASE;
use crate::store::PgStore;

/// The most changes that one answer contains.
const MAX_CHANGES: i64 = 500;
pub(crate) const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Every stream except those of deleted workspaces. The stream of the memory has no workspace. The time of
/// the database comes with each row; without a stream it comes alone.
pub(crate) const HEADS: &str = "SELECT clock.now, heads.id, heads.seq
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) AS clock
LEFT JOIN (
    SELECT s.id, s.seq FROM stream s LEFT JOIN workspace w ON w.project = s.project AND w.id = s.id
    WHERE s.project = $1 AND w.deleted_at IS NULL
) AS heads ON true";
const TOTAL: &str =
    "SELECT (coalesce(sum(seq), 0) + count(*))::bigint AS total FROM stream WHERE project = $1";
/// Changes whose documents were removed are missing, which is a gap.
const CHANGES: &str = "SELECT c.stream, c.seq, c.at, c.names, c.docs, p.name AS person, c.session, c.machine
FROM unnest($2::text[], $3::bigint[]) AS have(stream, seq)
JOIN change c ON c.project = $1 AND c.stream = have.stream AND c.seq > have.seq AND cardinality(c.docs) > 0
LEFT JOIN person p ON p.id = c.person ORDER BY c.stream, c.seq LIMIT $4";
const DOCUMENTS: &str = "SELECT w.doc AS workspace, s.seq FROM workspace w
JOIN stream s ON s.project = w.project AND s.id = w.id
WHERE w.project = $1 AND w.id = $2 AND w.deleted_at IS NULL";
const NODES: &str =
    "SELECT id, doc FROM node WHERE project = $1 AND ws = $2 AND id > $3 ORDER BY id LIMIT $4";
const BEAT: &str = "UPDATE session SET lease_until = clock.now + $4
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) AS clock
WHERE project = $1 AND person = $2 AND id = ANY($3::text[]) RETURNING id, lease_until";
const FIND_EXPIRY: &str = "SELECT expires_at FROM token WHERE id = $2 AND $1 <> ''";
const FIND_ANSWER: &str = "SELECT answer FROM request WHERE project = $1 AND key = $2";

impl PgStore {
    /// Returns the changes after `have`, at most 500, and the last change of every stream.
    pub fn changes_after(&self, have: &Positions) -> Result<FeedPage> {
        let (streams, numbers): (Vec<&str>, Vec<i64>) =
            have.iter().map(|(stream, seq)| (stream.as_str(), *seq)).unzip();
        let params: [&(dyn ToSql + Sync); 4] = [&self.project, &streams, &numbers, &MAX_CHANGES];
        let (heads, rows, history) = self.transact(READ, |connection| {
            let heads = connection.query(HEADS, &[&self.project])?;
            Ok((heads, connection.query(CHANGES, &params)?, connection.history()))
        })?;
        let (now, heads) = (clock(&heads), positions(&heads));
        let changes: Vec<FeedChange> = rows.iter().map(change).collect();
        let gaps = have.iter().filter(|(stream, seq)| is_gap(stream, **seq, &heads, &changes));
        Ok(FeedPage { gaps: gaps.map(|(stream, _)| stream.clone()).collect(), changes, heads, now, history })
    }

    /// Returns up to `limit` documents of a workspace after the document `after`: first the workspace, then its nodes.
    /// Those of the stream `memory` are its records.
    pub fn documents(&self, stream: &str, after: Option<&str>, limit: usize) -> Result<DocumentPage> {
        if stream == MEMORY {
            return memory::documents(self, after, limit);
        }
        let limit = crate::rows::limit(limit.max(1));
        // The first page begins with the workspace itself.
        let from = after.filter(|name| *name != WORKSPACE).unwrap_or_default();
        let params: [&(dyn ToSql + Sync); 4] = [&self.project, &stream, &from, &(limit + 1)];
        let (header, nodes) = self.transact(READ, |connection| {
            Ok((connection.query(DOCUMENTS, &params[..2])?, connection.query(NODES, &params)?))
        })?;
        let Some(header) = header.first() else {
            return Err(Error::WorkspaceNotFound { id: stream.to_owned(), existing: Vec::new() });
        };
        let workspace = || Document { name: String::from(WORKSPACE), text: Some(header.get("workspace")) };
        let node = |row: &Row| Document { name: row.get("id"), text: Some(row.get("doc")) };
        let mut docs: Vec<Document> = after.is_none().then(workspace).into_iter().collect();
        let page = nodes.iter().take(limit.unsigned_abs() as usize);
        docs.extend(page.map(node));
        let has_more = nodes.len() as i64 > limit;
        let next = docs.last().filter(|_| has_more).map(|document| document.name.clone());
        Ok(DocumentPage { docs, seq0: header.get("seq"), next })
    }

    /// Renews the leases of sessions of a person.
    pub fn beat(&self, caller: &Caller, sessions: &[String]) -> Result<Beat> {
        let params: [&(dyn ToSql + Sync); 4] = [&self.project, &caller.person, &sessions, &LEASE];
        let (renewed, heads) = self.transact("BEGIN", |connection| {
            let renewed = connection.query(BEAT, &params)?;
            Ok((renewed, connection.query(HEADS, &[&self.project])?))
        })?;
        let known: Vec<&str> = renewed.iter().map(|row| row.get("id")).collect();
        let lost = sessions.iter().filter(|session| !known.contains(&session.as_str())).cloned().collect();
        let now = clock(&heads);
        let lease_until = renewed.first().map_or(now + LEASE, |row| row.get("lease_until"));
        let (heads, presence) = (positions(&heads), self.present_sessions()?);
        Ok(Beat {
            lease_until,
            lost,
            heads,
            now,
            presence,
            schema: crate::schema::VERSION,
            ..Beat::default()
        })
    }

    /// Returns when the token of a caller expires, if it does.
    pub fn token_expires_at(&self, caller: &Caller) -> Result<Option<Millis>> {
        Ok(self.query(FIND_EXPIRY, &[&caller.token])?.first().and_then(|row| row.get("expires_at")))
    }

    /// Returns the stored answer of a request, if it was carried out.
    pub fn find_answer(&self, key: &str) -> Result<Option<Value>> {
        let rows = self.query(FIND_ANSWER, &[&key])?;
        let Some(row) = rows.first() else { return Ok(None) };
        serde_json::from_str(row.get("answer")).map(Some).map_err(|_| Error::UnexpectedOutcome)
    }

    /// Returns a number that grows with every change of the project.
    pub fn total_changes(&self) -> Result<i64> {
        Ok(self.query(TOTAL, &[])?.first().map_or(0, |row| row.get("total")))
    }
}

fn change(row: &Row) -> FeedChange {
    let names: Vec<String> = row.get("names");
    let docs: Vec<Option<String>> = row.get("docs");
    FeedChange {
        stream: row.get("stream"),
        seq: row.get("seq"),
        at: row.get("at"),
        docs: names.into_iter().zip(docs).map(|(name, text)| Document { name, text }).collect(),
        person: row.get("person"),
        session: row.get("session"),
        machine: row.get("machine"),
    }
}

pub(crate) fn positions(rows: &[Row]) -> Positions {
    let head = |row: &Row| Some((row.get::<_, Option<String>>("id")?, row.get("seq")));
    rows.iter().filter_map(head).collect()
}

fn clock(rows: &[Row]) -> Millis {
    rows.first().map_or(0, |row| row.get("now"))
}

/// Returns whether changes after the position of a reader are missing, because their documents were removed. A stream whose
/// changes did not fit into the page has none of them, or only the first ones.
fn is_gap(stream: &str, have: i64, heads: &Positions, changes: &[FeedChange]) -> bool {
    // A memory without changes has no stream.
    let Some(head) = heads.get(stream) else { return stream != MEMORY || have > 0 };
    let is_full = changes.len() as i64 == MAX_CHANGES;
    let mut last = have;
    for change in changes.iter().filter(|change| change.stream == stream) {
        if change.seq != last + 1 {
            return true;
        }
        last = change.seq;
    }
    last > *head || (last < *head && !is_full)
}
