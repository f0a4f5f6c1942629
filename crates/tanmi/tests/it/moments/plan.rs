//! When a session is told to show its plan to the user.

use serde_json::json;

use super::run_as;
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

const REMINDER: &str = "📋 The plan has ";
const MINUTE: i64 = 60_000;

fn create(client: &mut Client, parent: &str, kind: &str, title: &str) -> String {
    let node = json!({"parentId": parent, "type": kind, "title": title, "requirement": "r"});
    client.expect_ok("node_create", node)["nodeId"].as_str().unwrap().to_owned()
}

#[test]
fn plan_made_over_mcp_is_confirmed_once_at_next_prompt() {
    let env = TestEnv::new();
    // Creates the home store, as an installation does.
    env.ok(&["config", "set", "language", "auto"]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    let mut client = Client::connect(&env);
    client.expect_ok("workspace_init", json!({"name": "Auth", "goal": "JWT"}));
    client.expect_ok("session_bind", json!({}));
    let plan = create(&mut client, "root", "planning", "Tokens");
    create(&mut client, &plan, "execution", "Issue");
    create(&mut client, &plan, "execution", "Check");
    let prompt = agent.prompt("go on");
    assert!(
        prompt.contains("📋 The plan has 2 tasks and none is started.") && prompt.contains("Goal: JWT"),
        "{prompt}"
    );
    assert_eq!(agent.prompt("yes"), "");
    env.tick(10 * MINUTE);
    assert_eq!(agent.prompt("start"), "", "the user has answered");
    client.finish();
}

#[test]
fn later_plan_is_told_again_after_throttle() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    agent.prompt("hello");
    let plan = |title: &str| {
        run_as(&env, "s", &["node", "create", "--type", "execution", "--title", title, "--requirement", "r"])
    };
    plan("one");
    assert!(agent.prompt("go on").contains(REMINDER));
    plan("two");
    env.tick(2 * MINUTE);
    assert_eq!(agent.prompt("go on"), "", "throttled");
    env.tick(2 * MINUTE);
    assert!(agent.prompt("go on").contains(REMINDER), "still due");
    env.tick(4 * MINUTE);
    assert_eq!(agent.prompt("go on"), "");
}

#[test]
fn plan_of_another_session_or_of_the_user_is_not_told() {
    let env = TestEnv::new();
    let ws = env.init();
    for session in ["mine", "other"] {
        env.ok(&["session", "bind", "--session", session, "--workspace", &ws]);
    }
    env.node("root", "execution", "by the user");
    run_as(&env, "mine", &["node", "create", "--type", "execution", "--title", "t", "--requirement", "r"]);
    assert!(!Agent::claude(&env, "other").prompt("go on").contains("📋"));
    assert!(Agent::claude(&env, "mine").prompt("go on").contains(REMINDER));
}

/// The user may have closed the session that made the plan without a look at it.
#[test]
fn plan_of_earlier_session_is_told_after_bind_unless_work_is_started() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "Tokens");
    let task = env.node(&plan, "execution", "Issue");
    env.tick(24 * 60 * MINUTE);
    let mut client = Client::connect(&env);
    let mut bind = |session: &str| {
        client.expect_ok("session_bind", json!({"sessionId": session, "workspaceId": ws}));
        Agent::claude(&env, session)
    };
    let day_2 = bind("day-2");
    assert!(day_2.prompt("go on").contains("📋 The plan has 1 task and it is not started."));
    bind("day-2");
    env.tick(10 * MINUTE);
    assert!(!day_2.prompt("yes").contains("📋"), "told once, also if the session binds again");

    env.ok(&["start", &task]);
    env.ok(&["workspace", "focus"]);
    assert!(!bind("started").prompt("go on").contains("📋"));
    env.ok(&["done", &task, "--conclusion", "c"]);
    env.node(&plan, "execution", "Check");
    env.ok(&["workspace", "focus"]);
    assert!(!bind("later").prompt("go on").contains("📋"), "a task is done");
    client.finish();
}

#[test]
fn plan_is_told_after_bind_to_the_workspace_unless_a_task_failed() {
    let env = TestEnv::new();
    let ws = env.init();
    let [first, second] = ["First", "Second"].map(|title| env.node("root", "execution", title));
    let mut client = Client::connect(&env);
    let mut is_told = |session: &str, node: &str| {
        client.expect_ok("session_bind", json!({"sessionId": session, "workspaceId": ws, "nodeId": node}));
        Agent::claude(&env, session).prompt("go on").contains("📋")
    };
    assert!(is_told("a", "root"));
    assert!(!is_told("b", &second), "the user chose the task");
    env.ok(&["node", "transition", &first, "--action", "start"]);
    env.ok(&["node", "transition", &first, "--action", "fail", "--conclusion", "c"]);
    assert!(!is_told("c", "root"), "a task was started");
    client.finish();
}

#[test]
fn plan_of_the_workspace_before_is_not_told_after_a_bind_to_another_one() {
    let env = TestEnv::new();
    let busy = env.init();
    let phase = env.node("root", "planning", "Phase");
    env.node(&phase, "execution", "Open task");
    let running = env.node("root", "execution", "Running");
    env.ok(&["start", &running]);
    env.ok(&["workspace", "focus"]);
    let own = env.json(&["workspace", "init", "--name", "Own", "--goal", "g"]);
    let own = own["workspaceId"].as_str().unwrap();
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    for is_unbound_before in [false, true] {
        env.ok(&["session", "bind", "--session", "s", "--workspace", own]);
        run_as(&env, "s", &["node", "create", "--type", "execution", "--title", "t", "--requirement", "r"]);
        if is_unbound_before {
            env.ok(&["session", "unbind", "--session", "s"]);
        }
        env.ok(&["session", "bind", "--session", "s", "--workspace", &busy]);
        let told = agent.prompt("go on");
        assert!(told.contains("Running") && !told.contains("📋"), "{told}");
    }
}

/// After a restart of the machine the index is not used before it is checked.
#[test]
fn plan_is_told_at_a_later_prompt_if_the_index_cannot_be_read() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    agent.prompt("hello");
    run_as(&env, "s", &["node", "create", "--type", "execution", "--title", "t", "--requirement", "r"]);
    for entry in std::fs::read_dir(env.workspace_dir(&ws).join(".local")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("index.sqlite") {
            tanmi_base::fs::remove_tree(&entry.path()).unwrap();
        }
    }
    assert!(!agent.prompt("go on").contains("📋"));
    env.ok(&["tree"]);
    assert!(agent.prompt("go on").contains(REMINDER));
}

#[test]
fn cleared_session_still_tells_its_plan() {
    let env = TestEnv::new();
    let ws = env.init();
    let before = Agent::claude(&env, "before");
    before.start("startup");
    env.ok(&["session", "bind", "--session", "before", "--workspace", &ws]);
    before.prompt("hello");
    run_as(&env, "before", &["node", "create", "--type", "execution", "--title", "t", "--requirement", "r"]);
    let after = Agent::claude(&env, "after");
    assert!(after.start("clear").contains(&ws), "bound as before");
    assert!(after.prompt("go on").contains(REMINDER));
}

#[test]
fn started_task_confirms_plan() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    for title in ["one", "two"] {
        run_as(&env, "s", &["node", "create", "--type", "execution", "--title", title, "--requirement", "r"]);
    }
    let state = || std::fs::read_to_string(env.home_store().join("state/s.json")).unwrap();
    assert!(state().contains("\"plan\":true"), "{}", state());
    let node = env.json(&["node", "list"])["nodes"][1]["id"].as_str().unwrap().to_owned();
    run_as(&env, "s", &["node", "transition", &node, "--action", "start"]);
    assert!(!state().contains("\"plan\""), "{}", state());
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    assert!(!Agent::claude(&env, "s").prompt("go on").contains("📋"));
}

#[test]
fn plan_that_waits_for_no_confirmation_is_looked_up_once() {
    let env = TestEnv::new();
    let ws = env.init();
    let started = env.node("root", "execution", "started");
    env.ok(&["node", "transition", &started, "--action", "start"]);
    env.ok(&["workspace", "focus"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    run_as(&env, "s", &["node", "create", "--type", "execution", "--title", "t", "--requirement", "r"]);
    assert!(!Agent::claude(&env, "s").prompt("go on").contains("📋"));
    let state = std::fs::read_to_string(env.home_store().join("state/s.json")).unwrap();
    assert!(!state.contains("\"plan\""), "later prompts do not open the index: {state}");
}

#[test]
fn plan_is_told_after_the_open_problem_is_solved() {
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "execution", "Issue");
    env.ok(&["problem", "--node", "root", "No access"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", "root"]);
    let agent = Agent::claude(&env, "s");
    for _ in 0..3 {
        let told = agent.prompt("go on");
        assert!(told.contains("No access") && !told.contains("📋"), "{told}");
    }
    env.ok(&["problem", "--node", "root", "--clear"]);
    assert!(agent.prompt("go on").contains("📋"), "still due");
    env.tick(10 * MINUTE);
    assert!(!agent.prompt("go on").contains("📋"), "told once");
}

#[test]
fn plan_in_chinese_workspace_is_told_in_chinese() {
    let env = TestEnv::new();
    let args = ["workspace", "init", "--name", "重构认证模块", "--goal", "替换为 JWT"];
    let ws = env.json(&args)["workspaceId"].as_str().unwrap().to_owned();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    run_as(&env, "s", &["node", "create", "--type", "execution", "--title", "签发", "--requirement", "r"]);
    let prompt = Agent::claude(&env, "s").prompt("继续");
    assert!(prompt.contains("📋 计划节点已创建完子任务。\n建议：向用户展示完整计划并等待确认"), "{prompt}");
}
