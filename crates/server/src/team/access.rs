//! Who makes a request: the person of its token or cookie, and what the person may do in the project. Every
//! route passes [`authorize`], which knows the role that the route needs.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request as HttpRequest, header};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::json;
use tanmi_base::{Lang, clock, hash};
use tanmi_pg::{Access, AuditEvent, AuditKind, Caller};

use super::log::LogLevel;
use super::refusal::Refusal;
use super::routes::needed_role;
use super::{TeamState, block, login};
use crate::http::accepted_language;
use crate::http::connections::Connection;

/// How long a token counts as valid after it was looked up. A revoked token stops working within this time.
const REMEMBERED_FOR: Duration = Duration::from_secs(3);
const MAX_REMEMBERED: usize = 10_000;
/// The cookie of a browser. All servers of a team accept it, so its name does not depend on the port.
pub const COOKIE_NAME: &str = "tanmi-team";

/// Finds the caller of a request, and refuses what the role of the caller does not allow.
pub async fn authorize(State(state): State<Arc<TeamState>>, http: HttpRequest<Body>, next: Next) -> Response {
    // No name contains this character, and the database does not take it.
    if http.uri().path_and_query().is_some_and(|path| path.as_str().contains("%00")) {
        let reason = String::from("must not contain the character NUL (%00)");
        return Refusal::invalid("path", reason).respond(accepted_language(http.headers()));
    }
    // A path without a route is answered with an error.
    let route = http.extensions().get::<MatchedPath>().cloned();
    let Some(role) = route.and_then(|route| needed_role(http.method(), route.as_str())) else {
        return next.run(http).await;
    };
    let (mut parts, body) = http.into_parts();
    let lang = accepted_language(&parts.headers);
    let request = match Request::find(&mut parts, &state, lang).await {
        Ok(request) if request.caller.role >= role => request,
        Ok(request) => return Refusal::Forbidden { has: request.caller.role, needs: role }.respond(lang),
        Err(refusal) => return refusal.respond(lang),
    };
    let caller = request.caller.clone();
    parts.extensions.insert(request);
    let mut response = next.run(HttpRequest::from_parts(parts, body)).await;
    response.extensions_mut().insert(caller);
    response
}

/// The callers of the last seconds, by project and digest of the credential.
#[derive(Default)]
pub struct CallerCache {
    known: Mutex<HashMap<(String, String), (Caller, Instant)>>,
    /// The day, and which digest was used from which address on it.
    seen_today: Mutex<(String, HashSet<(String, IpAddr)>)>,
}

impl CallerCache {
    fn find(&self, key: &(String, String)) -> Option<Caller> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).filter(|(_, at)| at.elapsed() < REMEMBERED_FOR).map(|(caller, _)| caller.clone())
    }

    /// Returns whether a credential was valid before, in any project.
    fn was_valid(&self, digest: &str) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.keys().any(|(_, other)| other == digest)
    }

    fn remember(&self, key: (String, String), caller: Caller) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.retain(|_, (_, at)| at.elapsed() < REMEMBERED_FOR);
        }
        known.insert(key, (caller, Instant::now()));
    }

    /// Makes this server look a credential up again.
    pub fn forget(&self, credential: &str) {
        self.forget_digest(&hash::sha256_hex(credential.as_bytes()));
    }

    fn forget_digest(&self, digest: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, other), _| other != digest);
    }

    /// Returns whether a credential is used from an address for the first time on this day.
    fn is_new_today(&self, digest: &str, address: IpAddr) -> bool {
        let today = clock::utc_day(clock::now());
        let mut seen = self.seen_today.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0 != today || seen.1.len() >= MAX_REMEMBERED {
            *seen = (today, HashSet::new());
        }
        seen.1.insert((digest.to_owned(), address))
    }
}

/// An authorized request.
#[derive(Clone)]
pub struct Request {
    pub caller: Caller,
    pub lang: Option<Lang>,
    /// The name of the project, if the request names it.
    project: Option<String>,
    credential: String,
    /// The address from which it came.
    address: Option<IpAddr>,
}

impl Request {
    async fn find(parts: &mut Parts, state: &Arc<TeamState>, lang: Option<Lang>) -> Result<Request, Refusal> {
        let credential = find_credential(state, &parts.headers, parts.uri.path())?;
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
        let in_path = path.ok().and_then(|mut names| names.0.remove("project"));
        let project = in_path.or_else(|| project_of_query(parts.uri.query().unwrap_or_default()));
        let connection = parts.extensions.get::<Arc<Connection>>();
        let address = connection.map(|connection| connection.address);
        let caller = authenticate(state, project.clone(), credential.clone(), address).await?;
        if let Some(seconds) = state.rate_limit.take(&caller.token, Instant::now()) {
            return Err(Refusal::TooManyRequests { seconds });
        }
        if let Some(connection) = connection {
            connection.authorize();
        }
        Ok(Request { caller, lang, project, credential, address })
    }

    /// Returns the name of the project, or its id if the request names none.
    pub fn project(&self) -> &str {
        self.project.as_deref().unwrap_or(&self.caller.project)
    }

    /// Returns the address from which the request came.
    pub fn address(&self) -> Option<String> {
        self.address.map(|address| address.to_string())
    }

    /// Returns the token or the cookie.
    pub fn credential(&self) -> &str {
        &self.credential
    }

    /// Checks again that the credential is valid, after the request waited.
    pub async fn check_again(&self, state: &Arc<TeamState>) -> Result<(), Refusal> {
        authenticate(state, self.project.clone(), self.credential.clone(), None).await.map(|_| ())
    }
}

impl FromRequestParts<Arc<TeamState>> for Request {
    type Rejection = Response;

    /// Returns the request that [`authorize`] found.
    async fn from_request_parts(parts: &mut Parts, _: &Arc<TeamState>) -> Result<Request, Response> {
        parts.extensions.get::<Request>().cloned().ok_or_else(|| Refusal::Internal.respond(None))
    }
}

/// Returns the token of a request, or the cookie of a request below the path of the page.
fn find_credential(state: &TeamState, headers: &HeaderMap, path: &str) -> Result<String, Refusal> {
    if let Some(token) = bearer(headers) {
        // A cookie is no token: a browser cannot buy itself a longer login.
        return token.starts_with("tnm_").then_some(token).ok_or(Refusal::UnknownToken);
    }
    let cookie = cookie(headers).filter(|_| path.starts_with("/page/")).ok_or(Refusal::NoToken)?;
    is_same_origin(&login::origin(state, headers), headers).then_some(cookie).ok_or(Refusal::ForeignOrigin)
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// Returns the cookie of a login.
pub fn cookie(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let found = pairs.find(|(name, value)| *name == COOKIE_NAME && value.starts_with("tnl_"));
    found.map(|(_, value)| value.to_owned())
}

/// Returns whether a browser sends the request for a page of this server. A strict cookie comes with no other
/// request, but not every browser keeps to that.
fn is_same_origin(own: &str, headers: &HeaderMap) -> bool {
    let is_own_origin = headers.get_all(header::ORIGIN).iter().all(|origin| origin == own);
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    is_own_origin && site.is_none_or(|site| site == b"same-origin" || site == b"none")
}

/// Returns the parameter `project` of a query.
fn project_of_query(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("project="))?;
    percent_encoding::percent_decode_str(value).decode_utf8().ok().map(|name| name.into_owned())
}

/// Returns the person of a credential. Without an address, the credential was accepted before.
pub async fn authenticate(
    state: &Arc<TeamState>,
    project: Option<String>,
    credential: String,
    address: Option<IpAddr>,
) -> Result<Caller, Refusal> {
    let key = (project.clone().unwrap_or_default(), hash::sha256_hex(credential.as_bytes()));
    let caller = match state.callers.find(&key) {
        Some(caller) => caller,
        None => look_up(state, project, credential, address, &key).await?,
    };
    if let Some(address) = address.filter(|address| state.callers.is_new_today(&key.1, *address)) {
        let fields =
            json!({"person": caller.name, "project": caller.project, "address": address.to_string()});
        state.log.write(LogLevel::Info, "login", fields);
        record_audit(state, AuditKind::Login, Some(caller.clone()), address);
    }
    Ok(caller)
}

async fn look_up(
    state: &Arc<TeamState>,
    project: Option<String>,
    credential: String,
    address: Option<IpAddr>,
    key: &(String, String),
) -> Result<Caller, Refusal> {
    // People behind one address share its failures. A credential that was valid before is looked up nevertheless.
    let blocked = address.and_then(|address| state.failed_logins.blocked_for(address, Instant::now()));
    if let Some(seconds) = blocked.filter(|_| !state.callers.was_valid(&key.1)) {
        return Err(Refusal::TooManyLogins { seconds });
    }
    let pool = Arc::clone(&state.pool);
    match block(move || Ok(pool.authenticate(project.as_deref(), &credential)?)).await? {
        Access::Granted(caller) => {
            state.callers.remember(key.clone(), caller.clone());
            Ok(caller)
        }
        Access::NotMember => Err(Refusal::NotMember { project: key.0.clone() }),
        Access::SeveralProjects(names) => Err(Refusal::SeveralProjects { names }),
        Access::UnknownToken => {
            state.callers.forget_digest(&key.1);
            if let Some(address) = address {
                add_failed_login(state, address);
            }
            Err(Refusal::UnknownToken)
        }
    }
}

/// Counts a token or a ticket that is not valid.
pub fn add_failed_login(state: &Arc<TeamState>, address: IpAddr) {
    // One entry for each address and window, not one for each failure.
    if state.failed_logins.add(address, Instant::now()) {
        record_audit(state, AuditKind::LoginFailed, None, address);
    }
}

/// Adds an entry to the audit, without keeping the request waiting.
pub fn record_audit(state: &Arc<TeamState>, what: AuditKind, caller: Option<Caller>, address: IpAddr) {
    let state = Arc::clone(state);
    tokio::task::spawn_blocking(move || {
        let ip = address.to_string();
        let event = AuditEvent {
            project: caller.as_ref().map(|caller| caller.project.as_str()),
            person: caller.as_ref().map(|caller| caller.person.as_str()),
            ip: Some(&ip),
            what,
            detail: json!({}),
        };
        if let Err(error) = state.pool.record_audit(&event) {
            state.log.write(LogLevel::Error, "audit_failed", json!({"reason": error.message(Lang::En)}));
        }
    });
}
