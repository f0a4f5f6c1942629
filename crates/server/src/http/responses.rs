//! JSON responses, and the HTTP status of each error code.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

/// Returns a JSON response. If the value has a `version`, it becomes the `ETag`.
pub fn json(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let version = value.get("version").and_then(Value::as_str);
    if let Some(tag) = version.and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

pub fn error(error: &Value) -> Response {
    let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
    let mut response = json(status_of(code), &json!({"error": error}));
    if code == "BUSY" {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub fn failure(status: StatusCode, code: &str, message: &str) -> Response {
    json(status, &json!({"error": {"code": code, "message": message}}))
}

pub fn too_large() -> Response {
    failure(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", &too_large_message())
}

pub fn too_large_message() -> String {
    format!("the request body is larger than {} bytes", super::MAX_BODY)
}

pub async fn not_found() -> Response {
    failure(StatusCode::NOT_FOUND, "NOT_FOUND", "path not found; GET /api/v1/openapi.json describes the API")
}

pub async fn method_not_allowed() -> Response {
    failure(
        StatusCode::METHOD_NOT_ALLOWED,
        "METHOD_NOT_ALLOWED",
        "method not allowed for this path; GET /api/v1/openapi.json describes the API",
    )
}

/// Returns the HTTP status of an error code; 400 for codes that are not listed, which report an invalid request.
pub fn status_of(code: &str) -> StatusCode {
    match code {
        "WORKSPACE_NOT_FOUND"
        | "NODE_NOT_FOUND"
        | "REFERENCE_NOT_FOUND"
        | "NOT_IN_LIST"
        | "MEMORY_NOT_FOUND"
        | "LEXICON_NOT_FOUND"
        | "NO_WORKSPACE"
        | "NO_FOCUS"
        | "PROJECT_NOT_FOUND"
        | "NOT_IN_TRASH"
        | "TEXT_NOT_FOUND" => StatusCode::NOT_FOUND,
        "OUTDATED" => StatusCode::PRECONDITION_FAILED,
        "INVALID_TRANSITION"
        | "NODE_TAKEN"
        | "CLAIM_LOST"
        | "CHILDREN_UNFINISHED"
        | "DEPENDENCIES_OPEN"
        | "DEPENDENCY_CYCLE"
        | "RULES_HASH_MISMATCH"
        | "ROOT_PROTECTED"
        | "WORKSPACE_ARCHIVED"
        | "WORKSPACE_NOT_ARCHIVED"
        | "PARENT_IS_EXECUTION"
        | "PARENT_CANCELLED"
        | "PARENT_DELETED"
        | "MOVE_INTO_SELF"
        | "TOO_DEEP"
        | "NOT_CURRENT"
        | "NOT_A_FACT"
        | "MEMORY_OFF"
        | "CONTENDED"
        | "AMBIGUOUS_WORKSPACE"
        | "AMBIGUOUS_ID"
        | "SECRETS_FOUND"
        | "PROJECT_MOVED"
        | "TEAM_CHANGED"
        | "PROJECT_OWNER"
        | "FILE_DAMAGED" => StatusCode::CONFLICT,
        "FORBIDDEN" => StatusCode::FORBIDDEN,
        "BUSY" => StatusCode::LOCKED,
        "TOO_LARGE" => StatusCode::PAYLOAD_TOO_LARGE,
        "NOT_JSON" => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "TOO_MANY" => StatusCode::TOO_MANY_REQUESTS,
        "TEAM_UNREACHABLE" => StatusCode::SERVICE_UNAVAILABLE,
        "IO" | "INDEX" | "MODEL" | "INTERNAL" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}
