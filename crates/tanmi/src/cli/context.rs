//! Arguments of `tanmi context`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Show the sources and sizes of what a session receives at its start; --text adds the text
    Show {
        /// Platform of the session: claude-code, cursor, codex, gemini-cli or copilot-cli
        #[arg(long, default_value = tanmi_platform::DEFAULT_CLIENT.id())]
        platform: String,
        /// Type of a subagent, such as Explore [default: the main agent of the session]
        #[arg(long, value_name = "TYPE")]
        agent: Option<String>,
        /// Show the context for this session (see `tanmi session list`)
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Use the folder of this provisioned user instead of the project
        #[arg(long, value_name = "ID", conflicts_with = "session")]
        user: Option<String>,
        /// Folder that contains the user folders, such as `user_42/data`
        #[arg(long, value_name = "DIR", default_value = "workspace/users", requires = "user")]
        root: PathBuf,
        /// Path of the user's folder inside the container
        #[arg(long, value_name = "PATH", default_value = "/workspace", requires = "user")]
        container: String,
        /// Also print the text that the session receives
        #[arg(long)]
        text: bool,
    },
    /// Write .claude/CLAUDE.md (or the `output` of .tanmi/context.json) from the project's agents,
    /// skills and commands
    Build {
        /// Do not write; exit with status 1 if the file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Create and update the user folders that a host mounts into containers
    #[command(after_help = super::examples::CONTEXT_PROVISION)]
    Provision(ProvisionArgs),
}

#[derive(Debug, Args)]
pub struct ProvisionArgs {
    /// Folder that contains the user folders, such as `user_42/data`
    #[arg(long, value_name = "DIR", default_value = "workspace/users")]
    pub root: PathBuf,
    /// User to provision; repeatable; required unless --all is given
    #[arg(long = "user", value_name = "ID")]
    pub users: Vec<String>,
    /// Provision every user that has a folder
    #[arg(long, conflicts_with = "users")]
    pub all: bool,
    /// Folder of agents, commands and skills to sync into each `.claude` folder
    #[arg(long, value_name = "DIR")]
    pub extensions: Option<PathBuf>,
    /// `context.json` to copy to each user
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Path of the `tanmi` program inside the container
    #[arg(long, value_name = "PATH", default_value = "/usr/local/bin/tanmi")]
    pub tanmi_path: String,
    /// Path of the user's folder inside the container
    #[arg(long, value_name = "PATH", default_value = "/workspace")]
    pub container: String,
    /// Show the changes without making them
    #[arg(long)]
    pub dry_run: bool,
}
