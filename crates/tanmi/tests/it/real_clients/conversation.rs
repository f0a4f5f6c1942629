//! A process of Claude Code that stays open between prompts, as in a terminal.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::json;

use super::Agent;

/// A running client. It is killed with its children if it is dropped.
pub struct Conversation {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Conversation {
    /// Starts the client in the session of the agent, which is new or resumed.
    pub fn start(agent: &Agent, resumes: bool) -> Conversation {
        let mut command = agent.env.command_in(agent.program.to_str().unwrap(), &agent.env.project);
        command.env_remove("TANMI_NOW").env("ANTHROPIC_API_KEY", "none").env("IS_SANDBOX", "1");
        command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", agent.model.port));
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        let session = agent.session.as_ref().unwrap();
        command.args(["-p", "--dangerously-skip-permissions", "--verbose"]);
        command.args([if resumes { "--resume" } else { "--session-id" }, session]);
        command.args(["--input-format", "stream-json", "--output-format", "stream-json"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Conversation { child, stdin, lines }
    }

    /// Sends a prompt and returns what the client prints until the end of the turn.
    pub fn say(&mut self, prompt: &str) -> String {
        let content = json!([{"type": "text", "text": prompt}]);
        let message = json!({"type": "user", "message": {"role": "user", "content": content}});
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
        let mut out = String::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            out.push_str(&line);
            out.push('\n');
            if line.contains("\"type\":\"result\"") {
                break;
            }
        }
        out
    }

    /// Ends the client as its user does.
    pub fn finish(mut self) {
        drop(self.stdin.take());
        self.lines.by_ref().for_each(drop);
        assert!(self.child.wait().unwrap().success());
    }

    /// Kills the client and its children, the MCP server among them, as a crash of the machine does. Returns
    /// their number.
    pub fn kill(&mut self) -> usize {
        let mut pids = vec![self.child.id()];
        let mut at = 0;
        while let Some(pid) = pids.get(at).copied() {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            pids.extend(children.unwrap_or_default().split_whitespace().flat_map(str::parse::<u32>));
            at += 1;
        }
        for pid in &pids {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        let _ = self.child.wait();
        pids.len()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}
