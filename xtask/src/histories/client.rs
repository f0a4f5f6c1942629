//! A client: sends random commands in sessions of its own, and settles every unknown outcome with the same key.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::commands::{self, Claim};
use super::record::{Record, Verdict, digest_of};
use super::{Env, Person};
use crate::rng::Rng;
use crate::team::http::{Connection, Response};

/// How long one attempt waits for its answer.
const TIMEOUT: Duration = Duration::from_secs(12);
/// How long a request is tried.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

/// What the clients know of the workspaces, from the answers they got.
#[derive(Default)]
pub struct Board {
    pub live: BTreeMap<String, Area>,
    pub deleted: Vec<String>,
}

/// The nodes of a workspace.
#[derive(Clone, Default)]
pub struct Area {
    pub nodes: Vec<String>,
    pub trashed: Vec<String>,
    /// The number of commands so far.
    pub commands: u64,
}

pub struct Client<'a> {
    pub env: &'a Env,
    pub board: &'a Mutex<Board>,
    pub person: &'a Person,
    pub rng: Rng,
    pub number: usize,
    sessions: u64,
    requests: u64,
    /// The workspace in which the current session works. All its claims are there.
    workspace: Option<String>,
    claims: Vec<Claim>,
    /// Claims of earlier sessions, whose leases end or ended.
    sleeping: Vec<Claim>,
    /// The last change of the workspace that the client knows.
    seen: u64,
    records: Vec<Record>,
}

impl<'a> Client<'a> {
    pub fn new(
        env: &'a Env,
        board: &'a Mutex<Board>,
        person: &'a Person,
        number: usize,
        seed: u64,
    ) -> Client<'a> {
        Client {
            env,
            board,
            person,
            rng: Rng(0x9E37_79B9_7F4A_7C15 ^ (seed * 1_000_003 + number as u64 + 1)),
            number,
            sessions: 0,
            requests: 0,
            workspace: None,
            claims: Vec::new(),
            sleeping: Vec::new(),
            seen: 0,
            records: Vec::new(),
        }
    }

    /// Sends requests until the test is over. Returns all of them.
    pub fn run(mut self) -> Vec<Record> {
        while !self.env.is_over() {
            if self.workspace.is_none() || self.rng.below(60) == 0 {
                self.change_session();
            }
            match self.rng.below(60) {
                0 => self.change_list(),
                _ => self.send_command(),
            }
        }
        self.records
    }

    fn session(&self) -> String {
        format!("session-{}-{}", self.number, self.sessions)
    }

    /// Leaves the session, whose lease ends soon, and begins another one in a random workspace.
    fn change_session(&mut self) {
        if self.workspace.is_some() {
            self.env.end_lease(&self.session());
            let old = std::mem::take(&mut self.claims);
            self.sleeping.extend(old);
        }
        self.sessions += 1;
        let board = self.board.lock().expect("no client panicked");
        let ids: Vec<String> = board.live.keys().cloned().collect();
        drop(board);
        self.workspace = self.rng.pick(&ids).cloned();
        self.seen = 0;
        if self.workspace.is_none() {
            self.create_workspace();
        }
    }

    fn create_workspace(&mut self) {
        let name = format!("workspace of client {}", self.number);
        self.change_workspaces(commands::create_workspace(&name));
    }

    /// Creates, deletes or restores a workspace.
    fn change_list(&mut self) {
        let (oldest, deleted) = {
            let board = self.board.lock().expect("no client panicked");
            let oldest = board.live.iter().max_by_key(|(_, area)| area.commands).map(|(id, _)| id.clone());
            (oldest.filter(|_| board.live.len() > 2), self.rng.pick(&board.deleted).cloned())
        };
        match (self.rng.below(4), oldest, deleted) {
            (0, Some(id), _) => self.change_workspaces(commands::delete_workspace(&id)),
            (1, _, Some(id)) => self.change_workspaces(commands::undelete_workspace(&id)),
            _ => self.create_workspace(),
        }
    }

    fn change_workspaces(&mut self, command: Value) {
        let (word, id) = (command["command"].clone(), command["workspaceId"].clone());
        let Some(answer) = self.settle(json!({"command": command, "operator": "AI"})) else { return };
        let mut board = self.board.lock().expect("no client panicked");
        match (word.as_str(), id.as_str()) {
            (Some("delete_workspace"), Some(id)) => {
                board.live.remove(id);
                board.deleted.push(id.to_owned());
            }
            (Some("undelete_workspace"), Some(id)) => {
                board.deleted.retain(|deleted| deleted != id);
                board.live.insert(id.to_owned(), Area::default());
            }
            _ => {
                let id = answer["workspaceId"].as_str().unwrap_or_default();
                board.live.insert(id.to_owned(), Area::default());
            }
        }
    }

    /// Sends a random command in the current session.
    fn send_command(&mut self) {
        let Some(id) = self.workspace.clone() else { return };
        let known = self.board.lock().expect("no client panicked").live.get(&id).cloned();
        let Some(area) = known else {
            // Another client deleted the workspace.
            self.workspace = None;
            return;
        };
        let session = self.session();
        let chosen = commands::choose(&mut self.rng, &area, &session, &self.claims, &self.sleeping);
        let expects = (self.rng.below(40) == 0).then_some(self.seen);
        let session = (self.rng.below(40) > 0 || chosen.claim.is_some()).then_some(chosen.session);
        if let Some(session) = session.as_ref().filter(|session| **session != self.session()) {
            self.env.wake(session);
        }
        let id = chosen.claim.as_ref().map_or(id, |claim| claim.workspace.clone());
        let body = json!({
            "stream": id, "command": chosen.command,
            "operator": "AI", "session": session, "machine": format!("machine {}", self.number),
            "fence": chosen.claim.as_ref().map(|claim| claim.fence), "expects": expects,
        });
        let answer = self.settle(body);
        if let Some(claim) = chosen.claim {
            self.claims.retain(|kept| *kept != claim);
            self.sleeping.retain(|kept| *kept != claim);
        }
        if let Some(answer) = answer {
            self.learn(&id, session.as_deref(), &answer);
        }
    }

    fn learn(&mut self, id: &str, session: Option<&str>, answer: &Value) {
        self.seen = answer["seq"].as_u64().unwrap_or_default();
        if let (Some(session), Some(fence)) = (session, answer["fence"].as_i64()) {
            let outcome = &answer["outcome"];
            let node = outcome["transition"]["nodeId"].as_str().or(outcome["started"]["node"]["id"].as_str());
            let claim = |node: &str| Claim {
                workspace: id.to_owned(),
                node: node.to_owned(),
                session: session.to_owned(),
                fence,
            };
            self.claims.extend(node.map(claim));
        }
        let mut board = self.board.lock().expect("no client panicked");
        let Some(area) = board.live.get_mut(id) else { return };
        area.commands += 1;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let deleted: Vec<String> =
            answer["outcome"]["ids"].as_array().into_iter().flatten().filter_map(text).collect();
        area.nodes.retain(|node| !deleted.contains(node));
        area.trashed.extend(deleted);
        let planned = answer["outcome"]["nodes"]["nodes"].as_array().into_iter().flatten();
        let created = planned.map(|node| &node["nodeId"]).chain([&answer["outcome"]["node"]["id"]]);
        for node in created.filter_map(text) {
            if !area.nodes.contains(&node) && node != "root" {
                area.trashed.retain(|trashed| *trashed != node);
                area.nodes.push(node);
            }
        }
    }

    /// Sends a request until its outcome is known, and records it. Returns the answer if it was carried out.
    fn settle(&mut self, mut body: Value) -> Option<Value> {
        self.requests += 1;
        let key = format!("key-{}-{}", self.number, self.requests);
        body["key"] = json!(key);
        self.env.counts.commands.add(1);
        let mut stored: Option<String> = None;
        let mut was_unknown = false;
        let limit = Instant::now() + SETTLE_LIMIT;
        let (verdict, answer) = loop {
            if was_unknown && stored.is_none() && self.rng.below(2) == 0 {
                stored = self.ask(&key);
            }
            match self.post(&body) {
                Some(response) if response.status == 200 => {
                    let digest = digest_of(&response.body);
                    if stored.is_some_and(|stored| stored != digest) {
                        self.env.report(format!("{key}: the answer differs from the stored one"));
                    }
                    self.check_repeated(&body, &digest);
                    break (Verdict::Acknowledged(digest), Some(response.body));
                }
                Some(response) => {
                    let code = response.error_code().to_owned();
                    if let Some(stored) = stored {
                        self.env.report(format!("{key}: refused with {code} after it was carried out"));
                        break (Verdict::Acknowledged(stored), None);
                    }
                    break (Verdict::Refused { code, after_unknown: was_unknown }, None);
                }
                None if Instant::now() > limit => break (Verdict::Unsettled, None),
                None => {
                    if !was_unknown {
                        self.env.counts.unknown.add(1);
                    }
                    was_unknown = true;
                    thread::sleep(Duration::from_millis(self.rng.below(30)));
                }
            }
        };
        match &verdict {
            Verdict::Acknowledged(_) => self.env.counts.acknowledged.add(1),
            Verdict::Refused { code, .. } => self.env.count_refusal(code),
            Verdict::Unsettled => {}
        }
        if was_unknown && verdict != Verdict::Unsettled {
            self.env.counts.settled.add(1);
        }
        self.records.push(Record { key, person: self.person.name.clone(), body, verdict });
        answer
    }

    /// Sends some requests once more, although their outcome is known: the answer must be the same.
    fn check_repeated(&mut self, body: &Value, digest: &str) {
        if self.rng.below(30) > 0 {
            return;
        }
        if let Some(response) = self.post(body)
            && (response.status != 200 || digest_of(&response.body) != *digest)
        {
            let Response { status, body: answer } = response;
            self.env.report(format!("{}: repeated, and the answer was {status} {answer}", body["key"]));
        }
    }

    /// Sends a request to one of the servers. `None` if its outcome is unknown.
    fn post(&mut self, body: &Value) -> Option<Response> {
        let port = self.env.any_port(&mut self.rng);
        let response = Connection::open(port, &self.person.token, TIMEOUT)
            .and_then(|mut connection| connection.run(body))
            .ok()?;
        (response.status < 500).then_some(response)
    }

    /// Asks for the stored answer of a request. Returns its digest.
    fn ask(&mut self, key: &str) -> Option<String> {
        let port = self.env.any_port(&mut self.rng);
        let response = Connection::open(port, &self.person.token, TIMEOUT)
            .and_then(|mut connection| connection.get(&format!("request/{key}")))
            .ok()?;
        (response.body["committed"] == true).then(|| digest_of(&response.body["answer"]))
    }
}
