//! `tanmi serve`, asked and killed: what it acknowledged is there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::{World, reap};
use crate::dice::Dice;

pub fn serve(world: &World, dice: &mut Dice, mark: &str) {
    let mut command = world.command(&["serve", "--no-open", "--json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("a server");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut said = String::new();
    let told: Option<Value> = loop {
        let Some(Ok(line)) = lines.next() else { break None };
        said.push_str(&line);
        if let Ok(told) = serde_json::from_str(&said) {
            break Some(told);
        }
    };
    // Somebody else has one, or there was no room to begin.
    if !told.is_some_and(|told| told["started"] == true) {
        return reap(child);
    }
    let kept = std::fs::read(world.home().join(".tanmi-workspace/serve.json")).unwrap_or_default();
    let kept: Value = serde_json::from_slice(&kept).unwrap_or_default();
    for n in 0..1 + dice.roll(6) {
        let (node, text) = (world.some_node(dice), format!("fact {mark}-{n} over http"));
        let path = format!("/api/v1/workspaces/{}/nodes/{node}/log", world.workspace);
        let done = post(&kept, &path, &json!({"log": text}));
        world.done.fetch_add(1, Ordering::Relaxed);
        if done.is_some_and(|status| status == 201) {
            world.promises.lock().expect("promises").logs.push((node, text));
        }
    }
    if dice.roll(2) == 0 {
        let _ = child.kill();
        world.killed.fetch_add(1, Ordering::Relaxed);
    } else {
        let _ = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    }
    reap(child);
}

fn post(kept: &Value, path: &str, body: &Value) -> Option<u16> {
    let (port, token) = (kept["port"].as_u64()?, kept["token"].as_str()?);
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).ok()?)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let (body, mut answer) = (body.to_string(), String::new());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}
