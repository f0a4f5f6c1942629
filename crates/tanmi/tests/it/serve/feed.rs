//! The change feed: every subscriber gets every change, from any source.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::Server;
use crate::env::TestEnv;
use crate::mcp::Client;

/// A subscriber of the change feed.
pub struct Listener {
    lines: BufReader<TcpStream>,
    last: String,
}

/// One event: its name and its data.
pub type FeedEvent = (String, Value);

impl Listener {
    pub fn open(server: &Server, last: Option<&str>) -> Listener {
        let mut stream = server.connect();
        let resume = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        let request = format!(
            "GET /api/v1/changes HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n{resume}\r\n",
            server.port, server.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        Listener { lines: BufReader::with_capacity(4096, stream), last: String::new() }
    }

    /// Returns the next event. Headers, chunk sizes and comments are skipped.
    fn next(&mut self) -> Option<FeedEvent> {
        let (mut name, mut data) = (String::new(), None);
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let text = line.trim_end();
            if let Some(id) = text.strip_prefix("id: ") {
                id.clone_into(&mut self.last);
            } else if let Some(event_name) = text.strip_prefix("event: ") {
                event_name.clone_into(&mut name);
            } else if let Some(text) = text.strip_prefix("data: ") {
                data = serde_json::from_str(text).ok();
            } else if let Some(data) = data.take().filter(|_| text.is_empty()) {
                return Some((name, data));
            }
        }
    }

    /// Skips events until one matches, and returns it.
    pub fn wait_for(&mut self, what: &str, matches: impl Fn(&FeedEvent) -> bool) -> FeedEvent {
        loop {
            let received = self.next().unwrap_or_else(|| panic!("{what}: the feed ended"));
            if matches(&received) {
                return received;
            }
        }
    }
}

fn is_change_of(kind: &str) -> impl Fn(&FeedEvent) -> bool {
    move |(name, data)| name == "change" && data["kind"] == kind
}

#[test]
fn change_answer_has_the_sequence_number_of_the_feed() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let mut listener = Listener::open(&server, None);
    listener.wait_for("hello", |(name, _)| name == "hello");
    let at = format!("/workspaces/{ws}");
    let new = json!({"type": "execution", "title": "t", "parentId": "root", "requirement": "r"});
    let created = server.expect_ok("POST", &format!("{at}/nodes"), new);
    let node = created["nodeId"].as_str().unwrap();
    let renamed = server.expect_ok("PATCH", &at, json!({"name": "Renamed"}));
    let logged = server.expect_ok("POST", &format!("{at}/nodes/{node}/log"), json!({"log": "a line"}));
    let at_node = format!("{at}/nodes/{node}");
    let edited = server.expect_ok("PATCH", &at_node, json!({"title": "u"}));
    let started = server.expect_ok("POST", &format!("{at_node}/transition"), json!({"action": "start"}));
    let problem = server.expect_ok("PUT", &format!("{at_node}/problem"), json!({"description": "p"}));
    let deleted = server.expect_ok("DELETE", &at_node, Value::Null);
    let archived = server.expect_ok("POST", &format!("{at}/archive"), json!({}));
    for answer in [&created, &renamed, &logged, &edited, &started, &problem, &deleted, &archived] {
        assert!(answer["change"].is_u64(), "{answer}");
        listener.wait_for("the same number", |(_, data)| data["change"] == answer["change"]);
    }
    assert!(server.expect_ok("GET", &at, Value::Null)["change"].is_null(), "a read changes nothing");
}

#[test]
fn changes_from_every_source_are_sent() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let server = Server::start(&env);
    let mut listener = Listener::open(&server, None);
    assert_eq!(listener.next().unwrap().0, "hello");
    let changes_node = |node: &str| {
        let node = node.to_owned();
        move |(_, data): &FeedEvent| data["nodes"].as_array().is_some_and(|ids| ids.contains(&json!(node)))
    };
    // Changes by another process, by this server and by an editor.
    env.ok(&["node", "transition", &node, "--action", "start"]);
    let (_, change) = listener.wait_for("a command", changes_node(&node));
    assert_eq!((&change["workspaceId"], change["change"].as_u64().is_some()), (&json!(ws), true));
    server.expect_ok("POST", &format!("/workspaces/{ws}/nodes/{node}/log"), json!({"log": "x"}));
    let (_, next) = listener.wait_for("the server itself", changes_node(&node));
    assert_eq!(next["change"].as_u64(), change["change"].as_u64().map(|number| number + 1));
    env.edit(&env.node_md(&ws, &node), |text| text.replace("title: t", "title: by hand"));
    let (_, edit) = listener.wait_for("an editor", changes_node(&node));
    assert_eq!(edit.get("change"), None, "{edit}");
    assert_eq!(
        server.expect_ok("GET", &format!("/workspaces/{ws}/nodes/{node}"), Value::Null)["node"]["title"],
        "by hand"
    );
    let folder = env.workspace_dir(&ws).join("nodes").join(&node);
    std::fs::rename(&folder, env.root().join("gone")).unwrap();
    listener.wait_for("a removed folder", changes_node(&node));

    // A workspace that disappears and comes back changed, as with another Git branch.
    let (original, away) = (env.workspace_dir(&ws), env.root().join("away"));
    let other = env.node("root", "execution", "other");
    listener.wait_for("another node", changes_node(&other));
    std::fs::rename(&original, &away).unwrap();
    listener.wait_for("a removed workspace", is_change_of("workspaces"));
    env.edit(&away.join("nodes").join(&other).join("Node.md"), |text| {
        text.replace("title: other", "title: elsewhere")
    });
    std::fs::rename(&away, &original).unwrap();
    listener.wait_for("a workspace that came back", is_change_of("workspaces"));
    listener.wait_for("a change made meanwhile", changes_node(&other));

    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    listener.wait_for("a binding", is_change_of("bindings"));
    env.ok(&["memory", "save-fact", "something", "--type", "W"]);
    listener.wait_for("a memory", is_change_of("memory"));
    env.ok(&["workspace", "init", "--name", "Second", "--goal", "g"]);
    listener.wait_for("a workspace", is_change_of("workspaces"));
    env.make(&env.project.join(".tanmi/rules.json"), "{}");
    listener.wait_for("rules", is_change_of("rules"));
    assert!(server.stop());
    assert!(listener.next().is_none(), "the feed ends with the server");
}

#[test]
fn reconnect_resumes_or_reports_gap() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let log = |text: &str| {
        server.expect_ok("POST", &format!("/workspaces/{ws}/nodes/root/log"), json!({"log": text}))
    };
    let mut listener = Listener::open(&server, None);
    listener.wait_for("hello", |(name, _)| name == "hello");
    log("one");
    let first = listener.wait_for("one", is_change_of("workspace")).1["change"].as_u64().unwrap();
    let last = listener.last.clone();
    drop(listener);
    // Changes without a subscriber are delivered when it reconnects.
    log("two");
    log("three");
    let mut again = Listener::open(&server, Some(&last));
    for number in [first + 1, first + 2] {
        assert_eq!(again.wait_for("missed", is_change_of("workspace")).1["change"], number);
    }
    // Unknown event ids, or those of another run, are reported as a gap.
    for last in ["elsewhere-3", "nonsense", "", &format!("{}9", again.last)] {
        let (name, _) = Listener::open(&server, Some(last)).next().unwrap();
        assert_eq!(name, "gap", "{last}");
    }
}

#[test]
fn two_hundred_listeners_get_every_change() {
    const LISTENERS: usize = 200;
    const WRITERS: u64 = 4;
    const EACH: u64 = 250;
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "planning", "shared");
    let server = Server::start(&env);
    let first = {
        let mut probe = Listener::open(&server, None);
        probe.wait_for("hello", |(name, _)| name == "hello");
        server.expect_ok("POST", &format!("/workspaces/{ws}/nodes/root/log"), json!({"log": "first"}));
        probe.wait_for("the first", is_change_of("workspace")).1["change"].as_u64().unwrap()
    };
    let mut listeners: Vec<Listener> = (0..LISTENERS).map(|_| Listener::open(&server, None)).collect();
    for listener in &mut listeners {
        assert_eq!(listener.next().unwrap().0, "hello");
    }
    let last = first + WRITERS * EACH;
    let received: Vec<Vec<u64>> = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (env, ws) = (&env, &ws);
            scope.spawn(move || {
                let mut client = Client::connect(env);
                for n in 0..EACH {
                    let line = json!({"workspaceId": ws, "nodeId": "root", "log": format!("{writer} {n}")});
                    client.expect_ok("log_append", line);
                }
                client.finish();
            });
        }
        let collect_numbers = |mut listener: Listener| {
            move || {
                let mut numbers = Vec::new();
                while numbers.last() != Some(&last) {
                    let (name, data) = listener.next().expect("the feed ended");
                    assert_eq!(name, "change", "no subscriber is too slow: {data}");
                    numbers.extend(data["change"].as_u64());
                }
                numbers
            }
        };
        let spawn = |listener| {
            std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(scope, collect_numbers(listener))
                .unwrap()
        };
        let handles: Vec<_> = listeners.into_iter().map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let expected: Vec<u64> = (first + 1..=last).collect();
    for numbers in received {
        assert_eq!(numbers, expected);
    }
    assert_eq!(env.json(&["log", "--node", "root", "--limit", "1"])["total"], json!(WRITERS * EACH + 1));
}
