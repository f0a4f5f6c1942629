//! The `tanmi` program: parses arguments, runs a use case, prints the result.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;

mod cli;
mod commands;
mod env;
mod hook;
mod out;
mod show;

fn main() -> ExitCode {
    #[cfg(unix)]
    survive_file_size_limit();
    // Hooks first: they run on every prompt of every agent, and need nothing of what follows.
    if let Some(code) = hook::run(std::env::args_os()) {
        return code;
    }
    if let Some(code) = hook::status_line(std::env::args_os()) {
        return code;
    }
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if args.len() == 1 && env::is_in_project() {
        args.push(OsString::from("status"));
    }
    match cli::check_json(cli::parse(&args), &args) {
        Ok(cli) => commands::run(cli),
        Err(error) => usage(error, &args),
    }
}

/// Blocks the signal that ends a process when a file reaches the limit of `ulimit -f`. The write then fails
/// with an error, which is reported like a full disk.
#[cfg(unix)]
fn survive_file_size_limit() {
    use nix::sys::signal::{SigSet, Signal};
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
}

/// Prints help, the version or a usage error in the user's language; errors as JSON if the caller asked for it.
fn usage(error: clap::Error, args: &[OsString]) -> ExitCode {
    let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let lang = env::language();
    let exit_code = u8::try_from(error.exit_code()).unwrap_or(2);
    let error = cli::with_synonyms(cli::with_help_page(error, args, lang));
    let message = cli::usage_message(&error, lang);
    if !is_answer && args.iter().any(|argument| argument == "--json") {
        let message = message.unwrap_or_else(|| error.render().ansi().to_string());
        let message = anstream::adapter::strip_str(&message).to_string();
        out::json(&serde_json::json!({"error": cli::usage_as_json(&message)}));
    } else if let Some(message) = message {
        out::note(message.trim_end());
    } else {
        let _ = error.print();
    }
    ExitCode::from(exit_code)
}
