//! Whether the server runs, and whether it can work with its database.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::{TeamState, block};
use crate::http::{accepted_language, responses};

/// Answers as long as the process runs.
pub async fn is_running() -> Response {
    responses::json(StatusCode::OK, &json!({"status": "ok"}))
}

/// Answers with success if the database can be reached, has a schema that this program knows, and does not let the role
/// of the program bypass row-level security.
pub async fn is_ready(State(state): State<Arc<TeamState>>, headers: HeaderMap) -> Response {
    let pool = Arc::clone(&state.pool);
    match block(move || Ok(pool.check_health()?)).await {
        Ok(()) => responses::json(StatusCode::OK, &json!({"status": "ready"})),
        Err(refusal) => refusal.respond(accepted_language(&headers)),
    }
}
