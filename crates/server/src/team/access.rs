//! Who makes a request: the person of its token, and what the person may do in the project.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use tanmi_base::{Lang, hash};
use tanmi_pg::{Access, Caller, Role};

use super::refusal::Refusal;
use super::{TeamState, block};
use crate::http::accepted_language;
use crate::http::connections::Connection;

/// How long a token counts as valid after it was looked up. A revoked token stops working within this time.
const REMEMBERED_FOR: Duration = Duration::from_secs(3);
const MAX_REMEMBERED: usize = 10_000;

/// The callers of the last seconds, by project and digest of the token.
#[derive(Default)]
pub struct CallerCache(Mutex<HashMap<(String, String), (Caller, Instant)>>);

impl CallerCache {
    fn find(&self, key: &(String, String)) -> Option<Caller> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).filter(|(_, at)| at.elapsed() < REMEMBERED_FOR).map(|(caller, _)| caller.clone())
    }

    fn remember(&self, key: (String, String), caller: Caller) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.retain(|_, (_, at)| at.elapsed() < REMEMBERED_FOR);
        }
        known.insert(key, (caller, Instant::now()));
    }
}

/// An authorized request.
#[derive(Clone)]
pub struct Request {
    pub caller: Caller,
    pub lang: Option<Lang>,
    /// The name of the project, if the request names it.
    project: Option<String>,
    token: String,
}

impl Request {
    /// Fails if the caller may not do what needs this role.
    pub fn require(&self, role: Role) -> Result<(), Refusal> {
        match self.caller.role >= role {
            true => Ok(()),
            false => Err(Refusal::Forbidden { has: self.caller.role, needs: role }),
        }
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Checks again that the token is valid, after the request waited.
    pub async fn check_again(&self, state: &Arc<TeamState>) -> Result<(), Refusal> {
        authenticate(state, self.project.clone(), self.token.clone()).await.map(|_| ())
    }
}

impl FromRequestParts<Arc<TeamState>> for Request {
    type Rejection = axum::response::Response;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<TeamState>,
    ) -> Result<Request, axum::response::Response> {
        let lang = accepted_language(&parts.headers);
        let refuse = |refusal: Refusal| refusal.respond(lang);
        let Some(token) = bearer(&parts.headers) else { return Err(refuse(Refusal::NoToken)) };
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
        let in_path = path.ok().and_then(|mut names| names.0.remove("project"));
        let project = in_path.or_else(|| project_of_query(parts.uri.query().unwrap_or_default()));
        let caller = authenticate(state, project.clone(), token.clone()).await.map_err(refuse)?;
        if let Some(connection) = parts.extensions.get::<Arc<Connection>>() {
            connection.authorize();
        }
        Ok(Request { caller, lang, project, token })
    }
}

/// Returns the token of a request.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// Returns the parameter `project` of a query.
fn project_of_query(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("project="))?;
    percent_encoding::percent_decode_str(value).decode_utf8().ok().map(|name| name.into_owned())
}

async fn authenticate(
    state: &Arc<TeamState>,
    project: Option<String>,
    token: String,
) -> Result<Caller, Refusal> {
    let key = (project.clone().unwrap_or_default(), hash::sha256_hex(token.as_bytes()));
    if let Some(caller) = state.callers.find(&key) {
        return Ok(caller);
    }
    let pool = Arc::clone(&state.pool);
    let access = block(move || Ok(pool.authenticate(project.as_deref(), &token)?)).await?;
    match access {
        Access::Granted(caller) => {
            state.callers.remember(key, caller.clone());
            Ok(caller)
        }
        Access::NotMember => Err(Refusal::NotMember { project: key.0 }),
        Access::SeveralProjects(names) => Err(Refusal::SeveralProjects { names }),
        Access::UnknownToken => Err(Refusal::UnknownToken),
    }
}
