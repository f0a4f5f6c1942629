//! What can be typed after `tanmi context`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Show what a session would be told when it starts, from which files, and how large it is
    Show {
        /// claude-code, cursor, codex, gemini-cli or copilot-cli
        #[arg(long, default_value = "claude-code")]
        platform: String,
        /// A type of subagent, instead of the session itself
        #[arg(long, value_name = "TYPE")]
        agent: Option<String>,
        /// A session that is known, with what it is bound to
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// In the folder of this user instead of the project
        #[arg(long, value_name = "ID", conflicts_with = "session")]
        user: Option<String>,
        /// The folder that has `user_ID/data` in it
        #[arg(long, value_name = "DIR", default_value = "workspace/users", requires = "user")]
        root: PathBuf,
        /// Where that folder is inside the container
        #[arg(long, value_name = "PATH", default_value = "/workspace", requires = "user")]
        container: String,
        /// Also print the text
        #[arg(long)]
        text: bool,
    },
    /// Write the declared file from the agents, skills and commands that are here and from `.tanmi/context.json`
    Build {
        /// Write nothing; fail if the file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Make and update the folders of users that a host mounts into containers
    Provision(ProvisionArgs),
}

#[derive(Debug, Args)]
pub struct ProvisionArgs {
    /// The folder that has `user_ID/data` in it
    #[arg(long, value_name = "DIR", default_value = "workspace/users")]
    pub root: PathBuf,
    /// A user; repeatable
    #[arg(long = "user", value_name = "ID")]
    pub users: Vec<String>,
    /// Every user that has a folder
    #[arg(long, conflicts_with = "users")]
    pub all: bool,
    /// Agents, commands and skills that are synced into each `.claude`
    #[arg(long, value_name = "DIR")]
    pub extensions: Option<PathBuf>,
    /// The `context.json` that each of them gets
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Where the program is inside the container
    #[arg(long, value_name = "PATH", default_value = "/usr/local/bin/tanmi")]
    pub tanmi_path: String,
    /// Where the user's folder is inside the container
    #[arg(long, value_name = "PATH", default_value = "/workspace")]
    pub container: String,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
