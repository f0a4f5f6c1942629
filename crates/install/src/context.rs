//! Context that a host declares for its agents: one file built from what is there, and folders of users that are kept up to
//! date with it.

use std::path::{Component, Path, PathBuf};

mod build;
mod item;
mod manifest;
mod provision;

pub use build::{Built, build};
pub use manifest::BuildManifest;
pub use provision::{ProvisionOptions, ProvisionReport, check_user, provision, users};

/// Something that was left out or left alone, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Notice {
    pub path: String,
    pub reason: String,
}

impl Notice {
    fn new(path: &Path, reason: impl Into<String>) -> Notice {
        Notice { path: path.display().to_string(), reason: reason.into() }
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
