//! Logins of browsers: a ticket that is bought with a token and redeemed once for a cookie. Servers share
//! them through the database, so a link made by one server opens the page of another.

use tanmi_base::{hash, id};

use super::Pool;
use crate::connection::Connection;
use crate::error::DatabaseError;
use crate::people;

/// The prefix of the secret of a cookie.
const COOKIE: &str = "tnl_";
/// The prefix of a ticket.
const TICKET: &str = "tnt_";
/// Characters of `0-9a-z`, together more than 256 bits.
const SECRET_LEN: usize = 50;

/// Removes what has expired, too, so that the table stays small.
const ADD_TICKET: &str =
    "WITH now AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms), expired AS (
    DELETE FROM login USING now WHERE expires_at < now.ms
) INSERT INTO login (id, token, kind, hash, expires_at) SELECT $1, $2, 'ticket', $3, now.ms + $4 FROM now
RETURNING (SELECT name FROM project WHERE id = $5)";
const REDEEM: &str = "WITH now AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms), used AS (
    DELETE FROM login USING now WHERE id = $1 AND kind = 'ticket' AND hash = $2 AND expires_at > now.ms RETURNING token
) INSERT INTO login (id, token, kind, hash, expires_at)
SELECT $3, used.token, 'cookie', $4, now.ms + $5 FROM used, now RETURNING id";
const FIND_COOKIE: &str = "SELECT token FROM login WHERE id = $1 AND kind = 'cookie' AND hash = $2
AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const END: &str = "DELETE FROM login WHERE id = $1 AND hash = $2";

/// How long a ticket can be redeemed, in milliseconds.
pub const TICKET_LIFETIME: i64 = 5 * 60 * 1000;
/// How long a cookie is valid, in milliseconds.
pub const COOKIE_LIFETIME: i64 = 12 * 60 * 60 * 1000;

impl Pool {
    /// Creates a ticket for the person of a token, which must be valid. Returns it with the name of the project.
    pub fn create_ticket(&self, project: &str, token: &str) -> Result<(String, String), DatabaseError> {
        let token_id = people::token_id(token).unwrap_or_default();
        let (id, ticket) = new_secret(TICKET)?;
        let digest = hash::sha256_hex(ticket.as_bytes());
        let rows = self.write(ADD_TICKET, &[&id, &token_id, &digest, &TICKET_LIFETIME, &project])?;
        Ok((ticket, rows.first().map(|row| row.get(0)).unwrap_or_default()))
    }

    /// Consumes a ticket and returns the secret of a cookie; `None` if the ticket is not valid.
    pub fn redeem_ticket(&self, ticket: &str) -> Result<Option<String>, DatabaseError> {
        let Some(ticket_id) = id_of(TICKET, ticket) else { return Ok(None) };
        let (id, cookie) = new_secret(COOKIE)?;
        let digests = [ticket, cookie.as_str()].map(|secret| hash::sha256_hex(secret.as_bytes()));
        let rows = self.write(REDEEM, &[&ticket_id, &digests[0], &id, &digests[1], &COOKIE_LIFETIME])?;
        Ok((!rows.is_empty()).then_some(cookie))
    }

    /// Ends the login of a cookie.
    pub fn end_login(&self, cookie: &str) -> Result<(), DatabaseError> {
        let Some(id) = id_of(COOKIE, cookie) else { return Ok(()) };
        let digest = hash::sha256_hex(cookie.as_bytes());
        self.write(END, &[&id, &digest]).map(|_| ())
    }
}

/// Returns the id of the token with which a cookie was bought; `None` if the text is no valid cookie.
pub(crate) fn token_of_cookie(
    connection: &mut Connection,
    cookie: &str,
) -> Result<Option<String>, DatabaseError> {
    let Some(id) = id_of(COOKIE, cookie) else { return Ok(None) };
    let digest = hash::sha256_hex(cookie.as_bytes());
    Ok(connection.query(FIND_COOKIE, &[&id, &digest])?.first().map(|row| row.get(0)))
}

/// Returns a new id, and the secret that contains it.
fn new_secret(prefix: &str) -> Result<(String, String), DatabaseError> {
    let no_entropy = || DatabaseError::Failed(String::from("the machine has no entropy for a secret"));
    let secret = id::secret(SECRET_LEN).ok_or_else(no_entropy)?;
    let id = id::random(12);
    let text = format!("{prefix}{id}_{secret}");
    Ok((id, text))
}

fn id_of<'a>(prefix: &str, secret: &'a str) -> Option<&'a str> {
    let (id, _) = secret.strip_prefix(prefix)?.split_once('_')?;
    (!id.is_empty() && id.len() <= 64).then_some(id)
}
