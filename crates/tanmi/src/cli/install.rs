//! Arguments of `tanmi install`, `uninstall` and `doctor`.

use clap::{Args, ValueEnum};

/// Gives `uninstall --platform` its own help, because its default differs from that of `install --platform`.
pub fn uninstall_arg(arg: clap::Arg) -> clap::Arg {
    match arg.get_id().as_str() {
        "platform" => arg.help(
            "Agent to remove Tanmi from: claude-code, cursor, codex, gemini-cli, copilot-cli or all; repeatable \
             [default: all]",
        ),
        _ => arg,
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeArg {
    User,
    Project,
}

#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Agent to set up: claude-code, cursor, codex, gemini-cli, copilot-cli or all; repeatable
    /// [default: detected agents]
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    pub platform: Vec<String>,
    /// Show the changes without making them
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation before --purge
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
    /// Allow Claude Code to use Tanmi's tools without asking [default: asks on a terminal, unless --yes]
    #[arg(long, conflicts_with = "no_mcp")]
    pub allow_tools: bool,
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
    /// Also delete ~/.tanmi-workspace, and .tanmi-workspace and .tanmi in all known projects,
    /// permanently; asks first
    #[arg(long)]
    pub purge: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Apply the fixes that are safe to make automatically
    #[arg(long)]
    pub fix: bool,
}
