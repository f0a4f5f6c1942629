//! The bindings of the sessions that work on the server itself. A session belongs to the person who used it first.

use tanmi_protocol::{Present, person_of_holder};
use tanmi_workspace::error::Result;
use tokio_postgres::Row;

use crate::people::Caller;
use crate::run::{LEASE, Leases, RunError};
use crate::store::PgStore;

const FIND: &str = "SELECT binding FROM session WHERE project = $1 AND id = $2 AND binding IS NOT NULL";
const ALL: &str = "SELECT id, binding FROM session WHERE project = $1 AND binding IS NOT NULL ORDER BY id";
/// Returns no row if the session belongs to another person.
const BIND: &str = "INSERT INTO session (project, id, person, machine, lease_until, binding)
VALUES ($1, $2, $3, $4, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $5, $6)
ON CONFLICT (project, id) DO UPDATE SET lease_until = excluded.lease_until, binding = excluded.binding
WHERE session.person = excluded.person RETURNING id";
const LIVE: &str = "SELECT id FROM session
WHERE project = $1 AND lease_until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const REVISION: &str =
    "SELECT coalesce(hashtextextended(string_agg(id || binding, '' ORDER BY id), 0), 0) FROM session
WHERE project = $1 AND binding IS NOT NULL";

/// The nodes with a holder, and the live sessions that hold none.
const PRESENCE: &str =
    "WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now), held AS (
    SELECT n.ws, n.id, n.title, n.status_changed_at, n.holder FROM node n
    JOIN workspace w ON w.project = n.project AND w.id = n.ws AND w.deleted_at IS NULL
    WHERE n.project = $1 AND n.holder IS NOT NULL
)
SELECT coalesce(h.holder, s.id) AS session, p.name AS person, s.machine, h.ws, h.id AS node, h.title,
    h.status_changed_at AS since, s.lease_until, s.lease_until > clock.now AS is_live
FROM held h FULL JOIN (SELECT * FROM session WHERE project = $1) s ON s.id = h.holder
LEFT JOIN person p ON p.id = s.person CROSS JOIN clock
WHERE h.id IS NOT NULL OR s.lease_until > clock.now
ORDER BY is_live DESC NULLS FIRST, since DESC NULLS LAST, session LIMIT $2";
/// The most sessions that are told.
const MAX_PRESENT: i64 = 500;

impl PgStore {
    /// Returns who works on what: the holders of nodes, and the other live sessions. Those alive come first,
    /// and of them the latest.
    pub fn present_sessions(&self) -> Result<Vec<Present>> {
        let rows = self.query(PRESENCE, &[&MAX_PRESENT])?;
        Ok(rows.iter().map(present).collect())
    }

    /// Returns the binding of a session, if it has one.
    pub fn binding(&self, session: &str) -> Result<Option<String>> {
        Ok(self.query(FIND, &[&session])?.first().map(|row| row.get("binding")))
    }

    /// Returns every bound session with its binding.
    pub fn bindings(&self) -> Result<Vec<(String, String)>> {
        Ok(self.query(ALL, &[])?.iter().map(|row| (row.get("id"), row.get("binding"))).collect())
    }

    /// Sets or removes the binding of a session of this person, and renews its lease.
    pub fn set_binding(
        &self,
        caller: &Caller,
        session: &str,
        machine: &str,
        binding: Option<&str>,
    ) -> Result<(), RunError> {
        match self.query(BIND, &[&session, &caller.person, &machine, &LEASE, &binding])?.is_empty() {
            true => Err(RunError::ForeignSession),
            false => Ok(()),
        }
    }

    /// Returns the sessions whose lease has not ended.
    pub fn leases(&self) -> Result<Leases> {
        Ok(Leases(self.query(LIVE, &[])?.iter().map(|row| row.get("id")).collect()))
    }

    /// Returns a number that changes when a binding changes.
    pub fn bindings_revision(&self) -> Result<i64> {
        Ok(self.query(REVISION, &[])?.first().map_or(0, |row| row.get(0)))
    }
}

fn present(row: &Row) -> Present {
    let text = |column: &str| row.get::<_, Option<String>>(column);
    let session: String = row.get("session");
    // A person without a session holds a node until it is done.
    let name = person_of_holder(&session).map(str::to_owned);
    Present {
        is_live: name.is_some() || row.get::<_, Option<bool>>("is_live").unwrap_or_default(),
        person: name.or_else(|| text("person")).unwrap_or_default(),
        machine: text("machine").unwrap_or_default(),
        workspace_id: text("ws"),
        node_id: text("node"),
        node_title: text("title"),
        since: row.get("since"),
        lease_until: row.get("lease_until"),
        session,
    }
}
