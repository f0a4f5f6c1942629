//! From a request to a use case: arguments out of path, query and body, checked by the table, run on a blocking thread.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::{Map, Value, json};
use tanmi_base::Lang;

use super::feed::LISTENERS;
use super::routes::{self, Does, Route};
use super::{Served, answer, openapi, own};
use crate::tools::{self, Asked, Kind, Spec};

pub fn router(served: &Arc<Served>) -> Router {
    let mut router: Router = Router::new();
    for route in routes::all() {
        let path = route.path;
        router = router.route(path, handler(Arc::new(route), Arc::clone(served)));
    }
    router
}

struct Came {
    path: Result<Path<Vec<(String, String)>>, PathRejection>,
    query: Option<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
}

fn handler(route: Arc<Route>, served: Arc<Served>) -> MethodRouter {
    let filter = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::GET);
    on(
        filter,
        move |path: Result<Path<Vec<(String, String)>>, PathRejection>,
              RawQuery(query): RawQuery,
              headers: HeaderMap,
              body: Result<Bytes, BytesRejection>| {
            let (route, served) = (Arc::clone(&route), Arc::clone(&served));
            async move { respond(route, served, Came { path, query, headers, body }).await }
        },
    )
}

async fn respond(route: Arc<Route>, served: Arc<Served>, came: Came) -> Response {
    match route.does {
        Does::Changes => return changes(&served, &came.headers),
        Does::Describe => return answer::json(StatusCode::OK, &openapi::describe()),
        Does::Ticket if !served.guard.has_token(&came.headers) => {
            let message = "only the token gets a link";
            return answer::failure(StatusCode::FORBIDDEN, "TOKEN_REQUIRED", message);
        }
        Does::Tool(_) | Does::Own(..) | Does::Ticket => {}
    }
    let work = tokio::task::spawn_blocking(move || ask(&route, &served, came));
    match work.await {
        Ok(Ok((status, value))) => answer::json(status, &value),
        Ok(Err(error)) => answer::error(&error),
        Err(error) => answer::error(&misfit("INTERNAL", error.to_string())),
    }
}

fn ask(route: &Route, served: &Served, came: Came) -> Result<(StatusCode, Value), Value> {
    let no_use_case = || misfit("INTERNAL", "no such use case");
    let spec = route.spec().ok_or_else(no_use_case)?;
    let lang = language(&came.headers);
    let expects = versions(route, &came.headers)?;
    let mut arguments = body(route, &came)?;
    let project = query(spec, route, came.query.as_deref(), &mut arguments)?;
    let Path(path) = came.path.map_err(|error| misfit("INVALID_ARGUMENT", error.body_text()))?;
    for (name, value) in path {
        if name == "workspaceId" {
            served.looks_at(&value);
        }
        if arguments.insert(name.clone(), json!(value)).is_some_and(|other| other != json!(value)) {
            return Err(misfit("INVALID_ARGUMENT", format!("{name} is already in the path, and differs")));
        }
    }
    let Some(app) = served.app_of(project.as_deref()) else {
        return Err(misfit("PROJECT_NOT_FOUND", "no such project is known; GET /api/v1/projects lists them"));
    };
    // Nobody's session is meant unless it is named.
    let asked = Asked { app: &app, spec, arguments: &arguments, meta: None, expects, lang };
    let value = match route.does {
        Does::Own(_, work) => tools::perform(&asked, |call| work(call, served)),
        Does::Ticket => tools::perform(&asked, |call| own::ticket(call, served)),
        Does::Tool(name) => tools::perform(&asked, tools::find(name).ok_or_else(no_use_case)?.work),
        Does::Changes | Does::Describe => Err(no_use_case()),
    }?;
    Ok((StatusCode::from_u16(route.status).unwrap_or(StatusCode::OK), value))
}

fn misfit(code: &str, message: impl Into<String>) -> Value {
    json!({"code": code, "message": message.into()})
}

/// The first language of the list that we speak.
fn language(headers: &HeaderMap) -> Lang {
    let wanted =
        headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut words = wanted.split(',').map(|word| word.trim().to_ascii_lowercase());
    match words.find(|word| word.starts_with("zh") || word.starts_with("en")) {
        Some(word) if word.starts_with("zh") => Lang::Zh,
        _ => Lang::En,
    }
}

/// `If-Match` has one tag or several; `*` stands for any.
fn versions(route: &Route, headers: &HeaderMap) -> Result<Option<Vec<String>>, Value> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let tag = value.to_str().unwrap_or_default().trim();
    if tag == "*" {
        return Ok(None);
    }
    if !route.takes_version() {
        return Err(misfit("INVALID_ARGUMENT", "If-Match is for changing a workspace or a node"));
    }
    Ok(Some(tag.split(',').map(|tag| tag.trim().trim_matches('"').to_owned()).collect()))
}

fn body(route: &Route, came: &Came) -> Result<Map<String, Value>, Value> {
    let bytes = match &came.body {
        Ok(bytes) => bytes,
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Err(misfit("TOO_LARGE", format!("the body is longer than {} bytes", super::MAX_BODY)));
        }
        Err(error) => return Err(misfit("INVALID_ARGUMENT", error.body_text())),
    };
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if route.method == Method::GET {
        return Err(misfit("INVALID_ARGUMENT", "a GET takes its parameters from the query, not from a body"));
    }
    // Also because no page elsewhere can send this without being asked about it.
    let kind = came.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(misfit("NOT_JSON", "send Content-Type: application/json"));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(misfit("INVALID_ARGUMENT", "the body must be a JSON object")),
        Err(error) => Err(misfit("INVALID_ARGUMENT", format!("the body is not valid JSON: {error}"))),
    }
}

/// Adds the query's parameters, each as its row says; the project, where it can be named, is not an argument.
fn query(
    spec: &Spec,
    route: &Route,
    raw: Option<&str>,
    arguments: &mut Map<String, Value>,
) -> Result<Option<String>, Value> {
    let mut project = None;
    for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
            return Err(misfit("INVALID_ARGUMENT", "the query is not valid UTF-8"));
        };
        if name == "project" && route.is_per_project() {
            project = Some(value);
            continue;
        }
        let kind = spec.params.iter().find(|param| param.name == name).map(|param| param.kind);
        let value = typed(kind, &name, value)?;
        match (arguments.get_mut(&name), value) {
            // A list may be written as one parameter again and again.
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (Some(_), _) => return Err(misfit("INVALID_ARGUMENT", format!("{name} is given twice"))),
            (None, value) => {
                arguments.insert(name, value);
            }
        }
    }
    Ok(project)
}

fn typed(kind: Option<Kind>, name: &str, value: String) -> Result<Value, Value> {
    let bad = |expected: &str| misfit("INVALID_ARGUMENT", format!("{name} must be {expected}"));
    match kind {
        Some(Kind::Flag) => match value.as_str() {
            "true" | "1" | "" => Ok(json!(true)),
            "false" | "0" => Ok(json!(false)),
            _ => Err(bad("true or false")),
        },
        Some(Kind::Number { .. }) => {
            value.parse::<u64>().map(|number| json!(number)).map_err(|_| bad("a whole number"))
        }
        Some(Kind::Share) => value.parse::<f64>().map(|number| json!(number)).map_err(|_| bad("a number")),
        Some(Kind::Words(_) | Kind::Texts) => {
            Ok(value.split(',').filter(|item| !item.is_empty()).map(|item| json!(item)).collect())
        }
        // What the table does not know is refused by the table.
        _ => Ok(json!(value)),
    }
}

/// `%20` and `+`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn changes(served: &Served, headers: &HeaderMap) -> Response {
    if served.feed.listeners() >= LISTENERS {
        let message = format!("{LISTENERS} listen already; close one of them");
        return answer::error(&misfit("TOO_MANY", message));
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    served.feed.listen(last).unwrap_or_else(|| answer::error(&misfit("INTERNAL", "the server is ending")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        for (text, expected) in [
            ("a+b%20c", Some("a b c")),
            ("%E4%BB%BB%E5%8A%A1", Some("任务")),
            ("%", None),
            ("%zz", None),
            ("%ff", None),
            ("", Some("")),
        ] {
            assert_eq!(decoded(text).as_deref(), expected, "{text}");
        }
    }
}
