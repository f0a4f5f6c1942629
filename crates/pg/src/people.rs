//! The people of a team: who they are, what they may do in a project, and the tokens by which they are known.

use tanmi_base::{Millis, hash, id};

use crate::address::Address;
use crate::audit::{self, AuditEntry, AuditEvent, AuditFilter};
use crate::connection::Connection;
use crate::error::DatabaseError;

/// What a person may do in a project. Each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Reader,
    /// Reads and writes.
    Member,
    /// Also manages people and tokens.
    Admin,
}

impl Role {
    pub const WORDS: &[&str] = &["reader", "member", "admin"];

    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    pub fn from_word(word: &str) -> Option<Role> {
        [Role::Reader, Role::Member, Role::Admin].into_iter().find(|role| role.as_str() == word)
    }
}

/// A person whose token was accepted for a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The id of the project.
    pub project: String,
    pub person: String,
    pub name: String,
    /// The lower of the roles of the person and of the token.
    pub role: Role,
}

/// What a token gives in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Granted(Caller),
    /// No project was named, and the person is a member of several: these, by name.
    SeveralProjects(Vec<String>),
    /// The token is valid, but its person is not a member of a project with this name.
    NotMember,
    /// The token is unknown, expired or revoked, or its person is disabled.
    UnknownToken,
}

/// The prefix of every token. Programs that search for secrets know tokens by it.
const PREFIX: &str = "tnm_";
/// Characters of `0-9a-z`, together more than 256 bits.
const SECRET_LEN: usize = 50;

const ADD_PERSON: &str = "INSERT INTO person (id, team, name) SELECT $1, team, $3 FROM project WHERE id = $2
ON CONFLICT (team, name) DO UPDATE SET name = excluded.name RETURNING id";
const SET_MEMBER: &str = "INSERT INTO member (project, person, role) VALUES ($1, $2, $3)
ON CONFLICT (project, person) DO UPDATE SET role = excluded.role";
const FIND_MEMBER: &str = "SELECT p.id, m.role FROM person p JOIN member m ON m.person = p.id
WHERE m.project = $1 AND p.name = $2";
const ADD_TOKEN: &str =
    "INSERT INTO token (id, person, hash, role, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)";
const REVOKE: &str = "UPDATE token SET revoked_at = $3 WHERE revoked_at IS NULL AND person IN (
    SELECT p.id FROM person p JOIN project j ON j.team = p.team WHERE j.id = $1 AND p.name = $2
) RETURNING id";
const FIND: &str = "SELECT t.hash, t.role AS limit_role, p.id AS person, p.name, m.role, j.id AS project,
    j.name AS project_name
FROM token t JOIN person p ON p.id = t.person LEFT JOIN (
    member m JOIN project j ON j.id = m.project AND ($2::text IS NULL OR j.name = $2)
) ON m.person = p.id
WHERE t.id = $1 AND t.revoked_at IS NULL AND p.disabled_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > extract(epoch FROM clock_timestamp()) * 1000)
ORDER BY j.name";

/// The administration of the people of a project. Connects as the owner of the tables.
pub struct People {
    owner: Connection,
    project: String,
}

impl People {
    pub fn open(address: &Address, project: &str) -> Result<People, DatabaseError> {
        Ok(People { owner: address.connect(None)?, project: project.to_owned() })
    }

    /// Makes a person a member with this role, and creates the person if the name is new. Returns the person's id.
    pub fn set_member(&mut self, name: &str, role: Role, now: Millis) -> Result<String, DatabaseError> {
        self.owner.batch("BEGIN")?;
        let rows = self.owner.query(ADD_PERSON, &[&id::fresh("person", now), &self.project, &name])?;
        let person: Option<String> = rows.first().map(|row| row.get(0));
        let Some(person) = person else {
            return Err(DatabaseError::Failed(String::from("the project does not exist")));
        };
        self.owner.query(SET_MEMBER, &[&self.project, &person, &role.as_str()])?;
        self.owner.batch("COMMIT")?;
        Ok(person)
    }

    /// Makes a person a member with at least this role. Returns the person's id.
    pub fn ensure_member(&mut self, name: &str, role: Role, now: Millis) -> Result<String, DatabaseError> {
        let rows = self.owner.query(FIND_MEMBER, &[&self.project, &name])?;
        match rows.first() {
            Some(row) if Role::from_word(row.get("role")) >= Some(role) => Ok(row.get("id")),
            _ => self.set_member(name, role, now),
        }
    }

    /// Creates a token of a person and returns it. It cannot be read again.
    pub fn create_token(
        &mut self,
        person: &str,
        role: Role,
        now: Millis,
        expires_at: Option<Millis>,
    ) -> Result<String, DatabaseError> {
        let Some(secret) = id::secret(SECRET_LEN) else {
            return Err(DatabaseError::Failed(String::from("the machine has no entropy for a token")));
        };
        let token_id = id::random(12);
        let token = format!("{PREFIX}{token_id}_{secret}");
        let digest = hash::sha256_hex(token.as_bytes());
        self.owner.query(ADD_TOKEN, &[&token_id, &person, &digest, &role.as_str(), &now, &expires_at])?;
        Ok(token)
    }

    /// Revokes every token of a person. Returns how many there were, or `None` if the person is not a member.
    pub fn revoke_tokens(&mut self, name: &str, now: Millis) -> Result<Option<usize>, DatabaseError> {
        if self.owner.query(FIND_MEMBER, &[&self.project, &name])?.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.owner.query(REVOKE, &[&self.project, &name, &now])?.len()))
    }

    /// Adds an entry to the audit.
    pub fn record_audit(&mut self, event: &AuditEvent<'_>) -> Result<(), DatabaseError> {
        audit::record(event, |sql, params| self.owner.query(sql, params)).map_err(DatabaseError::from)
    }

    /// Returns entries of the audit, the latest first.
    pub fn audit(&mut self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, DatabaseError> {
        audit::list(&mut self.owner, filter)
    }
}

/// Returns what a token gives in the project with this name, or in the only project of its person.
pub(crate) fn find_access(
    connection: &mut Connection,
    project: Option<&str>,
    token: &str,
) -> Result<Access, DatabaseError> {
    let token_id = token.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).map(|(id, _)| id);
    let Some(token_id) = token_id.filter(|id| !id.is_empty() && id.len() <= 64) else {
        return Ok(Access::UnknownToken);
    };
    let rows = connection.query(FIND, &[&token_id, &project])?;
    let digest = hash::sha256_hex(token.as_bytes());
    let Some(row) = rows.first().filter(|row| is_equal(row.get("hash"), &digest)) else {
        return Ok(Access::UnknownToken);
    };
    if rows.len() > 1 {
        return Ok(Access::SeveralProjects(rows.iter().map(|row| row.get("project_name")).collect()));
    }
    let Some(project) = row.get::<_, Option<String>>("project") else { return Ok(Access::NotMember) };
    let role = |column: &str| Role::from_word(row.get(column)).unwrap_or(Role::Reader);
    Ok(Access::Granted(Caller {
        project,
        person: row.get("person"),
        name: row.get("name"),
        role: role("role").min(role("limit_role")),
    }))
}

/// Compares two digests in a time that does not depend on their content.
fn is_equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |sum, (x, y)| sum | (x ^ y)) == 0
}
