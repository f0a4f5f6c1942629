//! Trust: which content of a project is used before and after the user agrees, and which folder is the agreed one.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::{Agent, hook};
use crate::declared_context::declare;
use crate::env::TestEnv;
use crate::mcp::Client;

const ID_FILE: &str = ".tanmi-workspace/.local/project-id";

fn start(env: &TestEnv, session: &str) -> String {
    Agent::claude(env, session).start("startup")
}

fn start_subagent(env: &TestEnv, session: &str) -> String {
    // An event with a known agent id is handled once.
    let id = tanmi_base::id::random(6);
    Agent::claude(env, session).send("SubagentStart", "", json!({"agent_type": "Explore", "agent_id": id}))
}

fn trust_file(env: &TestEnv) -> Value {
    let bytes = std::fs::read(env.home_store().join("trust.json")).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn is_trusted(env: &TestEnv) -> bool {
    !env.json(&["trust", "--revoke"])["done"].eq(&json!(false))
}

/// Creates a project with memory, declared context and a text for subagents, as a clone would contain them.
fn fill_project(env: &TestEnv) {
    declare(env, json!({"files": ["docs/ctx.md"]}));
    env.make(&env.project.join("docs/ctx.md"), "TEXT-DECLARED\n");
    env.make(&env.project.join(".tanmi/subagents/general.md"), "TEXT-SUBAGENT\n");
    env.make(&env.project.join(".tanmi-workspace/memory/MEMORY.md"), "TEXT-MEMORY\n");
}

/// Returns which of the texts of [`fill_project`] are injected.
fn injected(env: &TestEnv) -> Vec<&'static str> {
    env.tick(1_000);
    let all = format!("{}{}", start(env, "look"), start_subagent(env, "look"));
    ["TEXT-DECLARED", "TEXT-SUBAGENT", "TEXT-MEMORY"].into_iter().filter(|text| all.contains(text)).collect()
}

/// Deletes the project and puts a fresh clone of it at the same path: everything except ignored files.
fn clone_anew(env: &TestEnv) {
    let copy = env.root().join("copy");
    assert!(
        std::process::Command::new("cp").arg("-r").args([&env.project, &copy]).status().unwrap().success()
    );
    tanmi_base::fs::remove_tree(&env.project).unwrap();
    tanmi_base::fs::remove_tree(&copy.join(".tanmi-workspace/.local")).unwrap();
    std::fs::rename(copy, &env.project).unwrap();
}

#[test]
fn project_cloned_anew_at_same_path_is_not_trusted() {
    let env = TestEnv::new();
    fill_project(&env);
    assert_eq!(injected(&env), [""; 0]);
    env.ok(&["trust", "--yes"]);
    assert_eq!(injected(&env).len(), 3);
    clone_anew(&env);
    assert_eq!(injected(&env), [""; 0]);
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("not the folder that you agreed to"), "{}", doctor.stdout);
    env.ok(&["trust", "--yes"]);
    assert_eq!(injected(&env).len(), 3);
}

/// The trash is ignored by git, but a repository can contain it all the same.
#[test]
fn name_of_deleted_workspace_in_project_cloned_anew_is_not_told() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    env.ok(&["workspace", "delete", &ws, "--yes"]);
    let told = start(&env, "s");
    assert!(told.contains("its workspace “Auth”"), "{told}");
    clone_anew(&env);
    let told = start(&env, "s");
    assert!(told.contains("is missing") && !told.contains("Auth"), "{told}");
}

#[test]
fn project_id_that_came_with_clone_is_replaced() {
    let env = TestEnv::new();
    fill_project(&env);
    let id = || std::fs::read_to_string(env.project.join(ID_FILE)).unwrap();
    env.make(&env.project.join(ID_FILE), "committed\n");
    env.ok(&["trust", "--yes"]);
    assert_ne!(id(), "committed\n");
    assert_eq!(
        std::fs::read_to_string(env.project.join(".tanmi-workspace/.local/.gitignore")).unwrap(),
        "*\n"
    );
    let recorded = id();
    env.ok(&["trust", "--yes"]);
    assert_eq!(id(), recorded, "the id of a trusted folder stays");
    clone_anew(&env);
    env.make(&env.project.join(ID_FILE), "committed\n");
    assert_eq!(injected(&env), [""; 0]);
}

#[test]
fn project_id_is_ignored_by_git() {
    let env = TestEnv::new();
    let git = |args: &[&str]| {
        let output = env.command_in("git", &env.project).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    fill_project(&env);
    env.ok(&["trust", "--yes"]);
    let status = git(&["status", "--short", "--untracked-files=all"]);
    assert!(status.contains(".tanmi/context.json") && !status.contains(".local"), "{status}");
    git(&["clean", "-fdxq", ".tanmi-workspace/.local"]);
    assert_eq!(injected(&env), [""; 0], "git clean -fdx removes the id");
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("git clean -fdx"), "{}", doctor.stdout);
}

#[test]
fn entry_of_older_version_gets_id_from_command_and_not_from_hook() {
    let env = TestEnv::new();
    fill_project(&env);
    let path = env.project.canonicalize().unwrap().display().to_string();
    let old = json!({"version": 1, "projects": {&path: {"at": 1, "how": "trusted"}}, "rules": {}});
    env.make(&env.home_store().join("trust.json"), &old.to_string());
    assert_eq!(injected(&env).len(), 3, "a hook trusts the path");
    assert_eq!(trust_file(&env), old, "a hook writes nothing");
    assert!(!env.project.join(ID_FILE).exists());
    env.ok(&["workspace", "list"]);
    assert!(trust_file(&env)["projects"][&path]["id"].is_string());
    assert_eq!(injected(&env).len(), 3, "the present content is agreed to");
    env.write(&env.project.join("docs/ctx.md"), b"TEXT-DECLARED, changed\n");
    assert!(!injected(&env).contains(&"TEXT-DECLARED"));
    clone_anew(&env);
    assert_eq!(injected(&env), [""; 0]);
}

#[test]
fn changed_or_new_file_is_left_out_until_user_agrees() {
    const NOTICE: &str = "changed since the user agreed; `tanmi trust` shows";
    let env = TestEnv::new();
    fill_project(&env);
    env.ok(&["trust", "--yes"]);
    assert!(!start(&env, "s").contains(NOTICE));
    let cases = [
        ("docs/ctx.md", "TEXT-DECLARED-TWO", "TEXT-DECLARED"),
        (".tanmi/context.json", "{\"files\": [\"docs/ctx.md\"], \"marker\": \"x\"}", "TEXT-DECLARED"),
        (".tanmi/subagents/general.md", "TEXT-SUBAGENT-TWO", "TEXT-SUBAGENT"),
        (".tanmi/subagents/Explore.md", "TEXT-EXPLORE", "TEXT-EXPLORE"),
    ];
    for (name, text, injected_text) in cases {
        env.make(&env.project.join(name), text);
        env.tick(1_000);
        let (of_start, of_subagent) = (start(&env, name), start_subagent(&env, name));
        let all = format!("{of_start}{of_subagent}");
        assert!(!all.contains(injected_text), "{name}: {all}");
        // Texts for subagents are not read at a session start.
        assert_eq!(of_start.contains(NOTICE), !name.contains("subagents"), "{name}: {of_start}");
        let shown = env.ok(&["context", "show", "--agent", "Explore"]) + &env.ok(&["context", "show"]);
        assert!(shown.contains("run `tanmi trust`"), "{name}: {shown}");
        let doctor = env.run(&["doctor"]);
        assert!(doctor.stdout.contains("changed since you agreed"), "{name}: {}", doctor.stdout);
        let asked = env.error(&["trust"]);
        assert_eq!(asked["details"].as_array().unwrap().len(), 1, "{name}: {asked}");
        assert!(asked["details"][0]["path"].as_str().unwrap().ends_with(name), "{name}: {asked}");
        assert_eq!(asked["details"][0]["changed"], json!(!name.contains("Explore")), "{name}: {asked}");
        env.ok(&["trust", "--yes"]);
        let all = format!("{}{}", start(&env, &format!("{name}-2")), start_subagent(&env, "t"));
        assert!(all.contains(injected_text) && !all.contains(NOTICE), "{name}: {all}");
    }
}

#[test]
fn changed_file_is_injected_into_running_session_once_agreed() {
    let env = TestEnv::new();
    fill_project(&env);
    declare(&env, json!({"files": ["docs/ctx.md", "docs/other.md"]}));
    env.make(&env.project.join("docs/other.md"), "OTHER\n");
    env.ok(&["trust", "--yes"]);
    let agent = Agent::claude(&env, "s");
    assert!(agent.start("startup").contains("TEXT-DECLARED"));
    env.write(&env.project.join("docs/ctx.md"), b"TEXT-TWO\n");
    assert!(!agent.prompt("x").contains("TEXT"));
    assert!(!agent.prompt("x").contains("TEXT"));
    env.ok(&["trust", "--yes"]);
    assert!(agent.prompt("x").contains("TEXT-TWO"));
    assert!(!agent.prompt("x").contains("TEXT-TWO"), "once");
}

#[test]
fn init_in_folder_with_content_leaves_project_untrusted() {
    type Fill = fn(&TestEnv);
    let fills: &[(&str, Fill)] = &[
        ("store", |env| env.make(&env.project.join(".tanmi-workspace/memory/MEMORY.md"), "TEXT-MEMORY")),
        ("config", |env| env.make(&env.project.join(".tanmi/subagents/general.md"), "TEXT-SUBAGENT")),
        ("memory of an older tool", |env| {
            env.make(&env.project.join(".cursor/skills/memory-data/MEMORY.md"), "TEXT-MEMORY");
        }),
        #[cfg(unix)]
        ("dangling link", |env| {
            std::os::unix::fs::symlink("node_modules/x", env.project.join(".tanmi")).unwrap();
        }),
    ];
    for (name, fill) in fills {
        for by_tool in [false, true] {
            let env = TestEnv::new();
            fill(&env);
            let made = if by_tool {
                let mut client = Client::connect(&env);
                client.expect_ok("workspace_init", json!({"name": "n", "goal": "g"}))
            } else {
                env.json(&["workspace", "init", "--name", "n", "--goal", "g"])
            };
            assert!(
                made["notice"].as_str().is_some_and(|text| text.contains("tanmi trust")),
                "{name}: {made}"
            );
            assert_eq!(injected(&env), [""; 0], "{name}");
            assert!(!is_trusted(&env), "{name}");
        }
    }
    let env = TestEnv::new();
    let made = env.json(&["workspace", "init", "--name", "n", "--goal", "g"]);
    assert!(made["notice"].is_null(), "{made}");
    assert!(is_trusted(&env));
}

#[test]
fn first_memory_in_folder_with_content_leaves_project_untrusted() {
    let env = TestEnv::new();
    env.make(&env.project.join(".tanmi/subagents/general.md"), "TEXT-SUBAGENT");
    let saved = env.json(&["memory", "save-fact", "Port is 8080"]);
    assert!(saved["notice"].as_str().is_some_and(|text| text.contains("tanmi trust")), "{saved}");
    assert!(!start(&env, "s").contains("8080"));
    env.ok(&["trust", "--yes"]);
    assert!(start(&env, "t").contains("8080"));
    let env = TestEnv::new();
    assert!(env.json(&["memory", "save-fact", "Port is 8080"])["notice"].is_null());
    assert!(start(&env, "s").contains("8080"), "in a clean folder the memory is the user's own");
}

#[test]
fn memory_of_older_tool_that_appears_later_is_not_injected() {
    let env = TestEnv::new();
    env.init();
    env.make(&env.project.join(".cursor/skills/memory-data/MEMORY.md"), "TEXT-MEMORY");
    assert_eq!(injected(&env), [""; 0]);
    let doctor = env.run(&["doctor"]);
    assert!(!doctor.ok && doctor.stdout.contains("tanmi trust"), "{}", doctor.stdout);
    let asked = env.run(&["trust"]);
    assert!(asked.stdout.contains("memory-data"), "{}", asked.stdout);
    env.ok(&["trust", "--yes"]);
    assert_eq!(injected(&env), ["TEXT-MEMORY"]);
}

#[cfg(unix)]
#[test]
fn linked_config_folder_is_never_read() {
    use std::os::unix::fs::symlink;
    let env = TestEnv::new();
    symlink("node_modules/x", env.project.join(".tanmi")).unwrap();
    env.init();
    let target = env.project.join("node_modules/x");
    env.make(&target.join("context.json"), "{\"files\": [\"docs/ctx.md\"]}");
    env.make(&target.join("subagents/general.md"), "TEXT-SUBAGENT");
    env.make(&target.join("config.json"), "{\"memory\": false}");
    let rule =
        json!([{"id": "r", "match": {"events": ["session_start"]}, "action": {"content": "TEXT-RULE"}}]);
    env.make(&target.join("rules.json"), &rule.to_string());
    env.make(&env.project.join("docs/ctx.md"), "TEXT-DECLARED");
    for step in ["untrusted", "trusted"] {
        let all = format!("{}{}", start(&env, step), start_subagent(&env, step));
        assert!(!all.contains("TEXT-"), "{step}: {all}");
        assert_eq!(env.json(&["config", "get", "memory"])[0]["value"], "true", "{step}");
        env.ok(&["trust", "--yes"]);
    }
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains(".tanmi is a symbolic link"), "{}", doctor.stdout);
    assert!(!env.run(&["config", "set", "memory", "false", "--for-project"]).ok, "nor written through");
}

#[cfg(unix)]
#[test]
fn link_in_config_folder_that_leads_out_of_project_is_never_read() {
    use std::os::unix::fs::symlink;
    let env = TestEnv::new();
    let outside = env.root().join("outside");
    let rule =
        json!([{"id": "r", "match": {"events": ["session_start"]}, "action": {"content": "TEXT-RULE"}}]);
    env.make(&outside.join("rules.json"), &rule.to_string());
    env.make(&outside.join("context.json"), "{\"files\": [\"docs/ctx.md\"]}");
    env.make(&outside.join("config.json"), "{\"memory\": false}");
    env.make(&outside.join("subagents/general.md"), "TEXT-SUBAGENT");
    env.make(&env.project.join("docs/ctx.md"), "TEXT-DECLARED");
    std::fs::create_dir(env.project.join(".tanmi")).unwrap();
    for name in ["rules.json", "context.json", "config.json", "subagents"] {
        symlink(outside.join(name), env.project.join(".tanmi").join(name)).unwrap();
    }
    env.ok(&["trust", "--yes"]);
    let all = format!("{}{}", start(&env, "s"), start_subagent(&env, "s"));
    assert!(!all.contains("TEXT-"), "{all}");
    assert_eq!(env.json(&["config", "get", "memory"])[0]["value"], "true");
    assert!(env.run(&["rules", "check"]).stdout.contains("leads out of the project"));
}

/// A workspace of a clone, and the bindings of an older layout that name it.
fn clone_with_sessions(env: &TestEnv, sessions: &Value) -> String {
    let ws = env.init();
    env.ok(&["trust", "--revoke"]);
    let path = env.project.join(".tanmi-workspace/sessions.json");
    env.make(&path, &sessions.to_string().replace("WS", &ws));
    ws
}

#[test]
fn sessions_file_of_clone_binds_no_session_before_trust_and_never_in_hook() {
    let env = TestEnv::new();
    let ws = clone_with_sessions(&env, &json!({"bindings": {"victim": {"workspaceId": "WS"}}}));
    assert!(!start(&env, "victim").contains(&ws));
    assert_eq!(env.json(&["session", "status", "--session", "victim"])["bound"], false);
    env.ok(&["trust", "--yes"]);
    assert_eq!(env.json(&["session", "status", "--session", "victim"])["bound"], true);
    // A trusted project: only a command imports.
    env.make(
        &env.project.join(".tanmi-workspace/sessions.json"),
        &format!("{{\"bindings\": {{\"later\": {{\"workspaceId\": \"{ws}\"}}}}}}"),
    );
    assert!(!start(&env, "later").contains("Goal"));
    assert_eq!(env.json(&["session", "status", "--session", "later"])["bound"], true);
}

#[test]
fn sessions_file_with_many_entries_imports_newest_thousand() {
    let env = TestEnv::new();
    let bindings: serde_json::Map<String, Value> =
        (0..20_000).map(|at| (format!("s-{at:05}"), json!({"workspaceId": "WS", "boundAt": at}))).collect();
    clone_with_sessions(&env, &json!({"bindings": bindings}));
    let bound = || {
        let file = std::fs::read(env.home_store().join("session-bindings.json")).unwrap_or_default();
        let file: Value = serde_json::from_slice(&file).unwrap_or_default();
        let ids: Vec<String> = file.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
        ids
    };
    start(&env, "s-19999");
    assert_eq!(bound(), [""; 0], "a hook imports nothing");
    env.ok(&["trust", "--yes"]);
    let bound = bound();
    assert_eq!((bound.len(), bound[0].as_str()), (1_000, "s-19000"));
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("the oldest 19000 bindings"), "{log}");
}

#[test]
fn settings_of_project_do_not_count_without_consent() {
    let env = TestEnv::new();
    let rule =
        json!([{"id": "r", "match": {"events": ["session_start"]}, "action": {"content": "TEXT-RULE"}}]);
    env.make(&env.root().join("home/.tanmi/rules.json"), &rule.to_string());
    env.make(&env.root().join("home/.tanmi/context.json"), "{\"files\": [\"own.md\"]}");
    env.make(&env.root().join("home/own.md"), "TEXT-OWN");
    let settings = "{\"customRules\": false, \"declaredContext\": false, \"ledger\": false}";
    env.make(&env.project.join(".tanmi/config.json"), settings);
    env.ok(&["config", "set", "reminders", "true"]);
    let lines = || env.json(&["ledger"])["total"]["decisions"].as_u64().unwrap();
    let is_complete = |session: &str| {
        let text = start(&env, session);
        text.contains("TEXT-RULE") && text.contains("TEXT-OWN")
    };
    assert!(is_complete("a"));
    assert_eq!(lines(), 1, "the ledger records it");
    let shown = env.run(&["config", "list"]);
    assert!(shown.stderr.contains("config.json is ignored: you have not agreed to it"), "{}", shown.stderr);
    assert!(env.run(&["config", "get", "ledger"]).stderr.contains("is ignored"));
    env.ok(&["trust", "--yes"]);
    assert!(!start(&env, "b").contains("TEXT"));
    assert_eq!(lines(), 1);
    env.make(&env.project.join(".tanmi/config.json"), &settings.replace("false", " false"));
    assert!(is_complete("c"), "changed settings do not count");
    assert!(env.run(&["config", "list"]).stderr.contains("changed since you agreed"));
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("changed since you agreed"), "{}", doctor.stdout);
}

#[test]
fn settings_that_user_writes_count_and_others_in_the_file_do_not() {
    let env = TestEnv::new();
    let value = |key: &str| env.json(&["config", "get", key])[0]["value"].as_str().unwrap().to_owned();
    env.ok(&["config", "set", "memory", "false", "--for-project"]);
    assert_eq!(value("memory"), "false", "in a clean folder");
    env.ok(&["config", "set", "reminders", "false", "--for-project"]);
    assert_eq!(value("reminders"), "false", "in an agreed file");
    env.make(&env.project.join(".tanmi/config.json"), "{\"ledger\": false}");
    let set = env.run(&["config", "set", "memory", "false", "--for-project"]);
    assert!(set.ok && set.stderr.contains("is ignored"), "{}", set.stderr);
    assert_eq!((value("memory"), value("ledger")), ("true".into(), "true".into()), "in a changed file");
}

#[test]
fn changed_rules_are_reported_as_changed() {
    let env = TestEnv::new();
    env.init();
    let rules = env.project.join(".tanmi/rules.json");
    let rule =
        json!([{"id": "r", "match": {"events": ["session_start"]}, "action": {"content": "TEXT-RULE"}}]);
    env.make(&rules, &rule.to_string());
    assert!(env.ok(&["rules", "check"]).contains("not trusted"));
    env.ok(&["rules", "trust", "--yes"]);
    assert!(start(&env, "s").contains("TEXT-RULE"));
    env.make(&rules, &rule.to_string().replace("TEXT-RULE", "IGNORE-ALL"));
    assert!(env.ok(&["rules", "check"]).contains("changed since you trusted it"));
    let text = start(&env, "t");
    assert!(text.contains("changed since the user agreed") && !text.contains("IGNORE-ALL"), "{text}");
    // A folder that replaced the agreed one does not take over its rules.
    env.make(&rules, &rule.to_string());
    clone_anew(&env);
    assert!(!start(&env, "u").contains("TEXT-RULE"));
    env.ok(&["rules", "trust", "--yes"]);
    assert!(start(&env, "v").contains("TEXT-RULE"));
}

#[test]
fn trust_command_output() {
    let mut out = String::new();
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        let env = TestEnv::with_lang(lang);
        fill_project(&env);
        let rule =
            json!([{"id": "r", "match": {"events": ["session_start"]}, "action": {"content": "Be kind"}}]);
        env.make(&env.project.join(".tanmi/rules.json"), &rule.to_string());
        env.make(&env.project.join(".tanmi/config.json"), "{\"memory\": false}");
        let mut show = |args: &[&str]| {
            let run = env.run(args);
            out.push_str(&format!("$ tanmi {}\n{}{}\n", args.join(" "), run.stdout, run.stderr));
        };
        show(&["workspace", "init", "--name", "n", "--goal", "g"]);
        show(&["trust"]);
        show(&["trust", "--yes"]);
        env.make(&env.project.join("docs/ctx.md"), "TEXT-TWO\n");
        show(&["trust"]);
        show(&["context", "show"]);
        show(&["trust", "--yes"]);
        show(&["trust"]);
        show(&["trust", "--revoke"]);
        out = crate::declared_context::redact_root(&env, &env.redact(&out));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn unknown_keys_of_home_files_survive_commands() {
    let env = TestEnv::new();
    env.init();
    let names = ["trust.json", "registry.json"];
    let edit = |path: &Path| {
        let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        value["future"] = json!(true);
        for key in ["projects", "workspaces"] {
            for (_, entry) in value[key].as_object_mut().into_iter().flatten() {
                entry["future"] = json!(true);
            }
        }
        env.write(path, value.to_string().as_bytes());
    };
    names.iter().for_each(|name| edit(&env.home_store().join(name)));
    fill_project(&env);
    env.ok(&["trust", "--yes"]);
    env.init();
    let count =
        |name: &str| std::fs::read_to_string(env.home_store().join(name)).unwrap().matches("future").count();
    assert_eq!(names.map(count), [2, 2], "trust and record keep them");
    env.ok(&["trust", "--revoke"]);
    assert_eq!(count("trust.json"), 1, "revoke keeps those of the file");
}

#[test]
fn prompt_filter_leaves_changed_file_out() {
    let env = TestEnv::new();
    fill_project(&env);
    env.ok(&["trust", "--yes"]);
    let filter = || {
        let payload = json!({"prompt": "hello", "cwd": env.project}).to_string();
        let output =
            crate::agent::run_with_payload(&env, &["hook", "--format", "prompt"], payload.as_bytes());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(filter().contains("TEXT-DECLARED"));
    env.write(&env.project.join("docs/ctx.md"), b"TEXT-DECLARED, changed\n");
    assert!(!filter().contains("TEXT-DECLARED"));
    let payload = json!({"session_id": "s", "hook_event_name": "SessionStart", "cwd": env.project});
    assert!(!hook(&env, "claude-code", payload.to_string().as_bytes()).contains("TEXT-DECLARED"));
}

#[test]
fn trust_in_an_empty_folder_offers_nothing() {
    let env = TestEnv::new();
    let run = env.run(&["trust"]);
    assert!(run.ok && run.stdout.contains("nothing to trust"), "{}{}", run.stdout, run.stderr);
    assert!(!env.project.join(".tanmi-workspace").exists());
}
