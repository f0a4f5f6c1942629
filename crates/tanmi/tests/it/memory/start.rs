//! The facts that a session receives when it starts, in ten scenarios.

use super::{DAY, save};
use crate::agent::Agent;
use crate::env::TestEnv;

/// Returns the memory that a session start tells, with stable ids.
fn told(env: &TestEnv, session: &str) -> String {
    let injected = Agent::claude(env, session).start("startup");
    assert!(injected.len() <= 10_000, "{}", injected.len());
    let start = injected.find("<tanmi-memory>").unwrap_or(injected.len());
    let words = injected[start..].split_inclusive([' ', ')', '）', '\n']);
    let stable = |word: &str| match word.strip_prefix("fact-") {
        Some(id) => format!("FACT{}", id.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-')),
        None => word.to_owned(),
    };
    words.map(stable).collect()
}

/// Binds a session to a new node.
fn bind(env: &TestEnv, title: &str, requirement: &str) {
    let ws = env.init();
    let args = [
        "node",
        "create",
        "--parent",
        "root",
        "--type",
        "execution",
        "--title",
        title,
        "--requirement",
        requirement,
    ];
    let node = env.json(&args)["nodeId"].as_str().unwrap().to_owned();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &node]);
}

fn save_all(env: &TestEnv, facts: &[&str]) {
    for fact in facts {
        save(env, fact);
        env.tick(60_000);
    }
}

const TEN_FACTS: &[&str] = &[
    "The payment gateway times out after 30 seconds",
    "Colours come from the design system",
    "Images are built on Alpine",
    "The search page is cached by Varnish",
    "Invoices are rendered with Typst",
    "Customer ids are UUIDs",
    "The nightly backup goes to Hetzner",
    "Reports are sent on Mondays",
    "Ann reviews the parser",
    "Metrics are kept for 90 days",
];

#[test]
fn start_busy_week_tells_the_newest_facts() {
    let env = TestEnv::new();
    for day in 0..6 {
        for n in 0..4 {
            let topics = ["parser", "gateway", "billing", "search"];
            save(&env, &format!("Day {day}: the {} got a fix for case {}", topics[n], day * 4 + n));
            env.tick(3_600_000);
        }
        env.tick(DAY - 4 * 3_600_000);
    }
    insta::assert_snapshot!(told(&env, "s"));
}

#[test]
fn start_old_preference_does_not_expire() {
    let env = TestEnv::new();
    let preference = |text: &str, confidence: &str| {
        env.ok(&["memory", "save-fact", text, "--type", "O", "--confidence", confidence]);
    };
    preference("prefers short answers", "0.95");
    preference("likes blue", "0.6");
    save(&env, "an old fact about the parser");
    env.tick(300 * DAY);
    for n in 0..20 {
        save(&env, &format!("release {n} went out without problems, tag r{n}"));
    }
    insta::assert_snapshot!(told(&env, "s"));
}

#[test]
fn start_near_duplicates_are_told_once() {
    let env = TestEnv::new();
    save_all(
        &env,
        &[
            "The API listens on port 8080",
            "API listens on the port 8080 (default)",
            "The API is listening on port 8080",
            "The admin page listens on port 8081",
            "登录令牌有效期为 24 小时",
            "登录令牌有效期是 24 小时。",
        ],
    );
    insta::assert_snapshot!(told(&env, "s"));
}

#[test]
fn start_english_node_finds_chinese_facts_by_shared_names() {
    let env = TestEnv::new();
    save_all(&env, &["缓存用 Redis，淘汰策略为 allkeys-lru", "前端用 Vue 3", "日志保留 30 天"]);
    env.tick(60 * DAY);
    bind(&env, "Redis eviction", "Choose the allkeys-lru settings of Redis for production");
    insta::assert_snapshot!(told(&env, "s"));
}

#[test]
fn start_replaced_fact_is_told_after_the_newer_one() {
    let env = TestEnv::new();
    save_all(&env, &["Frontend tests run with Jest", "Colours come from the design system"]);
    env.tick(DAY);
    save(&env, "We switched the frontend tests from Jest to Vitest");
    insta::assert_snapshot!(told(&env, "s"));
    env.tick(60 * DAY);
    bind(&env, "Fix the frontend tests", "The frontend tests run with Jest are slow");
    insta::assert_snapshot!(told(&env, "s"));
}

#[test]
fn start_long_facts_leave_room_for_others() {
    let env = TestEnv::new();
    for n in 0..10 {
        save(&env, &format!("Report {n}: {}", format!("section{n} text ").repeat(300)));
        save(&env, &format!("Short fact {n} about module{n}"));
    }
    let told = told(&env, "s");
    for n in 3..10 {
        assert!(told.contains(&format!("Short fact {n}")), "{told}");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn start_unbound_session_uses_the_focus_of_the_workspace() {
    let env = TestEnv::new();
    save_all(&env, TEN_FACTS);
    env.tick(60 * DAY);
    let ws = env.init();
    let node = env.node("root", "execution", "Payment gateway timeouts");
    env.ok(&["workspace", "focus", &node, "--workspace", &ws]);
    insta::assert_snapshot!(told(&env, "unbound"));
}

#[test]
fn start_young_memory_tells_the_fact_about_the_node() {
    let env = TestEnv::new();
    save_all(&env, TEN_FACTS);
    env.tick(60 * DAY);
    let requirement = "Orders fail at checkout when the provider is slow. Find out how long the gateway waits, show the customer a \
        page that explains the delay, retry in the background with a queue, and alert the team when more than five percent fail";
    bind(&env, "Slow payment provider", requirement);
    insta::assert_snapshot!(told(&env, "s"));
}

#[test]
fn start_superseded_fact_is_never_told() {
    let env = TestEnv::new();
    let old = save(&env, "The gateway listens on port 8080")["id"].as_str().unwrap().to_owned();
    env.ok(&["memory", "sync"]);
    env.tick(60_000);
    env.ok(&["memory", "save-fact", "Ports come from the environment", "--supersedes", &old]);
    bind(&env, "Gateway port", "Make the port of the gateway configurable");
    insta::assert_snapshot!(told(&env, "s"));
    std::fs::remove_file(super::memory_dir(&env).join("index.sqlite")).unwrap();
    assert!(!told(&env, "s").contains("8080"), "the same without an index");
}

#[test]
fn start_changed_file_is_named() {
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        let env = TestEnv::with_lang(lang);
        for name in ["auth", "cache", "queue"] {
            env.make(&env.project.join(format!("src/{name}.rs")), "fn main() {}");
        }
        let facts = match lang.starts_with("zh") {
            false => {
                ["Tokens are checked in src/auth.rs", "src/cache.rs holds the LRU", "src/queue.rs retries"]
            }
            true => ["令牌在 src/auth.rs 中校验", "src/cache.rs 实现 LRU", "重试在 src/queue.rs"],
        };
        save_all(&env, &facts);
        env.make(&env.project.join("src/auth.rs"), "fn other() {}");
        std::fs::remove_file(env.project.join("src/cache.rs")).unwrap();
        insta::assert_snapshot!(told(&env, "s"));
    }
}
