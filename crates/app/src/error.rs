//! The errors of the use cases: those of workspaces and nodes, and those of lookup, memory and configuration.

use std::path::PathBuf;

use serde_json::{Value, json};
use tanmi_base::{Bilingual, Interface, Lang};
use tanmi_memory::anchors::PathProblem;
use tanmi_workspace::error::{UnavailableCause, create_workspace_hint, list_nodes_hint, short_list};
use tanmi_workspace::model::WorkspaceId;

use crate::masking::FoundSecret;
use crate::trust::TRUST_FILE;

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

    /// Returns what to do next in the caller's interface, if there is a next step.
    pub fn hint(&self, lang: Lang, interface: Interface) -> Option<String> {
        let (zh, en) = match self {
            Error::Domain(error) => return error.hint(lang, interface),
            Error::InFile { error, .. } => return error.hint(lang, interface),
            _ => self.hints(interface)?,
        };
        Some(lang.pick(zh, en))
    }

    fn hints(&self, interface: Interface) -> Option<Texts> {
        Some(match self {
            // The user turned memory off, so an agent must not learn how to turn it on.
            Error::MemoryOff => match interface {
                Interface::CommandLine => texts(
                    "用 `tanmi config set memory true` 打开；项目的 `.tanmi/config.json` 也可以关闭它",
                    "turn it on with `tanmi config set memory true`; \
                     the project's `.tanmi/config.json` can turn it off, too",
                ),
                Interface::AgentShell | Interface::Mcp => texts(
                    "不使用记忆继续，或请用户打开它",
                    "continue without memory, or ask the user to turn it on",
                ),
                Interface::Page => texts(
                    "检查用户和项目的 config.json 中的设置 memory",
                    "check the setting memory in the config.json of the user and of the project",
                ),
            },
            Error::NotALexicon { .. } => texts(
                "CC-CEDICT 的一行形如 `漢字 汉字 [han4 zi4] /sense/`；ECDICT 是带有 word 和 translation 列的 CSV 文件",
                "a line of CC-CEDICT is `漢字 汉字 [han4 zi4] /sense/`; ECDICT is a CSV file with the columns word and \
                 translation",
            ),
            Error::LexiconNotFound { known, .. } if known.is_empty() => interface.pick(
                texts(
                    "还没有词典；`tanmi memory lexicon add FILE` 添加一个",
                    "there are no dictionaries; `tanmi memory lexicon add FILE` adds one",
                ),
                texts("还没有词典", "there are no dictionaries"),
                texts("还没有词典", "there are no dictionaries"),
            ),
            Error::LexiconNotFound { known, .. } => (
                format!("词典有：{}", known.join("、")),
                format!("the dictionaries are: {}", known.join(", ")),
            ),
            Error::MemoryNotFound { .. } => interface.pick(
                texts("`tanmi memory list --all` 列出 ID", "`tanmi memory list --all` lists the ids"),
                texts("用 `memory_search` 查找 ID", "find the id with `memory_search`"),
                texts("在「记忆」中搜索", "search for it in “Memory”"),
            ),
            Error::PrivateMemory { .. } => texts(
                "把它保存在自己机器上的项目记忆中；若它是关于项目的事实，用类型 W 或 B 保存",
                "keep it in the memory of a project on your own machine; save a fact about the project with type W or B",
            ),
            Error::NotCurrent { by, .. } if !by.is_empty() => {
                (format!("改用 {by}"), format!("use {by} instead"))
            }
            Error::NotCurrent { id, .. } => interface.pick(
                (
                    format!("先用 `tanmi memory restore {id}` 恢复它"),
                    format!("restore it first with `tanmi memory restore {id}`"),
                ),
                texts("不要在 `supersedes` 中使用它", "leave it out of `supersedes`"),
                texts("先点击「恢复」", "restore it first with “Restore”"),
            ),
            Error::NothingToChange => interface.pick(
                texts("至少给出一个选项；`--help` 列出它们", "pass at least one option; `--help` lists them"),
                texts("至少给出一个要修改的参数", "pass at least one parameter to change"),
                texts("至少修改一个字段", "change at least one field"),
            ),
            Error::SecretsFound { .. } => interface.pick(
                texts("加上 `--mask-secrets` 以遮盖它", "pass `--mask-secrets` to mask it"),
                texts("从文字中去掉它", "remove it from the text"),
                texts("选择「遮盖后保存」或「原样保存」", "choose “Mask and save” or “Save as it is”"),
            ),
            Error::UserDecides { .. } => texts("请用户自己修改", "ask the user to change it"),
            Error::Team(TeamProblem::Changed { .. }) if interface == Interface::Mcp => texts(
                "请用户重新连接此客户端的 MCP 服务器，然后重试",
                "ask the user to reconnect this MCP server, then repeat the call",
            ),
            Error::Team(TeamProblem::Changed { .. }) if interface == Interface::Page => {
                texts("重启此服务器，然后重新载入页面", "restart this server, then reload the page")
            }
            // Only the user moves the data of a project.
            Error::Team(problem) if interface == Interface::CommandLine => problem.hint(),
            Error::NoWorkspace { archived: Some((id, name)), .. } => {
                let name = tanmi_base::text::fit(&tanmi_base::text::one_line(name), 60);
                let (create_zh, create_en) = create_workspace_hint(interface);
                let (zh, en) = interface.pick(
                    (
                        format!("`tanmi workspace restore {id}` 恢复已归档的「{name}」"),
                        format!("`tanmi workspace restore {id}` restores the archived “{name}”"),
                    ),
                    (
                        format!("若用户要继续已归档的「{name}」，用 `workspace_restore` 恢复 {id}"),
                        format!(
                            "if the user wants to continue the archived “{name}”, `workspace_restore` restores {id}"
                        ),
                    ),
                    (
                        format!("在已归档的工作区 {name} 上点击「恢复」"),
                        format!("choose “Restore” on the archived workspace {name}"),
                    ),
                );
                (format!("{zh}；或者{create_zh}"), format!("{en}; or {create_en}"))
            }
            Error::NoWorkspace { .. } => {
                let (create_zh, create_en) = create_workspace_hint(interface);
                let (zh, en) = interface.pick(
                    texts(
                        "；`tanmi workspace list --all` 列出其他项目的工作区",
                        "; `tanmi workspace list --all` lists the workspaces of other projects",
                    ),
                    texts(
                        "，或用 `workspaceId` 指定一个（见 `workspace_list`）",
                        ", or pass one as `workspaceId` (see `workspace_list`)",
                    ),
                    texts("", ""),
                );
                (format!("{create_zh}{zh}"), format!("{create_en}{en}"))
            }
            Error::AmbiguousWorkspace { candidates } => {
                let (list_zh, list_en) = short_list(candidates, |(id, name)| format!("{id} ({name})"));
                let (zh, en) = interface.pick(
                    texts("用 `--workspace` 指定一个", "select one with `--workspace`"),
                    texts("用 `workspaceId` 指定一个", "pass one as `workspaceId`"),
                    texts("选择一个工作区", "choose a workspace"),
                );
                (format!("{zh}：{list_zh}"), format!("{en}: {list_en}"))
            }
            Error::AmbiguousId { named, candidates, .. } => {
                let is_end_of_id = candidates.iter().all(|(id, _)| id.ends_with(named.as_str()));
                let (zh, en) = short_list(candidates, |(id, title)| format!("{id} ({title})"));
                match is_end_of_id {
                    true => (format!("使用更长的 ID：{zh}"), format!("use more of the id: {en}")),
                    false => (format!("用 ID 指定：{zh}"), format!("name it by its id: {en}")),
                }
            }
            Error::NoSession => interface.pick(
                texts(
                    "用 `--session` 指定；`tanmi session list` 列出会话",
                    "select it with `--session`; `tanmi session list` lists the sessions",
                ),
                texts("用 `sessionId` 指定", "pass it as `sessionId`"),
                texts("在「会话」中选择一个", "choose one in “Sessions”"),
            ),
            Error::AmbiguousSession { candidates } => {
                let (list_zh, list_en) = short_list(candidates, String::clone);
                let (zh, en) = interface.pick(
                    texts("用 `--session` 指定一个", "select one with `--session`"),
                    texts(
                        "用 `sessionId` 指定本会话（注入的上下文中有它的标识）",
                        "pass this session as `sessionId` (the injected context has its id)",
                    ),
                    texts("选择一个会话", "choose a session"),
                );
                (format!("{zh}：{list_zh}"), format!("{en}: {list_en}"))
            }
            // The confirmation is the user's: an agent must not learn how to skip it.
            Error::NeedsYes { .. } => match interface {
                Interface::CommandLine => {
                    texts("查看内容，然后加上 `--yes` 重试", "review the details, then retry with `--yes`")
                }
                Interface::AgentShell | Interface::Mcp | Interface::Page => {
                    texts("请用户在终端中运行此命令", "ask the user to run this command in a terminal")
                }
            },
            Error::NoFocus { .. } => {
                let (list_zh, list_en) = list_nodes_hint(interface);
                let (zh, en) = interface.pick(
                    texts(
                        "用 `--node` 指定节点，或先开始一个；",
                        "select a node with `--node`, or start one first; ",
                    ),
                    texts(
                        "用 `nodeId` 指定节点，或先开始一个；",
                        "pass a node as `nodeId`, or start one first; ",
                    ),
                    texts("", ""),
                );
                (format!("{zh}{list_zh}"), format!("{en}{list_en}"))
            }
            Error::UnknownKey { near: Some(near), .. } => {
                (format!("你是否想用 {near}？"), format!("did you mean {near}?"))
            }
            Error::UnknownKey { near: None, .. } if interface.has_commands() => {
                texts("`tanmi config list` 列出全部设置", "`tanmi config list` lists the settings")
            }
            Error::NotForProjects { key } if interface == Interface::CommandLine => (
                format!("为用户设置：`tanmi config set {key} …`，不加 `--for-project`"),
                format!("set it for the user: `tanmi config set {key} …` without `--for-project`"),
            ),
            Error::NoAgents { known } if interface.has_commands() => (
                format!("用 `--platform` 指定一个：{}", known.join("、")),
                format!("select one with `--platform`: {}", known.join(", ")),
            ),
            Error::NoHome => texts("设置环境变量 HOME", "set the environment variable HOME"),
            Error::Installing => texts("稍后重试", "retry in a moment"),
            Error::LinkLeavesProject { .. } => texts(
                "没有写入任何文件；请删除该链接，或用文件代替它，然后重试",
                "nothing was written; remove the link or replace it with a file, then retry",
            ),
            Error::BadFile { path, .. }
                if path.ends_with(TRUST_FILE) && interface == Interface::CommandLine =>
            {
                texts(
                    "请修正该文件，或用 `tanmi doctor --fix` 把它改名保留，然后重新信任你的项目",
                    "fix the file, or set it aside with `tanmi doctor --fix` and trust your projects again",
                )
            }
            Error::BadFile { .. } => texts("请修正该文件", "fix the file"),
            _ => return None,
        })
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
