//! Installs hooks, the MCP server and the guide into the files of clients, and uninstalls them.
//!
//! The files belong to the user: all other content stays unchanged byte for byte. A change that is not safe is refused,
//! with the line that prevents it. The recipes of the clients come from `tanmi_platform`. Workspaces and memory are out
//! of scope.

use std::path::PathBuf;

use tanmi_base::Lang;

mod apply;
mod command;
pub mod context;
mod doc;
mod folders;
pub mod guide;
mod hooks;
mod json;
mod links;
mod permissions;
mod plan;
pub mod plugin;
pub mod probe;
mod receipt;
mod status_line;
#[cfg(test)]
mod tests;
mod toml;

pub use apply::{AppliedChange, apply, remove};
pub use command::{TanmiCommand, find_self, parse_tanmi_command, quote};
pub use folders::{Folders, GuideFile};
pub use links::check_links;
pub use plan::{
    ChangeOutcome, ConfigPart, InstallOptions, InstalledState, PlannedChange, TargetFile, inspect, plan,
    plan_removal, snippet, target_files,
};
pub use receipt::Receipts;

/// Why a file is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The file cannot be parsed.
    Broken {
        line: usize,
        column: usize,
        message: String,
    },
    /// A value has another type than the client expects.
    WrongType {
        line: usize,
        key: String,
        expected: &'static str,
    },
    /// A key occurs twice, and which one is used depends on the client.
    Twice {
        line: usize,
        key: String,
    },
    /// The guide was edited: it contains other text, or a part of it is missing.
    Edited {
        line: usize,
    },
    /// Another program uses our key.
    NameTaken {
        line: usize,
        key: String,
    },
    ReadOnly,
    NotUtf8,
    TooLarge,
    BrokenLink,
    /// A symbolic link in the project leads to a file elsewhere.
    LeavesProject {
        link: PathBuf,
        to: PathBuf,
    },
    NotAFile,
    /// A file with the name of our guide, which tanmi did not write.
    ForeignFile,
    /// Another process changed the file at every attempt to write it.
    KeepsChanging,
    /// The file system returned an error.
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

    /// Returns why the file is left unchanged, and what to do about it.
    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            Refusal::Broken { column, message, .. } => {
                return lang.pick(
                    format!("无法解析（第 {column} 列：{message}）；请先修正该文件"),
                    format!("cannot parse the file (column {column}: {message}); fix it first"),
                );
            }
            Refusal::WrongType { key, expected, .. } if key.is_empty() => {
                return lang.pick(
                    format!("文件内容应为{}；请先修正该文件", type_zh(expected)),
                    format!("the file must contain {expected}; fix it first"),
                );
            }
            Refusal::WrongType { key, expected, .. } => {
                return lang.pick(
                    format!("`{key}` 应为{}；请先修正该文件", type_zh(expected)),
                    format!("`{key}` must be {expected}; fix it first"),
                );
            }
            Refusal::Twice { key, .. } => {
                return lang.pick(
                    format!("`{key}` 重复出现；请先合并"),
                    format!("`{key}` occurs twice; merge the entries first"),
                );
            }
            Refusal::NameTaken { key, .. } => {
                return lang.pick(
                    format!("`{key}` 已被其他程序使用；请先改名或删除它"),
                    format!("`{key}` is used by another program; rename or remove it first"),
                );
            }
            Refusal::LeavesProject { link, to } => {
                let (link, to) = (link.display(), to.display());
                return lang.pick(
                    format!("符号链接 {link} 指向项目之外的 {to}；请删除该链接，或用文件代替它"),
                    format!("the symbolic link {link} leads out of the project, to {to}; remove the link, or replace it with a file"),
                );
            }
            Refusal::Unusable(reason) => return reason.clone(),
            Refusal::Edited { .. } => (
                "tanmi 写入的使用指南已被修改；请移走你的内容，然后删除这一段",
                "the guide that tanmi wrote has been edited; move your text elsewhere, then delete the guide",
            ),
            Refusal::ReadOnly => (
                "文件只读；请改为可写，或手动加入 `tanmi install --print` 的输出",
                "the file is read-only; make it writable, or add the output of `tanmi install --print` by hand",
            ),
            Refusal::NotUtf8 => {
                ("文件不是有效的 UTF-8；请先转换编码", "the file is not valid UTF-8; convert it first")
            }
            Refusal::TooLarge => ("文件过大（上限 64 MiB）", "the file is too large (the limit is 64 MiB)"),
            Refusal::BrokenLink => (
                "符号链接的目标不存在；请先修正或删除它",
                "the symbolic link is broken; fix or remove it first",
            ),
            Refusal::NotAFile => ("不是普通文件", "not a regular file"),
            Refusal::ForeignFile => (
                "已有同名文件，但不是 tanmi 写入的；请先改名",
                "a file with this name exists, and tanmi did not write it; rename it first",
            ),
            Refusal::KeepsChanging => (
                "文件不断被修改；请关闭使用它的智能体，然后重试",
                "the file keeps changing; close the agent that uses it, then retry",
            ),
        };
        lang.pick(zh, en).to_owned()
    }
}

fn type_zh(expected: &str) -> &str {
    match expected {
        "an object" => "对象",
        "a list" => "列表",
        "a table" => "表",
        other => other,
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    #[error("the symbolic link {link} leads out of the project, to {to}")]
    LeavesProject { link: PathBuf, to: PathBuf },
    #[error("another tanmi process is changing the configuration files of agents")]
    Busy,
}

impl Error {
    fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |error| Error::Io { path: path.to_owned(), error }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
