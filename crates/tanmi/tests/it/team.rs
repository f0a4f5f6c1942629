//! The server of a team on a PostgreSQL cluster of its own.

use std::path::Path;

use serde_json::{Value, json};
use tanmi_cluster::{Cluster, Durability};

use crate::env::TestEnv;
use crate::serve::{Response, Server};

mod admin;
pub mod contributions;
mod errors;
mod hooks;
mod interfaces;
mod joined_page;
mod live;
pub mod machines;
mod memory;
mod operations;
mod page;
mod protocol;
mod push;
mod restore;
mod routes;
mod secrecy;
mod tls;
mod transfer;
mod upgrade;

/// Writes a file as a person would, in place.
#[allow(clippy::disallowed_methods)] // no other program reads it meanwhile
fn write_file(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    std::fs::write(path, text)
}

/// A database with one project, and its admin.
pub struct Team {
    pub env: TestEnv,
    pub cluster: Cluster,
    pub admin: String,
}

impl Team {
    /// Returns `None` where PostgreSQL is not installed.
    pub fn new() -> Option<Team> {
        let Some(cluster) = Cluster::start(Durability::Process).unwrap() else {
            assert!(
                std::env::var_os("CI").is_none(),
                "PostgreSQL is not installed; scripts/install-postgres installs it"
            );
            eprintln!("skipped: PostgreSQL is not installed (scripts/install-postgres)");
            return None;
        };
        let mut team = Team { env: TestEnv::new(), cluster, admin: String::new() };
        team.admin = team.setup("shop", "ada");
        Some(team)
    }

    /// Creates a project and returns the token of its admin.
    pub fn setup(&self, project: &str, admin: &str) -> String {
        let made =
            self.run(&["team", "setup", "--team", "Acme", "--project-name", project, "--admin", admin]);
        made["token"].as_str().unwrap().to_owned()
    }

    /// Creates a token for a person.
    pub fn token(&self, person: &str, role: &str) -> String {
        let made = self.run(&[
            "team",
            "token",
            "create",
            "--project-name",
            "shop",
            "--person",
            person,
            "--role",
            role,
        ]);
        made["token"].as_str().unwrap().to_owned()
    }

    /// Runs a command that uses the database, and returns its JSON.
    pub fn run(&self, args: &[&str]) -> Value {
        let output = self
            .env
            .command(args)
            .arg("--json")
            .env("TANMI_DATABASE_URL", self.cluster.address())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("{args:?}: {text} {}", String::from_utf8_lossy(&output.stderr)))
    }

    pub fn serve(&self) -> Server {
        Server::start_team(&self.env, &self.cluster.address(), &self.admin)
    }
}

/// Sends a request to a project with a token.
pub fn send_as(
    server: &Server,
    token: &str,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
    body: &Value,
) -> Response {
    let authorization = format!("Bearer {token}");
    let mut headers = vec![("Host", "team"), ("Authorization", authorization.as_str())];
    headers.extend(more);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send_with_headers(method, &format!("/team/v1/{path}"), &headers, &body)
}

/// Sends a request of the admin to the project `shop`, which must succeed.
pub fn ok(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let response = send_as(server, &server.token, method, &format!("shop/{path}"), &[], body);
    assert_eq!(response.status, 200, "{method} {path}: {}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

/// Returns the body of a request that runs a command.
pub fn run_body(key: &str, stream: &str, command: Value) -> Value {
    json!({"key": format!("key-{key}"), "stream": stream, "command": command, "operator": "AI"})
}

/// Creates a workspace and returns its id.
pub fn create_workspace(server: &Server, key: &str) -> String {
    let workspace = json!({"name": "Shop", "goal": "Sell", "rules": [], "docs": []});
    let command = json!({"command": "create_workspace", "workspace": workspace});
    let body = json!({"key": format!("key-{key}"), "command": command, "operator": "AI"});
    ok(server, "POST", "run", &body)["workspaceId"].as_str().unwrap().to_owned()
}

/// Returns the command that creates a task below the root.
pub fn create_task(title: &str) -> Value {
    json!({"command": "create_node", "node": {
        "parentId": "root", "kind": "execution", "title": title, "requirement": title, "role": null, "note": "",
        "docs": [], "isolated": false, "rulesCheck": {"ifGiven": null},
    }})
}

pub fn error_code(response: &Response) -> String {
    let body: Value = serde_json::from_str(&response.body).unwrap();
    body["error"]["code"].as_str().unwrap_or_default().to_owned()
}
