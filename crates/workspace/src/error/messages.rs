//! The message and the hint of every error, in Chinese and English.

use std::error::Error as _;
use std::path::Path;

use tanmi_base::text::{fit, one_line};
use tanmi_base::{Interface, Lang};

use super::access::{io_hint, io_reason_zh};
use super::lists::short_list;
use super::{Error, Holder, OpenDependency, UnavailableCause, UnfinishedChild};
use crate::model::{NodeType, PERSON};

/// A text in Chinese and in English.
type Texts = (String, String);

fn texts(zh: impl Into<String>, en: impl Into<String>) -> Texts {
    (zh.into(), en.into())
}

impl Error {
    /// Returns what is wrong and why, in one sentence.
    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = self.messages();
        lang.pick(zh, en)
    }

    /// Returns what to do next in the caller's interface, if there is a next step.
    pub fn hint(&self, lang: Lang, interface: Interface) -> Option<String> {
        let (zh, en) = self.hints(interface)?;
        Some(lang.pick(zh, en))
    }

    fn messages(&self) -> Texts {
        match self {
            Error::Invalid { field, reason } => {
                (format!("{field} 无效：{}", reason.zh), format!("invalid {field}: {}", reason.en))
            }
            Error::Empty { field } => (format!("{field} 不能为空"), format!("{field} must not be empty")),
            Error::TooLong { field, unit: "entries", limit, actual } => (
                format!("{field} 条目过多：{actual} 条，上限 {limit} 条"),
                format!("{field} has too many entries: {actual}, the limit is {limit}"),
            ),
            Error::TooLong { field, unit, limit, actual } => (
                format!("{field} 过长：{actual} {}，上限 {limit}", unit_zh(unit)),
                format!("{field} is too long: {actual} {unit}, the limit is {limit}"),
            ),
            Error::UnknownWord { field, word, .. } => {
                (format!("{field} 的值 {word:?} 无效"), format!("invalid {field} {word:?}"))
            }
            Error::BadId { field, raw, .. } => {
                (format!("{field} {raw:?} 不是有效的 ID"), format!("{field} {raw:?} is not a valid id"))
            }
            Error::WorkspaceNotFound { id, .. } => {
                (format!("找不到工作区 {id}"), format!("workspace {id} not found"))
            }
            Error::NodeNotFound { field, id } => {
                (format!("找不到节点 {id}（{field}）"), format!("node {id} not found ({field})"))
            }
            Error::InvalidTransition { node, kind, status, action, .. } => {
                let kind_zh = match kind {
                    NodeType::Planning => "规划",
                    NodeType::Execution => "执行",
                };
                (
                    format!("{kind_zh}节点 {node} 的状态是 {status}，不能执行 {action}"),
                    format!("cannot {action} {kind} node {node}: its status is {status}"),
                )
            }
            Error::ConclusionRequired { node, action } => (
                format!("对节点 {node} 执行 {action} 需要结论"),
                format!("a conclusion is required to {action} node {node}"),
            ),
            Error::DependenciesOpen { node, open } => {
                let list = dependency_list(open);
                (
                    format!("节点 {node} 的依赖尚未完成：{list}"),
                    format!("dependencies of node {node} are not completed: {list}"),
                )
            }
            Error::DependencyCycle { nodes, .. } => {
                let titles: Vec<String> = nodes.iter().map(|(_, title)| fit(&one_line(title), 60)).collect();
                let cycle = titles.join(" → ");
                (format!("依赖形成循环：{cycle}"), format!("the dependencies form a cycle: {cycle}"))
            }
            Error::BadOutline { line, reason } => (
                format!("大纲第 {line} 行：{}；没有创建任何节点", reason.zh),
                format!("line {line} of the outline: {}; nothing was created", reason.en),
            ),
            Error::NodeClaimed { node, holder, since } if holder == PERSON => {
                let since = tanmi_base::clock::local_stamp(*since);
                (
                    format!("节点 {node} 已由用户认领（自 {since} 起）"),
                    format!("node {node} is claimed by a person (since {since})"),
                )
            }
            Error::NodeClaimed { node, holder, since } => {
                let (holder, since) = (one_line(holder), tanmi_base::clock::local_stamp(*since));
                (
                    format!("节点 {node} 已被会话 {holder} 认领（自 {since} 起）"),
                    format!("node {node} is claimed by session {holder} (since {since})"),
                )
            }
            Error::NodeHeld { node, holder, since } => {
                let since = tanmi_base::clock::local_stamp(*since);
                let (zh, en) = name_holder(holder);
                (
                    format!("节点 {node} 由{zh}持有（自 {since} 起）"),
                    format!("node {node} is held by {en} (since {since})"),
                )
            }
            Error::ClaimLost { node, holder: Some(holder) } => {
                let (zh, en) = name_holder(holder);
                (
                    format!("你对节点 {node} 的认领已结束；现在由{zh}持有"),
                    format!("your claim on node {node} ended; it is held by {en} now"),
                )
            }
            Error::ClaimLost { node, holder: None } => {
                (format!("你对节点 {node} 的认领已结束"), format!("your claim on node {node} ended"))
            }
            Error::ChildrenUnfinished { node, count, .. } => {
                let children = if *count == 1 { "child" } else { "children" };
                (
                    format!("节点 {node} 还有 {count} 个子节点未结束"),
                    format!("node {node} has {count} unfinished {children}"),
                )
            }
            Error::RulesHashMismatch { given: None, .. } => {
                texts("工作区有规则，但缺少 rulesHash", "the workspace has rules, but rulesHash is missing")
            }
            Error::RulesHashMismatch { given: Some(given), hash, .. } => (
                format!("rulesHash {given:?} 与当前规则（{hash}）不一致"),
                format!("rulesHash {given:?} does not match the current rules ({hash})"),
            ),
            Error::WorkspaceArchived { id, name } => {
                let name = fit(&one_line(name), 60);
                let (zh, en) = match name.as_str() {
                    "" => texts("", ""),
                    name => (format!("「{name}」"), format!("“{name}” ")),
                };
                (
                    format!("工作区{zh} {id} 已归档，只读"),
                    format!("workspace {en}{id} is archived and read-only"),
                )
            }
            Error::WorkspaceNotArchived { id } => {
                (format!("工作区 {id} 没有归档"), format!("workspace {id} is not archived"))
            }
            Error::RootProtected { action } => {
                let action_zh = match *action {
                    "move" => "移动",
                    "delete" => "删除",
                    other => other,
                };
                (format!("不能{action_zh}根节点"), format!("cannot {action} the root node"))
            }
            Error::ParentIsExecution { parent } => (
                format!("节点 {parent} 是执行节点，不能有子节点"),
                format!("node {parent} is an execution node and cannot have children"),
            ),
            Error::ParentCancelled { parent } => {
                (format!("父节点 {parent} 已取消"), format!("parent node {parent} is cancelled"))
            }
            Error::MoveIntoSelf { node, parent } => (
                format!("不能把节点 {node} 移动到它自己或它的后代 {parent} 之下"),
                format!("cannot move node {node} below itself or its descendant {parent}"),
            ),
            Error::NotInTrash { node } => {
                (format!("回收站中没有节点 {node}"), format!("node {node} is not in the trash"))
            }
            Error::ParentDeleted { node, parent } => (
                format!("节点 {node} 的父节点 {parent} 也已删除"),
                format!("the parent {parent} of node {node} is deleted, too"),
            ),
            Error::TooDeep { limit } => (
                format!("节点树不能超过 {limit} 层"),
                format!("the tree cannot be deeper than {limit} levels"),
            ),
            Error::NotInList { field, what, .. } => {
                (format!("{field} 中没有 {what:?}"), format!("{field} has no entry {what:?}"))
            }
            Error::ReferenceNotFound { target } => {
                (format!("找不到指向 {target} 的引用"), format!("reference to {target} not found"))
            }
            Error::Outdated { .. } => texts(
                "你读取之后内容已被修改；没有写入任何更改",
                "the content changed after you read it; nothing was written",
            ),
            Error::Corrupt { place, line, reason } => (
                format!("无法解析 {place}:{line}：{}", reason.zh),
                format!("cannot parse {place}:{line}: {}", reason.en),
            ),
            Error::Conflict { place } => (
                format!("写入 {place} 时，它不断被修改"),
                format!("{place} kept changing while it was being written"),
            ),
            Error::TeamUnreachable { server, reason, .. } => (
                format!("无法连接团队服务器 {server}：{reason}"),
                format!("cannot reach the team server {server}: {reason}"),
            ),
            Error::OutboxFull { limit } => (
                format!("团队服务器无法连接，并且已有 {limit} 次写入在等待它；此次写入没有保存"),
                format!(
                    "the team server cannot be reached and {limit} writes already wait for it; this one was not saved"
                ),
            ),
            Error::TeamRefused { server, message, .. } => (
                format!("团队服务器 {server} 拒绝了请求：{message}"),
                format!("the team server {server} refused the request: {message}"),
            ),
            Error::UnexpectedOutcome => (
                String::from("存储返回了错误的结果类型"),
                String::from("the store returned an unexpected result"),
            ),
            Error::Unavailable { place, cause } => match cause {
                UnavailableCause::Busy => {
                    (format!("{place} 被另一个进程锁定"), format!("{place} is locked by another process"))
                }
                UnavailableCause::Index(error) => {
                    let cause = error.source().map_or_else(String::new, ToString::to_string);
                    (format!("无法使用索引：{cause}"), error.to_string())
                }
                UnavailableCause::Io(error) => match tanmi_base::fs::refusal(error) {
                    Some(reason) => (format!("{place}：{}", reason.zh), format!("{place}: {}", reason.en)),
                    None => (format!("{place}：{}", io_reason_zh(error)), format!("{place}: {error}")),
                },
                UnavailableCause::Moved => (
                    format!("{place} 在使用期间被移动、替换或删除；没有写入任何更改"),
                    format!("{place} was moved, replaced or deleted while in use; nothing was written"),
                ),
                UnavailableCause::OtherOwner(owner) => (
                    format!("{place} 属于另一个用户（uid {owner}），因此不使用此项目"),
                    format!("{place} belongs to another user (uid {owner}), so the project is not used"),
                ),
            },
        }
    }

    fn hints(&self, interface: Interface) -> Option<Texts> {
        Some(match self {
            Error::UnknownWord { words, .. } => {
                let words = words.join(", ");
                (format!("可用的值：{words}"), format!("use one of: {words}"))
            }
            Error::BadId { shape, .. } => {
                let (zh, en) = match shape.starts_with("ws-") {
                    true => list_workspaces_hint(interface),
                    false => list_nodes_hint(interface),
                };
                let shape = |or| shape.replace(" | ", or);
                // Only commands accept titles.
                let (title_zh, title_en) = match interface.has_commands() {
                    true => ("，完整的标题也可以", ", and so is a whole title"),
                    false => ("", ""),
                };
                (
                    format!("ID 形如 {}，只写最后四个或更多字符也可以{title_zh}；{zh}", shape(" 或 ")),
                    format!(
                        "an id looks like {}; its last four or more characters are enough{title_en}; {en}",
                        shape(" or ")
                    ),
                )
            }
            Error::TooLong { unit: "characters", field: "name", .. } => {
                texts("缩短它，把细节写进目标", "shorten it and put the details into the goal")
            }
            Error::TooLong { unit: "characters", .. } => {
                texts("缩短它，把细节写进需求", "shorten it and put the details into the requirement")
            }
            Error::TooLong { unit: "entries", .. } => texts("合并或删除一些条目", "merge or remove entries"),
            Error::TooLong { .. } => {
                texts("写入文件，再把文件路径加入文档", "write it to a file and add the path of the file to the docs")
            }
            Error::WorkspaceNotFound { existing, .. } if existing.is_empty() => create_workspace_hint(interface),
            Error::WorkspaceNotFound { existing, .. } => {
                let (zh, en) = short_list(existing, |(id, name)| format!("{id} ({name})"));
                (format!("现有工作区：{zh}"), format!("existing workspaces: {en}"))
            }
            Error::NotInList { known, .. } if !known.is_empty() => {
                let mut list: Vec<String> = known.iter().take(10).map(|one| fit(&one_line(one), 60)).collect();
                list.extend((known.len() > 10).then(|| String::from("…")));
                let known = list.join("; ");
                (format!("现有条目：{known}"), format!("existing entries: {known}"))
            }
            Error::NodeNotFound { .. } => list_nodes_hint(interface),
            Error::InvalidTransition { allowed, node, .. } if allowed.is_empty() => {
                let (zh, en) = interface.pick(
                    (format!("用 `tanmi node delete {node}` 删除"), format!("with `tanmi node delete {node}`")),
                    texts("用 `node_delete` 删除", "with `node_delete`"),
                    texts("点击「删除」删除", "with “Delete”"),
                );
                (
                    format!("此状态下没有可用的动作；不需要的节点可以{zh}"),
                    format!("no action is allowed in this status; if the node is not needed, delete it {en}"),
                )
            }
            Error::InvalidTransition { allowed, .. } => {
                let list: Vec<&str> = allowed.iter().map(|action| action.as_str()).collect();
                let list = list.join(", ");
                (format!("可用的动作：{list}"), format!("allowed actions: {list}"))
            }
            Error::ClaimLost { holder: None, .. } => {
                texts("如需继续，请先 start 接手该节点", "to go on, take the node over with `start` first")
            }
            // An agent must not learn how to override the claim of another session.
            Error::NodeClaimed { .. } | Error::NodeHeld { .. } | Error::ClaimLost { .. } => match interface {
                Interface::CommandLine => {
                    texts("选择另一个节点，或用 `--force` 接管", "choose another node, or take it over with `--force`")
                }
                Interface::AgentShell | Interface::Mcp => {
                    texts("选择另一个节点，或询问用户", "choose another node, or ask the user")
                }
                Interface::Page => {
                    texts("选择另一个节点，或点击「接管」", "choose another node, or click “Take over”")
                }
            },
            // An agent must not learn how to start a node before its dependencies.
            Error::DependenciesOpen { .. } => match interface {
                Interface::CommandLine => texts(
                    "先完成它们；`tanmi next` 列出可以开始的节点；或用 `--force` 仍然开始",
                    "complete them first; `tanmi next` lists what can be started; or start it anyway with `--force`",
                ),
                Interface::AgentShell => texts(
                    "先完成它们；`tanmi next` 列出可以开始的节点",
                    "complete them first; `tanmi next` lists what can be started",
                ),
                Interface::Mcp => texts(
                    "先完成它们；`node_next` 列出可以开始的节点",
                    "complete them first; `node_next` lists what can be started",
                ),
                Interface::Page => texts("先完成这些节点", "complete these nodes first"),
            },
            Error::DependencyCycle { is_by_move: true, .. } => interface.pick(
                texts(
                    "选择另一个父节点，或先用 `tanmi node depend NODE --on NODE --remove` 去掉其中一个依赖",
                    "choose another parent, or first remove one of these dependencies with \
                     `tanmi node depend NODE --on NODE --remove`",
                ),
                texts(
                    "选择另一个父节点，或先用 `node_update` 的 `dependsOn` 去掉其中一个依赖",
                    "choose another parent, or first leave out one of these dependencies in `dependsOn` of `node_update`",
                ),
                texts(
                    "选择另一个父节点，或先去掉其中一个依赖",
                    "choose another parent, or first remove one of these dependencies",
                ),
            ),
            Error::DependencyCycle { .. } => {
                texts("去掉其中一个依赖", "leave out one of these dependencies")
            }
            Error::BadOutline { .. } => texts(
                "修正这一行，然后再次提交整个大纲",
                "fix the line, then send the whole outline again",
            ),
            Error::ConclusionRequired { .. } => interface.pick(
                texts("用 `--conclusion` 说明结果", "pass the result with `--conclusion`"),
                texts("用 `conclusion` 说明结果", "pass the result in `conclusion`"),
                texts("在「结论」中填写结果", "enter the result in “Conclusion”"),
            ),
            Error::ChildrenUnfinished { unfinished, .. } => {
                let one = |child: &UnfinishedChild| {
                    let actions: Vec<&str> = child.allowed.iter().map(|action| action.as_str()).collect();
                    format!("{} {} ({}: {})", child.id, child.title, child.status, actions.join(", "))
                };
                let list: Vec<String> = unfinished.iter().map(one).collect();
                let list = one_line(&list.join("; "));
                (
                    format!("先结束这些子节点（括号内是状态和可用的动作），或删除不需要的：{list}"),
                    format!(
                        "finish these children first (status and allowed actions in parentheses), \
                         or delete those that are not needed: {list}"
                    ),
                )
            }
            Error::RulesHashMismatch { rules, hash, .. } => {
                let rules = rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n");
                let hash = match interface.has_commands() {
                    true => format!("`--rules-hash {hash}`"),
                    false => format!("rulesHash {hash}"),
                };
                (
                    format!("阅读当前规则，然后用 {hash} 重试：\n{rules}"),
                    format!("read the current rules, then retry with {hash}:\n{rules}"),
                )
            }
            Error::WorkspaceArchived { id, .. } => interface.pick(
                (
                    format!("先用 `tanmi workspace restore {id}` 恢复它"),
                    format!("restore it first with `tanmi workspace restore {id}`"),
                ),
                texts(
                    "若用户要继续它，先用 `workspace_restore` 恢复",
                    "if the user wants to continue it, restore it first with `workspace_restore`",
                ),
                texts("先点击「恢复」", "restore it first with “Restore”"),
            ),
            Error::ParentIsExecution { .. } => {
                texts("选择一个规划节点作为父节点", "choose a planning node as the parent")
            }
            Error::ParentCancelled { parent } => interface.pick(
                (
                    format!("先重新打开它：`tanmi node transition {parent} --action reopen`"),
                    format!("reopen it first with `tanmi node transition {parent} --action reopen`"),
                ),
                texts(
                    "先用 `node_transition` 对它执行 reopen",
                    "reopen it first with `node_transition` and the action reopen",
                ),
                texts("先点击「重新打开」", "reopen it first with “Reopen”"),
            ),
            Error::NotInTrash { .. } => interface.pick(
                texts("`tanmi trash list` 列出已删除的节点", "`tanmi trash list` lists the deleted nodes"),
                texts("用 `node_delete` 结果中的 nodeId", "pass the nodeId in the result of `node_delete`"),
                texts("它已恢复，或已超过保留期限", "it is restored already, or was removed from the trash"),
            ),
            Error::ParentDeleted { parent, .. } => interface.pick(
                (
                    format!("先恢复它：`tanmi node restore {parent}`"),
                    format!("restore it first with `tanmi node restore {parent}`"),
                ),
                (
                    format!("先用 `workspace_restore` 恢复 nodeId {parent}"),
                    format!("restore it first with `workspace_restore` and nodeId {parent}"),
                ),
                texts("先恢复父节点", "restore the parent first"),
            ),
            Error::MoveIntoSelf { .. } => {
                texts("选择这棵子树之外的父节点", "choose a parent outside of this subtree")
            }
            Error::TooDeep { .. } => texts("选择更高一层的父节点", "choose a parent higher in the tree"),
            Error::ReferenceNotFound { .. } => interface.pick(
                texts("`tanmi node show` 列出节点的引用", "`tanmi node show` lists the references of a node"),
                texts("`node_get` 列出节点的引用", "`node_get` lists the references of a node"),
                texts("节点的引用列在「引用」中", "“References” lists the references of a node"),
            ),
            Error::Outdated { .. } => texts(
                "对照现在的内容检查你的更改，然后用新的版本再次提交",
                "compare your change with the current content, then send it again with the new version",
            ),
            Error::Corrupt { .. } => interface.pick(
                texts(
                    "请手动修正该文件，Tanmi 不会覆盖它；`tanmi workspace check` 列出所有损坏的文件",
                    "fix the file by hand, Tanmi does not overwrite it; `tanmi workspace check` lists all damaged files",
                ),
                texts("请修正该文件，Tanmi 不会覆盖它", "fix the file, Tanmi does not overwrite it"),
                texts(
                    "请用编辑器修正该文件，Tanmi 不会覆盖它",
                    "fix the file in an editor, Tanmi does not overwrite it",
                ),
            ),
            Error::Conflict { .. } | Error::Unavailable { cause: UnavailableCause::Busy, .. } => {
                texts("稍后重试", "retry in a moment")
            }
            Error::Unavailable { cause: UnavailableCause::Moved, .. } => interface.pick(
                texts("在项目现在的文件夹中重新运行此命令", "run the command again in the current folder of the project"),
                texts(
                    "请用户在项目现在的文件夹中重新启动客户端",
                    "ask the user to restart the client in the current folder of the project",
                ),
                texts(
                    "在项目现在的文件夹中重新启动服务",
                    "restart the server in the current folder of the project",
                ),
            ),
            // Only the user decides whom to trust, so an agent must not learn how to allow it.
            Error::Unavailable { cause: UnavailableCause::OtherOwner(_), .. } => match interface {
                Interface::CommandLine => texts(
                    "如果信任该用户，用 `tanmi trust --allow-owner` 允许此项目；或用 `--project` 指定你自己的文件夹",
                    "if you trust that user, allow the project with `tanmi trust --allow-owner`; \
                     or select a folder of your own with `--project`",
                ),
                Interface::AgentShell | Interface::Mcp => texts(
                    "请用户在终端中用 doctor 检查此文件夹",
                    "ask the user to check the folder with doctor in a terminal",
                ),
                Interface::Page => texts(
                    "在终端中用 doctor 检查此文件夹",
                    "check the folder with doctor in a terminal",
                ),
            },
            Error::Unavailable { cause: UnavailableCause::Index(_), .. } => texts(
                "检查磁盘空间；可以删除 .local/index.sqlite，Tanmi 会重建它",
                "check the free disk space; you can delete .local/index.sqlite, Tanmi rebuilds it",
            ),
            Error::TeamUnreachable { may_have_run: true, .. } => texts(
                "服务器可能已执行此请求；十分钟内重复相同的调用是安全的，不会执行两次",
                "the server may have carried it out; repeat the same call within 10 minutes, which is safe: \
                 it is not carried out twice",
            ),
            Error::TeamUnreachable { .. } => match interface {
                Interface::CommandLine => texts(
                    "没有写入任何更改；`tanmi team status` 显示连接状态",
                    "nothing was changed; `tanmi team status` shows the connection",
                ),
                _ => texts("没有写入任何更改；稍后再试", "nothing was changed; try again later"),
            },
            Error::OutboxFull { .. } => match interface {
                Interface::CommandLine | Interface::AgentShell => texts(
                    "`tanmi team sync` 发送它们，`tanmi team outbox list` 列出它们",
                    "`tanmi team sync` sends them, `tanmi team outbox list` shows them",
                ),
                _ => texts(
                    "请用户在终端中用 team sync 发送它们",
                    "ask the user to send them with team sync in a terminal",
                ),
            },
            Error::Invalid { .. }
            | Error::Empty { .. }
            | Error::TeamRefused { .. }
            | Error::WorkspaceNotArchived { .. }
            | Error::RootProtected { .. }
            | Error::NotInList { .. }
            | Error::UnexpectedOutcome => return None,
            Error::Unavailable { place, cause: UnavailableCause::Io(error) } => {
                return io_hint(Path::new(place), error, interface);
            }
        })
    }
}

/// Returns the titles and statuses of the first dependencies.
fn dependency_list(open: &[OpenDependency]) -> String {
    let one = |one: &OpenDependency| {
        let status = one.status.map_or("missing", |status| status.as_str());
        match one.title.is_empty() {
            true => format!("{} ({status})", one.node_id),
            false => format!("“{}” ({status})", fit(&one_line(&one.title), 60)),
        }
    };
    let mut list: Vec<String> = open.iter().take(5).map(one).collect();
    list.extend((open.len() > 5).then(|| String::from("…")));
    list.join(", ")
}

fn unit_zh(unit: &str) -> &str {
    match unit {
        "characters" => "个字符",
        "bytes" => "字节",
        other => other,
    }
}

/// Returns how to create a workspace.
pub fn create_workspace_hint(interface: Interface) -> Texts {
    interface.pick(
        texts(
            "用 `tanmi workspace init --name … --goal …` 创建一个",
            "create one with `tanmi workspace init --name … --goal …`",
        ),
        texts("用 `workspace_init` 创建一个", "create one with `workspace_init`"),
        texts("点击「新建工作区」创建一个", "create one with “New workspace”"),
    )
}

/// Returns how to find the ids of workspaces.
pub fn list_workspaces_hint(interface: Interface) -> Texts {
    interface.pick(
        texts("`tanmi workspace list` 列出工作区", "`tanmi workspace list` lists the workspaces"),
        texts("`workspace_list` 列出工作区", "`workspace_list` lists the workspaces"),
        texts("在工作区列表中选择一个", "choose one in the list of workspaces"),
    )
}

/// Returns how to find the ids of nodes.
pub fn list_nodes_hint(interface: Interface) -> Texts {
    interface.pick(
        texts("`tanmi tree` 列出节点", "`tanmi tree` lists the nodes"),
        texts("`node_list` 列出节点", "`node_list` lists the nodes"),
        texts("在任务树中选择一个节点", "choose a node in the tree"),
    )
}

/// Returns a holder with the machine, in Chinese and English. A holder without a person is a session.
fn name_holder(holder: &Holder) -> (String, String) {
    let (person, machine) = (one_line(&holder.person), one_line(&holder.machine));
    match (person.as_str(), machine.as_str()) {
        ("", _) => {
            let session = one_line(&holder.session);
            (format!("会话 {session} "), format!("session {session}"))
        }
        (_, "") => (format!(" {person} "), person.clone()),
        _ => (format!(" {person}（{machine}）"), format!("{person} on {machine}")),
    }
}
