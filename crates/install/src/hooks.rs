//! Our hooks and MCP server in the JSON settings of a client: adds them once, updates them in place, removes them.

use jsonc_parser::cst::{CstArray, CstNode, CstObject, CstObjectProp};
use serde_json::{Value, json};
use tanmi_platform::{ClientSpec, Hook, HookFormat};

use crate::command::{is_tanmi, parse_tanmi_command, quote};
use crate::json::{Json, is_empty_container, set_keys, to_input};
use crate::{Refusal, TanmiCommand};

pub const SERVERS: &str = "mcpServers";
pub const NAME: &str = "tanmi";

fn command_key(hook_format: HookFormat) -> &'static str {
    match hook_format {
        HookFormat::Groups | HookFormat::Flat => "command",
        HookFormat::Shells => "bash",
    }
}

/// One of our hook handlers in the file.
struct HookHandler {
    object: CstObject,
    /// The group that contains it.
    group: Option<CstObject>,
}

fn handlers(array: &CstArray, hook_format: HookFormat) -> Vec<HookHandler> {
    let is_ours = |object: &CstObject| {
        command_of(object, hook_format).is_some_and(|text| parse_tanmi_command(&text).is_some())
    };
    let mut found = Vec::new();
    for element in array.elements() {
        let Some(object) = element.as_object() else { continue };
        if hook_format != HookFormat::Groups {
            found.extend(Some(object).filter(is_ours).map(|object| HookHandler { object, group: None }));
            continue;
        }
        for member in members(&object).iter().filter_map(CstNode::as_object).filter(&is_ours) {
            found.push(HookHandler { object: member, group: Some(object.clone()) });
        }
    }
    found
}

fn members(group: &CstObject) -> Vec<CstNode> {
    group.array_value("hooks").map(|hooks| hooks.elements()).unwrap_or_default()
}

fn command_of(object: &CstObject, hook_format: HookFormat) -> Option<String> {
    object.get(command_key(hook_format))?.value()?.as_string_lit()?.decoded_value().ok()
}

/// Returns the shell command of a hook.
fn hook_command(client: &ClientSpec, program: &str, hook: &Hook) -> String {
    format!("{} hook {} {}", quote(program), client.id(), hook.event)
}

/// Returns the JSON of a hook in the format of a client.
pub fn hook_json(client: &ClientSpec, command: &str, hook: &Hook) -> Value {
    let recipe = &client.recipe;
    let timeout = hook.seconds * recipe.timeout_units_per_second;
    let mut handler = match recipe.hook_format {
        HookFormat::Groups => json!({"type": "command", "command": command, "timeout": timeout}),
        HookFormat::Flat => json!({"command": command, "timeout": timeout}),
        HookFormat::Shells => {
            json!({"type": "command", "bash": command, "powershell": powershell_command(command), "timeoutSec": timeout})
        }
    };
    for (key, value) in recipe.hook_keys {
        handler[*key] = (*value).into();
    }
    if hook.once {
        handler["loop_limit"] = 1.into();
    }
    if let Some(matcher) = hook.matcher.filter(|_| recipe.hook_format == HookFormat::Flat) {
        handler["matcher"] = matcher.into();
    }
    handler
}

/// Returns the command for PowerShell, which needs `&` before a quoted program.
fn powershell_command(command: &str) -> String {
    if command.starts_with(['\'', '"']) { format!("& {command}") } else { command.to_owned() }
}

/// Adds our hooks. `has_tool_rules` tells whether a custom rule needs to know of tool calls; the hook for them is
/// removed otherwise.
pub fn add(json: &mut Json, client: &ClientSpec, program: &str, has_tool_rules: bool) -> Result<(), Refusal> {
    if client.recipe.hook_format != HookFormat::Groups && json.object(&[])?.get("version").is_none() {
        json.insert(&[], 0, "version", to_input(&json!(1)))?;
    }
    for hook in client.recipe.hooks {
        let Some(hook) = &hook.to_install(has_tool_rules) else {
            let hooks = json.find(&["hooks"]);
            if let Some(property) = hooks.and_then(|hooks| hooks.get(hook.event)) {
                remove_from(property, client, &Value::Null);
            }
            continue;
        };
        let wanted = hook_json(client, &hook_command(client, program, hook), hook);
        let array = json.array(&["hooks", hook.event])?;
        let mut known = handlers(&array, client.recipe.hook_format).into_iter();
        match known.next() {
            None => {
                array.append(to_input(&grouped(client, hook, &wanted)));
            }
            Some(handler) => {
                set_keys(&handler.object, &wanted);
                known.by_ref().for_each(remove_handler);
                if hook.reports_tools && hook.matcher.is_none() {
                    handler.object.get("matcher").into_iter().for_each(|matcher| matcher.remove());
                }
                if let Some(group) = handler.group.filter(|group| members(group).len() == 1) {
                    set_matcher(&group, hook);
                }
            }
        }
    }
    Ok(())
}

fn grouped(client: &ClientSpec, hook: &Hook, handler: &Value) -> Value {
    match (client.recipe.hook_format, hook.matcher) {
        (HookFormat::Groups, Some(matcher)) => json!({"matcher": matcher, "hooks": [handler]}),
        (HookFormat::Groups, None) => json!({"hooks": [handler]}),
        _ => handler.clone(),
    }
}

/// Sets the matcher of a group that contains only our handler. Older versions wrote a matcher that excluded resumed
/// sessions.
fn set_matcher(group: &CstObject, hook: &Hook) {
    match (group.get("matcher"), hook.matcher) {
        (_, Some(matcher)) => set_keys(group, &json!({"matcher": matcher})),
        (Some(property), None) => {
            let value = property.value().and_then(|value| value.to_serde_value());
            if !matches!(value.as_ref().and_then(Value::as_str), Some("" | "*")) {
                property.remove();
            }
        }
        (None, None) => {}
    }
}

/// Removes a handler, and its group if it was the last handler there.
fn remove_handler(handler: HookHandler) {
    match handler.group {
        Some(group) if members(&group).len() == 1 => group.remove(),
        _ => handler.object.remove(),
    }
}

/// Removes our hooks of one event, and its list if it becomes empty and did not exist in `before`. Returns
/// whether there were any.
fn remove_from(property: CstObjectProp, client: &ClientSpec, before: &Value) -> bool {
    let (Some(name), Some(array)) = (property.decoded_name(), property.array_value()) else { return false };
    let found = handlers(&array, client.recipe.hook_format);
    if found.is_empty() {
        return false;
    }
    found.into_iter().for_each(remove_handler);
    if is_empty_container(&array.to_string()) && before["hooks"].get(&name).is_none() {
        property.remove();
    }
    true
}

/// Removes our hooks, and containers that become empty unless they existed in `before`.
pub fn remove(json: &Json, client: &ClientSpec, before: &Value) {
    let Some(hooks) = json.find(&["hooks"]) else { return };
    let mut is_touched = false;
    for property in hooks.properties() {
        is_touched |= remove_from(property, client, before);
    }
    let root = json.find(&[]);
    if is_touched && is_empty_container(&hooks.to_string()) && before.get("hooks").is_none() {
        root.as_ref().and_then(|root| root.get("hooks")).into_iter().for_each(|hooks| hooks.remove());
        // The version describes the format of hooks and is useless without them.
        if client.recipe.hook_format != HookFormat::Groups
            && before.is_object()
            && before.get("version").is_none()
        {
            root.and_then(|root| root.get("version")).into_iter().for_each(|version| version.remove());
        }
    }
}

pub fn add_server(json: &mut Json, client: &ClientSpec, program: &str) -> Result<(), Refusal> {
    let servers = json.object(&[SERVERS])?;
    let wanted = (client.recipe.server)(program);
    let path = [SERVERS, NAME];
    match servers.get(NAME).map(|property| property.object_value()) {
        None => json.insert(&[SERVERS], usize::MAX, NAME, to_input(&wanted)),
        Some(Some(server)) if is_ours(&server) => {
            set_keys(&server, &wanted);
            Ok(())
        }
        Some(_) => Err(Refusal::NameTaken { line: json.line(&path), key: path.join(".") }),
    }
}

fn is_ours(server: &CstObject) -> bool {
    server_program(server.to_serde_value().as_ref()).is_some()
}

/// Returns the program if the server is ours.
pub fn server_program(server: Option<&Value>) -> Option<String> {
    let server = server?;
    let program = server.get("command")?.as_str()?;
    let runs_mcp = server.get("args").and_then(|args| args.get(0)?.as_str()) == Some("mcp");
    (is_tanmi(program) && runs_mcp).then(|| program.to_owned())
}

pub fn remove_server(json: &Json, before: &Value) {
    let Some(servers) = json.find(&[SERVERS]) else { return };
    let server = servers.get(NAME).filter(|server| server.object_value().as_ref().is_some_and(is_ours));
    let Some(server) = server else { return };
    server.remove();
    if is_empty_container(&servers.to_string()) && before.get(SERVERS).is_none() {
        json.find(&[]).and_then(|root| root.get(SERVERS)).into_iter().for_each(|servers| servers.remove());
    }
}

/// Returns our hooks in a file: event, command line and parsed command.
pub fn find_hooks(json: &Json, client: &ClientSpec) -> Vec<(String, String, TanmiCommand)> {
    let Some(hooks) = json.find(&["hooks"]) else { return Vec::new() };
    let mut all = Vec::new();
    for property in hooks.properties() {
        let (Some(event), Some(array)) = (property.decoded_name(), property.array_value()) else { continue };
        for handler in handlers(&array, client.recipe.hook_format) {
            let command = command_of(&handler.object, client.recipe.hook_format).unwrap_or_default();
            all.extend(parse_tanmi_command(&command).map(|parsed| (event.clone(), command.clone(), parsed)));
        }
    }
    all
}

/// Returns whether our hook for all tool calls is installed, without a matcher that limits it to some tools.
pub fn has_tool_hook(json: &Json, client: &ClientSpec) -> bool {
    let hooks = json.find(&["hooks"]);
    let mut wanted = client.recipe.hooks.iter().filter(|hook| hook.reports_tools);
    wanted.any(|hook| {
        let array = hooks.as_ref().and_then(|hooks| hooks.array_value(hook.event));
        let handlers = array.map(|array| handlers(&array, client.recipe.hook_format)).unwrap_or_default();
        handlers.into_iter().any(|handler| {
            let matcher = handler.group.unwrap_or(handler.object).get("matcher");
            let matcher = matcher.and_then(|matcher| matcher.value()?.to_serde_value());
            matches!(matcher.as_ref().map(Value::as_str), None | Some(Some("" | "*")))
        })
    })
}

/// Returns the settings that disable our hooks or server.
pub fn disabling_keys(json: &Json, client: &ClientSpec) -> Vec<String> {
    let value = json.value();
    let at = |path: &[&str]| path.iter().try_fold(&value, |value, key| value.get(key)).cloned();
    let server_switches: [(&[&str], bool); 2] =
        [(&[SERVERS, NAME, "disabled"], true), (&[SERVERS, NAME, "enabled"], false)];
    let hook_switches = client.recipe.off_switches.iter().map(|switch| (switch.path, switch.value));
    hook_switches
        .chain(server_switches)
        .filter(|(path, value)| at(path) == Some(Value::Bool(*value)))
        .map(|(path, value)| format!("{} = {value}", path.join(".")))
        .collect()
}

/// Returns the events whose hook was altered so that it runs for another event or does not run. Keys that a
/// person added to a hook are ignored.
pub fn altered_events(json: &Json, client: &ClientSpec) -> Vec<String> {
    let Some(hooks) = json.find(&["hooks"]) else { return Vec::new() };
    let mut out = Vec::new();
    for hook in client.recipe.hooks {
        let Some(array) = hooks.array_value(hook.event) else { continue };
        for handler in handlers(&array, client.recipe.hook_format) {
            let command = command_of(&handler.object, client.recipe.hook_format).unwrap_or_default();
            let program = parse_tanmi_command(&command).map(|parsed| parsed.program).unwrap_or_default();
            let wanted = hook_command(client, &program, hook);
            // The event name is optional if the payload contains it.
            let is_short = client.recipe.hook_format != HookFormat::Shells
                && wanted == format!("{command} {}", hook.event);
            let now = handler.object.to_serde_value().unwrap_or_default();
            let is_same = |key: &str, wanted: &Value| now.get(key).is_none_or(|now| now == wanted);
            let full = hook_json(client, &wanted, hook);
            let runs =
                ["type", "matcher"].iter().all(|key| full.get(key).is_none_or(|wanted| is_same(key, wanted)));
            let has_time = ["timeout", "timeoutSec"]
                .iter()
                .all(|key| now.get(key).is_none_or(|time| time.as_f64() > Some(0.0)));
            if !(command == wanted || is_short) || !runs || !has_time {
                out.push(hook.event.to_owned());
            }
        }
    }
    out
}
