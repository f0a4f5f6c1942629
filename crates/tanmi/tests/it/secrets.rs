//! Secrets in the texts of workspaces: masked for agents, kept with a warning for people.

use serde_json::{Value, json};

use crate::env::{Run, TestEnv};
use crate::mcp::Client;
use crate::serve::Server;

/// Put together, so that secret scanners do not report this file.
const SECRET: &str = concat!("ghp", "_Zk4Rt8Lw2Qx6Vn0Bm3Jc7Hd1Sf5Gp9YaTe2Ui");
const MASK: &str = "[masked: GitHub token]";

/// Returns whether a file below the project or the home store contains the secret. Indexes and journals count.
fn is_stored(env: &TestEnv) -> bool {
    let mut folders = vec![env.root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let bytes = std::fs::read(entry.path()).unwrap();
                if bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()) {
                    return true;
                }
            }
        }
    }
    false
}

#[test]
fn mcp_write_with_secret_is_masked_and_answer_says_so() {
    let env = TestEnv::new();
    let mut agent = Client::connect(&env);
    let text = format!("use {SECRET} here");
    let is_masked =
        |answer: &Value| answer["masked"].as_array().is_some_and(|kinds| kinds[0] == "GitHub token");
    let init =
        json!({"name": text, "goal": text, "rules": [text], "docs": [{"path": "a", "description": text}]});
    let made = agent.expect_ok("workspace_init", init);
    assert!(is_masked(&made), "{made}");
    let hash = made["rulesHash"].clone();
    let new = json!({
        "parentId": "root", "type": "execution", "title": text, "requirement": text, "note": text, "rulesHash": hash,
    });
    let node = agent.expect_ok("node_create", new);
    assert!(is_masked(&node), "{node}");
    let id = node["nodeId"].clone();
    for (tool, arguments) in [
        ("workspace_update", json!({"goal": format!("again {text}"), "addRules": [format!("more {text}")]})),
        ("node_update", json!({"nodeId": id, "note": format!("again {text}")})),
        ("log_append", json!({"nodeId": id, "log": text})),
        ("problem_update", json!({"nodeId": id, "description": text, "nextStep": text})),
        ("node_reference", json!({"nodeId": id, "targetId": "b.md", "description": text})),
    ] {
        let answer = agent.expect_ok(tool, arguments);
        assert!(is_masked(&answer), "{tool}: {answer}");
    }
    agent.expect_ok("node_transition", json!({"nodeId": id, "action": "start"}));
    let fail = json!({"nodeId": id, "action": "fail", "conclusion": text});
    let failed = agent.expect_ok("node_transition", fail);
    assert!(is_masked(&failed), "{failed}");
    let node = agent.expect_ok("node_get", json!({"nodeId": id}));
    assert_eq!(node["node"]["requirement"], format!("use {MASK} here"));
    let ordinary =
        agent.expect_ok("log_append", json!({"nodeId": id, "log": "the password is stored hashed"}));
    assert_eq!(ordinary.get("masked"), None);
    agent.finish();
    assert!(!is_stored(&env));
}

#[test]
fn command_of_person_keeps_secret_and_warns() {
    let env = TestEnv::new();
    env.init();
    let text = format!("use {SECRET} here");
    let run = env.run(&["log", &text, "-n", "workspace"]);
    assert!(run.ok && run.stdout.contains(SECRET), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("log seems to contain a secret (GitHub token)"), "{}", run.stderr);
    assert!(run.stderr.contains("--mask-secrets") && !run.stderr.contains(SECRET), "{}", run.stderr);
    let logged = env.json(&["log", &text, "-n", "workspace"]);
    assert_eq!(logged["entries"][0]["event"], text);
    assert!(logged["warnings"][0].as_str().unwrap().contains("GitHub token"), "{logged}");

    let run = env.run(&["log", &text, "-n", "workspace", "--mask-secrets"]);
    assert!(run.stdout.contains(MASK) && !run.stdout.contains(SECRET), "{}", run.stdout);
    assert!(run.stderr.contains("secrets masked before saving: GitHub token"), "{}", run.stderr);
    let logged = env.json(&["log", &text, "-n", "workspace", "--mask-secrets"]);
    assert_eq!(logged["masked"], json!(["GitHub token"]));

    let zh = TestEnv::with_lang("zh_CN.UTF-8");
    zh.init();
    let run = zh.run(&["log", &text, "-n", "workspace"]);
    assert!(run.stderr.contains("log 中可能有敏感信息（GitHub token）"), "{}", run.stderr);
}

#[test]
fn command_in_shell_of_agent_is_masked() {
    let env = TestEnv::new();
    env.init();
    let in_agent = |args: &[&str]| Run::of(env.command(args).env("CLAUDECODE", "1").output().unwrap());
    let run = in_agent(&["log", &format!("use {SECRET} here"), "-n", "workspace"]);
    assert!(run.ok && run.stdout.contains(MASK), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("secrets masked before saving: GitHub token"), "{}", run.stderr);
    assert!(!is_stored(&env));

    let run = in_agent(&["workspace", "update", "--secret-masking", "off", "--json"]);
    assert!(!run.ok && run.stdout.contains("USER_DECIDES"), "{}", run.stdout);
}

#[test]
fn masking_setting_is_kept_in_the_file_and_obeyed_over_mcp() {
    let env = TestEnv::new();
    let ws = env.init();
    let file = env.workspace_dir(&ws).join("Workspace.md");
    let has_line = || std::fs::read_to_string(&file).unwrap().contains("\nmaskSecrets: false\n");
    assert!(!has_line());
    assert_eq!(env.json(&["workspace", "update", "--secret-masking", "off"])["maskSecrets"], false);
    assert!(has_line());
    assert!(env.ok(&["workspace", "show"]).contains("off: secrets are stored as they are"));
    let mut agent = Client::connect(&env);
    let logged = agent.expect_ok("log_append", json!({"nodeId": "workspace", "log": SECRET}));
    assert_eq!(logged.get("masked"), None, "{logged}");
    assert!(is_stored(&env) && has_line());
    assert_eq!(agent.expect_ok("workspace_get", json!({}))["maskSecrets"], false);
    let error = agent.expect_error("workspace_update", json!({"maskSecrets": false}));
    assert_eq!(error["code"], "UNKNOWN_PARAMETER", "{error}");

    env.ok(&["workspace", "update", "--secret-masking", "on"]);
    let logged = agent.expect_ok("log_append", json!({"nodeId": "workspace", "log": SECRET}));
    assert_eq!(logged["masked"], json!(["GitHub token"]));
    agent.finish();
}

#[test]
fn page_request_keeps_masks_or_asks() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let nodes = format!("/workspaces/{ws}/nodes");
    let new =
        |title: &str| json!({"parentId": "root", "type": "execution", "title": title, "requirement": SECRET});
    let count = || server.expect_ok("GET", &nodes, Value::Null)["nodes"].as_array().unwrap().len();
    let before = count();
    let error = server.expect_error("POST", &format!("{nodes}?secrets=ask"), new("A"), 409);
    assert_eq!(error["code"], "SECRETS_FOUND");
    assert_eq!(error["details"]["secrets"], json!([{"field": "requirement", "kind": "GitHub token"}]));
    assert_eq!(count(), before, "nothing was saved");
    assert!(!is_stored(&env));

    let masked = server.expect_ok("POST", &format!("{nodes}?secrets=mask"), new("B"));
    assert_eq!(masked["masked"], json!(["GitHub token"]));
    assert!(!is_stored(&env));
    for path in [nodes.clone(), format!("{nodes}?secrets=keep")] {
        let kept = server.expect_ok("POST", &path, new("C"));
        let warning = kept["warnings"][0].as_str().unwrap();
        assert!(warning.contains("requirement") && warning.contains("GitHub token"), "{warning}");
    }
    assert!(is_stored(&env));
    let error = server.expect_error("POST", &format!("{nodes}?secrets=maybe"), new("D"), 400);
    assert_eq!(error["code"], "INVALID_ARGUMENT");

    server.expect_ok("PUT", &format!("/workspaces/{ws}/masking"), json!({"on": false}));
    assert_eq!(server.expect_ok("GET", &format!("/workspaces/{ws}"), Value::Null)["maskSecrets"], false);
    let kept = server.expect_ok("POST", &format!("{nodes}?secrets=ask"), new("E"));
    assert_eq!(kept.get("warnings"), None, "{kept}");
}
