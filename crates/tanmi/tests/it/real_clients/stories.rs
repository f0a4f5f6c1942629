//! Work that continues on the next day, in real clients: a new session that says only "continue where we left off" has
//! what it needs before the model calls a tool.

use serde_json::json;

use super::{Agent, DAY};

/// The nodes of the plan: the first one is started on the first day.
const TITLES: [&str; 3] = ["Issue tokens", "Check tokens", "Roll out"];
const LAST_LOG: &str = "signed with RS256";

/// On the first day, the agent plans the work, starts the first node and logs a line.
fn plan_and_start_work(agent: &mut Agent) {
    let init = json!({"name": "Auth", "goal": "Replace sessions by tokens"});
    let mut prompt = format!("Plan it. [[tool workspace_init {init}]] [[tool session_bind {{}}]]");
    for title in TITLES {
        let node = json!({"parentId": "root", "type": "execution", "title": title, "requirement": "r"});
        prompt.push_str(&format!(" [[tool node_create {node}]]"));
    }
    let output = agent.turn(&prompt, false);
    let session = agent.injections()[0].1.clone();
    agent.session = Some(session);
    let nodes = agent.env.json(&["node", "list"]);
    let node = nodes["nodes"].as_array().unwrap().iter().find(|node| node["title"] == TITLES[0]);
    let node =
        node.unwrap_or_else(|| panic!("{nodes}\n{}", agent.context(&output, &agent.model.request_texts())));
    let (start, log) = (json!({"nodeId": node["id"], "action": "start"}), json!({"log": LAST_LOG}));
    agent.turn(&format!("Start. [[tool node_transition {start}]] [[tool log_append {log}]]"), true);
}

/// A client continues the work of the day before in a new process and a new session.
fn check_next_day(id: &'static str) {
    let Some(mut agent) = Agent::new(id) else { return };
    plan_and_start_work(&mut agent);
    let yesterday = agent.session.clone().unwrap();

    // The first prompt: the session is unbound, and the hint tells what to continue before the model has called a tool.
    agent.begin_next_day();
    let bind = json!({"workspaceId": "$workspace"});
    let output = agent.turn(&format!("continue where we left off [[tool session_bind {bind}]]"), false);
    let requests = agent.model.request_texts();
    let context = agent.context(&output, &requests);
    assert_tells_work(&requests[0], 1, &context);
    // The model bound the session with the workspace id that it was told. The result tells the work again.
    let session = agent.injections().last().unwrap().1.clone();
    assert_ne!(session, yesterday, "a new session: {context}");
    let times = agent.env.json(&["ledger"])["entries"].as_array().unwrap().clone();
    let times: Vec<i64> = times.iter().filter_map(|entry| entry["at"].as_i64()).collect();
    assert!(
        times.iter().max().unwrap() - times.iter().min().unwrap() >= DAY - 600_000,
        "a day later: {context}"
    );
    assert_eq!(agent.env.json(&["session", "status", "--session", &session])["bound"], true, "{context}");
    assert_tells_work(requests.last().unwrap(), 2, &context);

    // The second prompt: the context of the bound session tells it, also if the conversation was shortened.
    agent.session = Some(session);
    agent.model.clear_requests();
    let output = agent.turn("go on", true);
    let requests = agent.model.request_texts();
    assert_tells_work(&requests[0], 3, &agent.context(&output, &requests));
}

/// Asserts that a request tells the running node with its last log line and what comes next, `times` times.
fn assert_tells_work(request: &str, times: usize, context: &str) {
    let running = format!("In progress: {} (implementing)", TITLES[0]);
    let texts: Vec<&str> = request.match_indices(&running).map(|(at, _)| &request[at..]).collect();
    assert_eq!(texts.len(), times, "{context}");
    for text in texts {
        let (line, next) = text.split_once("Next: ").unwrap_or_else(|| panic!("nothing is next: {context}"));
        assert!(line.contains(LAST_LOG), "the last log line: {context}");
        assert!(next.starts_with(TITLES[1]) && next.contains(TITLES[2]), "what comes next: {context}");
    }
}

#[test]
fn claude_code_continues_on_next_day() {
    check_next_day("claude-code");
}

#[test]
fn codex_continues_on_next_day() {
    check_next_day("codex");
}

#[test]
fn gemini_cli_continues_on_next_day() {
    check_next_day("gemini-cli");
}

#[test]
fn copilot_cli_continues_on_next_day() {
    check_next_day("copilot-cli");
}
