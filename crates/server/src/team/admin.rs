//! The administration of a project over HTTP, below `/api/v1/team`: roles, tokens and the audit for its
//! admins, and for each of its people who they are, who holds which node, and who did what.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tanmi_base::clock::DAY;
use tanmi_base::{Millis, clock};
use tanmi_pg::{
    AdminError, Administrator, AuditEntry, AuditFilter, Contribution, ContributionFilter, Moment, NewToken,
    People, PersonEntry, Presence, ProjectEntry, Role, TeamFilter, TokenEntry, TokenFilter, is_valid_name,
};

use super::access::Request;
use super::protocol::{Body, answer, number, parse, parse_query, read};
use super::refusal::Refusal;
use super::{TeamState, block};

/// The most entries of a list, and the number without `limit`.
const MAX_ENTRIES: u64 = 1000;
const DEFAULT_ENTRIES: u64 = 100;
/// How long a rotated token stays valid if the request does not say.
const OVERLAP: Millis = DAY;
/// The time of which contributions are listed if the request does not say.
const LATELY: Millis = 7 * DAY;

type Shared = State<Arc<TeamState>>;
type Names = Path<BTreeMap<String, String>>;
type Query = BTreeMap<&'static str, String>;

/// Runs work on the people of the project. [`super::access`] checked the role.
async fn administer<T: Send + 'static>(
    state: &Arc<TeamState>,
    request: &Request,
    work: impl Fn(&mut People<'_>) -> Result<T, AdminError> + Send + 'static,
) -> Result<T, Refusal> {
    let admin = Administrator::new(&request.caller, request.credential(), request.address());
    let (pool, project) = (Arc::clone(&state.pool), request.caller.project.clone());
    block(move || Ok(pool.administer(&project, &admin, work)?)).await
}

/// Returns a parameter of the path.
fn named(names: &Names, key: &str) -> String {
    names.get(key).cloned().unwrap_or_default()
}

/// Parses a query. Every one may name the project.
fn query_of(query: Option<&str>, names: &[&'static str]) -> Result<Query, Refusal> {
    let names: Vec<&'static str> = names.iter().copied().chain(["limit", "project"]).collect();
    parse_query(query.unwrap_or_default(), &names)
}

fn limit_of(query: &Query) -> Result<usize, Refusal> {
    Ok(number(query, "limit", DEFAULT_ENTRIES)?.clamp(1, MAX_ENTRIES) as usize)
}

/// Returns up to `limit` of the entries, of which one more was read, and whether there are more.
fn list<T>(name: &str, mut entries: Vec<T>, limit: usize, to_json: fn(&T) -> Value) -> Value {
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    json!({name: entries.iter().map(to_json).collect::<Vec<_>>(), "hasMore": has_more})
}

fn role_of(word: &str) -> Result<Role, Refusal> {
    Role::from_word(word)
        .ok_or_else(|| Refusal::invalid("role", format!("is not one of {}", Role::WORDS.join(", "))))
}

fn check_name(field: &'static str, text: &str) -> Result<(), Refusal> {
    let rule = || Refusal::invalid(field, String::from("must be one line of 1 to 100 bytes without / and @"));
    is_valid_name(text).then_some(()).ok_or_else(rule)
}

fn duration(field: &'static str, text: &str, least: Millis) -> Result<Millis, Refusal> {
    let time = clock::parse_duration(text).filter(|time| *time >= least);
    time.ok_or_else(|| Refusal::invalid(field, String::from("must be a time such as 90d, 12h or 30m")))
}

pub async fn list_people(State(state): Shared, request: Request, RawQuery(query): RawQuery) -> Response {
    let outcome = async {
        let query = query_of(query.as_deref(), &["role"])?;
        let limit = limit_of(&query)?;
        let filter = TeamFilter {
            project: Some(request.caller.project.clone()),
            role: query.get("role").cloned(),
            limit: limit + 1,
            ..TeamFilter::default()
        };
        let found = administer(&state, &request, move |people| people.people(&filter)).await?;
        Ok(list("people", found, limit, PersonEntry::to_json))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

#[derive(Deserialize)]
struct PersonBody {
    name: String,
    role: String,
}

/// Makes a person a member of the project, and adds the person to the team if the name is new.
pub async fn add_person(State(state): Shared, request: Request, body: Body) -> Response {
    let outcome = async {
        let PersonBody { name, role } = read(parse(body)?)?;
        check_name("name", &name)?;
        let wanted = role_of(&role)?;
        let added = {
            let name = name.clone();
            administer(&state, &request, move |people| {
                let added = people.add_person(None, &name)?;
                people.change_member(&name, Some(wanted))?;
                Ok(added)
            })
        };
        Ok(json!({"name": name, "role": role, "created": added.await?.is_new}))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

pub async fn disable_person(State(state): Shared, request: Request, names: Names) -> Response {
    let name = named(&names, "name");
    let outcome = async {
        let given = name.clone();
        let changed =
            administer(&state, &request, move |people| people.set_disabled(None, &given, true)).await?;
        Ok(json!({"name": name, "disabled": true, "changed": changed}))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

#[derive(Deserialize)]
struct RoleBody {
    role: String,
}

/// Sets the role of a person in the project; `none` removes the person from it.
pub async fn set_member(State(state): Shared, request: Request, names: Names, body: Body) -> Response {
    let name = named(&names, "name");
    let outcome = async {
        let RoleBody { role } = read(parse(body)?)?;
        let wanted = if role == "none" { None } else { Some(role_of(&role)?) };
        let given = name.clone();
        administer(&state, &request, move |people| people.change_member(&given, wanted)).await?;
        Ok(json!({"name": name, "role": role}))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

pub async fn list_tokens(State(state): Shared, request: Request, RawQuery(query): RawQuery) -> Response {
    let outcome = async {
        let query = query_of(query.as_deref(), &["person", "valid"])?;
        let limit = limit_of(&query)?;
        let filter = TokenFilter {
            project: Some(request.caller.project.clone()),
            person: query.get("person").cloned(),
            is_valid: query.get("valid").is_some_and(|word| word == "true"),
            limit: limit + 1,
        };
        let found = administer(&state, &request, move |people| people.tokens(&filter)).await?;
        Ok(list("tokens", found, limit, TokenEntry::to_json))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

#[derive(Deserialize)]
struct TokenBody {
    person: String,
    role: String,
    #[serde(default)]
    name: String,
    expires: Option<String>,
}

/// Creates a token that is valid only in this project.
pub async fn create_token(State(state): Shared, request: Request, body: Body) -> Response {
    let outcome = async {
        let TokenBody { person, role, name, expires } = read(parse(body)?)?;
        if !name.is_empty() {
            check_name("name", &name)?;
        }
        let role = role_of(&role)?;
        let lifetime = expires.map(|text| duration("expires", &text, 1)).transpose()?;
        let issued = administer(&state, &request, move |people| {
            people.issue_token(&NewToken { person: &person, name: &name, role, lifetime, is_limited: true })
        });
        Ok(issued.await?.to_json())
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

pub async fn revoke_token(State(state): Shared, request: Request, names: Names) -> Response {
    let id = named(&names, "id");
    let outcome = async {
        let given = id.clone();
        let (_, changed) = administer(&state, &request, move |people| people.revoke_token(&given)).await?;
        Ok(json!({"id": id, "revoked": true, "changed": changed}))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

#[derive(Default, Deserialize)]
struct RotateBody {
    overlap: Option<String>,
}

pub async fn rotate_token(State(state): Shared, request: Request, names: Names, body: Body) -> Response {
    let id = named(&names, "id");
    let outcome = async {
        let is_empty = body.as_ref().is_ok_and(|bytes| bytes.is_empty());
        let RotateBody { overlap } = if is_empty { RotateBody::default() } else { read(parse(body)?)? };
        let overlap = overlap.map_or(Ok(OVERLAP), |text| duration("overlap", &text, 0))?;
        let issued = administer(&state, &request, move |people| people.rotate_token(&id, overlap));
        Ok(issued.await?.to_json())
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

pub async fn list_audit(State(state): Shared, request: Request, RawQuery(query): RawQuery) -> Response {
    let outcome = async {
        let query = query_of(query.as_deref(), &["person", "what", "before"])?;
        let limit = limit_of(&query)?;
        let filter = AuditFilter {
            project: Some(request.caller.project.clone()),
            person: query.get("person").cloned(),
            what: query.get("what").cloned(),
            before: query.get("before").cloned(),
            limit: limit + 1,
            since: None,
        };
        let found = administer(&state, &request, move |people| people.audit(&filter)).await?;
        Ok(list("entries", found, limit, AuditEntry::to_json))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

/// Returns the projects in which the token is valid.
pub async fn list_projects(State(state): Shared, request: Request, RawQuery(query): RawQuery) -> Response {
    let outcome = async {
        let limit = limit_of(&query_of(query.as_deref(), &[])?)?;
        let found = administer(&state, &request, move |people| people.projects(None, limit + 1)).await?;
        Ok(list("projects", found, limit, ProjectEntry::to_json))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

/// Returns who holds which node.
pub async fn list_presence(State(state): Shared, request: Request, RawQuery(query): RawQuery) -> Response {
    let outcome = async {
        let query = query_of(query.as_deref(), &["person"])?;
        let limit = limit_of(&query)?;
        let (store, person) = (state.store(&request.caller.project), query.get("person").cloned());
        let found = block(move || Ok(store.presence(person.as_deref(), limit + 1)?)).await?;
        Ok(list("presence", found, limit, Presence::to_json))
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}

/// Parses a day or a time ago. `until` a day means the end of that day.
fn moment(query: &Query, name: &'static str, default: Millis) -> Result<Moment, Refusal> {
    let Some(text) = query.get(name) else { return Ok(Moment::Ago(default)) };
    let day = Some(text).filter(|text| clock::is_day(text));
    let day = day.and_then(|day| clock::parse_utc_stamp(&format!("{day} 00:00:00")));
    let of_day = |at: Millis| Moment::At(if name == "until" { at + DAY - 1 } else { at });
    let found = day.map(of_day).or_else(|| clock::parse_duration(text).map(Moment::Ago));
    let rule = || {
        Refusal::invalid(
            name,
            String::from("must be a day such as 2026-01-31 (UTC), or a time ago such as 7d"),
        )
    };
    found.ok_or_else(rule)
}

/// Returns who did what in a time: the numbers of each person, and the entries.
pub async fn list_contributions(
    State(state): Shared,
    request: Request,
    RawQuery(query): RawQuery,
) -> Response {
    let outcome = async {
        let query = query_of(query.as_deref(), &["person", "kind", "since", "until", "before"])?;
        let limit = limit_of(&query)?;
        let kind = query.get("kind").cloned();
        if kind.as_ref().is_some_and(|kind| !Contribution::KINDS.contains(&kind.as_str())) {
            let known = Contribution::KINDS.join(", ");
            return Err(Refusal::invalid("kind", format!("is not one of {known}")));
        }
        let filter = ContributionFilter {
            since: moment(&query, "since", LATELY)?,
            until: moment(&query, "until", 0)?,
            person: query.get("person").cloned(),
            kind,
            before: query.get("before").cloned(),
            limit: limit + 1,
        };
        let store = state.store(&request.caller.project);
        let found = block(move || Ok(store.contributions(&filter)?)).await?;
        let mut answer = list("entries", found.entries, limit, Contribution::to_json);
        answer["since"] = json!(found.since);
        answer["until"] = json!(found.until);
        answer["people"] =
            found.counts.iter().map(|(name, counts)| json!({"name": name, "counts": counts})).collect();
        Ok(answer)
    };
    let outcome = outcome.await;
    answer(&request, outcome)
}
