//! Arguments of `tanmi plan` and `tanmi next`.

use std::path::PathBuf;

use clap::Args;

use super::{SecretsArg, WorkspaceArg};

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Outline to read (`-` reads stdin); required unless --export is given
    #[arg(value_name = "FILE", required_unless_present = "export")]
    pub file: Option<PathBuf>,
    /// Node to create the nodes below
    #[arg(long, value_name = "NODE", default_value = "root")]
    pub parent: String,
    /// Fail if the workspace rules have changed: the hash that `tanmi workspace show` prints after
    /// “Rules”
    #[arg(long, value_name = "HASH")]
    pub rules_hash: Option<String>,
    /// Print this node and its descendants as an outline [default: all nodes]
    #[arg(long, value_name = "NODE", num_args = 0..=1, default_missing_value = "root")]
    #[arg(conflicts_with_all = ["file", "rules_hash"])]
    pub export: Option<String>,
    #[command(flatten)]
    pub secrets: SecretsArg,
}

#[derive(Debug, Args)]
pub struct NextArgs {
    #[command(flatten)]
    pub at: WorkspaceArg,
    /// Claim and start the first node; exit with status 1 if there is none
    #[arg(long)]
    pub start: bool,
    /// Maximum number of nodes; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = super::limit::parse, conflicts_with = "start")]
    pub limit: usize,
    /// Session that starts the node [default: detected automatically inside an agent's shell]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}
