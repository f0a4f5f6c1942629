//! A simulated agent: sends hook payloads to `tanmi` and returns the injected text.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use tanmi_platform::CLIENTS;

use crate::env::TestEnv;

#[path = "../../../platform/src/tests/schema.rs"]
pub mod schema;

/// Runs `tanmi` with a payload on stdin, as a client does. Asserts that it succeeds and writes nothing to stderr.
pub fn run_with_payload(env: &TestEnv, args: &[&str], payload: &[u8]) -> Output {
    let mut command = env.command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(payload);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "a hook must always succeed");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Checks a response against the schema of the client that sent the payload. `event` is its name, for
/// payloads without one.
pub fn check_response(platform: &str, event: Option<&str>, payload: &[u8], response: &str) {
    let sender = CLIENTS.find_platform(platform).and_then(|platform| CLIENTS.read(platform, event, payload));
    let sender = sender.unwrap().platform.id;
    let payload: Value = serde_json::from_slice(payload).unwrap();
    let name = payload["hook_event_name"].as_str().or(event).unwrap();
    // A name that belongs to the hooks of another client may have no schema.
    if schema::find(sender, name, "in").is_some() {
        schema::check_response(sender, name, response.trim_end()).unwrap();
    }
}

/// Runs a hook and returns the injected text, or an empty string if there is none.
pub fn hook(env: &TestEnv, platform: &str, payload: &[u8]) -> String {
    let output = run_with_payload(env, &["hook", platform], payload);
    if output.stdout.is_empty() {
        return String::new();
    }
    check_response(platform, None, payload, &String::from_utf8_lossy(&output.stdout));
    // Claude Code takes plain text only for a compaction.
    let Ok(answer) = serde_json::from_slice::<Value>(&output.stdout) else {
        assert!(String::from_utf8_lossy(payload).contains("PreCompact"), "not JSON");
        return String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
    };
    let context = &answer["hookSpecificOutput"]["additionalContext"];
    let others = ["additional_context", "additionalContext", "user_message", "followup_message", "reason"]
        .map(|name| &answer[name]);
    std::iter::once(context).chain(others).find_map(|field| field.as_str()).unwrap().to_owned()
}

/// One session of a simulated agent.
pub struct Agent<'a> {
    pub env: &'a TestEnv,
    pub platform: &'static str,
    pub session: String,
}

impl<'a> Agent<'a> {
    pub fn claude(env: &'a TestEnv, session: &str) -> Agent<'a> {
        Agent { env, platform: "claude-code", session: session.into() }
    }

    /// Sends an event under the name that the platform uses, with additional payload fields.
    pub fn send(&self, claude: &str, cursor: &str, extra: Value) -> String {
        let mut payload = match self.platform {
            "cursor" => json!({"conversation_id": self.session, "hook_event_name": cursor,
                "workspace_roots": [self.env.project], "cursor_version": "3"}),
            _ => json!({"session_id": self.session, "hook_event_name": claude, "cwd": self.env.project}),
        };
        payload.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        hook(self.env, self.platform, payload.to_string().as_bytes())
    }

    pub fn start(&self, source: &str) -> String {
        self.send("SessionStart", "sessionStart", json!({"source": source}))
    }

    pub fn prompt(&self, text: &str) -> String {
        self.send("UserPromptSubmit", "beforeSubmitPrompt", json!({"prompt": text}))
    }
}
