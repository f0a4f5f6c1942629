//! Command lines of hooks: quotes them for a shell and recognizes our own.

use std::path::{Path, PathBuf};

/// Quotes a path as one shell word.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if cfg!(windows) { format!("\"{word}\"") } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The command of one of our hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TanmiCommand {
    pub program: String,
    pub platform: String,
}

/// Parses a command that we wrote: exactly `…/tanmi hook PLATFORM [EVENT]`. Returns `None` for any other command,
/// including ours after a person edited it.
pub fn parse_tanmi_command(command: &str) -> Option<TanmiCommand> {
    let words = split_words(command.strip_prefix("& ").unwrap_or(command))?;
    let [program, verb, platform] = words.get(..3)? else { return None };
    let is_ours = is_tanmi(program) && verb == "hook" && words.len() <= 4;
    let is_event = words.get(3).is_none_or(|event| event.chars().all(|c| c.is_ascii_alphanumeric()));
    (is_ours && is_event && tanmi_platform::CLIENTS.find_platform(platform).is_some())
        .then(|| TanmiCommand { program: program.clone(), platform: platform.clone() })
}

/// Returns whether a path is our program. Checks only the file name, because the program can have moved.
pub fn is_tanmi(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    matches!(name, "tanmi" | "tanmi.exe") || own_name().is_some_and(|own| own == name)
}

/// Returns the file name of the running program, which can have been renamed.
fn own_name() -> Option<&'static str> {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let find = || Some(std::env::current_exe().ok()?.file_name()?.to_string_lossy().into_owned());
    NAME.get_or_init(find).as_deref()
}

/// Splits a simple command into words. Returns `None` if a shell would do more than split it.
pub(crate) fn split_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' if !cfg!(windows) => word.push(chars.next()?),
                        c => word.push(c),
                    }
                }
            }
            '\\' if !cfg!(windows) => word.get_or_insert_default().push(chars.next()?),
            ';' | '&' | '|' | '<' | '>' | '$' | '`' | '(' | ')' | '\n' | '\r' | '#' => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// Returns the path for hooks to this program. Prefers an entry on the search path, because a link there survives an
/// upgrade and its target may not.
pub fn find_self(path: Option<&std::ffi::OsStr>) -> std::io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let real = own.canonicalize().unwrap_or_else(|_| own.clone());
    let name = if cfg!(windows) { "tanmi.exe" } else { "tanmi" };
    let is_own =
        |found: &PathBuf| found.is_absolute() && found.canonicalize().is_ok_and(|found| found == real);
    let listed = path.and_then(|path| {
        std::env::split_paths(path).map(|dir: PathBuf| Path::new(&dir).join(name)).find(is_own)
    });
    Ok(listed.unwrap_or(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_tanmi_command_only_own_commands_are_recognized() {
        for (command, is_ours) in [
            ("/usr/bin/tanmi hook claude-code SessionStart", true),
            ("tanmi hook cursor", true),
            ("'/a b/tanmi' hook codex Stop", true),
            ("\"/a b/tanmi\" hook codex Stop", true),
            (r"/a\ b/tanmi hook codex Stop", true),
            ("& '/a b/tanmi' hook copilot-cli agentStop", true),
            ("/usr/bin/tanmi hook claude-code SessionStart; notify", false),
            ("/usr/bin/tanmi hook claude-code SessionStart && x", false),
            ("/usr/bin/tanmi hook claude-code SessionStart extra words", false),
            ("/usr/bin/tanmi hook claude-code $EVENT", false),
            ("/usr/bin/tanmi-other hook claude-code SessionStart", false),
            ("/opt/tanmi/bin/run hook claude-code", false),
            ("tanmi mcp", false),
            ("tanmi hook", false),
            ("tanmi hook unknown", false),
            ("'tanmi hook cursor", false),
            ("", false),
        ] {
            assert_eq!(parse_tanmi_command(command).is_some(), is_ours, "{command}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn quote_unusual_path_is_one_shell_word() {
        for path in
            ["/usr/bin/tanmi", "/a b/tanmi", "/it's/tanmi", "/用户/tanmi", "/$x;`y`/tanmi", "/a\"b/tanmi"]
        {
            let command = format!("{} hook cursor stop", quote(path));
            assert_eq!(parse_tanmi_command(&command).unwrap().program, path);
            let out = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(path))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&out.stdout), path);
        }
    }
}
