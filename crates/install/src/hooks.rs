//! Our hooks and our server inside an agent's JSON: put in once, brought up to date in place, taken out again.

use jsonc_parser::cst::{CstArray, CstNode, CstObject};
use serde_json::{Value, json};

use crate::agent::{Agent, Hook, HookFormat};
use crate::command::{is_tanmi, parse_tanmi_command};
use crate::json::{Json, input, is_bare, set_keys};
use crate::{Refusal, TanmiCommand};

pub const SERVERS: &str = "mcpServers";
pub const NAME: &str = "tanmi";

fn command_key(shape: HookFormat) -> &'static str {
    match shape {
        HookFormat::Groups | HookFormat::Flat => "command",
        HookFormat::Shells => "bash",
    }
}

/// A handler of ours, in the order of the file.
struct HookHandler {
    object: CstObject,
    /// The group around it.
    group: Option<CstObject>,
}

fn handlers(array: &CstArray, shape: HookFormat) -> Vec<HookHandler> {
    let is_ours = |object: &CstObject| {
        command_of(object, shape).is_some_and(|text| parse_tanmi_command(&text).is_some())
    };
    let mut found = Vec::new();
    for element in array.elements() {
        let Some(object) = element.as_object() else { continue };
        if shape != HookFormat::Groups {
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

fn command_of(object: &CstObject, shape: HookFormat) -> Option<String> {
    object.get(command_key(shape))?.value()?.as_string_lit()?.decoded_value().ok()
}

pub fn put(json: &Json, agent: &Agent, program: &str) -> Result<(), Refusal> {
    if agent.shape != HookFormat::Groups {
        let root = json.object(&[])?;
        if root.get("version").is_none() {
            root.insert(0, "version", input(&json!(1)));
        }
    }
    for hook in agent.hooks {
        let wanted = agent.handler(&agent.command(program, hook), hook);
        let array = json.array(&["hooks", hook.event])?;
        let mut known = handlers(&array, agent.shape).into_iter();
        match known.next() {
            None => {
                array.append(input(&grouped(agent, hook, &wanted)));
            }
            Some(handler) => {
                set_keys(&handler.object, &wanted);
                known.by_ref().for_each(take_out);
                if let Some(group) = handler.group.filter(|group| members(group).len() == 1) {
                    set_matcher(&group, hook);
                }
            }
        }
    }
    Ok(())
}

fn grouped(agent: &Agent, hook: &Hook, handler: &Value) -> Value {
    match (agent.shape, hook.matcher) {
        (HookFormat::Groups, Some(matcher)) => json!({"matcher": matcher, "hooks": [handler]}),
        (HookFormat::Groups, None) => json!({"hooks": [handler]}),
        _ => handler.clone(),
    }
}

/// A group that is ours alone matches what we want: an older one left out resumed sessions.
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

/// With the last of its handlers a group goes too.
fn take_out(handler: HookHandler) {
    match handler.group {
        Some(group) if members(&group).len() == 1 => group.remove(),
        _ => handler.object.remove(),
    }
}

/// Takes our hooks out, and what is empty without them unless it was there `before` us.
pub fn take(json: &Json, agent: &Agent, before: &Value) {
    let Some(hooks) = json.find(&["hooks"]) else { return };
    let mut is_touched = false;
    for property in hooks.properties() {
        let (Some(name), Some(array)) = (property.decoded_name(), property.array_value()) else { continue };
        let found = handlers(&array, agent.shape);
        if found.is_empty() {
            continue;
        }
        is_touched = true;
        found.into_iter().for_each(take_out);
        if is_bare(&array.to_string()) && before["hooks"].get(&name).is_none() {
            property.remove();
        }
    }
    let root = json.find(&[]);
    if is_touched && is_bare(&hooks.to_string()) && before.get("hooks").is_none() {
        root.as_ref().and_then(|root| root.get("hooks")).into_iter().for_each(|hooks| hooks.remove());
        // A number for a list of hooks says nothing without one.
        if agent.shape != HookFormat::Groups && before.is_object() && before.get("version").is_none() {
            root.and_then(|root| root.get("version")).into_iter().for_each(|version| version.remove());
        }
    }
}

pub fn put_server(json: &Json, agent: &Agent, program: &str) -> Result<(), Refusal> {
    let servers = json.object(&[SERVERS])?;
    let wanted = agent.server(program);
    let path = [SERVERS, NAME];
    match servers.get(NAME).map(|property| property.object_value()) {
        None => {
            servers.append(NAME, input(&wanted));
        }
        Some(Some(server)) if is_ours(&server) => set_keys(&server, &wanted),
        Some(_) => return Err(Refusal::NameTaken { line: json.line(&path), key: path.join(".") }),
    }
    Ok(())
}

fn is_ours(server: &CstObject) -> bool {
    server_program(server.to_serde_value().as_ref()).is_some()
}

/// The program of a server that is ours.
pub fn server_program(server: Option<&Value>) -> Option<String> {
    let server = server?;
    let program = server.get("command")?.as_str()?;
    let runs_mcp = server.get("args").and_then(|args| args.get(0)?.as_str()) == Some("mcp");
    (is_tanmi(program) && runs_mcp).then(|| program.to_owned())
}

pub fn take_server(json: &Json, before: &Value) {
    let Some(servers) = json.find(&[SERVERS]) else { return };
    let server = servers.get(NAME).filter(|server| server.object_value().as_ref().is_some_and(is_ours));
    let Some(server) = server else { return };
    server.remove();
    if is_bare(&servers.to_string()) && before.get(SERVERS).is_none() {
        json.find(&[]).and_then(|root| root.get(SERVERS)).into_iter().for_each(|servers| servers.remove());
    }
}

/// Our hooks in a file as it is: event, command line and what it runs.
pub fn found(json: &Json, agent: &Agent) -> Vec<(String, String, TanmiCommand)> {
    let Some(hooks) = json.find(&["hooks"]) else { return Vec::new() };
    let mut all = Vec::new();
    for property in hooks.properties() {
        let (Some(event), Some(array)) = (property.decoded_name(), property.array_value()) else { continue };
        for handler in handlers(&array, agent.shape) {
            let command = command_of(&handler.object, agent.shape).unwrap_or_default();
            all.extend(parse_tanmi_command(&command).map(|parsed| (event.clone(), command.clone(), parsed)));
        }
    }
    all
}

/// Keys that switch us off.
pub fn switched_off(json: &Json) -> Vec<String> {
    let value = json.value();
    let at = |path: &[&str]| path.iter().try_fold(&value, |value, key| value.get(key)).cloned();
    let mut off = Vec::new();
    for (path, is_off) in [
        (&["disableAllHooks"][..], true),
        (&["hooksConfig", "enabled"], false),
        (&[SERVERS, NAME, "disabled"], true),
        (&[SERVERS, NAME, "enabled"], false),
    ] {
        if at(path) == Some(Value::Bool(is_off)) {
            off.push(format!("{} = {is_off}", path.join(".")));
        }
    }
    off
}

/// Hooks of ours that are no longer what we wrote: their events. What was added to them is a person's business, what makes
/// them run for another event, never, or not at all is ours.
pub fn altered(json: &Json, agent: &Agent) -> Vec<String> {
    let Some(hooks) = json.find(&["hooks"]) else { return Vec::new() };
    let mut out = Vec::new();
    for hook in agent.hooks {
        let Some(array) = hooks.array_value(hook.event) else { continue };
        for handler in handlers(&array, agent.shape) {
            let command = command_of(&handler.object, agent.shape).unwrap_or_default();
            let program = parse_tanmi_command(&command).map(|parsed| parsed.program).unwrap_or_default();
            let wanted = agent.command(&program, hook);
            // One without the name of its event is fine where the payload has it.
            let is_short = agent.shape != HookFormat::Shells && wanted == format!("{command} {}", hook.event);
            let now = handler.object.to_serde_value().unwrap_or_default();
            let is_same = |key: &str, wanted: &Value| now.get(key).is_none_or(|now| now == wanted);
            let full = agent.handler(&wanted, hook);
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
