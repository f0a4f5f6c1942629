//! A server of a team on the loopback interface, for tests: it keeps the lines of one memory, remembers keys,
//! and fails as it is told.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::Member;

/// How the server treats a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Mood {
    #[default]
    Answer,
    /// Carries it out and ends the connection without an answer.
    LoseAnswer,
    /// Refuses commands with this status and code, if their text contains the word.
    Refuse(u16, &'static str, &'static str),
    /// Answers every request with this text.
    Say(&'static str),
}

#[derive(Default)]
pub struct ServerData {
    pub mood: Mood,
    /// The change and the text of each line.
    pub lines: Vec<(i64, String)>,
    answers: BTreeMap<String, Value>,
    /// The bodies of all commands, in order.
    pub commands: Vec<Value>,
    /// The changes before this one are no longer in the feed.
    pub first: i64,
    /// The workspaces, each with its documents as of the change 1.
    pub workspaces: BTreeMap<String, Vec<(String, String)>>,
    /// Streams that every page of the feed names as gaps.
    pub gaps: Vec<String>,
}

impl ServerData {
    fn seq(&self) -> i64 {
        self.lines.last().map_or(0, |(seq, _)| *seq)
    }

    fn run(&mut self, body: &Value) -> Value {
        self.commands.push(body.clone());
        let key = body["key"].as_str().unwrap().to_owned();
        if let Some(answer) = self.answers.get(&key) {
            return answer.clone();
        }
        let mut added: Vec<(String, String)> = Vec::new();
        let command = &body["command"];
        let outcome = match command["type"].as_str() {
            Some("save") => {
                let mut line: Value = serde_json::from_str(command["line"].as_str().unwrap()).unwrap();
                line["source"]["person"] = json!("ada");
                let id = line["id"].as_str().unwrap().to_owned();
                added.push((id.clone(), line.to_string()));
                json!({"type": "saved", "id": id, "isDuplicate": false})
            }
            Some("mark") => {
                for id in command["ids"].as_array().unwrap() {
                    let line = json!({"type": command["mark"], "target": id});
                    added.push((id.as_str().unwrap().to_owned(), line.to_string()));
                }
                json!({"type": "marked"})
            }
            Some("import") => {
                for line in command["lines"].as_str().unwrap().lines().filter(|line| !line.is_empty()) {
                    added.push((String::from("imported"), line.to_owned()));
                }
                let result = json!({"added": added.len(), "known": 0, "badLines": 0, "masked": 0});
                json!({"type": "imported", "result": result})
            }
            _ => {
                let entry =
                    json!({"timestamp": "2025-12-11 05:48:20", "operator": "AI", "event": command["event"]});
                json!({"outcome": "log", "entry": entry, "total": 1})
            }
        };
        let seq = self.seq() + i64::from(!added.is_empty());
        self.lines.extend(added.iter().map(|(_, line)| (seq, line.clone())));
        let docs: Vec<Value> = added.iter().map(|(name, line)| json!({"name": name, "text": line})).collect();
        let answer = json!({"outcome": outcome, "seq": seq, "docs": docs, "now": 1});
        self.answers.insert(key, answer.clone());
        answer
    }

    fn feed(&self, have: i64) -> Value {
        let has_gap = have + 1 < self.first;
        let mut gaps = self.gaps.clone();
        gaps.extend(has_gap.then(|| String::from("memory")));
        let after = self.lines.iter().filter(|(seq, _)| *seq > have && !has_gap);
        let changes: Vec<Value> = after
            .map(|(seq, line)| {
                json!({"stream": "memory", "seq": seq, "at": 1, "docs": [{"name": "x", "text": line}]})
            })
            .collect();
        let mut heads: BTreeMap<&str, i64> = self.workspaces.keys().map(|id| (id.as_str(), 1)).collect();
        heads.insert("memory", self.seq());
        json!({"changes": changes, "gaps": gaps, "heads": heads, "now": 1})
    }

    fn snapshot(&self, stream: &str) -> Value {
        if let Some(documents) = self.workspaces.get(stream) {
            let document = |(name, text): &(String, String)| json!({"name": name, "text": text});
            return json!({"docs": documents.iter().map(document).collect::<Vec<_>>(), "seq0": 1});
        }
        let docs: Vec<Value> =
            self.lines.iter().map(|(_, line)| json!({"name": "x", "text": line})).collect();
        json!({"docs": docs, "seq0": self.seq()})
    }

    fn answer(&mut self, path: &str, body: &[u8]) -> Option<(u16, String)> {
        if let Mood::Say(text) = self.mood {
            return Some((200, text.to_owned()));
        }
        let number = |name: &str| {
            let at = path.find(name)? + name.len();
            path[at..].split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok()
        };
        if path.contains("/feed") {
            return Some((200, self.feed(number("memory:").unwrap_or(0)).to_string()));
        }
        if path.contains("/snapshot") {
            let stream = path.split("stream=").nth(1).and_then(|rest| rest.split('&').next());
            return Some((200, self.snapshot(stream.unwrap_or_default()).to_string()));
        }
        let body: Value = serde_json::from_slice(body).unwrap();
        match self.mood.clone() {
            Mood::Refuse(status, code, word) if body.to_string().contains(word) => {
                self.commands.push(body);
                Some((status, json!({"error": {"code": code, "message": "not this one"}}).to_string()))
            }
            Mood::LoseAnswer => {
                self.run(&body);
                None
            }
            _ => Some((200, self.run(&body).to_string())),
        }
    }
}

/// A running server. It ends with the test.
pub struct ScriptedServer {
    pub address: String,
    data: Arc<Mutex<ServerData>>,
}

impl ScriptedServer {
    pub fn start() -> ScriptedServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let data: Arc<Mutex<ServerData>> = Arc::default();
        let shared = data.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &shared);
            }
        });
        ScriptedServer { address, data }
    }

    pub fn data(&self) -> MutexGuard<'_, ServerData> {
        self.data.lock().unwrap()
    }

    /// Returns the member `ada` of this server.
    pub fn member(&self) -> Member {
        member(&self.address)
    }

    /// Returns the member if the server were away.
    pub fn member_away(&self) -> Member {
        // A port that no program listens on: it was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Member { server: format!("http://127.0.0.1:{port}"), ..self.member() }
    }
}

fn member(server: &str) -> Member {
    serde_json::from_value(json!({
        "server": server, "project": "shop", "person": "ada", "machine": "desk", "token": "t",
        "folders": [], "joinedAt": 1,
    }))
    .unwrap()
}

fn serve(stream: TcpStream, data: &Mutex<ServerData>) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default();
    let answer = data.lock().unwrap().answer(path, &body);
    if let Some((status, text)) = answer {
        let head =
            format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
        let _ = reader.get_mut().write_all(format!("{head}{text}").as_bytes());
    }
}
