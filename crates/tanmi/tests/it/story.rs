//! A complete piece of work in both languages: the output of every command, and the resulting files byte for byte.

use crate::env::TestEnv;

struct Words {
    lang: &'static str,
    name: &'static str,
    goal: &'static str,
    rule: &'static str,
    plan: &'static str,
    collect: &'static str,
    build: &'static str,
    requirement: &'static str,
    log: &'static str,
    problem: &'static str,
    next: &'static str,
    conclusion: &'static str,
    done: &'static str,
}

const ZH: Words = Words {
    lang: "zh_CN.UTF-8",
    name: "重构认证模块",
    goal: "将 session 认证替换为 JWT",
    rule: "密钥必须从环境变量读取",
    plan: "设计 JWT 结构",
    collect: "收集信息",
    build: "实现 token 验证",
    requirement: "验证签名和过期时间",
    log: "完成签名验证",
    problem: "时钟偏差导致误判",
    next: "允许 60 秒偏差",
    conclusion: "已看完代码\n\n## 规则\n- 所有 API 必须添加认证中间件\n\n## 文档\n- docs/jwt.md: 令牌格式",
    done: "验证通过",
};

const EN: Words = Words {
    lang: "en_US.UTF-8",
    name: "Rework auth",
    goal: "Replace sessions by JWT",
    rule: "Keys come from the environment",
    plan: "Design the token",
    collect: "Look around",
    build: "Check tokens",
    requirement: "Signature and expiry",
    log: "signature done",
    problem: "Clock skew",
    next: "Allow 60 s",
    conclusion: "Read the code\n\n## Rules\n- Every API has the middleware\n\n## Docs\n- docs/jwt.md: token format",
    done: "It holds",
};

/// Runs the story and returns the commands with their output.
fn run_story(env: &TestEnv, w: &Words) -> String {
    let mut screen = String::new();
    let mut run = |args: &[&str]| {
        env.tick(60_000);
        let run = env.run(args);
        let args: Vec<String> = args
            .iter()
            .map(|arg| if arg.contains([' ', '\n']) { format!("{arg:?}") } else { (*arg).into() })
            .collect();
        screen.push_str(&format!("$ tanmi {}\n{}{}", args.join(" "), run.stdout, run.stderr));
    };
    run(&["workspace", "list"]);
    run(&["workspace", "init", "--name", w.name, "--goal", w.goal, "--rule", w.rule]);
    run(&["node", "create", "--type", "planning", "--title", w.plan]);
    let node_id = |title: &str| {
        let page = env.json(&["node", "list"]);
        let row = page["nodes"].as_array().unwrap().iter().find(|row| row["title"] == title).unwrap().clone();
        row["id"].as_str().unwrap().to_owned()
    };
    let plan = node_id(w.plan);
    run(&[
        "node",
        "create",
        "--parent",
        &plan,
        "--type",
        "execution",
        "--title",
        w.collect,
        "--role",
        "info_collection",
    ]);
    run(&[
        "node",
        "create",
        "--parent",
        &plan,
        "--type",
        "execution",
        "--title",
        w.build,
        "--requirement",
        w.requirement,
    ]);
    let (collect, build) = (node_id(w.collect), node_id(w.build));
    run(&["node", "transition", "--node", &collect, "--action", "start"]);
    run(&["node", "transition", "--node", &collect, "--action", "complete", "--conclusion", w.conclusion]);
    run(&["node", "reference", &build, "--target", &collect, "--description", w.collect]);
    run(&["node", "reference", &build, "--target", "docs/old.md", "--description", w.plan]);
    run(&["node", "reference", &build, "--target", "docs/old.md", "--expire"]);
    run(&["node", "transition", &build, "--action", "start"]);
    run(&["log", w.log]);
    run(&["problem", w.problem, "--next-step", w.next]);
    run(&["problem"]);
    run(&["tree"]);
    run(&["node", "show", &build]);
    run(&["node", "context"]);
    run(&["problem", "--clear"]);
    run(&["node", "transition", &build, "--action", "retry"]);
    run(&["node", "transition", &build, "--action", "complete"]);
    run(&["node", "transition", &plan, "--action", "complete", "--conclusion", w.done]);
    run(&["node", "transition", &build, "--action", "submit"]);
    run(&["node", "transition", &build, "--action", "complete", "--conclusion", w.done]);
    run(&["node", "transition", &plan, "--action", "complete", "--conclusion", w.done]);
    run(&["node", "transition", "root", "--action", "complete", "--conclusion", w.done]);
    run(&["node", "transition", &build, "--action", "reopen"]);
    run(&["tree", "--status", "implementing,monitoring"]);
    run(&["node", "list", "--limit", "2"]);
    run(&["node", "move", &build, "--parent", "root"]);
    run(&["node", "delete", &plan, "--yes"]);
    run(&["log", "--limit", "2"]);
    run(&[
        "workspace",
        "update",
        "--add-rule",
        w.done,
        "--doc",
        "docs/x.md: x",
        "--remove-doc",
        "docs/jwt.md",
    ]);
    run(&["workspace", "show"]);
    run(&["workspace", "check"]);
    run(&["workspace", "archive"]);
    run(&["workspace", "list"]);
    let id = env.json(&["workspace", "list"])["workspaces"][0]["workspaceId"].as_str().unwrap().to_owned();
    run(&["log", "--workspace", &id, "--node", "workspace", w.log]);
    run(&["workspace", "restore", &id]);
    run(&["workspace", "focus", "--clear", "--workspace", &id]);
    screen
}

/// Removes the times of last activity, because they come from the file system's clock and not from the fixed one.
fn without_ages(screen: &str) -> String {
    let keep = |line: &str| {
        let is_list = line.starts_with("ws-") && line.trim_end().ends_with('.');
        if is_list {
            line.split("  ").filter(|cell| !cell.is_empty()).take(4).collect::<Vec<_>>().join("  ")
        } else {
            line.to_owned()
        }
    };
    screen.lines().map(keep).collect::<Vec<_>>().join("\n")
}

#[test]
fn story_chinese_output() {
    let env = TestEnv::with_lang(ZH.lang);
    let screen = run_story(&env, &ZH);
    insta::assert_snapshot!("screen_zh", without_ages(&env.redact(&screen)));
    insta::assert_snapshot!("files_zh", env.files(&env.project));
}

#[test]
fn story_english_output() {
    let env = TestEnv::with_lang(EN.lang);
    let screen = run_story(&env, &EN);
    insta::assert_snapshot!("screen_en", without_ages(&env.redact(&screen)));
    insta::assert_snapshot!("files_en", env.files(&env.project));
}

#[test]
fn deleted_workspace_can_be_restored() {
    let env = TestEnv::new();
    let id = env.init();
    let node = env.node("root", "execution", "a");
    env.ok(&["workspace", "delete", &id, "--yes"]);
    assert_eq!(env.error(&["workspace", "show", &id])["code"], "WORKSPACE_NOT_FOUND");
    assert_eq!(env.error(&["tree"])["code"], "NO_WORKSPACE");
    env.ok(&["workspace", "restore", &id]);
    assert_eq!(env.status(&node), "pending");
}

#[test]
fn requirement_is_read_from_stdin() {
    use std::io::Write;
    let env = TestEnv::new();
    env.init();
    let args = ["node", "create", "--type", "execution", "--title", "t", "--requirement", "-", "--json"];
    let mut child = env
        .command(&args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all("# 标题\n\n\"quoted\" `code` $HOME\n".as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let created: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(created["node"]["requirement"], "# 标题\n\n\"quoted\" `code` $HOME");
}

#[test]
fn log_entries_of_agents_have_operator_ai() {
    let env = TestEnv::new();
    env.init();
    let by = |variable: Option<(&str, &str)>| {
        let mut command = env.command(&["log", "--node", "root", "x", "--json"]);
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        let value: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        value["entries"][0]["operator"].as_str().unwrap().to_owned()
    };
    assert_eq!(by(None), "Human");
    assert_eq!(by(Some(("CLAUDECODE", "1"))), "AI");
    assert_eq!(by(Some(("CODEX_SESSION_ID", "x"))), "AI");
}
