//! What can be typed after `tanmi node`.

use clap::{Args, Subcommand};

use super::{NodeTarget, WorkspaceArg};

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Create a node
    Create(NodeCreateArgs),
    /// Show one node
    Show {
        #[command(flatten)]
        at: NodeTarget,
    },
    /// List nodes in the order of the tree
    List {
        #[command(flatten)]
        at: WorkspaceArg,
        /// Only what is below this node
        #[arg(long, default_value = "root")]
        parent: String,
        /// Only these statuses; repeatable or separated by commas
        #[arg(long, value_delimiter = ',')]
        status: Vec<String>,
        /// Only those whose title has these words
        #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
        query: String,
        /// Levels below the parent
        #[arg(long)]
        depth: Option<usize>,
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Go on behind this node (`nextAfter` of the page before)
        #[arg(long)]
        after: Option<String>,
    },
    /// Change title, requirement, note, role, docs or isolation
    Update(NodeUpdateArgs),
    /// Move a node with everything below it
    Move {
        #[command(flatten)]
        at: NodeTarget,
        /// The new parent
        #[arg(long)]
        parent: String,
    },
    /// Move a node with everything below it to the trash
    Delete {
        #[command(flatten)]
        at: NodeTarget,
    },
    /// Take a step: start, submit, complete, fail, retry, reopen or cancel
    Transition(NodeTransitionArgs),
    /// Add, remove, expire or activate a reference to a node or document
    Reference {
        #[command(flatten)]
        at: NodeTarget,
        /// Node id or path of a document
        #[arg(long, allow_hyphen_values = true)]
        target: String,
        #[arg(long, allow_hyphen_values = true, default_value = "")]
        description: String,
        #[arg(long, conflicts_with_all = ["expire", "activate"])]
        remove: bool,
        #[arg(long, conflicts_with = "activate")]
        expire: bool,
        #[arg(long)]
        activate: bool,
    },
    /// Show what an agent at this node is told
    Context {
        #[command(flatten)]
        at: WorkspaceArg,
        /// Node id; the focused node if left out
        id: Option<String>,
        #[arg(long, short = 'n', value_name = "NODE", conflicts_with = "id")]
        node: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct NodeCreateArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Parent node
    #[arg(long, default_value = "root")]
    pub parent: String,
    /// planning (has children) or execution (is carried out)
    #[arg(long = "type")]
    pub kind: String,
    #[arg(long, allow_hyphen_values = true)]
    pub title: String,
    /// What has to be done (`-` reads standard input)
    #[arg(long, allow_hyphen_values = true, default_value = "")]
    pub requirement: String,
    /// info_collection, validation or summary
    #[arg(long)]
    pub role: Option<String>,
    #[arg(long, allow_hyphen_values = true, default_value = "")]
    pub note: String,
    /// A document as `path: description`; repeatable
    #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
    pub docs: Vec<String>,
    /// Keep the context of its ancestors away from it
    #[arg(long)]
    pub isolated: bool,
    /// Hash of the rules as you know them; checked if given
    #[arg(long)]
    pub rules_hash: Option<String>,
}

#[derive(Debug, Args)]
pub struct NodeUpdateArgs {
    #[command(flatten)]
    pub at: NodeTarget,
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    #[arg(long, allow_hyphen_values = true)]
    pub requirement: Option<String>,
    #[arg(long, allow_hyphen_values = true)]
    pub note: Option<String>,
    /// info_collection, validation, summary or none
    #[arg(long)]
    pub role: Option<String>,
    /// true or false
    #[arg(long)]
    pub isolated: Option<bool>,
    /// Add a document, or change the one of that path
    #[arg(long = "doc", value_name = "DOC", allow_hyphen_values = true)]
    pub docs: Vec<String>,
    #[arg(long = "remove-doc", value_name = "PATH", allow_hyphen_values = true)]
    pub remove_docs: Vec<String>,
}

#[derive(Debug, Args)]
pub struct NodeTransitionArgs {
    #[command(flatten)]
    pub at: NodeTarget,
    /// start, submit, complete, fail, retry, reopen or cancel
    #[arg(long)]
    pub action: String,
    /// What came of it; needed by complete, fail and cancel (`-` reads standard input)
    #[arg(long, allow_hyphen_values = true)]
    pub conclusion: Option<String>,
    /// Session that takes the step; known by itself inside an agent's shell
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The subagent that does it
    #[arg(long, value_name = "TYPE")]
    pub agent: Option<String>,
    /// Start it even if another session is at work on it
    #[arg(long)]
    pub force: bool,
}
