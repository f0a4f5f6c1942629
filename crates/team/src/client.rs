//! The client of a team server: one blocking request at a time, with deadlines.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tanmi_protocol::{
    Beat, DocumentPage, FeedPage, MemoryAnswer, MemoryRequest, Positions, ProjectAnswer, ProjectRequest,
    RunAnswer, RunRequest,
};
use tanmi_workspace::error::Error;
use ureq::Agent;
use ureq::http::Response;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};

use crate::Member;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(1);
/// How long a request may take as a whole, besides the time that it asks the server to wait.
const TOTAL: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const MAX_ANSWER: u64 = 256 << 20;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached, does not answer in time, or cannot serve now. The request may have been carried out.
    #[error("{reason}")]
    Unreachable { reason: String },
    /// The server refused the request. Nothing was changed.
    #[error("{code}: {message}")]
    Refused { status: u16, code: String, message: String, error: Option<Box<Error>> },
}

impl ClientError {
    /// Returns the error of a store, as a local one would have given it.
    pub fn into_store_error(self, server: &str) -> Error {
        match self {
            ClientError::Unreachable { reason } => {
                Error::TeamUnreachable { server: server.to_owned(), reason }
            }
            ClientError::Refused { error: Some(error), .. } => *error,
            ClientError::Refused { code, message, .. } => Error::team_refused(server, &code, &message),
        }
    }
}

/// The connection to the project of a team server.
pub struct Client {
    agent: Agent,
    server: String,
    /// The address of the project, without a slash at its end.
    base: String,
    authorization: String,
}

impl Client {
    pub fn new(member: &Member) -> Result<Client, ClientError> {
        let tls = TlsConfig::builder().root_certs(root_certs(member)?).build();
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(TOTAL))
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(tls)
            .build();
        Ok(Client {
            agent: config.into(),
            server: member.server.clone(),
            base: format!("{}/team/v1/{}", member.server, member.project),
            authorization: format!("Bearer {}", member.token),
        })
    }

    pub fn server(&self) -> &str {
        &self.server
    }

    pub fn run(&self, request: &RunRequest) -> Result<RunAnswer, ClientError> {
        self.post("run", request)
    }

    pub fn run_project(&self, request: &ProjectRequest) -> Result<ProjectAnswer, ClientError> {
        self.post("run", request)
    }

    pub fn run_memory(&self, request: &MemoryRequest) -> Result<MemoryAnswer, ClientError> {
        let mut body = json!(request);
        body["stream"] = json!(tanmi_protocol::MEMORY);
        self.post("run", &body)
    }

    /// Returns the changes after these positions. If there is none, the server waits for one, up to `wait` seconds.
    pub fn feed(&self, have: &Positions, wait: u64) -> Result<FeedPage, ClientError> {
        let have: Vec<String> = have.iter().map(|(stream, seq)| format!("{stream}:{seq}")).collect();
        self.get(&format!("feed?have={}&wait={wait}", have.join(",")), Duration::from_secs(wait))
    }

    /// Returns a part of a workspace or of the memory.
    pub fn snapshot(&self, stream: &str, after: Option<&str>) -> Result<DocumentPage, ClientError> {
        let after = after.map(|after| format!("&after={after}")).unwrap_or_default();
        self.get(&format!("snapshot?stream={stream}{after}"), Duration::ZERO)
    }

    /// Renews the leases of sessions.
    pub fn beat(&self, sessions: &[String]) -> Result<Beat, ClientError> {
        self.post("beat", &json!({"sessions": sessions}))
    }

    /// Returns the answer of a request that was carried out, if it was.
    pub fn find_answer(&self, key: &str) -> Result<Option<Value>, ClientError> {
        let found: Value = self.get(&format!("request/{key}"), Duration::ZERO)?;
        Ok(found.get("answer").filter(|_| found["committed"] == true).cloned())
    }

    fn get<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Result<T, ClientError> {
        let request = self.agent.get(format!("{}/{path}", self.base));
        let request = request.config().timeout_global(Some(TOTAL + wait)).build();
        answer(request.header("authorization", &self.authorization).call())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(unreachable)?;
        let request = self.agent.post(format!("{}/{path}", self.base));
        let request = request.header("authorization", &self.authorization);
        answer(request.header("content-type", "application/json").send(&body[..]))
    }
}

/// Returns the certificates that sign those of servers: the ones that the user named, or those of the system.
fn root_certs(member: &Member) -> Result<RootCerts, ClientError> {
    let certificates: Vec<Certificate<'static>> = match &member.ca {
        // Nothing is signed on the way to a server on this machine.
        None if !member.server.starts_with("https:") => Vec::new(),
        None => {
            let native = rustls_native_certs::load_native_certs().certs;
            native.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
        }
        Some(file) => {
            let pem = tanmi_base::fs::read_optional(file).map_err(unreachable)?.unwrap_or_default();
            let items = ureq::tls::parse_pem(&pem).filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            });
            items.collect()
        }
    };
    Ok(RootCerts::from(certificates))
}

fn unreachable(error: impl std::fmt::Display) -> ClientError {
    ClientError::Unreachable { reason: error.to_string() }
}

fn answer<T: DeserializeOwned>(
    response: Result<Response<ureq::Body>, ureq::Error>,
) -> Result<T, ClientError> {
    let mut response = response.map_err(unreachable)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().map_err(unreachable)?;
    if status == 200 {
        return serde_json::from_slice(&body)
            .map_err(|error| unreachable(format!("the answer is not understood: {error}")));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let error = &body["error"];
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    match error["code"].as_str() {
        // What the server cannot do now it may do later. A proxy between also answers in its own words.
        _ if status >= 500 || status == 429 => {
            Err(unreachable(if message.is_empty() { format!("HTTP status {status}") } else { message }))
        }
        Some(code) => Err(ClientError::Refused {
            status,
            code: code.to_owned(),
            message,
            error: serde_json::from_value(error["data"].clone()).ok().map(Box::new),
        }),
        None => Err(unreachable(format!("HTTP status {status}, not from a Tanmi server"))),
    }
}
