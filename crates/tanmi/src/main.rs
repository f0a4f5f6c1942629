//! The `tanmi` program: reads what was typed, calls a use case, prints the answer.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

mod cli;
mod commands;
mod env;
mod hook;
mod out;
mod show;

fn main() -> ExitCode {
    // Hooks first: they run on every prompt of every agent, and need none of what follows.
    if let Some(code) = hook::run(std::env::args_os()) {
        return code;
    }
    if let Some(code) = hook::status_line(std::env::args_os()) {
        return code;
    }
    match cli::Cli::try_parse() {
        Ok(cli) => commands::run(cli),
        Err(error) => usage(&error),
    }
}

/// Help for people; for a program that asked for JSON, what is wrong as JSON.
fn usage(error: &clap::Error) -> ExitCode {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !is_help && std::env::args_os().any(|argument| argument == "--json") {
        out::json_error("USAGE", error.to_string().trim());
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
