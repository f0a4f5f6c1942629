//! Help pages and usage errors as people see them, in English and Chinese, at 80 columns.

use std::process::Command;

use crate::env::{Run, TestEnv};

const COLUMNS: usize = 80;

/// Arguments that clap refuses, one of each kind.
const WRONG: &[&[&str]] = &[
    &["nod"],
    &["node", "creat"],
    &["node", "help", "creat"],
    &["--json"],
    &["tree", "--dept", "2"],
    &["tree", "--unknown"],
    &["log", "--nod", "x", "text"],
    &["log", "--unknown"],
    &["mcp", "now"],
    &["memory", "show", "--", "a", "b"],
    &["workspace", "init", "--name", "Auth"],
    &["node", "show"],
    &["workspace", "init", "--name"],
    &["install", "--scope", "users"],
    &["install", "--scope"],
    &["node", "update", "root", "--isolated", "maybe"],
    &["completions", "tcsh"],
    &["tree", "--limit", "many"],
    &["serve", "--port", "99999"],
    &["memory", "save-fact", "x", "--type", "O", "--confidence", "high"],
    &["trust", "--yes", "--revoke"],
    &["workspace", "update", "--no-rules", "--rule", "a", "--remove-rule", "b"],
    &["install", "--print", "--dry-run", "--guide"],
    &["config", "set", "language", "zh", "en"],
    &["tree", "--parent", "root", "--parent", "root"],
];

fn run(env: &TestEnv, args: &[&str]) -> Run {
    let mut command: Command = env.command(args);
    Run::of(command.env("COLUMNS", COLUMNS.to_string()).output().unwrap())
}

/// Every command with its parents, such as `node create`; the first is `tanmi` itself.
fn commands(env: &TestEnv) -> Vec<String> {
    let reference = env.ok(&["reference"]);
    let names = reference.lines().filter_map(|line| line.strip_prefix("### tanmi "));
    std::iter::once("").chain(names).map(str::to_owned).collect()
}

fn pages(env: &TestEnv) -> String {
    let mut pages = String::new();
    for command in commands(env) {
        let mut args: Vec<&str> = command.split_whitespace().collect();
        args.push("--help");
        pages.push_str(&format!("$ tanmi {}\n{}\n", args.join(" "), env.ok_at_columns(&args)));
    }
    pages
}

impl TestEnv {
    fn ok_at_columns(&self, args: &[&str]) -> String {
        let run = run(self, args);
        assert!(run.ok, "{args:?}\n{}{}", run.stdout, run.stderr);
        run.stdout
    }
}

fn errors(env: &TestEnv) -> String {
    let mut errors = String::new();
    for args in WRONG {
        let run = run(env, args);
        assert!(!run.ok, "{args:?} must fail");
        errors.push_str(&format!("$ tanmi {}\n{}{}\n", args.join(" "), run.stdout, run.stderr));
    }
    errors
}

#[test]
fn help_pages_in_english() {
    insta::assert_snapshot!("help_en", pages(&TestEnv::new()));
}

#[test]
fn help_pages_in_chinese() {
    insta::assert_snapshot!("help_zh", pages(&TestEnv::with_lang("zh_CN.UTF-8")));
}

#[test]
fn usage_errors_in_english() {
    insta::assert_snapshot!("usage_errors_en", errors(&TestEnv::new()));
}

#[test]
fn usage_errors_in_chinese() {
    insta::assert_snapshot!("usage_errors_zh", errors(&TestEnv::with_lang("zh_CN.UTF-8")));
}

#[test]
fn help_lines_fit_into_80_columns() {
    for env in [TestEnv::new(), TestEnv::with_lang("zh_CN.UTF-8")] {
        for line in pages(&env).lines().filter(|line| !line.starts_with('$')) {
            assert!(tanmi_base::text::width(line) <= COLUMNS, "{line}");
        }
    }
}

#[test]
fn help_is_the_same_for_every_way_to_request_it() {
    for env in [TestEnv::new(), TestEnv::with_lang("zh_CN.UTF-8")] {
        let page = env.ok(&["node", "create", "--help"]);
        assert_eq!(env.ok(&["node", "create", "-h"]), page);
        assert_eq!(env.ok(&["help", "node", "create"]), page);
        assert_eq!(env.ok(&["node", "help", "create"]), page);
        assert_eq!(env.run(&[]).stderr, env.ok(&["--help"]));
        assert_eq!(env.ok(&["help", "help"]).lines().count(), 3);
        assert_eq!(env.run(&["node"]).stderr, env.ok(&["node", "--help"]));
    }
}

#[test]
fn language_setting_wins_over_the_locale() {
    let env = TestEnv::new();
    env.ok(&["config", "set", "language", "zh"]);
    assert!(env.ok(&["tree", "--help"]).contains("用法："));
    assert!(env.run(&["tree", "--unknown"]).stderr.contains("未知参数 '--unknown'"));
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    env.ok(&["config", "set", "language", "en"]);
    assert!(env.ok(&["tree", "--help"]).contains("Usage: "));
}

#[test]
fn usage_errors_are_json_for_programs_in_both_languages() {
    for (lang, reason) in
        [("en_US.UTF-8", "unexpected argument '--unknown'"), ("zh_CN.UTF-8", "未知参数 '--unknown'")]
    {
        let error = TestEnv::with_lang(lang).error(&["tree", "--unknown"]);
        assert_eq!(error["code"], "USAGE");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(reason) && !message.contains('\u{1b}'), "{message}");
        assert!(!message.contains('\n') && !message.contains("tanmi tree"), "{message}");
        assert!(error["usage"].as_str().unwrap().starts_with("tanmi tree"), "{error}");
    }
}

#[test]
fn commands_that_print_text_refuse_json() {
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        let env = TestEnv::with_lang(lang);
        for args in [&["help"][..], &["help", "node"], &["man"], &["completions", "bash"]] {
            let error = env.error(args);
            assert_eq!(error["code"], "USAGE", "{args:?}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("--json") && message.contains(args[0]), "{args:?}: {message}");
        }
    }
}

#[test]
fn version_is_printed_in_both_languages() {
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        assert!(TestEnv::with_lang(lang).ok(&["--version"]).starts_with("tanmi "));
    }
}
