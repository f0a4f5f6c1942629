//! The client of a team server: one blocking request at a time, with deadlines.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tanmi_protocol::{
    Beat, Document, DocumentPage, FeedPage, FeedRequest, Identity, ImportAnswer, ImportRequest, MemoryAnswer,
    MemoryRequest, Positions, ProjectAnswer, ProjectRequest, RunAnswer, RunRequest,
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
/// How long the first attempt of a command may take, so that there is time for a second one.
const FIRST_ATTEMPT: Duration = Duration::from_secs(6);
/// How long a part of a project that moves to the server may take.
const TRANSFER: Duration = Duration::from_secs(300);
/// The most positions that are sent in an address. More are sent in a body, which a server of an earlier
/// version refuses.
const MAX_IN_ADDRESS: usize = 1000;
/// The largest answer that is read.
const MAX_ANSWER: u64 = 256 << 20;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached, does not answer in time, or cannot serve now.
    #[error("{reason}")]
    Unreachable { reason: String, outcome: LostOutcome },
    /// The server refused the request. Nothing was changed.
    #[error("{code}: {message}")]
    Refused { status: u16, code: String, message: String, error: Option<Box<Error>> },
}

/// What is known about a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostOutcome {
    /// There was no connection, so nothing was changed.
    NotSent,
    /// The server did not take the request. Nothing was changed.
    NotRun,
    /// The request may have been carried out.
    Unknown,
}

impl ClientError {
    /// Returns the error of a store, as a local one would have given it.
    pub fn into_store_error(self, server: &str) -> Error {
        match self {
            ClientError::Unreachable { reason, outcome } => {
                let may_have_run = outcome == LostOutcome::Unknown;
                Error::TeamUnreachable { server: server.to_owned(), reason, may_have_run }
            }
            ClientError::Refused { error: Some(error), .. } => *error,
            ClientError::Refused { code, message, .. } => Error::team_refused(server, &code, &message),
        }
    }
}

/// A request about the people of a project, below `/api/v1/team/`.
#[derive(Clone, Debug)]
pub struct TeamCall {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The parts of the path.
    pub path: Vec<String>,
    /// The query of a GET, or the body of a POST.
    pub arguments: Map<String, Value>,
    /// The language of messages.
    pub language: &'static str,
}

/// The client of the project of a team server. It loads certificates and connects at the first request, so that a hook
/// can build one.
pub struct Client {
    member: Member,
    agent: OnceLock<Result<Agent, String>>,
}

impl Client {
    pub fn new(member: &Member) -> Client {
        Client { member: member.clone(), agent: OnceLock::new() }
    }

    fn agent(&self) -> Result<&Agent, ClientError> {
        let build = || build_agent(&self.member.server, self.member.ca.as_deref());
        let agent = self.agent.get_or_init(build).as_ref();
        agent.map_err(|reason| unreachable(reason, LostOutcome::NotSent))
    }

    fn address(&self, path: &str) -> String {
        format!("{}/team/v1/{}/{path}", self.member.server, encode(&self.member.project))
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.member.token)
    }

    pub fn server(&self) -> &str {
        &self.member.server
    }

    /// Returns who the token belongs to.
    pub fn identify(&self) -> Result<Identity, ClientError> {
        self.get("member", Duration::ZERO)
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
        let longest = Duration::from_secs(wait);
        if have.len() > MAX_IN_ADDRESS {
            let body = json!(FeedRequest { have: have.clone(), wait }).to_string();
            return self.post_once("feed", body.as_bytes(), TOTAL + longest);
        }
        let have: Vec<String> = have.iter().map(|(stream, seq)| format!("{stream}:{seq}")).collect();
        self.get(&format!("feed?have={}&wait={wait}", have.join(",")), longest)
    }

    /// Returns a part of a workspace or of the memory.
    pub fn snapshot(&self, stream: &str, after: Option<&str>) -> Result<DocumentPage, ClientError> {
        let after = after.map(|after| format!("&after={after}")).unwrap_or_default();
        self.get(&format!("snapshot?stream={stream}{after}"), Duration::ZERO)
    }

    /// Adds a part of a local project to the server.
    pub fn import(&self, part: &ImportRequest) -> Result<ImportAnswer, ClientError> {
        self.post_within("import", part, TRANSFER, TRANSFER)
    }

    /// Returns all documents of a workspace, and the number of the last change that they contain.
    pub fn fetch(&self, stream: &str) -> Result<(Vec<Document>, u64), ClientError> {
        let (mut documents, mut after, mut first) = (Vec::new(), None::<String>, None);
        loop {
            let page = self.snapshot(stream, after.as_deref())?;
            // A change between two pages is after the first one, so the feed brings it.
            first.get_or_insert(page.seq0);
            documents.extend(page.docs);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok((documents, first.unwrap_or_default().cast_unsigned())),
            }
        }
    }

    /// Renews the leases of sessions.
    pub fn beat(&self, sessions: &[String]) -> Result<Beat, ClientError> {
        self.post("beat", &json!({"sessions": sessions}))
    }

    /// Asks for a sign of life of the server itself, without a second attempt.
    pub fn probe(&self, deadline: Duration) -> Result<Beat, ClientError> {
        self.post_once("beat", br#"{"sessions":[]}"#, deadline)
    }

    /// Sends a request about the people of the project, once: not every one of them can be repeated.
    pub fn ask(&self, call: &TeamCall) -> Result<Value, ClientError> {
        let path: Vec<String> = call.path.iter().map(|part| encode(part)).collect();
        let mut address = format!(
            "{}/api/v1/team/{}?project={}",
            self.member.server,
            path.join("/"),
            encode(&self.member.project)
        );
        let (agent, authorization) = (self.agent()?, self.authorization());
        if call.method == "POST" {
            let request = agent.post(address).header("authorization", authorization);
            let request = request.header("accept-language", call.language);
            let body = json!(call.arguments).to_string();
            return answer(request.header("content-type", "application/json").send(body));
        }
        for (name, value) in &call.arguments {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            address.push_str(&format!("&{name}={}", encode(&text)));
        }
        let request = if call.method == "DELETE" { agent.delete(address) } else { agent.get(address) };
        answer(request.header("authorization", authorization).header("accept-language", call.language).call())
    }

    fn get<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Result<T, ClientError> {
        let request = self.agent()?.get(self.address(path));
        let request = request.config().timeout_global(Some(TOTAL + wait)).build();
        answer(request.header("authorization", self.authorization()).call())
    }

    /// Sends a request that can be repeated: one with a key, or one that only renews leases. If its answer is
    /// lost, it is sent once more within the deadline.
    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        self.post_within(path, body, FIRST_ATTEMPT, TOTAL)
    }

    fn post_within<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        first_attempt: Duration,
        total: Duration,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| unreachable(error, LostOutcome::NotSent))?;
        let deadline = Instant::now() + total;
        let lost = match self.post_once(path, &body, first_attempt) {
            Err(ClientError::Unreachable { outcome: LostOutcome::Unknown, .. }) => deadline - Instant::now(),
            other => return other,
        };
        match self.post_once(path, &body, lost) {
            // The first attempt may have reached the server.
            Err(ClientError::Unreachable { reason, .. }) => Err(unreachable(reason, LostOutcome::Unknown)),
            other => other,
        }
    }

    fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &[u8],
        timeout: Duration,
    ) -> Result<T, ClientError> {
        let request = self.agent()?.post(self.address(path));
        let request = request.config().timeout_global(Some(timeout)).build();
        let request = request.header("authorization", self.authorization());
        answer(request.header("content-type", "application/json").send(body))
    }
}

/// Returns an agent for the requests to a server. Each has a token, which neither a redirect nor a proxy may get.
pub(crate) fn build_agent(server: &str, ca: Option<&Path>) -> Result<Agent, String> {
    let config = Agent::config_builder()
        .timeout_connect(Some(CONNECT))
        .timeout_global(Some(TOTAL))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .tls_config(TlsConfig::builder().root_certs(root_certs(server, ca)?).build());
    Ok(config.build().into())
}

/// Returns the certificates that sign those of servers: the ones that the user named, or those of the system.
fn root_certs(server: &str, ca: Option<&Path>) -> Result<RootCerts, String> {
    let certificates: Vec<Certificate<'static>> = match ca {
        // Nothing is signed on the way to a server on this machine.
        None if !server.starts_with("https:") => Vec::new(),
        None => {
            let native = rustls_native_certs::load_native_certs().certs;
            native.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
        }
        Some(file) => {
            let place = file.display();
            let pem = tanmi_base::fs::read_optional(file).map_err(|error| format!("{place}: {error}"))?;
            let pem = pem.ok_or_else(|| format!("{place} does not exist"))?;
            let items = ureq::tls::parse_pem(&pem).filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            });
            let found: Vec<_> = items.collect();
            if found.is_empty() {
                return Err(format!("{place} contains no certificate"));
            }
            found
        }
    };
    Ok(RootCerts::from(certificates))
}

/// Returns a text as a part of an address.
fn encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let part = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

fn unreachable(reason: impl std::fmt::Display, outcome: LostOutcome) -> ClientError {
    ClientError::Unreachable { reason: reason.to_string(), outcome }
}

/// Returns whether the certificate of the server was refused.
fn is_untrusted(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Rustls(_) => true,
        ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// Returns whether a request that failed in this way was sent.
fn lost_outcome(error: &ureq::Error) -> LostOutcome {
    use std::io::ErrorKind as Kind;
    match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::BadUri(_)
        | ureq::Error::Tls(_)
        | ureq::Error::Pem(_)
        | ureq::Error::Rustls(_)
        | ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => LostOutcome::NotSent,
        ureq::Error::Io(error) => match error.kind() {
            Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::AddrNotAvailable => LostOutcome::NotSent,
            // A certificate that is refused arrives as such an error.
            Kind::InvalidData => LostOutcome::NotSent,
            _ => LostOutcome::Unknown,
        },
        _ => LostOutcome::Unknown,
    }
}

fn answer<T: DeserializeOwned>(
    response: Result<Response<ureq::Body>, ureq::Error>,
) -> Result<T, ClientError> {
    let lost = |error: ureq::Error| {
        let outcome = lost_outcome(&error);
        match is_untrusted(&error) {
            true => unreachable(
                format!("{error}; join again with --ca FILE, the certificates that sign that of the server"),
                outcome,
            ),
            false => unreachable(error, outcome),
        }
    };
    let mut response = response.map_err(lost)?;
    let status = response.status().as_u16();
    let unknown = |reason: String| unreachable(reason, LostOutcome::Unknown);
    let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
    let body = body.map_err(|error| unknown(error.to_string()))?;
    if status == 200 {
        return serde_json::from_slice(&body)
            .map_err(|error| unknown(format!("the answer is not understood: {error}")));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let error = &body["error"];
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let reason = if message.is_empty() { format!("HTTP status {status}") } else { message.clone() };
    match error["code"].as_str() {
        // What the server cannot do now it may do later. A proxy between also answers in its own words.
        _ if status >= 500 => Err(unknown(reason)),
        _ if status == 429 => Err(unreachable(reason, LostOutcome::NotRun)),
        Some(code) => Err(ClientError::Refused {
            status,
            code: code.to_owned(),
            message,
            error: serde_json::from_value(error["data"].clone()).ok().map(Box::new),
        }),
        None => {
            Err(unreachable(format!("HTTP status {status}, not from a Tanmi server"), LostOutcome::NotRun))
        }
    }
}
