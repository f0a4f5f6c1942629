//! The permission for the tools, and the hook for tool calls that custom rules need.

use serde_json::{Value, json};

use super::{home_path, read};
use crate::agent::Agent;
use crate::env::TestEnv;

fn allowed(env: &TestEnv) -> Value {
    read(&home_path(env, ".claude/settings.json"))["permissions"]["allow"].clone()
}

#[test]
fn install_allows_tools_only_if_told_and_uninstall_restores() {
    let env = TestEnv::new();
    let settings = home_path(&env, ".claude/settings.json");
    let original = "{\n  \"permissions\": {\"allow\": [\"Bash(ls)\"]}\n}\n";
    env.make(&settings, original);
    let install = ["install", "--platform", "claude-code"];
    let next = |args: &[&str]| env.json(&[&install[..], args].concat())["next"].to_string();
    assert!(next(&[]).contains("tanmi install --allow-tools"), "without a terminal it does not ask");
    assert_eq!(allowed(&env), json!(["Bash(ls)"]));
    assert!(!next(&["--allow-tools"]).contains("--allow-tools"));
    assert_eq!(allowed(&env), json!(["Bash(ls)", "mcp__tanmi"]));
    assert!(!next(&[]).contains("--allow-tools"), "it is allowed already");
    assert_eq!(allowed(&env), json!(["Bash(ls)", "mcp__tanmi"]));
    env.ok(&["uninstall"]);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), original);
    let refused = env.run(&[&install[..], &["--allow-tools", "--no-mcp"]].concat());
    assert!(!refused.ok && refused.stderr.contains("--no-mcp"), "{}", refused.stderr);
}

/// Runs a command on a terminal and types an answer.
#[cfg(target_os = "linux")]
fn on_terminal(env: &TestEnv, args: &[&str], answer: &str) -> String {
    use std::io::Write;
    let mut command = env.command_in("timeout", &env.project);
    let line = format!("{} {}", env!("CARGO_BIN_EXE_tanmi"), args.join(" "));
    command.args(["60", "script", "-qec", &line, "/dev/null"]);
    let piped = std::process::Stdio::piped;
    let mut child = command.stdin(piped()).stdout(piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{answer}").unwrap();
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn install_on_terminal_asks_whether_to_allow_tools() {
    let env = TestEnv::new();
    let install = ["install", "--platform", "claude-code"];
    let question = "Allow Claude Code to use Tanmi's tools without asking?";
    assert!(on_terminal(&env, &install, "n").contains(question));
    assert_eq!(allowed(&env), Value::Null);
    let silent = [&install[..], &["--yes"]].concat();
    assert!(!on_terminal(&env, &silent, "y").contains(question), "--yes skips the question");
    assert_eq!(allowed(&env), Value::Null);
    assert!(on_terminal(&env, &install, "y").contains(question));
    assert_eq!(allowed(&env), json!(["mcp__tanmi"]));
    assert!(!on_terminal(&env, &install, "y").contains(question), "it is allowed already");
}

fn write_rules(env: &TestEnv, platforms: Value) {
    let rule = json!({"id": "team/tools", "match": {"events": ["pre_tool_use"], "platforms": platforms,
        "condition": "event.payload.toolName == 'Bash' && event.payload.toolInput.includes('git push')"},
        "action": {"content": "RUN-THE-TESTS-FIRST"}});
    env.make(&env.project.join(".tanmi/rules.json"), &json!({"customRules": [rule]}).to_string());
}

fn install_issues(env: &TestEnv, args: &[&str]) -> Vec<(String, String)> {
    let run = env.run(&[&["doctor", "--json"], args].concat());
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    let issues = checks.filter(|check| {
        check["check"] == "install" && check["text"].as_str().unwrap().contains("tool calls")
    });
    issues.map(|check| (text(check, "health"), text(check, "text"))).collect()
}

#[test]
fn hook_for_tool_calls_is_installed_while_a_rule_needs_it() {
    let env = TestEnv::new();
    env.init();
    let settings = home_path(&env, ".claude/settings.json");
    let has_hook = || !read(&settings)["hooks"]["PreToolUse"].is_null();
    let install = ["install", "--platform", "claude-code"];
    let notes = || env.json(&["rules", "check"])[0]["notes"].to_string();
    env.ok(&install);
    write_rules(&env, json!([]));
    env.ok(&install);
    assert!(!has_hook(), "an untrusted rule never runs");
    env.ok(&["rules", "trust", "--yes"]);
    assert!(notes().contains("gemini-cli cannot inject text at pre_tool_use"), "{}", notes());
    assert!(notes().contains("run `tanmi install --platform claude-code --scope user`"), "{}", notes());
    let issue =
        "Claude Code (user): a rule needs the hook for tool calls (pre_tool_use), which is not installed";
    assert_eq!(install_issues(&env, &[]), [("mendable".into(), issue.into())]);
    assert_eq!(install_issues(&env, &["--fix"]), [("mended".into(), issue.into())]);
    assert!(has_hook() && install_issues(&env, &[]).is_empty());
    assert!(!notes().contains("tanmi install"), "{}", notes());

    let agent = Agent::claude(&env, "s");
    let tool = |name: &str, command: &str, id: &str| {
        let input = json!({"tool_name": name, "tool_input": {"command": command}, "tool_use_id": id});
        agent.send("PreToolUse", "preToolUse", input)
    };
    assert_eq!(tool("Bash", "ls", "t1"), "");
    assert!(tool("Bash", "git push", "t2").contains("RUN-THE-TESTS-FIRST"));
    assert_eq!(tool("Bash", "git push", "t3"), "", "throttled like a prompt");

    // The installation for the user covers the rules of all projects.
    let other = env.root().join("other");
    std::fs::create_dir_all(&other).unwrap();
    assert!(env.run_in(&other, &install).ok);
    assert!(has_hook());
    std::fs::remove_file(env.project.join(".tanmi/rules.json")).unwrap();
    // Without a rules file nothing is decided; the session is still known to be alive.
    let state = || read(&env.home_store().join("state/s.json"));
    let handled = state()["claims"]["pre_tool_use"].clone();
    env.tick(1000);
    assert_eq!(tool("Bash", "git push", "t4"), "");
    assert_eq!(state()["claims"]["pre_tool_use"], handled, "{}", state());
    assert_eq!(state()["hooks"]["pre_tool_use"], state()["aliveAt"], "{}", state());
    let unneeded =
        "Claude Code (user): the hook for tool calls (pre_tool_use) is installed, but no rule needs it";
    assert_eq!(install_issues(&env, &[]), [("mendable".into(), unneeded.into())]);
    env.ok(&install);
    assert!(!has_hook());
}

#[test]
fn tool_rule_for_a_client_that_cannot_inject_is_reported() {
    let env = TestEnv::new();
    env.init();
    write_rules(&env, json!(["gemini-cli"]));
    let run = env.run(&["rules", "check", "--json"]);
    assert!(!run.ok, "{}", run.stdout);
    let checked: Value = serde_json::from_str(&run.stdout).unwrap();
    let flaw = &checked[0]["flaws"][0];
    assert_eq!(flaw["message"], "the rule has no effect: gemini-cli cannot inject text at pre_tool_use");
    write_rules(&env, json!(["gemini-cli", "codex"]));
    let checked = env.json(&["rules", "check"]);
    assert_eq!(checked[0]["notes"], json!(["team/tools: gemini-cli cannot inject text at pre_tool_use"]));
}
