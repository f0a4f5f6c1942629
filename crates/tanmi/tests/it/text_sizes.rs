//! Measures how many bytes an agent is told at each moment. The table in `docs/benchmarks.md` has these numbers.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;
use crate::moments::run_as;

/// As long as the session ids of most clients.
const SESSION: &str = "0a1b2c3d-1111-4222-8333-444455556666";

/// A project with a workspace in which one node is in progress and two are pending.
struct Project {
    env: TestEnv,
    workspace: String,
    /// The node in progress.
    node: String,
}

impl Project {
    fn new() -> Project {
        let env = TestEnv::new();
        let goal = "Replace session cookies by signed tokens";
        let rules = ["--rule", "Keys come from the environment", "--rule", "Every endpoint has a test"];
        let doc = ["--doc", "docs/tokens.md: claims, keys and expiry"];
        let init =
            [&["workspace", "init", "--name", "Rework auth", "--goal", goal], &rules[..], &doc].concat();
        let workspace = env.json(&init)["workspaceId"].as_str().unwrap().to_owned();
        let node = |parent: &str, kind: &str, title: &str, requirement: &str| {
            let at = ["node", "create", "--parent", parent, "--type", kind];
            let texts = ["--title", title, "--requirement", requirement];
            env.json(&[&at[..], &texts].concat())["nodeId"].as_str().unwrap().to_owned()
        };
        let plan = node("root", "planning", "Tokens", "Endpoints accept tokens instead of cookies");
        let issue = node(&plan, "execution", "Issue tokens", "A login returns a signed token that expires");
        node(&plan, "execution", "Check tokens", "Every request checks signature and expiry");
        node("root", "execution", "Roll out", "Cookies are accepted for one more release");
        // As most nodes, it is held by the session that is measured.
        let start = ["node", "transition", &issue, "--workspace", &workspace, "--action", "start"];
        run_as(&env, SESSION, &start);
        for line in ["read the RFC", "chose a library", "signed with RS256"] {
            env.ok(&["log", "--node", &issue, line]);
        }
        env.ok(&["workspace", "focus", "--clear"]);
        Project { env, workspace, node: issue }
    }

    fn agent(&self) -> Agent<'_> {
        Agent::claude(&self.env, SESSION)
    }

    /// Binds the session and returns the result.
    fn bind(&self, args: &[&str]) -> Value {
        let bind = ["session", "bind", "--session", SESSION, "--workspace", &self.workspace];
        self.env.json(&[&bind[..], args].concat())
    }
}

fn instructions(env: &TestEnv) -> usize {
    let mut client = Client::start(env);
    let answer = client.initialize("2025-11-25");
    client.finish();
    answer["result"]["instructions"].as_str().unwrap().len()
}

/// Returns the bytes of the digest of a session that started a node, logged twice, left a problem and saved a fact.
fn digest() -> usize {
    let project = Project::new();
    let env = &project.env;
    let node =
        env.json(&["node", "create", "--parent", "root", "--type", "execution", "--title", "Rotate keys"]);
    let node = node["nodeId"].as_str().unwrap();
    for args in [
        &["node", "transition", node, "--action", "start"][..],
        &["log", "--node", node, "keys rotate every week"],
        &["log", "--node", node, "old keys stay valid for a day"],
        &["problem", "--node", node, "clock skew between hosts"],
        &["memory", "save-fact", "Keys rotate every week"],
    ] {
        run_as(env, "before", args);
    }
    Agent::claude(env, "before").send("SessionEnd", "sessionEnd", json!({"reason": "logout"}));
    let start = project.agent().start("startup");
    let digest = &start[start.find("## Last session").expect(&start)..];
    digest.split("\n\n## ").next().unwrap().len()
}

/// Returns the bytes that an agent is told at each moment.
fn measure() -> Vec<(&'static str, String)> {
    let empty = TestEnv::new();
    let instructions = instructions(&empty);
    let start_in_empty = Agent::claude(&empty, SESSION).start("startup").len();

    let project = Project::new();
    let agent = project.agent();
    let start_unbound = agent.start("startup").len();
    let hint = agent.prompt("continue where we left off").len();
    let bind_result = project.bind(&[])["overview"].as_str().unwrap_or_default().len();
    let start_without_focus = agent.start("startup").len();

    project.bind(&["--node", &project.node]);
    let start = agent.start("startup").len();
    let quiet: usize = (0..24).map(|_| agent.prompt("go on").len()).sum();
    let subagent = json!({"agent_id": "a", "agent_type": "Explore"});
    let subagent = agent.send("SubagentStart", "subagentStart", subagent).len();
    let compacted = agent.start("compact").len();
    project.env.ok(&["workspace", "update", "--add-rule", "Tokens live for an hour at most"]);
    let rules = agent.prompt("go on").len();
    project.env.ok(&["problem", "--node", &project.node, "clock skew between hosts"]);
    let problem: usize = (0..5).map(|_| agent.prompt("go on").len()).sum();
    project.env.tick(3_600_000);
    let stop = agent.send("Stop", "stop", json!({"stop_hook_active": false})).len();

    let sizes = [
        ("instructions of the MCP server", instructions),
        ("start, unbound, no workspace", start_in_empty),
        ("start, unbound, one workspace", start_unbound),
        ("instructions and start, unbound", instructions + start_unbound),
        ("first prompt asks to continue, unbound", hint),
        ("overview in the bind result", bind_result),
        ("start, bound, no focus", start_without_focus),
        ("start, bound", start),
        ("start, bound, and 24 quiet prompts", start + quiet),
        ("digest of the session before, at a start", digest()),
        ("after a compaction", compacted),
        ("subagent", subagent),
        ("rule added", rules),
        ("five prompts with an open problem", problem),
        ("stop, summary due", stop),
    ];
    sizes.map(|(moment, bytes)| (moment, with_separator(bytes))).into()
}

/// Returns a number below one million with a comma after the thousands.
fn with_separator(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

/// Returns the rows of the table in the document: the moment and the last number.
fn stated() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Bytes per moment")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| (cells[0].to_owned(), cells[3].to_owned())).collect()
}

#[test]
fn benchmarks_document_states_measured_text_sizes() {
    let measured: Vec<(String, String)> =
        measure().into_iter().map(|(moment, bytes)| (moment.to_owned(), bytes)).collect();
    assert_eq!(
        stated(),
        measured,
        "the column `now` in docs/benchmarks.md (left) differs from the measurement"
    );
}
