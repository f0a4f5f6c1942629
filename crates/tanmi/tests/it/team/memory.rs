//! The memory of a team: what people share with their names, what stays on a machine, and what waits for the server.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tanmi_team::{Connection, Membership, TeamMemory};

use super::machines::machine;
use super::{Team, create_task};
use crate::crash_safety::{CALLS, has_strace, kill_at_call};
use crate::env::TestEnv;
use crate::serve::Server;

fn save(env: &TestEnv, letter: &str, text: &str) -> Value {
    env.json(&["memory", "save-fact", text, "--type", letter])
}

fn search(env: &TestEnv, text: &str) -> Vec<Value> {
    env.json(&["memory", "search", text])["results"].as_array().unwrap().clone()
}

/// Returns how often the database has a line with this text.
fn stored(team: &Team, text: &str) -> String {
    let sql = format!("SELECT count(*) FROM memory WHERE line LIKE '%{text}%'");
    team.cluster.sql(&sql).unwrap().trim().to_owned()
}

/// Returns what a session start tells on a machine.
fn start_session(env: &TestEnv, session: &str) -> String {
    let mut command = env.command(&["hook", "claude-code"]);
    let payload = json!({"hook_event_name": "SessionStart", "session_id": session, "source": "startup",
        "cwd": env.project});
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), &payload).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the folder of what stays on a machine.
fn private_folder(env: &TestEnv) -> PathBuf {
    let mut found = std::fs::read_dir(env.home_store().join("team-private")).unwrap();
    found.next().unwrap().unwrap().path()
}

#[test]
fn fact_of_one_person_is_found_and_told_with_author_by_another() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let bob = machine(&server, &team.token("bob", "member"), "desktop");
    save(&ada, "W", "The cache is Redis 7");
    save(&ada, "O", "Prefers short answers about caches");
    ada.ok(&["memory", "save-summary", "--topic", "Caches", "--summary", "Compared two caches"]);
    let own = search(&ada, "redis");
    assert!(own[0].get("author").is_none() && own[0].get("queued").is_none(), "{own:?}");
    assert_eq!(search(&ada, "short answers")[0]["type"], "O", "one search covers both");

    assert_eq!(search(&bob, "redis"), Vec::<Value>::new());
    bob.ok(&["team", "sync"]);
    let found = search(&bob, "redis");
    assert_eq!(found[0]["author"], json!({"person": "ada", "machine": "laptop"}), "{found:?}");
    assert!(bob.ok(&["memory", "search", "redis"]).contains("— ada"));
    assert_eq!(search(&bob, "short answers"), Vec::<Value>::new(), "a preference stays on its machine");
    assert_eq!(stored(&team, "short answers"), "0");
    let told = start_session(&bob, "bob-1");
    assert!(told.contains("[W][by ada] The cache is Redis 7"), "{told}");
    assert!(told.contains("Last session (by ada)"), "{told}");
    let told = start_session(&ada, "ada-1");
    assert!(told.contains("[W] The cache is Redis 7") && told.contains("[O] Prefers"), "{told}");
    assert!(!told.contains("by ada"), "{told}");
    assert_eq!(stored(&team, "session_start"), "0");

    let id = found[0]["id"].as_str().unwrap();
    bob.ok(&["memory", "forget", id]);
    ada.ok(&["team", "sync"]);
    assert_eq!(search(&ada, "redis"), Vec::<Value>::new(), "forgotten for all");
    ada.ok(&["memory", "restore", id]);
    ada.ok(&["memory", "promote", id]);
    bob.ok(&["memory", "sync"]);
    assert_eq!(search(&bob, "redis").len(), 1, "others keep a fact that one person promotes");
    let replica =
        |env: &TestEnv| env.files(&super::machines::replica(env).join(".tanmi-workspace/memory/daily"));
    let lines = |text: String| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    ada.ok(&["team", "sync"]);
    assert_eq!(lines(replica(&ada)), lines(replica(&bob)));
}

#[test]
fn writes_without_server_wait_are_reported_and_delivered_once() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    ada.init();
    let node = ada.node("root", "execution", "Build");
    let (port, _) = (server.port, drop(server));
    let saved = save(&ada, "W", "The cache is Redis 7");
    assert_eq!(saved["queued"], true, "{saved}");
    assert!(saved["notice"].as_str().unwrap().contains("server is away"), "{saved}");
    let found = search(&ada, "redis");
    assert_eq!((found.len(), &found[0]["queued"]), (1, &json!(true)), "{found:?}");
    assert_eq!(save(&ada, "W", "The cache is Redis 7")["duplicate"], true, "a repeated call");
    let logged = ada.json(&["log", "tried it", "--node", &node]);
    assert_eq!((&logged["queued"], &logged["total"]), (&json!(true), &json!(1)), "{logged}");
    let summary = ["memory", "save-summary", "--topic", "Caches", "--summary", "Compared"];
    assert_eq!(ada.json(&summary)["queued"], true);
    assert!(save(&ada, "O", "Prefers tabs").get("queued").is_none(), "private memory needs no server");
    assert_eq!(ada.error(&["start", &node])["code"], "TEAM_UNREACHABLE");
    assert_eq!(
        ada.error(&["memory", "forget", found[0]["id"].as_str().unwrap()])["code"],
        "TEAM_UNREACHABLE"
    );

    let list = ada.json(&["team", "outbox", "list"]);
    let kinds: Vec<&Value> = list["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["fact", "log", "summary"], "{list}");
    assert_eq!(ada.json(&["team", "outbox", "list", "--limit", "1"])["entries"].as_array().unwrap().len(), 1);
    for args in [&["status"][..], &["node", "list"], &["memory", "list"]] {
        let read = ada.json(args);
        assert_eq!((&read["stale"], read["asOf"].is_string()), (&json!(true), true), "{args:?}: {read}");
    }
    assert!(ada.run(&["memory", "list"]).stderr.contains("tanmi team sync"));

    let server = Server::start_team_on(&team.env, &team.cluster.address(), &team.admin, port);
    let synced = ada.json(&["team", "sync"]);
    assert_eq!((&synced["delivered"], &synced["undelivered"]), (&json!(3), &json!(0)), "{synced}");
    assert_eq!(ada.json(&["team", "outbox", "list"])["total"], 0);
    assert_eq!(ada.json(&["team", "sync"])["delivered"], 0);
    assert_eq!(stored(&team, "Redis 7"), "1");
    let found = search(&ada, "redis");
    assert!(found.len() == 1 && found[0].get("queued").is_none(), "{found:?}");
    let log = ada.ok(&["log", "--node", &node]);
    assert_eq!(log.matches("tried it").count(), 1, "{log}");
    assert!(ada.json(&["memory", "list"]).get("stale").is_none());
    ada.tick(25 * 60 * 60 * 1000);
    assert_eq!(ada.json(&["memory", "list"])["stale"], true, "a long time without contact");
    assert!(start_session(&ada, "ada-2").contains("the server was not reached since"));
    drop(server);
}

#[test]
fn refused_write_is_told_once_and_kept() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let port = server.port;
    drop(server);
    save(&ada, "W", "The cache is Redis 7");
    let outbox = private_folder(&ada).join("outbox");
    let bad = json!({"type": "queued", "at": 1, "key": "machine-bad-entry-1", "line": "{}"}).to_string();
    ada.write(&outbox.join("0000000000-first.json"), bad.as_bytes());
    let _server = Server::start_team_on(&team.env, &team.cluster.address(), &team.admin, port);
    let synced = ada.json(&["team", "sync"]);
    assert_eq!((&synced["delivered"], &synced["undelivered"]), (&json!(1), &json!(1)), "{synced}");
    let list = ada.json(&["team", "outbox", "list", "--state", "undelivered"]);
    assert_eq!(list["entries"][0]["code"], "INVALID_ARGUMENT", "{list}");
    assert!(!ada.run(&["status"]).stderr.contains("refused"), "the command that delivered it told it");
    let retried = ada.run(&["team", "outbox", "retry", "--json"]);
    assert!(retried.stdout.contains("\"undelivered\":1") || retried.stdout.contains("\"undelivered\": 1"));
    assert!(retried.stderr.contains("tanmi team outbox list"), "{}", retried.stderr);
    assert_eq!(ada.error(&["team", "outbox", "discard", "nothing"])["code"], "INVALID_ARGUMENT");
    assert_eq!(ada.json(&["team", "outbox", "discard"])["discarded"], 1);
    assert_eq!(ada.json(&["team", "outbox", "list"])["total"], 0);
}

#[test]
fn refused_log_line_is_told_to_its_session_at_next_prompt_and_kept() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let workspace = ada.init();
    let agent = crate::agent::Agent::claude(&ada, "ada-1");
    let other = crate::agent::Agent::claude(&ada, "ada-2");
    for agent in [&agent, &other] {
        agent.start("startup");
        ada.ok(&["session", "bind", "--session", &agent.session, "--workspace", &workspace]);
        agent.prompt("go");
    }
    let port = server.port;
    drop(server);
    let in_session = |args: &[&str]| {
        let mut command = ada.command(args);
        command.arg("--json").env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "ada-1").output().unwrap()
    };
    let logged = in_session(&["log", "tried it", "--node", "root"]);
    assert!(String::from_utf8_lossy(&logged.stdout).contains("queued"), "{logged:?}");
    let server = Server::start_team_on(&team.env, &team.cluster.address(), &team.admin, port);
    let archive = json!({"command": "archive_workspace"});
    super::ok(&server, "POST", "run", &super::run_body("archive-1", &workspace, archive));
    assert_eq!(ada.json(&["team", "sync"])["undelivered"], 1);
    let told = agent.prompt("go on");
    assert!(told.contains("refused your queued write “tried it”") && told.contains("archived"), "{told}");
    assert!(!agent.prompt("go on").contains("refused"), "told once");
    assert!(!other.prompt("go on").contains("refused"), "another session wrote it");
    assert_eq!(ada.json(&["team", "outbox", "list", "--state", "undelivered"])["total"], 1, "it stays");
    // A call of the session that tells it comes instead of the prompt.
    let retried = in_session(&["team", "outbox", "retry"]);
    assert!(String::from_utf8_lossy(&retried.stderr).contains("refused 1 queued write"), "{retried:?}");
    assert!(!agent.prompt("go on").contains("refused"));
    assert_eq!(ada.json(&["team", "outbox", "discard"])["discarded"], 1);
}

#[test]
fn queued_log_line_has_time_at_which_it_was_written() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    ada.init();
    let port = server.port;
    drop(server);
    ada.ok(&["log", "tried it", "--node", "root"]);
    ada.tick(60 * 60 * 1000);
    let _server = Server::start_team_on(&team.env, &team.cluster.address(), &team.admin, port);
    ada.ok(&["team", "sync"]);
    ada.ok(&["log", "tried again", "--node", "root"]);
    let log = ada.json(&["log", "--node", "root"]);
    let entries = log["entries"].as_array().unwrap();
    let [.., first, last] = entries.as_slice() else { panic!("{log}") };
    assert_eq!((&first["event"], &last["event"]), (&json!("tried it"), &json!("tried again")), "{log}");
    // The clock of this machine is years behind that of the database, and only the age counts.
    let sql = "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC' - interval '55 minutes', 'YYYY-MM-DD HH24:MI:SS')";
    let limit = team.cluster.sql(sql).unwrap().trim().to_owned();
    let stamp = |entry: &Value| entry["timestamp"].as_str().unwrap().to_owned();
    assert!(stamp(first) < limit && limit < stamp(last), "{limit}: {log}");
    assert_eq!(stamp(first)[..4], limit[..4], "{limit}: {log}");
}

#[test]
fn read_after_a_minute_without_contact_says_how_old_it_is() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    ada.init();
    ada.tick(59_000);
    let commands = [&["status"][..], &["next"], &["tree"]];
    for args in commands {
        assert!(ada.json(args).get("stale").is_none(), "{args:?}");
        assert!(!ada.run(args).stderr.contains("team sync"), "{args:?}");
    }
    ada.tick(301_000);
    for args in commands {
        let read = ada.json(args);
        assert_eq!((&read["stale"], &read["age"]), (&json!(true), &json!(360)), "{args:?}: {read}");
        let shown = ada.run(args).stderr;
        assert!(shown.contains("6 min old") && shown.contains("tanmi team sync"), "{args:?}: {shown}");
    }
    ada.ok(&["team", "sync"]);
    assert!(ada.json(&["status"]).get("stale").is_none());
    drop(server);
}

#[test]
fn queueing_killed_at_every_call_loses_nothing_acknowledged() {
    let Some(team) = Team::new() else { return };
    if !has_strace() {
        return;
    }
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    drop(server);
    save(&ada, "O", "Prefers tabs");
    let outbox = private_folder(&ada).join("outbox");
    let args = ["memory", "save-fact", "The cache is Redis 7", "--type", "W", "--json"];
    let mut kills = 0;
    // Opening a file changes nothing that the other calls do not.
    for call in CALLS.iter().filter(|call| **call != "openat") {
        for nth in 1..60 {
            let _ = tanmi_base::fs::remove_tree(&outbox);
            let Some(stdout) = kill_at_call(&ada, call, nth, &args) else { break };
            kills += 1;
            let what = format!("before {call} #{nth}: {stdout}");
            let total = ada.json(&["team", "outbox", "list"])["total"].as_u64().unwrap();
            assert!(total <= 1 && (total == 1 || stdout.is_empty()), "{what}");
            assert_eq!(search(&ada, "redis").len() as u64, total, "{what}");
            assert_eq!(search(&ada, "tabs").len(), 1, "{what}");
        }
    }
    assert!(kills > 10, "only {kills} kills: does the injection work?");
}

#[test]
fn contract_steps_over_http_have_the_same_results() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = TestEnv::new();
    super::machines::join(&ada, &server, &team.admin, "laptop");
    let home = ada.root().join("other-home");
    let member = Membership::new(&ada.home_store()).all().unwrap().remove(0);
    let clock = || tanmi_memory::contract::NOW;
    let connection = Arc::new(Connection::new(&member, &member.replica(&home), clock));
    let memory = TeamMemory::new(&member, &home, connection, clock);
    tanmi_memory::contract::check("team", &memory, true);
    assert_eq!(memory.person(), "ada");
    // Documents of a workspace beside it do not disturb the stream of the memory.
    super::ok(
        &server,
        "POST",
        "run",
        &super::run_body("task-0001", &super::create_workspace(&server, "ws-1"), create_task("Build")),
    );
    memory.exchange().unwrap();
}
