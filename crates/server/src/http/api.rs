//! The routes of the API: collects the arguments of a request from its path, query and body, checks them against the
//! table, and runs the use case on a blocking thread.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use tanmi_app::masking::Masking;
use tanmi_base::{Interface, Lang};

use super::feed::MAX_SUBSCRIBERS;
use super::routes::{self, Route, RouteAction};
use super::{ServerState, openapi, page_api, responses};
use crate::tools::{self, CallSpec, ParamKind, ToolRequest};

pub fn router(state: &Arc<ServerState>) -> Router {
    router_of(routes::all()).layer(Extension(Arc::clone(state)))
}

/// Returns the routes of an API. Each request must carry the state of its server as an extension.
pub fn router_of(routes: impl IntoIterator<Item = Route>) -> Router {
    routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, handler(Arc::new(route))))
}

/// The parts of a request, before they are checked.
struct RawRequest {
    path: Result<Path<Vec<(String, String)>>, PathRejection>,
    query: Option<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
}

fn handler(route: Arc<Route>) -> MethodRouter {
    let filter = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::GET);
    on(
        filter,
        move |Extension(state): Extension<Arc<ServerState>>,
              path: Result<Path<Vec<(String, String)>>, PathRejection>,
              RawQuery(query): RawQuery,
              headers: HeaderMap,
              body: Result<Bytes, BytesRejection>| {
            let route = Arc::clone(&route);
            async move { respond(route, state, RawRequest { path, query, headers, body }).await }
        },
    )
}

async fn respond(route: Arc<Route>, state: Arc<ServerState>, request: RawRequest) -> Response {
    match route.action {
        RouteAction::Changes => return changes(&state, &request.headers),
        RouteAction::Describe => return responses::json(StatusCode::OK, &openapi::describe()),
        RouteAction::Ticket if !state.guard.has_token(&request.headers) => {
            let message = "the token is required to create a link to the page";
            return responses::failure(StatusCode::FORBIDDEN, "TOKEN_REQUIRED", message);
        }
        RouteAction::Tool(_) | RouteAction::PageApi(..) | RouteAction::Ticket => {}
    }
    let work = tokio::task::spawn_blocking(move || run_use_case(&route, &state, request));
    match work.await {
        Ok(Ok((status, value))) => responses::json(status, &value),
        Ok(Err(error)) => responses::error(&error),
        Err(error) => responses::error(&error_json("INTERNAL", error.to_string())),
    }
}

/// Runs the use case of a route. An error is JSON with its code.
fn run_use_case(
    route: &Route,
    state: &ServerState,
    request: RawRequest,
) -> Result<(StatusCode, Value), Value> {
    let no_use_case = || error_json("INTERNAL", "the route has no operation");
    let spec = route.spec().ok_or_else(no_use_case)?;
    let requested = accepted_language(&request.headers);
    let expected_versions = expected_versions(route, &request.headers)?;
    let mut arguments = body_arguments(route, &request)?;
    let options = add_query_arguments(spec, route, request.query.as_deref(), &mut arguments)?;
    let Path(path) = request.path.map_err(|error| error_json("INVALID_ARGUMENT", error.body_text()))?;
    // The path of the whole router can have further parameters, before those of the route.
    for (name, value) in path.into_iter().filter(|(name, _)| route.in_path().any(|own| own == name)) {
        if name == "workspaceId" {
            state.mark_viewed(&value);
        }
        if arguments.insert(name.clone(), json!(value)).is_some_and(|other| other != json!(value)) {
            return Err(error_json("INVALID_ARGUMENT", format!("{name} differs from its value in the path")));
        }
    }
    let Some(app) = state.app_of(options.project.as_deref()) else {
        let zh = "未知的项目；GET /api/v1/projects 列出已知的项目";
        let en = "unknown project; GET /api/v1/projects lists the known ones";
        let lang = requested.unwrap_or_else(|| state.own_app().lang());
        return Err(error_json("PROJECT_NOT_FOUND", lang.pick(zh, en)));
    };
    let app = requested.map_or(app.clone(), |lang| Arc::new(app.for_person(lang)));
    let app = options.masking.map_or(app.clone(), |masking| Arc::new(app.with_masking(masking)));
    // A request belongs to a session only if its arguments name one.
    let tool_request = ToolRequest {
        app: &app,
        spec,
        arguments: &arguments,
        meta: None,
        expected_versions,
        interface: Interface::Page,
        // Of the tools, only those that read are for agents here; the page edits the results of the others.
        is_for_agent: spec.is_read_only && matches!(route.action, RouteAction::Tool(_)),
    };
    let value = match route.action {
        RouteAction::PageApi(_, work) => tools::perform(&tool_request, |call| work(call, state)),
        RouteAction::Ticket => tools::perform(&tool_request, |call| page_api::ticket(call, state)),
        RouteAction::Tool(name) => {
            tools::perform(&tool_request, tools::find(name).ok_or_else(no_use_case)?.handler)
        }
        RouteAction::Changes | RouteAction::Describe => Err(no_use_case()),
    };
    let mut value = value?;
    if state.shown_project.is_some() {
        state.name_project(&mut value);
    }
    Ok((StatusCode::from_u16(route.status).unwrap_or(StatusCode::OK), value))
}

fn error_json(code: &str, message: impl Into<String>) -> Value {
    json!({"code": code, "message": message.into()})
}

/// Returns the supported language that `Accept-Language` prefers. `None` if it names none; then the setting `language`
/// of the user counts. The page sends the language that its user chose there.
pub fn accepted_language(headers: &HeaderMap) -> Option<Lang> {
    let header = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?;
    let mut accepted: Vec<(f32, Lang)> = header.split(',').filter_map(accepted_range).collect();
    // Stable: of equal weights, the first one in the header.
    accepted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    accepted.first().map(|(_, lang)| *lang)
}

/// Parses one entry of `Accept-Language`, for example `zh-CN;q=0.9`. `None` for other languages and for weight 0.
fn accepted_range(entry: &str) -> Option<(f32, Lang)> {
    let (range, weight) = entry.split_once(';').unwrap_or((entry, "q=1"));
    let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok())?;
    let primary = range.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
    Lang::from_word(&primary).filter(|_| weight > 0.0).map(|lang| (weight, lang))
}

/// Returns the versions in `If-Match`: one tag or several. `*` matches any version, so `None` is returned for it.
fn expected_versions(route: &Route, headers: &HeaderMap) -> Result<Option<Vec<String>>, Value> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let tag = value.to_str().unwrap_or_default().trim();
    if tag == "*" {
        return Ok(None);
    }
    if !route.takes_version() {
        return Err(error_json(
            "INVALID_ARGUMENT",
            "If-Match is only supported for changes of a workspace or a node",
        ));
    }
    Ok(Some(tag.split(',').map(|tag| tag.trim().trim_matches('"').to_owned()).collect()))
}

fn body_arguments(route: &Route, request: &RawRequest) -> Result<Map<String, Value>, Value> {
    let bytes = match &request.body {
        Ok(bytes) => bytes,
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Err(error_json("TOO_LARGE", responses::too_large_message()));
        }
        Err(error) => return Err(error_json("INVALID_ARGUMENT", error.body_text())),
    };
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if route.method == Method::GET {
        return Err(error_json(
            "INVALID_ARGUMENT",
            "GET takes its parameters from the query, not from the request body",
        ));
    }
    // Also a defence: a page of another origin cannot send this type without a preflight request.
    let kind =
        request.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(error_json(
            "NOT_JSON",
            "the request body must be JSON; send Content-Type: application/json",
        ));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(error_json("INVALID_ARGUMENT", "the request body must be a JSON object")),
        Err(error) => {
            Err(error_json("INVALID_ARGUMENT", format!("malformed JSON in the request body: {error}")))
        }
    }
}

/// Parameters of the query that are not arguments of the use case.
#[derive(Default)]
struct RequestOptions {
    project: Option<String>,
    masking: Option<Masking>,
}

/// Adds the parameters of the query to `arguments`, parsed as the table says. Returns those that are not arguments of
/// the use case.
fn add_query_arguments(
    spec: &CallSpec,
    route: &Route,
    raw: Option<&str>,
    arguments: &mut Map<String, Value>,
) -> Result<RequestOptions, Value> {
    let mut options = RequestOptions::default();
    for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (percent_decode(name), percent_decode(value)) else {
            return Err(error_json("INVALID_ARGUMENT", "the query is not valid UTF-8"));
        };
        if name == "project" && route.is_per_project() {
            options.project = Some(value);
            continue;
        }
        if name == "secrets" && route.writes_texts() {
            options.masking = Some(parse_masking(&value)?);
            continue;
        }
        let kind = spec.params.iter().find(|param| param.name == name).map(|param| param.kind);
        let value = parse_value(kind, &name, value)?;
        match (arguments.get_mut(&name), value) {
            // A list may be given as a repeated parameter.
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (Some(_), _) => {
                return Err(error_json("INVALID_ARGUMENT", format!("{name} was given more than once")));
            }
            (None, value) => {
                arguments.insert(name, value);
            }
        }
    }
    Ok(options)
}

fn parse_masking(word: &str) -> Result<Masking, Value> {
    match word {
        "keep" => Ok(Masking::Warn),
        "mask" => Ok(Masking::Apply),
        "ask" => Ok(Masking::Ask),
        _ => Err(error_json("INVALID_ARGUMENT", "secrets must be keep, mask or ask")),
    }
}

/// Parses a value of the query as a parameter of this kind.
fn parse_value(kind: Option<ParamKind>, name: &str, value: String) -> Result<Value, Value> {
    let bad = |expected: &str| error_json("INVALID_ARGUMENT", format!("{name} must be {expected}"));
    match kind {
        Some(ParamKind::Flag) => match value.as_str() {
            "true" | "1" | "" => Ok(json!(true)),
            "false" | "0" => Ok(json!(false)),
            _ => Err(bad("true or false")),
        },
        Some(ParamKind::Number { .. }) => {
            value.parse::<u64>().map(|number| json!(number)).map_err(|_| bad("a whole number"))
        }
        Some(ParamKind::Share) => {
            value.parse::<f64>().map(|number| json!(number)).map_err(|_| bad("a number"))
        }
        Some(ParamKind::Words(_) | ParamKind::Texts) => {
            Ok(value.split(',').filter(|item| !item.is_empty()).map(|item| json!(item)).collect())
        }
        // An unknown parameter is refused later, by the check against the table.
        _ => Ok(json!(value)),
    }
}

/// Decodes `%XX` and `+`. Returns `None` for a malformed escape, which the library would keep as it is, and if the
/// result is not valid UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let is_escape = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(Cow::into_owned)
}

fn changes(state: &ServerState, headers: &HeaderMap) -> Response {
    if state.feed.subscriber_count() >= MAX_SUBSCRIBERS {
        let message = format!("{MAX_SUBSCRIBERS} change streams are already open; close one first");
        return responses::error(&error_json("TOO_MANY", message));
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    state
        .feed
        .subscribe(last)
        .unwrap_or_else(|| responses::error(&error_json("INTERNAL", "the server is shutting down")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_language_is_supported_one_with_highest_weight() {
        for (header, expected) in [
            ("zh-CN,zh;q=0.9,en;q=0.8", Some(Lang::Zh)),
            ("en;q=0.5, zh-TW;q=0.7", Some(Lang::Zh)),
            ("EN-gb", Some(Lang::En)),
            ("fr, en;q=0.1", Some(Lang::En)),
            ("zh;q=0, en;q=0.1", Some(Lang::En)),
            ("zh;q=x", None),
            ("fr, enm, *", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, header.parse().unwrap());
            assert_eq!(accepted_language(&headers), expected, "{header}");
        }
        assert_eq!(accepted_language(&HeaderMap::new()), None);
    }

    #[test]
    fn percent_decode_invalid_escape_returns_none() {
        for (text, expected) in [
            ("a+b%20c", Some("a b c")),
            ("%E4%BB%BB%E5%8A%A1", Some("任务")),
            ("%", None),
            ("%zz", None),
            ("%+f", None),
            ("%2%30", None),
            ("%e4任", None),
            ("%ff", None),
            ("", Some("")),
        ] {
            assert_eq!(percent_decode(text).as_deref(), expected, "{text}");
        }
    }
}
