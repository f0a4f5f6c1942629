//! `tanmi complete-line`: ids and titles for the completion scripts of shells. Which argument is meant follows from the
//! definition of the command line. Errors print nothing, because they would appear in the middle of a typed line.

use clap::{Arg, Command, CommandFactory};
use tanmi_app::memory::MemoryQuery;
use tanmi_app::sessions::SessionFilter;
use tanmi_app::workspaces::WorkspaceFilter;
use tanmi_base::text;
use tanmi_workspace::ops::ListQuery;

use super::{CommandContext, Result};
use crate::cli::Cli;
use crate::{out, show};

/// The maximum number of candidates.
const LIMIT: usize = 500;
/// The width of a description, which a shell shows beside the candidate.
const COLUMNS: usize = 60;

/// An id and the title of what it belongs to.
type Candidate = (String, String);

/// The argument at the cursor.
struct Position {
    command: String,
    /// The id and the value name of the argument.
    argument: String,
    value_name: String,
    /// The typed part of the value.
    typed: String,
    /// The value of `--workspace`, if the line has one.
    workspace: Option<String>,
}

pub fn run(context: &CommandContext, words: &[String]) -> Result {
    let Some(position) = find_position(words) else { return Ok(()) };
    let candidates = candidates(context, &position).unwrap_or_default();
    let ids = show::short_ids(candidates.iter().map(|(id, _)| id.as_str()));
    let typed = position.typed.trim_start_matches(['"', '\'']);
    let mut lines = String::new();
    for ((whole, title), id) in candidates.iter().zip(ids) {
        let title = text::one_line(title);
        if id.starts_with(typed) {
            lines.push_str(&format!("{id}\t{}\n", text::fit(&title, COLUMNS)));
        } else if whole.starts_with(typed) {
            lines.push_str(&format!("{whole}\t{}\n", text::fit(&title, COLUMNS)));
        } else if title.to_lowercase().starts_with(&typed.to_lowercase()) && position.accepts_titles() {
            lines.push_str(&format!("{title}\t{id}\n"));
        }
    }
    out::raw(lines.as_bytes());
    Ok(())
}

impl Position {
    fn accepts_titles(&self) -> bool {
        matches!(self.value_name.as_str(), "NODE" | "WS")
    }
}

fn candidates(context: &CommandContext, position: &Position) -> Result<Vec<Candidate>> {
    let app = &context.app;
    Ok(match (position.value_name.as_str(), position.argument.as_str(), position.command.as_str()) {
        ("NODE", _, _) => {
            let scope = context.scope(position.workspace.as_deref())?;
            let page =
                app.nodes.list(&scope.workspace, &ListQuery { limit: LIMIT, ..ListQuery::default() })?;
            page.result.nodes.into_iter().map(|row| (row.node.id.to_string(), row.node.title)).collect()
        }
        ("WS", _, _) => {
            let filter = WorkspaceFilter { limit: LIMIT, ..WorkspaceFilter::default() };
            let lines = app.workspaces.list(&filter)?.workspaces.into_iter();
            lines.map(|line| (line.workspace_id.to_string(), line.name)).collect()
        }
        (_, "session", _) => {
            let sessions =
                app.sessions.list(&SessionFilter { limit: LIMIT, ..SessionFilter::default() })?.sessions;
            sessions.into_iter().map(|line| (line.session_id, line.platform)).collect()
        }
        (_, "id" | "ids" | "supersedes", command) if command.starts_with("memory ") => {
            let query =
                MemoryQuery { all: command == "memory restore", limit: LIMIT, ..MemoryQuery::default() };
            app.memory.list(&query)?.results.into_iter().map(|memory| (memory.id, memory.content)).collect()
        }
        _ => Vec::new(),
    })
}

/// Returns the argument that the last word belongs to. The first word is the program.
fn find_position(words: &[String]) -> Option<Position> {
    let mut root = Cli::command();
    root.build();
    let (typed, before) = words.get(1..)?.split_last()?;
    let (mut command, mut path): (&Command, Vec<&str>) = (&root, Vec::new());
    let (mut open_option, mut workspace, mut positional): (Option<&Arg>, Option<String>, usize) =
        (None, None, 0);
    for word in before {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if let Some(option) = open_option.take() {
            workspace = Some(word.clone()).filter(|_| option.get_id() == "workspace").or(workspace);
        } else if let Some(option) = find_option(command, name) {
            let has_value = option.get_action().takes_values();
            if has_value && word.contains('=') {
                workspace = Some(value.to_owned()).filter(|_| option.get_id() == "workspace").or(workspace);
            } else if has_value {
                open_option = Some(option);
            }
        } else if let Some(below) = command.find_subcommand(word) {
            (command, positional) = (below, 0);
            path.push(below.get_name());
        } else if !word.starts_with('-') {
            positional += 1;
        }
    }
    let with_name =
        typed.split_once('=').and_then(|(name, value)| Some((find_option(command, name)?, value)));
    let (argument, typed) = match (open_option, with_name) {
        (Some(option), _) => (option, typed.as_str()),
        (None, Some((option, value))) => (option, value),
        // The last positional argument can have several values.
        _ => {
            let last = command.get_positionals().count().checked_sub(1)?;
            (command.get_positionals().nth(positional.min(last))?, typed.as_str())
        }
    };
    let value_name = argument.get_value_names().and_then(|names| names.first());
    Some(Position {
        command: path.join(" "),
        argument: argument.get_id().to_string(),
        value_name: value_name.map(ToString::to_string).unwrap_or_default(),
        typed: typed.to_owned(),
        workspace,
    })
}

/// Returns the option with this name, such as `--node` or `-n`.
fn find_option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let is_named = |option: &&Arg| {
        option.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
            || option
                .get_short()
                .is_some_and(|short| name.strip_prefix('-') == Some(short.to_string().as_str()))
    };
    command.get_arguments().find(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_position_returns_argument_at_cursor() {
        let at = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            find_position(&words).map(|found| (found.argument, found.typed, found.workspace))
        };
        let found = |argument: &str, typed: &str, workspace: Option<&str>| {
            Some((argument.to_owned(), typed.to_owned(), workspace.map(str::to_owned)))
        };
        assert_eq!(at("tanmi node show ab"), found("id", "ab", None));
        assert_eq!(at("tanmi log -w rz9x --node "), found("node", "", Some("rz9x")));
        assert_eq!(at("tanmi --json tree --workspace=rz9x --parent=c"), found("parent", "c", Some("rz9x")));
        assert_eq!(at("tanmi memory forget a b "), found("ids", "", None));
        assert_eq!(at("tanmi "), None);
    }
}
