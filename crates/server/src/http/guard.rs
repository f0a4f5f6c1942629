//! Authorizes requests: a program sends the token, a browser redeems a ticket for a cookie. Other requests get an
//! error and no data.
//!
//! Browsers send a cookie of 127.0.0.1 to every port, so the cookie is bound to a random path that is used by no other
//! server. A page of another origin can make a browser send requests, so Host, Origin and Sec-Fetch-Site must match
//! this server. The check of Host also stops DNS rebinding.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use tanmi_base::{hash, id};

use super::connections::Connection;
use super::{ServerState, responses};

/// How long an unused ticket is valid.
const TICKET_LIFETIME: Duration = Duration::from_secs(600);
/// The maximum number of unused tickets. A further ticket replaces the oldest.
const MAX_TICKETS: usize = 32;

pub struct Guard {
    port: u16,
    token: String,
    cookie: String,
    /// The random path of the page. It is not a secret: without the cookie it gives no access.
    page_path: String,
    /// Unused tickets with the time of their creation, oldest first.
    tickets: Mutex<Vec<(String, Instant)>>,
}

/// Returns the accepted values of the Host header.
pub fn hosts(port: u16) -> [String; 2] {
    [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
}

impl Guard {
    /// Creates a guard with new secrets. `None` if the machine provides no entropy.
    pub fn new(port: u16) -> Option<Guard> {
        let page_path = format!("p-{}", id::secret(20)?);
        let (token, cookie) = (id::secret(40)?, id::secret(40)?);
        Some(Guard { port, token, cookie, page_path, tickets: Mutex::default() })
    }

    /// Returns the token that programs send as `Authorization: Bearer …`.
    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn page_path(&self) -> &str {
        &self.page_path
    }

    /// Creates a ticket and returns the link that redeems it. The link works once.
    pub fn create_link(&self) -> String {
        // Without entropy the ticket is empty, and an empty ticket is never accepted.
        let ticket = id::secret(32).unwrap_or_default();
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|(_, created)| created.elapsed() < TICKET_LIFETIME);
        if tickets.len() >= MAX_TICKETS {
            tickets.remove(0);
        }
        tickets.push((ticket.clone(), Instant::now()));
        format!("http://127.0.0.1:{}/?ticket={ticket}", self.port)
    }

    /// Consumes a ticket and returns the `Set-Cookie` value; `None` if the ticket is not valid.
    pub fn redeem_ticket(&self, ticket: &str) -> Option<String> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tickets.iter().position(|(known, created)| {
            !known.is_empty() && is_same_secret(known, ticket) && created.elapsed() < TICKET_LIFETIME
        })?;
        tickets.remove(at);
        let (name, value, path) = (self.cookie_name(), &self.cookie, &self.page_path);
        Some(format!("{name}={value}; Path=/{path}/; HttpOnly; SameSite=Strict"))
    }

    fn cookie_name(&self) -> String {
        format!("tanmi-{}", self.port)
    }

    fn authorize(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), GuardRefusal> {
        let hosts = hosts(self.port);
        let mut host_headers = headers.get_all(header::HOST).iter();
        let host = host_headers.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if host_headers.next().is_some() || !hosts.iter().any(|known| known == host) {
            return Err(GuardRefusal::Host);
        }
        let is_own = |origin: &HeaderValue| hosts.iter().any(|host| *origin == *format!("http://{host}"));
        if !headers.get_all(header::ORIGIN).iter().all(is_own) {
            return Err(GuardRefusal::Origin);
        }
        // A ticket is checked later, and its link may be followed from any site.
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
            kind.eq_ignore_ascii_case("bearer") && is_same_secret(token.trim(), &self.token)
        })
    }

    fn has_cookie(&self, path: &str, headers: &HeaderMap) -> bool {
        let below_page = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.page_path.as_str()));
        if !below_page.is_some_and(|rest| rest.starts_with('/')) {
            return false;
        }
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.any(|(key, value)| key.trim() == name && is_same_secret(value.trim(), &self.cookie))
    }
}

/// Compares digests, so that the duration reveals nothing about the secret.
fn is_same_secret(given: &str, expected: &str) -> bool {
    hash::sha256_hex(given.as_bytes()) == hash::sha256_hex(expected.as_bytes())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardRefusal {
    Host,
    Origin,
    Token,
}

/// Passes on an authorized request, refuses any other, and adds the security headers to the response.
pub async fn check(State(state): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    // An authority in the request line would override the checked Host header.
    let has_authority = request.uri().authority().is_some();
    let verdict = match state.guard.authorize(request.method(), &path, request.headers()) {
        Ok(()) if has_authority => Err(GuardRefusal::Host),
        verdict => verdict,
    };
    // The entry of the page needs no credentials, so a request for it authorizes nothing.
    if let Some(connection) = request.extensions().get::<Arc<Connection>>()
        && verdict.is_ok()
        && path != "/"
    {
        connection.authorize();
    }
    let mut response = match verdict {
        // Refused before the body is received.
        Ok(()) if content_length(request.headers()) > super::MAX_BODY as u64 => responses::too_large(),
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
    add_security_headers(&mut response);
    response
}

pub fn add_security_headers(response: &mut Response) {
    for (name, value) in HEADERS {
        response.headers_mut().entry(*name).or_insert(HeaderValue::from_static(value));
    }
}

/// Returns the value of `Content-Length`: 0 if there is none, the maximum if it is not a number.
fn content_length(headers: &HeaderMap) -> u64 {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.map_or(0, |length| length.parse().unwrap_or(u64::MAX))
}

/// The headers of every response: the page loads nothing from other hosts, no other site may frame or read a response,
/// and no text becomes markup.
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
    fn authorize_request_checks_host_origin_and_credentials() {
        let guard = Guard::new(4000).unwrap();
        let own_host = || ("host", String::from("127.0.0.1:4000"));
        let token = || ("authorization", format!("Bearer {}", guard.token));
        let cookie = || ("cookie", format!("a=b; tanmi-4000={}; c=d", guard.cookie));
        let page_api = format!("/{}/api/v1/workspaces", guard.page_path);
        let api = "/api/v1/workspaces";
        let site = |word: &str| ("sec-fetch-site", word.to_owned());
        let origin = |word: &str| ("origin", word.to_owned());
        type Given = Vec<(&'static str, String)>;
        let cases: Vec<(&str, Given, Result<(), GuardRefusal>)> = vec![
            (api, vec![own_host(), token()], Ok(())),
            (api, vec![("host", "localhost:4000".into()), token()], Ok(())),
            (api, vec![token()], Err(GuardRefusal::Host)),
            (api, vec![("host", "127.0.0.1".into()), token()], Err(GuardRefusal::Host)),
            (api, vec![("host", "evil.example:4000".into()), token()], Err(GuardRefusal::Host)),
            (api, vec![own_host(), ("host", "evil.example".into()), token()], Err(GuardRefusal::Host)),
            (api, vec![own_host()], Err(GuardRefusal::Token)),
            (api, vec![own_host(), ("authorization", "Bearer x".into())], Err(GuardRefusal::Token)),
            (api, vec![own_host(), ("authorization", guard.token.clone())], Err(GuardRefusal::Token)),
            (api, vec![own_host(), token(), origin("http://127.0.0.1:4000")], Ok(())),
            (api, vec![own_host(), token(), origin("http://127.0.0.1:4001")], Err(GuardRefusal::Origin)),
            (api, vec![own_host(), token(), origin("https://127.0.0.1:4000")], Err(GuardRefusal::Origin)),
            (api, vec![own_host(), token(), origin("null")], Err(GuardRefusal::Origin)),
            (api, vec![own_host(), token(), site("cross-site")], Err(GuardRefusal::Origin)),
            (api, vec![own_host(), token(), site("same-site")], Err(GuardRefusal::Origin)),
            // The cookie is valid only below the path of the page.
            (&page_api, vec![own_host(), cookie(), site("same-origin")], Ok(())),
            (api, vec![own_host(), cookie()], Err(GuardRefusal::Token)),
            (&page_api, vec![own_host(), ("cookie", "tanmi-4000=x".into())], Err(GuardRefusal::Token)),
            (
                &page_api,
                vec![own_host(), ("cookie", format!("tanmi-4001={}", guard.cookie))],
                Err(GuardRefusal::Token),
            ),
            ("/", vec![own_host(), site("cross-site")], Ok(())),
            ("/", vec![("host", "evil.example".into())], Err(GuardRefusal::Host)),
        ];
        for (path, given, expected) in cases {
            assert_eq!(guard.authorize(&Method::GET, path, &headers(&given)), expected, "{path} {given:?}");
        }
        let other = headers(&[own_host(), site("cross-site")]);
        assert_eq!(guard.authorize(&Method::POST, "/", &other), Err(GuardRefusal::Origin));
    }

    #[test]
    fn redeem_ticket_second_use_is_refused() {
        let guard = Guard::new(4000).unwrap();
        let link = guard.create_link();
        let ticket = link.split_once("ticket=").unwrap().1;
        assert!(guard.redeem_ticket("").is_none());
        assert!(guard.redeem_ticket(ticket).unwrap().contains("HttpOnly; SameSite=Strict"));
        assert!(guard.redeem_ticket(ticket).is_none());
    }
}
