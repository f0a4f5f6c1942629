//! The record of logins and of changes to the people, tokens and projects of a team. Entries are only added.

use serde_json::{Value, json};
use tanmi_base::{Millis, id};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connection::Connection;
use crate::error::DatabaseError;
use crate::pool::Pool;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditKind {
    Login,
    LoginFailed,
    Logout,
    ProjectAdded,
    PersonAdded,
    PersonDisabled,
    PersonEnabled,
    /// The role of a person in a project was set or removed.
    MemberSet,
    TokenCreated,
    TokenRevoked,
    TokenRotated,
    Exported,
    Imported,
    /// A session overrode the claim of another one.
    ClaimForced,
}

impl AuditKind {
    pub const WORDS: &[&str] = &[
        "login",
        "login_failed",
        "logout",
        "project_added",
        "person_added",
        "person_disabled",
        "person_enabled",
        "member_set",
        "token_created",
        "token_revoked",
        "token_rotated",
        "exported",
        "imported",
        "claim_forced",
    ];

    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// An entry to add.
#[derive(Clone, Debug)]
pub struct AuditEvent<'a> {
    /// The id of the project, if the event concerns one. Its admins see the entry.
    pub project: Option<&'a str>,
    /// The id of the person who did it, if that is known.
    pub person: Option<&'a str>,
    /// The address from which the request came.
    pub ip: Option<&'a str>,
    pub what: AuditKind,
    /// A JSON object. Contains no secret.
    pub detail: Value,
}

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub id: String,
    pub at: Millis,
    /// The name of the project.
    pub project: Option<String>,
    /// The name of the person.
    pub person: Option<String>,
    pub ip: Option<String>,
    pub what: String,
    pub detail: Value,
}

impl AuditEntry {
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id, "at": self.at, "project": self.project, "person": self.person, "ip": self.ip,
            "what": self.what, "detail": self.detail,
        })
    }
}

/// Which entries to read, the latest first.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// The id of the project.
    pub project: Option<String>,
    /// The name of the person who did it, or to whom it was done.
    pub person: Option<String>,
    pub what: Option<String>,
    pub since: Option<Millis>,
    /// The id of an entry: only entries before it.
    pub before: Option<String>,
    pub limit: usize,
}

/// An id begins with the time in microseconds, so that entries of one millisecond keep their order.
const RECORD: &str = "INSERT INTO audit (id, at, project, person, ip, what, detail)
VALUES (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000000)::bigint), 14, '0') || $1,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $2, $3, $4, $5, $6)";
const LIST: &str = "SELECT a.id, a.at, j.name AS project, p.name AS person, a.ip, a.what, a.detail
FROM audit a LEFT JOIN project j ON j.id = a.project LEFT JOIN person p ON p.id = a.person
WHERE ($1::text IS NULL OR a.project = $1)
    AND ($2::text IS NULL OR p.name = $2 OR a.detail::jsonb ->> 'name' = $2)
    AND ($3::text IS NULL OR a.what = $3) AND ($4::bigint IS NULL OR a.at >= $4)
    AND ($5::text IS NULL OR (a.at, a.id) < (SELECT b.at, b.id FROM audit b WHERE b.id = $5))
ORDER BY a.at DESC, a.id DESC LIMIT $6";

/// Adds an entry with `run`, which runs a statement on the connection of a caller.
pub(crate) fn record<E>(
    event: &AuditEvent<'_>,
    run: impl FnOnce(&'static str, &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, E>,
) -> Result<(), E> {
    let AuditEvent { project, person, ip, what, detail } = event;
    let params: [&(dyn ToSql + Sync); 6] =
        [&id::random(8), project, person, ip, &what.as_str(), &detail.to_string()];
    run(RECORD, &params).map(|_| ())
}

pub(crate) fn list(
    connection: &mut Connection,
    filter: &AuditFilter,
) -> Result<Vec<AuditEntry>, DatabaseError> {
    let AuditFilter { project, person, what, since, before, limit } = filter;
    let params: [&(dyn ToSql + Sync); 6] =
        [project, person, what, since, before, &crate::rows::limit(*limit)];
    Ok(connection.query(LIST, &params)?.iter().map(entry).collect())
}

fn entry(row: &Row) -> AuditEntry {
    AuditEntry {
        id: row.get("id"),
        at: row.get("at"),
        project: row.get("project"),
        person: row.get("person"),
        ip: row.get("ip"),
        what: row.get("what"),
        detail: serde_json::from_str(row.get("detail")).unwrap_or_default(),
    }
}

impl Pool {
    /// Adds an entry to the audit.
    pub fn record_audit(&self, event: &AuditEvent<'_>) -> Result<(), DatabaseError> {
        record(event, |sql, params| self.write(sql, params))
    }
}
