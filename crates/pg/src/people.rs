//! The people of a team: who they are, what they may do in a project, and the tokens by which they are known.

use tanmi_base::{Millis, hash};

use crate::connection::Connection;
use crate::error::DatabaseError;
use crate::pool::logins;

mod admin;
mod error;
mod members;
mod tokens;

pub use admin::{Administrator, People};
pub use error::AdminError;
pub use members::{AddedPerson, PersonEntry, ProjectEntry, TeamFilter};
pub use tokens::{IssuedToken, NewToken, TokenEntry, TokenFilter};

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
    /// The id of the token, also of one with which a cookie was bought.
    pub token: String,
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

const FIND: &str = "SELECT t.hash, t.role AS limit_role, p.id AS person, p.name, m.role, j.id AS project,
    j.name AS project_name, coalesce(t.last_used_at, 0)
        < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $3 AS is_use_outdated
FROM token t JOIN person p ON p.id = t.person LEFT JOIN (
    member m JOIN project j ON j.id = m.project AND ($2::text IS NULL OR j.name = $2)
) ON m.person = p.id AND (t.project IS NULL OR t.project = j.id)
WHERE t.id = $1 AND t.revoked_at IS NULL AND p.disabled_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
ORDER BY j.name";

/// How exact the time of the last use of a token is. It is written no more often than this.
const USE_PRECISION: Millis = 60_000;
const SET_LAST_USE: &str =
    "UPDATE token SET last_used_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
WHERE id = $1";

/// Returns whether a text can name a person, a project or a token. Names stand in addresses and in front of texts that
/// agents read.
pub fn is_valid_name(text: &str) -> bool {
    let is_bad = |c: char| c.is_control() || matches!(c, '/' | '@');
    !text.is_empty() && text.trim() == text && text.len() <= 100 && !text.chars().any(is_bad)
}

/// Returns the id in a token.
pub fn token_id(token: &str) -> Option<&str> {
    let (id, _) = token.strip_prefix(PREFIX)?.split_once('_')?;
    (!id.is_empty() && id.len() <= 64).then_some(id)
}

/// Returns what a token, or a cookie that was bought with it, gives in the project with this name, or in the
/// only project of its person.
pub(crate) fn find_access(
    connection: &mut Connection,
    project: Option<&str>,
    credential: &str,
) -> Result<Access, DatabaseError> {
    let of_cookie = logins::token_of_cookie(connection, credential)?;
    let Some(token_id) = of_cookie.as_deref().or_else(|| token_id(credential)) else {
        return Ok(Access::UnknownToken);
    };
    let rows = connection.query(FIND, &[&token_id, &project, &USE_PRECISION])?;
    let digest = hash::sha256_hex(credential.as_bytes());
    let is_valid = |hash: &str| of_cookie.is_some() || is_equal(hash, &digest);
    let Some(row) = rows.first().filter(|row| is_valid(row.get("hash"))) else {
        return Ok(Access::UnknownToken);
    };
    if row.get("is_use_outdated") {
        // A database that cannot be written can still be read.
        let _ = connection.query(SET_LAST_USE, &[&token_id]);
    }
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
        token: token_id.to_owned(),
    }))
}

/// Compares two digests in a time that does not depend on their content.
fn is_equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |sum, (x, y)| sum | (x ^ y)) == 0
}
