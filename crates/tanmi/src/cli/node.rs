//! Arguments of `tanmi node`.

use clap::{Args, Subcommand};

use super::{NodeTarget, SecretsArg, WorkspaceArg, examples};

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Create a node
    #[command(after_help = examples::NODE_CREATE)]
    Create(NodeCreateArgs),
    /// Show a node
    Show {
        #[command(flatten)]
        at: NodeTarget,
    },
    /// List nodes in tree order
    List {
        #[command(flatten)]
        at: WorkspaceArg,
        /// Only the nodes below this one
        #[arg(long, value_name = "NODE", default_value = "root")]
        parent: String,
        /// Only nodes with this status: pending, planning, monitoring, implementing, validating,
        /// completed, failed or cancelled; repeatable or comma-separated
        #[arg(long, value_delimiter = ',')]
        status: Vec<String>,
        /// Only nodes whose title contains all of these words
        #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
        query: String,
        /// Number of levels below the parent [default: all]
        #[arg(long, value_name = "N")]
        depth: Option<usize>,
        /// Maximum number of nodes; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = super::limit::parse)]
        limit: usize,
        /// Continue after this node; the previous page names it (`nextAfter` in JSON)
        #[arg(long, value_name = "NODE")]
        after: Option<String>,
    },
    /// Edit the title, requirement, note, role, docs or isolation of a node
    Update(NodeUpdateArgs),
    /// Move a node and its descendants to another parent or place
    #[command(after_help = examples::NODE_MOVE)]
    #[command(override_usage = "tanmi node move [OPTIONS] [NODE] (--parent|--before|--after) <NODE>")]
    #[command(group(clap::ArgGroup::new("place").args(["parent", "before", "after"]).required(true)))]
    Move {
        #[command(flatten)]
        at: NodeTarget,
        /// New parent node; required unless --before or --after is given
        #[arg(long, value_name = "NODE")]
        parent: Option<String>,
        /// Place the node before this one
        #[arg(long, value_name = "NODE")]
        before: Option<String>,
        /// Place the node after this one
        #[arg(long, value_name = "NODE")]
        after: Option<String>,
    },
    /// Restore a deleted node and its descendants from the trash
    Restore {
        #[command(flatten)]
        at: NodeTarget,
    },
    /// Move a node and its descendants to the trash
    Delete {
        #[command(flatten)]
        at: NodeTarget,
        /// Delete a node that has children without asking
        #[arg(long)]
        yes: bool,
        /// Delete the node even if another running session holds it or a descendant
        #[arg(long)]
        force: bool,
    },
    /// Change the status of a node through an action
    #[command(after_help = examples::NODE_TRANSITION)]
    Transition(NodeTransitionArgs),
    /// Add, remove, expire or activate a reference to a node or doc
    Reference {
        #[command(flatten)]
        at: NodeTarget,
        /// Node id or doc path that the reference points to
        #[arg(long, allow_hyphen_values = true)]
        target: String,
        /// Description of a new reference
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        #[arg(default_value = "", hide_default_value = true)]
        description: String,
        /// Remove the reference
        #[arg(long, conflicts_with_all = ["expire", "activate"])]
        remove: bool,
        /// Mark the reference as expired
        #[arg(long, conflicts_with = "activate")]
        expire: bool,
        /// Mark an expired reference as active again
        #[arg(long)]
        activate: bool,
        #[command(flatten)]
        secrets: SecretsArg,
    },
    /// Add or remove dependencies: nodes that must be completed before a node can start
    #[command(after_help = examples::NODE_DEPEND)]
    Depend {
        #[command(flatten)]
        at: NodeTarget,
        /// Node that must be completed first; repeatable or comma-separated
        #[arg(long, value_name = "NODE", value_delimiter = ',', required = true)]
        on: Vec<String>,
        /// Remove the dependencies instead of adding them
        #[arg(long)]
        remove: bool,
    },
    /// Show the text that a session with this focus receives at its start
    Context {
        #[command(flatten)]
        at: WorkspaceArg,
        /// Node id [default: the focused node]
        #[arg(value_name = "NODE")]
        id: Option<String>,
        /// Same as [NODE]
        #[arg(long, short = 'n', value_name = "NODE", conflicts_with = "id")]
        node: Option<String>,
        /// Show the text for this session (see `tanmi session list`)
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct NodeCreateArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Parent node
    #[arg(long, value_name = "NODE", default_value = "root")]
    pub parent: String,
    /// planning (groups child nodes) or execution (one task)
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: String,
    /// Title of the node
    #[arg(long, allow_hyphen_values = true)]
    pub title: String,
    /// What has to be done (`-` reads stdin)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(default_value = "", hide_default_value = true)]
    pub requirement: String,
    /// Role of the node: info_collection (its conclusion adds rules and docs to the workspace),
    /// validation or summary (labels that custom rules can read)
    #[arg(long)]
    pub role: Option<String>,
    /// Note on the node
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(default_value = "", hide_default_value = true)]
    pub note: String,
    /// Doc of the node as `path: description`; repeatable
    #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
    pub docs: Vec<String>,
    /// Isolate the node: it does not receive its ancestors' context
    #[arg(long)]
    pub isolated: bool,
    /// Fail if the workspace rules have changed: the hash that `tanmi workspace show` prints after
    /// “Rules”
    #[arg(long, value_name = "HASH")]
    pub rules_hash: Option<String>,
    #[command(flatten)]
    pub secrets: SecretsArg,
}

#[derive(Debug, Args)]
pub struct NodeUpdateArgs {
    #[command(flatten)]
    pub at: NodeTarget,
    /// New title
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    /// New requirement (`-` reads stdin)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub requirement: Option<String>,
    /// New note (`-` reads stdin)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
    /// New role: info_collection, validation, summary, or none to remove it
    #[arg(long)]
    pub role: Option<String>,
    /// Whether the node is isolated from its ancestors' context
    #[arg(long, value_name = "BOOL")]
    pub isolated: Option<bool>,
    /// Add a doc as `path: description`, or change the doc with the same path; repeatable
    #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
    pub docs: Vec<String>,
    /// Remove the doc with this path; repeatable
    #[arg(long = "remove-doc", value_name = "PATH", allow_hyphen_values = true)]
    pub remove_docs: Vec<String>,
    #[command(flatten)]
    pub secrets: SecretsArg,
}

#[derive(Debug, Args)]
pub struct NodeTransitionArgs {
    #[command(flatten)]
    pub at: NodeTarget,
    /// start, submit, complete, fail, retry, reopen or cancel
    #[arg(long)]
    pub action: String,
    /// Result of the node; required by complete, fail and cancel (`-` reads stdin)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub conclusion: Option<String>,
    /// Session that performs the action [default: detected automatically inside an agent's shell]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Type of the subagent that works on the node, such as Explore
    #[arg(long, value_name = "TYPE")]
    pub agent: Option<String>,
    /// Act even if another running session holds the node, or, for start, its dependencies are not completed
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub secrets: SecretsArg,
}
