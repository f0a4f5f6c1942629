//! What the server of a team and its machines send each other below `/team/v1/{project}`, as JSON.
//!
//! The server side is in crates `pg` and `server`, the client side in crate `team`.

mod feed;
mod import;
mod memory;
mod person;
mod run;

pub use feed::{Beat, DocumentPage, FeedChange, FeedPage, FeedRequest, Identity, Positions, Present};
pub use import::{ImportAnswer, ImportRequest, ImportedWorkspace};
pub use memory::{MEMORY, MemoryAnswer, MemoryCommand, MemoryOutcome, MemoryRequest};
pub use person::{PERSON_MARK, person_of_holder};
pub use run::{Document, ProjectAnswer, ProjectCommand, ProjectRequest, RunAnswer, RunRequest};
