//! Many MCP servers that pull work with `node_next {start}` until nothing is left, while some are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::planned;
use crate::env::TestEnv;
use crate::mcp::Client;

const NODES: usize = 200;
const PULLERS: usize = 16;
/// These pullers are killed after they started their second node.
const KILLED: usize = 4;

/// How often a puller finds nothing to start before the test fails instead of waiting on.
const MAX_WAITS: usize = 1000;

/// What happened, in the order of the answers.
#[derive(Clone, Debug)]
enum Seen {
    Started { node: String, takeover: bool },
    Completed { node: String },
}

/// Numbers that differ from round to round and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn pull(env: &TestEnv, puller: usize, seen: &Mutex<Vec<Seen>>) {
    let record = |event: Seen| seen.lock().unwrap().push(event);
    let mut client = Client::connect(env);
    let mut waits = 0;
    for turn in 0.. {
        let answer = client.expect_ok("node_next", json!({"start": true}));
        let Some(started) = answer.get("started") else {
            if answer["blocked"].as_array().is_none_or(Vec::is_empty) {
                break;
            }
            waits += 1;
            assert!(waits < MAX_WAITS, "nothing becomes ready: {answer}");
            // Other pullers are at work; what they complete makes the next node ready.
            std::thread::sleep(std::time::Duration::from_millis(20));
            continue;
        };
        let node = started["nodeId"].as_str().unwrap().to_owned();
        record(Seen::Started { node: node.clone(), takeover: started["takeover"] == true });
        if puller < KILLED && turn > 0 {
            // Dropping the client kills its server, which leaves the node claimed.
            return;
        }
        // Recorded before the call, because others see the completion before this answer.
        record(Seen::Completed { node: node.clone() });
        let complete = json!({"nodeId": node, "action": "complete", "conclusion": "done"});
        client.expect_ok("node_transition", complete);
    }
    client.finish();
}

fn round(seed: u64) {
    let env = TestEnv::new();
    env.init();
    let mut random = Random(seed);
    let mut outline = String::new();
    let mut dependencies: Vec<BTreeSet<usize>> = Vec::new();
    for n in 0..NODES {
        let targets: BTreeSet<usize> =
            (0..random.below(3)).filter(|_| n > 0).map(|_| random.below(n.max(1))).collect();
        let after: Vec<String> = targets.iter().map(|target| format!("task {target}")).collect();
        let after = if after.is_empty() { String::new() } else { format!(" (after: {})", after.join(", ")) };
        outline.push_str(&format!("- task {n}{after}\n"));
        dependencies.push(targets);
    }
    let ids = planned(&env, &outline);
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for puller in 0..PULLERS {
            let (env, seen) = (&env, &seen);
            scope.spawn(move || pull(env, puller, seen));
        }
    });

    let numbers: BTreeMap<&str, usize> = ids.iter().enumerate().map(|(n, id)| (id.as_str(), n)).collect();
    let (mut first_starts, mut takeovers, mut completed) = (BTreeSet::new(), 0, BTreeSet::new());
    for event in seen.into_inner().unwrap() {
        match event {
            Seen::Started { node, takeover: true } => {
                assert!(first_starts.contains(&numbers[node.as_str()]));
                takeovers += 1;
            }
            Seen::Started { node, takeover: false } => {
                let number = numbers[node.as_str()];
                assert!(first_starts.insert(number), "task {number} was started twice");
                let open: Vec<&usize> = dependencies[number].difference(&completed).collect();
                assert!(open.is_empty(), "task {number} was started before {open:?}");
            }
            Seen::Completed { node } => assert!(completed.insert(numbers[node.as_str()]), "{node}"),
        }
    }
    assert_eq!((first_starts.len(), completed.len(), takeovers), (NODES, NODES, KILLED));
    let page = env.json(&["node", "list", "--limit", "1000"]);
    let is_open = |node: &&Value| node["id"] != "root" && node["status"] != "completed";
    assert_eq!(page["nodes"].as_array().unwrap().iter().filter(is_open).count(), 0);
}

/// `TANMI_TEST_ROUNDS=10` runs ten rounds with other dependencies.
#[test]
fn next_sixteen_pullers_start_each_node_once_and_never_before_its_dependencies() {
    let rounds = std::env::var("TANMI_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    (0..rounds).for_each(round);
}
