//! The Claude Code plugin: an alternative to `tanmi install`, generated from the same data.
//!
//! It runs the `tanmi` on the search path. Its hooks use an alias of the platform, so that a session with
//! both the plugin and an installation receives each text only once.

use serde_json::{Map, Value, json};

use tanmi_platform::{CLAUDE_CODE, CLIENTS, ClientSpec};

use crate::hooks::hook_json;

/// The alias of the platform.
const ALIAS: &str = "claude";

const COMMAND: &str = r#"---
description: "Show or bind this session's workspace; save and search memory"
argument-hint: "[status | bind NAME | remember TEXT | search TEXT]"
---

Use the tools of the MCP server `tanmi`. The user's request: $ARGUMENTS

- No argument or `status`: call session_status. If the session is bound, report workspace, focused node and progress in three lines. If it is unbound, list the active workspaces and offer to bind one or to create one.
- `bind NAME`: find the workspace by name (workspace_list), bind this session to it (session_bind), then read its context (context_get).
- `remember TEXT`: save the text as one fact (memory_save).
- `search TEXT`: search memory (memory_search) and answer from the results, with dates.
- Any other argument: explain these four uses.
"#;

/// Returns the files of the plugin: path and text.
pub fn files(version: &str) -> Vec<(&'static str, String)> {
    let hooks = CLIENTS.find(&CLAUDE_CODE).map(hooks).unwrap_or_default();
    let about = "Keeps Claude Code on course with planned work, memory and automatically injected context";
    let plugin = json!({"name": "tanmi", "version": version, "description": about});
    let market = json!({
        "name": "tanmi",
        "owner": {"name": "Tanmi"},
        "plugins": [{"name": "tanmi", "source": "./plugin", "description": about}],
    });
    vec![
        (".claude-plugin/marketplace.json", pretty(&market)),
        ("plugin/.claude-plugin/plugin.json", pretty(&plugin)),
        ("plugin/hooks/hooks.json", pretty(&json!({"description": about, "hooks": hooks}))),
        (
            "plugin/.mcp.json",
            pretty(&json!({"mcpServers": {"tanmi": {"command": "tanmi", "args": ["mcp"]}}})),
        ),
        ("plugin/commands/tanmi.md", String::from(COMMAND)),
    ]
}

fn hooks(client: &ClientSpec) -> Value {
    // The files are the same for all users, so they have no hook for custom rules.
    let hooks = client.recipe.hooks.iter().filter_map(|hook| hook.to_install(false));
    let entries = hooks.map(|hook| {
        let command = format!("tanmi hook {ALIAS} {}", hook.event);
        (hook.event.to_owned(), json!([{"hooks": [hook_json(client, &command, &hook)]}]))
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).map(|text| format!("{text}\n")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    /// `cargo xtask plugin` writes the files.
    #[test]
    fn plugin_files_in_repository_are_current() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (path, text) in super::files(env!("CARGO_PKG_VERSION")) {
            let current = std::fs::read_to_string(root.join(path)).unwrap_or_default();
            assert_eq!(current, text, "{path} is out of date: run cargo xtask plugin");
        }
    }
}
