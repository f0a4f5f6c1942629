//! Arguments of the short commands: `tanmi status`, `start`, `done` and `fail`, and of `tanmi trash`.

use clap::{Args, Subcommand};

use super::{NodeTarget, NodeTransitionArgs, SecretsArg, WorkspaceArg, WorkspaceTarget};

#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub at: WorkspaceTarget,
}

/// An action on one node.
#[derive(Debug, Args)]
pub struct StepArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Node: its id, the last four or more characters of it, or its title
    #[arg(value_name = "NODE")]
    pub node: String,
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
    pub step: StepArgs,
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
        /// Maximum number of entries
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
}

impl StepArgs {
    /// Returns the arguments of `tanmi node transition` for the same action.
    pub fn into_transition(self, action: &str) -> NodeTransitionArgs {
        NodeTransitionArgs {
            at: NodeTarget { at: self.at, id: Some(self.node), node: None },
            action: action.to_owned(),
            conclusion: None,
            session: self.session,
            agent: None,
            force: self.force,
            secrets: SecretsArg { mask_secrets: false },
        }
    }
}

impl EndArgs {
    /// See [`StepArgs::into_transition`].
    pub fn into_transition(self, action: &str) -> NodeTransitionArgs {
        let EndArgs { step, conclusion, secrets } = self;
        NodeTransitionArgs { conclusion, secrets, ..step.into_transition(action) }
    }
}
