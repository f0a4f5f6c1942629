//! Chinese texts of help pages, by command path and argument id. Read only when a Chinese help page is printed.

mod control;
mod setup;
mod team;
mod work;

/// The texts of one command.
pub struct ChineseTexts {
    /// Names of the command and its parents, such as `node create`; empty for `tanmi` itself.
    pub path: &'static str,
    pub about: &'static str,
    /// Ids of arguments with their help.
    pub args: &'static [ArgumentText],
    /// Examples; empty if the command has none.
    pub after: &'static str,
}

/// The id of an argument, and its help.
type ArgumentText = (&'static str, &'static str);

const fn page(
    path: &'static str,
    about: &'static str,
    args: &'static [ArgumentText],
    after: &'static str,
) -> ChineseTexts {
    ChineseTexts { path, about, args, after }
}

const ROOT: &[ChineseTexts] = &[page(
    "",
    "用规划、记忆和上下文注入，让 AI 编程智能体不偏离目标",
    &[("project", "项目目录 [默认：当前目录所在的项目]"), ("json", "以 JSON 输出结果或错误")],
    "\
开始使用：
  tanmi install            为本机的智能体安装钩子和 MCP 服务器
  tanmi demo               逐步演示智能体会收到什么
  tanmi status             显示本项目的工作
  tanmi help <命令>        显示某个命令的帮助",
)];

const TABLES: &[&[ChineseTexts]] = &[ROOT, work::PAGES, control::PAGES, setup::PAGES, team::PAGES];

/// Returns the texts of a command.
pub fn find(path: &str) -> Option<&'static ChineseTexts> {
    TABLES.iter().flat_map(|pages| pages.iter()).find(|page| page.path == path)
}

/// Returns the help of an argument. Arguments that every command has are with `tanmi` itself.
pub fn argument(path: &str, id: &str) -> Option<&'static str> {
    let text =
        |page: &'static ChineseTexts| page.args.iter().find(|(name, _)| *name == id).map(|(_, text)| *text);
    find(path).and_then(text).or_else(|| find("").and_then(text))
}

// Arguments that several commands share.
const WORKSPACE_DEFAULT: &str = "工作区 ID [默认：会话绑定的工作区，否则是项目中唯一活跃的工作区]";
const WORKSPACE: ArgumentText = ("workspace", WORKSPACE_DEFAULT);
const WORKSPACE_ID: ArgumentText = ("id", WORKSPACE_DEFAULT);
const WORKSPACE_OPTION: ArgumentText = ("workspace", "同 [WS]");
const NODE_ID: ArgumentText = ("id", "节点 ID，见 `tanmi tree`；未给出 --node 时必需");
const NODE_OPTION: ArgumentText = ("node", "同 [NODE]");
const SESSION: ArgumentText = ("session", "会话 ID [默认：在智能体的 shell 中自动识别]");
const BELOW: ArgumentText = ("parent", "只显示该节点之下的节点");
const STATUS: ArgumentText = (
    "status",
    "只显示处于该状态的节点：pending、planning、monitoring、implementing、validating、completed、failed 或 \
     cancelled；可重复，也可用逗号分隔",
);
const MASK_SECRETS: ArgumentText =
    ("mask_secrets", "遮盖文字中的密钥、令牌和密码 [默认：保留并警告；在智能体的 shell 中总是遮盖]");
const YES: ArgumentText = ("yes", "不询问确认");

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{ArgAction, CommandFactory};
    use tanmi_base::lang::is_han;

    use super::*;
    use crate::cli::Cli;

    /// Ids of the arguments of every command, by path, and whether the command has examples.
    fn commands() -> BTreeMap<String, (Vec<String>, bool)> {
        fn visit(command: &clap::Command, path: &str, found: &mut BTreeMap<String, (Vec<String>, bool)>) {
            let own = |argument: &&clap::Arg| {
                let is_standard = matches!(argument.get_action(), ArgAction::Help | ArgAction::Version);
                !is_standard && (path.is_empty() || !argument.is_global_set())
            };
            let ids = command.get_arguments().filter(own).map(|argument| argument.get_id().to_string());
            found.insert(path.to_owned(), (ids.collect(), command.get_after_help().is_some()));
            for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
                let path = format!("{path} {}", below.get_name());
                visit(below, path.trim_start(), found);
            }
        }
        let mut root = Cli::command();
        root.build();
        let mut found = BTreeMap::new();
        visit(&root, "", &mut found);
        found
    }

    fn pages() -> impl Iterator<Item = &'static ChineseTexts> {
        TABLES.iter().flat_map(|pages| pages.iter())
    }

    #[test]
    fn every_command_and_argument_has_a_chinese_text() {
        for (path, (ids, has_examples)) in commands() {
            let page = find(&path).unwrap_or_else(|| panic!("no Chinese page for `tanmi {path}`"));
            for id in ids {
                assert!(page.args.iter().any(|(name, _)| *name == id), "tanmi {path}: no text for {id}");
            }
            assert_eq!(!page.after.is_empty(), has_examples, "tanmi {path}: examples");
        }
    }

    #[test]
    fn every_chinese_text_belongs_to_a_command_or_argument() {
        let commands = commands();
        let mut seen = std::collections::BTreeSet::new();
        for page in pages() {
            assert!(seen.insert(page.path), "{}: two pages", page.path);
            let Some((ids, _)) = commands.get(page.path) else { panic!("no command `tanmi {}`", page.path) };
            for (id, _) in page.args {
                assert!(ids.iter().any(|known| known == id), "tanmi {}: no argument {id}", page.path);
            }
            assert_eq!(page.args.len(), ids.len(), "tanmi {}: an argument twice", page.path);
        }
    }

    #[test]
    fn every_chinese_text_is_chinese() {
        let is_chinese = |text: &str| text.chars().any(is_han);
        for page in pages() {
            let texts = page.args.iter().map(|(_, text)| *text).chain([page.about]);
            for text in texts.chain(Some(page.after).filter(|after| !after.is_empty())) {
                assert!(is_chinese(text), "tanmi {}: {text}", page.path);
                assert!(!text.ends_with('。') || text.lines().count() > 1 || text == page.after, "{text}");
            }
        }
    }

    /// A placeholder such as `<NODE>` counts as a value; redirections are not arguments.
    #[test]
    fn examples_of_both_languages_are_accepted() {
        let english: Vec<String> = {
            let mut root = Cli::command();
            root.build();
            let mut found = Vec::new();
            collect(&root, &mut found);
            found
        };
        let chinese = pages().map(|page| page.after.to_owned());
        let mut seen = 0;
        for text in english.into_iter().chain(chinese) {
            for line in text.replace("\\\n    ", "").lines().filter(|line| line.starts_with("  tanmi ")) {
                let args = words(line);
                let outcome = <Cli as clap::Parser>::try_parse_from(&args);
                let is_help =
                    matches!(&outcome, Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelp);
                assert!(outcome.is_ok() || is_help || line.contains(" help <"), "{line}: {args:?}");
                seen += 1;
            }
        }
        assert!(seen > 40, "{seen}");
    }

    fn collect(command: &clap::Command, found: &mut Vec<String>) {
        found.extend(command.get_after_help().map(ToString::to_string));
        command.get_subcommands().for_each(|below| collect(below, found));
    }

    /// Splits a line as a shell does; a description after two spaces and a redirection do not count.
    fn words(line: &str) -> Vec<String> {
        let line = line.trim();
        let line = line.split(" > ").next().unwrap_or(line);
        let mut words = Vec::new();
        for (n, part) in line.split('\'').enumerate() {
            if n % 2 == 1 {
                words.push(part.to_owned());
            } else {
                let part = if words.is_empty() { part.split("   ").next().unwrap_or(part) } else { part };
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }
}
