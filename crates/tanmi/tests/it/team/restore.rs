//! A database that was restored from a backup: machines may have changes that it no longer has.

use super::machines::{documents, machine, replica};
use super::{Team, write_file};
use crate::env::TestEnv;
use crate::serve::Server;

/// Copies the database while no server uses it, as a dump and a restore do. Returns the address of the copy.
fn restore(team: &Team, name: &str) -> String {
    team.cluster.sql(&format!("CREATE DATABASE {name} TEMPLATE postgres")).unwrap();
    team.cluster.address().replace("dbname=postgres", &format!("dbname={name}"))
}

fn save(env: &TestEnv, fact: &str) {
    env.ok(&["memory", "save-fact", fact, "--type", "W"]);
}

fn facts(env: &TestEnv) -> Vec<String> {
    let listed = env.json(&["memory", "list"]);
    let content = |row: &serde_json::Value| row["content"].as_str().unwrap().to_owned();
    let mut facts: Vec<String> = listed["results"].as_array().unwrap().iter().map(content).collect();
    facts.sort();
    facts
}

#[test]
fn sync_after_a_restore_replaces_what_the_server_lost() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let port = server.port;
    let ada = machine(&server, &team.admin, "laptop");
    ada.init();
    let plan = ada.root().join("plan.md");
    write_file(&plan, "- Design\n- Cart\n").unwrap();
    ada.ok(&["plan", &plan.display().to_string()]);
    save(&ada, "the shop sells tea");
    let bob = machine(&server, &team.token("bob", "member"), "desktop");
    drop(server);
    let restored = restore(&team, "restored");
    // After the backup ada makes a change and saves a fact; both are lost.
    let server = Server::start_team_on(&team.env, &team.cluster.address(), &team.admin, port);
    ada.ok(&["start", "Design"]);
    save(&ada, "the shop sells coffee");
    drop(server);
    let _server = Server::start_team_on(&team.env, &restored, &team.admin, port);
    // Bob makes as many changes, so the numbers of both are equal.
    bob.ok(&["team", "sync"]);
    bob.ok(&["start", "Cart"]);
    save(&bob, "the shop sells cocoa");
    ada.ok(&["team", "sync"]);
    assert_eq!(documents(&replica(&ada)), documents(&replica(&bob)));
    assert_eq!(facts(&ada), ["the shop sells cocoa", "the shop sells tea"]);
    let again = ada.json(&["team", "sync"]);
    assert_eq!(again["fetched"], 0, "{again}");
}
