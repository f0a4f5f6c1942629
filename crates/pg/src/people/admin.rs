//! [`People`]: the administration of a project by the owner of the database, or by an admin over HTTP.

use serde_json::Value;
use tanmi_base::Millis;

use super::{AdminError, Caller, Role, token_id};
use crate::address::Address;
use crate::audit::{self, AuditEntry, AuditEvent, AuditFilter, AuditKind};
use crate::connection::Connection;
use crate::error::DatabaseError;
use crate::pool::{Pool, in_project};
use crate::schema;

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
/// The projects of a person, other than this one, that an administrator may not change.
const FOREIGN: &str = "SELECT j.name FROM member m JOIN project j ON j.id = m.project
WHERE m.person = $1 AND m.project <> $2 AND NOT EXISTS (
    SELECT 1 FROM member a JOIN token t ON t.id = $4 AND t.person = a.person
    WHERE a.person = $3 AND a.project = m.project AND a.role = 'admin' AND t.role = 'admin' AND t.project IS NULL
) ORDER BY j.name";

/// An admin who administers a project over HTTP.
#[derive(Clone, Debug)]
pub struct Administrator {
    pub(super) person: String,
    role: Role,
    /// The id of the token. Empty if it is not known: then it counts as limited to the project.
    pub(super) token: String,
    ip: Option<String>,
}

impl Administrator {
    /// Returns the caller of a request, with the token and the address from which it came.
    pub fn new(caller: &Caller, token: &str, ip: Option<String>) -> Administrator {
        let token = token_id(token).unwrap_or_default().to_owned();
        Administrator { person: caller.person.clone(), role: caller.role, token, ip }
    }
}

enum Link<'a> {
    Own(Connection),
    /// In a transaction, which [`Pool::administer`] began and ends.
    Pooled(&'a mut Connection),
}

/// The administration of the people of a project. Every change is recorded in the audit.
pub struct People<'a> {
    link: Link<'a>,
    pub(super) project: String,
    /// `None`: the owner of the tables, who may do everything.
    pub(super) admin: Option<Administrator>,
}

impl People<'static> {
    /// Connects as the owner of the tables. `project` is empty for what concerns the whole team.
    pub fn open(address: &Address, project: &str) -> Result<People<'static>, DatabaseError> {
        let mut owner = address.connect(None)?;
        schema::check_version(&mut owner)?;
        Ok(People { link: Link::Own(owner), project: project.to_owned(), admin: None })
    }
}

impl Pool {
    /// Runs the administration of a project by one of its admins, in one transaction. The caller checked the role.
    pub fn administer<T>(
        &self,
        project: &str,
        admin: &Administrator,
        work: impl FnOnce(&mut People<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let mut pooled = self.begin("BEGIN", project)?;
        let outcome = pooled.call(|connection| {
            let link = Link::Pooled(connection);
            let mut people = People { link, project: project.to_owned(), admin: Some(admin.clone()) };
            let value = work(&mut people)?;
            people.connection().batch("COMMIT")?;
            Ok(value)
        });
        if outcome.is_err() {
            pooled.roll_back();
        }
        outcome
    }
}

impl People<'_> {
    pub(super) fn connection(&mut self) -> &mut Connection {
        match &mut self.link {
            Link::Own(connection) => connection,
            Link::Pooled(connection) => connection,
        }
    }

    /// Runs work in one transaction. Its changes count only if it succeeds.
    pub(super) fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        if let Link::Pooled(_) = self.link {
            return work(self);
        }
        let begin = in_project("BEGIN", &self.project);
        self.connection().batch(&begin)?;
        let outcome = work(self).and_then(|value| {
            self.connection().batch("COMMIT")?;
            Ok(value)
        });
        if outcome.is_err() {
            self.connection().batch("ROLLBACK")?;
        }
        outcome
    }

    /// Returns the time of the database.
    pub fn now(&mut self) -> Result<Millis, AdminError> {
        Ok(self.connection().query(CLOCK, &[])?.first().map_or(0, |row| row.get("now")))
    }

    /// Records a change that this administrator makes.
    pub(super) fn note(&mut self, what: AuditKind, detail: Value) -> Result<(), AdminError> {
        let project = Some(self.project.clone()).filter(|project| !project.is_empty());
        let admin = self.admin.clone();
        let admin = admin.as_ref();
        let event = AuditEvent {
            project: project.as_deref(),
            person: admin.map(|admin| admin.person.as_str()),
            ip: admin.and_then(|admin| admin.ip.as_deref()),
            what,
            detail,
        };
        Ok(self.record_audit(&event)?)
    }

    /// Adds an entry to the audit.
    pub fn record_audit(&mut self, event: &AuditEvent<'_>) -> Result<(), DatabaseError> {
        let connection = self.connection();
        audit::record(event, |sql, params| connection.query(sql, params)).map_err(DatabaseError::from)
    }

    /// Returns entries of the audit, the latest first. An admin sees those of the project.
    pub fn audit(&mut self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, AdminError> {
        self.transact(|people| Ok(audit::list(people.connection(), filter)?))
    }

    /// Fails if the administrator may not give this role.
    pub(super) fn check_width(&self, wants: Role) -> Result<(), AdminError> {
        match &self.admin {
            Some(admin) if admin.role < wants => Err(AdminError::WiderToken { has: admin.role, wants }),
            _ => Ok(()),
        }
    }

    /// Fails if a person has projects that the administrator does not administer.
    pub(super) fn check_projects(&mut self, person: &str, name: &str) -> Result<(), AdminError> {
        let Some(admin) = self.admin.clone() else { return Ok(()) };
        let project = self.project.clone();
        let rows = self.connection().query(FOREIGN, &[&person, &project, &admin.person, &admin.token])?;
        match rows.is_empty() {
            true => Ok(()),
            false => Err(AdminError::ForeignProjects {
                name: name.to_owned(),
                projects: rows.iter().map(|row| row.get("name")).collect(),
            }),
        }
    }
}
