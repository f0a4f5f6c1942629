//! Free texts as arguments, such as a log entry. They may begin with a hyphen, but a mistyped option is not a text.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command as ClapCommand, CommandFactory, Parser};

use super::{Cli, Command, Deferred, MemoryCommand};

/// Parses the arguments of the program. Refuses an unknown option in the place of a free text, unless it follows `--`.
pub fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let parsed = Cli::try_parse_from(args);
    if parsed.as_ref().is_ok_and(|cli| !free_text(cli).is_some_and(is_option)) {
        return parsed;
    }
    let mut root = Cli::command();
    root.build();
    match refuse_hyphens(root).try_get_matches_from(args) {
        Err(error) if is_unknown_option(&error) => Err(error),
        _ => parsed,
    }
}

/// Returns the free text that a command has as an argument.
fn free_text(cli: &Cli) -> Option<&str> {
    match &cli.command {
        Command::Log(args) => args.text.as_deref(),
        Command::Problem(args) => args.text.as_deref(),
        Command::Memory(Deferred(MemoryCommand::SaveFact(args))) => args.text.as_deref(),
        Command::Memory(Deferred(MemoryCommand::Edit { text, .. })) => Some(text),
        _ => None,
    }
}

/// Returns whether a text looks like a long option, as in `--node` or `--node=ID`.
fn is_option(text: &str) -> bool {
    let name = text.strip_prefix("--").map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

fn is_unknown_option(error: &clap::Error) -> bool {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    error.kind() == ErrorKind::UnknownArgument && is_option(argument)
}

/// Returns the command without arguments that may begin with a hyphen. Values of options stay as they are.
fn refuse_hyphens(command: ClapCommand) -> ClapCommand {
    let command = command.mut_args(|arg| match arg.is_positional() {
        true => arg.allow_hyphen_values(false),
        false => arg,
    });
    command.mut_subcommands(refuse_hyphens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_option_only_long_options_are_options() {
        for text in ["--node", "--next-step", "--node=x y", "--n"] {
            assert!(is_option(text), "{text}");
        }
        for text in ["", "-", "--", "---", "-n", "- item", "--node is wrong", "--1", "-- x", "node", "--é"] {
            assert!(!is_option(text), "{text}");
        }
    }
}
