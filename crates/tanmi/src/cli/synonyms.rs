//! Words of other tools for our commands, so that an unknown command is answered with the right one.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;

/// The command in which the word was typed (empty for `tanmi` itself), words, and the commands that they may mean.
const SYNONYMS: &[(&str, &[&str], &[&str])] = &[
    ("", &["create", "add", "new"], &["node create", "workspace init"]),
    ("", &["init"], &["workspace init"]),
    ("", &["close", "complete", "finish", "resolve"], &["done"]),
    ("", &["begin", "claim", "work"], &["start"]),
    ("", &["cancel", "reopen", "retry", "submit", "transition"], &["node transition"]),
    ("", &["ready", "todo", "continue"], &["next", "status"]),
    ("", &["overview", "info", "st"], &["status"]),
    ("", &["list", "ls"], &["tree", "workspace list"]),
    ("", &["show", "view", "cat"], &["node show", "workspace show"]),
    ("", &["edit", "update", "rename"], &["node update", "workspace update"]),
    ("", &["delete", "remove", "rm"], &["node delete", "workspace delete"]),
    ("", &["restore", "undo", "undelete"], &["node restore", "workspace restore"]),
    ("", &["move", "mv"], &["node move"]),
    ("", &["archive"], &["workspace archive"]),
    ("", &["nodes", "tasks", "task", "issue", "issues"], &["node list", "tree"]),
    ("", &["workspaces"], &["workspace list"]),
    ("", &["sessions"], &["session list"]),
    ("", &["bind", "use"], &["session bind"]),
    ("", &["unbind"], &["session unbind"]),
    ("", &["focus"], &["workspace focus"]),
    ("", &["comment", "note"], &["log"]),
    ("", &["block", "blocked"], &["problem"]),
    ("", &["remember", "save", "fact"], &["memory save-fact"]),
    ("", &["search", "find", "recall"], &["memory search"]),
    ("", &["facts", "memories"], &["memory list"]),
    ("", &["forget"], &["memory forget"]),
    ("", &["get", "set", "unset", "settings"], &["config"]),
    ("", &["setup"], &["install"]),
    ("", &["check"], &["doctor", "workspace check"]),
    ("", &["web", "ui", "open", "server"], &["serve"]),
    ("workspace", &["create", "new", "add"], &["workspace init"]),
    ("workspace", &["edit", "rename"], &["workspace update"]),
    ("workspace", &["remove", "rm"], &["workspace delete"]),
    ("workspace", &["close"], &["workspace archive"]),
    ("workspace", &["undo", "undelete", "unarchive"], &["workspace restore"]),
    ("workspace", &["ls"], &["workspace list"]),
    ("node", &["add", "new"], &["node create"]),
    ("node", &["edit", "rename"], &["node update"]),
    ("node", &["remove", "rm"], &["node delete"]),
    ("node", &["undo", "undelete"], &["node restore"]),
    ("node", &["mv", "order"], &["node move"]),
    ("node", &["start", "begin"], &["start"]),
    ("node", &["done", "complete", "close", "finish"], &["done"]),
    ("node", &["fail"], &["fail"]),
    ("node", &["cancel", "reopen", "retry", "submit"], &["node transition"]),
    ("node", &["ls"], &["node list"]),
    ("node", &["ready"], &["next", "status"]),
    ("session", &["ls"], &["session list"]),
    ("memory", &["add", "save", "remember", "create"], &["memory save-fact"]),
    ("memory", &["find", "recall"], &["memory search"]),
    ("memory", &["delete", "remove", "rm"], &["memory forget"]),
    ("memory", &["ls"], &["memory list"]),
    ("config", &["reset", "remove", "delete", "rm"], &["config unset"]),
    ("config", &["show", "ls"], &["config list"]),
    ("trash", &["ls", "show"], &["trash list"]),
    ("trash", &["restore", "undo"], &["node restore", "workspace restore"]),
];

/// Returns the error with the commands that an unknown word means, if it is one of another tool.
pub fn with_synonyms(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
    {
        let commands = meanings(&parent(&error), &word.to_lowercase());
        if !commands.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(commands));
        }
    }
    error
}

/// Returns the command in which the error occurred, from its usage: `Usage: tanmi node [OPTIONS] <COMMAND>`.
fn parent(error: &clap::Error) -> String {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return String::new() };
    let usage = usage.to_string();
    let words = usage.split_whitespace().skip_while(|word| *word != "tanmi").skip(1);
    words.take_while(|word| !word.starts_with(['[', '<'])).collect::<Vec<_>>().join(" ")
}

fn meanings(parent: &str, word: &str) -> Vec<String> {
    let mut root = Cli::command();
    root.build();
    let exists = |path: &&&str| {
        let found = path.split(' ').try_fold(&root, |command, name| command.find_subcommand(name));
        found.is_some()
    };
    let rows = SYNONYMS.iter().filter(|(within, words, _)| *within == parent && words.contains(&word));
    rows.flat_map(|(_, _, commands)| commands.iter()).filter(exists).map(|path| (*path).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn unknown_word_of_another_tool_names_our_command() {
        for (args, expected) in [
            (vec!["tanmi", "close"], "'done'"),
            (vec!["tanmi", "create"], "'workspace init'"),
            (vec!["tanmi", "ready"], "'status'"),
            (vec!["tanmi", "workspace", "create"], "'workspace init'"),
            (vec!["tanmi", "node", "rm"], "'node delete'"),
        ] {
            let error = with_synonyms(Cli::try_parse_from(&args).unwrap_err());
            assert!(error.to_string().contains(expected), "{args:?}\n{error}");
        }
    }

    #[test]
    fn synonyms_are_no_commands_and_mean_a_command() {
        let mut root = Cli::command();
        root.build();
        for (within, words, _) in SYNONYMS {
            let names = within.split(' ').filter(|name| !name.is_empty());
            let command = names.fold(&root, |command, name| command.find_subcommand(name).unwrap());
            for word in *words {
                assert!(command.find_subcommand(word).is_none(), "`tanmi {within} {word}` exists");
                assert!(!meanings(within, word).is_empty(), "`{within} {word}` means no command");
            }
        }
    }
}
