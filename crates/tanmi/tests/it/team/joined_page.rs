//! The team of a joined project through the server of a machine.

use serde_json::{Value, json};

use super::contributions::work;
use super::machines::{join, machine};
use super::{Team, error_code};
use crate::env::TestEnv;
use crate::serve::Server;
use crate::serve::page_types::compare_team_answer;

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap_or("–").to_owned()).collect()
}

#[test]
fn machine_of_admin_shows_and_administers_team() {
    let Some(team) = Team::new() else { return };
    let remote = team.serve();
    let ada = TestEnv::new();
    join(&ada, &remote, &team.admin, "laptop");
    ada.init();
    work(&ada, "ada");
    let bob = machine(&remote, &team.token("bob", "member"), "desktop");
    let node = bob.node("root", "execution", "Held by bob");
    bob.ok(&["start", &node]);
    let local = Server::start(&ada);
    let get = |path: &str| {
        let answer = local.expect_ok("GET", path, Value::Null);
        if path.starts_with("/team/") {
            let route = path.split('?').next().unwrap_or_default();
            compare_team_answer(&format!("GET {route}"), &answer);
        }
        answer
    };
    let joined = &get("/projects")["joined"];
    assert_eq!(
        joined,
        &json!([{"folder": ada.project.display().to_string(), "name": "shop", "person": "ada",
            "server": format!("http://127.0.0.1:{}", remote.port)}])
    );
    let presence = get("/team/presence");
    let held = &presence["presence"][0];
    assert_eq!((&held["person"], &held["nodeTitle"]), (&json!("bob"), &json!("Held by bob")), "{presence}");
    assert!(presence.get("toldAt").is_none(), "the server answered: {presence}");
    assert_eq!(names(&get("/team/people")["people"], "name"), ["ada", "bob"]);
    assert_eq!(names(&get("/team/people?role=admin&limit=5")["people"], "name"), ["ada"]);
    let did = get("/team/contributions?since=1d&kind=failed&limit=1");
    assert_eq!(
        (&did["people"][0]["counts"]["started"], &did["entries"][0]["kind"]),
        (&json!(2), &json!("failed"))
    );
    // Tokens, people and the audit.
    let body = json!({"person": "bob", "role": "reader", "name": "CI 50% é", "expires": "30d"});
    let made = local.expect_ok("POST", "/team/tokens", body);
    assert!(made["token"].as_str().unwrap().starts_with("tnm_"), "{made}");
    compare_team_answer("POST /team/tokens", &made);
    let id = made["id"].as_str().unwrap();
    assert!(names(&get("/team/tokens?person=bob")["tokens"], "name").contains(&String::from("CI 50% é")));
    let rotated = local.expect_ok("POST", &format!("/team/tokens/{id}/rotate"), json!({"overlap": "1h"}));
    let path = format!("/team/tokens/{}", rotated["id"].as_str().unwrap());
    assert_eq!(local.expect_ok("DELETE", &path, Value::Null)["revoked"], true);
    let unknown = local.expect_error("POST", "/team/people/no%20one%2F/disable", json!({}), 400);
    assert_eq!(unknown["code"], "PERSON_NOT_FOUND", "{unknown}");
    assert_eq!(local.expect_ok("POST", "/team/people/bob/disable", json!({}))["disabled"], true);
    let audit = get("/team/audit?what=person_disabled");
    assert_eq!(
        (&audit["entries"][0]["person"], &audit["entries"][0]["ip"]),
        (&json!("ada"), &json!("127.0.0.1"))
    );
}

#[test]
fn machine_of_reader_sees_people_and_no_tokens() {
    let Some(team) = Team::new() else { return };
    let remote = team.serve();
    let rita = machine(&remote, &team.token("rita", "reader"), "tablet");
    let local = Server::start(&rita);
    let get = |path: &str| local.expect_ok("GET", path, Value::Null);
    assert_eq!(names(&get("/team/people")["people"], "name"), ["ada", "rita"]);
    assert_eq!(get("/team/contributions")["people"], json!([]));
    for (method, path, body) in [
        ("GET", "/team/tokens", Value::Null),
        ("GET", "/team/audit", Value::Null),
        ("POST", "/team/tokens", json!({"person": "rita", "role": "reader"})),
        ("DELETE", "/team/tokens/x", Value::Null),
        ("POST", "/team/people/ada/disable", json!({})),
    ] {
        let refused = local.send_request(method, path, &[], &body);
        assert_eq!((refused.status, error_code(&refused).as_str()), (403, "FORBIDDEN"), "{method} {path}");
    }
    // A project that has not joined.
    let alone = TestEnv::new();
    alone.init();
    let local = Server::start(&alone);
    assert_eq!(local.expect_error("GET", "/team/people", Value::Null, 400)["code"], "NOT_JOINED");
    assert!(local.expect_ok("GET", "/projects", Value::Null).get("joined").is_none());
}

#[test]
fn presence_is_as_last_told_while_server_is_away() {
    let Some(team) = Team::new() else { return };
    let remote = team.serve();
    let ada = TestEnv::new();
    join(&ada, &remote, &team.admin, "laptop");
    let workspace = ada.init();
    let bob = machine(&remote, &team.token("bob", "member"), "desktop");
    let node = bob.node("root", "execution", "Held by bob");
    bob.ok(&["start", &node]);
    ada.ok(&["team", "sync"]);
    // The beat of a server process tells who works on what.
    let local = Server::start(&ada);
    let file = super::machines::replica(&ada).join("presence.json");
    super::live::eventually("the beat", || {
        std::fs::read_to_string(&file).is_ok_and(|told| told.contains("Held by bob"))
    });
    remote.kill();
    let mut presence = local.expect_ok("GET", "/team/presence", Value::Null);
    // The page takes the time from `toldAt`.
    let fields = presence.as_object_mut().unwrap();
    for field in ["stale", "asOf", "age"] {
        assert!(fields.remove(field).is_some(), "{field}");
    }
    compare_team_answer("GET /team/presence", &presence);
    let held = &presence["presence"][0];
    // A person without a session holds the node.
    assert_eq!((&held["person"], &held["session"]), (&json!("bob"), &Value::Null), "{presence}");
    assert_eq!((&held["nodeTitle"], &held["workspaceId"]), (&json!("Held by bob"), &json!(workspace)));
    assert_eq!(held["workspaceName"], "Auth");
    assert!(presence["toldAt"].as_i64().unwrap() > 0, "{presence}");
    assert_eq!(local.expect_ok("GET", "/team/presence?person=ada", Value::Null)["presence"], json!([]));
    for path in ["/team/people", "/team/contributions", "/team/tokens", "/team/audit"] {
        assert_eq!(local.expect_error("GET", path, Value::Null, 503)["code"], "TEAM_UNREACHABLE", "{path}");
    }
    local.expect_ok("GET", &format!("/workspaces/{workspace}/nodes/{node}"), Value::Null);
}

#[test]
fn logs_of_joined_project_say_that_their_times_are_utc() {
    let Some(team) = Team::new() else { return };
    let remote = team.serve();
    let ada = machine(&remote, &team.admin, "laptop");
    let workspace = ada.init();
    let node = ada.node("root", "execution", "Build");
    let local = Server::start(&ada);
    let paths = [format!("/workspaces/{workspace}"), format!("/workspaces/{workspace}/nodes/{node}")];
    for path in &paths {
        assert_eq!(local.expect_ok("GET", path, Value::Null)["isUtc"], true, "{path}");
    }
    let alone = TestEnv::new();
    let workspace = alone.init();
    let local = Server::start(&alone);
    let detail = local.expect_ok("GET", &format!("/workspaces/{workspace}"), Value::Null);
    assert!(detail.get("isUtc").is_none(), "{detail}");
}
