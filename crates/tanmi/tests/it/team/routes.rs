//! Every route of the server, as it describes them, with every role and with bad input.

use serde_json::{Value, json};

use super::operations::LoggedServer;
use super::{Team, create_workspace};
use crate::serve::{Response, Server};

/// A route of the description.
struct Route {
    method: String,
    path: String,
    /// The role that it needs; `None` if it is open to all.
    role: Option<String>,
    query: Vec<String>,
    fields: Vec<String>,
}

/// Returns the routes that the server describes. Streams that do not end are left out.
fn routes(server: &Server) -> Vec<Route> {
    let description =
        send(server, Some(&server.token), "GET", "/api/v1/openapi.json?project=shop", "").json();
    let mut routes = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let by_method = if method == "get" { "reader" } else { "member" };
            let role = match operation.get("x-role") {
                Some(role) => role.as_str().map(str::to_owned),
                None => Some(by_method.to_owned()),
            };
            let parameters = operation["parameters"].as_array().unwrap().iter();
            let query = parameters.filter(|parameter| parameter["in"] == "query");
            let fields = &operation["requestBody"]["content"]["application/json"]["schema"]["properties"];
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
                role,
                query: query.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect(),
                fields: fields.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect(),
            });
        }
    }
    routes.retain(|route| !route.path.ends_with("/changes"));
    assert!(routes.len() > 45, "{}", routes.len());
    routes
}

fn send(server: &Server, token: Option<&str>, method: &str, path: &str, body: &str) -> Response {
    let authorization = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("Host", "team"), ("Accept", "application/json, text/event-stream")];
    headers.extend(authorization.as_deref().map(|value| ("Authorization", value)));
    server.send_with_headers(method, path, &headers, body)
}

/// Returns the path of a route in a project, with `id` in the place of all other parameters.
fn path_of(route: &Route, project: &str, id: &str) -> String {
    let parts = route.path.split('/').map(|part| match part {
        "{project}" => project,
        part if part.starts_with('{') => id,
        part => part,
    });
    let path = parts.collect::<Vec<_>>().join("/");
    match route.path.contains("{project}") || route.role.is_none() {
        true => path,
        false => format!("{path}?project={project}"),
    }
}

#[test]
fn every_route_refuses_other_roles_and_projects() {
    let Some(team) = Team::new() else { return };
    let logged = LoggedServer::start(&team, "one", &["--rate-limit", "0"]);
    let server = &logged.server;
    let workspace = create_workspace(server, "create-1");
    let eve = team.setup("other", "eve");
    assert_eq!(send(server, Some(&eve), "GET", "/team/v1/other/feed", "").status, 200);
    let gone = team.token("gone", "admin");
    team.run(&["team", "token", "revoke", "--project-name", "shop", "--person", "gone"]);
    let rank = |role: &str| ["reader", "member", "admin"].iter().position(|known| *known == role).unwrap();
    let tokens = ["reader", "member", "admin"].map(|role| (role, team.token(role, role)));
    for route in routes(server) {
        let about = format!("{} {}", route.method, route.path);
        let own = path_of(&route, "shop", &workspace);
        let ask = |token: Option<&str>, path: &str| {
            let response = send(server, token, &route.method, path, "");
            assert!((200..500).contains(&response.status), "{about}: {} {}", response.status, response.body);
            response
        };
        let Some(needed) = &route.role else {
            assert!(!ask(None, &own).body.contains("tnm_"), "{about}");
            continue;
        };
        assert_eq!(ask(None, &own).status, 401, "{about}");
        // An address that sends many unknown tokens is told to wait.
        let revoked = ask(Some(&gone), &own).status;
        assert!(revoked == 401 || revoked == 429, "{about}: {revoked}");
        assert_eq!(ask(Some(&eve), &own).status, 404, "{about}: a member of another project");
        for (role, token) in &tokens {
            let status = ask(Some(token), &own).status;
            assert_eq!(status == 403, rank(role) < rank(needed), "{about} as {role}: {status}");
            assert_ne!(status, 401, "{about} as {role}");
        }
        // Ids of this project in a request to another one.
        let foreign = ask(Some(&eve), &path_of(&route, "other", &workspace));
        assert!(!foreign.body.contains("Sell"), "{about}: {}", foreign.body);
        if route.path.contains("{workspaceId}") {
            assert!((400..500).contains(&foreign.status), "{about}: {} {}", foreign.status, foreign.body);
        }
    }
    let left = send(server, Some(&team.admin), "GET", "/api/v1/trash?project=shop", "");
    assert!(left.status == 200, "{}", left.body);
}

#[test]
fn every_route_answers_bad_input_without_internal_error() {
    let Some(team) = Team::new() else { return };
    let logged = LoggedServer::start(&team, "one", &["--rate-limit", "0", "--log-level", "error"]);
    let server = &logged.server;
    let workspace = create_workspace(server, "create-1");
    let long = "x".repeat(9000);
    let words =
        ["", "x", "-1", "99999999999999999999", "%FF", "%00", "..%2F..%2Fetc", "root", &workspace, &long];
    let values = [
        json!(null),
        json!(""),
        json!("x"),
        json!("\u{0}"),
        json!(-1),
        json!(1e300),
        json!(true),
        json!([]),
        json!([{}, 1, "x"]),
        json!({"command": "create_node", "node": []}),
        json!("x".repeat(300_000)),
    ];
    let check = |method: &str, path: &str, body: &str| {
        let response = send(server, Some(&server.token), method, path, body);
        let shown = (tanmi_base::text::fit(path, 200), tanmi_base::text::fit(body, 200));
        assert!(
            (200..500).contains(&response.status),
            "{method} {shown:?}: {} {}",
            response.status,
            response.body
        );
    };
    for route in routes(server) {
        for word in words {
            check(&route.method, &path_of(&route, "shop", word), "");
            for name in &route.query {
                let path = path_of(&route, "shop", &workspace);
                let mark = if path.contains('?') { '&' } else { '?' };
                // A reader of the feed would wait.
                let word = if name == "wait" && word.starts_with('9') { "0" } else { word };
                check(&route.method, &format!("{path}{mark}{name}={word}"), "");
            }
        }
        if route.method == "GET" {
            continue;
        }
        let path = path_of(&route, "shop", &workspace);
        for body in ["{}", "[]", "null", "\"x\"", "{", &"[".repeat(5000)] {
            check(&route.method, &path, body);
        }
        // All fields at once, and one after the other.
        for value in &values {
            let all: Value = route
                .fields
                .iter()
                .map(|name| (name.clone(), value.clone()))
                .collect::<serde_json::Map<_, _>>()
                .into();
            check(&route.method, &path, &all.to_string());
            for name in &route.fields {
                check(&route.method, &path, &json!({name: value}).to_string());
            }
        }
    }
    assert_eq!(logged.text(), "", "no request ended with an internal error");
    let stale = send(server, Some(&team.admin), "GET", &format!("/api/v1/workspaces/{workspace}"), "");
    assert!(stale.status == 200 || stale.status == 404, "{}", stale.body);
}
