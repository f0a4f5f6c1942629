//! The short commands for people: `status`, `start`, `done`, `fail`, and `tanmi` alone.

use std::io::Write;
use std::process::Stdio;

use crate::env::{Run, TestEnv};

/// Returns an environment with work in progress, an open problem and two bound sessions.
fn work(env: &TestEnv, titles: [&str; 5]) -> String {
    let [name, plan, first, second, third] = titles;
    let ws = env.json(&["workspace", "init", "--name", name, "--goal", plan])["workspaceId"]
        .as_str()
        .unwrap()
        .to_owned();
    let plan = env.node("root", "planning", plan);
    for title in [first, second, third] {
        env.node(&plan, "execution", title);
    }
    env.ok(&["start", first]);
    env.ok(&[
        "log",
        "--node",
        first,
        "Found the cause: the clock is in UTC and the test compares local times",
    ]);
    env.ok(&["problem", "--node", second, "The key server is down", "--next-step", "Ask for a restart"]);
    for (session, node) in [("0f1e2d3c-4b5a-e1f0", first), ("11112222-3333-aaaa", third)] {
        env.ok(&["session", "bind", "--session", session, "--workspace", &ws, "--node", node]);
        env.tick(60_000);
    }
    ws
}

fn at_80_columns(env: &TestEnv, args: &[&str]) -> String {
    let run = Run::of(env.command(args).env("COLUMNS", "80").output().unwrap());
    assert!(run.ok, "{}", run.stderr);
    assert!(run.stdout.lines().all(|line| tanmi_base::text::width(line) <= 80 || line.starts_with('/')));
    env.redact(&run.stdout)
}

#[test]
fn status_and_tree_in_english() {
    let env = TestEnv::new();
    let long = "Verify tokens with a rather long title that does not fit into a line";
    work(&env, ["Auth", "Token service", "Sign tokens", "Rotate the keys", long]);
    insta::assert_snapshot!("status_en", at_80_columns(&env, &["status"]) + &at_80_columns(&env, &["tree"]));
}

#[test]
fn status_and_tree_in_chinese() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    let long = "验证令牌的签名和过期时间，并且处理时钟偏差以及密钥轮换之后的旧令牌";
    work(&env, ["重构认证模块", "令牌服务", "签发令牌", "轮换密钥", long]);
    insta::assert_snapshot!("status_zh", at_80_columns(&env, &["status"]) + &at_80_columns(&env, &["tree"]));
}

#[test]
fn status_as_json_has_sessions_work_problems_and_next_nodes() {
    let env = TestEnv::new();
    let ws = work(&env, ["Auth", "Goal", "First", "Second", "Third"]);
    let status = env.json(&["status"]);
    assert_eq!(status["project"], env.project.display().to_string());
    let workspace = &status["workspaces"][0];
    assert_eq!(workspace["workspaceId"], ws.as_str());
    assert_eq!(workspace["inProgress"][0]["title"], "First");
    assert!(workspace["inProgress"][0]["lastLog"]["event"].as_str().unwrap().starts_with("Found the cause"));
    assert_eq!(workspace["problems"][0]["problem"]["nextStep"], "Ask for a restart");
    assert_eq!(
        (&workspace["next"][0]["title"], &workspace["next"][1]["title"]),
        (&"Second".into(), &"Third".into())
    );
    let sessions = workspace["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[0]["focusedNode"]["title"], "Third");
}

#[test]
fn status_shows_every_active_workspace_unless_one_is_named() {
    let env = TestEnv::new();
    let first = env.init();
    let second = env.init();
    assert_eq!(env.json(&["status"])["workspaces"].as_array().unwrap().len(), 2);
    let one = env.json(&["status", &second]);
    assert_eq!(one["workspaces"].as_array().unwrap().len(), 1);
    env.ok(&["workspace", "archive", &first]);
    assert_eq!(env.json(&["status"])["workspaces"][0]["workspaceId"], second.as_str());
}

#[test]
fn program_alone_shows_status_in_a_project_and_help_elsewhere() {
    let env = TestEnv::new();
    let help = env.run(&[]);
    assert!(!help.ok && help.stderr.contains("Usage: tanmi"), "{}", help.stderr);
    env.init();
    assert_eq!(env.run(&[]).stdout, env.ok(&["status"]));
    let below = env.project.join("src");
    std::fs::create_dir(&below).unwrap();
    assert_eq!(env.run_in(&below, &[]).stdout, env.ok(&["status"]));
}

#[test]
fn start_done_and_fail_change_the_status() {
    let env = TestEnv::new();
    env.init();
    let (first, second) = (env.node("root", "execution", "First"), env.node("root", "execution", "Second"));
    env.ok(&["start", "First"]);
    assert_eq!(env.status(&first), "implementing");
    let error = env.error(&["done", "First"]);
    assert_eq!(error["code"], "CONCLUSION_REQUIRED");
    assert!(error["hint"].as_str().unwrap().contains("--conclusion"), "{error}");
    env.ok(&["done", "First", "--conclusion", "All pass"]);
    assert_eq!(env.status(&first), "completed");
    env.ok(&["start", &second]);
    env.ok(&["fail", &second, "-c", "The server is down"]);
    assert_eq!(env.json(&["node", "show", &second])["node"]["conclusion"], "The server is down");
    assert_eq!(env.status(&second), "failed");
}

/// Runs a command in a terminal and types an answer. `None` if this machine has no `script`.
fn in_terminal(env: &TestEnv, args: &str, typed: &str) -> Option<String> {
    let command = format!("{} {args}", env!("CARGO_BIN_EXE_tanmi"));
    let mut script = env.command_in("script", &env.project);
    script
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = script.spawn().ok()?;
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert!(run.ok, "{}{}", run.stdout, run.stderr);
    Some(run.stdout)
}

#[test]
fn terminal_is_asked_for_a_conclusion_and_before_children_are_deleted() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "Plan");
    let task = env.node(&plan, "execution", "Task");
    env.ok(&["start", &task]);
    let Some(screen) = in_terminal(&env, &format!("done {task}"), "All pass\n") else {
        eprintln!("skipped: no `script` on this machine");
        return;
    };
    assert!(screen.contains("Conclusion of “Task”: "), "{screen}");
    assert_eq!(env.json(&["node", "show", &task])["node"]["conclusion"], "All pass");
    let screen = in_terminal(&env, &format!("node delete {plan}"), "n\n").unwrap();
    assert!(screen.contains("“Plan” has 1 child."), "{screen}");
    env.ok(&["node", "show", &plan]);
    in_terminal(&env, &format!("node delete {plan}"), "y\n");
    assert_eq!(env.error(&["node", "show", &plan])["code"], "NODE_NOT_FOUND");
}

#[test]
fn done_without_a_node_completes_the_focused_one() {
    let env = TestEnv::new();
    env.init();
    let task = env.node("root", "execution", "Task");
    assert_eq!(env.error(&["done", "-c", "x"])["code"], "NO_FOCUS");
    env.ok(&["start", "Task"]);
    env.ok(&["workspace", "focus", &task]);
    env.ok(&["done", "-c", "All pass"]);
    assert_eq!(env.status(&task), "completed");
    let other = env.node("root", "execution", "Other");
    env.ok(&["start", &other]);
    env.ok(&["workspace", "focus", &other]);
    env.ok(&["fail", "-c", "Cannot be done"]);
    assert_eq!(env.status(&other), "failed");
}

#[test]
fn end_of_an_ambiguous_node_fails_before_the_conclusion_is_asked() {
    let env = TestEnv::new();
    env.init();
    for _ in 0..2 {
        env.node("root", "execution", "Design");
    }
    let run = env.run(&["done", "Design"]);
    assert!(run.stderr.contains("NODE \"Design\" stands for 2 ids"), "{}", run.stderr);
    assert!(env.run(&["done", "--node", "Design"]).stderr.contains("--node \"Design\""));
    let command = format!("{} done Design; true", env!("CARGO_BIN_EXE_tanmi"));
    let mut script = env.command_in("script", &env.project);
    let Ok(output) = script.args(["-qec", &command, "/dev/null"]).output() else { return };
    let screen = Run::of(output).stdout;
    assert!(screen.contains("AMBIGUOUS_ID") && !screen.contains("Conclusion"), "{screen}");
}

#[test]
fn unknown_word_of_another_tool_names_our_command() {
    for (lang, words) in [("en_US.UTF-8", "similar subcommand"), ("zh_CN.UTF-8", "有相似的命令")] {
        let run = TestEnv::with_lang(lang).run(&["close", "x"]);
        assert!(!run.ok && run.stderr.contains(words) && run.stderr.contains("'done'"), "{}", run.stderr);
    }
}

#[test]
fn limit_zero_shows_all_in_every_list() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "Task");
    env.node("root", "execution", "Other");
    env.ok(&["log", "--node", &task, "A line"]);
    env.ok(&["memory", "save-fact", "The number is 7"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    for (args, shown) in [
        (&["memory", "list"][..], "The number is 7"),
        (&["memory", "search", "number"], "The number is 7"),
        (&["workspace", "list"], "Auth"),
        (&["rules", "list"], "context"),
        (&["node", "list"], "Other"),
        (&["tree"], "Other"),
        (&["next"], "Other"),
        (&["log", "--node", &task], "A line"),
        (&["session", "list"], " s "),
    ] {
        let all = env.ok(&[args, &["--limit", "0"]].concat());
        assert!(all.contains(shown) && !all.contains("more"), "{args:?}: {all}");
    }
}

#[test]
fn status_tells_that_a_node_can_be_completed() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "Plan");
    let task = env.node(&plan, "execution", "Task");
    env.ok(&["start", &task]);
    assert!(env.json(&["status"])["workspaces"][0]["canComplete"].is_null());
    env.ok(&["done", &task, "-c", "x"]);
    let reason = "all children are done, so it can be completed";
    assert!(env.ok(&["next"]).contains(reason));
    assert!(env.ok(&["status"]).contains(reason) && env.run(&[]).stdout.contains(reason));
    assert_eq!(env.json(&["status"])["workspaces"][0]["canComplete"][0]["nodeId"], plan.as_str());
    env.ok(&["done", &plan, "-c", "x"]);
    assert!(!env.ok(&["status"]).contains(reason));
}

#[test]
fn deletion_of_a_workspace_with_nodes_asks() {
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "execution", "Task");
    let error = env.error(&["workspace", "delete", &ws]);
    assert_eq!((&error["code"], &error["details"]["nodes"]), (&"CONFIRMATION_REQUIRED".into(), &1.into()));
    let Some(screen) = in_terminal(&env, &format!("workspace delete {ws}"), "n\n") else { return };
    assert!(screen.contains("“Auth” has 1 node."), "{screen}");
    env.ok(&["workspace", "show", &ws]);
    env.ok(&["workspace", "delete", &ws, "--yes"]);
    env.ok(&["workspace", "delete", &env.init()]);
}

#[test]
fn workspace_check_without_a_name_checks_all_active_ones() {
    let env = TestEnv::new();
    let ids = [env.init(), env.init()];
    let text = env.ok(&["workspace", "check"]);
    assert!(ids.iter().all(|id| text.contains(id.as_str())), "{text}");
    let checked = env.json(&["workspace", "check"]);
    assert_eq!(checked["workspaces"].as_array().unwrap().len(), 2);
    env.write(&env.workspace_dir(&ids[1]).join("nodes/root/Node.md"), b"broken");
    assert!(!env.run(&["workspace", "check"]).ok);
}
