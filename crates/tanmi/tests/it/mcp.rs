//! The MCP server over pipes. This module has the client; submodules test the protocol and the tools.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::env::TestEnv;

mod clients;
mod protocol;
mod tools;

/// An MCP client that exchanges one message per line.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

impl Client {
    pub fn start(env: &TestEnv) -> Client {
        Client::spawn(env.command(&["mcp"]))
    }

    fn spawn(mut command: Command) -> Client {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Client { child, stdin, stdout, next_id: 0 }
    }

    /// Starts a server and initializes the connection.
    pub fn connect(env: &TestEnv) -> Client {
        let mut client = Client::start(env);
        client.initialize("2025-11-25");
        client
    }

    /// As [`Client::connect`], with the server in another folder.
    pub fn connect_in(env: &TestEnv, dir: &Path) -> Client {
        let mut command = env.command(&["mcp"]);
        command.current_dir(dir);
        let mut client = Client::spawn(command);
        client.initialize("2025-11-25");
        client
    }

    /// As [`Client::connect`], with the name that a client sends.
    fn connect_as(env: &TestEnv, name: &str) -> Client {
        let mut client = Client::start(env);
        client.initialize_as(name, "2025-11-25");
        client
    }

    /// Initializes the connection and returns the answer of the server.
    pub fn initialize(&mut self, version: &str) -> Value {
        self.initialize_as("test", version)
    }

    fn initialize_as(&mut self, name: &str, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": name, "version": "1"},
        });
        let answer = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request without waiting for the response, and returns its id.
    fn post(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub fn list_tools(&mut self) -> Value {
        self.request("tools/list", json!({}))["result"]["tools"].clone()
    }

    fn post_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.post("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns its result, success or error.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed and returns its structured content.
    pub fn expect_ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        // Old clients read the text, new ones the structured content; both have the same data.
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail with a tool error, not a protocol error, and returns the error.
    pub fn expect_error(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let error = result["structuredContent"]["error"].clone();
        assert!(result["content"][0]["text"].as_str().unwrap().starts_with(error["code"].as_str().unwrap()));
        error
    }

    /// Closes the input and waits for a successful exit.
    pub fn finish(mut self) {
        self.stdin.take();
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
