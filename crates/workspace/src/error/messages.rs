//! The words of every error and of its next step, Chinese and English side by side.

use tanmi_base::Lang;

use super::{Error, Unfinished};

impl Error {
    /// What is wrong, in one sentence.
    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = self.messages();
        lang.pick(zh, en)
    }

    /// What to do next, if there is something.
    pub fn hint(&self, lang: Lang) -> Option<String> {
        let (zh, en) = self.hints()?;
        Some(lang.pick(zh, en))
    }

    fn messages(&self) -> (String, String) {
        match self {
            Error::Invalid { field, reason } => {
                (format!("{field} 无效：{reason}"), format!("{field}: {reason}"))
            }
            Error::Empty { field } => (format!("{field} 不能为空"), format!("{field} must not be empty")),
            Error::TooLong { field, unit, limit, actual } => (
                format!("{field} 过长：{actual}，上限 {limit}（{unit}）"),
                format!("{field} is too long: {actual} {unit}, the limit is {limit}"),
            ),
            Error::UnknownWord { field, word, .. } => {
                (format!("{field} 的值 {word:?} 无效"), format!("{field} cannot be {word:?}"))
            }
            Error::BadId { field, raw, .. } => {
                (format!("{field} {raw:?} 不是有效的 ID"), format!("{field} {raw:?} is not a valid id"))
            }
            Error::WorkspaceNotFound { id, .. } => {
                (format!("找不到工作区 {id}"), format!("no workspace {id}"))
            }
            Error::NodeNotFound { field, id } => {
                (format!("找不到节点 {id}（{field}）"), format!("no node {id} ({field})"))
            }
            Error::InvalidTransition { node, kind, status, action, .. } => (
                format!("{kind} 节点 {node} 处于 {status}，不能执行 {action}"),
                format!("{kind} node {node} is {status}: cannot {action}"),
            ),
            Error::ConclusionRequired { node, action } => (
                format!("对节点 {node} 执行 {action} 需要 conclusion"),
                format!("to {action} node {node} a conclusion is required"),
            ),
            Error::NodeTaken { node, by, since } => {
                let (by, since) = (tanmi_base::text::one_line(by), tanmi_base::clock::local_stamp(*since));
                (
                    format!("节点 {node} 自 {since} 起由会话 {by} 执行"),
                    format!("session {by} has been at work on node {node} since {since}"),
                )
            }
            Error::ChildrenUnfinished { node, count, .. } => (
                format!("节点 {node} 还有 {count} 个子节点未完成"),
                format!("node {node} still has unfinished children: {count}"),
            ),
            Error::RulesHashMismatch { given: None, .. } => (
                String::from("工作区有规则，缺少 rulesHash"),
                String::from("the workspace has rules: rulesHash is missing"),
            ),
            Error::RulesHashMismatch { given: Some(given), hash, .. } => (
                format!("rulesHash {given:?} 与当前规则（{hash}）不符"),
                format!("rulesHash {given:?} does not match the current rules ({hash})"),
            ),
            Error::WorkspaceArchived { id } => {
                (format!("工作区 {id} 已归档，只读"), format!("workspace {id} is archived and read-only"))
            }
            Error::WorkspaceNotArchived { id } => {
                (format!("工作区 {id} 并未归档"), format!("workspace {id} is not archived"))
            }
            Error::RootProtected { action } => {
                (format!("根节点不能执行 {action}"), format!("the root node cannot be changed by {action}"))
            }
            Error::ParentIsExecution { parent } => (
                format!("{parent} 是执行节点，不能有子节点"),
                format!("{parent} is an execution node and cannot have children"),
            ),
            Error::ParentCancelled { parent } => {
                (format!("父节点 {parent} 已取消"), format!("the parent {parent} is cancelled"))
            }
            Error::MoveIntoSelf { node, parent } => (
                format!("不能把节点 {node} 移动到自身或其后代 {parent} 之下"),
                format!("node {node} cannot be moved below itself or its descendant {parent}"),
            ),
            Error::TooDeep { limit } => (
                format!("节点树不能超过 {limit} 层"),
                format!("the tree cannot be deeper than {limit} levels"),
            ),
            Error::NotInList { field, what, .. } => {
                (format!("{field} 中没有 {what:?}"), format!("{field} has no {what:?}"))
            }
            Error::ReferenceNotFound { target } => {
                (format!("没有指向 {target} 的引用"), format!("there is no reference to {target}"))
            }
            Error::Outdated { .. } => (
                String::from("在您读取之后，别人修改了它；没有写入任何内容"),
                String::from("somebody else has changed it since you read it; nothing was written"),
            ),
            Error::Damaged { path, line, reason } => (
                format!("{}:{line} 无法解析：{reason}", path.display()),
                format!("{}:{line} cannot be read: {reason}", path.display()),
            ),
            Error::Busy { path } => (
                format!("另一个进程一直占用 {}", path.display()),
                format!("another process keeps {} locked", path.display()),
            ),
            Error::Contended { path } => (
                format!("{path} 在写入期间不断被修改"),
                format!("{path} kept changing while it was being written"),
            ),
            Error::Index(error) => (format!("索引出错：{error}"), error.to_string()),
            Error::Io { path, source } => {
                (format!("{}：{source}", path.display()), format!("{}: {source}", path.display()))
            }
        }
    }

    fn hints(&self) -> Option<(String, String)> {
        let both = |zh: &str, en: &str| Some((zh.to_owned(), en.to_owned()));
        match self {
            Error::UnknownWord { words, .. } => {
                let words = words.join(", ");
                Some((format!("可用的值：{words}"), format!("use one of: {words}")))
            }
            Error::BadId { shape, .. } => {
                let (zh, en) = match shape.starts_with("ws-") {
                    true => (
                        "workspace_list（命令行：tanmi workspace list）列出",
                        "workspace_list shows them, on the command line tanmi workspace list",
                    ),
                    false => (
                        "node_list（命令行：tanmi tree）列出",
                        "node_list shows them, on the command line tanmi tree",
                    ),
                };
                Some((format!("ID 的形式：{shape}；{zh}"), format!("ids look like: {shape}; {en}")))
            }
            Error::TooLong { unit: "characters", field: "name", .. } => {
                both("缩短它；细节写进 goal", "shorten it; what is more goes into goal")
            }
            Error::TooLong { unit: "characters", .. } => {
                both("缩短它；细节写进 requirement", "shorten it; what is more goes into requirement")
            }
            Error::TooLong { .. } => {
                both("写成文件，再用 docs 引用它的路径", "put it into a file and reference its path in docs")
            }
            Error::WorkspaceNotFound { existing, .. } if existing.is_empty() => both(
                "先创建一个：workspace_init（命令行：tanmi workspace init）",
                "create one first: workspace_init, on the command line tanmi workspace init",
            ),
            Error::WorkspaceNotFound { existing, .. } => {
                let list: Vec<String> = existing.iter().map(|(id, name)| format!("{id} ({name})")).collect();
                let list = list.join(", ");
                Some((format!("现有工作区：{list}"), format!("there are: {list}")))
            }
            Error::NotInList { known, .. } if !known.is_empty() => {
                let short = |one: &String| tanmi_base::text::fit(&tanmi_base::text::one_line(one), 60);
                let mut list: Vec<String> = known.iter().take(10).map(short).collect();
                list.extend((known.len() > 10).then(|| String::from("…")));
                let known = list.join("; ");
                Some((format!("现有：{known}"), format!("there are: {known}")))
            }
            Error::NodeNotFound { .. } => both(
                "现有节点：node_list（命令行：tanmi tree）",
                "node_list shows what exists, on the command line tanmi tree",
            ),
            Error::InvalidTransition { allowed, .. } if allowed.is_empty() => both(
                "此状态下没有可用的动作；不需要的节点可以删除",
                "no action is possible here; a node nobody wants can be deleted",
            ),
            Error::InvalidTransition { allowed, .. } => {
                let list: Vec<&str> = allowed.iter().map(|action| action.as_str()).collect();
                let list = list.join(", ");
                Some((format!("可用的动作：{list}"), format!("allowed from here: {list}")))
            }
            Error::NodeTaken { .. } => both(
                "选择另一个节点，或在用户同意后用 force（命令行：--force）接手",
                "choose another node, or take it with force (on the command line --force) if the user agrees",
            ),
            Error::ConclusionRequired { .. } => both(
                "用 conclusion（命令行：--conclusion）说明结果",
                "say what came of it: conclusion, on the command line --conclusion",
            ),
            Error::ChildrenUnfinished { unfinished, .. } => {
                let one = |child: &Unfinished| {
                    let actions: Vec<&str> = child.allowed.iter().map(|action| action.as_str()).collect();
                    format!("{} {} ({}: {})", child.id, child.title, child.status, actions.join(", "))
                };
                let list: Vec<String> = unfinished.iter().map(one).collect();
                let list = tanmi_base::text::one_line(&list.join("; "));
                Some((
                    format!("先让它们结束（括号内是可用的动作），不要的可以删除：{list}"),
                    format!(
                        "first bring them to an end (possible steps in brackets), or delete what is not wanted: {list}"
                    ),
                ))
            }
            Error::RulesHashMismatch { rules, hash, .. } => {
                let rules = rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n");
                Some((
                    format!("阅读当前规则，然后用 rulesHash {hash} 重试：\n{rules}"),
                    format!("read the current rules, then try again with rulesHash {hash}:\n{rules}"),
                ))
            }
            Error::WorkspaceArchived { .. } => {
                both("先恢复：workspace_restore", "bring it back first: workspace_restore")
            }
            Error::ParentIsExecution { .. } => {
                both("选择一个 planning 节点作为父节点", "choose a planning node as the parent")
            }
            Error::ParentCancelled { .. } => both("先对父节点执行 reopen", "reopen the parent first"),
            Error::Outdated { .. } => both(
                "查看现在的内容，然后用新的版本再次提交",
                "look at what it is now, then send your change again with the new version",
            ),
            Error::Damaged { .. } => both(
                "请手工修复该文件（不会被覆盖）；tanmi workspace check 会列出所有损坏",
                "mend the file by hand (it is never overwritten); tanmi workspace check lists all damage",
            ),
            Error::Busy { .. } | Error::Contended { .. } => both("稍后重试", "try again in a moment"),
            Error::Index(_) => both(
                "检查磁盘空间；索引可以随时删除（.local/index.sqlite），它会自动重建",
                "look at the free space of the disk; .local/index.sqlite may be deleted, it comes back by itself",
            ),
            _ => None,
        }
    }
}
