//! Buys a link to the page of a team server with a token.

use std::path::Path;

use serde_json::Value;

use crate::address::server_address;
use crate::client::build_agent;

const MAX_ANSWER: u64 = 1 << 20;

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The address is neither https, nor http on this machine.
    #[error("the address is neither https, nor http on this machine")]
    Address,
    #[error("{reason}")]
    Unreachable { reason: String },
    /// The server refused the request, in the language that was asked for.
    #[error("{message}")]
    Refused { code: String, message: String },
}

/// Returns a link that opens the page of a project once. `ca` is a file with the certificates that sign that of the
/// server; without it, those of the system count.
pub fn request_link(
    server: &str,
    project: Option<&str>,
    token: &str,
    ca: Option<&Path>,
    language: &str,
) -> Result<String, LoginError> {
    let server = server_address(server).ok_or(LoginError::Address)?;
    let agent = build_agent(&server, ca).map_err(unreachable)?;
    let mut request = agent.post(format!("{server}/login-link"));
    if let Some(project) = project {
        request = request.query("project", project);
    }
    let request =
        request.header("authorization", format!("Bearer {token}")).header("accept-language", language);
    let mut response = request.send_empty().map_err(unreachable)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().map_err(unreachable)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (body["path"].as_str(), body["error"]["code"].as_str()) {
        (Some(path), _) => Ok(format!("{server}{path}")),
        (None, Some(code)) => {
            let message = body["error"]["message"].as_str().unwrap_or_default().to_owned();
            Err(LoginError::Refused { code: code.to_owned(), message })
        }
        (None, None) => Err(unreachable(format!("HTTP status {status}, not from the server of a team"))),
    }
}

fn unreachable(error: impl std::fmt::Display) -> LoginError {
    LoginError::Unreachable { reason: error.to_string() }
}
