//! Arguments of `tanmi install`, `uninstall` and `doctor`.

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeArg {
    User,
    Project,
}

#[derive(Debug, Args)]
pub struct AgentArgs {
    /// claude-code, cursor, codex, gemini-cli, copilot-cli or all; repeatable
    /// [default: `install` selects detected agents, `uninstall` all]
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    pub platform: Vec<String>,
    /// Show the changes without making them
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation; only `uninstall --purge` asks
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct InstallArgs {
    #[command(flatten)]
    pub agents: AgentArgs,
    /// Install for all projects of the user, or only for this project
    #[arg(long, value_enum, default_value = "user")]
    pub scope: ScopeArg,
    /// Also write the guide that tells agents when to use workspaces and memory
    #[arg(long)]
    pub guide: bool,
    /// Do not install hooks
    #[arg(long)]
    pub no_hooks: bool,
    /// Do not install the MCP server
    #[arg(long)]
    pub no_mcp: bool,
    /// Do not install the status line; an existing one is never replaced
    #[arg(long)]
    pub no_status_line: bool,
    /// Print the configuration and the guide for manual installation
    #[arg(long, conflicts_with_all = ["dry_run", "guide"])]
    pub print: bool,
}

#[derive(Debug, Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    pub agents: AgentArgs,
    /// Only this scope [default: both]
    #[arg(long, value_enum)]
    pub scope: Option<ScopeArg>,
    /// Also delete the data of Tanmi in the home store and in all known projects; asks first
    #[arg(long)]
    pub purge: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Apply the fixes that need no decision
    #[arg(long)]
    pub fix: bool,
}
