//! Arguments of `tanmi team`.

use clap::{Args, Subcommand};

use super::examples;

#[derive(Debug, Args)]
pub struct DatabaseArgs {
    /// Address of the database, such as postgres://tanmi@db.example.org/tanmi
    /// [default: the variable TANMI_DATABASE_URL]
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
}

/// Selects a project of a team.
#[derive(Debug, Args)]
pub struct TeamProjectArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Name of the project on the server [default: the only one]
    #[arg(long, value_name = "P")]
    pub project_name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum TeamCommand {
    /// Create or upgrade the schema, a project and its first admin, and print a token
    #[command(after_help = examples::TEAM_SETUP)]
    Setup {
        #[command(flatten)]
        database: DatabaseArgs,
        /// Name of the team
        #[arg(long, value_name = "T")]
        team: String,
        /// Name of the project on the server
        #[arg(long, value_name = "P")]
        project_name: String,
        /// Name of the first admin
        #[arg(long, value_name = "NAME")]
        admin: String,
    },
    /// Create and revoke the tokens of people
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it once; its person becomes a member with at least its role
    Create {
        #[command(flatten)]
        project: TeamProjectArgs,
        /// Name of the person
        #[arg(long, value_name = "NAME")]
        person: String,
        /// What the token allows: read, read and write, or manage people too
        #[arg(long, value_name = "ROLE", value_parser = ["reader", "member", "admin"])]
        role: String,
        /// Number of days until the token expires [default: never]
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
    },
    /// Revoke every token of a person
    Revoke {
        #[command(flatten)]
        project: TeamProjectArgs,
        /// Name of the person
        #[arg(long, value_name = "NAME")]
        person: String,
    },
}
