//! What can be typed after `tanmi install`, `uninstall` and `doctor`.

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeArg {
    /// For all projects, in the files in your home folder
    User,
    /// For this project, in the files it has
    Project,
}

#[derive(Debug, Args)]
pub struct AgentArgs {
    /// claude-code, cursor, codex, gemini-cli, copilot-cli or all; repeatable. Without it, `install` takes those that
    /// are found here, `uninstall` all
    #[arg(long, value_name = "AGENT", value_delimiter = ',')]
    pub platform: Vec<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask; only a purge ever does
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct InstallArgs {
    #[command(flatten)]
    pub agents: AgentArgs,
    #[arg(long, value_enum, default_value = "user")]
    pub scope: ScopeArg,
    /// Also write the guide where the agent looks for such texts: when to offer a workspace, when to save and search
    #[arg(long)]
    pub guide: bool,
    /// Leave hooks out
    #[arg(long)]
    pub no_hooks: bool,
    /// Leave the MCP server out
    #[arg(long)]
    pub no_mcp: bool,
    /// Leave the status line out; one that you have is never replaced
    #[arg(long)]
    pub no_status_line: bool,
    /// Print what belongs into which file, and the guide, to put it there by hand
    #[arg(long, conflicts_with_all = ["dry_run", "guide"])]
    pub print: bool,
}

#[derive(Debug, Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    pub agents: AgentArgs,
    /// Only this scope; without it, both
    #[arg(long, value_enum)]
    pub scope: Option<ScopeArg>,
    /// Also delete everything that was saved, here and in every project this machine knows. Asks first
    #[arg(long)]
    pub purge: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Mend what can be mended without asking
    #[arg(long)]
    pub fix: bool,
}
