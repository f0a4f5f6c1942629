//! What can be typed after `tanmi rules`, `trust` and `ledger`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// List the rules that count here
    List {
        /// built-in, workspace, project or global
        #[arg(long)]
        source: Option<String>,
        /// Only rules for this event
        #[arg(long)]
        event: Option<String>,
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Look for what is wrong in the rules files that count here, or in one file
    Check { file: Option<PathBuf> },
    /// Agree to the rules files of this project and its workspaces, as they are now
    Trust {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show what every rule makes of an event, and what the agent would be told. Changes nothing
    Explain(ExplainArgs),
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Session id; known by itself inside an agent's shell
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// session_start, prompt_submit, task_complete, status_check, …
    #[arg(long, default_value = "prompt_submit", conflicts_with = "payload")]
    pub event: String,
    /// What the user types
    #[arg(long, allow_hyphen_values = true, conflicts_with = "payload")]
    pub prompt: Option<String>,
    /// claude-code, cursor, codex, gemini-cli, copilot-cli, web or api
    #[arg(long)]
    pub platform: Option<String>,
    /// Why the session starts: startup, resume, clear, compact or fork
    #[arg(long, conflicts_with = "payload")]
    pub start: Option<String>,
    /// A payload that a client sent to its hook (`-` reads standard input)
    #[arg(long, value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// Workspace the event is about, instead of the session's
    #[arg(long, short = 'w', value_name = "WS", requires = "node")]
    pub workspace: Option<String>,
    /// Node the event is about, instead of the one in focus
    #[arg(long, short = 'n', value_name = "NODE")]
    pub node: Option<String>,
    /// A rules file to try in place of the project's
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Time of the event in milliseconds since the epoch, instead of now
    #[arg(long, value_name = "MS")]
    pub at: Option<i64>,
    /// Also the rules that are for other events
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Take it back
    #[arg(long, conflicts_with = "yes")]
    pub revoke: bool,
}

#[derive(Debug, Args)]
pub struct LedgerArgs {
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    #[arg(long)]
    pub event: Option<String>,
    #[arg(long)]
    pub platform: Option<String>,
    /// Only decisions in which this rule spoke
    #[arg(long)]
    pub rule: Option<String>,
    /// From this day on (YYYY-MM-DD, UTC)
    #[arg(long, value_name = "DAY")]
    pub since: Option<String>,
    /// Up to this day
    #[arg(long, value_name = "DAY")]
    pub until: Option<String>,
    /// Only this day
    #[arg(long, value_name = "DAY", conflicts_with_all = ["since", "until"])]
    pub day: Option<String>,
    /// Decisions to show, the latest
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// With the exact text of each
    #[arg(long)]
    pub text: bool,
}
