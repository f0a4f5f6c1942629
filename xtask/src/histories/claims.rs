//! Many connections to two servers claim one node at the same time, round after round.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tanmi_cluster::Cluster;
use tanmi_workspace::model::{NodeId, NodeType};
use tanmi_workspace::state::Action;

use super::commands;
use crate::team::http::{Connection, Response};
use crate::team::{Program, Server};

const CONNECTIONS: usize = 64;
/// The server makes a request wait while 63 others run.
const TIMEOUT: Duration = Duration::from_secs(60);
const ATTEMPTS: usize = 20;

struct Claims {
    servers: Vec<Server>,
    token: String,
    workspace: String,
    violations: Vec<String>,
}

/// Runs the rounds and returns the violations.
pub fn run(cluster: Cluster, program: &Program, rounds: u64) -> Vec<String> {
    let database = cluster.address();
    let token = program.set_up(&database);
    let servers = (0..2).map(|_| program.serve(&database, 0).expect("start a server")).collect();
    let mut claims = Claims { servers, token, workspace: String::new(), violations: Vec::new() };
    let made =
        claims.send(0, json!({"command": commands::create_workspace("claims"), "operator": "AI"}), "ws");
    claims.workspace = made.body["workspaceId"].as_str().expect("the workspace is created").to_owned();
    let (mut winners, mut takeovers, mut stale) = (0, 0, 0);
    for round in 0..rounds {
        let node = claims.create_node(round);
        let first = claims.claim(round, "first", &node);
        let Some((session, fence)) = claims.winner(round, first) else { continue };
        winners += 1;
        // The holder sleeps past its lease. Its session is alive again when it wakes up, but its claim is lost.
        cluster.sql("UPDATE session SET lease_until = 0").expect("end the leases");
        let second = claims.claim(round, "second", &node);
        let Some((holder, next)) = claims.winner(round, second) else { continue };
        takeovers += 1;
        let late = claims.complete(round, &node, &session, fence);
        if late.status == 200 {
            stale += 1;
            claims.violations.push(format!("round {round}: {session} completed the node of {holder}"));
        } else if late.error_code() != "CLAIM_LOST" {
            claims.violations.push(format!("round {round}: the stale complete got {}", late.body));
        }
        let done = claims.complete(round, &node, &holder, next);
        if done.status != 200 {
            claims.violations.push(format!("round {round}: the holder could not complete: {}", done.body));
        }
    }
    println!(
        "{rounds} rounds, {winners} winners, {stale} stale completes accepted; {CONNECTIONS} connections, {takeovers} takeovers"
    );
    claims.violations
}

impl Claims {
    /// Sends a request to one of the servers until it is not too busy.
    fn send(&self, n: usize, mut body: Value, key: &str) -> Response {
        body["key"] = json!(format!("key-claims-{key}"));
        let port = self.servers[n % self.servers.len()].port;
        let mut connection = Connection::open(port, &self.token, TIMEOUT).expect("connect to a server");
        let mut attempt = 0;
        loop {
            let response = connection.run(&body).expect("the server answers");
            attempt += 1;
            if response.status < 500 || attempt == ATTEMPTS {
                return response;
            }
        }
    }

    fn body(&self, command: &tanmi_workspace::command::Command, session: &str) -> Value {
        json!({"stream": self.workspace, "command": command, "operator": "AI", "session": session})
    }

    fn create_node(&self, round: u64) -> NodeId {
        let command = commands::create_node(&NodeId::root(), NodeType::Execution, &format!("round {round}"));
        let made = self.send(0, self.body(&command, "planner"), &format!("create-{round}"));
        let id = made.body["outcome"]["node"]["id"].as_str().expect("the node is created");
        NodeId::parse(id).expect("an id of the server")
    }

    /// Starts the node from all connections at once, each with a session of its own.
    fn claim(&self, round: u64, name: &str, node: &NodeId) -> Vec<(String, Response)> {
        let command = commands::transition(node, Action::Start, false);
        thread::scope(|scope| {
            let claim = |n: usize| {
                let command = &command;
                scope.spawn(move || {
                    let session = format!("{name}-{round}-{n}");
                    let response = self.send(n, self.body(command, &session), &session);
                    (session, response)
                })
            };
            let running: Vec<_> = (0..CONNECTIONS).map(claim).collect();
            running.into_iter().map(|claim| claim.join().expect("a claim is answered")).collect()
        })
    }

    /// Returns the session that got the node, and the number of its claim, if there is exactly one.
    fn winner(&mut self, round: u64, results: Vec<(String, Response)>) -> Option<(String, i64)> {
        let mut winners = Vec::new();
        for (session, response) in results {
            match response.status {
                200 => winners.push((session, response.body["fence"].as_i64().unwrap_or_default())),
                _ if response.error_code() == "NODE_TAKEN" => {}
                _ => self.violations.push(format!("round {round}: {session} got {}", response.body)),
            }
        }
        match winners.len() {
            1 => winners.pop(),
            count => {
                self.violations.push(format!("round {round}: {count} winners: {winners:?}"));
                None
            }
        }
    }

    fn complete(&self, round: u64, node: &NodeId, session: &str, fence: i64) -> Response {
        let command = commands::transition(node, Action::Complete, false);
        let mut body = self.body(&command, session);
        body["fence"] = json!(fence);
        self.send(1, body, &format!("complete-{round}-{session}"))
    }
}
