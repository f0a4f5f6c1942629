//! Custom rules: their sources, trust, and `rules list|check|explain`.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

const SEED: &str = include_str!("../../../engine/src/custom/seed-rules.json");

fn write_file(env: &TestEnv, path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    env.write(path, text.as_bytes());
}

fn project_rules(env: &TestEnv, text: &str) {
    write_file(env, &env.project.join(".tanmi/rules.json"), text);
}

fn rule(id: &str, event: &str, content: &str) -> String {
    json!({"customRules": [{"id": id, "match": {"events": [event]}, "action": {"content": content}}]})
        .to_string()
}

/// Creates and starts a node.
fn started_node(env: &TestEnv, title: &str) -> String {
    let started_node = env.node("root", "execution", title);
    env.ok(&["node", "transition", &started_node, "--action", "start"]);
    started_node
}

fn complete(env: &TestEnv, started_node: &str, conclusion: &str) -> Vec<String> {
    let args = ["node", "transition", started_node, "--action", "complete", "--conclusion", conclusion];
    let done = env.json(&args);
    let reminders = done["reminders"].as_array().cloned().unwrap_or_default();
    reminders.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn specification_rules_file_works_once_trusted() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    env.json(&["workspace", "init", "--name", "认证", "--goal", "JWT", "--rule", "文档同步更新"]);
    project_rules(&env, SEED);
    env.node("root", "execution", "还没做");
    assert_eq!(
        complete(&env, &started_node(&env, "实现甲"), "写完了"),
        [""; 0],
        "untrusted rules are ignored"
    );
    let explain = |node: &str| {
        let args = ["rules", "explain", "--event", "task_complete", "--workspace"];
        let ws = env.json(&["workspace", "show"])["workspaceId"].as_str().unwrap().to_owned();
        env.json(&[&args[..], &[&ws, "--node", node]].concat())
    };
    let verdict = |explained: &Value, id: &str| {
        let rules = explained["rules"].as_array().unwrap();
        rules.iter().find(|rule| rule["id"] == id).unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    let node = started_node(&env, "实现乙");
    assert_eq!(verdict(&explain(&node), "user/require-test"), "untrusted");
    let refused = env.error(&["rules", "trust"]);
    assert_eq!(refused["code"], "CONFIRMATION_REQUIRED");
    env.ok(&["rules", "trust", "--yes"]);
    let explained = explain(&node);
    assert_eq!(verdict(&explained, "user/require-test"), "said");
    assert_eq!(verdict(&explained, "smart-reminder"), "other-event");
    let (test, docs) = ("请确保已运行测试后再标记完成", "根据工作区规则，请检查是否需要更新相关文档");
    assert_eq!(complete(&env, &node, "写完了"), [test, docs]);
    assert_eq!(complete(&env, &started_node(&env, "实现丙"), "测试通过"), [docs]);

    let mut client = Client::connect(&env);
    let node = env.node("root", "execution", "实现丁");
    client.expect_ok("node_transition", json!({"nodeId": node, "action": "start"}));
    let done = client
        .expect_ok("node_transition", json!({"nodeId": node, "action": "complete", "conclusion": "好"}));
    assert_eq!(done["reminders"], json!([test, docs]), "the same over MCP");
    client.finish();

    project_rules(&env, &SEED.replace("请确保", "务必"));
    assert_eq!(
        complete(&env, &started_node(&env, "实现戊"), "写完了"),
        [""; 0],
        "changed content is not trusted"
    );
    project_rules(&env, SEED);
    env.ok(&["config", "set", "customRules", "false"]);
    assert_eq!(complete(&env, &started_node(&env, "实现己"), "写完了"), [""; 0], "disabled by the setting");
}

#[test]
fn rule_sources_override_each_other_once_trusted() {
    let env = TestEnv::new();
    let ws = env.init();
    let agent = Agent::claude(&env, "s");
    write_file(
        &env,
        &env.root().join("home/.tanmi/rules.json"),
        &rule("r", "prompt_submit", "from the user"),
    );
    assert!(
        agent.prompt("x").contains("from the user"),
        "the user's own rules need no trust and apply to unbound sessions"
    );
    assert_eq!(agent.prompt("x"), "", "throttled for three minutes");
    project_rules(&env, &rule("r", "prompt_submit", "from the project"));
    write_file(
        &env,
        &env.workspace_dir(&ws).join("rules.json"),
        &rule("r", "prompt_submit", "from the workspace"),
    );
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let next = || {
        env.tick(180_000);
        agent.prompt("x")
    };
    assert!(next().contains("from the user"), "an untrusted rule does not override another");
    let listed = env.json(&["rules", "list", "--source", "project"]);
    assert_eq!((&listed["rules"][0]["state"], &listed["total"]), (&json!("untrusted"), &json!(1)));
    env.ok(&["trust", "--yes"]);
    let injected = next();
    assert!(injected.contains("from the workspace") && !injected.contains("from the project"), "{injected}");
    assert!(injected.contains("<tanmi-smart-reminder>"), "{injected}");
    std::fs::remove_file(env.workspace_dir(&ws).join("rules.json")).unwrap();
    assert!(next().contains("from the project"));
    env.ok(&["trust", "--revoke"]);
    assert!(next().contains("from the user"));
    assert_eq!(env.json(&["trust", "--revoke"])["done"], false);
}

#[test]
fn created_project_is_trusted_and_cloned_one_is_not() {
    let env = TestEnv::new();
    env.init();
    let trusted = |env: &TestEnv| {
        let file = std::fs::read(env.home_store().join("trust.json")).unwrap_or_default();
        let file: Value = serde_json::from_slice(&file).unwrap_or_default();
        file["projects"].as_object().map_or(0, |projects| projects.len())
    };
    assert_eq!(trusted(&env), 1, "a created project is trusted");
    let other = TestEnv::new();
    project_rules(&other, SEED);
    other.init();
    assert_eq!(trusted(&other), 0, "a project with existing files is not trusted");
    other.ok(&["trust", "--yes"]);
    assert_eq!(trusted(&other), 1);
}

#[test]
fn malformed_rules_are_silent_and_logged_once() {
    let env = TestEnv::new();
    env.init();
    let agent = Agent::claude(&env, "s");
    let global = env.root().join("home/.tanmi/rules.json");
    for (text, complaint) in [
        ("{\"customRules\": [", "malformed JSON"),
        ("[{\"id\": \"a\", \"action\": {\"content\": 7}}]", "content must be a string"),
        (
            "[{\"id\": \"a\", \"match\": {\"condition\": \"node.\"}, \"action\": {\"content\": \"x\"}}]",
            "rule a: 1:",
        ),
        (
            "[{\"id\": \"b\", \"match\": {\"condition\": \"node.title == 'x'\"}, \"action\": {\"content\": \"x\"}}]",
            "rule b:",
        ),
    ] {
        write_file(&env, &global, text);
        for _ in 0..3 {
            assert_eq!(agent.prompt("x"), "", "{text}");
        }
        let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
        assert_eq!(log.matches(complaint).count(), 1, "{text}: {log}");
        assert!(!env.run(&["rules", "check"]).ok || text.contains("title"), "{text}");
    }
    std::fs::remove_file(&global).unwrap();
    std::fs::create_dir(&global).unwrap();
    assert_eq!(agent.prompt("x"), "", "a folder where a file should be");
}

/// Output of `list`, `check` and `explain` in both languages.
#[test]
fn rules_commands_output() {
    for (lang, name) in [("en_US.UTF-8", "en"), ("zh_CN.UTF-8", "zh")] {
        let env = TestEnv::with_lang(lang);
        let zh = name == "zh";
        let pick = |zh_text: &'static str, en: &'static str| if zh { zh_text } else { en };
        let made = env.json(&["workspace", "init", "--name", pick("认证", "Auth"), "--goal", "JWT"]);
        let ws = made["workspaceId"].as_str().unwrap().to_owned();
        let started_node = started_node(&env, pick("实现", "Build"));
        env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &started_node]);
        let agent = Agent::claude(&env, "s");
        agent.prompt("x");
        let text = json!({"customRules": [
            {"id": "deploy", "name": pick("部署提醒", "Deploying"), "priority": 12,
             "match": {"events": ["prompt_submit"], "condition": "event.payload.prompt.includes('deploy')"},
             "action": {"type": "reminder", "content": pick("先跑测试", "Run the tests first")}},
            {"id": "never", "match": {"events": ["prompt_submit"], "condition": "node.status == 'pending'"},
             "action": {"content": "x"}},
            {"id": "wrong", "match": {"events": ["prompt_submit"], "condition": "node.titel == 'x'"},
             "action": {"content": "x"}},
            {"id": "late", "match": {"events": ["session_start"]}, "action": {"content": "x"}, "prio": 1},
        ]});
        project_rules(&env, &serde_json::to_string_pretty(&text).unwrap());
        let mut out = String::new();
        let mut show = |args: &[&str]| {
            let run = env.run(args);
            out.push_str(&format!("$ tanmi {}\n{}{}\n", args.join(" "), run.stdout, run.stderr));
        };
        show(&["rules", "check"]);
        show(&["rules", "trust", "--yes"]);
        show(&["rules", "list"]);
        env.tick(61_000);
        let ask = ["rules", "explain", "--session", "s", "--prompt", "deploy it"];
        show(&ask);
        agent.prompt("deploy it");
        env.tick(10_000);
        show(&ask);
        show(&["rules", "explain", "--event", "session_start"]);
        show(&["pause"]);
        show(&["rules", "explain", "--session", "s", "--all"]);
        insta::assert_snapshot!(format!("rules_{name}"), env.redact(&out));
    }
}

/// The reader of `explain` and `check` is a person; only the injected text has the language of the prompt.
#[test]
fn explain_and_check_reasons_follow_setting_and_locale() {
    let is_chinese = |text: &Value| text.as_str().unwrap().chars().any(tanmi_base::lang::is_han);
    for (locale, setting, zh) in [
        ("zh_CN.UTF-8", "auto", true),
        ("en_US.UTF-8", "auto", false),
        ("en_US.UTF-8", "zh", true),
        ("zh_CN.UTF-8", "en", false),
    ] {
        let env = TestEnv::with_lang(locale);
        env.ok(&["config", "set", "language", setting]);
        project_rules(&env, r#"{"customRules": [{"id": "a", "prio": 1, "action": {"content": "x"}}]}"#);
        for prompt in ["continue the workspace", "继续工作区任务"] {
            let explained = env.json(&["rules", "explain", "--prompt", prompt]);
            for rule in explained["rules"].as_array().unwrap() {
                assert_eq!(is_chinese(&rule["why"]), zh, "{locale} {setting} {prompt}: {rule}");
            }
            assert_eq!(is_chinese(&explained["files"][0]["flaws"][0]["message"]), zh, "{explained}");
            if setting == "auto" {
                let prompt = Value::from(prompt);
                assert_eq!(is_chinese(&explained["text"]), is_chinese(&prompt), "{explained}");
            }
        }
        let checked = env.run(&["--json", "rules", "check"]);
        let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(is_chinese(&checked[0]["flaws"][0]["message"]), zh, "{checked}");
    }
}

#[test]
fn explain_replays_recorded_payload_without_writing() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let payload = json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": env.project, "prompt": "deploy"});
    let (recorded, edited) = (env.root().join("event.json"), env.root().join("edited.json"));
    env.write(&recorded, payload.to_string().as_bytes());
    env.write(&edited, rule("new", "prompt_submit", "edited").as_bytes());
    let before = env.files(&env.home_store());
    let (recorded, edited) = (recorded.display().to_string(), edited.display().to_string());
    let args = ["rules", "explain", "--payload", &recorded, "--rules", &edited];
    for _ in 0..2 {
        let explained = env.json(&args);
        let text = explained["text"].as_str().unwrap();
        assert!(text.contains("edited") && text.contains("Auth"), "{text}");
        assert_eq!(explained["bytes"], text.len());
    }
    assert_eq!(env.files(&env.home_store()), before, "nothing was written");
    let later = env.json(&[&args[..], &["--at", "1"]].concat());
    assert_eq!(later["sessionId"], "s");
    env.write(std::path::Path::new(&recorded), b"{}");
    assert_eq!(env.error(&args)["code"], "INVALID_ARGUMENT");
    assert_eq!(env.error(&["rules", "explain", "--rules", "/none"])["code"], "IO");
    assert_eq!(env.error(&["rules", "explain", "--event", "lunch"])["code"], "INVALID_ARGUMENT");
    assert_eq!(env.error(&["rules", "explain", "--platform", "abacus"])["code"], "INVALID_ARGUMENT");
}

#[test]
fn status_check_rule_becomes_reminder() {
    let env = TestEnv::new();
    env.init();
    write_file(&env, &env.root().join("home/.tanmi/rules.json"), &rule("r", "status_check", "keep it short"));
    let status = env.json(&["session", "status", "--session", "s"]);
    assert_eq!(status["reminders"], json!(["keep it short"]));
}

/// Fields that are read only on demand exist at every event, also in a hook and for a node of any type.
#[test]
fn condition_fields_exist_at_every_event() {
    let env = TestEnv::new();
    let workspace = env.init();
    let plan = env.node("root", "planning", "Plan");
    let leaf = env.node(&plan, "execution", "Leaf");
    let rules = json!({"customRules": [
        {"id": "progress", "match": {"condition": "workspace.progress.total == 2 && workspace.progress.done == 0"},
         "action": {"content": "PROGRESS"}},
        {"id": "children", "match": {"condition": "node.children.total == 0 && node.children.pending == 0"},
         "action": {"content": "CHILDREN"}},
        {"id": "parent", "match": {"condition": "node.parent.title == 'Plan' && node.parent.children.total == 1"},
         "action": {"content": "PARENT"}},
    ]});
    let file = env.project.join("edited.json");
    write_file(&env, &file, &rules.to_string());
    let file = file.to_str().unwrap();
    for event in tanmi_event::EventKind::ALL {
        let args = ["rules", "explain", "--rules", file, "--event", event.as_str()];
        let explained = env.json(&[&args[..], &["--workspace", &workspace, "--node", &leaf]].concat());
        for rule in explained["rules"].as_array().unwrap().iter().filter(|rule| rule["source"] == "project") {
            assert_eq!(rule["verdict"], "said", "{}: {rule}", event.as_str());
        }
    }
    project_rules(&env, &rules.to_string());
    env.ok(&["rules", "trust", "--yes"]);
    let agent = Agent::claude(&env, "s");
    env.ok(&["session", "bind", "-w", &workspace, "--node", &leaf, "--session", "s"]);
    let text = agent.send("Stop", "stop", json!({}));
    assert!(["PROGRESS", "CHILDREN", "PARENT"].iter().all(|part| text.contains(part)), "{text}");
}
