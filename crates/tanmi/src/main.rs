//! The `tanmi` program: reads what was typed, calls a use case, prints the answer.

use std::process::ExitCode;

use clap::Parser;

mod cli;
mod commands;
mod env;
mod out;
mod show;

fn main() -> ExitCode {
    commands::run(cli::Cli::parse())
}
