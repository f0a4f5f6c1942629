//! A client of `tanmi mcp`, over its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    request: u64,
}

impl Client {
    /// Starts the server and initializes the connection.
    pub fn start(command: &mut Command) -> Client {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start the server");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut client = Client { child, stdin, stdout, request: 0 };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
        });
        client.request("initialize", params);
        writeln!(client.stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)
            .expect("send a notification");
        client
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.request += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.request, "method": method, "params": params});
        writeln!(self.stdin, "{message}").expect("send a request");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("read the response");
        serde_json::from_str(&line).expect("the response is JSON")
    }

    /// Calls a tool. Returns its result, or its error with a code and a message.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let response = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &response["result"];
        match result["isError"] == false {
            true => Ok(result["structuredContent"].clone()),
            false => Err(result["structuredContent"]["error"].clone()),
        }
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the connection and waits until the process exits.
    pub fn stop(mut self) {
        drop(self.stdin);
        self.child.wait().expect("the server exits");
    }
}
