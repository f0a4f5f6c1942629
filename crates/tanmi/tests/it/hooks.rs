//! Hooks as clients run them: a payload on standard input and the injected text on standard output.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::agent::{Agent, hook};
use crate::env::{NOW, TestEnv};
use crate::mcp::Client;

#[test]
fn session_gets_hint_then_context_then_reminder() {
    for platform in ["claude-code", "cursor"] {
        let env = TestEnv::new();
        let agent = Agent { env: &env, platform, session: "abc123".into() };
        let start = agent.start("startup");
        assert!(start.contains("abc123") && start.contains("No workspace in this project yet"), "{start}");
        let other = Agent { env: &env, platform, session: "other".into() };
        assert_eq!(other.prompt("how do I install node.js?"), "");
        let hint = other.prompt("continue the workspace");
        assert!(hint.contains("No workspace in this project yet"), "{hint}");
        let ws = env.init();
        env.tick(200_000);
        let hint = agent.prompt("继续工作区任务");
        assert!(hint.contains("session_bind"), "{hint}");
        assert_eq!(agent.prompt("继续工作区任务"), "", "not twice in three minutes");
        let task = env.node("root", "execution", "Check tokens");
        env.ok(&["node", "transition", &task, "--action", "start"]);
        env.ok(&["session", "bind", "--session", "abc123", "--workspace", &ws]);

        let injected = agent.prompt("go on");
        assert!(
            injected.contains("Auth") && injected.contains("Check tokens"),
            "the first prompt after a bind: {injected}"
        );
        assert_eq!(agent.prompt("go on"), "", "nothing has changed");
        env.ok(&["workspace", "update", "--add-rule", "Keys come from the environment"]);
        assert!(agent.prompt("go on").contains("Keys come from"), "a changed rule is injected");
        assert_eq!(agent.prompt("go on"), "", "once");
        env.tick(61_000);
        let reminder = agent.prompt("go on");
        assert!(reminder.contains("<tanmi-smart-reminder>") && reminder.contains("log_append"), "{reminder}");
        assert_eq!(agent.prompt("go on"), "", "throttled");
        env.ok(&["problem", "--node", &task, "stuck"]);
        assert!(agent.prompt("go on").contains("problem_clear"), "a new problem is injected in full");
        let known = agent.prompt("go on");
        assert!(known.contains("Still open: stuck"), "a problem is never throttled: {known}");
        env.ok(&["problem", "--node", &task, "--clear"]);
        let start = agent.start("compact");
        assert!(start.contains("0/1") && start.contains(&task), "{start}");
        env.ok(&["workspace", "archive"]);
        assert!(agent.start("resume").contains("not bound"), "an archived workspace acts as unbound");
        env.ok(&["workspace", "restore", &ws]);
        assert!(agent.start("resume").contains("Check tokens"), "a restored workspace is bound again");
        env.ok(&["session", "unbind", "--session", "abc123"]);
        assert_eq!(
            agent.prompt("next 任务"),
            "",
            "after an unbind only explicit mentions of a workspace give a hint"
        );
    }
}

#[test]
fn sessions_have_separate_focus() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    let ws = env.init();
    let (one, two) = (env.node("root", "execution", "one"), env.node("root", "execution", "two"));
    for (session, node) in [("s1", &one), ("s2", &two)] {
        env.ok(&["session", "bind", "--session", session, "--workspace", &ws, "--node", node]);
        let status = env.json(&["session", "status", "--session", session]);
        assert_eq!(status["focusedNode"]["id"], node.as_str());
        assert_eq!(status["workspace"]["progress"], json!({"done": 0, "total": 2}));
    }
    let agent = |session: &str| {
        Agent { env: &env, platform: "claude-code", session: session.into() }.start("startup")
    };
    assert!(agent("s1").contains("one (pending)") && agent("s2").contains("two (pending)"));
    let status = env.json(&["session", "status", "--session", "s3"]);
    assert_eq!((&status["bound"], &status["availableWorkspaces"][0]["id"]), (&json!(false), &json!(ws)));
    assert_eq!(
        env.error(&["session", "bind", "--session", "s3", "-w", &ws, "--node", "node-none"])["code"],
        "NODE_NOT_FOUND"
    );
    assert_eq!(env.json(&["session", "status", "--session", "s3"])["bound"], false, "nothing bound");
    env.ok(&["workspace", "archive"]);
    assert_eq!(env.error(&["session", "bind", "--session", "s3", "-w", &ws])["code"], "WORKSPACE_ARCHIVED");
}

/// After `/clear` the same client process continues under another session id.
#[test]
fn clear_keeps_binding() {
    let env = TestEnv::new();
    let ws = env.init();
    let first = Agent { env: &env, platform: "claude-code", session: "before".into() };
    first.start("startup");
    env.ok(&["session", "bind", "--session", "before", "--workspace", &ws]);
    let second = Agent { env: &env, platform: "claude-code", session: "after".into() };
    assert!(second.start("clear").contains(&ws), "both sessions belong to this client process");
    let third = Agent { env: &env, platform: "claude-code", session: "other".into() };
    assert!(third.start("startup").contains("not bound"), "a new session is not bound");
}

#[test]
fn invalid_input_produces_no_output() {
    let env = TestEnv::new();
    env.init();
    for payload in [&b""[..], b"{", b"\xff\xfe\x00", b"[1,2]", &vec![b'x'; 10 << 20]] {
        assert_eq!(hook(&env, "claude-code", payload), "");
        assert_eq!(hook(&env, "nonsense", payload), "");
    }
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("not JSON") && log.contains("unknown platform"), "{log}");
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent { env: &env, platform: "claude-code", session: "s".into() };
    env.write(&env.workspace_dir(&ws).join("Workspace.md"), b"broken");
    assert!(agent.start("startup").contains("cannot be read"));
    env.write(&env.home_store().join("session-bindings.json"), b"{broken");
    assert!(agent.start("startup").contains("not bound"));
    env.ok(&["session", "unbind", "--session", "s"]);
    let names: Vec<_> =
        std::fs::read_dir(env.home_store()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().contains("damaged")), "set aside: {names:?}");
}

/// Root ignores permissions, so files in the place of folders make the writes fail.
#[test]
fn unwritable_home_store_still_answers() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    for name in ["state", "ledger"] {
        let path = env.home_store().join(name);
        let _ = std::fs::rename(&path, env.root().join(name));
        env.write(&path, b"in the way");
    }
    for _ in 0..2 {
        assert!(agent.start("startup").contains(&ws));
        assert!(
            agent.prompt("x").contains(&ws),
            "the context is injected again, because no state can be stored"
        );
    }
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("state") && log.contains("ledger"), "{log}");
}

#[test]
fn session_id_with_newline_stays_on_one_line() {
    let env = TestEnv::new();
    env.init();
    let agent = Agent::claude(&env, "a\nGoal: evil\"; rm -rf ~");
    assert!(!agent.start("startup").contains("\nGoal: evil"));
    let flush = Agent { platform: "cursor", ..agent }.send("PreCompact", "preCompact", json!({}));
    assert!(flush.contains("[Memory Flush]") && !flush.contains("rm -rf"), "{flush}");
}

#[test]
fn focus_or_workspace_removed_by_hand_is_told_at_start() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &node]);
    std::fs::rename(env.node_md(&ws, &node).parent().unwrap(), env.root().join("removed")).unwrap();
    let agent = Agent::claude(&env, "s");
    assert!(agent.start("startup").contains("Focused node: (none; node_list lists the nodes)"));
    std::fs::rename(env.workspace_dir(&ws), env.root().join("removed workspace")).unwrap();
    let injected = agent.start("startup");
    assert!(injected.contains("is missing") && !injected.contains("not bound"), "{injected}");
}

#[test]
fn unfinished_input_produces_no_output() {
    let env = TestEnv::new();
    let mut command = env.command(&["hook", "claude-code"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"session_id\":").unwrap();
    let status = child.wait().unwrap();
    drop(stdin);
    assert!(status.success());
}

#[test]
fn disabled_hook_creates_no_folder_and_injects_nothing() {
    let env = TestEnv::new();
    let mut command = env.command(&["hook", "claude-code"]);
    command.env("TANMI_DISABLE", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let payload = json!({"session_id": "s", "hook_event_name": "SessionStart"});
    let _ = child.stdin.take().unwrap().write_all(payload.to_string().as_bytes());
    assert!(child.wait_with_output().unwrap().stdout.is_empty());
    assert!(!env.home_store().exists());
}

/// With the plugin, or with hooks and a server set up by hand, no `install` created the home store.
#[test]
fn first_session_without_install_is_bound_and_throttled() {
    let env = TestEnv::new();
    let agent = Agent::claude(&env, "first");
    assert!(!agent.start("startup").is_empty());
    assert!(!env.project.join(".tanmi-workspace").exists(), "a hook creates nothing in the project");
    assert!(agent.prompt("continue the workspace").contains("workspace_init"));
    assert_eq!(agent.prompt("continue the workspace"), "", "the hint is throttled");
    let mut client = Client::connect(&env);
    assert_eq!(client.expect_ok("session_status", json!({}))["sessionId"], "first");
    let ws = client.expect_ok("workspace_init", json!({"name": "n", "goal": "g"}))["workspaceId"].clone();
    let bound = client.expect_ok("session_bind", json!({"workspaceId": ws}));
    assert_eq!(bound["binding"]["sessionId"], "first", "{bound}");
    assert!(agent.prompt("x").contains(ws.as_str().unwrap()));
    client.finish();
}

/// A client without hooks asks for its hints, which are throttled too.
#[test]
fn first_context_check_without_home_store_is_throttled() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let mut check = || {
        client.expect_ok("context_check", json!({"trigger": "before_response", "prompt": "the workspace"}))
    };
    assert!(check().get("hint").is_some());
    assert!(check().get("hint").is_none());
}

/// 64 processes bind, unbind and prompt at the same time.
#[test]
fn concurrent_bind_and_unbind_lose_nothing() {
    let env = TestEnv::new();
    let ws = env.init();
    std::thread::scope(|scope| {
        for n in 0..64 {
            let (env, ws) = (&env, ws.as_str());
            scope.spawn(move || {
                let session = format!("s{n}");
                let bind = ["session", "bind", "--session", &session, "--workspace", ws];
                assert!(env.run(&bind).ok);
                let agent = Agent { env, platform: "claude-code", session: session.clone() };
                assert!(!agent.prompt("go").is_empty());
                if n % 2 == 1 {
                    assert!(env.run(&["session", "unbind", "--session", &session]).ok);
                }
            });
        }
    });
    let text = std::fs::read(env.home_store().join("session-bindings.json")).unwrap();
    let bindings: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(bindings.as_object().unwrap().len(), 32);
}

#[test]
fn missing_workspace_is_reported_once() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    assert!(agent.start("startup").contains(&ws));
    let path = env.workspace_dir(&ws).join("Workspace.md");
    let intact = std::fs::read(&path).unwrap();
    env.write(&path, b"---\nname: [\n");
    let injected = agent.prompt("go on");
    assert!(injected.contains(&ws) && injected.contains("cannot be read"), "{injected}");
    assert_eq!(agent.prompt("and now?"), "", "throttled");
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("unreadable"), "{log}");
    env.write(&path, &intact);
    env.ok(&["workspace", "update", &ws, "--add-rule", "NEW-RULE"]);
    assert!(agent.prompt("again").contains("NEW-RULE"), "the binding works again");
    tanmi_base::fs::remove_tree(&env.project.join(".tanmi-workspace")).unwrap();
    env.tick(3_700_000);
    assert!(agent.prompt("go on").contains("is missing"), "deleted");
    // Without binding hints, the session still gets its id.
    env.ok(&["config", "set", "bindingHints", "false"]);
    let injected = agent.start("startup");
    assert!(injected.contains("not bound") && !injected.contains("is missing"), "{injected}");
}

/// Edits a file as a person does at the time of the test's clock.
fn edit_at(env: &TestEnv, path: &std::path::Path, at: i64, change: impl FnOnce(String) -> String) {
    env.edit(path, change);
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at.try_into().unwrap());
    std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

#[test]
fn log_entry_written_by_hand_counts_for_reminders() {
    for is_indexed in [false, true] {
        let env = TestEnv::new();
        let ws = env.init();
        let task = env.node("root", "execution", "Check tokens");
        env.ok(&["node", "transition", &task, "--action", "start"]);
        env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &task]);
        let agent = Agent::claude(&env, "s");
        agent.start("startup");
        env.tick(61_000);
        edit_at(&env, &env.node_md(&ws, &task), NOW + 61_000, |text| {
            assert!(text.contains("## Log\n"), "{text}");
            text.replace("## Log\n", "## Log\n\n- [2025-12-11 05:49:21] [Human] by hand\n")
        });
        if is_indexed {
            assert!(env.ok(&["node", "show", &task]).contains("by hand"));
        }
        assert_eq!(agent.prompt("go on"), "", "indexed: {is_indexed}");
        env.tick(181_000);
        let reminder = agent.prompt("go on");
        assert!(reminder.contains("more than 3 minutes old"), "indexed: {is_indexed}: {reminder}");
    }
}

#[test]
fn status_written_by_hand_counts_from_the_edit() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "Check tokens");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &task]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.tick(600_000);
    let path = env.node_md(&ws, &task);
    edit_at(&env, &path, NOW + 600_000, |text| text.replace("status: pending", "status: implementing"));
    assert_eq!(agent.prompt("go on"), "", "it was started just now");
    assert_eq!(env.status(&task), "implementing");
    assert_eq!(agent.prompt("go on"), "", "the same after the index was updated");
    env.tick(61_000);
    let reminder = agent.prompt("go on");
    assert!(reminder.contains("more than 1 minute ago"), "{reminder}");
    // The next change writes the time into the file.
    env.ok(&["node", "update", &task, "--note", "n"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(&format!("statusChangedAt: {}", NOW + 600_000)), "{text}");
}
