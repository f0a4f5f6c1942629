//! The declared context: builds its file from agents, skills and commands, and provisions the folders of users.

use std::path::{Component, Path, PathBuf};

use tanmi_base::Bilingual;

mod build;
mod item;
mod manifest;
mod provision;

pub use build::{BuiltContext, build};
pub use manifest::BuildManifest;
pub use provision::{ProvisionOptions, ProvisionReport, check_user, provision, users};

/// A path that was skipped or left unchanged, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Notice {
    pub path: String,
    /// The 1-based line; 0 if it is unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: usize,
    /// JSON has the English text.
    #[serde(serialize_with = "english")]
    pub reason: Bilingual,
}

fn is_zero(line: &usize) -> bool {
    *line == 0
}

fn english<S: serde::Serializer>(text: &Bilingual, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text.en)
}

/// A text in Chinese and in English.
pub type TextPair = (&'static str, &'static str);

const SYMLINK: TextPair = ("符号链接不会被读取", "symbolic links are not followed");
const NOT_UTF8: TextPair = ("不是 UTF-8 文本", "not UTF-8 text");

impl Notice {
    fn new(path: &Path, (zh, en): (impl Into<String>, impl Into<String>)) -> Notice {
        Notice { path: path.display().to_string(), line: 0, reason: Bilingual::new(zh, en) }
    }

    /// Returns the path with the line, if that is known.
    pub fn place(&self) -> String {
        if self.line == 0 { self.path.clone() } else { format!("{}:{}", self.path, self.line) }
    }

    /// Returns a notice with the message of the system or a parser, which exists in English only.
    fn from_error(path: &Path, error: impl std::fmt::Display) -> Notice {
        Notice::new(path, (error.to_string(), error.to_string()))
    }
}

/// Returns the path of `rel` below `base`. Refuses paths that could lead out of `base`.
fn inside(base: &Path, rel: &str) -> Result<PathBuf, TextPair> {
    let mut path = base.to_owned();
    for part in Path::new(rel).components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(part) => path.push(part),
            _ => return Err(("路径不在该文件夹内", "the path is not inside the folder")),
        }
        if tanmi_base::fs::is_link(&path) {
            return Err(("符号链接可能指向文件夹之外", "a symbolic link could lead out of the folder"));
        }
    }
    Ok(path)
}
