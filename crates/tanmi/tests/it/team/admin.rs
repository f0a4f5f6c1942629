//! The administration of a team: commands and the HTTP API.

use serde_json::{Value, json};

use super::{Team, create_task, create_workspace, error_code, ok, run_body};
use crate::env::Run;
use crate::serve::{Response, Server};

impl Team {
    /// Runs a command in the language of a person, and returns its output.
    fn output(&self, args: &[&str]) -> Run {
        Run::of(self.env.command(args).env("TANMI_DATABASE_URL", self.cluster.address()).output().unwrap())
    }

    /// Runs a command that must fail, and returns the code of its error.
    fn refused(&self, args: &[&str]) -> String {
        let run = self.output(&[args, &["--json"]].concat());
        assert!(!run.ok, "{args:?} {}", run.stdout);
        let value: Value = serde_json::from_str(&run.stdout).unwrap();
        value["error"]["code"].as_str().unwrap().to_owned()
    }
}

fn api(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> Response {
    let authorization = format!("Bearer {token}");
    let headers = [("Host", "team"), ("Authorization", authorization.as_str())];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send_with_headers(method, &format!("/api/v1/team/{path}"), &headers, &body)
}

fn api_ok(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> Value {
    let response = api(server, token, method, path, body);
    assert_eq!(response.status, 200, "{method} {path}: {}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn setup_with_another_team_creates_nothing() {
    let Some(team) = Team::new() else { return };
    let setup = ["team", "setup", "--team", "Acmee", "--project-name", "shop", "--admin", "ada"];
    let refused = team.run(&setup);
    assert_eq!(refused["error"]["code"], "TEAM_NOT_FOUND", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("Acme"), "{refused}");
    assert_eq!(names(&team.run(&["team", "project", "list"])["projects"], "name"), ["shop"]);
    assert_eq!(team.run(&["team", "upgrade"])["schema"], tanmi_pg::VERSION);
}

#[test]
fn team_commands_administer_people_projects_and_tokens() {
    let Some(team) = Team::new() else { return };
    assert_eq!(team.run(&["team", "person", "add", "bob"])["created"], true);
    assert_eq!(team.run(&["team", "person", "add", "bob"])["created"], false, "a second time");
    team.run(&["team", "person", "add", "王芳", "--role", "member"]);
    assert_eq!(team.run(&["team", "project", "add", "web"])["created"], true);
    let args = ["team", "member", "set", "--person", "bob", "--project-name", "web", "--role", "admin"];
    assert_eq!(team.run(&args)["role"], "admin");
    assert_eq!(names(&team.run(&["team", "person", "list"])["people"], "name"), ["ada", "bob", "王芳"]);
    let page = team.run(&["team", "person", "list", "--limit", "1"]);
    assert_eq!((names(&page["people"], "name"), &page["hasMore"]), (vec![String::from("ada")], &json!(true)));
    let members = team.run(&["team", "person", "list", "--project-name", "web"]);
    assert_eq!(members["people"][0]["roles"], json!([{"project": "web", "role": "admin"}]));
    assert_eq!(names(&team.run(&["team", "project", "list"])["projects"], "name"), ["shop", "web"]);
    let create = ["team", "token", "create", "--project-name", "web", "--person", "bob", "--role", "reader"];
    let made =
        team.run(&[&create[..], &["--name", "laptop", "--expires", "90d", "--this-project-only"]].concat());
    let id = made["id"].as_str().unwrap();
    let listed = team.output(&["team", "token", "list", "--person", "bob", "--json"]);
    let secret = made["token"].as_str().unwrap().rsplit('_').next().unwrap();
    assert!(!listed.stdout.contains(secret), "a list shows a secret");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let token = &listed["tokens"][0];
    assert_eq!(
        (&token["id"], &token["name"], &token["role"]),
        (&json!(id), &json!("laptop"), &json!("reader"))
    );
    assert_eq!((&token["project"], &token["lastUsedAt"]), (&json!("web"), &Value::Null));
    let lifetime = token["expiresAt"].as_i64().unwrap() - token["createdAt"].as_i64().unwrap();
    assert_eq!(lifetime, 90 * 24 * 60 * 60 * 1000);
    let rotated = team.run(&["team", "token", "rotate", "--id", id, "--overlap", "0s"]);
    let valid = team.run(&["team", "token", "list", "--person", "bob", "--valid"]);
    assert_eq!(names(&valid["tokens"], "id"), [rotated["id"].as_str().unwrap()]);
    team.run(&["team", "token", "revoke", "--id", rotated["id"].as_str().unwrap()]);
    assert_eq!(team.run(&["team", "token", "list", "--person", "bob", "--valid"])["tokens"], json!([]));
    for (args, code) in [
        (&["team", "person", "disable", "bob"][..], "LAST_ADMIN"),
        (&["team", "person", "disable", "eve"], "PERSON_NOT_FOUND"),
        (&["team", "person", "add", "a/b"], "INVALID_ARGUMENT"),
        (&["team", "person", "list", "--team", "Nobel"], "TEAM_NOT_FOUND"),
        (
            &["team", "member", "set", "--person", "eve", "--project-name", "web", "--role", "none"],
            "PERSON_NOT_FOUND",
        ),
        (&["team", "member", "set", "--person", "bob", "--role", "none"], "PROJECT_NOT_FOUND"),
        (&["team", "token", "rotate", "--id", id], "TOKEN_ENDED"),
        (&["team", "token", "revoke", "--id", "none"], "TOKEN_NOT_FOUND"),
        (&["team", "token", "rotate", "--id", id, "--overlap", "soon"], "INVALID_ARGUMENT"),
        (&["team", "audit", "--since", "soon"], "INVALID_ARGUMENT"),
        (&["team", "check", "--project-name", "none"], "PROJECT_NOT_FOUND"),
    ] {
        assert_eq!(team.refused(args), code, "{args:?}");
    }
    let audit = team.run(&["team", "audit", "--what", "token_rotated", "--since", "1d"]);
    assert_eq!(audit["entries"][0]["detail"]["newToken"], rotated["id"], "{audit}");
    assert_eq!(team.run(&["team", "audit", "--limit", "2"])["hasMore"], true);
    for args in [
        &["team", "person", "list"][..],
        &["team", "project", "list"],
        &["team", "token", "list"],
        &["team", "audit"],
        &["team", "check"],
    ] {
        let run = team.output(args);
        assert!(run.ok, "{args:?} {}", run.stderr);
        assert!(args[1] == "check" || run.stdout.lines().count() > 1, "{args:?} {}", run.stdout);
    }
}

#[test]
fn admin_over_http_administers_the_own_project_only() {
    let Some(team) = Team::new() else { return };
    team.setup("web", "wendy");
    let server = team.serve();
    let admin = team.admin.as_str();
    let bob = json!({"name": "bob", "role": "member"});
    assert_eq!(api_ok(&server, admin, "POST", "people", &bob)["created"], true);
    let body = json!({"person": "bob", "role": "member", "name": "laptop", "expires": "30d"});
    let token = api_ok(&server, admin, "POST", "tokens", &body);
    let (id, text) = (token["id"].as_str().unwrap().to_owned(), token["token"].as_str().unwrap().to_owned());
    for (method, path, body) in [
        ("POST", "people", bob),
        ("POST", "people/ada/disable", Value::Null),
        ("PUT", "members/bob", json!({"role": "admin"})),
        ("GET", "tokens", Value::Null),
        ("POST", "tokens", body.clone()),
        ("DELETE", &format!("tokens/{id}"), Value::Null),
        ("POST", &format!("tokens/{id}/rotate"), Value::Null),
        ("GET", "audit", Value::Null),
        ("GET", "projects", Value::Null),
    ] {
        let refused = api(&server, &text, method, path, &body);
        assert_eq!(
            (refused.status, error_code(&refused)),
            (403, String::from("FORBIDDEN")),
            "{method} {path}"
        );
    }
    for reader in [admin, &text] {
        let people = api_ok(&server, reader, "GET", "people", &Value::Null);
        assert_eq!(names(&people["people"], "name"), ["ada", "bob"], "wendy is in another project");
    }
    let projects = api_ok(&server, admin, "GET", "projects", &Value::Null);
    assert_eq!(names(&projects["projects"], "name"), ["shop"]);
    let rotated = api_ok(&server, admin, "POST", &format!("tokens/{id}/rotate"), &json!({"overlap": "1h"}));
    api_ok(&server, admin, "DELETE", &format!("tokens/{}", rotated["id"].as_str().unwrap()), &Value::Null);
    let tokens = api_ok(&server, admin, "GET", "tokens?person=bob&valid=true&project=shop", &Value::Null);
    assert_eq!(names(&tokens["tokens"], "id"), [id.as_str()], "the old one in its overlap");
    assert!(!tokens.to_string().contains(text.rsplit('_').next().unwrap()), "a list shows a secret");
    assert_eq!(tokens["tokens"][0]["project"], "shop", "a token of an admin is limited to the project");
    api_ok(&server, admin, "PUT", "members/bob", &json!({"role": "reader"}));
    api_ok(&server, admin, "POST", "people/bob/disable", &Value::Null);
    for (method, path, body, status, code) in [
        ("PUT", "members/ada", json!({"role": "none"}), 409, "LAST_ADMIN"),
        ("POST", "people/ada/disable", Value::Null, 409, "LAST_ADMIN"),
        ("PUT", "members/eve", json!({"role": "reader"}), 404, "PERSON_NOT_FOUND"),
        ("PUT", "members/bob", json!({"role": "boss"}), 400, "INVALID_ARGUMENT"),
        ("POST", "people", json!({"name": "a@b", "role": "reader"}), 400, "INVALID_ARGUMENT"),
        ("POST", "people/wendy/disable", Value::Null, 404, "PERSON_NOT_FOUND"),
        ("POST", "tokens", json!({"person": "bob", "role": "reader"}), 409, "PERSON_DISABLED"),
        (
            "POST",
            "tokens",
            json!({"person": "ada", "role": "reader", "expires": "x"}),
            400,
            "INVALID_ARGUMENT",
        ),
        ("DELETE", "tokens/none", Value::Null, 404, "TOKEN_NOT_FOUND"),
        ("GET", "people?colour=red", Value::Null, 400, "INVALID_ARGUMENT"),
    ] {
        let refused = api(&server, admin, method, path, &body);
        assert_eq!((refused.status, error_code(&refused).as_str()), (status, code), "{method} {path}");
    }
    let audit = api_ok(&server, admin, "GET", "audit?person=bob&what=person_disabled", &Value::Null);
    assert_eq!(
        (audit["entries"].as_array().unwrap().len(), &audit["entries"][0]["person"]),
        (1, &json!("ada"))
    );
    assert_eq!(audit["entries"][0]["ip"], "127.0.0.1", "the address of the admin");
    let all = api_ok(&server, admin, "GET", "audit?limit=2", &Value::Null);
    let before = all["entries"][1]["id"].as_str().unwrap();
    let next = api_ok(&server, admin, "GET", &format!("audit?limit=1&before={before}"), &Value::Null);
    assert!(next["entries"][0]["at"].as_i64() <= all["entries"][1]["at"].as_i64());
    let web = api(&server, admin, "GET", "people?project=web", &Value::Null);
    assert_eq!(web.status, 404, "{}", web.body);
}

#[test]
fn presence_names_holders_for_every_role() {
    let Some(team) = Team::new() else { return };
    let (server, reader) = (team.serve(), team.token("rita", "reader"));
    let workspace = create_workspace(&server, "make-workspace");
    let created = ok(&server, "POST", "run", &run_body("make-task-1", &workspace, create_task("Build")));
    let node = created["outcome"]["node"]["id"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    assert_eq!(api_ok(&server, &reader, "GET", "presence", &Value::Null)["presence"], json!([]));
    let start = json!({"command": "transition", "request": {"nodeId": node, "action": "start", "conclusion": null,
        "claimant": {"session": null, "agent": null, "force": false}}});
    let mut body = run_body("start-task-1", &workspace, start);
    body["session"] = json!("ada-1");
    body["machine"] = json!("laptop");
    ok(&server, "POST", "run", &body);
    let presence = api_ok(&server, &reader, "GET", "presence", &Value::Null);
    let entry = &presence["presence"][0];
    assert_eq!(
        (&entry["person"], &entry["machine"], &entry["session"]),
        (&json!("ada"), &json!("laptop"), &json!("ada-1"))
    );
    assert_eq!((&entry["workspaceName"], &entry["nodeTitle"]), (&json!("Shop"), &json!("Build")));
    assert_eq!((&entry["workspaceId"], &entry["nodeId"]), (&json!(workspace), &json!(node)));
    assert_eq!(entry["isLive"], true);
    assert!(entry["leaseUntil"].as_i64() > entry["since"].as_i64(), "{entry}");
    team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    let presence = api_ok(&server, &reader, "GET", "presence?person=ada", &Value::Null);
    assert_eq!(presence["presence"][0]["isLive"], false, "the lease ended");
    assert_eq!(api_ok(&server, &reader, "GET", "presence?person=rita", &Value::Null)["presence"], json!([]));
}
