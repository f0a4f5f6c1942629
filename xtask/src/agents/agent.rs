//! One agent: a session of a machine, with an MCP process that it calls and a hook at each prompt.

use std::io::Write as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::Client;
use crate::rng::Rng;
use crate::team::check::{Kind, Write};
use crate::team::machine::Machine;

/// A tool call or a hook.
pub struct Call {
    pub name: &'static str,
    pub time: Duration,
    pub error: Option<CallError>,
}

pub struct CallError {
    pub code: String,
    pub message: String,
}

pub struct Agent<'a> {
    machine: &'a Machine,
    client: Client,
    rng: Rng,
    /// The average pause before a call, in milliseconds.
    think: u64,
    calls: Vec<Call>,
    writes: Vec<Write>,
}

impl<'a> Agent<'a> {
    /// Starts a session that is bound to a workspace.
    pub fn start(machine: &'a Machine, workspace: &str, think: u64, seed: u64) -> Agent<'a> {
        machine.sync().expect("the first synchronisation");
        let client = Client::start(machine.command(&["mcp"]).stderr(Stdio::null()));
        let rng = Rng(seed * 32_452_843 + machine.number as u64 * 131 + 11);
        let mut agent = Agent { machine, client, rng, think, calls: Vec::new(), writes: Vec::new() };
        agent.run_hook("SessionStart");
        agent.call("session_bind", json!({"workspaceId": workspace}));
        agent
    }

    /// Returns the id of the MCP process.
    pub fn id(&self) -> u32 {
        self.client.id()
    }

    /// Ends the MCP process. Returns the calls and the writes.
    pub fn stop(self) -> (Vec<Call>, Vec<Write>) {
        self.client.stop();
        (self.calls, self.writes)
    }

    /// Answers one prompt: takes a node, works on it and completes it. Without one it plans some.
    pub fn take_turn(&mut self) {
        self.run_hook("UserPromptSubmit");
        let next = self.call("node_next", json!({"start": true}));
        let Some(node) = next.and_then(|next| Some(next["started"]["nodeId"].as_str()?.to_owned())) else {
            for _ in 0..3 {
                self.create_node();
            }
            return;
        };
        self.call("context_get", json!({}));
        for _ in 0..1 + self.rng.below(5) {
            self.take_step();
        }
        self.write(
            "node_transition",
            Kind::Conclusion,
            |text| json!({"nodeId": node, "action": "complete", "conclusion": text}),
        );
    }

    fn take_step(&mut self) {
        match self.rng.below(16) {
            0..5 => self.write("log_append", Kind::Log, |text| json!({"log": text})),
            5..8 => {
                let query = format!("machine{} decision", self.rng.below(64));
                self.call("memory_search", json!({"query": query, "limit": 5}));
            }
            8..10 => self.write(
                "memory_save",
                Kind::Fact,
                |text| json!({"content": format!("decision {text}"), "type": "B"}),
            ),
            10..12 => self.create_node(),
            12 => {
                self.call(
                    "problem_update",
                    json!({"description": "the build fails", "nextStep": "read its log"}),
                );
                self.call("problem_clear", json!({}));
            }
            13 => drop(self.call("session_status", json!({}))),
            14 => drop(self.call("context_get", json!({}))),
            _ => self.compete(),
        }
    }

    fn create_node(&mut self) {
        self.write("node_create", Kind::Node, |text| {
            json!({"parentId": "root", "type": "execution", "title": text, "requirement": "make it work"})
        });
    }

    /// Tries to start or complete a node that another agent may hold.
    fn compete(&mut self) {
        let Some(page) = self.call("node_list", json!({"status": ["implementing"]})) else { return };
        let nodes = page["nodes"].as_array().cloned().unwrap_or_default();
        let Some(node) = self.rng.pick(&nodes) else { return };
        let id = node["nodeId"].clone();
        if self.rng.below(2) == 0 {
            self.call("node_transition", json!({"nodeId": id, "action": "start"}));
        } else {
            self.write(
                "node_transition",
                Kind::Conclusion,
                |text| json!({"nodeId": id, "action": "complete", "conclusion": text}),
            );
        }
    }

    /// Calls a tool that writes a text that no other write has.
    fn write(&mut self, tool: &'static str, kind: Kind, arguments: impl FnOnce(&str) -> Value) {
        let text = format!("{}-write-{}.", self.machine.name(), self.writes.len());
        let is_acknowledged = self.call(tool, arguments(&text)).is_some();
        self.writes.push(Write { kind, text, is_acknowledged });
    }

    /// Calls a tool after a pause. Returns its result, or `None` after an error.
    fn call(&mut self, tool: &'static str, arguments: Value) -> Option<Value> {
        thread::sleep(Duration::from_millis(self.think / 2 + self.rng.below(self.think + 1)));
        let start = Instant::now();
        let result = self.client.call(tool, arguments);
        let time = start.elapsed();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let to_error =
            |error: &Value| CallError { code: text(&error["code"]), message: text(&error["message"]) };
        self.calls.push(Call { name: tool, time, error: result.as_ref().err().map(to_error) });
        result.ok()
    }

    /// Runs the hook of an event, as the client does.
    fn run_hook(&mut self, event: &'static str) {
        let payload = json!({
            "session_id": format!("session{}", self.machine.number), "hook_event_name": event,
            "cwd": self.machine.checkout(), "source": "startup", "prompt": "go on with the next task",
        });
        let start = Instant::now();
        let mut child =
            self.machine.command(&["hook", "claude-code"]).stdin(Stdio::piped()).spawn().expect("run a hook");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(payload.to_string().as_bytes()).expect("send the payload");
        drop(stdin);
        let output = child.wait_with_output().expect("wait for the hook");
        let is_valid = output.stdout.is_empty() || serde_json::from_slice::<Value>(&output.stdout).is_ok();
        let error = (!output.status.success() || !is_valid)
            .then(|| CallError { code: String::from("HOOK"), message: format!("{output:?}") });
        self.calls.push(Call { name: event, time: start.elapsed(), error });
    }
}
