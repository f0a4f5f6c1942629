//! Who may ask: whoever has the token, or a browser that came with a ticket. Everybody else learns nothing.
//!
//! Browsers send a cookie of 127.0.0.1 to every port of it, so the cookie is bound to a path that no other server has
//! reason to be asked for. A foreign page can make a browser ask, so Host, Origin and Sec-Fetch-Site must be ours; a name
//! that was rebound to 127.0.0.1 fails on its Host.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use tanmi_base::{hash, id};

use super::{ServerState, responses};

/// How long a link that nobody opened stays good.
const TICKET_LIFE: Duration = Duration::from_secs(600);
/// Tickets that may be waiting at once.
const TICKETS: usize = 32;

pub struct Guard {
    port: u16,
    token: String,
    cookie: String,
    /// The path of the page. It is no secret to its own browser, and to nobody else of use without the cookie.
    door: String,
    tickets: Mutex<Vec<(String, Instant)>>,
}

/// The two names under which this server may be asked for.
pub fn hosts(port: u16) -> [String; 2] {
    [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
}

impl Guard {
    /// `None` on a machine that has no entropy to make secrets of.
    pub fn new(port: u16) -> Option<Guard> {
        let door = format!("p-{}", id::secret(20)?);
        Some(Guard { port, token: id::secret(40)?, cookie: id::secret(40)?, door, tickets: Mutex::default() })
    }

    /// For programs: `Authorization: Bearer …`.
    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn door(&self) -> &str {
        &self.door
    }

    /// A link that opens the page once.
    pub fn link(&self) -> String {
        // There was entropy a moment ago; without, nobody gets in with this one.
        let ticket = id::secret(32).unwrap_or_default();
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|(_, made)| made.elapsed() < TICKET_LIFE);
        if tickets.len() >= TICKETS {
            tickets.remove(0);
        }
        tickets.push((ticket.clone(), Instant::now()));
        format!("http://127.0.0.1:{}/?ticket={ticket}", self.port)
    }

    /// Takes a ticket. The cookie it buys, if it is good.
    pub fn redeem_ticket(&self, ticket: &str) -> Option<String> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tickets.iter().position(|(known, made)| {
            !known.is_empty() && is_same(known, ticket) && made.elapsed() < TICKET_LIFE
        })?;
        tickets.remove(at);
        let (name, value, door) = (self.cookie_name(), &self.cookie, &self.door);
        Some(format!("{name}={value}; Path=/{door}/; HttpOnly; SameSite=Strict"))
    }

    fn cookie_name(&self) -> String {
        format!("tanmi-{}", self.port)
    }

    fn authorize(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), GuardRefusal> {
        let hosts = hosts(self.port);
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if named.next().is_some() || !hosts.iter().any(|known| known == host) {
            return Err(GuardRefusal::Host);
        }
        let is_ours = |origin: &HeaderValue| hosts.iter().any(|host| *origin == *format!("http://{host}"));
        if !headers.get_all(header::ORIGIN).iter().all(is_ours) {
            return Err(GuardRefusal::Origin);
        }
        // A ticket speaks for itself, from wherever its link was followed.
        if path == "/" && *method == Method::GET {
            return Ok(());
        }
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return Err(GuardRefusal::Origin);
        }
        if self.has_token(headers) || self.has_cookie(path, headers) {
            return Ok(());
        }
        Err(GuardRefusal::Token)
    }

    pub fn has_token(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| value.split_once(' '));
        token.is_some_and(|(kind, token)| {
            kind.eq_ignore_ascii_case("bearer") && is_same(token.trim(), &self.token)
        })
    }

    fn has_cookie(&self, path: &str, headers: &HeaderMap) -> bool {
        let below = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.door.as_str()));
        if !below.is_some_and(|rest| rest.starts_with('/')) {
            return false;
        }
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.any(|(key, value)| key.trim() == name && is_same(value.trim(), &self.cookie))
    }
}

/// Compares digests, so that the time it takes tells nothing of the text.
fn is_same(given: &str, kept: &str) -> bool {
    hash::sha256_hex(given.as_bytes()) == hash::sha256_hex(kept.as_bytes())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardRefusal {
    Host,
    Origin,
    Token,
}

/// Lets a request in or not, and says to browsers what the answer may be used for.
pub async fn check(State(state): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    // An authority in the request line stands for the Host, so it may not name another one.
    let is_plain = request.uri().authority().is_none();
    let verdict = match state.guard.authorize(request.method(), &path, request.headers()) {
        Ok(()) if !is_plain => Err(GuardRefusal::Host),
        verdict => verdict,
    };
    let mut response = match verdict {
        // Said at once, and not after waiting for all of it.
        Ok(()) if announced(request.headers()) > super::MAX_BODY as u64 => responses::too_large(),
        Ok(()) => next.run(request).await,
        Err(GuardRefusal::Host) => {
            let message = "invalid Host header: use 127.0.0.1 or localhost with the port of this server";
            responses::failure(StatusCode::FORBIDDEN, "FOREIGN_HOST", message)
        }
        Err(GuardRefusal::Origin) => responses::failure(
            StatusCode::FORBIDDEN,
            "FOREIGN_ORIGIN",
            "cross-origin requests are not allowed",
        ),
        Err(GuardRefusal::Token) => responses::failure(
            StatusCode::UNAUTHORIZED,
            "TOKEN_REQUIRED",
            "token required: send it as Authorization: Bearer …, or run `tanmi serve` for a new link to the page",
        ),
    };
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(*name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// How long a body is going to be, if that is said.
fn announced(headers: &HeaderMap) -> u64 {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.map_or(0, |length| length.parse().unwrap_or(u64::MAX))
}

/// On every answer. Nothing from elsewhere is loaded, nobody elsewhere may frame or read this, no text becomes markup.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn who_may_ask() {
        let guard = Guard::new(4000).unwrap();
        let ours = || ("host", String::from("127.0.0.1:4000"));
        let token = || ("authorization", format!("Bearer {}", guard.token));
        let cookie = || ("cookie", format!("a=b; tanmi-4000={}; c=d", guard.cookie));
        let door = format!("/{}/api/v1/workspaces", guard.door);
        let api = "/api/v1/workspaces";
        let site = |word: &str| ("sec-fetch-site", word.to_owned());
        let origin = |word: &str| ("origin", word.to_owned());
        type Given = Vec<(&'static str, String)>;
        let cases: Vec<(&str, Given, Result<(), GuardRefusal>)> = vec![
            (api, vec![ours(), token()], Ok(())),
            (api, vec![("host", "localhost:4000".into()), token()], Ok(())),
            (api, vec![token()], Err(GuardRefusal::Host)),
            (api, vec![("host", "127.0.0.1".into()), token()], Err(GuardRefusal::Host)),
            (api, vec![("host", "evil.example:4000".into()), token()], Err(GuardRefusal::Host)),
            (api, vec![ours(), ("host", "evil.example".into()), token()], Err(GuardRefusal::Host)),
            (api, vec![ours()], Err(GuardRefusal::Token)),
            (api, vec![ours(), ("authorization", "Bearer x".into())], Err(GuardRefusal::Token)),
            (api, vec![ours(), ("authorization", guard.token.clone())], Err(GuardRefusal::Token)),
            (api, vec![ours(), token(), origin("http://127.0.0.1:4000")], Ok(())),
            (api, vec![ours(), token(), origin("http://127.0.0.1:4001")], Err(GuardRefusal::Origin)),
            (api, vec![ours(), token(), origin("https://127.0.0.1:4000")], Err(GuardRefusal::Origin)),
            (api, vec![ours(), token(), origin("null")], Err(GuardRefusal::Origin)),
            (api, vec![ours(), token(), site("cross-site")], Err(GuardRefusal::Origin)),
            (api, vec![ours(), token(), site("same-site")], Err(GuardRefusal::Origin)),
            // The cookie counts below the page's path and nowhere else.
            (&door, vec![ours(), cookie(), site("same-origin")], Ok(())),
            (api, vec![ours(), cookie()], Err(GuardRefusal::Token)),
            (&door, vec![ours(), ("cookie", "tanmi-4000=x".into())], Err(GuardRefusal::Token)),
            (
                &door,
                vec![ours(), ("cookie", format!("tanmi-4001={}", guard.cookie))],
                Err(GuardRefusal::Token),
            ),
            ("/", vec![ours(), site("cross-site")], Ok(())),
            ("/", vec![("host", "evil.example".into())], Err(GuardRefusal::Host)),
        ];
        for (path, given, expected) in cases {
            assert_eq!(guard.authorize(&Method::GET, path, &headers(&given)), expected, "{path} {given:?}");
        }
        let other = headers(&[ours(), site("cross-site")]);
        assert_eq!(guard.authorize(&Method::POST, "/", &other), Err(GuardRefusal::Origin));
    }

    #[test]
    fn a_ticket_is_good_once() {
        let guard = Guard::new(4000).unwrap();
        let link = guard.link();
        let ticket = link.split_once("ticket=").unwrap().1;
        assert!(guard.redeem_ticket("").is_none());
        assert!(guard.redeem_ticket(ticket).unwrap().contains("HttpOnly; SameSite=Strict"));
        assert!(guard.redeem_ticket(ticket).is_none());
    }
}
