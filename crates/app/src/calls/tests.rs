use super::*;

fn call(change: CallChange) -> SessionCall {
    let [session, project, workspace] = ["s", "p", "ws-1"].map(String::from);
    SessionCall { session, project, workspace, change }
}

fn moved(node: &str, to: NodeStatus, title: &str) -> SessionCall {
    call(CallChange::Moved { node: node.into(), to, title: title.into() })
}

fn logged(text: &str) -> SessionCall {
    call(CallChange::Logged { node: "node-a".into(), text: text.into() })
}

fn state_after(calls: &[SessionCall]) -> SessionState {
    let mut state = SessionState { session: String::from("s"), ..SessionState::default() };
    calls.iter().for_each(|call| call.record(&mut state, 1_765_432_100_000));
    state
}

#[test]
fn digest_of_calls_names_last_status_open_problems_and_counts() {
    let problem = |node: &str, text: &str| call(CallChange::Problem { node: node.into(), text: text.into() });
    let state = state_after(&[
        call(CallChange::Created),
        moved("node-a", NodeStatus::Implementing, "Issue  tokens\nnow"),
        logged("first"),
        problem("node-a", "clock skew"),
        problem("node-b", "no key"),
        problem("node-c", "no time"),
        call(CallChange::Cleared { node: "node-b".into() }),
        moved("node-b", NodeStatus::Implementing, "Check tokens"),
        moved("node-a", NodeStatus::Completed, "Issue tokens"),
        logged("signed with RS256"),
        call(CallChange::SavedFact),
    ]);
    let digest = digest_of(&state, "p").unwrap();
    let node = |id: &str, title: &str, text: &str| WorkedNode {
        workspace: "ws-1".into(),
        id: id.into(),
        title: title.into(),
        text: text.into(),
    };
    assert_eq!(
        digest.moved,
        [node("node-a", "Issue tokens", "completed"), node("node-b", "Check tokens", "implementing")]
    );
    assert_eq!(digest.problems, [node("node-c", "", "no time")], "the problem of a completed node is over");
    assert_eq!(
        (digest.log_lines(), digest.last_log_line().as_str(), digest.facts),
        (2, "signed with RS256", 1)
    );
    assert_eq!((digest.at.len(), digest.more_moved(), digest.is_partial), (16, 0, false));
    assert_eq!((state.completed_since_summary, state.has_unconfirmed_plan), (1, false));
    assert_eq!(digest_of(&state, "other"), None, "texts of one project are not told in another");
    let silent = digest_of(&state_after(&[moved("node-a", NodeStatus::Completed, "T")]), "p").unwrap();
    assert_eq!((silent.log_lines(), silent.last_log_line().as_str()), (0, ""));
}

#[test]
fn digest_of_calls_tells_nodes_of_each_workspace_apart() {
    let in_other = |call: SessionCall| SessionCall { workspace: String::from("ws-2"), ..call };
    let problem = |text: &str| call(CallChange::Problem { node: "workspace".into(), text: text.into() });
    let done = |title: &str| moved("root", NodeStatus::Completed, title);
    let state = state_after(&[
        problem("a"),
        in_other(problem("b")),
        done("First"),
        in_other(done("Second")),
        logged("x"),
    ]);
    let digest = digest_of(&state, "p").unwrap();
    let parts = |nodes: &[WorkedNode]| -> Vec<String> {
        nodes.iter().map(|node| format!("{} {} {}", node.workspace, node.title, node.text)).collect()
    };
    assert_eq!(parts(&digest.moved), ["ws-2 Second completed", "ws-1 First completed"]);
    assert_eq!(parts(&digest.problems), ["ws-2  b", "ws-1  a"]);
}

#[test]
fn record_call_keeps_the_last_fifty_and_cuts_texts() {
    let calls: Vec<SessionCall> =
        (0..60).map(|n| logged(&format!("{n} {}", "很长 long ".repeat(100)))).collect();
    let state = state_after(&calls);
    assert_eq!(state.calls.len(), 50);
    assert!(state.calls[0].contains(" 10 ") && state.calls[49].contains(" 59 "), "{:?}", state.calls);
    assert!(state.calls.iter().map(String::len).sum::<usize>() < 10_000);
    let digest = digest_of(&state, "p").unwrap();
    assert!(digest.is_partial && digest.log_lines() == 50);
    let many: Vec<_> = (0..6).map(|n| moved(&format!("node-{n}"), NodeStatus::Completed, "T")).collect();
    let digest = digest_of(&state_after(&many), "p").unwrap();
    assert_eq!((digest.moved_lines().len(), digest.more_moved()), (4, 2));
}

#[test]
fn record_call_created_and_started_nodes_open_and_confirm_plan() {
    let mut state = state_after(&[call(CallChange::Created), call(CallChange::SavedFact)]);
    assert!(state.has_unconfirmed_plan);
    moved("node-a", NodeStatus::Planning, "T").record(&mut state, 0);
    assert!(state.has_unconfirmed_plan, "no task is started");
    moved("node-b", NodeStatus::Implementing, "T").record(&mut state, 0);
    assert!(!state.has_unconfirmed_plan);
}

#[test]
fn record_call_masks_secrets() {
    const SECRET: &str = concat!("ghp", "_Zk4Rt8Lw2Qx6Vn0Bm3Jc7Hd1Sf5Gp9YaTe2Ui");
    let state = state_after(&[logged(&format!("key {SECRET}"))]);
    assert!(!state.calls[0].contains(SECRET) && state.calls[0].contains("masked"), "{:?}", state.calls);
}

#[test]
fn record_call_after_summary_keeps_no_call() {
    let mut state = SessionState { has_summary: true, ..SessionState::default() };
    moved("node-a", NodeStatus::Completed, "T").record(&mut state, 0);
    assert_eq!((state.calls.len(), state.completed_since_summary), (0, 1));
    assert_eq!(digest_of(&state, "p"), None);
}

#[test]
fn digest_of_lines_of_another_version_skips_them() {
    let mut lines = vec![
        "",
        "x",
        "2025-12-10T18:07:00 p logged node-a without a workspace",
        "2025-12-10T18:07:00 p invented ws-1/node-a text",
        "2025-12-10T18:08:00 p fact /- ",
    ];
    let digest = |lines: &[&str]| {
        let calls = lines.iter().map(|line| String::from(*line)).collect();
        digest_of(&SessionState { calls, ..SessionState::default() }, "p")
    };
    assert_eq!(digest(&lines), None, "facts alone are told by themselves");
    lines.push("2025-12-10T18:09:00 p logged ws-1/node-a");
    let digest = digest(&lines).unwrap();
    assert_eq!((digest.at.as_str(), digest.facts, digest.log_lines()), ("2025-12-10 18:09", 1, 1));
}

#[test]
fn record_summary_keeps_calls_of_other_projects() {
    let in_other = |call: SessionCall| SessionCall { project: String::from("other"), ..call };
    let mut state = state_after(&[logged("first"), in_other(logged("second"))]);
    record_summary(&mut state, "p");
    assert_eq!(digest_of(&state, "p"), None);
    assert_eq!(digest_of(&state, "other").unwrap().last_log_line(), "node-a: second");
    logged("third").record(&mut state, 0);
    in_other(logged("fourth")).record(&mut state, 0);
    assert_eq!(digest_of(&state, "p"), None, "the summary replaces the digest");
    assert_eq!(digest_of(&state, "other").unwrap().last_log_line(), "node-a: fourth");
}
