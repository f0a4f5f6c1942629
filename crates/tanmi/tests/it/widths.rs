//! Terminal output fits the width: titles are cut, ids stay whole. Both languages at several widths.

use tanmi_base::text;

use crate::agent::Agent;
use crate::env::{Run, TestEnv};

const COMMANDS: &[&[&str]] = &[
    &["tree"],
    &["node", "list"],
    &["workspace", "list"],
    &["session", "list"],
    &["memory", "list"],
    &["memory", "search", "token"],
    &["ledger"],
    &["trash", "list"],
];

fn prepare(env: &TestEnv, words: [&str; 3]) {
    let [name, title, fact] = words;
    let ws = env.json(&["workspace", "init", "--name", name, "--goal", title]);
    let ws = ws["workspaceId"].as_str().unwrap().to_owned();
    let plan = env.node("root", "planning", title);
    let task = env.node(&plan, "execution", &format!("1 {title}"));
    env.node(&plan, "execution", "Short");
    env.ok(&["problem", "--node", &task, "p"]);
    env.ok(&["node", "transition", &task, "--action", "start"]);
    let deleted = env.node("root", "execution", &format!("2 {title}"));
    env.ok(&["node", "delete", &deleted]);
    let import = env.root().join("facts.jsonl");
    let line = |id: &str, content: &str| {
        serde_json::json!({"id": id, "content": content, "timestamp": "2025-12-01"}).to_string()
    };
    env.write(&import, [line("fact-0001", fact), line("fact-0002", "token")].join("\n").as_bytes());
    env.ok(&["memory", "import", import.to_str().unwrap()]);
    for session in ["0f1e2d3c-4b5a-6978-e1f0", "0f1e2d3c-4b5a-6978-e1aa"] {
        env.ok(&["session", "bind", "--session", session, "--workspace", &ws]);
        let agent = Agent::claude(env, session);
        agent.start("startup");
    }
}

fn screens(env: &TestEnv) -> String {
    let mut screens = String::new();
    for args in COMMANDS {
        for columns in [60, 80, 110, 200] {
            let mut command = env.command(args);
            let run = Run::of(command.env("COLUMNS", columns.to_string()).output().unwrap());
            assert!(run.ok, "{args:?}\n{}", run.stderr);
            for line in run.stdout.lines() {
                assert!(text::width(line) <= columns, "{args:?} at {columns}: {line}");
            }
            screens.push_str(&format!("$ COLUMNS={columns} tanmi {}\n{}", args.join(" "), run.stdout));
        }
    }
    let screens = env.redact(&screens);
    // Durations differ between runs.
    let mut out = String::new();
    for line in screens.lines() {
        let line = match line.rsplit_once("  ") {
            Some((before, time)) if time.ends_with(" ms") => format!("{before}  [time]"),
            _ => line.to_owned(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

#[test]
fn lists_in_english_fit_the_width() {
    let env = TestEnv::new();
    let title = "Verify tokens with a rather long title that does not fit into a narrow terminal at all";
    prepare(&env, ["A workspace with a rather long name", title, &format!("A token: {title}")]);
    insta::assert_snapshot!("widths_en", screens(&env));
}

#[test]
fn lists_in_chinese_fit_the_width() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    let title = "验证令牌的签名和过期时间，并且处理时钟偏差以及密钥轮换之后的旧令牌，最后写文档";
    prepare(&env, ["一个名称相当长的工作区", title, &format!("token：{title}")]);
    insta::assert_snapshot!("widths_zh", screens(&env));
}

#[test]
fn output_without_a_width_is_not_cut_to_one() {
    let env = TestEnv::new();
    env.init();
    let title = "Verify tokens with a rather long title that fits";
    env.node("root", "execution", title);
    assert!(env.ok(&["tree"]).contains(title), "a pipe has no width");
}
