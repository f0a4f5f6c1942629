//! A realistic workspace for tests and screenshots: 80 nodes, six sessions of three clients, 300 facts, and a
//! week of work with its ledger. The clock of the environment is at the end of that week afterwards.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::env::{NOW, TestEnv};

pub const DAY: i64 = 86_400_000;
const MINUTE: i64 = 60_000;

/// The workspace that [`fill`] created.
pub struct Example {
    pub workspace: String,
    /// Titles of the nodes in the order of the tree, each with its id.
    pub nodes: Vec<(String, String)>,
    /// The ids of the sessions. The first three hold a node, the last is not bound.
    pub sessions: Vec<String>,
}

impl Example {
    /// Returns the id of the node with this title.
    pub fn node(&self, title: &str) -> &str {
        &self.nodes.iter().find(|(known, _)| known == title).unwrap_or_else(|| panic!("{title}")).1
    }
}

const GROUPS: [(&str, [&str; 4]); 5] = [
    ("Order model 订单模型", ["Draft the schema", "迁移订单模型", "Backfill totals", "Verify the sums"]),
    ("Payments 支付", ["Card adapter", "3-D Secure flow", "Alipay notifications", "微信证书"]),
    ("Operations", ["Alert on double charge", "Retry failed refunds", "故障手册", "Dashboards"]),
    ("Front end", ["Checkout form", "Error messages", "无障碍检查", "Wallet buttons"]),
    ("Roll-out 灰度发布", ["Feature flag", "One percent", "Ten percent", "All users"]),
];

/// Returns the plan: five groups, each with three parts of four tasks or two tasks and a check.
fn outline() -> String {
    let mut lines = Vec::new();
    for (group, tasks) in GROUPS {
        lines.push(format!("- {group}"));
        for task in tasks {
            lines.push(format!("  - {task}"));
        }
        for part in 1..=2 {
            lines.push(format!("  - {group}, part {part}"));
            lines.extend((1..=4).map(|n| format!("    - Step {n} of part {part}, {group}")));
        }
    }
    lines.extend((1..=4).map(|n| format!("- Note {n} 备注")));
    lines.join("\n")
}

/// Runs a command that must succeed in the shell of an agent.
pub fn in_agent_shell(env: &TestEnv, session: &str, args: &[&str]) {
    let mut command = env.command(args);
    let output = command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", session).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Creates the workspace with its history.
pub fn fill(env: &TestEnv) -> Example {
    let created = env.json(&[
        "workspace",
        "init",
        "--name",
        "Checkout 2.0 / 结算改造",
        "--goal",
        "Pay with cards, Alipay and WeChat without losing an order",
        "--rule",
        "Every payment has an idempotency key",
        "--rule",
        "金额一律使用整数分",
    ]);
    let workspace = created["workspaceId"].as_str().unwrap().to_owned();
    let plan = env.root().join("plan.md");
    env.write(&plan, outline().as_bytes());
    env.ok(&["plan", &plan.display().to_string()]);
    let list = env.json(&["node", "list", "--limit", "500"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let nodes: Vec<(String, String)> = list["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (text(&node["title"]), text(&node["id"])))
        .collect();
    let sessions = ["a3f81c", "7be20d", "c94e55", "1d70aa", "52bb9e", "e80c13"];
    let sessions = sessions.map(|end| format!("0b6f7c1e-5d2a-4c8e-9f31-24d8e1{end}")).to_vec();
    let example = Example { workspace, nodes, sessions };
    save_facts(env, &example);
    write_ledger(env, &example);
    work(env, &example);
    example
}

fn save_facts(env: &TestEnv, example: &Example) {
    let subjects = [
        "Retries need idempotency keys",
        "退款接口限流 50 QPS",
        "The sandbox clock is 90 s late",
        "Amounts are integers",
    ];
    let types = ["W", "B", "O"];
    let fact = |n: usize| {
        let at = NOW + n as i64 * (6 * DAY - 75 * MINUTE) / 300;
        json!({"id": format!("fact-{n:04}"), "type": "fact", "memory_type": types[n % 3], "content": format!("{} ({n})", subjects[n % 4]),
            "timestamp": tanmi_base::clock::local_stamp(at), "source": {"session": example.sessions[n % 5]}})
        .to_string()
    };
    let file = env.root().join("facts.jsonl");
    env.write(&file, (0..300).map(fact).collect::<Vec<_>>().join("\n").as_bytes());
    env.ok(&["memory", "import", &file.display().to_string()]);
}

/// Writes a week of the ledger, 40 injections per day.
fn write_ledger(env: &TestEnv, example: &Example) {
    let rules = ["context-refresh", "smart-reminder", "memory-load", "session-info"];
    let platforms = ["claude-code", "claude-code", "codex", "cursor"];
    let events = ["prompt_submit", "session_start", "prompt_submit", "stop"];
    for day in 0..7 {
        let line = |n: i64| {
            let pick = (n * 7 + day * 3) as usize;
            let bytes = 180 + (pick * 137) % 2400;
            json!({"at": NOW + day * DAY + n * 9 * MINUTE - 420 * MINUTE, "session": example.sessions[pick % 5],
                "platform": platforms[pick % 4], "source": "hook",
                "event": events[pick % 4], "workspace": example.workspace,
                "node": example.nodes[5 + pick % 12].1, "rules": [rules[pick % 4]], "bytes": bytes, "tokens": bytes / 4,
                "micros": 1400 + (pick * 53) % 900, "text": "0123456789abcdef0123456789abcdef"})
            .to_string()
        };
        append_ledger(env, NOW + day * DAY - 420 * MINUTE, (0..40).map(line));
    }
}

/// Adds lines to the ledger of the day of `at`. They can be of a later time.
pub fn append_ledger(env: &TestEnv, at: i64, lines: impl Iterator<Item = String>) {
    let path = env.home_store().join(format!("ledger/{}.jsonl", tanmi_base::clock::utc_day(at)));
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    env.make(&path, &format!("{before}{}\n", lines.collect::<Vec<_>>().join("\n")));
}

/// Works on the plan for a week: six tasks are completed, three are running, one failed, and one has a problem.
fn work(env: &TestEnv, example: &Example) {
    let platforms = ["claude-code", "cursor", "claude-code", "cursor", "claude-code", "claude-code"];
    let agents: Vec<Agent<'_>> = example
        .sessions
        .iter()
        .zip(platforms)
        .map(|(session, platform)| Agent { env, platform, session: session.clone() })
        .collect();
    let step = |title: &str, session: &str, action: &str, conclusion: Option<&str>| {
        let mut args = vec!["node", "transition", example.node(title), "--action", action];
        args.extend(conclusion.iter().flat_map(|text| ["--conclusion", text]));
        in_agent_shell(env, session, &args);
        env.tick(17 * MINUTE);
    };
    let log = |title: &str, session: &str, text: &str| {
        in_agent_shell(env, session, &["log", "--node", example.node(title), text]);
        env.tick(4 * MINUTE);
    };
    let bind = |n: usize, title: &str| {
        let (session, node) = (example.sessions[n].as_str(), example.node(title));
        agents[n].start("startup");
        env.ok(&["session", "bind", "--session", session, "--workspace", &example.workspace, "--node", node]);
        agents[n].prompt("go on");
    };
    bind(3, "Draft the schema");
    let old = example.sessions[3].as_str();
    step("Draft the schema", old, "start", None);
    log("Draft the schema", old, "orders, lines and payments are separate tables");
    step("Draft the schema", old, "complete", Some("Three tables; totals are derived"));
    env.tick(2 * DAY);
    bind(4, "Feature flag");
    step("Feature flag", &example.sessions[4], "start", None);
    step("Feature flag", &example.sessions[4], "complete", Some("checkout_v2, off by default"));
    env.tick(4 * DAY - 300 * MINUTE);
    for n in 0..3 {
        bind(n, ["3-D Secure flow", "迁移订单模型", "Alert on double charge"][n]);
    }
    let [first, second, third] = [0, 1, 2].map(|n| example.sessions[n].as_str());
    step("Card adapter", first, "start", None);
    step("Card adapter", first, "complete", Some("Idempotency keys before retries"));
    step("Retry failed refunds", third, "start", None);
    log("Retry failed refunds", third, "3 of 14 tests fail");
    step("Retry failed refunds", third, "fail", Some("3 of 14 tests fail: clock skew in the sandbox"));
    step("Checkout form", second, "start", None);
    step("Checkout form", second, "complete", Some("表单支持三种支付方式"));
    step("Alert on double charge", third, "start", None);
    let problem = "The metric is per pod; a double charge across two pods is invisible.";
    let next = "aggregate by order id in the collector";
    in_agent_shell(
        env,
        third,
        &["problem", "--node", example.node("Alert on double charge"), problem, "--next-step", next],
    );
    env.tick(6 * MINUTE);
    step("3-D Secure flow", first, "start", None);
    step("迁移订单模型", second, "start", None);
    log("3-D Secure flow", first, "signature verified, writing the callback test");
    log("迁移订单模型", second, "已生成迁移脚本，正在跑 sign_test.rs");
    for agent in agents.iter().take(3) {
        agent.prompt("continue");
    }
    agents[5].start("startup");
    env.tick(2 * MINUTE);
}
