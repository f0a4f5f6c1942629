//! Agents of two people in real clients. Each has a home of its own, set up with `tanmi install` and
//! `tanmi team join`; one server keeps the project of both.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Agent;
use super::conversation::Conversation;
use crate::env::TestEnv;
use crate::serve::Server;
use crate::team::{Team, machines};

/// The longest wait for something that another process does.
const SOON: Duration = Duration::from_secs(60);

/// Two homes of one team, and a workspace with a task that both have.
struct Homes {
    team: Team,
    _server: Server,
    ada: Agent,
    bo: Agent,
    workspace: String,
    node: String,
}

impl Homes {
    /// Ada has Claude Code, Bo the client `id`. Returns `None` where a client or PostgreSQL is not installed.
    fn new(id: &'static str) -> Option<Homes> {
        let (ada, mut bo) = (Agent::new("claude-code")?, Agent::new(id)?);
        begin_session(&mut bo, "7");
        let team = Team::new()?;
        let server = team.serve();
        machines::join(&ada.env, &server, &team.admin, "laptop-a");
        let workspace = ada.env.init();
        let node = ada.env.node("root", "execution", "Build");
        machines::join(&bo.env, &server, &team.token("bo", "member"), "laptop-b");
        Some(Homes { team, _server: server, ada, bo, workspace, node })
    }

    /// Returns the step that binds a session.
    fn bind(&self) -> String {
        step("session_bind", json!({"workspaceId": self.workspace}))
    }

    /// Returns the session that holds the node in the database.
    fn holder(&self) -> String {
        let sql = format!("SELECT holder FROM node WHERE id = '{}'", self.node);
        self.team.cluster.sql(&sql).unwrap().trim().to_owned()
    }
}

/// Makes the next turn the first one of another session.
fn begin_session(agent: &mut Agent, digit: &str) {
    let digits = digit.repeat(4);
    agent.session = agent.session.take().map(|_| format!("0a1b2c3d-{digits}-4222-8333-444455556666"));
    agent.model.clear_requests();
}

/// Returns the step of a prompt that calls a tool.
fn step(tool: &str, args: Value) -> String {
    format!("[[tool {tool} {args}]]")
}

fn last_request(agent: &Agent) -> String {
    agent.model.request_texts().pop().unwrap_or_default()
}

/// Asserts that a request has a text once.
fn assert_told_once(request: &str, text: &str) {
    let told: Vec<&str> = request.lines().filter(|line| line.len() < 700).collect();
    assert_eq!(
        request.matches(text).count(),
        1,
        "{text}\n{}",
        told[told.len().saturating_sub(15)..].join("\n")
    );
}

/// Waits until a condition holds.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns whether the memory on this machine has a fact about a word.
fn knows(env: &TestEnv, word: &str) -> bool {
    !env.json(&["memory", "search", word])["results"].as_array().unwrap().is_empty()
}

#[test]
fn node_of_agent_is_refused_to_another_home_until_its_client_was_killed() {
    let Some(mut homes) = Homes::new("claude-code") else { return };
    let (node, session) = (homes.node.clone(), homes.ada.session.clone().unwrap());
    let start = step("node_transition", json!({"nodeId": node, "action": "start"}));
    let mut first = Conversation::start(&homes.ada, false);
    let output = first.say(&format!("Begin. {} {start}", homes.bind()));
    assert_eq!(homes.holder(), session, "{output}");

    homes.bo.turn(&format!("Begin. {} {start}", homes.bind()), false);
    let refused = last_request(&homes.bo);
    assert_told_once(
        &refused,
        &format!("NODE_TAKEN: node {node} is held by ada on laptop-a · Claude Code (since"),
    );
    assert_told_once(&refused, "\nchoose another node, or ask the user");
    homes.bo.env.ok(&["team", "sync"]);
    homes.bo.turn("What now?", true);
    let focus = format!(
        "Focused node: Build (implementing) {node}\nHeld by: ada (laptop-a · Claude Code); node_next"
    );
    assert_told_once(&last_request(&homes.bo), &focus);

    assert!(first.kill() > 1, "the client and its MCP server");
    homes.team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    let output = homes.bo.turn(&format!("Try again. {start}"), true);
    assert_eq!(homes.holder(), *homes.bo.session.as_ref().unwrap(), "{output}");

    let complete = json!({"nodeId": node, "action": "complete", "conclusion": "built"});
    let args = ["node", "transition", &node, "--action", "complete", "--conclusion", "built", "--session"];
    let error = homes.ada.env.error(&[&args[..], &[&session]].concat());
    assert_eq!(error["code"], "CLAIM_LOST", "{error}");
    let mut resumed = Conversation::start(&homes.ada, true);
    resumed.say("Hello.");
    let lost = format!("You no longer hold node “Build” ({node}): bo (laptop-b · Claude Code) took it over.");
    let state = homes.ada.env.home_store().join(format!("state/{session}.json"));
    eventually("the session learns that it lost the node", || {
        last_request(&homes.ada).contains(&lost)
            || std::fs::read_to_string(&state).unwrap().contains("lostClaims")
    });
    resumed.say(&format!("Go on. {}", step("node_transition", complete)));
    let told = last_request(&homes.ada);
    assert_told_once(&told, &lost);
    let refused = format!(
        "CLAIM_LOST: your claim on node {node} ended; it is held by bo on laptop-b · Claude Code now\n"
    );
    assert_told_once(&told, &format!("{refused}choose another node, or ask the user"));
    resumed.finish();
    assert_eq!(homes.holder(), *homes.bo.session.as_ref().unwrap());

    begin_session(&mut homes.ada, "2");
    homes.ada.turn("continue where we left off", false);
    let told = last_request(&homes.ada);
    assert_told_once(&told, &format!("In progress: Build (implementing) {node}; "));
    assert_told_once(&told, "; started by bo (laptop-b · Claude Code) ");
}

#[test]
fn rule_of_one_home_is_in_next_request_of_another() {
    let Some(mut homes) = Homes::new("claude-code") else { return };
    let mut ada = Conversation::start(&homes.ada, false);
    ada.say(&format!("Begin. {}", homes.bind()));
    ada.say("Look around.");
    let rule = "Never log a token";
    let update = step("workspace_update", json!({"workspaceId": homes.workspace, "addRules": [rule]}));
    let output = homes.bo.turn(&format!("Add a rule. {update}"), false);
    let workspace = homes.workspace.clone();
    eventually(&format!("the rule arrives: {output}"), || {
        homes.ada.env.ok(&["workspace", "show", &workspace]).contains(rule)
    });
    assert!(!last_request(&homes.ada).contains(rule));
    ada.say("Go on.");
    let told = last_request(&homes.ada);
    assert_told_once(&told, "Rules changed (rulesHash ");
    assert_told_once(&told, &format!("+ {rule}\n"));
    ada.finish();
}

/// Saves a fact with the agent of one home.
fn save_fact(ada: &mut Agent) {
    ada.turn(
        &format!("Save. {}", step("memory_save", json!({"content": "The cache is Redis 7", "type": "W"}))),
        false,
    );
}

#[test]
fn fact_of_one_home_is_found_and_told_with_its_author_by_another() {
    let Some(mut homes) = Homes::new("claude-code") else { return };
    let mut bo = Conversation::start(&homes.bo, false);
    bo.say("Hello.");
    save_fact(&mut homes.ada);
    eventually("the fact arrives", || knows(&homes.bo.env, "redis"));
    bo.say(&format!("Search. {}", step("memory_search", json!({"query": "redis"}))));
    assert_told_once(&last_request(&homes.bo), r#""author":{"person":"ada","machine":"laptop-a"}"#);
    bo.finish();
    begin_session(&mut homes.bo, "8");
    homes.bo.turn("Hello.", false);
    assert_told_once(&last_request(&homes.bo), "[W][by ada] The cache is Redis 7");
    begin_session(&mut homes.ada, "2");
    homes.ada.turn("Hello.", false);
    assert_told_once(&last_request(&homes.ada), "[W] The cache is Redis 7");
}

/// A fact of Claude Code in one home, in another client in the other home.
fn check_fact_in(id: &'static str) {
    let Some(mut homes) = Homes::new(id) else { return };
    save_fact(&mut homes.ada);
    homes.bo.env.ok(&["team", "sync"]);
    homes.bo.turn(&format!("Search. {}", step("memory_search", json!({"query": "redis"}))), false);
    let told = homes.bo.model.request_texts();
    assert_told_once(&told[0], "[W][by ada] The cache is Redis 7");
    assert!(
        told.last().unwrap().replace('\\', "").contains(r#""author":{"person":"ada""#),
        "{}",
        told.last().unwrap()
    );
}

#[test]
fn fact_of_claude_code_is_told_with_its_author_in_codex() {
    check_fact_in("codex");
}

#[test]
fn fact_of_claude_code_is_told_with_its_author_in_gemini_cli() {
    check_fact_in("gemini-cli");
}
