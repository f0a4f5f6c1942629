//! Arguments of `tanmi team`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples;
use super::team_admin::{AuditArgs, MemberCommand, PersonCommand, ProjectCommand, TokenCommand};

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
    #[command(flatten)]
    Machine(MachineCommand),
    /// Create the schema, a project and its first admin, and print a token
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
    /// Upgrade the schema of the database to that of this program
    Upgrade {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print a link that opens the page of a team server once, within five minutes
    #[command(after_help = examples::TEAM_LOGIN)]
    Login {
        /// Address of the server, such as https://tanmi.example.org:7777
        #[arg(long)]
        url: String,
        /// File with the token (`-` reads stdin)
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
        /// Name of the project on the server [default: the only one]
        #[arg(long, value_name = "P")]
        project_name: Option<String>,
        /// Certificates that sign that of the server, as PEM [default: those of the system]
        #[arg(long, value_name = "FILE")]
        ca: Option<PathBuf>,
        /// Open the page in a browser, too
        #[arg(long)]
        open: bool,
    },
    /// Add, disable and list people
    #[command(subcommand)]
    Person(PersonCommand),
    /// Set the roles of people in projects
    #[command(subcommand)]
    Member(MemberCommand),
    /// Add and list projects
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Create, list, rotate and revoke the tokens of people
    #[command(subcommand)]
    Token(TokenCommand),
    /// Show who logged in and who changed people, roles, tokens and projects
    Audit(AuditArgs),
    /// Check the rows of projects against their documents
    Check {
        #[command(flatten)]
        database: DatabaseArgs,
        /// Check only this project
        #[arg(long, value_name = "P")]
        project_name: Option<String>,
    },
    /// Write a project to a new folder, in which tanmi can work
    #[command(after_help = examples::TEAM_EXPORT)]
    Export {
        #[command(flatten)]
        project: TeamProjectArgs,
        /// Folder to write; it must be empty or not exist
        dir: PathBuf,
    },
    /// Add the workspaces and the shared memory of a local project to a project on the server
    #[command(after_help = examples::TEAM_IMPORT)]
    Import {
        #[command(flatten)]
        project: TeamProjectArgs,
        /// Folder of the local project
        dir: PathBuf,
    },
}

// What a machine of the team does. Not a doc comment, which would become the description of `tanmi team`.
#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// Join a project of a team server with this folder
    #[command(after_help = examples::TEAM_JOIN)]
    Join(JoinArgs),
    /// Move this project with its workspaces and memory to a team server, and join it
    Push(JoinArgs),
    /// Write the project back into the files of this folder, and leave the team
    Leave {
        /// Drop writes that wait for the server
        #[arg(long)]
        discard: bool,
        /// Leave without asking
        #[arg(long)]
        yes: bool,
    },
    /// Send what waits for the server, and bring the replica of the project up to date
    Sync {
        /// Compare every document with the server
        #[arg(long)]
        check: bool,
    },
    /// Show server, person, connection and replica of this project
    Status,
    /// Show, retry and discard writes that wait for the server or that it refused
    #[command(subcommand)]
    Outbox(OutboxCommand),
}

#[derive(Debug, Subcommand)]
pub enum OutboxCommand {
    /// List writes that wait for the server and those that it refused
    List {
        /// Only those that wait, or only those that the server refused
        #[arg(long, value_name = "STATE", value_parser = ["queued", "undelivered"])]
        state: Option<String>,
        /// Maximum number of entries; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = super::limit::parse)]
        limit: usize,
    },
    /// Send refused writes again
    Retry {
        /// Ids of the writes [default: all that the server refused]
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Delete writes that were not delivered; they are lost
    Discard {
        /// Ids of the writes [default: all that the server refused]
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub struct JoinArgs {
    /// Address of the server, such as https://team.example.org
    /// [default: the one that .tanmi/team.json names, after confirmation]
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Name of the project on the server
    #[arg(long, value_name = "P", requires = "url")]
    pub project_name: Option<String>,
    /// File with the token, or - for stdin
    #[arg(long, value_name = "FILE")]
    pub token_file: std::path::PathBuf,
    /// File with the certificate of the authority of the server [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<std::path::PathBuf>,
    /// Name of this machine, as others see it [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// Use the server and the project that .tanmi/team.json names
    #[arg(long)]
    pub yes: bool,
}
