//! What to do next after an error, in words of the caller's interface.

use tanmi_base::{Interface, Lang};
use tanmi_workspace::error::{create_workspace_hint, list_nodes_hint, short_list};

use super::{Error, TeamProblem, Texts, texts};
use crate::trust::TRUST_FILE;

impl Error {
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
}
