//! Arguments of `tanmi rules`, `trust` and `ledger`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// List the injection rules that apply in this project
    List {
        /// Only rules from this source: built-in, workspace, project or global
        #[arg(long)]
        source: Option<String>,
        /// Only rules for this event, such as session_start or prompt_submit
        #[arg(long)]
        event: Option<String>,
        /// Maximum number of rules; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = super::limit::parse)]
        limit: usize,
    },
    /// Check rules files for errors
    Check {
        /// Rules file to check [default: all that apply in this project]
        file: Option<PathBuf>,
    },
    /// Trust the current rules files of this project and its workspaces
    Trust {
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Show what each rule decides for an event, without changing anything
    #[command(after_help = super::examples::RULES_EXPLAIN)]
    Explain(ExplainArgs),
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Session id [default: detected automatically inside an agent's shell, else the placeholder SESSION]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Event: session_start, prompt_submit, task_complete, status_check, subagent_start, pre_tool_use,
    /// pre_compact, stop or session_end
    #[arg(long, default_value = "prompt_submit", conflicts_with = "payload")]
    pub event: String,
    /// Prompt of the user
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "payload")]
    pub prompt: Option<String>,
    /// Platform of the session: claude-code, cursor, codex, gemini-cli, copilot-cli, web or api
    /// [default: the platform of the session or the payload, else claude-code]
    #[arg(long)]
    pub platform: Option<String>,
    /// Reason of a session_start event: startup, resume, clear, compact or fork
    #[arg(long, value_name = "REASON", conflicts_with = "payload")]
    pub start: Option<String>,
    /// File with a payload that a client sent to its hook (`-` reads stdin)
    #[arg(long, value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// Workspace of the event [default: the bound workspace of the session]
    #[arg(long, short = 'w', value_name = "WS", requires = "node")]
    pub workspace: Option<String>,
    /// Node of the event [default: the focused node]
    #[arg(long, short = 'n', value_name = "NODE")]
    pub node: Option<String>,
    /// Rules file to use instead of the project's
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Time of the event in milliseconds since the Unix epoch [default: now]
    #[arg(long, value_name = "MS")]
    pub at: Option<i64>,
    /// Also show rules for other events
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Stop trusting this project and all of its files
    #[arg(long, conflicts_with = "yes")]
    pub revoke: bool,
    /// Use this project although it belongs to another user, without trusting its content
    #[arg(long, conflicts_with = "revoke")]
    pub allow_owner: bool,
}

#[derive(Debug, Args)]
pub struct LedgerArgs {
    /// Only this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only this event, such as session_start or prompt_submit
    #[arg(long)]
    pub event: Option<String>,
    /// Only this platform, such as claude-code
    #[arg(long)]
    pub platform: Option<String>,
    /// Only injections by this rule; ids as shown by `tanmi rules list`
    #[arg(long)]
    pub rule: Option<String>,
    /// Only this workspace
    #[arg(long, short = 'w', value_name = "WS")]
    pub workspace: Option<String>,
    /// Only this node
    #[arg(long, short = 'n', value_name = "NODE")]
    pub node: Option<String>,
    /// From this day (YYYY-MM-DD, UTC)
    #[arg(long, value_name = "DAY")]
    pub since: Option<String>,
    /// Through this day (inclusive; YYYY-MM-DD, UTC)
    #[arg(long, value_name = "DAY")]
    pub until: Option<String>,
    /// Only this day (YYYY-MM-DD, UTC)
    #[arg(long, value_name = "DAY", conflicts_with_all = ["since", "until"])]
    pub day: Option<String>,
    /// Number of most recent injections to show; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = super::limit::parse)]
    pub limit: usize,
    /// Also print the injected texts
    #[arg(long)]
    pub text: bool,
}
