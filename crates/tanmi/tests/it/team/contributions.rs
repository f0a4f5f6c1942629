//! Who did what in a project of a team.

use serde_json::{Value, json};

use super::machines::{join, machine};
use super::{Team, create_workspace, error_code, send_as};
use crate::env::TestEnv;
use crate::serve::{Response, Server};

/// Asks the API below `/api/v1/team/` of the server of the team.
fn ask(server: &Server, token: &str, path: &str) -> Response {
    let authorization = format!("Bearer {token}");
    let headers = [("Host", "team"), ("Authorization", authorization.as_str())];
    server.send_with_headers("GET", &format!("/api/v1/team/{path}"), &headers, "")
}

fn contributions(server: &Server, token: &str, query: &str) -> Value {
    let response = ask(server, token, &format!("contributions?{query}"));
    assert_eq!(response.status, 200, "{query}: {}", response.body);
    response.json()
}

/// Returns the kinds and the titles of the entries.
fn entries(answer: &Value) -> Vec<(&str, &str)> {
    let all = answer["entries"].as_array().unwrap();
    all.iter()
        .map(|entry| (entry["kind"].as_str().unwrap(), entry["title"].as_str().unwrap_or("–")))
        .collect()
}

/// Lets a person work on a machine: a node completed, one failed, with a log entry, a problem and a fact.
pub fn work(env: &TestEnv, person: &str) -> (String, String) {
    let good = env.node("root", "execution", &format!("Good work of {person}"));
    let bad = env.node("root", "execution", &format!("Bad work of {person}"));
    env.ok(&["start", &good]);
    env.ok(&["log", "--node", &good, "half done"]);
    env.ok(&["done", &good, "--conclusion", "it works"]);
    env.ok(&["start", &bad]);
    env.ok(&["problem", "--node", &bad, "no access"]);
    env.ok(&["fail", &bad, "-c", "no access"]);
    env.ok(&["memory", "save-fact", "--type", "W", &format!("The port of {person} is 8080")]);
    (good, bad)
}

#[test]
fn contributions_count_work_of_each_person_and_link_to_it() {
    let Some(team) = Team::new() else { return };
    let (server, reader) = (team.serve(), team.token("rita", "reader"));
    let ada = TestEnv::new();
    join(&ada, &server, &team.admin, "laptop");
    let workspace = ada.init();
    let (good, _) = work(&ada, "ada");
    let bob = machine(&server, &team.token("bob", "member"), "desktop");
    let started = bob.node("root", "execution", "Next one");
    bob.ok(&["start", &started]);
    bob.ok(&["log", "--node", "workspace", "--workspace", &workspace, "over to me"]);
    let all = contributions(&server, &reader, "since=1d");
    assert_eq!(
        all["people"],
        json!([
            {"name": "ada", "counts": {"started": 2, "completed": 1, "failed": 1, "log": 1, "problem": 1, "fact": 1}},
            {"name": "bob", "counts": {"started": 1, "log": 1}},
        ])
    );
    assert_eq!(
        entries(&all),
        [
            ("log", "Auth"),
            ("started", "Next one"),
            ("fact", "The port of ada is 8080"),
            ("failed", "Bad work of ada"),
            ("problem", "Bad work of ada"),
            ("started", "Bad work of ada"),
            ("completed", "Good work of ada"),
            ("log", "Good work of ada"),
            ("started", "Good work of ada"),
        ]
    );
    let completed = contributions(&server, &reader, "since=1d&person=ada&kind=completed");
    let entry = &completed["entries"][0];
    assert_eq!((&entry["workspaceId"], &entry["nodeId"]), (&json!(workspace), &json!(good)));
    assert_eq!((&entry["person"], &entry["machine"]), (&json!("ada"), &json!("laptop")));
    assert!(completed["since"].as_i64() < entry["at"].as_i64(), "{completed}");
    assert_eq!(completed["people"], all["people"], "the numbers are of the whole time");
    let fact = &contributions(&server, &reader, "kind=fact")["entries"][0];
    assert!(fact["factId"].is_string() && fact["workspaceId"].is_null(), "{fact}");
    // Pages.
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = contributions(&server, &reader, &format!("limit=4{before}"));
        seen.extend(page["entries"].as_array().unwrap().iter().map(|entry| entry["id"].clone()));
        if page["hasMore"] == false {
            break;
        }
        before = format!("&before={}", seen.last().unwrap().as_str().unwrap());
    }
    let ids: Vec<Value> =
        all["entries"].as_array().unwrap().iter().map(|entry| entry["id"].clone()).collect();
    assert_eq!(seen, ids);
    // A time, and what is gone.
    assert_eq!(contributions(&server, &reader, "since=2020-01-01&until=2020-01-02")["people"], json!([]));
    assert_eq!(contributions(&server, &reader, "until=1h")["entries"], json!([]));
    ada.ok(&["node", "delete", &good]);
    assert_eq!(contributions(&server, &reader, "kind=completed")["entries"][0]["title"], Value::Null);
}

#[test]
fn contributions_of_other_projects_and_former_servers_are_not_told() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = TestEnv::new();
    join(&ada, &server, &team.admin, "laptop");
    ada.init();
    work(&ada, "ada");
    let eve = team.setup("other", "eve");
    let authorized = send_as(&server, &eve, "GET", "other/feed", &[], &Value::Null);
    assert_eq!(authorized.status, 200);
    assert_eq!(contributions(&server, &eve, "project=other")["people"], json!([]));
    assert_eq!(ask(&server, &eve, "contributions?project=shop").status, 404);
    // A server of the former version does not say what a change was.
    team.cluster.sql("UPDATE change SET what = NULL").unwrap();
    assert_eq!(contributions(&server, &team.admin, "")["people"], json!([]));
    for bad in ["since=soon", "until=x", "kind=made", "colour=red"] {
        let refused = ask(&server, &team.admin, &format!("contributions?{bad}"));
        assert_eq!((refused.status, error_code(&refused).as_str()), (400, "INVALID_ARGUMENT"), "{bad}");
    }
    assert_eq!(contributions(&server, &team.admin, "before=nothing:x")["entries"], json!([]));
    create_workspace(&server, "one-more");
    assert_eq!(
        contributions(&server, &team.admin, "")["people"],
        json!([]),
        "a new workspace does not count"
    );
}
