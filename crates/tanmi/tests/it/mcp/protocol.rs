//! The protocol: concurrent calls, several servers, invalid messages, and clients that leave or do not read.

use std::collections::BTreeSet;

use super::*;

fn create(n: usize) -> Value {
    json!({"parentId": "root", "type": "execution", "title": format!("n{n}"), "requirement": "r"})
}

#[test]
fn pipelined_calls_are_all_answered() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    client.expect_ok("workspace_init", json!({"name": "n", "goal": "g"}));
    let asked: BTreeSet<u64> = (0..50).map(|n| client.post_call("node_create", create(n))).collect();
    let mut nodes = BTreeSet::new();
    let answered: BTreeSet<u64> = (0..50)
        .map(|_| {
            let answer = client.receive();
            let result = &answer["result"];
            assert_eq!(result["isError"], false, "{answer}");
            nodes.insert(result["structuredContent"]["nodeId"].as_str().unwrap().to_owned());
            answer["id"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(asked, answered);
    assert_eq!(nodes.len(), 50);
    assert_eq!(client.expect_ok("workspace_get", json!({}))["progress"]["total"], 50);
    client.finish();
}

#[test]
fn four_servers_creating_nodes_lose_nothing() {
    let env = TestEnv::new();
    let ws = env.init();
    let created: BTreeSet<String> = std::thread::scope(|scope| {
        let servers: Vec<_> = (0..4)
            .map(|_| {
                let env = &env;
                scope.spawn(move || {
                    let mut client = Client::connect(env);
                    let ids: Vec<String> = (0..200)
                        .map(|n| {
                            client.expect_ok("node_create", create(n))["nodeId"].as_str().unwrap().to_owned()
                        })
                        .collect();
                    client.finish();
                    ids
                })
            })
            .collect();
        servers.into_iter().flat_map(|server| server.join().unwrap()).collect()
    });
    assert_eq!(created.len(), 800);
    let page = env.json(&["node", "list", "--limit", "1000"]);
    let ids: BTreeSet<String> = page["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, created);
    assert_eq!(env.check(&[&ws])["findings"], json!([]));
}

#[test]
fn invalid_messages_get_error_codes_and_keep_connection() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let mut error_of = |bytes: &[u8]| {
        client.send_bytes(bytes);
        let answer = client.receive();
        (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
    };
    assert_eq!(error_of(b"this is not JSON\n"), (-32700, Value::Null));
    assert_eq!(error_of(b"{\"jsonrpc\":\"2.0\",\"id\":1,\n"), (-32700, Value::Null));
    assert_eq!(error_of(b"\xff\xfe\x00\x01\n"), (-32700, Value::Null));
    for line in [
        &b"null\n"[..],
        b"[]\n",
        b"5\n",
        b"\"text\"\n",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n",
    ] {
        assert_eq!(error_of(line), (-32600, Value::Null));
    }
    assert_eq!(
        error_of(
            b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}\n"
        )
        .0,
        -32700
    );
    assert_eq!(error_of(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"nope\"}\n"), (-32601, json!(3)));
    assert_eq!(
        error_of(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":7}}\n"),
        (-32602, json!(4))
    );
    let mut long = br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"log_append","arguments":{"log":""#.to_vec();
    long.resize(20 << 20, b'x');
    long.extend_from_slice(b"\"}}}\n");
    assert_eq!(error_of(&long), (-32600, json!(5)));
    let unknown = client.request("tools/call", json!({"name": "node_make", "arguments": {}}));
    assert_eq!(unknown["error"]["data"]["code"], "UNKNOWN_TOOL");
    let unknown = client.request("tools/call", json!({"name": "nodecreate", "arguments": {}}));
    assert_eq!(unknown["error"]["data"]["near"], "node_create");
    client.expect_ok("workspace_list", json!({}));
    client.finish();
}

#[test]
fn partial_message_then_eof_changes_nothing() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    client.send_bytes(br#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"workspace_init","#);
    client.finish();
    assert!(!env.project.join(".tanmi-workspace").exists(), "nothing was created");
}

#[test]
fn eof_before_initialize_ends_cleanly() {
    let env = TestEnv::new();
    Client::start(&env).finish();
}

/// Every call sent before the client left is done completely or not at all, and the server exits.
#[test]
fn eof_during_calls_leaves_consistent_store() {
    let env = TestEnv::new();
    let ws = env.init();
    let mut client = Client::connect(&env);
    for n in 0..50 {
        client.post_call("node_create", create(n));
    }
    client.finish();
    let report = env.check(&[&ws]);
    assert_eq!(report["findings"], json!([]));
}

/// The server waits without using processor time, and exits when the pipe is closed.
#[cfg(target_os = "linux")]
#[test]
fn client_that_never_reads_causes_no_busy_loop() {
    let env = TestEnv::new();
    env.init();
    let mut client = Client::connect(&env);
    for n in 0..300 {
        client.post_call("context_get", json!({"nodeId": "root"}));
        client.post_call("node_list", json!({"limit": n % 200 + 1}));
    }
    let ticks = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    // The processor time may grow until the pending calls are done; after that it must not.
    let pid = client.child.id();
    let mut last = ticks(pid);
    let mut quiet = 0;
    for _ in 0..600 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = ticks(pid);
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
        if quiet == 10 {
            break;
        }
    }
    assert_eq!(quiet, 10, "busy loop: {last} ticks and growing");
    drop(client.stdin.take());
    let stdout = std::mem::replace(&mut client.stdout, {
        let mut other = env.command(&["workspace", "list"]).stdout(Stdio::piped()).spawn().unwrap();
        let pipe = BufReader::new(other.stdout.take().unwrap());
        other.wait().unwrap();
        pipe
    });
    drop(stdout);
    client.child.wait().unwrap();
}

/// While answers wait, the server reads no further requests, so a client that never reads cannot fill its memory.
#[cfg(target_os = "linux")]
#[test]
fn client_that_never_reads_is_not_read_and_uses_little_memory() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let env = TestEnv::new();
    env.ok(&["workspace", "init", "--name", "n", "--goal", &"g".repeat(16_000)]);
    let mut client = Client::connect(&env);
    let mut stdin = client.stdin.take().unwrap();
    let sent = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&sent);
    // Writes until the pipe is full for good; ends when the server is killed.
    let writer = std::thread::spawn(move || {
        for id in 10.. {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "workspace_get", "arguments": {}}});
            if stdin.write_all(format!("{message}\n").as_bytes()).is_err() {
                return;
            }
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (mut last, mut quiet) = (0, 0);
    for _ in 0..600 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = sent.load(Ordering::Relaxed);
        quiet = if now > 0 && now == last { quiet + 1 } else { 0 };
        last = now;
        if quiet == 20 || now > 20_000 {
            break;
        }
    }
    // The requests that are read, those in the buffer of the server, and those in the pipe.
    assert!(last < 3_000, "{last} requests were read");
    let peak = crate::env::peak_megabytes(client.child.id());
    assert!(peak < 200, "{peak} MB");
    client.child.kill().unwrap();
    writer.join().unwrap();
}

/// A cancelled request gets no response, but its place is free again.
#[test]
fn cancelled_and_invalid_requests_free_their_places() {
    let env = TestEnv::new();
    env.init();
    let mut client = Client::connect(&env);
    for _ in 0..100 {
        let id = client.post_call("workspace_get", json!({}));
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
    }
    for _ in 0..100 {
        client.send_bytes(b"not JSON\n");
    }
    let id = client.post_call("workspace_get", json!({}));
    while client.receive()["id"] != id {}
    client.finish();
}

#[test]
fn request_with_id_in_use_is_refused() {
    let env = TestEnv::new();
    env.init();
    let mut client = Client::connect(&env);
    let call = |tool: &str| json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    client.send_bytes(format!("{}\n{}\n", call("workspace_get"), call("workspace_list")).as_bytes());
    let last = client.post_call("workspace_get", json!({}));
    let mut answers: Vec<Value> = Vec::new();
    let is_done = |answers: &[Value], id: &Value| {
        answers.iter().any(|answer| answer["id"] == *id && answer["result"]["isError"] == false)
    };
    while !is_done(&answers, &json!("same")) || !is_done(&answers, &json!(last)) {
        answers.push(client.receive());
    }
    assert!(answers.iter().any(|answer| answer["error"]["code"] == -32600), "{answers:?}");
    // The id is free after the response.
    client.send(&call("workspace_list"));
    assert_eq!(client.receive()["result"]["isError"], false);
    client.finish();
}

#[test]
fn protocol_versions_are_negotiated() {
    let env = TestEnv::new();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
    ] {
        let mut client = Client::start(&env);
        let answer = client.initialize(asked);
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        let instructions = answer["result"]["instructions"].as_str().unwrap();
        assert!(instructions.contains("session_bind") && instructions.len() < 900, "{instructions}");
        client.expect_ok("workspace_list", json!({}));
        client.finish();
    }
    let mut client = Client::start(&env);
    assert!(client.initialize("1999-01-01")["result"]["protocolVersion"].is_string());
    client.finish();
}

#[test]
fn discover_before_initialize_is_answered() {
    let env = TestEnv::new();
    let mut client = Client::start(&env);
    let bare = client.request("server/discover", json!({}));
    assert!(bare["error"]["code"].is_i64(), "{bare}");
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }});
    let found = client.request("server/discover", meta.clone());
    assert_eq!(found["result"]["capabilities"]["tools"], json!({}), "{found}");
    // The old handshake may follow …
    client.initialize("2025-11-25");
    client.expect_ok("workspace_list", json!({}));
    client.finish();
    // … or no handshake at all.
    let mut client = Client::start(&env);
    client.request("server/discover", meta.clone());
    let mut call = meta;
    call["name"] = json!("workspace_list");
    call["arguments"] = json!({});
    let answer = client.request("tools/call", call);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    client.finish();
}

#[test]
fn cancelled_call_leaves_consistent_store() {
    let env = TestEnv::new();
    let ws = env.init();
    let mut client = Client::connect(&env);
    let mut answered = 0;
    for n in 0..20 {
        let id = client.post_call("node_create", create(n));
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
    }
    // The connection still works. Cancelled calls may stay unanswered; others are answered.
    let id = client.post_call("workspace_get", json!({}));
    loop {
        let answer = client.receive();
        if answer["id"] == id {
            break;
        }
        answered += 1;
    }
    assert!(answered <= 20);
    client.finish();
    assert_eq!(env.check(&[&ws])["findings"], json!([]));
}
