//! The bindings of the sessions that work on the server itself. A session belongs to the person who used it first.

use tanmi_workspace::error::Result;

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

impl PgStore {
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
