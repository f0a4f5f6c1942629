//! `tanmi reference`: every command, tool, request, setting and variable as one Markdown page, made from the very tables that the
//! program runs on. None of them is named here.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, CommandFactory};
use serde_json::Value;
use tanmi_app::config::SETTINGS;
use tanmi_install::agent::AGENTS;
use tanmi_server::tools::{TOOLS, schema};

use super::Result;
use crate::cli::Cli;
use crate::{env, out};

pub fn run() -> Result {
    out::raw(page().as_bytes());
    Ok(())
}

fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut out = String::from(
        "# Reference\n\nWritten by `cargo xtask reference` from the tables of the program itself; a test fails when it is \
         out of date.\n\n[Commands](#commands) · [Tools](#tools) · [HTTP](#http) · [Settings](#settings) · \
         [Environment](#environment)\n\n## Commands\n\nEvery command takes these too:\n",
    );
    arguments(
        &mut out,
        root.get_arguments().filter(|argument| argument.is_global_set() || is_help(argument)),
    );
    for command in root.get_subcommands() {
        describe(&mut out, command);
    }
    tools(&mut out);
    requests(&mut out);
    settings(&mut out);
    variables(&mut out);
    out
}

fn describe(out: &mut String, command: &clap::Command) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(out, "\n### {name}\n\n{}.\n", about.trim_end_matches('.'));
    if command.has_subcommands() {
        for below in command.get_subcommands() {
            describe(out, below);
        }
        return;
    }
    let usage = command.clone().render_usage().to_string();
    let words: Vec<&str> = usage.trim_start_matches("Usage:").split_whitespace().collect();
    let _ = write!(out, "\n`{}`\n", words.join(" "));
    // Those that every command has are said once.
    let own = |argument: &&Arg| !argument.is_hide_set() && !argument.is_global_set() && !is_help(argument);
    arguments(out, command.get_arguments().filter(own));
}

fn is_help(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong)
}

fn arguments<'a>(out: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let row = |argument: &Arg| {
        let takes_value = argument.get_action().takes_values();
        let mut name: Vec<String> = Vec::new();
        name.extend(argument.get_short().map(|short| format!("-{short}")));
        name.extend(argument.get_long().map(|long| format!("--{long}")));
        let mut name = name.join(", ");
        if takes_value {
            let values: Vec<&str> =
                argument.get_value_names().into_iter().flatten().map(AsRef::as_ref).collect();
            let more = if matches!(argument.get_action(), ArgAction::Append) { "…" } else { "" };
            let _ = write!(name, " {}{more}", values.join(" "));
        }
        let mut notes: Vec<String> = Vec::new();
        if argument.is_required_set() {
            notes.push(String::from("required"));
        }
        notes.extend(argument.get_help().map(ToString::to_string));
        let words = argument.get_possible_values();
        if takes_value && !words.is_empty() {
            notes.push(words.iter().map(|word| code(word.get_name())).collect::<Vec<_>>().join(", "));
        }
        let default: Vec<String> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        let default = default.join(",");
        if takes_value && !default.is_empty() {
            notes.push(format!("default {}", code(&default)));
        }
        (code(name.trim()), notes)
    };
    list(out, arguments.map(row));
}

/// With the schemas that a client is shown.
fn tools(out: &mut String) {
    let _ = write!(out, "\n## Tools\n\nThe {} tools of `tanmi mcp`.\n", TOOLS.len());
    for spec in TOOLS.iter().map(|tool| &tool.spec) {
        let reads = if spec.reads { " Reads only." } else { "" };
        let _ = write!(out, "\n### {}\n\n{}{reads}\n", spec.name, spec.about);
        let schema = Value::Object(schema(spec.params.iter()));
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = |(name, property): (&String, &Value)| {
            let mut notes = Vec::new();
            if required.iter().any(|wanted| wanted == name.as_str()) {
                notes.push(String::from("required"));
            }
            notes.push(shape(property));
            notes.extend(property["description"].as_str().map(str::to_owned));
            (code(name), notes)
        };
        list(out, schema["properties"].as_object().into_iter().flatten().map(row));
    }
}

/// What a JSON Schema says in a few words.
fn shape(property: &Value) -> String {
    let words =
        |words: &[Value]| words.iter().filter_map(Value::as_str).map(code).collect::<Vec<_>>().join(", ");
    if let Some(allowed) = property["enum"].as_array() {
        return words(allowed);
    }
    let kind = property["type"].as_str().unwrap_or("any");
    match kind {
        "array" => format!("list of {}", shape(&property["items"])),
        "object" => {
            let keys: Vec<String> =
                property["properties"].as_object().into_iter().flatten().map(|(key, _)| code(key)).collect();
            format!("objects of {}", keys.join(", "))
        }
        _ => match (&property["minimum"], &property["maximum"], &property["maxLength"]) {
            (Value::Number(min), Value::Number(max), _) => format!("{kind} from {min} to {max}"),
            (_, _, Value::Number(max)) => format!("{kind}, at most {max} characters"),
            _ => kind.to_owned(),
        },
    }
}

/// From the description that the server gives of itself.
fn requests(out: &mut String) {
    out.push_str("\n## HTTP\n\nWhat `tanmi serve` answers. Their parameters are in the OpenAPI description, which is one of them.\n");
    let described = tanmi_server::http::openapi::describe();
    let mut rows = Vec::new();
    for (path, methods) in described["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let about = operation["summary"].as_str().unwrap_or_default();
            rows.push([code(&format!("{} {path}", method.to_uppercase())), about.to_owned()]);
        }
    }
    table(out, ["request", ""], rows);
}

fn settings(out: &mut String) {
    out.push_str(
        "\n## Settings\n\nKeys of `config.json` in the home store, and of `.tanmi/config.json` in a project, which may only \
         switch things off.\n",
    );
    let rows =
        SETTINGS.iter().map(|key| [code(key.name), code(key.default), key.kind.allowed(), key.en.to_owned()]);
    table(out, ["key", "default", "values", ""], rows.collect());
}

fn variables(out: &mut String) {
    out.push_str("\n## Environment\n");
    let names = |names: &[&str]| names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ");
    let ours = env::VARIABLES.iter().map(|variable| [names(variable.names), variable.about.to_owned()]);
    let theirs = AGENTS.iter().filter_map(|agent| {
        let about = format!("the folder of {}'s files instead of `~/{}`", agent.name, agent.folder);
        Some([code(agent.folder_variable?), about])
    });
    table(out, ["variable", ""], ours.chain(theirs).collect());
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn list(out: &mut String, items: impl Iterator<Item = (String, Vec<String>)>) {
    for (n, (name, notes)) in items.enumerate() {
        let before = if n == 0 { "\n" } else { "" };
        let colon = if notes.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "{before}- {name}{colon}{}", notes.join(" · ").replace('\n', " "));
    }
}

fn table<const N: usize>(out: &mut String, head: [&str; N], rows: Vec<[String; N]>) {
    let _ = write!(out, "\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        // A bar would end the cell, even in code.
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}
