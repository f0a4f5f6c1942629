//! What the machines of a team use, below `/team/v1/{project}`: run a command, read the feed, fetch a workspace, stay
//! alive, and learn the outcome of a request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::future::select;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tanmi_protocol::{
    Beat, FeedPage, FeedRequest, Identity, MEMORY, MemoryRequest, PERSON_MARK, Positions, ProjectCommand,
    ProjectRequest, RunRequest,
};
use tanmi_workspace::command::Command;

use super::access::Request;
use super::heads::{Feed, SharedPage};
use super::refusal::Refusal;
use super::{TeamState, block};
use crate::http::responses;

/// The longest time that a reader of the feed may wait, in seconds.
const MAX_WAIT: u64 = 25;
/// The most sessions in one sign of life.
const MAX_SESSIONS: usize = 1000;
/// The most documents in one page of a workspace.
const MAX_DOCUMENTS: usize = 500;
/// The longest id of a session, and the longest name of a machine.
const MAX_NAME: usize = 200;

pub(super) type Body = Result<Bytes, BytesRejection>;

pub(super) fn answer(request: &Request, outcome: Result<Value, Refusal>) -> Response {
    match outcome {
        Ok(value) => responses::json(StatusCode::OK, &value),
        Err(refusal) => refusal.respond(request.lang),
    }
}

/// Runs a command once, however often it is sent.
pub async fn run(State(state): State<Arc<TeamState>>, request: Request, body: Body) -> Response {
    let outcome = run_command(&state, &request, body).await;
    answer(&request, outcome)
}

async fn run_command(state: &Arc<TeamState>, request: &Request, body: Body) -> Result<Value, Refusal> {
    let body: Value = parse(body)?;
    let word = body["command"]["command"].as_str().unwrap_or_default().to_owned();
    check_names(&body)?;
    let (store, caller) = (state.store(&request.caller.project), request.caller.clone());
    let answer = if body["stream"] == MEMORY {
        let command: MemoryRequest = read(body)?;
        let memory = state.memory(&request.caller);
        block(move || Ok(json!(memory.run_request(&caller, &command)?))).await?
    } else if ProjectCommand::WORDS.contains(&word.as_str()) {
        let command: ProjectRequest = read(body)?;
        block(move || Ok(json!(store.run_project_request(&caller, &command)?))).await?
    } else if Command::WORDS.contains(&word.as_str()) {
        let command: RunRequest = read(body)?;
        block(move || Ok(json!(store.run_request(&caller, &command)?))).await?
    } else {
        return Err(Refusal::UnknownCommand { word });
    };
    state.heads.notify(&request.caller.project);
    Ok(answer)
}

/// Returns the changes after the positions of a reader. Waits for one if there is none.
pub async fn feed(
    State(state): State<Arc<TeamState>>,
    request: Request,
    RawQuery(query): RawQuery,
) -> Response {
    let read = async {
        let query = parse_query(query.as_deref().unwrap_or_default(), &["have", "wait"])?;
        let have = Have::parse(query.get("have").map_or("", String::as_str))?;
        read_feed(&state, &request, have, number(&query, "wait", 0)?).await
    };
    let page = read.await;
    answer_page(&request, page)
}

/// Same as [`feed`], with the positions in the body: an address holds only some thousands.
pub async fn feed_after(State(state): State<Arc<TeamState>>, request: Request, body: Body) -> Response {
    let read = async {
        let FeedRequest { have, wait } = read(parse(body)?)?;
        read_feed(&state, &request, Have::of(have)?, wait).await
    };
    let page = read.await;
    answer_page(&request, page)
}

fn answer_page(request: &Request, page: Result<Bytes, Refusal>) -> Response {
    match page {
        Ok(body) => {
            let mut response = Response::new(axum::body::Body::from(body));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        Err(refusal) => refusal.respond(request.lang),
    }
}

async fn read_feed(
    state: &Arc<TeamState>,
    request: &Request,
    have: Have,
    wait: u64,
) -> Result<Bytes, Refusal> {
    let started = Instant::now();
    let limit = started + Duration::from_secs(wait.min(MAX_WAIT));
    let feed = state.heads.feed(&request.caller.project);
    let mut closing = state.heads.closing();
    // Subscribed before the first read, so that no change falls between the two.
    let mut wake = feed.subscribe();
    loop {
        wake.mark_unchanged();
        let (body, is_news) = read_page(state, request, &feed, &have).await?;
        let is_over = is_news || Instant::now() >= limit || *closing.borrow();
        if is_over {
            if started.elapsed() > Duration::from_secs(1) {
                request.check_again(state).await?;
            }
            return Ok(body);
        }
        let left = limit.saturating_duration_since(Instant::now());
        let (woken, closed) = (std::pin::pin!(wake.changed()), std::pin::pin!(closing.changed()));
        let _ = tokio::time::timeout(left, select(woken, closed)).await;
    }
}

/// Returns a page of the feed as JSON, and whether it has news for the reader. Readers at the same positions
/// that wait for the same read of the database share it.
async fn read_page(
    state: &Arc<TeamState>,
    request: &Request,
    feed: &Feed,
    have: &Have,
) -> Result<(Bytes, bool), Refusal> {
    let asked_at = Instant::now();
    let mut shared = feed.page.lock().await;
    if let Some(page) = shared.as_ref().filter(|page| page.read_at >= asked_at && page.positions == have.text)
    {
        return Ok((page.body.clone(), page.has_news));
    }
    let read_at = Instant::now();
    let (store, positions) = (state.store(&request.caller.project), have.followed.clone());
    let page = block(move || Ok(store.changes_after(&positions)?)).await?;
    let has_news = have.has_news(&page);
    let body = Bytes::from(serde_json::to_vec(&page).map_err(|_| Refusal::Internal)?);
    *shared = Some(SharedPage { read_at, positions: have.text.clone(), body: body.clone(), has_news });
    Ok((body, has_news))
}

/// What a reader of the feed has.
struct Have {
    text: String,
    followed: Positions,
    /// Streams that the reader knows and does not follow.
    known: Vec<String>,
}

impl Have {
    /// Parses `ws-a:12,memory:77,ws-b:-`.
    fn parse(text: &str) -> Result<Have, Refusal> {
        let mut have = Have { text: text.to_owned(), followed: Positions::new(), known: Vec::new() };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (stream, position) = part.rsplit_once(':').ok_or_else(|| bad_position(part))?;
            match position {
                "-" => have.known.push(stream.to_owned()),
                number => {
                    let number = number.parse::<u32>().map_err(|_| bad_position(part))?;
                    have.followed.insert(stream.to_owned(), i64::from(number));
                }
            }
        }
        Ok(have)
    }

    fn of(followed: Positions) -> Result<Have, Refusal> {
        let parts: Vec<String> =
            followed.iter().map(|(stream, position)| format!("{stream}:{position}")).collect();
        let is_bad = |(stream, position): &(&String, &i64)| {
            stream.contains(|c: char| c == ',' || c.is_control()) || u32::try_from(**position).is_err()
        };
        if let Some((stream, position)) = followed.iter().find(is_bad) {
            return Err(bad_position(&format!("{stream}:{position}")));
        }
        Ok(Have { text: parts.join(","), followed, known: Vec::new() })
    }

    fn has_news(&self, page: &FeedPage) -> bool {
        let is_new = |stream: &String| !self.followed.contains_key(stream) && !self.known.contains(stream);
        !page.changes.is_empty() || !page.gaps.is_empty() || page.heads.keys().any(is_new)
    }
}

fn bad_position(part: &str) -> Refusal {
    let part = tanmi_base::text::fit(part, 60);
    Refusal::invalid("have", format!("{part:?} is not STREAM:NUMBER or STREAM:-"))
}

/// Returns a part of a workspace.
pub async fn snapshot(
    State(state): State<Arc<TeamState>>,
    request: Request,
    RawQuery(query): RawQuery,
) -> Response {
    let read = async {
        let query = parse_query(query.as_deref().unwrap_or_default(), &["stream", "after", "limit"])?;
        let stream = query.get("stream").cloned();
        let stream = stream.ok_or_else(|| Refusal::invalid("stream", String::from("is required")))?;
        let limit = number(&query, "limit", MAX_DOCUMENTS as u64)?.clamp(1, MAX_DOCUMENTS as u64) as usize;
        let (store, after) = (state.store(&request.caller.project), query.get("after").cloned());
        block(move || Ok(json!(store.documents(&stream, after.as_deref(), limit)?))).await
    };
    let outcome = read.await;
    answer(&request, outcome)
}

#[derive(Deserialize)]
struct BeatBody {
    sessions: Vec<String>,
}

/// Renews the leases of sessions. Tells who works on what, and what a machine should know of the server.
pub async fn beat(State(state): State<Arc<TeamState>>, request: Request, body: Body) -> Response {
    let renew = async {
        let BeatBody { sessions } = read(parse(body)?)?;
        if sessions.len() > MAX_SESSIONS {
            return Err(Refusal::invalid("sessions", format!("at most {MAX_SESSIONS}")));
        }
        let (store, caller) = (state.store(&request.caller.project), request.caller.clone());
        block(move || {
            let beat = store.beat(&caller, &sessions)?;
            let program = env!("CARGO_PKG_VERSION").to_owned();
            Ok(json!(Beat { token_expires_at: store.token_expires_at(&caller)?, program, ..beat }))
        })
        .await
    };
    let outcome = renew.await;
    answer(&request, outcome)
}

/// Returns who the token of a request belongs to.
pub async fn member(request: Request) -> Response {
    let caller = &request.caller;
    let identity = Identity { person: caller.name.clone(), role: caller.role.as_str().to_owned() };
    answer(&request, Ok(json!(identity)))
}

/// Returns the answer of a request that was carried out.
pub async fn request(
    State(state): State<Arc<TeamState>>,
    request: Request,
    Path(names): Path<BTreeMap<String, String>>,
) -> Response {
    let (store, key) = (state.store(&request.caller.project), names.get("key").cloned().unwrap_or_default());
    let outcome = block(move || {
        Ok(match store.find_answer(&key)? {
            Some(answer) => json!({"committed": true, "answer": answer}),
            None => json!({"committed": false}),
        })
    });
    let outcome = outcome.await;
    answer(&request, outcome)
}

pub(super) fn parse(body: Body) -> Result<Value, Refusal> {
    let bytes = body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::TooLarge,
        _ => Refusal::invalid("body", error.body_text()),
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::invalid("body", format!("malformed JSON: {error}")))
}

pub(super) fn read<T: DeserializeOwned>(body: Value) -> Result<T, Refusal> {
    serde_json::from_value(body).map_err(|error| Refusal::invalid("body", error.to_string()))
}

/// Checks the key, the session and the machine of a request, which are stored as they are.
fn check_names(body: &Value) -> Result<(), Refusal> {
    let key = body["key"].as_str().unwrap_or_default();
    if !(8..=100).contains(&key.len()) || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        let rule = "8 to 100 letters, digits and hyphens, made new for each request";
        return Err(Refusal::invalid("key", String::from(rule)));
    }
    for name in ["session", "machine"] {
        let Some(text) = body[name].as_str() else { continue };
        if text.len() > MAX_NAME || text.chars().any(char::is_control) {
            return Err(Refusal::invalid(
                name,
                format!("at most {MAX_NAME} bytes without control characters"),
            ));
        }
    }
    match body["session"].as_str() {
        Some(session) if session.is_empty() || session.starts_with(PERSON_MARK) => {
            Err(Refusal::invalid("session", format!("is empty or begins with {PERSON_MARK}")))
        }
        _ => Ok(()),
    }
}

/// Parses the parameters of a query. Unknown and repeated ones are refused.
pub(super) fn parse_query(
    query: &str,
    names: &[&'static str],
) -> Result<BTreeMap<&'static str, String>, Refusal> {
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(known) = names.iter().find(|known| **known == name) else {
            let name = tanmi_base::text::fit(name, 40);
            return Err(Refusal::invalid("query", format!("{name:?} is not one of {}", names.join(", "))));
        };
        let value = percent_encoding::percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| Refusal::invalid(known, String::from("is not UTF-8")))?;
        if found.insert(*known, value.into_owned()).is_some() {
            return Err(Refusal::invalid(known, String::from("was given more than once")));
        }
    }
    Ok(found)
}

pub(super) fn number(
    query: &BTreeMap<&'static str, String>,
    name: &'static str,
    default: u64,
) -> Result<u64, Refusal> {
    let Some(text) = query.get(name) else { return Ok(default) };
    text.parse().map_err(|_| Refusal::invalid(name, String::from("must be a whole number")))
}
