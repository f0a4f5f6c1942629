//! The permission to use our tools, and the hook for tool calls, which is installed only for rules that need it.

use super::*;

fn install_with(env: &TestEnv, client: &'static ClientSpec, options: &InstallOptions) {
    let targets = target_files(client, Scope::User, &env.folders, Some(options)).into_iter();
    let plans = targets.map(|target| plan(target, options)).collect();
    let done = apply(&env.home(), plans, options, 1).unwrap();
    let is_refused = |done: &AppliedChange| matches!(done.planned.outcome, ChangeOutcome::Refused(_));
    assert!(!done.iter().any(is_refused), "{}", client.id());
}

fn inspect_hooks(env: &TestEnv, client: &'static ClientSpec) -> InstalledState {
    let file = env.folders.hook_file(client, Scope::User);
    inspect(client, Scope::User, &env.folders).into_iter().find(|found| found.path == file).unwrap()
}

#[test]
fn permission_is_added_once_and_removed_alone() {
    let client = find("claude-code");
    let with = options("/a/tanmi");
    let without = InstallOptions { allow_tools: false, ..with.clone() };
    for text in [
        "{}\n",
        "{\"permissions\": {}}",
        "{\"permissions\": {\"allow\": []}}",
        "{\n  // mine\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls)\", // keep\n    ],\n    \"deny\": [\"WebFetch\"]\n  }\n}\n",
        "{\"permissions\": {\"allow\": [\"mcp__tanmi\"]}}",
    ] {
        let env = TestEnv::new();
        let file = env.folders.hook_file(client, Scope::User);
        write(&file, text);
        install_with(&env, client, &without);
        assert_eq!(inspect_hooks(&env, client).allows_tools, text.contains("mcp__tanmi"), "{text}");
        install_with(&env, client, &with);
        install_with(&env, client, &with);
        let now = parsed(&file);
        let count =
            now["permissions"]["allow"].as_array().unwrap().iter().filter(|e| *e == "mcp__tanmi").count();
        assert_eq!((count, inspect_hooks(&env, client).allows_tools), (1, true), "{text}");
        install_with(&env, client, &without);
        assert!(inspect_hooks(&env, client).allows_tools, "{text}: another installation keeps it");
        // Unchanged since the installation: every byte is restored.
        env.uninstall(client, Scope::User);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        // Edited since: only our entry is removed, with the containers that were created for it.
        install_with(&env, client, &with);
        let edited = std::fs::read_to_string(&file).unwrap().replacen('{', "{ \"edited\": true,", 1);
        write(&file, edited);
        env.uninstall(client, Scope::User);
        let mut expected: Value = crate::json::Json::parse(text).unwrap().value();
        expected["edited"] = true.into();
        assert_eq!(parsed(&file), expected, "{text}");
    }
}

#[test]
fn permission_that_user_added_after_installation_stays() {
    let client = find("claude-code");
    let with = options("/a/tanmi");
    let without = InstallOptions { allow_tools: false, ..with.clone() };
    for installs_again in [false, true] {
        let env = TestEnv::new();
        let file = env.folders.hook_file(client, Scope::User);
        write(&file, "{\"permissions\": {\"allow\": [\"Bash(ls)\"]}}");
        install_with(&env, client, &without);
        let text = std::fs::read_to_string(&file).unwrap();
        write(&file, text.replacen("\"Bash(ls)\"", "\"Bash(ls)\", \"mcp__tanmi\"", 1));
        if installs_again {
            install_with(&env, client, &with);
        }
        env.uninstall(client, Scope::User);
        assert_eq!(parsed(&file), json!({"permissions": {"allow": ["Bash(ls)", "mcp__tanmi"]}}));
    }
}

#[test]
fn removal_of_hooks_alone_keeps_other_parts() {
    for client in ["claude-code", "gemini-cli"].map(find) {
        let env = TestEnv::new();
        let file = env.folders.hook_file(client, Scope::Project);
        write(&file, "{\"mine\": 1}");
        env.install(client, Scope::Project, "/a/tanmi");
        let installed = parsed(&file);
        let only_hooks = InstallOptions {
            server: false,
            guide: false,
            status_line: false,
            allow_tools: false,
            ..options("")
        };
        let targets = target_files(client, Scope::Project, &env.folders, Some(&only_hooks)).into_iter();
        let receipts = Receipts::load(&env.home());
        let plans = targets.filter_map(|target| plan_removal(target, &receipts)).collect();
        remove(&env.home(), plans).unwrap();
        let left = parsed(&file);
        assert_eq!(left.get("hooks"), None, "{left}");
        for key in ["permissions", "mcpServers", "mine"] {
            assert_eq!(left.get(key), installed.get(key), "{}", client.id());
        }
        assert!(!Receipts::load(&env.home()).has_hooks(&file));
        env.uninstall(client, Scope::Project);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"mine\": 1}", "{}", client.id());
    }
}

#[test]
fn permission_in_unexpected_type_is_refused() {
    let client = find("claude-code");
    let env = TestEnv::new();
    write(&env.folders.hook_file(client, Scope::User), "{\n\"permissions\": {\n\"allow\": \"all\"}}");
    let done = env.install(client, Scope::User, "/a/tanmi");
    let outcome = &done[0].planned.outcome;
    let expected = Refusal::WrongType { line: 3, key: "permissions.allow".into(), expected: "a list" };
    assert_eq!(*outcome, ChangeOutcome::Refused(expected));
}

#[test]
fn hook_for_tools_follows_the_rules() {
    for client in CLIENTS.iter() {
        let env = TestEnv::new();
        let file = env.folders.hook_file(client, Scope::User);
        let with = options("/a/tanmi");
        let without = InstallOptions { has_tool_rules: false, ..with.clone() };
        let Some(hook) = client.recipe.hooks.iter().find(|hook| hook.reports_tools) else {
            install_with(&env, client, &with);
            assert!(!inspect_hooks(&env, client).has_tool_hook, "{}", client.id());
            continue;
        };
        let other = foreign_handler(client, "/opt/other hook");
        let theirs = json!({"version": 1, "hooks": {hook.event: [other]}});
        for text in [String::from("{}\n"), format!("{theirs:#}\n")] {
            write(&file, &text);
            install_with(&env, client, &without);
            assert!(!inspect_hooks(&env, client).has_tool_hook, "{}", client.id());
            let before = parsed(&file);
            install_with(&env, client, &with);
            let found = inspect_hooks(&env, client);
            assert!(found.has_tool_hook && found.altered.is_empty(), "{}: {found:?}", client.id());
            install_with(&env, client, &without);
            assert_eq!(parsed(&file), before, "{}: as if it had never been there", client.id());
            env.uninstall(client, Scope::User);
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{}", client.id());
        }
    }
}
