//! The page of a team, and how a browser logs in: a link that is bought with a token, opened once and exchanged for a
//! cookie. The login ends with its token.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use tanmi_pg::{AuditKind, COOKIE_LIFETIME, TICKET_LIFETIME};

use super::access::{self, COOKIE_NAME, Request};
use super::refusal::Refusal;
use super::{TeamState, block};
use crate::http::connections::Connection;
use crate::http::{accepted_language, page, responses};

/// Answers with a link that opens the page once.
pub async fn create_link(
    State(state): State<Arc<TeamState>>,
    request: Request,
    headers: HeaderMap,
) -> Response {
    let (pool, lang) = (Arc::clone(&state.pool), request.lang);
    let made = block(move || Ok(pool.create_ticket(&request.caller.project, request.credential())?)).await;
    let (ticket, project) = match made {
        Ok(made) => made,
        Err(refusal) => return refusal.respond(lang),
    };
    let project = utf8_percent_encode(&project, NON_ALPHANUMERIC);
    let path = format!("/page/{project}/login?ticket={ticket}");
    let url = format!("{}{path}", origin(&state, &headers));
    let answer = json!({"path": path, "url": url, "expiresIn": TICKET_LIFETIME / 1000});
    responses::json(StatusCode::CREATED, &answer)
}

/// Redeems the ticket of a link: sets the cookie and forwards the browser to the page. As for the page of one
/// machine, a `refresh` element forwards, because a browser does not send a strict cookie with a redirect
/// from another site.
pub async fn redeem(
    State(state): State<Arc<TeamState>>,
    method: Method,
    Extension(connection): Extension<Arc<Connection>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let ticket = query.as_deref().and_then(|query| query.strip_prefix("ticket=")).map(str::to_owned);
    // A HEAD request, such as that of a preview, does not use up the ticket.
    let Some(ticket) = ticket.filter(|_| method == Method::GET) else { return closed() };
    let address = connection.address;
    if let Some(seconds) = state.failed_logins.blocked_for(address, Instant::now()) {
        return Refusal::TooManyLogins { seconds }.respond(accepted_language(&headers));
    }
    let pool = Arc::clone(&state.pool);
    let cookie = match block(move || Ok(pool.redeem_ticket(&ticket)?)).await {
        Ok(Some(cookie)) => cookie,
        Ok(None) => {
            access::add_failed_login(&state, address);
            return closed();
        }
        Err(refusal) => return refusal.respond(accepted_language(&headers)),
    };
    let mut response = html(
        StatusCode::OK,
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url=./\"><title>Tanmi</title>\
         <link rel=icon href=\"data:,\"><a href=\"./\">Tanmi</a>",
    );
    set_cookie(&mut response, &cookie, COOKIE_LIFETIME / 1000, is_plain(&state, &headers));
    response
}

/// Ends the login of the browser.
pub async fn log_out(
    State(state): State<Arc<TeamState>>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
    headers: HeaderMap,
) -> Response {
    let (pool, lang, cookie) = (Arc::clone(&state.pool), request.lang, request.credential().to_owned());
    state.callers.forget(&cookie);
    match block(move || Ok(pool.end_login(&cookie)?)).await {
        Ok(()) => {
            access::record_audit(&state, AuditKind::Logout, Some(request.caller), connection.address);
            let mut response = responses::json(StatusCode::OK, &json!({"loggedOut": true}));
            set_cookie(&mut response, "", 0, is_plain(&state, &headers));
            response
        }
        Err(refusal) => refusal.respond(lang),
    }
}

/// Returns the page to a browser that is logged in.
pub async fn index(
    State(state): State<Arc<TeamState>>,
    Path(project): Path<String>,
    Extension(connection): Extension<Arc<Connection>>,
    headers: HeaderMap,
) -> Response {
    let Some(cookie) = access::cookie(&headers) else { return closed() };
    match access::authenticate(&state, Some(project), cookie, Some(connection.address)).await {
        Ok(_) => page::team_index(),
        Err(Refusal::UnknownToken) => closed(),
        Err(refusal) => refusal.respond(accepted_language(&headers)),
    }
}

/// Returns a file of the page. The files contain nothing of the team.
pub async fn file(Path((_, name)): Path<(String, String)>) -> Response {
    page::find_file(&name).unwrap_or_else(|| Refusal::NotFound.respond(None))
}

/// Tells a person how to log in.
pub async fn front() -> Response {
    html(StatusCode::OK, FRONT)
}

fn closed() -> Response {
    html(StatusCode::UNAUTHORIZED, CLOSED)
}

const FRONT: &str = "<!doctype html><meta charset=utf-8><title>Tanmi</title><link rel=icon href=\"data:,\">\
<h1>Tanmi</h1><p>This is the server of a team. Run <code>tanmi team login --url URL --token-file FILE</code> for a link to \
the page.</p><p lang=zh>这是团队服务器。请运行 <code>tanmi team login --url URL --token-file FILE</code> 获取页面链接。</p>";
const CLOSED: &str = "<!doctype html><meta charset=utf-8><title>Tanmi</title><link rel=icon href=\"data:,\">\
<h1>Tanmi</h1><p>You are not logged in, or the link was already used. Run <code>tanmi team login --url URL --token-file \
FILE</code> for a new one.</p><p lang=zh>你尚未登录，或者链接已被使用。请运行 <code>tanmi team login --url URL --token-file \
FILE</code> 获取新链接。</p>";

fn html(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn set_cookie(response: &mut Response, value: &str, seconds: i64, is_plain: bool) {
    let secure = if is_plain { "" } else { "; Secure" };
    let cookie =
        format!("{COOKIE_NAME}={value}; Path=/page/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

/// Returns the scheme, the host and the port by which a browser knows this server.
pub fn origin(state: &TeamState, headers: &HeaderMap) -> String {
    let scheme = if is_plain(state, headers) { "http" } else { "https" };
    format!("{scheme}://{}", host(headers))
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// Returns whether the browser uses plain HTTP: without TLS, and by a name of this machine. Not every browser sends a
/// `Secure` cookie there. With another name, a proxy on this machine has TLS.
fn is_plain(state: &TeamState, headers: &HeaderMap) -> bool {
    let host = host(headers);
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    !state.has_tls && matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}
