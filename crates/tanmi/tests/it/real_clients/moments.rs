//! What the model of a real client has received at each moment of its work, from the first prompt to the next day.

use serde_json::json;

use super::conversation::Conversation;
use super::{Agent, Value};

const MINUTE: i64 = 60_000;
const UNBOUND: &str = "No workspace in this project yet; workspace_init creates one.";
const PLAN: &str = "The plan has 3 tasks and none is started.";

impl Agent {
    /// Runs a prompt some minutes after the previous one and returns the requests of the model.
    fn say(&mut self, minutes: i64, prompt: &str) -> Vec<String> {
        self.env.tick(minutes * MINUTE);
        self.model.clear_requests();
        let resumes = !self.injections().is_empty();
        let output = self.turn(prompt, resumes);
        if !resumes {
            self.session = self.injections().last().map(|(_, session)| session.clone());
        }
        let requests = self.model.request_texts();
        assert!(!requests.is_empty(), "{}", self.context(&output, &requests));
        requests
    }

    /// Returns how often hooks told a text of this rule.
    fn told(&self, rule: &str) -> usize {
        let entries = self.env.json(&["ledger"])["entries"].as_array().cloned().unwrap_or_default();
        let has_rule = |entry: &&Value| entry["rules"].as_array().unwrap().iter().any(|told| told == rule);
        entries.iter().filter(|entry| entry["source"] == "hook").filter(has_rule).count()
    }
}

fn check_moments(id: &'static str) {
    let Some(mut agent) = Agent::new(id) else { return };
    agent.is_clock_moved = true;

    // The start of an unbound session, once. The agent creates a workspace, binds the session and plans.
    let outline = "- Tokens\n  - Issue tokens\n  - Check tokens (after: Issue tokens)\n- Roll out\n";
    let init = json!({"name": "Auth", "goal": "Replace sessions by tokens"});
    let plan = json!({"outline": outline});
    let requests = agent.say(
        0,
        &format!(
            "Plan it. [[tool workspace_init {init}]] [[tool session_bind {{}}]] [[tool node_plan {plan}]]"
        ),
    );
    assert_eq!(requests[0].matches(UNBOUND).count(), 1, "{}", agent.context("", &requests));
    assert!(requests.last().unwrap().contains("This session is not bound to it yet"), "the result of init");

    // The plan waits for the user, so the next prompt says so. The agent starts a task and has a problem.
    let start = json!({"start": true});
    let problem = json!({"description": "clock skew", "nextStep": "allow 60 s"});
    let requests =
        agent.say(1, &format!("Start. [[tool node_next {start}]] [[tool problem_update {problem}]]"));
    assert!(requests[0].contains(PLAN), "{}", agent.context("", &requests));
    assert!(requests[0].contains("Goal: Replace sessions by tokens"), "{}", agent.context("", &requests));

    // The context of the focused node has the problem, so no reminder says it again. The plan is confirmed.
    let requests = agent.say(1, "go on");
    for text in ["Path: Tokens", "Problem: clock skew", "Next step: allow 60 s"] {
        assert!(requests[0].contains(text), "{text}: {}", agent.context("", &requests));
    }
    assert_eq!((agent.told("plan-confirm"), agent.told("smart-reminder")), (1, 0));

    // The result of a completed task names the next one. A stop soon after a start asks for no summary.
    let complete = json!({"action": "complete", "conclusion": "RS256"});
    let requests = agent.say(20, &format!("Complete it. [[tool node_transition {complete}]]"));
    let last = requests.last().unwrap();
    assert!(last.contains("Check tokens"), "what is next: {}", agent.context("", &requests));
    assert_eq!(agent.told("session-save"), 0, "a new process is a new start of the session");

    // The agent wrote no summary, so the next session is told what this one did.
    agent.begin_next_day();
    agent.turn("Hello.", false);
    let requests = agent.model.request_texts();
    for text in ["derived from its calls)", "Issue tokens (completed)", "Workspaces here: Auth ("] {
        assert_eq!(requests[0].matches(text).count(), 1, "{text}: {}", agent.context("", &requests));
    }
}

#[test]
fn claude_code_is_told_each_moment() {
    check_moments("claude-code");
}

#[test]
fn codex_is_told_each_moment() {
    check_moments("codex");
}

#[test]
fn gemini_cli_is_told_each_moment() {
    check_moments("gemini-cli");
}

#[test]
fn copilot_cli_is_told_each_moment() {
    check_moments("copilot-cli");
}

/// What changes while one process runs is told as the change, and the whole context after a compaction. The other clients
/// start a process for each prompt here, so their sessions are told the context at each start.
#[test]
fn claude_code_is_told_changes_and_whole_context_after_compaction() {
    let Some(agent) = Agent::new("claude-code") else { return };
    let (env, session) = (&agent.env, agent.session.clone().unwrap());
    let ws = env.init();
    let (issue, check) =
        (env.node("root", "execution", "Issue tokens"), env.node("root", "execution", "Check tokens"));
    let bind = |node: &str| env.ok(&["session", "bind", "-w", &ws, "--session", &session, "--node", node]);
    bind(&issue);
    let mut conversation = Conversation::start(&agent, false);
    let mut say = |prompt: &str, text: &str| {
        let output = conversation.say(prompt);
        let requests = agent.model.request_texts();
        let count = requests.last().unwrap().matches(text).count();
        assert_eq!(count, 1, "{text}: {}", agent.context(&output, &requests));
    };
    say("ALPHA", "Focused node: Issue tokens (pending)");
    env.ok(&["workspace", "update", &ws, "--add-rule", "Keys come from a file"]);
    say("BRAVO", "+ Keys come from a file");
    env.ok(&["problem", "-n", &issue, "clock skew", "--next-step", "allow 60 s"]);
    say("CHARLIE", "Open problem on Issue tokens: clock skew");
    say("DELTA", "Still open: clock skew");
    bind(&check);
    say("ECHO", &format!("Focus is now: Check tokens (pending) {check}"));
    // Nothing that the session knows was told again.
    say("FOXTROT", "Goal: ");
    conversation.say("/compact");
    let output = conversation.say("GOLF");
    let requests = agent.model.request_texts();
    let last = requests.last().unwrap();
    for text in ["Goal: ", "- Keys come from a file", "Focused node: Check tokens"] {
        assert_eq!(last.matches(text).count(), 1, "{text}: {}", agent.context(&output, &requests));
    }

    // The stop asks for a summary, once, if the session started a while ago. The clock of a running client does not move.
    assert_eq!(agent.told("session-save"), 0, "too early");
    let state = env.root().join("home/.tanmi-workspace/state").join(format!("{session}.json"));
    let mut known: Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    known["startedAt"] = json!(known["startedAt"].as_i64().unwrap() - 20 * MINUTE);
    env.write(&state, known.to_string().as_bytes());
    for prompt in ["HOTEL", "INDIA"] {
        let output = conversation.say(prompt);
        let requests = agent.model.request_texts();
        let is_asked = requests.last().unwrap().contains("[Session Save]");
        assert!(is_asked, "{prompt}: {}", agent.context(&output, &requests));
        assert_eq!(agent.told("session-save"), 1, "{prompt}");
    }
    conversation.finish();
}
