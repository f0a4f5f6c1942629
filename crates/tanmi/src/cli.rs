//! What can be typed. What it means is in [`crate::commands`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

mod context;
mod install;
mod memory;
mod node;
mod rules;

pub use context::{ContextCommand, ProvisionArgs};
pub use install::{DoctorArgs, InstallArgs, ScopeArg, UninstallArgs};
pub use memory::{MemoryCommand, MemoryFilterArgs, ModelCommand, SaveFactArgs};
pub use node::{NodeCommand, NodeCreateArgs, NodeTransitionArgs, NodeUpdateArgs};
pub use rules::{ExplainArgs, LedgerArgs, RulesCommand, TrustArgs};

#[derive(Debug, Parser)]
#[command(name = "tanmi", version, about, max_term_width = 110)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// Folder of the project, instead of the one around the working directory
    #[arg(long, global = true, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create, list, change, archive, delete and check workspaces
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Create, list, change, move, delete and advance nodes
    #[command(subcommand)]
    Node(NodeCommand),
    /// Append a line to a log, or show the log
    Log(LogArgs),
    /// Record, show or clear the problem at hand
    Problem(ProblemArgs),
    /// Show the tree of work
    Tree(TreeArgs),
    /// List sessions, bind one to a workspace, take it off, or show what it is bound to
    #[command(subcommand)]
    Session(SessionCommand),
    /// Put hooks and the MCP server into the files of the agents that are here
    Install(InstallArgs),
    /// Take them out again, and give back what was there
    Uninstall(UninstallArgs),
    /// Tell whether everything is installed, runs and is in order, and what to do where it is not
    Doctor(DoctorArgs),
    /// Answer an agent's hook: its payload on standard input, the answer on standard output
    Hook {
        platform: String,
        event: Option<String>,
        /// Give the payload back with the declared context before its prompt, for hosts that pipe prompts through
        #[arg(long, value_parser = ["prompt"])]
        format: Option<String>,
    },
    /// Serve an MCP client on standard input and output
    Mcp,
    /// Show the page in a browser, and serve the HTTP API and MCP to this machine
    Serve(ServeArgs),
    /// Print one line about the session for Claude Code's status line: its payload on standard input
    Statusline,
    /// Save, search and keep what outlives a conversation
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// What is declared for every session: show it, build it, and provide it to users of containers
    #[command(subcommand)]
    Context(ContextCommand),
    /// List and check the rules that decide what agents are told, agree to a project's, and explain what they do
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Agree to what a project that came from elsewhere says to agents
    Trust(TrustArgs),
    /// Show what agents were told, when, and what it cost
    Ledger(LedgerArgs),
    /// Say nothing to any agent until `resume`
    Pause {
        /// End by itself after this time: 30m, 2h, 1d
        #[arg(long = "for", value_name = "TIME")]
        duration: Option<String>,
    },
    /// End a pause
    Resume,
    /// Play a small story in a scratch folder and show what an agent is told at each step
    Demo {
        /// Keep what was made, in this folder
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Show and change settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print what a shell needs to complete `tanmi …`
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write one for every command
    Man {
        /// Write `tanmi.1`, `tanmi-node.1`, … into this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print docs/reference.md
    #[command(hide = true)]
    Reference,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Port on 127.0.0.1; a free one if left out
    #[arg(long)]
    pub port: Option<u16>,
    /// Print the link to the page and open no browser
    #[arg(long)]
    pub no_open: bool,
}

/// Which workspace.
#[derive(Debug, Args)]
pub struct WorkspaceArg {
    /// Workspace id; may be left out where the project has one active workspace, and in the shell of an agent that is bound
    /// to one
    #[arg(long, short = 'w', value_name = "WS")]
    pub workspace: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Create a workspace in this project
    Init {
        #[arg(long, allow_hyphen_values = true)]
        name: String,
        /// What is to be reached (`-` reads standard input)
        #[arg(long, allow_hyphen_values = true)]
        goal: String,
        /// A rule for everybody who works here; repeatable
        #[arg(long = "rule", value_name = "RULE", allow_hyphen_values = true)]
        rules: Vec<String>,
        /// A document as `path: description`; repeatable
        #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
        docs: Vec<String>,
    },
    /// List workspaces, the latest active first
    List {
        /// Of every project this machine knows
        #[arg(long)]
        all: bool,
        /// active or archived
        #[arg(long)]
        status: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Look for projects below this folder and remember them
        #[arg(long, value_name = "DIR")]
        scan: Option<PathBuf>,
    },
    /// Show one workspace
    Show {
        #[command(flatten)]
        at: WorkspaceTarget,
    },
    /// Change name, goal, rules or docs
    Update {
        #[command(flatten)]
        at: WorkspaceTarget,
        #[arg(long, allow_hyphen_values = true)]
        name: Option<String>,
        #[arg(long, allow_hyphen_values = true)]
        goal: Option<String>,
        /// Replace all rules; repeatable
        #[arg(long = "rule", value_name = "RULE", allow_hyphen_values = true)]
        rules: Vec<String>,
        #[arg(long = "add-rule", value_name = "RULE", allow_hyphen_values = true)]
        add_rules: Vec<String>,
        #[arg(long = "remove-rule", value_name = "RULE", allow_hyphen_values = true)]
        remove_rules: Vec<String>,
        /// Remove every rule
        #[arg(long, conflicts_with_all = ["rules", "remove_rules"])]
        no_rules: bool,
        /// Add a document, or change the one of that path: `path: description` or `[expired] path: …`
        #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
        docs: Vec<String>,
        #[arg(long = "remove-doc", value_name = "PATH", allow_hyphen_values = true)]
        remove_docs: Vec<String>,
    },
    /// Make read-only
    Archive {
        #[command(flatten)]
        at: WorkspaceTarget,
    },
    /// Bring back from the archive or from the trash
    Restore { id: String },
    /// Move to the trash, where it stays for 30 days
    Delete { id: String },
    /// Show, set or clear the workspace's focus
    Focus {
        #[command(flatten)]
        at: WorkspaceArg,
        /// Node to focus; without it the focus is shown
        node: Option<String>,
        /// Focus no node
        #[arg(long, conflicts_with = "node")]
        clear: bool,
    },
    /// Look for damage
    Check {
        #[command(flatten)]
        at: WorkspaceTarget,
        /// Repair what can be repaired without guessing
        #[arg(long)]
        fix: bool,
    },
}

/// Which workspace, as an argument or as an option.
#[derive(Debug, Args)]
pub struct WorkspaceTarget {
    /// Workspace id; may be left out where the project has one active workspace
    pub id: Option<String>,
    #[arg(long, short = 'w', value_name = "WS", conflicts_with = "id")]
    pub workspace: Option<String>,
}

impl WorkspaceTarget {
    pub fn get(&self) -> Option<&str> {
        self.id.as_deref().or(self.workspace.as_deref())
    }
}

/// Which node, as an argument or as an option.
#[derive(Debug, Args)]
#[group(skip)]
pub struct NodeTarget {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node id, as `tanmi tree` shows it; needed unless --node is given
    #[arg(required_unless_present = "node")]
    pub id: Option<String>,
    /// The same, as a flag
    #[arg(long, short = 'n', value_name = "NODE", conflicts_with = "id")]
    pub node: Option<String>,
}

impl NodeTarget {
    pub fn node(&self) -> &str {
        self.id.as_deref().or(self.node.as_deref()).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
pub struct LogArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node id, or `workspace` for the workspace's own log; the focused node if left out
    #[arg(long, short = 'n', value_name = "NODE")]
    pub node: Option<String>,
    /// What happened (`-` reads standard input); without it the log is shown
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Lines to show
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub struct ProblemArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node id, or `workspace` for the workspace's own problem; the focused node if left out
    #[arg(long, short = 'n', value_name = "NODE")]
    pub node: Option<String>,
    /// What is wrong; without it the problem is shown
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// What is to be done next
    #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
    pub next_step: Option<String>,
    /// The problem is solved
    #[arg(long, conflicts_with_all = ["text", "next_step"])]
    pub clear: bool,
}

#[derive(Debug, Args)]
pub struct TreeArgs {
    #[command(flatten)]
    pub at: WorkspaceTarget,
    /// Only what is below this node
    #[arg(long, default_value = "root")]
    pub parent: String,
    /// Only these statuses; repeatable or separated by commas
    #[arg(long, value_delimiter = ',')]
    pub status: Vec<String>,
    #[arg(long)]
    pub depth: Option<usize>,
    /// Nodes to show; 0 shows all
    #[arg(long, default_value_t = 200)]
    pub limit: usize,
}

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Bind a session: its hooks tell the agent of that workspace from now on
    Bind {
        /// Session id; known by itself inside an agent's shell
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        #[command(flatten)]
        at: WorkspaceArg,
        /// Node to focus
        #[arg(long, short = 'n', value_name = "NODE")]
        node: Option<String>,
    },
    /// Take a session off its workspace
    Unbind {
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// List the sessions that were heard of, the latest first
    List {
        /// Only those bound to this workspace
        #[arg(long, short = 'w', value_name = "WS")]
        workspace: Option<String>,
        /// Only those at work
        #[arg(long)]
        live: bool,
        /// Only those bound to a workspace
        #[arg(long)]
        bound: bool,
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show what a session is bound to, or what it could be bound to
    Status {
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show every setting, its value and where it comes from
    List,
    /// Show one setting
    Get { key: String },
    /// Change one setting
    Set {
        key: String,
        value: String,
        /// In this project instead of for this user
        #[arg(long)]
        for_project: bool,
    },
}
