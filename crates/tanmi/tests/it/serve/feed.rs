//! The feed of changes: everybody hears of everything, whoever made it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::Server;
use crate::env::TestEnv;
use crate::mcp::Client;

struct Listener {
    lines: BufReader<TcpStream>,
    last: String,
}

/// One event: its name and its data.
type Heard = (String, Value);

impl Listener {
    fn open(server: &Server, last: Option<&str>) -> Listener {
        let mut stream = server.connect();
        let resume = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        let request = format!(
            "GET /api/v1/changes HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n{resume}\r\n",
            server.port, server.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        Listener { lines: BufReader::with_capacity(4096, stream), last: String::new() }
    }

    /// The next event; what is not part of one (headers, sizes of chunks, comments) is passed over.
    fn next(&mut self) -> Option<Heard> {
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
            } else if let Some(word) = text.strip_prefix("event: ") {
                word.clone_into(&mut name);
            } else if let Some(text) = text.strip_prefix("data: ") {
                data = serde_json::from_str(text).ok();
            } else if let Some(data) = data.take().filter(|_| text.is_empty()) {
                return Some((name, data));
            }
        }
    }

    /// Past everything else, to what is wanted.
    fn until(&mut self, what: &str, wanted: impl Fn(&Heard) -> bool) -> Heard {
        loop {
            let heard = self.next().unwrap_or_else(|| panic!("{what}: the feed has ended"));
            if wanted(&heard) {
                return heard;
            }
        }
    }
}

fn is(kind: &str) -> impl Fn(&Heard) -> bool {
    move |(name, data)| name == "change" && data["kind"] == kind
}

#[test]
fn changes_from_every_source_are_sent() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let server = Server::start(&env);
    let mut listener = Listener::open(&server, None);
    assert_eq!(listener.next().unwrap().0, "hello");
    let about = |node: &str| {
        let node = node.to_owned();
        move |(_, data): &Heard| data["nodes"].as_array().is_some_and(|ids| ids.contains(&json!(node)))
    };
    // Another process, this server, and an editor.
    env.ok(&["node", "transition", &node, "--action", "start"]);
    let (_, change) = listener.until("a command", about(&node));
    assert_eq!((&change["workspaceId"], change["change"].as_u64().is_some()), (&json!(ws), true));
    server.good("POST", &format!("/workspaces/{ws}/nodes/{node}/log"), json!({"log": "x"}));
    let (_, next) = listener.until("the server itself", about(&node));
    assert_eq!(next["change"].as_u64(), change["change"].as_u64().map(|number| number + 1));
    env.edit(&env.node_md(&ws, &node), |text| text.replace("title: t", "title: by hand"));
    let (_, edit) = listener.until("an editor", about(&node));
    assert_eq!(edit.get("change"), None, "{edit}");
    assert_eq!(
        server.good("GET", &format!("/workspaces/{ws}/nodes/{node}"), Value::Null)["node"]["title"],
        "by hand"
    );
    let folder = env.workspace_dir(&ws).join("nodes").join(&node);
    std::fs::rename(&folder, env.root().join("gone")).unwrap();
    listener.until("a folder that went", about(&node));

    // A workspace that goes and comes back changed, as with another branch.
    let (place, away) = (env.workspace_dir(&ws), env.root().join("away"));
    let other = env.node("root", "execution", "other");
    listener.until("another node", about(&other));
    std::fs::rename(&place, &away).unwrap();
    listener.until("it went", is("workspaces"));
    env.edit(&away.join("nodes").join(&other).join("Node.md"), |text| {
        text.replace("title: other", "title: elsewhere")
    });
    std::fs::rename(&away, &place).unwrap();
    listener.until("it came back", is("workspaces"));
    listener.until("what was changed meanwhile", about(&other));

    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    listener.until("a binding", is("bindings"));
    env.ok(&["memory", "save-fact", "something", "--type", "W"]);
    listener.until("a memory", is("memory"));
    env.ok(&["workspace", "init", "--name", "Second", "--goal", "g"]);
    listener.until("a workspace", is("workspaces"));
    env.make(&env.project.join(".tanmi/rules.json"), "{}");
    listener.until("rules", is("rules"));
    assert!(server.stop());
    assert!(listener.next().is_none(), "the feed ends with the server");
}

#[test]
fn reconnect_resumes_or_reports_gap() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let log =
        |text: &str| server.good("POST", &format!("/workspaces/{ws}/nodes/root/log"), json!({"log": text}));
    let mut listener = Listener::open(&server, None);
    listener.until("hello", |(name, _)| name == "hello");
    log("one");
    let first = listener.until("one", is("workspace")).1["change"].as_u64().unwrap();
    let last = listener.last.clone();
    drop(listener);
    // Nobody listens now; what happens is heard all the same when somebody comes back.
    log("two");
    log("three");
    let mut again = Listener::open(&server, Some(&last));
    for number in [first + 1, first + 2] {
        assert_eq!(again.until("missed", is("workspace")).1["change"], number);
    }
    // Numbers of another run, or of nobody, are a gap.
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
        probe.until("hello", |(name, _)| name == "hello");
        server.good("POST", &format!("/workspaces/{ws}/nodes/root/log"), json!({"log": "first"}));
        probe.until("the first", is("workspace")).1["change"].as_u64().unwrap()
    };
    let mut listeners: Vec<Listener> = (0..LISTENERS).map(|_| Listener::open(&server, None)).collect();
    for listener in &mut listeners {
        assert_eq!(listener.next().unwrap().0, "hello");
    }
    let last = first + WRITERS * EACH;
    let heard: Vec<Vec<u64>> = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (env, ws) = (&env, &ws);
            scope.spawn(move || {
                let mut client = Client::connect(env);
                for n in 0..EACH {
                    let line = json!({"workspaceId": ws, "nodeId": "root", "log": format!("{writer} {n}")});
                    client.good("log_append", line);
                }
                client.finish();
            });
        }
        let follow = |mut listener: Listener| {
            move || {
                let mut numbers = Vec::new();
                while numbers.last() != Some(&last) {
                    let (name, data) = listener.next().expect("the feed has ended");
                    assert_eq!(name, "change", "nobody here is too slow: {data}");
                    numbers.extend(data["change"].as_u64());
                }
                numbers
            }
        };
        let spawn = |listener| {
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, follow(listener)).unwrap()
        };
        let handles: Vec<_> = listeners.into_iter().map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let every: Vec<u64> = (first + 1..=last).collect();
    for numbers in heard {
        assert_eq!(numbers, every);
    }
    assert_eq!(env.json(&["log", "--node", "root", "--limit", "1"])["total"], json!(WRITERS * EACH + 1));
}
