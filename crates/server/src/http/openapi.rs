//! Describes the table of routes as OpenAPI 3.1.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::routes::{self, Route, RouteAction};
use crate::tools::{self, Param};

pub fn describe() -> Value {
    describe_routes(routes::all())
}

pub fn describe_routes(routes: impl IntoIterator<Item = Route>) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(&route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tanmi",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Workspaces, sessions, rules, ledger and memory on this machine. \
                            The bearer token is in serve.json in the home store.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": {
                "type": "object",
                "required": ["error"],
                "properties": {"error": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {
                        "code": {"type": "string"},
                        "message": {"type": "string"},
                        "hint": {"type": "string"},
                        "field": {"type": "string"},
                        "details": {},
                    },
                }},
            }},
        },
    })
}

fn operation(route: &Route) -> Value {
    let is_stream = matches!(route.action, RouteAction::Changes);
    let in_path: Vec<&str> = route.in_path().collect();
    let params = route.spec().map_or(&[][..], |spec| spec.params);
    let has_body = !matches!(route.method, Method::GET | Method::DELETE);
    let (path_params, others): (Vec<&Param>, Vec<&Param>) =
        params.iter().partition(|param| in_path.contains(&param.name));
    let (in_query, in_body) = if has_body { (Vec::new(), others) } else { (others, Vec::new()) };
    let mut parameters: Vec<Value> = path_params.iter().map(|param| parameter(param, "path")).collect();
    parameters.extend(in_query.iter().map(|param| parameter(param, "query")));
    if route.is_per_project() {
        parameters.push(json!({
            "name": "project", "in": "query", "schema": {"type": "string"},
            "description": "a project from GET /api/v1/projects; default: the server's own project",
        }));
    }
    if route.writes_texts() {
        parameters.push(json!({
            "name": "secrets", "in": "query", "schema": {"type": "string", "enum": ["keep", "mask", "ask"]},
            "description": "what happens to secrets in the texts: keep (default) stores them and warns, mask masks \
                            them, ask fails with SECRETS_FOUND",
        }));
    }
    if route.takes_version() {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "schema": {"type": "string"},
            "description": "version that the change is based on; if it is outdated, the response is 412 with the current state",
        }));
    }
    if is_stream {
        parameters.push(json!({"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}));
    }
    let (kind, schema) = if is_stream {
        ("text/event-stream", json!({"type": "string"}))
    } else {
        ("application/json", json!({"type": "object"}))
    };
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.about(),
        "parameters": parameters,
        "responses": {
            route.status.to_string(): {"description": "success", "content": {kind: {"schema": schema}}},
            "default": {
                "description": "error with the reason and a hint",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    });
    if !in_body.is_empty() {
        let schema = tools::schema(in_body.iter().copied());
        let required = schema.contains_key("required");
        operation["requestBody"] =
            json!({"required": required, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn parameter(param: &Param, place: &str) -> Value {
    let mut schema = tools::property(param);
    let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let mut parameter = json!({"name": param.name, "in": place, "required": place == "path" || param.required, "schema": schema});
    if parameter["schema"]["type"] == "array" {
        // One parameter with comma-separated values.
        parameter["style"] = json!("form");
        parameter["explode"] = json!(false);
    }
    if let Some(about) = about {
        parameter["description"] = about;
    }
    parameter
}

fn operation_id(route: &Route) -> &'static str {
    match route.action {
        RouteAction::Changes => "changes",
        RouteAction::Describe => "openapi",
        _ => route.spec().map_or("", |spec| spec.name),
    }
}
