//! Tasks of the repository, run as `cargo xtask …`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod dice;
mod dist;
mod instructions;
mod plugin;
mod recall;
mod reference;
mod torture;

#[derive(Parser)]
#[command(about = "Tasks of the repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure, as ratios to /bin/true and to an fsynced append in the same run
    Bench(bench::Options),
    /// Count the hook lane's instructions and compare them with the counts kept in the repository
    Instructions(instructions::Options),
    /// Write the Claude Code plugin from the recipe of the install
    Plugin,
    /// Write docs/reference.md from the tables of the program
    Reference,
    /// Build what is handed out: a small static program with its man page and completions, packed
    Dist(dist::Options),
    /// Many processes of every kind on one project, killed at any moment; then every promise is checked
    Torture(torture::Options),
    /// Recall of the ranking on labelled sets
    Recall(recall::Options),
    /// Run a command and print the peak of its resident memory in kilobytes (used by bench)
    #[command(hide = true)]
    Peak {
        #[arg(trailing_var_arg = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    match Cli::parse().task {
        Task::Bench(options) => return bench::run(&options),
        Task::Instructions(options) => return instructions::run(&options),
        Task::Plugin => plugin::run(),
        Task::Reference => reference::run(),
        Task::Dist(options) => return dist::run(&options),
        Task::Torture(options) => return torture::run(&options),
        Task::Recall(options) => recall::run(&options),
        Task::Peak { command } => bench::measure::print_peak(&command),
    }
    ExitCode::SUCCESS
}
