//! Sessions: claims, bindings, focus, several sessions at once, and clients without hooks.

use serde_json::{Value, json};

use crate::agent::{Agent, hook, run_with_payload};
use crate::env::TestEnv;
use crate::mcp::Client;
use crate::serve::Server;

fn start<'a>(node: &'a str, session: &'a str) -> [&'a str; 7] {
    ["node", "transition", node, "--action", "start", "--session", session]
}

#[test]
fn claimed_node_hint_names_the_override_to_people_only() {
    let env = TestEnv::new();
    env.init();
    let node = env.node("root", "execution", "t");
    env.ok(&start(&node, "one"));
    let hint = |variable: Option<&str>| {
        let mut command = env.command(&start(&node, "two"));
        command.arg("--json").envs(variable.map(|name| (name, "1")));
        let answer: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        answer["error"]["hint"].as_str().unwrap().to_owned()
    };
    assert!(hint(None).contains("--force"), "{}", hint(None));
    assert!(!hint(Some("CLAUDECODE")).contains("force"), "{}", hint(Some("CLAUDECODE")));
}

/// The change is in the journal before the focus is saved, so a caller must not repeat it.
#[test]
fn failure_after_a_durable_change_is_a_warning() {
    let env = TestEnv::new();
    let ws = env.init();
    let (first, second) = (env.node("root", "execution", "first"), env.node("root", "execution", "second"));
    let mut client = Client::connect(&env);
    client.expect_ok("session_bind", json!({"workspaceId": ws}));
    env.ok(&["session", "bind", "--session", "one", "--workspace", &ws]);
    // Bindings can be read, but not locked for a change.
    let lock = env.home_store().join("session-bindings.lock");
    let _ = std::fs::remove_file(&lock);
    std::fs::create_dir(&lock).unwrap();
    let run = env.run(&start(&first, "one"));
    assert!(run.ok && run.stdout.contains("implementing"), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("warning: the change is saved"), "{}", run.stderr);
    let answer = client.expect_ok("node_transition", json!({"nodeId": second, "action": "start"}));
    assert_eq!(
        (&answer["to"], answer["warnings"].as_array().map(Vec::len)),
        (&json!("implementing"), Some(1))
    );
    assert!(env.ok(&["node", "show", &second]).contains("implementing"));
    client.finish();
}

#[test]
fn claim_holds_until_the_node_is_done() {
    let env = TestEnv::new();
    let ws = env.init();
    let (plan, task) = {
        let plan = env.node("root", "planning", "plan");
        let task = env.node(&plan, "execution", "task");
        (plan, task)
    };
    env.ok(&start(&task, "one"));
    for action in ["submit", "complete", "fail"] {
        let step = ["node", "transition", &task, "--action", action, "--conclusion", "x"];
        // A person has no session and is refused too.
        let error = env.error(&step);
        assert_eq!((&error["code"], &error["details"]["sessionId"]), (&json!("NODE_TAKEN"), &json!("one")));
        assert!(error["hint"].as_str().unwrap().contains("--force"), "{error}");
        let other = [&step[..], &["--session", "two"]].concat();
        assert_eq!(env.error(&other)["code"], "NODE_TAKEN");
    }
    // A deleted subtree must not contain the node of another session.
    for node in [&task, &plan] {
        assert_eq!(env.error(&["node", "delete", node, "--yes"])["code"], "NODE_TAKEN");
    }
    let mut client = Client::connect(&env);
    client.expect_ok("session_bind", json!({"workspaceId": ws}));
    for (tool, arguments) in [
        ("node_transition", json!({"nodeId": task, "action": "complete", "conclusion": "x"})),
        ("node_delete", json!({"nodeId": task})),
    ] {
        let error = client.expect_error(tool, arguments);
        assert_eq!(error["code"], "NODE_TAKEN", "{tool}");
        assert!(!error.to_string().contains("force"), "an agent does not learn the override: {error}");
    }
    client.finish();
    let done = ["node", "transition", &task, "--action", "complete", "--conclusion", "x", "--session", "one"];
    env.ok(&done);
    env.ok(&["node", "transition", &task, "--action", "reopen", "--session", "one"]);
    env.ok(&["node", "delete", &plan, "--force", "--yes"]);
}

#[test]
fn claimed_node_is_refused_until_forced_or_holder_is_inactive() {
    let env = TestEnv::new();
    env.init();
    let node = env.node("root", "execution", "t");
    env.ok(&start(&node, "one"));
    let taken = env.error(&start(&node, "two"));
    assert_eq!(
        (&taken["code"], &taken["details"]["sessionId"]),
        (&json!("NODE_TAKEN"), &json!("one")),
        "{taken}"
    );
    assert_eq!(env.error(&["node", "transition", &node, "--action", "start"])["code"], "NODE_TAKEN");
    let mut forced = start(&node, "two").to_vec();
    forced.push("--force");
    env.ok(&forced);
    assert_eq!(env.json(&["node", "show", &node])["node"]["startedBy"], "two");
    assert_eq!(env.error(&start(&node, "one"))["code"], "NODE_TAKEN");
    env.tick(31 * 60_000);
    env.ok(&start(&node, "one"));
    let now = env.json(&["node", "show", &node])["node"]["startedBy"].clone();
    assert_eq!(now, "one", "the claim of an inactive session is taken over");
    assert!(env.ok(&["log", "--node", &node]).contains("taken over"));

    let mut client = Client::connect(&env);
    let other = env.node("root", "execution", "u");
    env.ok(&start(&other, "one"));
    assert_eq!(
        client.expect_error("node_transition", json!({"nodeId": other, "action": "start"}))["code"],
        "NODE_TAKEN"
    );
    client.expect_ok("node_transition", json!({"nodeId": other, "action": "start", "force": true}));
    client.finish();
}

#[test]
fn concurrent_starts_have_one_winner() {
    let env = TestEnv::new();
    env.init();
    let node = env.node("root", "execution", "t");
    let outcomes: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|n| {
                let (env, node) = (&env, &node);
                scope.spawn(move || {
                    let session = format!("s{n}");
                    let mut args = start(node, &session).to_vec();
                    args.push("--json");
                    let answer: Value = serde_json::from_str(&env.run(&args).stdout).unwrap();
                    answer["error"]["code"].as_str().unwrap_or("won").to_owned()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "won").count(), 1, "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| outcome == "won" || outcome == "NODE_TAKEN"), "{outcomes:?}");
}

/// Cursor runs its own hooks and those in the files of Claude Code; the text is injected once.
#[test]
fn prompt_through_two_hooks_injects_once() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "c", "--workspace", &ws]);
    let payload = |event: &str, generation: &str| {
        json!({"conversation_id": "c", "generation_id": generation, "hook_event_name": event, "prompt": "go",
            "workspace_roots": [env.project], "cursor_version": "3"})
        .to_string()
    };
    let first = hook(&env, "claude-code", payload("sessionStart", "g0").as_bytes());
    assert!(first.contains(&ws), "{first}");
    assert_eq!(hook(&env, "cursor", payload("sessionStart", "g0").as_bytes()), "");
    env.ok(&["problem", "--node", "root", "stuck"]);
    env.ok(&["workspace", "focus", "root"]);
    for generation in ["g1", "g2"] {
        let prompt = payload("beforeSubmitPrompt", generation);
        assert!(hook(&env, "cursor", prompt.as_bytes()).contains("stuck"), "{generation}");
        assert_eq!(hook(&env, "claude-code", prompt.as_bytes()), "", "{generation}");
    }
    let (again, state) = (payload("sessionStart", "g3"), env.home_store().join("state/c.json"));
    env.tick(11_000);
    assert!(!hook(&env, "cursor", again.as_bytes()).is_empty(), "a later session start is a new event");
    let state: Value = serde_json::from_slice(&std::fs::read(state).unwrap()).unwrap();
    assert_eq!((&state["platform"], &state["prompts"]), (&json!("cursor"), &json!(0)));
}

#[test]
fn cursor_context_refresh_follows_compaction_and_setting() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "c", "--workspace", &ws]);
    let agent = Agent { env: &env, platform: "cursor", session: "c".into() };
    assert!(agent.prompt("a").contains(&ws));
    assert_eq!(agent.prompt("b"), "");
    assert!(agent.send("PreCompact", "preCompact", json!({})).contains("[Memory Flush]"));
    assert!(agent.prompt("c").contains(&ws), "the context is injected again after a compaction");
    assert_eq!(agent.prompt("d"), "");
    env.ok(&["config", "set", "contextRefresh", "always"]);
    for _ in 0..3 {
        assert!(agent.prompt("e").contains(&ws));
    }
    env.ok(&["config", "set", "contextRefresh", "never"]);
    for _ in 0..12 {
        assert_eq!(agent.prompt("f"), "");
    }
    assert_eq!(env.error(&["config", "set", "contextRefresh", "0"])["code"], "INVALID_ARGUMENT");
}

#[test]
fn settings_of_user_and_project_disable_texts() {
    let env = TestEnv::new();
    let ws = env.init();
    let agent = Agent::claude(&env, "s");
    env.ok(&["config", "set", "bindingHints", "false", "--for-project"]);
    assert_eq!(agent.prompt("continue the workspace"), "");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    env.ok(&["problem", "--node", "root", "stuck"]);
    env.ok(&["workspace", "focus", "root"]);
    assert!(agent.prompt("x").contains("Problem: stuck"), "in the context after the bind");
    assert!(agent.prompt("x").contains("Still open: stuck"));
    env.ok(&["config", "set", "reminders", "false"]);
    assert_eq!(agent.prompt("x"), "");
}

#[test]
fn own_changes_are_not_injected() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let agent = Agent::claude(&env, "s");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    assert!(agent.prompt("x").contains(&ws));
    let mut client = Client::connect(&env);
    client.expect_ok("workspace_update", json!({"workspaceId": ws, "addRules": ["by the agent"]}));
    client.expect_ok("node_transition", json!({"workspaceId": ws, "nodeId": node, "action": "start"}));
    assert_eq!(agent.prompt("x"), "", "the session made these changes itself");
    env.ok(&["workspace", "update", "--add-rule", "by a person"]);
    assert!(agent.prompt("x").contains("by a person"));
    let mut own = env.command(&["workspace", "update", "--add-rule", "from its shell"]);
    assert!(own.env("CLAUDE_CODE_SESSION_ID", "s").output().unwrap().status.success());
    assert_eq!(agent.prompt("x"), "");
    client.finish();
}

#[test]
fn context_check_serves_client_without_hooks() {
    let env = TestEnv::new();
    let ws = env.init();
    let mut client = Client::connect(&env);
    let check = |client: &mut Client, trigger: &str, prompt: &str| {
        client.expect_ok("context_check", json!({"sessionId": "web", "trigger": trigger, "prompt": prompt}))
    };
    let unbound = check(&mut client, "session_start", "");
    assert_eq!((&unbound["bound"], &unbound["sessionId"]), (&json!(false), &json!("web")));
    assert!(unbound["hint"].as_str().unwrap().contains("web"), "{unbound}");
    assert_eq!(
        check(&mut client, "before_response", "how do I install node.js?").as_object().unwrap().len(),
        2
    );
    let hint = check(&mut client, "before_response", "continue the workspace");
    assert!(hint["hint"].as_str().unwrap().contains("session_bind"), "{hint}");
    client.expect_ok("session_bind", json!({"sessionId": "web", "workspaceId": ws}));
    let bound = check(&mut client, "session_start", "");
    assert!(bound["context"].as_str().unwrap().contains(&ws) && bound["bound"] == true, "{bound}");
    assert!(!bound["context"].as_str().unwrap().contains('<'), "a tool result needs no tags");
    env.ok(&["problem", "--node", "root", "stuck"]);
    env.ok(&["workspace", "focus", "root"]);
    let moved = check(&mut client, "before_response", "x");
    assert!(moved["context"].as_str().unwrap().contains("Problem: stuck"), "{moved}");
    let reminded = check(&mut client, "before_response", "x");
    assert!(reminded["reminder"].as_str().unwrap().contains("Still open: stuck"), "{reminded}");

    let agent = Agent { env: &env, platform: "cursor", session: "web".into() };
    agent.start("startup");
    let suppressed = check(&mut client, "session_start", "");
    assert_eq!(
        suppressed,
        json!({"bound": true, "sessionId": "web", "suppressed": true}),
        "a hook has injected the context already"
    );
    assert!(
        check(&mut client, "before_response", "x").get("suppressed").is_none(),
        "no hook has handled this event"
    );
    client.expect_ok("session_bind", json!({"sessionId": "web", "workspaceId": ws}));
    assert!(
        check(&mut client, "session_start", "").get("context").is_some(),
        "a new bind needs the context again"
    );
    client.finish();
}

#[test]
fn bindings_of_older_format_are_imported_once() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let old = |session: &str| {
        json!({"bindings": {
            session: {"sessionId": session, "workspaceId": ws, "focusedNodeId": node, "boundAt": 1},
            "bad": {"sessionId": "bad", "workspaceId": "../../x", "focusedNodeId": null, "boundAt": 1},
        }})
        .to_string()
    };
    let path = env.project.join(".tanmi-workspace/sessions.json");
    env.write(&path, old("old").as_bytes());
    assert_eq!(env.json(&["session", "status", "--session", "old"])["bound"], true);
    assert!(Agent::claude(&env, "old").start("resume").contains(&node), "the session keeps its focus");
    assert!(Agent::claude(&env, "bad").start("resume").contains("not bound"));
    env.ok(&["session", "unbind", "--session", "old"]);
    assert!(Agent::claude(&env, "old").start("resume").contains("not bound"), "a later unbind wins");
    env.write(&path, old("other").as_bytes());
    assert_eq!(env.json(&["session", "status", "--session", "other"])["bound"], true);
    assert_eq!(env.json(&["session", "status", "--session", "old"])["bound"], false);
}

#[test]
fn status_line_shows_binding_and_tokens() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Check tokens");
    let line = |payload: &str| {
        let output = run_with_payload(&env, &["statusline"], payload.as_bytes());
        String::from_utf8(output.stdout).unwrap()
    };
    let payload = r#"{"session_id": "s-1", "model": {"id": "x"}, "workspace": {"current_dir": "/"}}"#;
    assert_eq!(line(payload), "tanmi: not bound\n");
    env.ok(&["session", "bind", "--session", "s-1", "--workspace", &ws, "--node", &node]);
    env.ok(&["node", "transition", &node, "--action", "start"]);
    assert_eq!(line(payload), "Auth · Check tokens (implementing) · 0/1\n");
    // Tokens injected today are counted.
    Agent::claude(&env, "s-1").start("startup");
    let tokens = env.json(&["ledger"])["total"]["tokens"].as_u64().unwrap();
    assert!(tokens > 0);
    assert_eq!(
        line(payload),
        format!("Auth · Check tokens (implementing) · 0/1 · {tokens} tokens injected today\n")
    );
    // Invalid input still produces a line.
    for odd in ["", "{", "[]", "null", r#"{"session_id": 7}"#] {
        assert!(line(odd).starts_with("tanmi: not bound"), "{odd}");
    }
    // A folder without a workspace shows no binding state.
    let elsewhere = json!({"session_id": "s-9", "cwd": env.root()}).to_string();
    assert_eq!(line(&elsewhere), format!("tanmi · {tokens} tokens injected today\n"));
}

#[test]
fn session_list_shows_bindings() {
    let env = TestEnv::new();
    assert!(env.ok(&["session", "list"]).contains("no sessions"));
    let ws = env.init();
    Agent::claude(&env, "s-1").start("startup");
    Agent::claude(&env, "s-2").start("startup");
    // The only workspace is the default.
    let bound = env.json(&["session", "bind", "--session", "s-2"]);
    assert_eq!(bound["binding"]["workspaceId"], ws.as_str());
    assert!(bound["hint"].as_str().unwrap().contains("context_get"));
    let listed = env.json(&["session", "list"]);
    let of = |id: &str| {
        let rows = listed["sessions"].as_array().unwrap();
        rows.iter().find(|row| row["sessionId"] == id).unwrap().clone()
    };
    assert_eq!((&of("s-2")["workspaceId"], &of("s-1")["workspaceId"]), (&json!(ws), &Value::Null));
    assert_eq!(of("s-1")["platform"], "claude-code");
    let shown = env.ok(&["session", "list", "--limit", "1"]);
    assert!(shown.contains("1 more (use --limit)"), "{shown}");
    let only = env.json(&["session", "list", "--bound"]);
    assert_eq!((&only["total"], &only["sessions"][0]["sessionId"]), (&json!(1), &json!("s-2")));
}

#[test]
fn agent_shell_uses_binding_of_its_session() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Check tokens");
    env.ok(&["workspace", "init", "--name", "Other", "--goal", "g"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let own = |args: &[&str]| {
        let output = env.command(args).env("CLAUDE_CODE_SESSION_ID", "s").output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{args:?} {out}{}", String::from_utf8_lossy(&output.stderr));
        out
    };
    // The session's workspace and focus are used, not the focus of the workspace.
    let started = own(&["node", "transition", &node, "--action", "start"]);
    assert!(started.contains(&format!("focus: {node}")), "{started}");
    own(&["log", "signature done"]);
    own(&["problem", "Clock skew"]);
    assert!(own(&["node", "context"]).contains("signature done"));
    assert!(own(&["tree"]).contains("← focus"));
    let done = own(&["node", "transition", &node, "--action", "complete", "--conclusion", "c"]);
    assert!(done.contains("the problem is still open: Clock skew"), "{done}");
    assert!(done.contains("focus: root"), "{done}");
    // A deleted focus counts as none, and the binding applies only in its own project.
    let gone = env.json(&["node", "create", "-w", &ws, "--type", "execution", "--title", "gone"]);
    let gone = gone["nodeId"].as_str().unwrap().to_owned();
    own(&["node", "transition", &gone, "--action", "start"]);
    own(&["node", "delete", &gone]);
    assert!(own(&["node", "context"]).contains("Auth"));
    let other = env.root().join("other");
    std::fs::create_dir_all(&other).unwrap();
    assert!(env.run_in(&other, &["workspace", "init", "--name", "Elsewhere", "--goal", "g"]).ok);
    assert!(own(&["--project", other.to_str().unwrap(), "tree"]).contains("Elsewhere"));
    // A terminal outside of an agent has no session.
    assert_eq!(env.error(&["log", "x"])["code"], "AMBIGUOUS_WORKSPACE");
    assert_eq!(env.error(&["log", "-w", &ws, "x"])["code"], "NO_FOCUS");
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_stdout_is_a_failure() {
    let env = TestEnv::new();
    env.init();
    env.ok(&["memory", "save-fact", "one"]);
    for args in [&["tree"][..], &["tree", "--json"], &["memory", "export"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = env.command(args).stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
        assert!(!output.status.success(), "{args:?}");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(err.contains("cannot write the output"), "{args:?} {err}");
    }
}

#[test]
fn focused_node_deleted_by_others_falls_back_to_its_parent() {
    for name in ["command line", "page"] {
        let env = TestEnv::new();
        let ws = env.init();
        let plan = env.node("root", "planning", "Plan");
        let part = env.node(&plan, "planning", "Part");
        let (task, other) = (env.node(&part, "execution", "Task"), env.node(&plan, "execution", "Other"));
        for (session, focus) in [("s", &task), ("t", &other)] {
            env.ok(&["session", "bind", "--session", session, "--workspace", &ws, "--node", focus]);
        }
        let agent = Agent::claude(&env, "s");
        agent.start("startup");
        assert_eq!(agent.prompt("go on"), "");
        if name == "page" {
            Server::start(&env).expect_ok("DELETE", &format!("/workspaces/{ws}/nodes/{part}"), Value::Null);
        } else {
            env.ok(&["node", "delete", &part, "--yes"]);
        }
        let told = agent.prompt("go on");
        assert!(told.contains("Focus is now: Plan") && told.contains(&plan), "{name}: {told}");
        assert_eq!(agent.prompt("go on"), "", "{name}: told once");
        let focus = |session: &str| {
            env.json(&["session", "status", "--session", session])["focusedNode"]["id"].clone()
        };
        assert_eq!((focus("s"), focus("t")), (json!(plan), json!(other)), "{name}");
        // The hooks and the server have the same client process, so this is the same session.
        let context = Client::connect(&env).expect_ok("context_get", json!({}));
        assert_eq!(context["chain"][1]["id"], plan.as_str(), "{name}: {context}");
        assert_eq!(context["chain"].as_array().unwrap().len(), 2, "{name}: {context}");
    }
}

#[test]
fn lost_claim_in_state_is_told_once_at_next_prompt() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Issue tokens");
    let agent = Agent::claude(&env, "one");
    agent.start("startup");
    env.ok(&["session", "bind", "--session", "one", "--workspace", &ws]);
    agent.prompt("go");
    let note = |session: &str| {
        let path = env.home_store().join(format!("state/{session}.json"));
        let mut state: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        state["lostClaims"] =
            json!([{"node": node, "title": "Issue tokens", "by": "bob (laptop)", "taken": true}]);
        env.write(&path, state.to_string().as_bytes());
    };
    note("one");
    assert!(!agent.send("Stop", "stop", json!({})).contains("no longer hold"));
    let told = agent.prompt("go on");
    assert!(told.contains(&format!("“Issue tokens” ({node}): bob (laptop) took it over")), "{told}");
    assert!(!agent.prompt("go on").contains("no longer hold"), "told once");
    // A session that has the node again is not told that it lost it.
    note("one");
    env.ok(&start(&node, "one"));
    assert!(!agent.prompt("go on").contains("no longer hold"));
}
