//! Context that a host declares for its agents: one file built from what is there, and folders of users that are kept up to
//! date with it.

mod build;
mod matter;
mod provision;
mod recipe;

pub use build::{Built, build};
pub use provision::{Job, Report, check_user, provision, users};
pub use recipe::Recipe;

/// Something that was left out or left alone, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Remark {
    pub path: String,
    pub reason: String,
}

impl Remark {
    fn new(path: &std::path::Path, reason: impl Into<String>) -> Remark {
        Remark { path: path.display().to_string(), reason: reason.into() }
    }
}
