//! The tokens of people. Only the SHA-256 of a token is stored.

use serde_json::{Value, json};
use tanmi_base::{Millis, hash, id};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{AdminError, PREFIX, People, Role};
use crate::audit::AuditKind;
use crate::error::DatabaseError;
use crate::rows;

/// Characters of `0-9a-z`, together more than 256 bits.
const SECRET_LEN: usize = 50;

const ADD: &str = "INSERT INTO token (id, person, hash, role, created_at, expires_at, name, project)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const FIND_MEMBER: &str = "SELECT p.id, m.role, p.disabled_at IS NOT NULL AS is_disabled
FROM person p JOIN member m ON m.person = p.id WHERE m.project = $1 AND p.name = $2";
const PERSON_NAME: &str = "SELECT name FROM person WHERE id = $1";
const REVOKE_ALL: &str = "UPDATE token SET revoked_at = $3 WHERE revoked_at IS NULL AND person IN (
    SELECT p.id FROM person p JOIN project j ON j.team = p.team WHERE j.id = $1 AND p.name = $2
) RETURNING id";
const REVOKE: &str = "UPDATE token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
const END: &str = "UPDATE token SET expires_at = least(expires_at, $2) WHERE id = $1";
macro_rules! select {
    () => {
        "SELECT t.id, t.name, t.role, t.created_at, t.expires_at, t.revoked_at, t.last_used_at, p.id AS person_id,
    p.name AS person, j.name AS project, t.project AS project_id
FROM token t JOIN person p ON p.id = t.person LEFT JOIN project j ON j.id = t.project "
    };
}
const FIND: &str = concat!(select!(), "WHERE t.id = $1 FOR UPDATE OF t");
/// The tokens that are valid in a project: those limited to it, and those of its members without a limit.
const LIST: &str = concat!(
    select!(),
    "WHERE ($1::text IS NULL OR t.project = $1 OR (t.project IS NULL AND EXISTS (
        SELECT 1 FROM member m WHERE m.person = t.person AND m.project = $1
    ))) AND ($2::text IS NULL OR p.name = $2)
    AND (NOT $3 OR (t.revoked_at IS NULL AND p.disabled_at IS NULL AND
        coalesce(t.expires_at, 9223372036854775807) > (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY p.name, t.created_at, t.id LIMIT $4"
);
const IS_MEMBER: &str = "SELECT 1 FROM member WHERE project = $1 AND person = $2";

/// A token to create.
#[derive(Clone, Debug)]
pub struct NewToken<'a> {
    /// The name of the person, who is a member of the project.
    pub person: &'a str,
    /// What the token is for.
    pub name: &'a str,
    pub role: Role,
    /// How long it is valid. `None`: until it is revoked.
    pub lifetime: Option<Millis>,
    /// Whether it is valid only in the project in which it is created.
    pub is_limited: bool,
}

/// A created token. Its text cannot be read again.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    pub id: String,
    pub token: String,
    pub person: String,
    pub role: Role,
    pub expires_at: Option<Millis>,
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    pub id: String,
    pub person: String,
    pub name: String,
    pub role: String,
    /// The name of the only project in which it is valid.
    pub project: Option<String>,
    pub created_at: Millis,
    pub expires_at: Option<Millis>,
    pub revoked_at: Option<Millis>,
    pub last_used_at: Option<Millis>,
}

impl IssuedToken {
    /// Returns the token with its secret.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "id": self.id, "person": self.person, "role": self.role.as_str(), "token": self.token,
        });
        if let Some(expires_at) = self.expires_at {
            value["expiresAt"] = json!(expires_at);
        }
        value
    }
}

impl TokenEntry {
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id, "person": self.person, "name": self.name, "role": self.role, "project": self.project,
            "createdAt": self.created_at, "expiresAt": self.expires_at, "lastUsedAt": self.last_used_at,
            "revokedAt": self.revoked_at,
        })
    }
}

/// Which tokens to list.
#[derive(Clone, Debug, Default)]
pub struct TokenFilter {
    /// The id of a project: only tokens that are valid in it.
    pub project: Option<String>,
    /// The name of a person.
    pub person: Option<String>,
    /// Without those that expired or were revoked.
    pub is_valid: bool,
    pub limit: usize,
}

/// The row of a token that is changed.
struct Found {
    entry: TokenEntry,
    person_id: String,
    project_id: Option<String>,
}

impl People<'_> {
    /// Creates a token of a person and returns it. It cannot be read again.
    pub fn create_token(
        &mut self,
        person: &str,
        role: Role,
        now: Millis,
        expires_at: Option<Millis>,
    ) -> Result<String, AdminError> {
        self.transact(|people| {
            let rows = people.connection().query(PERSON_NAME, &[&person])?;
            let name: String = rows.first().map(|row| row.get("name")).unwrap_or_default();
            let new = NewToken { person: &name, name: "", role, lifetime: None, is_limited: false };
            let issued = people.insert_token(person, &new, now, expires_at, None)?;
            people.note_created(&new, &issued)?;
            Ok(issued.token)
        })
    }

    /// Creates a token of a member of the project.
    pub fn issue_token(&mut self, new: &NewToken<'_>) -> Result<IssuedToken, AdminError> {
        self.transact(|people| {
            people.check_width(new.role)?;
            let project = people.project.clone();
            let rows = people.connection().query(FIND_MEMBER, &[&project, &new.person])?;
            let name = || new.person.to_owned();
            let row = rows.first().ok_or_else(|| AdminError::NotMember { name: name() })?;
            if row.get("is_disabled") {
                return Err(AdminError::PersonDisabled { name: name() });
            }
            let now = people.now()?;
            let expires_at = new.lifetime.map(|lifetime| now + lifetime);
            let limit = new.is_limited.then_some(project.as_str());
            let issued = people.insert_token(row.get("id"), new, now, expires_at, limit)?;
            people.note_created(new, &issued)?;
            Ok(issued)
        })
    }

    fn note_created(&mut self, new: &NewToken<'_>, issued: &IssuedToken) -> Result<(), AdminError> {
        let detail = json!({"name": new.person, "token": issued.id, "role": new.role.as_str()});
        self.note(AuditKind::TokenCreated, detail)
    }

    fn insert_token(
        &mut self,
        person: &str,
        new: &NewToken<'_>,
        now: Millis,
        expires_at: Option<Millis>,
        project: Option<&str>,
    ) -> Result<IssuedToken, AdminError> {
        let Some(secret) = id::secret(SECRET_LEN) else {
            return Err(DatabaseError::Failed(String::from("the machine has no entropy for a token")).into());
        };
        let token_id = id::random(12);
        let token = format!("{PREFIX}{token_id}_{secret}");
        let digest = hash::sha256_hex(token.as_bytes());
        let params: [&(dyn ToSql + Sync); 8] =
            [&token_id, &person, &digest, &new.role.as_str(), &now, &expires_at, &new.name, &project];
        self.connection().query(ADD, &params)?;
        let (person, role) = (new.person.to_owned(), new.role);
        Ok(IssuedToken { id: token_id, token, person, role, expires_at })
    }

    /// Returns tokens by person and age.
    pub fn tokens(&mut self, filter: &TokenFilter) -> Result<Vec<TokenEntry>, AdminError> {
        let TokenFilter { project, person, is_valid, limit } = filter;
        let params: [&(dyn ToSql + Sync); 4] = [project, person, is_valid, &rows::limit(*limit)];
        Ok(self.connection().query(LIST, &params)?.iter().map(entry).collect())
    }

    /// Revokes every token of a person. Returns how many there were, or `None` if the person is not a member.
    pub fn revoke_tokens(&mut self, name: &str, now: Millis) -> Result<Option<usize>, AdminError> {
        self.transact(|people| {
            let project = people.project.clone();
            if people.connection().query(FIND_MEMBER, &[&project, &name])?.is_empty() {
                return Ok(None);
            }
            let revoked = people.connection().query(REVOKE_ALL, &[&project, &name, &now])?.len();
            people.note(AuditKind::TokenRevoked, json!({"name": name, "count": revoked}))?;
            Ok(Some(revoked))
        })
    }

    /// Revokes a token. Returns it, and whether it was valid before.
    pub fn revoke_token(&mut self, token: &str) -> Result<(TokenEntry, bool), AdminError> {
        self.transact(|people| {
            let mut found = people.find_token(token)?;
            let was_valid = found.entry.revoked_at.is_none();
            if was_valid {
                let now = people.now()?;
                people.connection().query(REVOKE, &[&token, &now])?;
                people.note(AuditKind::TokenRevoked, json!({"name": found.entry.person, "token": token}))?;
                found.entry.revoked_at = Some(now);
            }
            Ok((found.entry, was_valid))
        })
    }

    /// Replaces a token by a new one with the same limits and lifetime. The old one is valid for `overlap` more.
    pub fn rotate_token(&mut self, token: &str, overlap: Millis) -> Result<IssuedToken, AdminError> {
        self.transact(|people| {
            let Found { entry, person_id, project_id } = people.find_token(token)?;
            let now = people.now()?;
            if entry.revoked_at.is_some() || entry.expires_at.is_some_and(|at| at <= now) {
                return Err(AdminError::TokenEnded { id: token.to_owned() });
            }
            let role = Role::from_word(&entry.role).unwrap_or(Role::Reader);
            people.check_width(role)?;
            let lifetime = entry.expires_at.map(|at| at - entry.created_at);
            let is_limited = project_id.is_some();
            let new = NewToken { person: &entry.person, name: &entry.name, role, lifetime, is_limited };
            let expires_at = lifetime.map(|lifetime| now + lifetime);
            let issued = people.insert_token(&person_id, &new, now, expires_at, project_id.as_deref())?;
            people.connection().query(END, &[&token, &(now + overlap)])?;
            people.note(
                AuditKind::TokenRotated,
                json!({"name": entry.person, "token": token, "newToken": issued.id, "overlapMs": overlap}),
            )?;
            Ok(issued)
        })
    }

    /// Returns a token that this administrator may change, and locks it.
    fn find_token(&mut self, token: &str) -> Result<Found, AdminError> {
        let unknown = || AdminError::UnknownToken { id: token.to_owned() };
        let rows = self.connection().query(FIND, &[&token])?;
        let row = rows.first().ok_or_else(unknown)?;
        let found =
            Found { entry: entry(row), person_id: row.get("person_id"), project_id: row.get("project_id") };
        if self.admin.is_none() {
            return Ok(found);
        }
        let project = self.project.clone();
        match &found.project_id {
            Some(limit) if *limit == project => return Ok(found),
            Some(_) => return Err(unknown()),
            None => {}
        }
        if self.connection().query(IS_MEMBER, &[&project, &found.person_id])?.is_empty() {
            return Err(unknown());
        }
        self.check_projects(&found.person_id, &found.entry.person)?;
        Ok(found)
    }
}

fn entry(row: &Row) -> TokenEntry {
    TokenEntry {
        id: row.get("id"),
        person: row.get("person"),
        name: row.get("name"),
        role: row.get("role"),
        project: row.get("project"),
        created_at: row.get("created_at"),
        expires_at: row.get("expires_at"),
        revoked_at: row.get("revoked_at"),
        last_used_at: row.get("last_used_at"),
    }
}
