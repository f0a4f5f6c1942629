//! Arguments of the administration of a team: people, roles, projects, tokens and the audit.

use clap::{Args, Subcommand};
use tanmi_pg::AuditKind;

use super::examples;
use super::team::{DatabaseArgs, TeamProjectArgs};

const ROLES: [&str; 3] = ["reader", "member", "admin"];

/// Selects a team of the database.
#[derive(Debug, Args)]
pub struct TeamArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Name of the team [default: the only one]
    #[arg(long, value_name = "T")]
    pub team: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum PersonCommand {
    /// Add a person to the team, and to a project if a role is given
    Add {
        #[command(flatten)]
        team: TeamArgs,
        /// Name of the person
        name: String,
        /// Role of the person in the project
        #[arg(long, value_name = "ROLE", value_parser = ROLES)]
        role: Option<String>,
        /// Name of the project on the server [default: the only one]
        #[arg(long, value_name = "P", requires = "role")]
        project_name: Option<String>,
    },
    /// Disable a person; their tokens stop working within 5 seconds
    Disable {
        #[command(flatten)]
        team: TeamArgs,
        /// Name of the person
        name: String,
    },
    /// Enable a disabled person again
    Enable {
        #[command(flatten)]
        team: TeamArgs,
        /// Name of the person
        name: String,
    },
    /// List people with their roles
    List {
        #[command(flatten)]
        team: TeamArgs,
        /// List only the members of this project
        #[arg(long, value_name = "P")]
        project_name: Option<String>,
        /// List only people with this role in a project
        #[arg(long, value_name = "ROLE", value_parser = ROLES)]
        role: Option<String>,
        /// Maximum number of people; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = super::limit::parse)]
        limit: usize,
    },
}

#[derive(Debug, Subcommand)]
pub enum MemberCommand {
    /// Set the role of a person in a project, or remove the person from it
    Set {
        #[command(flatten)]
        project: TeamProjectArgs,
        /// Name of the person
        #[arg(long, value_name = "NAME")]
        person: String,
        /// Role of the person; `none` removes the person from the project
        #[arg(long, value_name = "ROLE", value_parser = ["reader", "member", "admin", "none"])]
        role: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// Add a project to the team
    Add {
        #[command(flatten)]
        team: TeamArgs,
        /// Name of the project
        name: String,
    },
    /// List the projects with their numbers of people and workspaces
    List {
        #[command(flatten)]
        team: TeamArgs,
        /// Maximum number of projects; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = super::limit::parse)]
        limit: usize,
    },
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it once; its person becomes a member with at least its role
    #[command(after_help = examples::TEAM_TOKEN_CREATE)]
    Create {
        #[command(flatten)]
        project: TeamProjectArgs,
        /// Name of the person
        #[arg(long, value_name = "NAME")]
        person: String,
        /// What the token allows: read, read and write, or manage people too
        #[arg(long, value_name = "ROLE", value_parser = ROLES)]
        role: String,
        /// What the token is for, such as the name of a machine
        #[arg(long, value_name = "TEXT", default_value = "")]
        name: String,
        /// Time until the token expires, such as 90d or 12h [default: never]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// Number of days until the token expires [default: never]
        #[arg(long, hide = true, conflicts_with = "expires", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
        /// Limit the token to this project [default: all projects of the person]
        #[arg(long)]
        this_project_only: bool,
    },
    /// List tokens without their secrets
    List {
        #[command(flatten)]
        database: DatabaseArgs,
        /// List only tokens of this person
        #[arg(long, value_name = "NAME")]
        person: Option<String>,
        /// List only tokens that are valid in this project
        #[arg(long, value_name = "P")]
        project_name: Option<String>,
        /// List only tokens that are neither expired nor revoked
        #[arg(long)]
        valid: bool,
        /// Maximum number of tokens; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = super::limit::parse)]
        limit: usize,
    },
    /// Revoke a token, or every token of a person
    #[command(group = clap::ArgGroup::new("which").required(true).args(["person", "id"]))]
    Revoke {
        #[command(flatten)]
        project: TeamProjectArgs,
        /// Name of the person
        #[arg(long, value_name = "NAME")]
        person: Option<String>,
        /// Id of the token, see `tanmi team token list`
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Replace a token by a new one with the same limits, and print it once
    Rotate {
        #[command(flatten)]
        database: DatabaseArgs,
        /// Id of the token, see `tanmi team token list`
        #[arg(long, value_name = "ID")]
        id: String,
        /// How long the old token stays valid, such as 24h; 0s ends it at once
        #[arg(long, value_name = "TIME", default_value = "24h")]
        overlap: String,
    },
}

#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Show only entries of this project
    #[arg(long, value_name = "P")]
    pub project_name: Option<String>,
    /// Show only what this person did, or what was done to them
    #[arg(long, value_name = "NAME")]
    pub person: Option<String>,
    /// Show only this kind of entry
    #[arg(long, value_name = "KIND", value_parser = AuditKind::WORDS.to_vec())]
    pub what: Option<String>,
    /// From this day on, or the last days, such as 2026-01-31 or 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Show only entries before the one with this id
    #[arg(long, value_name = "ID")]
    pub before: Option<String>,
    /// Maximum number of entries; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = super::limit::parse)]
    pub limit: usize,
}
