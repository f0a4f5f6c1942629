//! Files of other format versions: older ones are opened, newer ones are refused and left unchanged.

use serde_json::json;

use crate::env::TestEnv;

const WORKSPACE: &str = "---
id: ws-old1-abcdef
name: 旧工作区
goal: 保持可用
status: active
rulesHash: \"\"
focusedNodeId: node-old1-abcdef
createdAt: 1700000000000
updatedAt: 1700000000000
---

## 规则

- 不要丢数据
";

const ROOT: &str = "---
id: root
type: planning
title: 旧工作区
parentId: null
status: monitoring
createdAt: 1700000000000
updatedAt: 1700000000000
---
";

const NODE: &str = "---
id: node-old1-abcdef
type: execution
title: 旧任务
parentId: root
status: implementing
isolated: false
createdAt: 1700000000000
updatedAt: 1700000000000
---

## 需求

继续工作
";

/// Creates a project as the first version of this program and earlier tools wrote it: no format number, bindings in a
/// project file, facts in one file, registry and trust files without versions.
fn old_project(env: &TestEnv) {
    let store = env.project.join(".tanmi-workspace");
    env.make(&store.join("ws-old1-abcdef/Workspace.md"), WORKSPACE);
    env.make(&store.join("ws-old1-abcdef/nodes/root/Node.md"), ROOT);
    env.make(&store.join("ws-old1-abcdef/nodes/node-old1-abcdef/Node.md"), NODE);
    let sessions = json!({"bindings": {"s-old": {"workspaceId": "ws-old1-abcdef", "focusedNodeId": "node-old1-abcdef", "boundAt": 1_700_000_000_000_i64}}});
    env.make(&store.join("sessions.json"), &sessions.to_string());
    env.make(
        &store.join("memory/facts.jsonl"),
        "{\"content\": \"端口是 8080\", \"timestamp\": \"2025-12-01T00:00:00Z\"}\n",
    );
    let home = env.home_store();
    let project = env.project.display().to_string();
    env.make(
        &home.join("trust.json"),
        &json!({"projects": {project.as_str(): {"at": 1, "how": "created"}}}).to_string(),
    );
    env.make(
        &home.join("registry.json"),
        &json!({"workspaces": {"ws-old1-abcdef": {"project": project, "name": "旧工作区"}}}).to_string(),
    );
}

#[test]
fn older_format_opens_and_can_be_changed() {
    let env = TestEnv::new();
    old_project(&env);
    assert_eq!(env.status("node-old1-abcdef"), "implementing");
    assert!(env.ok(&["memory", "search", "端口"]).contains("8080"));
    assert!(env.ok(&["workspace", "list", "--all"]).contains("旧工作区"));
    let binding = env.json(&["session", "status", "--session", "s-old"]);
    assert_eq!(binding["focusedNode"]["id"], "node-old1-abcdef");
    env.ok(&["node", "transition", "node-old1-abcdef", "--action", "submit"]);
    let text = std::fs::read_to_string(env.workspace_dir("ws-old1-abcdef").join("Workspace.md")).unwrap();
    assert!(text.contains("## 规则") && text.contains("- 不要丢数据"), "{text}");
    env.ok(&["doctor", "--fix"]);
    env.ok(&["doctor"]);
}

#[test]
fn newer_format_is_refused_and_unchanged() {
    let env = TestEnv::new();
    let workspace = env.init();
    let path = env.workspace_dir(&workspace).join("Workspace.md");
    assert!(std::fs::read_to_string(&path).unwrap().contains("\nformatVersion: 1\n"));
    env.edit(&path, |text| text.replace("formatVersion: 1", "formatVersion: 2"));
    let newer = std::fs::read(&path).unwrap();
    let error = env.error(&["node", "create", "--type", "execution", "--title", "t"]);
    assert!(error["message"].as_str().unwrap().contains("upgrade tanmi"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), newer);
    // A `formatVersion` that is not a number belongs to the user and is ignored.
    env.edit(&path, |text| text.replace("formatVersion: 2", "formatVersion: mine"));
    env.node("root", "execution", "t");
}

#[test]
fn newer_journal_is_refused_and_unchanged() {
    let env = TestEnv::new();
    let workspace = env.init();
    env.node("root", "execution", "a");
    let local = env.workspace_dir(&workspace).join(".local");
    // A newer program may use other fields, and a header longer than this program reads at first.
    let long = "x".repeat(600);
    for header in [
        String::from(r#"{"version":2,"base":1,"boot":"b"}"#),
        String::from(r#"{"version":2}"#),
        format!(r#"{{"version":2,"machine":"{long}"}}"#),
    ] {
        let journal = format!("H {header}\nQ 1 unknown\n");
        env.write(&local.join("journal"), journal.as_bytes());
        tanmi_base::fs::remove_tree(&local.join("index.sqlite")).unwrap();
        env.write(&local.join("tmp/unfinished"), b"x");
        for args in [&["node", "create", "--type", "execution", "--title", "t"][..], &["tree"]] {
            let error = env.error(args);
            assert_eq!(error["code"], "FILE_DAMAGED", "{error}");
            assert!(error["message"].as_str().unwrap().contains("upgrade tanmi"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(local.join("journal")).unwrap(), journal);
        assert!(local.join("tmp/unfinished").exists() && !local.join("kept").exists());
    }
}
