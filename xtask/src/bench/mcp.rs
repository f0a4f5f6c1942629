//! The MCP server: from a cold start to the list of tools, calls on one connection, memory.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::Options;
use super::measure::{medians, process, ratio, run as run_once};
use super::others;
use super::report::Report;
use super::workspace::{Growing, Shape};

struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    fn start(tanmi: &Path, project: &Path, home: &Path) -> Client {
        let mut command = process(tanmi, &["mcp"], project, home);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut client = Client { child, stdin, stdout, id: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
        });
        client.request("initialize", hello);
        writeln!(client.stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)
            .expect("a line");
        client
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        writeln!(self.stdin, "{message}").expect("a line");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }

    fn call(&mut self, tool: &str, arguments: Value) {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }

    /// The peak of resident memory so far, in kilobytes.
    fn peak_kb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
    }

    fn stop(mut self) {
        drop(self.stdin);
        self.child.wait().expect("it ends");
    }
}

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    let home = scratch.join("home");
    for size in [10, 10_000] {
        let project = scratch.join(format!("mcp-{size}"));
        let mut growing = Growing::new(&project, Shape::Star);
        while growing.len() < size {
            growing.create();
        }
        let mut nothing = process(Path::new("/bin/true"), &[], &project, &home);
        let mut cold = || {
            let mut client = Client::start(tanmi, &project, &home);
            client.request("tools/list", json!({}));
            // The end of the process is not part of the answer, but it must not overlap with the next start.
            client.stop();
        };
        let times = medians(options.runs, &mut [&mut cold, &mut || run_once(&mut nothing)]);
        let what = format!("mcp {size}: cold start to the tools/list answer, and end");
        report.add(format!("{what} / true"), ratio(times[0], times[1]), "×", Some(5.0));
        if size == 10 {
            others::compare(&what, cold, &project, &home, options.runs, report);
        }

        let mut client = Client::start(tanmi, &project, &home);
        let hash = growing.rules_hash();
        let create = json!({
            "parentId": "root", "type": "execution", "title": "t", "requirement": "r", "rulesHash": hash,
        });
        for (tool, arguments) in [
            ("node_get", json!({"nodeId": "root"})),
            ("context_get", json!({})),
            ("node_list", json!({})),
            ("node_create", create),
        ] {
            let calls = options.runs.max(200);
            let start = Instant::now();
            for _ in 0..calls {
                client.call(tool, arguments.clone());
            }
            let rate = calls as f64 / start.elapsed().as_secs_f64();
            report.add(format!("mcp {size}: {tool}, one after the other"), rate, "per second", None);
        }
        report.add(format!("mcp {size}: peak memory"), client.peak_kb() / 1024.0, "MB", Some(40.0));
        client.stop();
    }
}
