//! Puts hooks, the MCP server and the guide into agents' own files, and takes them out again. The files are people's:
//! what is not ours stays as it is, byte by byte; what cannot be done safely is refused with the line it stands in.
//!
//! What an agent's files look like is data, in [`agent`]. Nothing here knows workspaces or memory.

use std::path::PathBuf;

use tanmi_base::Lang;

pub mod agent;
mod apply;
mod command;
pub mod context;
mod doc;
pub mod guide;
mod hooks;
mod json;
mod plan;
pub mod plugin;
pub mod probe;
mod receipt;
mod status_line;
#[cfg(test)]
mod tests;
mod toml;

pub use agent::{AGENTS, Agent, Scope};
pub use apply::{AppliedChange, apply, remove};
pub use command::{TanmiCommand, find_self, parse_tanmi_command, quote};
pub use plan::{
    ChangeOutcome, ConfigPart, InstallOptions, InstalledState, PlannedChange, TargetFile, inspect, plan,
    plan_removal, snippet, target_files,
};
pub use receipt::Receipts;

/// Why a file is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be understood.
    Broken {
        line: usize,
        column: usize,
        message: String,
    },
    /// A key has a value of another type than its client knows.
    WrongType {
        line: usize,
        key: String,
        expected: &'static str,
    },
    /// A key is there twice, and which of them counts is up to its client.
    Twice {
        line: usize,
        key: String,
    },
    /// Our guide, with something of a person's in it or half of it gone.
    Edited {
        line: usize,
    },
    /// Somebody else's server has our name.
    NameTaken {
        line: usize,
        key: String,
    },
    ReadOnly,
    NotUtf8,
    TooLarge,
    /// A link to nowhere, a folder, or a file that kept changing.
    Unusable(String),
}

impl Refusal {
    pub fn line(&self) -> Option<usize> {
        match self {
            Refusal::Broken { line, .. }
            | Refusal::WrongType { line, .. }
            | Refusal::Twice { line, .. }
            | Refusal::Edited { line }
            | Refusal::NameTaken { line, .. } => Some(*line),
            _ => None,
        }
    }

    pub fn message(&self, lang: Lang) -> String {
        match self {
            Refusal::Broken { column, message, .. } => lang.pick(
                format!("无法解析（第 {column} 列：{message}）；请先修正该文件"),
                format!("it cannot be understood (column {column}: {message}); mend it first"),
            ),
            Refusal::WrongType { key, expected, .. } if key.is_empty() => lang.pick(
                format!("文件整体应为 {expected}；请先修正"),
                format!("the whole file should be {expected}; mend it first"),
            ),
            Refusal::WrongType { key, expected, .. } => lang.pick(
                format!("`{key}` 应为 {expected}；请先修正"),
                format!("`{key}` should be {expected}; mend it first"),
            ),
            Refusal::Twice { key, .. } => lang.pick(
                format!("`{key}` 出现两次；请先合并"),
                format!("`{key}` is there twice; make it one first"),
            ),
            Refusal::Edited { .. } => lang.pick(
                String::from("tanmi 写的指南被改动过；请手动取走你的内容并删除这一段"),
                String::from("the guide that tanmi wrote was changed; take out what is yours and delete the rest by hand"),
            ),
            Refusal::NameTaken { key, .. } => lang.pick(
                format!("`{key}` 已被其他程序使用；请先改名或删除它"),
                format!("`{key}` belongs to another program; rename or remove it first"),
            ),
            Refusal::ReadOnly => lang.pick(
                String::from("文件只读；请先改为可写，或用 `tanmi install --print` 手动加入"),
                String::from("it is read-only; make it writable, or add what `tanmi install --print` shows"),
            ),
            Refusal::NotUtf8 => {
                let zh = String::from("不是 UTF-8 文本；请先转换编码");
                lang.pick(zh, String::from("it is not UTF-8 text; convert it first"))
            }
            Refusal::TooLarge => lang.pick(String::from("文件过大"), String::from("it is too large")),
            Refusal::Unusable(reason) => reason.clone(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    #[error("another tanmi is installing right now")]
    Busy,
}

impl Error {
    fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |error| Error::Io { path: path.to_owned(), error }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
