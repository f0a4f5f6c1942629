//! The errors of the use cases: the domain's, and those of finding and configuring things.

use std::path::PathBuf;

use serde_json::{Value, json};
use tanmi_base::Lang;
use tanmi_workspace::model::WorkspaceId;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.message(Lang::En))]
pub enum Error {
    Domain(#[from] tanmi_workspace::Error),
    /// A static embedding model that somebody brought.
    Model {
        dir: PathBuf,
        reason: String,
    },
    MemoryNotFound {
        id: String,
    },
    /// It was forgotten or replaced already.
    NotCurrent {
        id: String,
        by: String,
    },
    /// Only facts can be edited.
    NotAFact {
        id: String,
    },
    /// Switched off by the settings.
    MemoryOff,
    /// The ledger has no such text, or has it no longer.
    TextNotFound {
        digest: String,
    },
    NoWorkspace {
        project: PathBuf,
    },
    AmbiguousWorkspace {
        candidates: Vec<(WorkspaceId, String)>,
    },
    /// A call named no node, and none is in focus.
    NoFocus {
        workspace: WorkspaceId,
    },
    /// Nobody said which session this is.
    NoSession,
    /// One client process, several live sessions.
    AmbiguousSession {
        candidates: Vec<String>,
    },
    NothingToChange,
    /// Something wrong that stands in a file.
    InFile {
        path: PathBuf,
        error: Box<Error>,
    },
    /// None was named, and none was found.
    NoAgents {
        known: Vec<&'static str>,
    },
    NoHome,
    /// Another process is changing agents' files.
    Installing,
    /// Somebody has to agree to this, and nobody is there to be asked.
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
    /// A project may only switch things off.
    NotForProjects {
        key: &'static str,
    },
    BadFile {
        path: PathBuf,
        line: usize,
        reason: String,
    },
}

impl Error {
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Domain(tanmi_workspace::Error::Io { path, source })
    }

    /// What somebody wrote, short enough to be said back to them.
    pub(crate) fn bad_value(key: &'static str, value: &str, expected: String) -> Error {
        let value = tanmi_base::text::fit(&tanmi_base::text::one_line(value), 60);
        Error::BadValue { key, value, expected }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Error::Domain(error) => error.code(),
            Error::Model { .. } => "MODEL",
            Error::MemoryNotFound { .. } => "MEMORY_NOT_FOUND",
            Error::NotAFact { .. } => "NOT_A_FACT",
            Error::NotCurrent { .. } => "NOT_CURRENT",
            Error::MemoryOff => "MEMORY_OFF",
            Error::TextNotFound { .. } => "TEXT_NOT_FOUND",
            Error::NoWorkspace { .. } => "NO_WORKSPACE",
            Error::AmbiguousWorkspace { .. } => "AMBIGUOUS_WORKSPACE",
            Error::NoFocus { .. } => "NO_FOCUS",
            Error::NoSession => "NO_SESSION",
            Error::AmbiguousSession { .. } => "AMBIGUOUS_SESSION",
            Error::NothingToChange => "NOTHING_TO_CHANGE",
            Error::InFile { error, .. } => error.code(),
            Error::NoAgents { .. } => "NO_AGENTS",
            Error::NoHome => "NO_HOME",
            Error::Installing => "BUSY",
            Error::NeedsYes { .. } => "CONFIRMATION_REQUIRED",
            Error::UnknownKey { .. } => "UNKNOWN_KEY",
            Error::BadValue { .. } => "INVALID_ARGUMENT",
            Error::NotForProjects { .. } => "NOT_FOR_PROJECTS",
            Error::BadFile { .. } => "FILE_DAMAGED",
        }
    }

    pub fn field(&self) -> Option<&str> {
        match self {
            Error::Domain(error) => error.field(),
            Error::NoWorkspace { .. } | Error::AmbiguousWorkspace { .. } => Some("workspaceId"),
            Error::NoFocus { .. } => Some("nodeId"),
            Error::NoSession | Error::AmbiguousSession { .. } => Some("sessionId"),
            Error::BadValue { key, .. } | Error::NotForProjects { key } => Some(key),
            _ => None,
        }
    }

    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            Error::Domain(error) => return error.message(lang),
            Error::InFile { path, error } => {
                return format!("{}{}{}", path.display(), lang.pick("：", ": "), error.message(lang));
            }
            Error::Model { dir, reason } => (
                format!("{} 中的模型无法使用：{reason}", dir.display()),
                format!("the model in {} cannot be used: {reason}", dir.display()),
            ),
            Error::MemoryNotFound { id } => {
                (format!("没有记忆 {id:?}"), format!("there is no memory {id:?}"))
            }
            Error::NotAFact { id } => {
                (format!("{id} 不是事实，不能编辑"), format!("{id} is not a fact and cannot be edited"))
            }
            Error::MemoryOff => {
                (String::from("此项目关闭了记忆"), String::from("memory is switched off for this project"))
            }
            Error::TextNotFound { digest } => {
                (format!("账本里没有文本 {digest:?}"), format!("the ledger has no text {digest:?}"))
            }
            Error::NotCurrent { id, by } if by.is_empty() => {
                (format!("{id} 已被忘记"), format!("{id} was forgotten"))
            }
            Error::NotCurrent { id, by } => {
                (format!("{id} 已被 {by} 替换"), format!("{id} was replaced by {by}"))
            }
            Error::NoWorkspace { project } => (
                format!("{} 中没有活跃的工作区", project.display()),
                format!("there is no active workspace in {}", project.display()),
            ),
            Error::AmbiguousWorkspace { candidates } => (
                format!("此项目有 {} 个活跃的工作区，请指定一个", candidates.len()),
                format!("this project has {} active workspaces: say which one", candidates.len()),
            ),
            Error::NoFocus { workspace } => (
                format!("工作区 {workspace} 没有聚焦的节点"),
                format!("no node of workspace {workspace} is in focus"),
            ),
            Error::NoSession => {
                (String::from("不知道是哪个会话"), String::from("it is not known which session this is"))
            }
            Error::AmbiguousSession { candidates } => (
                format!("此客户端有 {} 个活动的会话", candidates.len()),
                format!("this client has {} live sessions", candidates.len()),
            ),
            Error::NoAgents { known } => (
                format!("没有发现任何智能体；用 --platform 指定：{}", known.join("、")),
                format!("no agent was found here; name one with --platform: {}", known.join(", ")),
            ),
            Error::NoHome => {
                (String::from("没有主目录：请设置 HOME"), String::from("there is no home folder: set HOME"))
            }
            Error::Installing => (
                String::from("另一个 tanmi 正在修改智能体的文件；稍后再试"),
                String::from("another tanmi is changing agents' files; try again in a moment"),
            ),
            Error::NothingToChange => {
                (String::from("没有给出任何要修改的内容"), String::from("nothing was given to change"))
            }
            Error::NeedsYes { .. } => (
                String::from("需要确认，但没有终端可以询问"),
                String::from("this needs a person's word, and there is no terminal to ask on"),
            ),
            Error::UnknownKey { key, .. } => {
                (format!("没有配置项 {key:?}"), format!("there is no setting {key:?}"))
            }
            Error::BadValue { key, value, expected } if value.is_empty() => {
                (format!("缺少 {key}，应为 {expected}"), format!("{key} is missing; expected {expected}"))
            }
            Error::BadValue { key, value, expected } => (
                format!("{key} 不能是 {value:?}，应为 {expected}"),
                format!("{key} cannot be {value:?}; expected {expected}"),
            ),
            Error::NotForProjects { key } => (
                format!("{key} 不能由项目设置：项目只能关闭功能"),
                format!("{key} cannot be set by a project, which may only switch things off"),
            ),
            Error::BadFile { path, line, reason } => (
                format!("{}:{line} 无法解析：{reason}", path.display()),
                format!("{}:{line} cannot be read: {reason}", path.display()),
            ),
        };
        lang.pick(zh, en)
    }

    pub fn hint(&self, lang: Lang) -> Option<String> {
        let (zh, en) = match self {
            Error::Domain(error) => return error.hint(lang),
            Error::InFile { error, .. } => return error.hint(lang),
            Error::MemoryOff => (
                String::from(
                    "打开：tanmi config set memory true（项目的 .tanmi/config.json 也可能关闭了它）",
                ),
                String::from(
                    "switch it on: tanmi config set memory true (a project's .tanmi/config.json may have switched it off, too)",
                ),
            ),
            Error::MemoryNotFound { .. } => (
                String::from("memory_search 查找 ID（命令行：tanmi memory list --all）"),
                String::from("memory_search finds ids, on the command line tanmi memory list --all"),
            ),
            Error::NotCurrent { by, .. } if !by.is_empty() => {
                (format!("改用 {by}"), format!("name {by} instead"))
            }
            Error::NotCurrent { id, .. } => (
                format!("先恢复它：tanmi memory restore {id}"),
                format!("bring it back first: tanmi memory restore {id}"),
            ),
            Error::NothingToChange => (
                String::from("至少给出一项；--help 列出可以修改的内容"),
                String::from("give at least one; --help lists what can be changed"),
            ),
            Error::NoWorkspace { .. } => (
                String::from(
                    "创建一个：workspace_init（命令行：tanmi workspace init --name … --goal …）；或指定一个：workspace_list 列出（命令行：--workspace）",
                ),
                String::from(
                    "create one: workspace_init, on the command line tanmi workspace init --name … --goal …; or name one of workspace_list's, on the command line --workspace",
                ),
            ),
            Error::AmbiguousWorkspace { candidates } => {
                let list: Vec<String> =
                    candidates.iter().map(|(id, name)| format!("{id} ({name})")).collect();
                let list = list.join(", ");
                (
                    format!("指定其中一个（workspaceId 或 --workspace）：{list}"),
                    format!("name one (workspaceId or --workspace): {list}"),
                )
            }
            Error::NoSession => (
                String::from("指定 sessionId（命令行：--session；tanmi session list 列出各会话）"),
                String::from(
                    "name it: sessionId, on the command line --session (tanmi session list shows them)",
                ),
            ),
            Error::AmbiguousSession { candidates } => {
                let list = candidates.join(", ");
                (format!("用 sessionId 指定其中一个：{list}"), format!("name one by sessionId: {list}"))
            }
            Error::NeedsYes { .. } => {
                (String::from("确认内容后加上 --yes"), String::from("read it, then say --yes"))
            }
            Error::NoFocus { .. } => (
                String::from("请指定 nodeId（命令行：--node；tanmi tree 列出各节点），或先 start 一个"),
                String::from(
                    "name one: nodeId, on the command line --node (tanmi tree shows them), or start one first",
                ),
            ),
            Error::UnknownKey { near: Some(near), .. } => {
                (format!("是否指 {near}？"), format!("did you mean {near}?"))
            }
            Error::UnknownKey { near: None, .. } => (
                String::from("tanmi config list 列出全部配置项"),
                String::from("tanmi config list shows them all"),
            ),
            Error::BadFile { .. } => (String::from("请修正该文件"), String::from("mend the file by hand")),
            _ => return None,
        };
        Some(lang.pick(zh, en))
    }

    /// The whole error for programs.
    pub fn to_json(&self, lang: Lang) -> Value {
        let mut error = json!({"code": self.code(), "message": self.message(lang)});
        if let Some(field) = self.field() {
            error["field"] = json!(field);
        }
        if let Some(hint) = self.hint(lang) {
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
            Error::NeedsYes { what } => what.clone(),
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
        Error::Domain(match error {
            tanmi_memory::Error::Io { path, source } => tanmi_workspace::Error::Io { path, source },
            tanmi_memory::Error::Busy { path } => tanmi_workspace::Error::Busy { path },
            tanmi_memory::Error::Index(error) => tanmi_workspace::Error::Index(error),
            tanmi_memory::Error::Model { dir, reason } => return Error::Model { dir, reason },
        })
    }
}

impl From<tanmi_session::Error> for Error {
    fn from(error: tanmi_session::Error) -> Error {
        let text = error.to_string();
        Error::Domain(match error {
            tanmi_session::Error::Io { path, source } => tanmi_workspace::Error::Io { path, source },
            tanmi_session::Error::Busy { path } => tanmi_workspace::Error::Busy { path },
            tanmi_session::Error::BadSession(_) => {
                tanmi_workspace::Error::Invalid { field: "sessionId", reason: text }
            }
        })
    }
}
