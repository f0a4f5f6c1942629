//! Help pages in English and Chinese.
//!
//! clap writes its headings in English and wraps text at spaces only, so the pages are rendered here from its
//! [`clap::Command`]. This happens only after parsing found that help was requested.

use std::ffi::OsString;

use anstyle::Style;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, CommandFactory};
use tanmi_base::{Lang, text};

use super::wrap::wrap;
use super::{Cli, zh};

const HEADING: Style = Style::new().bold().underline();
const LITERAL: Style = Style::new().bold();

/// A name that is wider than this has its text on the next line.
const MAX_NAME_WIDTH: usize = 28;
const INDENT: usize = 2;

/// The commands of `tanmi --help`, by topic: heading in Chinese and English, names.
const GROUPS: &[(&str, &str, &[&str])] = &[
    (
        "规划和跟踪工作",
        "Plan and track work",
        &[
            "status",
            "next",
            "start",
            "done",
            "fail",
            "plan",
            "workspace",
            "node",
            "tree",
            "log",
            "problem",
            "trash",
        ],
    ),
    ("会话和记忆", "Sessions and memory", &["session", "memory"]),
    (
        "控制智能体收到的内容",
        "Control what agents receive",
        &["context", "rules", "trust", "ledger", "pause", "resume"],
    ),
    ("安装和设置", "Set up", &["install", "uninstall", "doctor", "config", "demo"]),
    ("网页和集成", "Web page and integrations", &["serve", "team", "mcp", "hook", "statusline"]),
    ("其他", "Other", &["completions", "man", "help"]),
];

/// Returns the error with the help page of this module if it is a request for help, else the error itself.
pub fn with_help_page(error: clap::Error, args: &[OsString], lang: Lang) -> clap::Error {
    let is_help =
        matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    if !is_help {
        return error;
    }
    // clap does not tell which command the help is for, so it parses again with the pages in place.
    match command_with_pages(lang, super::wrap::terminal_width()).try_get_matches_from(args) {
        Err(page) if page.kind() == error.kind() => page,
        _ => error,
    }
}

fn command_with_pages(lang: Lang, width: usize) -> clap::Command {
    let mut root = Cli::command();
    root.build();
    with_pages(root, "", lang, width)
}

fn with_pages(command: clap::Command, path: &str, lang: Lang, width: usize) -> clap::Command {
    let page = render(&command, path, lang, width);
    command.override_help(page).mut_subcommands(|below| match below.get_name() {
        "help" => below.override_help(page_of_help_command(path, lang)),
        name => {
            let path = join(path, name);
            with_pages(below, &path, lang, width)
        }
    })
}

fn page_of_help_command(path: &str, lang: Lang) -> String {
    let command = format!("tanmi {}", join(path, "help"));
    let (zh, en) = (
        format!("显示命令的帮助\n\n{HEADING}用法：{HEADING:#}{LITERAL}{command} [命令]...{LITERAL:#}\n"),
        format!(
            "Show the help of a command\n\n{HEADING}Usage:{HEADING:#} {LITERAL}{command} [COMMAND]...{LITERAL:#}\n"
        ),
    );
    lang.pick(zh, en)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path} {name}") }
}

fn render(command: &clap::Command, path: &str, lang: Lang, width: usize) -> String {
    let texts = PageTexts { lang, path };
    let mut page = HelpPage { out: String::new(), width };
    page.lines(&texts.about(command));
    page.out.push('\n');
    page.usage(command, lang);
    if path.is_empty() {
        let visible = command.get_subcommands().filter(|below| !below.is_hide_set());
        let column = column(visible.map(|below| text::width(below.get_name())));
        for (zh, en, names) in GROUPS {
            let rows = names.iter().filter_map(|name| command.find_subcommand(name));
            page.section(lang.pick(zh, en), column, rows.map(|below| texts.command_row(below)).collect());
        }
    } else if command.has_subcommands() {
        let rows: Vec<Row> = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help")
            .map(|below| texts.command_row(below))
            .collect();
        let column = column(rows.iter().map(Row::width));
        page.section(lang.pick("命令", "Commands"), column, rows);
    }
    page.arguments(command, &texts);
    let after = texts.after(command);
    if !after.is_empty() {
        page.out.push('\n');
        page.examples(&after);
    }
    page.out
}

/// Returns where texts begin if names have these widths.
fn column(widths: impl Iterator<Item = usize>) -> usize {
    INDENT + widths.filter(|width| *width <= MAX_NAME_WIDTH).max().unwrap_or(0) + INDENT
}

/// One line of a section: a name and its text.
struct Row {
    /// The part of the name to type as it is.
    literal: String,
    /// The part of the name to replace with a value.
    value: String,
    text: String,
}

impl Row {
    fn width(&self) -> usize {
        text::width(&self.literal) + text::width(&self.value)
    }
}

/// The texts of one command in one language.
struct PageTexts<'a> {
    lang: Lang,
    path: &'a str,
}

impl PageTexts<'_> {
    fn zh(&self) -> Option<&'static zh::ChineseTexts> {
        (self.lang == Lang::Zh).then(|| zh::find(self.path)).flatten()
    }

    fn about(&self, command: &clap::Command) -> String {
        match self.zh() {
            Some(page) => page.about.to_owned(),
            None => command.get_about().map(ToString::to_string).unwrap_or_default(),
        }
    }

    fn after(&self, command: &clap::Command) -> String {
        match self.zh() {
            Some(page) => page.after.to_owned(),
            None => command.get_after_help().map(ToString::to_string).unwrap_or_default(),
        }
    }

    fn command_row(&self, below: &clap::Command) -> Row {
        let text = match below.get_name() {
            "help" => self.lang.pick("显示命令的帮助", "Show the help of a command").to_owned(),
            name => PageTexts { path: &join(self.path, name), ..*self }.about(below),
        };
        Row { literal: below.get_name().to_owned(), value: String::new(), text }
    }

    fn argument_row(&self, argument: &Arg) -> Row {
        let (literal, value) = argument_name(argument);
        let mut parts = vec![self.argument(argument)];
        let default: Vec<_> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if argument.get_action().takes_values()
            && !default.is_empty()
            && !argument.is_hide_default_value_set()
        {
            let default = default.join(" ");
            parts.push(self.lang.pick(format!("[默认：{default}]"), format!("[default: {default}]")));
        }
        let possible: Vec<String> =
            argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        if !possible.is_empty() {
            parts.push(self.lang.pick(
                format!("[可选值：{}]", possible.join("、")),
                format!("[possible values: {}]", possible.join(", ")),
            ));
        }
        Row { literal, value, text: parts.join(" ") }
    }

    fn argument(&self, argument: &Arg) -> String {
        let id = argument.get_id().as_str();
        let standard = match argument.get_action() {
            ArgAction::Help => Some(("显示帮助", "Print help")),
            ArgAction::Version => Some(("显示版本", "Print the version")),
            _ => None,
        };
        let english = || argument.get_help().map(ToString::to_string).unwrap_or_default();
        match (standard, self.lang) {
            (Some((zh, en)), lang) => lang.pick(zh, en).to_owned(),
            (None, Lang::Zh) => zh::argument(self.path, id).map_or_else(english, str::to_owned),
            (None, Lang::En) => english(),
        }
    }
}

/// Returns `-w, --workspace` and ` <WS>`; the first part is empty for an argument without a flag.
fn argument_name(argument: &Arg) -> (String, String) {
    if argument.is_positional() {
        return (String::new(), argument.to_string());
    }
    let long = argument.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    let literal = match argument.get_short() {
        Some(short) => format!("-{short}, {long}"),
        None => format!("    {long}"),
    };
    let value = argument.to_string().strip_prefix(&long).unwrap_or_default().to_owned();
    (literal, value)
}

/// Returns the usage of a command without a heading, in the given language.
pub fn localized_usage(usage: &str, lang: Lang) -> String {
    let usage = usage.trim().trim_start_matches("Usage:").trim();
    match lang {
        Lang::En => usage.to_owned(),
        Lang::Zh => {
            usage.replace("[OPTIONS]", "[选项]").replace("<COMMAND>", "<命令>").replace("[COMMAND]", "[命令]")
        }
    }
}

struct HelpPage {
    out: String,
    width: usize,
}

impl HelpPage {
    fn lines(&mut self, text: &str) {
        for line in wrap(text, self.width) {
            self.out.push_str(&line);
            self.out.push('\n');
        }
    }

    fn usage(&mut self, command: &clap::Command, lang: Lang) {
        let usage = localized_usage(&command.clone().render_usage().to_string(), lang);
        let heading = lang.pick("用法：", "Usage:");
        let space = lang.pick("", " ");
        self.out.push_str(&format!("{HEADING}{heading}{HEADING:#}{space}{LITERAL}{usage}{LITERAL:#}\n"));
    }

    fn arguments(&mut self, command: &clap::Command, texts: &PageTexts<'_>) {
        let shown: Vec<&Arg> = command.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
        let is_global = |argument: &Arg| {
            argument.is_global_set() || matches!(argument.get_action(), ArgAction::Help | ArgAction::Version)
        };
        let rows = |wanted: &dyn Fn(&Arg) -> bool| -> Vec<Row> {
            let chosen = shown.iter().filter(|argument| wanted(argument));
            chosen.map(|argument| texts.argument_row(argument)).collect()
        };
        let lang = texts.lang;
        let sections = [
            (lang.pick("参数", "Arguments"), rows(&|argument| argument.is_positional())),
            (
                lang.pick("选项", "Options"),
                rows(&|argument| !argument.is_positional() && !is_global(argument)),
            ),
            (
                lang.pick("全局选项", "Global options"),
                rows(&|argument| !argument.is_positional() && is_global(argument)),
            ),
        ];
        let column = column(sections.iter().flat_map(|(_, rows)| rows).map(Row::width));
        for (heading, rows) in sections {
            self.section(heading, column, rows);
        }
    }

    fn section(&mut self, heading: &str, column: usize, rows: Vec<Row>) {
        if rows.is_empty() {
            return;
        }
        let colon = if heading.is_ascii() { ":" } else { "：" };
        self.out.push_str(&format!("\n{HEADING}{heading}{colon}{HEADING:#}\n"));
        for row in rows {
            self.row(column, &row);
        }
    }

    fn row(&mut self, column: usize, row: &Row) {
        let Row { literal, value, text } = row;
        self.out.push_str(&format!("{:INDENT$}{LITERAL}{literal}{LITERAL:#}{value}", ""));
        let used = INDENT + row.width();
        let is_below = used + INDENT > column;
        let lines = wrap(text, self.width.saturating_sub(column).max(20));
        for (n, line) in lines.iter().enumerate() {
            let before = match n == 0 && !is_below {
                true => column - used,
                false => {
                    self.out.push('\n');
                    column
                }
            };
            self.out.push_str(&format!("{:before$}{line}", ""));
        }
        self.out.push('\n');
    }

    /// Writes indented lines as they are, headings in their style, and wraps other lines.
    fn examples(&mut self, text: &str) {
        for line in text.lines() {
            if line.starts_with(' ') || line.is_empty() {
                self.out.push_str(line);
                self.out.push('\n');
            } else if line.ends_with([':', '：']) {
                self.out.push_str(&format!("{HEADING}{line}{HEADING:#}\n"));
            } else {
                self.lines(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_groups_contain_every_visible_command_once() {
        let mut root = Cli::command();
        root.build();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, _, names)| names.iter().copied()).collect();
        let mut visible: Vec<&str> = root
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        grouped.sort_unstable();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn every_command_and_argument_has_english_help() {
        fn check(command: &clap::Command, path: &str) {
            assert!(command.get_about().is_some(), "{path}: no about");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path}: {}: no help", argument.get_id());
            }
            for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
                check(below, &join(path, below.get_name()));
            }
        }
        let mut root = Cli::command();
        root.build();
        check(&root, "");
    }

    #[test]
    fn pages_fit_into_the_width_if_words_do() {
        for lang in [Lang::En, Lang::Zh] {
            let mut root = Cli::command();
            root.build();
            let page = render(&root, "", lang, 70);
            let plain = anstream::adapter::strip_str(&page).to_string();
            let long: Vec<&str> = plain.lines().filter(|line| text::width(line) > 70).collect();
            assert!(long.is_empty(), "{long:#?}");
        }
    }
}
