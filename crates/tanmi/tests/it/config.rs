//! Settings: every key has an effect, unknown keys warn, and a project may only disable features.

use crate::env::TestEnv;

#[test]
fn config_commands_output() {
    let env = TestEnv::new();
    let show = |args: &[&str]| {
        let run = env.run(args);
        format!("$ tanmi {}\n{}{}", args.join(" "), run.stdout, run.stderr)
    };
    let screen = [
        show(&["config", "list"]),
        show(&["config", "set", "language", "zh"]),
        show(&["config", "get", "language"]),
        show(&["config", "set", "language", "fr"]),
        show(&["config", "set", "auto-log", "false"]),
        show(&["config", "set", "nonsense", "1"]),
        show(&["config", "set", "contextMaxBytes", "5"]),
        show(&["config", "set", "trashRetainDays", "7", "--for-project"]),
        show(&["config", "set", "autoLog", "off", "--for-project"]),
        show(&["config", "list"]),
    ]
    .join("\n");
    insta::assert_snapshot!(env.redact(&screen));
}

#[test]
fn every_setting_has_effect() {
    let env = TestEnv::new();
    env.init();
    let task = env.node("root", "execution", "task");
    env.ok(&["config", "set", "autoLog", "false"]);
    env.ok(&["node", "transition", &task, "--action", "start"]);
    assert_eq!(env.json(&["log"])["total"], 0);
    for n in 0..5 {
        env.ok(&["log", &format!("line {n}")]);
    }
    env.ok(&["config", "set", "contextLogEntries", "2"]);
    let context = env.json(&["node", "context"]);
    assert_eq!(context["chain"][1]["log"].as_array().unwrap().len(), 2);
    env.ok(&["node", "update", &task, "--note", &"long. ".repeat(2000)]);
    env.ok(&["config", "set", "contextMaxBytes", "1000"]);
    let mut context = env.json(&["node", "context"]);
    context["text"].take();
    let chain = context["chain"].as_array().unwrap();
    assert!(chain.last().unwrap()["note"].as_str().unwrap().len() < 1000);
    assert!(context.to_string().len() <= 1000, "{context}");
    env.ok(&["config", "set", "language", "zh"]);
    assert!(env.ok(&["workspace", "show"]).contains("目标"));
    env.ok(&["config", "set", "trashRetainDays", "1"]);
    env.ok(&["node", "delete", &task]);
    let trash = || std::fs::read_dir(env.project.join(".tanmi-workspace/.trash")).unwrap().count();
    assert_eq!(trash(), 1);
    env.tick(2 * 86_400_000);
    env.json(&["workspace", "init", "--name", "second", "--goal", "g"]);
    assert_eq!(trash(), 0);
}

#[test]
fn invalid_settings_warn_and_valid_ones_apply() {
    let env = TestEnv::new();
    env.ok(&["config", "set", "language", "en"]);
    let path = env.home_store().join("config.json");
    env.write(&path, br#"{"language":"zh","autolog":true,"contextMaxBytes":"many","mine":1}"#);
    let run = env.run(&["workspace", "list"]);
    assert!(run.ok);
    assert!(run.stdout.contains("没有工作区"), "{}", run.stdout);
    assert_eq!(run.stderr.lines().count(), 3, "{}", run.stderr);
    env.ok(&["config", "set", "autoLog", "true"]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("\"mine\": 1"), "unknown keys are kept");
    env.write(&path, b"{");
    assert!(env.run(&["workspace", "list"]).stderr.contains("config.json:1"));
    assert_eq!(env.error(&["config", "set", "autoLog", "true"])["code"], "FILE_DAMAGED");
    assert_eq!(std::fs::read(&path).unwrap(), b"{", "an unreadable file is not overwritten");
}

#[test]
fn lists_of_settings_and_rules_fit_into_80_columns() {
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        let env = TestEnv::with_lang(lang);
        let rule = serde_json::json!({"customRules": [{"id": "team/long-and-unbound", "name": "a name of a rule ".repeat(6),
            "match": {"events": ["prompt_submit", "session_start"]}, "action": {"content": "x"}}]});
        env.make(&env.root().join("home/.tanmi/rules.json"), &rule.to_string());
        for args in [["config", "list"], ["rules", "list"]] {
            let listed = env.ok(&args);
            assert!(listed.lines().count() > 5 && !listed.contains('…'), "{listed}");
            for line in listed.lines() {
                assert!(tanmi_base::text::width(line) <= 80, "{line}");
            }
        }
    }
}

#[test]
fn unset_setting_has_its_default_again() {
    let env = TestEnv::new();
    let file = env.home_store().join("config.json");
    env.make(&file, "{\"mine\": 1, \"reminders\": false}");
    let unset = env.json(&["config", "unset", "reminders"]);
    assert_eq!((&unset["value"], &unset["source"]), (&"true".into(), &serde_json::Value::Null), "{unset}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("mine"), "other entries of the file stay");
    env.ok(&["config", "unset", "language"]);
    let error = env.error(&["config", "unset", "reminder"]);
    assert_eq!(error["code"], "UNKNOWN_KEY");
    assert!(error["hint"].as_str().unwrap().contains("reminders"), "{error}");
    env.ok(&["config", "set", "ledger", "false", "--for-project"]);
    assert_eq!(env.json(&["config", "unset", "ledger", "--for-project"])["value"], "true");
}
