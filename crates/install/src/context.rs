//! Context that a host declares for its agents: one file built from what is there, and folders of users that are kept up to
//! date with it.

use std::path::{Component, Path, PathBuf};

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
    fn new(path: &Path, reason: impl Into<String>) -> Remark {
        Remark { path: path.display().to_string(), reason: reason.into() }
    }
}

/// A place below a folder that no link leads out of.
fn inside(base: &Path, rel: &str) -> Result<PathBuf, &'static str> {
    let mut path = base.to_owned();
    for part in Path::new(rel).components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(part) => path.push(part),
            _ => return Err("not a path inside of the folder"),
        }
        if tanmi_base::fs::is_link(&path) {
            return Err("a symbolic link; it could lead out of the folder");
        }
    }
    Ok(path)
}
