//! Arguments of the short commands: `tanmi status`, `start`, `done` and `fail`, and of `tanmi trash`.

use clap::{Args, Subcommand};

use super::{NodeTarget, NodeTransitionArgs, SecretsArg, WorkspaceArg, WorkspaceTarget};

#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub at: WorkspaceTarget,
}

/// The start of a node.
#[derive(Debug, Args)]
pub struct StepArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node: its id, the last four or more characters of it, or its title
    #[arg(value_name = "NODE")]
    pub id: String,
    #[command(flatten)]
    pub caller: CallerArgs,
}

/// Who performs an action on a node.
#[derive(Debug, Args)]
pub struct CallerArgs {
    /// Session that performs the action [default: detected automatically inside an agent's shell]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Act even if another running session holds the node
    #[arg(long)]
    pub force: bool,
}

/// An action that ends a node.
#[derive(Debug, Args)]
pub struct EndArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node: its id, the last four or more characters of it, or its title [default: the focused node]
    #[arg(value_name = "NODE")]
    pub id: Option<String>,
    /// Same as [NODE]
    #[arg(long, short = 'n', value_name = "NODE", conflicts_with = "id")]
    pub node: Option<String>,
    #[command(flatten)]
    pub caller: CallerArgs,
    /// Result of the node (`-` reads stdin) [default: asked for in a terminal]
    #[arg(long, short = 'c', value_name = "TEXT", allow_hyphen_values = true)]
    pub conclusion: Option<String>,
    #[command(flatten)]
    pub secrets: SecretsArg,
}

#[derive(Debug, Subcommand)]
pub enum TrashCommand {
    /// List workspaces and nodes that can be restored, the latest deletion first
    List {
        /// Only this workspace and its nodes
        #[arg(long, short = 'w', value_name = "WS")]
        workspace: Option<String>,
        /// Maximum number of entries; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = super::limit::parse)]
        limit: usize,
    },
}

impl StepArgs {
    /// Returns the arguments of `tanmi node transition` for the same action.
    pub fn into_transition(self, action: &str) -> NodeTransitionArgs {
        let StepArgs { at, id, caller } = self;
        caller.into_transition(action, NodeTarget { at, id: Some(id), node: None })
    }
}

impl EndArgs {
    /// See [`StepArgs::into_transition`].
    pub fn into_transition(self, action: &str) -> NodeTransitionArgs {
        let EndArgs { at, id, node, caller, conclusion, secrets } = self;
        let transition = caller.into_transition(action, NodeTarget { at, id, node });
        NodeTransitionArgs { conclusion, secrets, ..transition }
    }
}

impl CallerArgs {
    fn into_transition(self, action: &str, at: NodeTarget) -> NodeTransitionArgs {
        NodeTransitionArgs {
            at,
            action: action.to_owned(),
            conclusion: None,
            session: self.session,
            agent: None,
            force: self.force,
            secrets: SecretsArg { mask_secrets: false },
        }
    }
}
