//! What happens around each request: its id, its line in the log, its metrics, and the headers that protect the page.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, header};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};
use tanmi_base::id;
use tanmi_pg::Caller;

use super::TeamState;
use super::log::LogLevel;
use crate::http::connections::Connection;
use crate::http::guard;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID: usize = 64;

/// Routes that other programs request all the time.
const QUIET: &[&str] = &["/healthz", "/readyz", "/metrics"];

pub async fn observe(State(state): State<Arc<TeamState>>, http: HttpRequest<Body>, next: Next) -> Response {
    let started = Instant::now();
    let request_id = request_id(http.headers());
    let route = http.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = method_word(http.method());
    let address = http.extensions().get::<Arc<Connection>>().map(|connection| connection.address.to_string());
    let (mut response, code) = name_error(next.run(http).await, &request_id).await;
    guard::add_security_headers(&mut response);
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let (status, took) = (response.status().as_u16(), started.elapsed());
    state.metrics.record(&route, method, status, took, code.as_deref());
    let caller = response.extensions().get::<Caller>();
    let level = match status {
        500.. => LogLevel::Error,
        401 | 429 => LogLevel::Warn,
        _ if QUIET.contains(&route.as_str()) => LogLevel::Debug,
        _ => LogLevel::Info,
    };
    let fields = json!({
        "requestId": request_id, "method": method, "route": route, "status": status, "ms": took.as_millis() as u64,
        "code": code, "address": address, "person": caller.map(|caller| &caller.name),
        "project": caller.map(|caller| &caller.project),
    });
    state.log.write(level, "request", fields);
    response
}

/// Returns the id that the client gave its request, or a new one. An id with other characters could forge the log.
fn request_id(headers: &HeaderMap) -> String {
    let is_good = |id: &&str| {
        let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(is_safe)
    };
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_good);
    given.map_or_else(|| id::random(16), str::to_owned)
}

/// Returns the name of a method. A client can make up others.
fn method_word(method: &Method) -> &'static str {
    const KNOWN: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.iter().find(|known| **known == method.as_str()).copied().unwrap_or("other")
}

/// Adds the id of the request to an error. Also returns the code of the error.
async fn name_error(response: Response, request_id: &str) -> (Response, Option<String>) {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if response.status().is_success() || !is_json {
        return (response, None);
    }
    let (mut parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let mut value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let Some(code) = value["error"]["code"].as_str().map(str::to_owned) else {
        return (Response::from_parts(parts, Body::from(bytes)), None);
    };
    value["error"]["requestId"] = json!(request_id);
    parts.headers.remove(header::CONTENT_LENGTH);
    (Response::from_parts(parts, Body::from(value.to_string())), Some(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_id_is_taken_over_only_if_well_formed() {
        let given = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(id).unwrap());
            request_id(&headers)
        };
        assert_eq!(given("a-B_9.c"), "a-B_9.c");
        for bad in ["", "a b", "a\"b", "x".repeat(65).as_str()] {
            assert!(given(bad) != bad && given(bad).len() == 16, "{bad:?}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
