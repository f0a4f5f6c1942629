//! Tasks of the repository, run as `cargo xtask …`.

use clap::{Parser, Subcommand};

mod bench;

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
    /// Run a command and print the peak of its resident memory in kilobytes (used by bench)
    #[command(hide = true)]
    Peak {
        #[arg(trailing_var_arg = true)]
        command: Vec<String>,
    },
}

fn main() {
    match Cli::parse().task {
        Task::Bench(options) => bench::run(&options),
        Task::Peak { command } => bench::measure::print_peak(&command),
    }
}
