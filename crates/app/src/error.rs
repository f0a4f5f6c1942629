//! The errors of the use cases: those of workspaces and nodes, and those of lookup, memory and configuration.

use std::path::PathBuf;

use serde_json::{Value, json};
use tanmi_base::{Bilingual, Interface, Lang};
use tanmi_memory::anchors::PathProblem;
use tanmi_workspace::error::UnavailableCause;
use tanmi_workspace::model::WorkspaceId;

use crate::masking::FoundSecret;

mod hints;
mod options;
mod team;
#[cfg(test)]
mod tests;

pub use team::TeamProblem;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A text in Chinese and in English.
type Texts = (String, String);

fn texts(zh: impl Into<String>, en: impl Into<String>) -> Texts {
    (zh.into(), en.into())
}

#[derive(Debug, thiserror::Error)]
#[error("{}", self.message(Lang::En))]
pub enum Error {
    Domain(#[from] tanmi_workspace::Error),
    /// The static embedding model that the user added cannot be used.
    Model {
        dir: PathBuf,
        reason: Bilingual,
    },
    MemoryNotFound {
        id: String,
    },
    /// The memory is forgotten, or superseded by another one.
    NotCurrent {
        id: String,
        by: String,
    },
    /// An opinion or a turn of a conversation, which the memory of a team does not take.
    PrivateMemory {
        id: String,
    },
    /// Only facts can be edited.
    NotAFact {
        id: String,
    },
    /// The file is not a dictionary of a known format.
    NotALexicon {
        path: PathBuf,
    },
    /// No dictionary has this name. `known` are the names of all.
    LexiconNotFound {
        name: String,
        known: Vec<String>,
    },
    /// A fact can only name files of its project.
    BadFactPath {
        path: String,
        problem: PathProblem,
    },
    /// The settings turn memory off.
    MemoryOff,
    /// The ledger does not hold the text, or no longer holds it.
    TextNotFound {
        digest: String,
    },
    NoWorkspace {
        project: PathBuf,
        /// The archived workspace that was changed last.
        archived: Option<(WorkspaceId, String)>,
    },
    AmbiguousWorkspace {
        candidates: Vec<(WorkspaceId, String)>,
    },
    /// A part of an id or a title stands for several things: ids with titles.
    AmbiguousId {
        field: &'static str,
        named: String,
        candidates: Vec<(String, String)>,
    },
    /// A call names no node, and no node is focused.
    NoFocus {
        workspace: WorkspaceId,
    },
    /// Neither the caller nor its environment names the session.
    NoSession,
    /// The client process has several live sessions.
    AmbiguousSession {
        candidates: Vec<String>,
    },
    NothingToChange,
    /// A text contains secrets, and the user has not decided about them.
    SecretsFound {
        secrets: Vec<FoundSecret>,
    },
    /// An agent tried to change a setting that protects the user.
    UserDecides {
        setting: &'static str,
    },
    /// An error in the content of a file.
    InFile {
        path: PathBuf,
        error: Box<Error>,
    },
    /// The user named no agent, and none was detected.
    NoAgents {
        known: Vec<&'static str>,
    },
    NoHome,
    /// Another process is changing the configuration files of agents.
    Installing,
    /// A symbolic link in the project leads to a file elsewhere.
    LinkLeavesProject {
        link: PathBuf,
        to: PathBuf,
    },
    /// The user has to confirm, but there is no terminal to ask in.
    NeedsYes {
        what: Value,
    },
    UnknownKey {
        key: String,
        near: Option<&'static str>,
    },
    BadValue {
        key: &'static str,
        value: String,
        expected: String,
    },
    /// A project can only turn features off.
    NotForProjects {
        key: &'static str,
    },
    BadFile {
        path: PathBuf,
        line: usize,
        reason: Bilingual,
    },
    /// The user did not agree to the content of a file of the project, so it does not count.
    NotAgreed {
        path: PathBuf,
        /// Whether the user agreed to other content before.
        is_changed: bool,
    },
    /// A command about the team of a project that does not fit its state.
    Team(TeamProblem),
}

impl Error {
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Domain(tanmi_workspace::Error::io(path)(source))
    }

    /// Builds a [`Error::BadValue`] that quotes the value in short form.
    pub(crate) fn bad_value(key: &'static str, value: &str, expected: String) -> Error {
        let value = tanmi_base::text::fit(&tanmi_base::text::one_line(value), 60);
        Error::BadValue { key, value, expected }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Error::Domain(error) => error.code(),
            Error::Model { .. } => "MODEL",
            Error::MemoryNotFound { .. } => "MEMORY_NOT_FOUND",
            Error::NotALexicon { .. } => "NOT_A_LEXICON",
            Error::LexiconNotFound { .. } => "LEXICON_NOT_FOUND",
            Error::NotAFact { .. } => "NOT_A_FACT",
            Error::NotCurrent { .. } => "NOT_CURRENT",
            Error::PrivateMemory { .. } => "PRIVATE_MEMORY",
            Error::BadFactPath { .. } => "INVALID_ARGUMENT",
            Error::MemoryOff => "MEMORY_OFF",
            Error::TextNotFound { .. } => "TEXT_NOT_FOUND",
            Error::NoWorkspace { .. } => "NO_WORKSPACE",
            Error::AmbiguousWorkspace { .. } => "AMBIGUOUS_WORKSPACE",
            Error::AmbiguousId { .. } => "AMBIGUOUS_ID",
            Error::NoFocus { .. } => "NO_FOCUS",
            Error::NoSession => "NO_SESSION",
            Error::AmbiguousSession { .. } => "AMBIGUOUS_SESSION",
            Error::NothingToChange => "NOTHING_TO_CHANGE",
            Error::SecretsFound { .. } => "SECRETS_FOUND",
            Error::UserDecides { .. } => "USER_DECIDES",
            Error::InFile { error, .. } => error.code(),
            Error::NoAgents { .. } => "NO_AGENTS",
            Error::NoHome => "NO_HOME",
            Error::Installing => "BUSY",
            Error::LinkLeavesProject { .. } => "LINK_LEAVES_PROJECT",
            Error::NeedsYes { .. } => "CONFIRMATION_REQUIRED",
            Error::UnknownKey { .. } => "UNKNOWN_KEY",
            Error::BadValue { .. } => "INVALID_ARGUMENT",
            Error::NotForProjects { .. } => "NOT_FOR_PROJECTS",
            Error::BadFile { .. } => "FILE_DAMAGED",
            Error::NotAgreed { .. } => "NOT_TRUSTED",
            Error::Team(problem) => problem.code(),
        }
    }

    pub fn field(&self) -> Option<&str> {
        match self {
            Error::Domain(error) => error.field(),
            Error::NoWorkspace { .. } | Error::AmbiguousWorkspace { .. } => Some("workspaceId"),
            Error::NoFocus { .. } => Some("nodeId"),
            Error::NoSession | Error::AmbiguousSession { .. } => Some("sessionId"),
            Error::AmbiguousId { field, .. } => Some(field),
            Error::BadValue { key, .. } | Error::NotForProjects { key } => Some(key),
            Error::UserDecides { setting } => Some(setting),
            Error::SecretsFound { secrets } => secrets.first().map(|secret| secret.field),
            _ => None,
        }
    }

    /// Returns what is wrong and why, in one sentence.
    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            Error::Domain(error) => return error.message(lang),
            Error::InFile { path, error } => {
                return format!("{}{}{}", path.display(), lang.pick("：", ": "), error.message(lang));
            }
            Error::Model { dir, reason } => (
                format!("无法使用 {} 中的嵌入模型：{}", dir.display(), reason.zh),
                format!("cannot use the embedding model in {}: {}", dir.display(), reason.en),
            ),
            Error::MemoryNotFound { id } => {
                (format!("找不到记忆 {id:?}"), format!("memory {id:?} not found"))
            }
            Error::AmbiguousId { field, named, candidates } => {
                let count = candidates.len();
                (
                    format!("{field} {named:?} 对应 {count} 个 ID"),
                    format!("{field} {named:?} stands for {count} ids"),
                )
            }
            Error::PrivateMemory { id } => (
                format!("记忆 {id} 是偏好或对话，团队的共享记忆不保存"),
                format!(
                    "memory {id} is a preference or a turn of a conversation, which a team does not share"
                ),
            ),
            Error::NotAFact { id } => (
                format!("记忆 {id} 不是事实；只能编辑事实"),
                format!("memory {id} is not a fact; only facts can be edited"),
            ),
            Error::NotALexicon { path } => (
                format!("{} 不是 CC-CEDICT 或 ECDICT 格式的词典", path.display()),
                format!("{} is not a dictionary in CC-CEDICT or ECDICT format", path.display()),
            ),
            Error::LexiconNotFound { name, .. } => {
                (format!("没有词典 {name:?}"), format!("dictionary {name:?} not found"))
            }
            Error::BadFactPath { path, problem: PathProblem::Outside } => (
                format!("路径 {path:?} 不在项目中；事实只能关联项目内的文件"),
                format!("path {path:?} is outside of the project; a fact can only name files of its project"),
            ),
            Error::BadFactPath { path, problem: PathProblem::Missing } => (
                format!("项目中没有文件 {path:?}；请给出相对于项目根目录的路径"),
                format!("the project has no file {path:?}; name it relative to the root of the project"),
            ),
            Error::MemoryOff => texts("此项目关闭了记忆", "memory is turned off for this project"),
            Error::TextNotFound { digest } => {
                (format!("账本中没有文本 {digest:?}"), format!("text {digest:?} not found in the ledger"))
            }
            Error::NotCurrent { id, by } if by.is_empty() => {
                (format!("记忆 {id} 已被忘记"), format!("memory {id} has been forgotten"))
            }
            Error::NotCurrent { id, by } => {
                (format!("记忆 {id} 已被 {by} 取代"), format!("memory {id} has been superseded by {by}"))
            }
            Error::NoWorkspace { project, .. } => (
                format!("{} 中没有活跃的工作区", project.display()),
                format!("no active workspace in {}", project.display()),
            ),
            Error::AmbiguousWorkspace { candidates } => (
                format!("无法确定工作区：此项目有 {} 个活跃的工作区", candidates.len()),
                format!("cannot determine the workspace: the project has {} active ones", candidates.len()),
            ),
            Error::NoFocus { workspace } => (
                format!("工作区 {workspace} 没有聚焦节点"),
                format!("workspace {workspace} has no focused node"),
            ),
            Error::NoSession => texts("无法确定会话", "cannot determine the session"),
            Error::AmbiguousSession { candidates } => (
                format!("无法确定会话：客户端进程有 {} 个活动的会话", candidates.len()),
                format!(
                    "cannot determine the session: the client process has {} live ones",
                    candidates.len()
                ),
            ),
            Error::NoAgents { .. } => texts("没有检测到受支持的智能体", "no supported agent detected"),
            Error::NoHome => texts("无法确定主目录", "cannot determine the home folder"),
            Error::Installing => texts(
                "另一个 tanmi 进程正在修改智能体的配置文件",
                "another tanmi process is changing the configuration files of agents",
            ),
            Error::NothingToChange => texts("没有给出要修改的内容", "no change was given"),
            Error::SecretsFound { secrets } => {
                let found: Vec<String> =
                    secrets.iter().map(|secret| format!("{} ({})", secret.field, secret.kind)).collect();
                let found = found.join(", ");
                (
                    format!("文字中可能有敏感信息：{found}；没有保存"),
                    format!("the text seems to contain a secret: {found}; it was not saved"),
                )
            }
            Error::UserDecides { setting } => {
                (format!("只有用户可以修改 {setting}"), format!("only the user can change {setting}"))
            }
            Error::NeedsYes { .. } => texts(
                "需要确认，但标准输入或标准错误不是终端",
                "confirmation required, but stdin or stderr is not a terminal",
            ),
            Error::UnknownKey { key, .. } => {
                (format!("未知的设置 {key:?}"), format!("unknown setting {key:?}"))
            }
            Error::BadValue { key, value, expected } if value.is_empty() => {
                (format!("缺少 {key}，应为 {expected}"), format!("{key} is missing: expected {expected}"))
            }
            Error::BadValue { key, value, expected } => (
                format!("{key} 的值 {value:?} 无效，应为 {expected}"),
                format!("invalid {key} {value:?}: expected {expected}"),
            ),
            Error::NotForProjects { key } => (
                format!("项目不能设置 {key}：项目只能关闭功能"),
                format!("a project cannot set {key}: it can only turn features off"),
            ),
            Error::LinkLeavesProject { link, to } => {
                let (link, to) = (link.display(), to.display());
                (
                    format!("符号链接 {link} 指向项目之外的 {to}"),
                    format!("the symbolic link {link} leads out of the project, to {to}"),
                )
            }
            Error::BadFile { path, line, reason } => {
                // Line 0 stands for an unknown line.
                let line = if *line == 0 { String::new() } else { format!(":{line}") };
                (
                    format!("无法解析 {}{line}：{}", path.display(), reason.zh),
                    format!("cannot parse {}{line}: {}", path.display(), reason.en),
                )
            }
            Error::NotAgreed { path, is_changed: true } => (
                format!("已忽略 {}：它在你同意之后有变化；用 `tanmi trust` 查看", path.display()),
                format!(
                    "{} is ignored: it changed since you agreed to it; `tanmi trust` shows it",
                    path.display()
                ),
            ),
            Error::NotAgreed { path, is_changed: false } => (
                format!("已忽略 {}：你尚未同意其内容；用 `tanmi trust` 查看", path.display()),
                format!("{} is ignored: you have not agreed to it; `tanmi trust` shows it", path.display()),
            ),
            Error::Team(problem) => problem.message(),
        };
        lang.pick(zh, en)
    }

    /// Returns the whole error for programs.
    pub fn to_json(&self, lang: Lang, interface: Interface) -> Value {
        let mut error = json!({"code": self.code(), "message": self.message_in(lang, interface)});
        if let Some(field) = self.field() {
            error["field"] = json!(field);
        }
        if let Some(hint) = self.hint(lang, interface) {
            error["hint"] = json!(hint);
        }
        let details = match self {
            Error::Domain(error) => error.details(),
            Error::AmbiguousWorkspace { candidates } => {
                let list: Vec<Value> =
                    candidates.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
                json!({"workspaces": list})
            }
            Error::AmbiguousSession { candidates } => json!({"sessions": candidates}),
            Error::AmbiguousId { candidates, .. } => {
                let list: Vec<Value> =
                    candidates.iter().map(|(id, title)| json!({"id": id, "title": title})).collect();
                json!({"candidates": list})
            }
            Error::NeedsYes { what } => what.clone(),
            Error::SecretsFound { secrets } => {
                let list = secrets.iter().map(|secret| json!({"field": secret.field, "kind": secret.kind}));
                json!({"secrets": list.collect::<Vec<_>>()})
            }
            _ => Value::Null,
        };
        if !details.is_null() {
            error["details"] = details;
        }
        error
    }
}

impl From<tanmi_memory::Error> for Error {
    fn from(error: tanmi_memory::Error) -> Error {
        match error {
            tanmi_memory::Error::NotFound { id } => {
                Error::MemoryNotFound { id: tanmi_base::text::fit(&id, 80) }
            }
            tanmi_memory::Error::NotCurrent { id, by } => Error::NotCurrent { id, by },
            tanmi_memory::Error::Private { id } => {
                Error::PrivateMemory { id: tanmi_base::text::fit(&id, 80) }
            }
            tanmi_memory::Error::Model { dir, reason } => Error::Model { dir, reason },
            tanmi_memory::Error::TeamUnreachable { server, reason, may_have_run } => {
                Error::Domain(tanmi_workspace::Error::TeamUnreachable { server, reason, may_have_run })
            }
            tanmi_memory::Error::TeamRefused { server, code, message } => {
                Error::Domain(tanmi_workspace::Error::team_refused(&server, &code, &message))
            }
            tanmi_memory::Error::OutboxFull { limit } => {
                Error::Domain(tanmi_workspace::Error::OutboxFull { limit })
            }
            tanmi_memory::Error::Unavailable { place, cause } => {
                Error::Domain(tanmi_workspace::Error::Unavailable { place, cause })
            }
        }
    }
}

impl From<tanmi_session::Error> for Error {
    fn from(error: tanmi_session::Error) -> Error {
        Error::Domain(match error {
            tanmi_session::Error::Io { place, source } => {
                tanmi_workspace::Error::Unavailable { place, cause: UnavailableCause::Io(source) }
            }
            tanmi_session::Error::Busy { place } => {
                tanmi_workspace::Error::Unavailable { place, cause: UnavailableCause::Busy }
            }
            tanmi_session::Error::BadSession(limit) => tanmi_workspace::Error::invalid(
                "sessionId",
                format!("为空或超过 {limit} 字节"),
                format!("empty or longer than {limit} bytes"),
            ),
            tanmi_session::Error::Refused { reason } => {
                tanmi_workspace::Error::Invalid { field: "sessionId", reason }
            }
        })
    }
}
