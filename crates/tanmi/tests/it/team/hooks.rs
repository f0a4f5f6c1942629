//! Hooks in a joined project: they read the replica and never use the network.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tanmi_event::Platform;
use tanmi_platform::CLIENTS;

use super::machines::machine;
use super::{Team, write_file};
use crate::agent::{Agent, check_response, schema};
use crate::env::TestEnv;
use crate::silence::recorded_payloads;

/// Runs the program under `strace`. Returns its output and its system calls for files and the network.
fn trace(env: &TestEnv, args: &[&str], input: &str) -> (Output, String) {
    let calls = env.root().join("trace");
    let mut command = env.command_in("strace", &env.project);
    command.args(["-f", "-qq", "--seccomp-bpf", "-e", "trace=%network,%file", "-o"]).arg(&calls);
    command.arg(env!("CARGO_BIN_EXE_tanmi")).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    (output, std::fs::read_to_string(calls).unwrap())
}

fn has_socket(calls: &str) -> bool {
    calls.contains("socket(") || calls.contains("connect(")
}

/// Returns a payload of every event of a client: the recorded ones, and for the other events that its schemas
/// name, one that is made from the recorded start of a session.
fn payloads(platform: &Platform, session: &str, env: &TestEnv) -> Vec<(String, Value)> {
    let mut payloads: Vec<(String, Value)> = recorded_payloads(platform, session, &env.project)
        .into_iter()
        .map(|(file, payload)| (file.split('.').next().unwrap().to_owned(), payload))
        .collect();
    let recorded: BTreeSet<String> = payloads.iter().map(|(event, _)| event.clone()).collect();
    let (_, start) =
        payloads.iter().find(|(event, _)| event.eq_ignore_ascii_case("SessionStart")).unwrap().clone();
    for entry in std::fs::read_dir(schema::folder().join(platform.id)).unwrap().flatten() {
        let file = entry.file_name().into_string().unwrap();
        let Some(event) = file.strip_suffix(".in.json").filter(|event| !recorded.contains(*event)) else {
            continue;
        };
        let mut payload = start.clone();
        if let Some(name) = payload.get_mut("hook_event_name") {
            *name = json!(event);
        }
        payloads.push((event.to_owned(), payload));
    }
    let transcript = env.root().join("transcript.jsonl");
    for path in payloads.iter_mut().filter_map(|(_, payload)| payload.get_mut("transcript_path")) {
        *path = json!(transcript);
    }
    payloads
}

/// Sends every event of every client, from a bound and an unbound session. Returns the events whose hook
/// printed something.
fn trace_all(env: &TestEnv, workspace: &str, node: &str) -> BTreeSet<(&'static str, String)> {
    let mut spoken = BTreeSet::new();
    for platform in CLIENTS.iter().map(|client| client.platform) {
        for session in ["bound", "unbound"].map(|name| format!("{name}-{}", platform.id)) {
            if session.starts_with("bound") {
                let bind =
                    ["session", "bind", "--session", &session, "--workspace", workspace, "--node", node];
                env.ok(&bind);
            }
            for (event, payload) in payloads(platform, &session, env) {
                let what = format!("{} {event} {session}", platform.id);
                let payload = payload.to_string();
                let (output, calls) = trace(env, &["hook", platform.id, &event], &payload);
                assert!(output.status.success() && output.stderr.is_empty(), "{what}: {output:?}");
                assert!(!has_socket(&calls), "{what}: {calls}");
                assert!(calls.matches("team.json").count() <= 1, "{what}: the membership is read once");
                if !output.stdout.is_empty() {
                    let text = String::from_utf8(output.stdout).unwrap();
                    check_response(platform.id, Some(&event), payload.as_bytes(), &text);
                    spoken.insert((platform.id, event));
                }
            }
        }
    }
    spoken
}

#[test]
fn hooks_of_every_client_in_joined_project_open_no_socket() {
    if !crate::crash_safety::has_strace() {
        return;
    }
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let workspace = ada.init();
    let node = ada.node("root", "execution", "Build");
    write_file(ada.root().join("transcript.jsonl"), "").unwrap();
    let (_, calls) = trace(&ada, &["team", "sync"], "");
    assert!(has_socket(&calls), "the trace shows the connections of a command");
    let with_server = trace_all(&ada, &workspace, &node);
    drop(server);
    let without_server = trace_all(&ada, &workspace, &node);
    for platform in CLIENTS.iter().map(|client| client.platform.id) {
        for spoken in [&with_server, &without_server] {
            let is_start =
                |(id, event): &&(&str, String)| *id == platform && event.eq_ignore_ascii_case("SessionStart");
            assert!(spoken.iter().any(|one| is_start(&one)), "{platform}: a start is told something");
        }
    }
}

#[test]
fn hooks_of_joined_project_tell_workspaces_while_server_is_away() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let workspace = ada.init();
    let node = ada.node("root", "execution", "Build");
    ada.ok(&["start", &node]);
    drop(server);
    let agent = Agent::claude(&ada, "s1");
    let unbound = agent.start("startup");
    assert!(unbound.contains(&workspace), "an unbound session is told the workspaces: {unbound}");
    ada.ok(&["session", "bind", "--session", "s1", "--workspace", &workspace, "--node", &node]);
    let bound = agent.start("resume");
    assert!(bound.contains("Build"), "{bound}");
    assert!(bound.contains("Held by: the user in person\n"), "ada is the user of this machine: {bound}");
}
