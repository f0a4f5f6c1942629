//! Plans that a real client creates.

use serde_json::{Value, json};

use super::Agent;

/// Twelve nodes with dependencies in one call, and the same nodes one by one. Prints the number of requests
/// of the model and the bytes of the calls and results.
#[test]
fn claude_code_plans_twelve_nodes_in_one_call() {
    let title = |n: usize| format!("Step {n} of the migration");
    let requirement = |n: usize| format!("Move module {n} to the new interface and run its tests");
    let line = |n: usize| match n {
        0 => format!("- {}: {}", title(n), requirement(n)),
        n => format!("- {} (after: {}): {}", title(n), title(n - 1), requirement(n)),
    };
    let outline = (0..12).map(line).collect::<Vec<_>>().join("\n");
    let plan = vec![("node_plan", json!({"outline": outline}))];
    let create = |n| json!({"parentId": "root", "type": "execution", "title": title(n), "requirement": requirement(n)});
    let one_by_one: Vec<(&str, Value)> = (0..12).map(|n| ("node_create", create(n))).collect();
    let run = |calls: &[(&str, Value)]| {
        let mut agent = Agent::new("claude-code")?;
        agent.env.ok(&["workspace", "init", "--name", "Plan", "--goal", "Migrate"]);
        let steps: Vec<String> = calls.iter().map(|(tool, args)| format!("[[tool {tool} {args}]]")).collect();
        let output = agent.turn(&steps.join(" "), false);
        let requests = agent.model.request_texts();
        let nodes = agent.env.json(&["node", "list"])["nodes"].as_array().unwrap().len();
        assert_eq!(nodes, 13, "{}", agent.context(&output, &requests));
        let sent: usize = calls.iter().map(|(_, args)| args.to_string().len()).sum();
        let next = agent.env.json(&["next", "--limit", "20"])["next"].as_array().unwrap().len();
        Some((requests.len(), sent, requests.iter().map(String::len).sum::<usize>(), next))
    };
    let Some((requests, sent, read, ready)) = run(&plan) else { return };
    let (more_requests, more_sent, more_read, all_ready) = run(&one_by_one).unwrap();
    eprintln!(
        "node_plan: 1 call, {requests} requests, {sent} bytes sent, {read} bytes read by the model\n\
         node_create: 12 calls, {more_requests} requests, {more_sent} bytes sent, {more_read} bytes read by the model"
    );
    assert_eq!((ready, all_ready), (1, 12), "only the plan has dependencies");
    assert!(requests + 11 <= more_requests && sent < more_sent && read < more_read);
}
