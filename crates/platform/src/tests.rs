//! Tests with recorded payloads of clients, and with malformed ones.

use tanmi_event::{EventKind, StartSource};

use super::*;

mod contracts;
mod schema;

fn fixture(platform: &str, name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/fixtures/{platform}/{name}.json", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Every recorded payload is either an event or ignored, and gets a response in the format of its client.
#[test]
fn recorded_payloads_match_snapshot() {
    let mut results = Vec::new();
    for platform in CLIENTS.iter().map(|client| client.platform) {
        let dir = format!("{}/fixtures/{}", env!("CARGO_MANIFEST_DIR"), platform.id);
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            let Some(event) = CLIENTS.read(platform, name.split('.').next(), &bytes) else { continue };
            assert!(!event.session.is_empty() && event.payload.cwd.is_some(), "{name}");
            let answer = CLIENTS.write(&event, "a\"b\nc").unwrap_or_else(|| String::from("(nothing)"));
            let start = event.payload.start.map_or(String::new(), |start| format!(" ({})", start.as_str()));
            let agent =
                event.payload.agent_type.as_ref().map_or(String::new(), |agent| format!(" [{agent}]"));
            results.push(format!(
                "{} {name}: {}{start}{agent}\n    {answer}",
                platform.id,
                event.kind.as_str()
            ));
        }
    }
    results.sort();
    insta::assert_snapshot!(results.join("\n"));
}

#[test]
fn read_prompt_not_typed_by_user_is_ignored() {
    assert!(
        CLIENTS
            .read(&CLAUDE_CODE, None, &fixture("claude-code", "UserPromptSubmit.task-notification"))
            .is_none()
    );
    let in_subagent =
        br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"x","agent_id":"a"}"#;
    assert!(CLIENTS.read(&CLAUDE_CODE, None, in_subagent).is_none());
}

/// Cursor also runs the hooks in the settings of Claude Code, with its own payloads.
#[test]
fn read_cursor_payload_from_claude_hook_is_cursor_event() {
    let bytes = fixture("cursor", "beforeSubmitPrompt");
    let (direct, by_claude) =
        (CLIENTS.read(&CURSOR, None, &bytes).unwrap(), CLIENTS.read(&CLAUDE_CODE, None, &bytes).unwrap());
    assert_eq!((by_claude.platform.id, &by_claude.session), ("cursor", &direct.session));
    let renamed =
        br#"{"session_id":"s","cursor_version":"3","hook_event_name":"UserPromptSubmit","prompt":"x"}"#;
    let event = CLIENTS.read(&CLAUDE_CODE, Some("UserPromptSubmit"), renamed).unwrap();
    assert_eq!((event.platform.id, event.kind), ("cursor", EventKind::PromptSubmit));
}

#[test]
fn read_malformed_payload_is_ignored() {
    for bytes in [&b""[..], b"{", b"[]", b"null", b"7", b"{}", b"\xff\xfe", br#"{"session_id":7}"#] {
        for platform in CLIENTS.iter().map(|client| client.platform) {
            assert!(CLIENTS.read(platform, Some("SessionStart"), bytes).is_none());
            assert!(CLIENTS.read(platform, Some("sessionStart"), bytes).is_none());
        }
    }
    for roots in ["null", "\"/x\"", "[]", "[7]", "{}"] {
        let bytes = format!(r#"{{"conversation_id":"c","workspace_roots":{roots}}}"#);
        let event = CLIENTS.read(&CURSOR, Some("sessionStart"), bytes.as_bytes()).unwrap();
        assert_eq!(event.payload.cwd, None, "{roots}");
    }
    let named = CLIENTS.read(&CLAUDE_CODE, Some("SessionStart"), br#"{"session_id":"s"}"#).unwrap();
    assert_eq!((named.kind, named.payload.start), (EventKind::SessionStart, Some(StartSource::Startup)));
}

#[test]
fn read_malformed_field_is_dropped_alone() {
    let prompt =
        |text: &str| CLIENTS.read(&CLAUDE_CODE, Some("UserPromptSubmit"), text.as_bytes()).unwrap().payload;
    let cut = prompt(r#"{"session_id":"s","prompt":"cut \ud83d"}"#);
    assert_eq!(cut.prompt.as_deref(), Some("cut \u{fffd}"));
    assert_eq!(
        prompt(r#"{"session_id":"s","prompt":"\\ud83d \ud83d\ude00 \ude00"}"#).prompt.as_deref(),
        Some("\\ud83d 😀 \u{fffd}")
    );
    let odd = prompt(r#"{"session_id":"s","prompt":["x"],"cwd":7,"prompt_id":"","cwd":"/p"}"#);
    assert_eq!((odd.prompt, odd.cwd.as_deref(), odd.prompt_id), (None, Some("/p"), None));
    let long = format!(r#"{{"session_id":"s","cwd":"{}"}}"#, "/a".repeat(5000));
    assert_eq!(prompt(&long).cwd, None);
    let id = format!(r#"{{"session_id":"{}"}}"#, "s".repeat(600));
    assert!(CLIENTS.read(&CLAUDE_CODE, Some("UserPromptSubmit"), id.as_bytes()).is_none());
}

#[test]
fn write_uses_response_format_of_client() {
    let claude = CLIENTS.read(&CLAUDE_CODE, None, &fixture("claude-code", "UserPromptSubmit")).unwrap();
    assert_eq!(
        CLIENTS.write(&claude, "a\"b").unwrap(),
        concat!(
            r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"#,
            r#""a\"b"}}"#
        )
    );
    let cursor = CLIENTS.read(&CURSOR, None, &fixture("cursor", "beforeSubmitPrompt")).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&CLIENTS.write(&cursor, "x").unwrap()).unwrap();
    assert_eq!((&answer["continue"], answer.as_object().unwrap().len()), (&true.into(), 3));
    assert_eq!(answer["additional_context"], answer["agent_message"]);
    assert_eq!(CLIENTS.write(&cursor, ""), None);
}

/// Copilot also runs the hooks in a project's Claude Code settings, with its own payloads.
#[test]
fn read_copilot_payload_from_claude_hook_is_copilot_event() {
    let event = CLIENTS
        .read(&CLAUDE_CODE, Some("SessionStart"), &fixture("copilot-cli", "SessionStart.new"))
        .unwrap();
    assert_eq!(event.platform.id, "copilot-cli");
    assert!(CLIENTS.write(&event, "x").unwrap().starts_with(r#"{"additionalContext":"#));
}

#[test]
fn read_gemini_prompt_is_without_hook_context() {
    let event = CLIENTS.read(&GEMINI_CLI, None, &fixture("gemini-cli", "BeforeAgent")).unwrap();
    assert_eq!(event.payload.prompt.as_deref(), Some("HELLO-MAIN go"));
}

/// Clients replace the arguments of a tool, so all of them must be returned.
#[test]
fn write_subagent_start_keeps_all_tool_arguments() {
    let gemini = br#"{"session_id":"s","cwd":"/p","hook_event_name":"BeforeTool","tool_name":"invoke_agent","tool_input":{"agent_name":"generalist","prompt":"do it","x":[1]}}"#;
    let event = CLIENTS.read(&GEMINI_CLI, None, gemini).unwrap();
    assert_eq!(
        (event.kind, event.payload.agent_type.as_deref()),
        (EventKind::SubagentStart, Some("generalist"))
    );
    let answer = CLIENTS.write(&event, "x").unwrap();
    schema::check_response("gemini-cli", "BeforeTool", &answer).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let input = &answer["hookSpecificOutput"]["tool_input"];
    assert_eq!((&input["agent_name"], &input["x"][0]), (&"generalist".into(), &1.into()));
    assert_eq!(input["prompt"], "do it\n\nx");
    for tool in [r#""prompt":7"#, r#""x":1"#] {
        let bytes = format!(
            r#"{{"session_id":"s","hook_event_name":"BeforeTool","tool_name":"invoke_agent","tool_input":{{{tool}}}}}"#
        );
        let event = CLIENTS.read(&GEMINI_CLI, None, bytes.as_bytes()).unwrap();
        assert_eq!(CLIENTS.write(&event, "x"), None, "incomplete arguments must not be returned");
    }
}

#[test]
fn mcp_client_names_give_platforms() {
    let platform = |name: &str| CLIENTS.platform_of_mcp_client(name).map(|platform| platform.id);
    for (name, id) in [
        ("claude-code", "claude-code"),
        ("cursor-vscode", "cursor"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini-cli"),
        ("gemini-cli-mcp-client-tanmi", "gemini-cli"),
        ("github-copilot-developer", "copilot-cli"),
    ] {
        assert_eq!(platform(name), Some(id), "{name}");
    }
    assert_eq!((platform("claude-codex"), platform("claude-ai"), platform("")), (None, None, None));
}

/// The platforms that can inject text before a tool call are those whose response has it and whose hook is installed.
#[test]
fn tool_calls_are_reported_where_text_can_be_injected() {
    for client in CLIENTS.iter() {
        let hook = client.recipe.hooks.iter().find(|hook| hook.reports_tools);
        assert_eq!(hook.is_some(), client.platform.can_inject_at_tools(), "{}", client.id());
        let Some(hook) = hook else { continue };
        let tool = br#"{"session_id":"s","sessionId":"s","tool_name":"T","toolName":"T","tool_input":{"a":1},"toolArgs":{"a":1}}"#;
        let event = CLIENTS.read(client.platform, Some(hook.event), tool).unwrap();
        assert_eq!(event.kind, EventKind::PreToolUse, "{}", client.id());
        let payload = &event.payload;
        assert_eq!(
            (payload.tool_name.as_deref(), payload.tool_input.as_deref()),
            (Some("T"), Some(r#"{"a":1}"#))
        );
        schema::check_response(client.id(), hook.event, &CLIENTS.write(&event, "x").unwrap()).unwrap();
    }
    let in_subagent =
        br#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","agent_id":"a"}"#;
    assert!(CLIENTS.read(&CLAUDE_CODE, None, in_subagent).is_none());
}

#[test]
fn hook_for_tools_is_installed_only_for_tool_rules() {
    let hook = Hook { reports_tools: true, ..Hook::new("PreToolUse", 5) };
    assert!(hook.to_install(false).is_none() && hook.to_install(true).is_some());
    let limited = Hook { matcher: Some("Task"), ..hook };
    assert_eq!(limited.to_install(false).unwrap().matcher, Some("Task"));
    assert_eq!(limited.to_install(true).unwrap().matcher, None);
}
