//! The Claude Code plugin, made from the same recipe as an install: the second way in.
//!
//! It runs the `tanmi` on the path. Its hooks name the platform by its other name, so that a session that has both this
//! and an install is told everything once.

use serde_json::{Map, Value, json};

use tanmi_event::CLAUDE_CODE;

use crate::agent::{self, Agent};

/// Another word for the same platform.
const ALIAS: &str = "claude";

const COMMAND: &str = r#"---
description: "Workspaces and memory of this project: status, bind, remember, search"
argument-hint: "[status | bind NAME | remember TEXT | search TEXT]"
---

Work with Tanmi's tools (the MCP server `tanmi`). The request: $ARGUMENTS

- nothing, or `status`: call session_status. Bound: tell workspace, focused node and progress in three lines. Unbound: list the active workspaces and offer to bind one or to create one.
- `bind NAME`: find the workspace by its name (workspace_list), bind it (session_bind), then read it (context_get).
- `remember TEXT`: save it as one fact (memory_save).
- `search TEXT`: search memory (memory_search) and answer from what is found, with dates.
- anything else: say what these four do.
"#;

/// Every file of the plugin: path and text.
pub fn files(version: &str) -> Vec<(&'static str, String)> {
    let hooks = agent::find(&CLAUDE_CODE).map(hooks).unwrap_or_default();
    let about =
        "Keeps Claude Code on course: a tree of planned work, memory, and context that arrives by itself";
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

fn hooks(agent: &Agent) -> Value {
    let entries = agent.hooks.iter().map(|hook| {
        let command = format!("tanmi hook {ALIAS} {}", hook.event);
        (hook.event.to_owned(), json!([{"hooks": [agent.handler(&command, hook)]}]))
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).map(|text| format!("{text}\n")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    /// `cargo xtask plugin` writes them.
    #[test]
    fn the_plugin_in_the_repository_is_this_one() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (path, text) in super::files(env!("CARGO_PKG_VERSION")) {
            let there = std::fs::read_to_string(root.join(path)).unwrap_or_default();
            assert_eq!(there, text, "{path} is out of date: cargo xtask plugin");
        }
    }
}
