//! The arguments of the command line, with their English help. What a command does is in [`crate::commands`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

mod context;
mod deferred;
pub mod examples;
mod free_text;
mod help;
mod install;
mod limit;
mod memory;
mod node;
mod plan;
mod rules;
mod short;
mod synonyms;
mod team;
mod team_admin;
mod usage_error;
pub mod wrap;
mod zh;

pub use context::{ContextCommand, ProvisionArgs};
pub use deferred::Deferred;
pub use free_text::parse;
pub use help::with_help_page;
pub use install::{DoctorArgs, InstallArgs, ScopeArg, UninstallArgs};
pub use memory::{LexiconCommand, MemoryCommand, MemoryFilterArgs, ModelCommand, SaveFactArgs};
pub use node::{NodeCommand, NodeCreateArgs, NodeTransitionArgs, NodeUpdateArgs};
pub use plan::{NextArgs, PlanArgs};
pub use rules::{ExplainArgs, LedgerArgs, RulesCommand, TrustArgs};
pub use short::{EndArgs, StatusArgs, StepArgs, TrashCommand};
pub use synonyms::with_synonyms;
pub use team::{DatabaseArgs, JoinArgs, MachineCommand, OutboxCommand, TeamCommand, TeamProjectArgs};
pub use team_admin::{AuditArgs, MemberCommand, PersonCommand, ProjectCommand, TeamArgs, TokenCommand};
pub use usage_error::{check_json, usage_as_json, usage_message};

#[derive(Debug, Parser)]
#[command(name = "tanmi", version, about, max_term_width = 100, after_help = examples::ROOT)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// Project folder [default: the project that contains the working directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print the result, or the error, as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what sessions are doing, open problems and what comes next
    Status(StatusArgs),
    /// Start a node
    #[command(mut_arg("force", |arg| arg.help(
        "Start it even if another running session holds the node or its dependencies are not completed"
    )))]
    Start(StepArgs),
    /// Complete a node
    #[command(after_help = examples::DONE)]
    Done(EndArgs),
    /// Mark a node as failed
    Fail(EndArgs),
    /// Create, list, edit, archive and check workspaces
    #[command(subcommand)]
    Workspace(Deferred<WorkspaceCommand>),
    /// Create, edit, move and complete the nodes of a workspace
    #[command(subcommand)]
    Node(Deferred<NodeCommand>),
    /// Create nodes from a Markdown outline, or write nodes as an outline
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Show or start the nodes whose dependencies are completed
    #[command(after_help = examples::NEXT)]
    Next(NextArgs),
    /// Show a workspace as a tree of nodes
    Tree(TreeArgs),
    /// Add an entry to a log, or show the log
    #[command(after_help = examples::LOG)]
    Log(LogArgs),
    /// Record, show or clear the problem of a node or workspace
    #[command(after_help = examples::PROBLEM)]
    Problem(ProblemArgs),
    /// Show deleted workspaces and nodes
    #[command(subcommand)]
    Trash(Deferred<TrashCommand>),
    /// List sessions, and bind them to workspaces
    #[command(subcommand)]
    Session(Deferred<SessionCommand>),
    /// Save and search facts, summaries and past conversations
    #[command(subcommand)]
    Memory(Deferred<MemoryCommand>),
    /// Show, build and provision the declared context
    #[command(subcommand)]
    Context(Deferred<ContextCommand>),
    /// List, check, trust and explain the injection rules
    #[command(subcommand)]
    Rules(Deferred<RulesCommand>),
    /// Trust this project's memory, rules, declared context and settings, so that Tanmi uses them
    Trust(TrustArgs),
    /// Show the injected texts with time, rule and estimated tokens
    #[command(after_help = examples::LEDGER)]
    Ledger(LedgerArgs),
    /// Stop injecting text into all agents until `tanmi resume`
    Pause {
        /// Resume automatically after this time, such as 30m, 2h or 1d
        #[arg(long = "for", value_name = "TIME")]
        duration: Option<String>,
    },
    /// End a pause
    Resume,
    /// Install hooks and the MCP server for detected agents
    #[command(after_help = examples::INSTALL)]
    #[command(mut_arg("yes", |arg| arg.hide(true)))]
    Install(InstallArgs),
    /// Remove hooks and the MCP server, and restore the original files
    #[command(mut_args(install::uninstall_arg))]
    Uninstall(UninstallArgs),
    /// Diagnose the installation and suggest fixes
    Doctor(DoctorArgs),
    /// Show and change settings
    #[command(subcommand)]
    Config(Deferred<ConfigCommand>),
    /// Run a short demo in a temporary folder
    Demo {
        /// Run the demo in this folder, and keep its files
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Serve the web page, the HTTP API and MCP on 127.0.0.1
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Join a team, and administer its server: database, people, projects and tokens
    #[command(subcommand)]
    Team(Deferred<TeamCommand>),
    /// Serve MCP on stdin and stdout
    Mcp,
    /// Handle a hook event (payload on stdin, response on stdout)
    #[command(after_help = examples::HOOK)]
    Hook {
        /// Platform that sends the event: claude-code, cursor, codex, gemini-cli or copilot-cli
        platform: String,
        /// Event name as the client spells it, such as UserPromptSubmit
        /// [default: the name in the payload]
        event: Option<String>,
        /// Output format; `prompt` prints the payload with the declared context added to its prompt
        #[arg(long, value_parser = ["prompt"])]
        format: Option<String>,
    },
    /// Print the status line of Claude Code (payload on stdin)
    Statusline,
    /// Print a completion script for your shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write one for every command
    Man {
        /// Write `tanmi.1`, `tanmi-node.1` and the others into this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print ids and titles that complete a command line
    #[command(hide = true, name = "complete-line")]
    CompleteLine {
        /// Words of the command line up to the cursor
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Print docs/reference.md
    #[command(hide = true)]
    Reference,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Port on 127.0.0.1 [default: a free port]
    #[arg(long)]
    pub port: Option<u16>,
    /// Print the link to the page instead of opening a browser
    #[arg(long)]
    pub no_open: bool,
    /// Serve a team over this PostgreSQL database [default with --listen: the variable
    /// TANMI_DATABASE_URL]
    #[arg(long, value_name = "URL", conflicts_with_all = ["port", "no_open"])]
    pub database: Option<String>,
    /// Address and port on which to serve a team, such as 127.0.0.1:7777
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["port", "no_open"])]
    pub listen: Option<std::net::SocketAddr>,
    /// Certificate of the server and of its intermediate authorities, as PEM; read again on SIGHUP
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM; read again on SIGHUP
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_cert"])]
    pub tls_key: Option<PathBuf>,
    /// Requests per second that one token may make to the server of a team, ten times as many at
    /// once; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 200, requires = "listen")]
    pub rate_limit: u32,
    /// What the server of a team logs to stderr, as JSON lines
    #[arg(long, value_name = "LEVEL", default_value = "info", requires = "listen",
        value_parser = ["error", "warn", "info", "debug"])]
    pub log_level: String,
}

/// Selects a workspace by an option.
#[derive(Debug, Args)]
pub struct WorkspaceArg {
    /// Workspace id [default: the bound workspace of the session, else the only active one of the
    /// project]
    #[arg(long, short = 'w', value_name = "WS")]
    pub workspace: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Create a workspace in this project
    #[command(after_help = examples::WORKSPACE_INIT)]
    Init {
        /// Name of the workspace
        #[arg(long, allow_hyphen_values = true)]
        name: String,
        /// Goal of the workspace (`-` reads stdin)
        #[arg(long, allow_hyphen_values = true)]
        goal: String,
        /// Rule that every agent and person in the workspace follows; repeatable
        #[arg(long = "rule", value_name = "RULE", allow_hyphen_values = true)]
        rules: Vec<String>,
        /// Doc of the workspace as `path: description`; repeatable
        #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
        docs: Vec<String>,
        #[command(flatten)]
        secrets: SecretsArg,
    },
    /// List workspaces, most recently active first
    List {
        /// List the workspaces of all known projects
        #[arg(long)]
        all: bool,
        /// Only workspaces with this status: active or archived
        #[arg(long)]
        status: Option<String>,
        /// Maximum number of workspaces; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit::parse)]
        limit: usize,
        /// Add the projects below this folder to the known projects, and list the workspaces of all
        /// known projects
        #[arg(long, value_name = "DIR")]
        scan: Option<PathBuf>,
    },
    /// Show a workspace
    Show {
        #[command(flatten)]
        at: WorkspaceTarget,
    },
    /// Edit the name, goal, rules, docs or language of a workspace
    Update {
        #[command(flatten)]
        at: WorkspaceTarget,
        /// New name
        #[arg(long, allow_hyphen_values = true)]
        name: Option<String>,
        /// New goal (`-` reads stdin)
        #[arg(long, allow_hyphen_values = true)]
        goal: Option<String>,
        /// Replace all rules; repeat the option for each new rule
        #[arg(long = "rule", value_name = "RULE", allow_hyphen_values = true)]
        rules: Vec<String>,
        /// Add a rule; repeatable
        #[arg(long = "add-rule", value_name = "RULE", allow_hyphen_values = true)]
        add_rules: Vec<String>,
        /// Remove the rule with this text; repeatable
        #[arg(long = "remove-rule", value_name = "RULE", allow_hyphen_values = true)]
        remove_rules: Vec<String>,
        /// Remove all rules
        #[arg(long, conflicts_with_all = ["rules", "remove_rules"])]
        no_rules: bool,
        /// Add a doc as `path: description`, or change the doc with the same path; prefix `[expired]`
        /// to mark it as outdated; repeatable
        #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
        docs: Vec<String>,
        /// Remove the doc with this path; repeatable
        #[arg(long = "remove-doc", value_name = "PATH", allow_hyphen_values = true)]
        remove_docs: Vec<String>,
        /// Language of texts for agents
        #[arg(long, value_name = "zh|en", value_parser = ["zh", "en"])]
        language: Option<String>,
        /// Whether secrets are masked in texts that agents write, and people are warned of them; only
        /// the user can change it
        #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
        secret_masking: Option<String>,
        #[command(flatten)]
        secrets: SecretsArg,
    },
    /// Archive a workspace, which makes it read-only
    Archive {
        #[command(flatten)]
        at: WorkspaceTarget,
    },
    /// Restore a workspace from the archive or the trash
    Restore {
        /// Workspace id
        #[arg(value_name = "WS")]
        id: String,
    },
    /// Move a workspace to the trash, where it is kept for 30 days
    Delete {
        /// Workspace id
        #[arg(value_name = "WS")]
        id: String,
        /// Delete a workspace with nodes without asking
        #[arg(long)]
        yes: bool,
    },
    /// Show, set or clear the focused node that is used outside agent sessions
    Focus {
        #[command(flatten)]
        at: WorkspaceArg,
        /// Node to focus [default: show the focused node]
        node: Option<String>,
        /// Clear the focus
        #[arg(long, conflicts_with = "node")]
        clear: bool,
    },
    /// Check the files of a workspace for damage; exit with status 1 if any remains
    Check {
        #[command(flatten)]
        at: WorkspaceTarget,
        /// Repair damage that can be fixed in only one way
        #[arg(long)]
        fix: bool,
    },
}

/// What happens to secrets in the texts of a command.
#[derive(Clone, Copy, Debug, Args)]
pub struct SecretsArg {
    /// Mask keys, tokens and passwords in the text [default: keep them and warn; always masked inside
    /// an agent's shell]
    #[arg(long)]
    pub mask_secrets: bool,
}

/// Selects a workspace by an argument or an option.
#[derive(Debug, Args)]
pub struct WorkspaceTarget {
    /// Workspace id [default: the bound workspace of the session, else the only active one of the
    /// project]
    #[arg(value_name = "WS")]
    pub id: Option<String>,
    /// Same as [WS]
    #[arg(long, short = 'w', value_name = "WS", conflicts_with = "id")]
    pub workspace: Option<String>,
}

impl WorkspaceTarget {
    pub fn get(&self) -> Option<&str> {
        self.id.as_deref().or(self.workspace.as_deref())
    }
}

/// Selects a node by an argument or an option.
#[derive(Debug, Args)]
#[group(skip)]
pub struct NodeTarget {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node id as shown by `tanmi tree`; required unless --node is given
    #[arg(value_name = "NODE", required_unless_present = "node")]
    pub id: Option<String>,
    /// Same as [NODE]
    #[arg(long, short = 'n', value_name = "NODE", conflicts_with = "id")]
    pub node: Option<String>,
}

impl NodeTarget {
    pub fn node(&self) -> &str {
        self.named().unwrap_or_default()
    }

    /// Returns the node that the user named. Some commands use the focused node otherwise.
    pub fn named(&self) -> Option<&str> {
        self.id.as_deref().or(self.node.as_deref())
    }
}

#[derive(Debug, Args)]
pub struct LogArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node id, or `workspace` for the log of the workspace [default: the focused node]
    #[arg(long, short = 'n', value_name = "NODE")]
    pub node: Option<String>,
    /// Log entry to add (`-` reads stdin) [default: show the log]
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Maximum number of log entries to show; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit::parse)]
    pub limit: usize,
    #[command(flatten)]
    pub secrets: SecretsArg,
}

#[derive(Debug, Args)]
pub struct ProblemArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node id, or `workspace` for the problem of the workspace [default: the focused node]
    #[arg(long, short = 'n', value_name = "NODE")]
    pub node: Option<String>,
    /// Description of the problem (`-` reads stdin) [default: show the problem]
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Next step towards a solution
    #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
    pub next_step: Option<String>,
    /// Clear the problem
    #[arg(long, conflicts_with_all = ["text", "next_step"])]
    pub clear: bool,
    #[command(flatten)]
    pub secrets: SecretsArg,
}

#[derive(Debug, Args)]
pub struct TreeArgs {
    #[command(flatten)]
    pub at: WorkspaceTarget,
    /// Only the nodes below this one
    #[arg(long, value_name = "NODE", default_value = "root")]
    pub parent: String,
    /// Only nodes with this status: pending, planning, monitoring, implementing, validating, completed,
    /// failed or cancelled; repeatable or comma-separated
    #[arg(long, value_delimiter = ',')]
    pub status: Vec<String>,
    /// Number of levels below the parent [default: all]
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
    /// Maximum number of nodes; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = limit::parse)]
    pub limit: usize,
}

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Bind a session to a workspace, so that hooks inject the context of the workspace
    #[command(after_help = examples::SESSION_BIND)]
    #[command(mut_arg("workspace", |arg| arg.help("Workspace id [default: the only active one of the project]")))]
    Bind {
        /// Session id [default: detected automatically inside an agent's shell]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        #[command(flatten)]
        at: WorkspaceArg,
        /// Node to focus
        #[arg(long, short = 'n', value_name = "NODE")]
        node: Option<String>,
    },
    /// Unbind a session
    Unbind {
        /// Session id [default: detected automatically inside an agent's shell]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// List sessions, most recently active first
    List {
        /// Only sessions bound to this workspace
        #[arg(long, short = 'w', value_name = "WS")]
        workspace: Option<String>,
        /// Only sessions whose agent is running
        #[arg(long)]
        live: bool,
        /// Only sessions bound to a workspace
        #[arg(long)]
        bound: bool,
        /// Maximum number of sessions; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = limit::parse)]
        limit: usize,
    },
    /// Show the binding of a session, or the workspaces it can be bound to
    Status {
        /// Session id [default: detected automatically inside an agent's shell]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// List all settings with their values and sources
    List,
    /// Show a setting
    Get {
        /// Name of the setting, as shown by `tanmi config list`
        key: String,
    },
    /// Change a setting
    #[command(after_help = examples::CONFIG_SET)]
    Set {
        /// Name of the setting, as shown by `tanmi config list`
        key: String,
        /// New value
        value: String,
        /// Change it for this project only; a project can turn features off, not on
        #[arg(long)]
        for_project: bool,
    },
    /// Remove a setting, so that its default applies again
    Unset {
        /// Name of the setting, as shown by `tanmi config list`
        key: String,
        /// Remove it from the settings of this project
        #[arg(long)]
        for_project: bool,
    },
}
