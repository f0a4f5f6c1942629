//! Tasks for contributors, run as `cargo xtask TASK`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(unix)]
mod agents;
mod bench;
mod cargo;
mod dist;
#[cfg(unix)]
mod histories;
mod instructions;
#[cfg(unix)]
mod machines;
mod mcp;
mod plugin;
mod recall;
mod reference;
mod rng;
#[cfg(unix)]
mod team;
mod torture;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Tasks for contributors to this repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure the speed and memory use of the release build
    Bench(bench::Options),
    /// Count the CPU instructions of the hook lane and fail if they grew by more than 5 %
    Instructions(instructions::Options),
    /// Regenerate the files of the Claude Code plugin
    Plugin,
    /// Regenerate docs/reference.md
    Reference,
    /// Build a release archive: static program, man pages and shell completions
    Dist(dist::Options),
    /// Run and kill many processes on one project, then check that no acknowledged write is lost
    Torture(torture::Options),
    /// Send random requests to team servers through faults, then check that the results have one order
    #[cfg(unix)]
    Histories(histories::Options),
    /// Run machines of a team through faults, then check that their replicas equal the server and no write is lost
    #[cfg(unix)]
    TeamMachines(machines::Options),
    /// Run many agents of a team at once, then print the times of their tool calls and check that no write is lost
    #[cfg(unix)]
    TeamAgents(agents::Options),
    /// Measure the recall of the memory ranking on labelled data sets
    Recall(recall::Options),
    /// Run a command and print its peak resident memory in kilobytes (used by bench)
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
        #[cfg(unix)]
        Task::Histories(options) => return histories::run(&options),
        #[cfg(unix)]
        Task::TeamMachines(options) => return machines::run(&options),
        #[cfg(unix)]
        Task::TeamAgents(options) => return agents::run(&options),
        Task::Recall(options) => recall::run(&options),
        Task::Peak { command } => bench::measure::print_peak(&command),
    }
    ExitCode::SUCCESS
}
