//! The workspaces and the memory of a team in PostgreSQL. [`PgStore`] and [`PgMemory`] implement the
//! interfaces that the stores in files implement, so everything above works on either.
//!
//! A node is a row with its Markdown document and columns derived from it. A write locks the stream of its
//! workspace, takes the next sequence number and records the documents it wrote, so the changes of a
//! workspace have one order without gaps. Writes within a transaction are collected and sent as one
//! statement, and the nodes that a command names are read with one: every round trip makes all writers of the
//! workspace wait.
//!
//! This crate and `server` are the only ones that link an async runtime: the driver needs one. Calls block,
//! for a limited time.

mod address;
mod audit;
mod check;
mod connection;
mod contributions;
mod error;
mod feed;
mod flush;
mod memory;
mod people;
mod pool;
mod presence;
mod project_run;
mod replica;
mod retention;
mod rows;
mod run;
mod schema;
mod sessions;
mod snapshot;
mod store;
mod tls;
mod transfer;
mod tx;

pub use address::{Address, find_password};
pub use audit::{AuditEntry, AuditEvent, AuditFilter, AuditKind};
pub use check::ProjectFinding;
pub use contributions::{Contribution, ContributionFilter, Contributions, Moment};
pub use error::{DatabaseError, DatabaseTrouble};
pub use memory::PgMemory;
pub use memory::transfer::ImportedLines;
pub use people::{
    Access, AddedPerson, AdminError, Administrator, Caller, IssuedToken, NewToken, People, PersonEntry,
    ProjectEntry, Role, TeamFilter, TokenEntry, TokenFilter, is_valid_name, token_id,
};
pub use pool::Pool;
pub use pool::logins::{COOKIE_LIFETIME, TICKET_LIFETIME};
pub use pool::status::PoolStatus;
pub use presence::Presence;
pub use retention::{Expired, RETENTION};
pub use run::{LEASE, Leases, RunError};
pub use schema::{APP_ROLE, VERSION, create_project, migrate, projects};
pub use store::PgStore;
pub use transfer::{WorkspacePresence, check_documents};
