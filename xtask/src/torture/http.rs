//! Starts `tanmi serve`, sends requests to it and ends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::{TestEnv, wait_for_exit};
use crate::rng::Rng;

/// Starts a server and appends log entries over HTTP. Half of the servers are killed, the others get SIGTERM.
pub fn run_server(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let mut command = env.command(&["serve", "--no-open", "--json"]);
    let mut child = env.spawn(command.stdin(Stdio::piped()));
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let mut output = String::new();
    // The output is one JSON value on several lines.
    let status: Option<Value> = loop {
        let Some(Ok(line)) = lines.next() else { break None };
        output.push_str(&line);
        if let Ok(status) = serde_json::from_str(&output) {
            break Some(status);
        }
    };
    // The server of another worker is running, or the disk is full.
    if !status.is_some_and(|status| status["started"] == true) {
        return wait_for_exit(child);
    }
    let server_info = std::fs::read(env.home().join(".tanmi-workspace/serve.json")).unwrap_or_default();
    let server_info: Value = serde_json::from_slice(&server_info).unwrap_or_default();
    for n in 0..1 + rng.below(6) {
        let (node, text) = (env.random_node(rng), format!("fact {marker}-{n} over http"));
        let path = format!("/api/v1/workspaces/{}/nodes/{node}/log", env.workspace);
        let response_status = post(&server_info, &path, &json!({"log": text}));
        env.calls.fetch_add(1, Ordering::Relaxed);
        if response_status == Some(201) {
            env.acknowledged.lock().expect("no worker panicked").logs.push((node, text));
        }
    }
    if rng.below(2) == 0 {
        let _ = child.kill();
        env.killed.fetch_add(1, Ordering::Relaxed);
    } else {
        let _ = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    }
    wait_for_exit(child);
}

/// Sends a POST request and returns the status code of the response.
fn post(server_info: &Value, path: &str, body: &Value) -> Option<u16> {
    let (port, token) = (server_info["port"].as_u64()?, server_info["token"].as_str()?);
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).ok()?)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let (body, mut response) = (body.to_string(), String::new());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    stream.read_to_string(&mut response).ok()?;
    response.split(' ').nth(1)?.parse().ok()
}
