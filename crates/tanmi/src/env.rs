//! Every environment variable the program reads, and what it makes of the outside world.
//!
//! Those that name the folder of an agent are with the agents, in `tanmi_install::agent`.

use std::ffi::OsString;
use std::path::PathBuf;

use tanmi_app::Env;
use tanmi_base::{Lang, clock, paths};
use tanmi_session::ClientProcess;
use tanmi_workspace::model::Operator;

/// Variables of one meaning.
pub struct Variable {
    pub names: &'static [&'static str],
    pub about: &'static str,
}

const fn variable(names: &'static [&'static str], about: &'static str) -> Variable {
    Variable { names, about }
}

/// For `tanmi reference`.
pub const VARIABLES: &[Variable] = &[
    variable(&["TANMI_HOME"], "the home store instead of `~/.tanmi-workspace`"),
    variable(&["TANMI_CONTEXT"], "a `context.json` of the machine or container"),
    variable(&["TANMI_DISABLE"], "nothing is said to any agent, unless it is empty or `0`"),
    variable(&["TANMI_NOW"], "fixes the clock (milliseconds since the epoch)"),
    variable(&["HOME", "USERPROFILE"], "the user's home folder"),
    variable(&["LC_ALL", "LC_MESSAGES", "LANG"], "the language of messages where no text decides it"),
    variable(&["TZ"], "the time zone of times in logs and on the screen"),
    variable(&["NO_COLOR", "CLICOLOR_FORCE"], "colour"),
    variable(&["PATH"], "where an install looks for agents"),
    variable(&["TMPDIR"], "where the demo and the doctor make their scratch folders"),
    variable(AGENT_VARIABLES, "the caller is an agent: log lines are marked AI"),
    variable(SESSION_VARIABLES, "the session of the caller"),
    variable(&["CLAUDE_PID"], "the client that runs a hook"),
];

/// Set by agents in the shells they run.
const AGENT_VARIABLES: &[&str] = &[
    "CLAUDECODE",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "COPILOT_AGENT_SESSION_ID",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "OPENCODE",
];

/// Named by the agents that name it, in the shells and servers they start.
const SESSION_VARIABLES: &[&str] =
    &["CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "COPILOT_AGENT_SESSION_ID"];

fn session() -> Option<String> {
    SESSION_VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).find(|value| !value.is_empty())
}

pub fn is_disabled() -> bool {
    std::env::var_os("TANMI_DISABLE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The client that runs this program as a hook.
pub fn client() -> Option<ClientProcess> {
    tanmi_session::client_of_hook(std::env::var("CLAUDE_PID").ok().as_deref())
}

/// Where programs are looked for.
pub fn search_path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// Whatever variable names it; empty is as good as not set.
pub fn folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A declaration for everybody on this machine or in this container.
pub fn context() -> Option<PathBuf> {
    folder("TANMI_CONTEXT")
}

/// `Err` says what is missing.
pub fn read(project: Option<PathBuf>) -> Result<Env, String> {
    let home = paths::home_store().ok_or("no home folder: set TANMI_HOME or HOME")?;
    let cwd = std::env::current_dir().map_err(|error| format!("no working directory: {error}"))?;
    let project = match project {
        None => None,
        Some(dir) => {
            let found =
                dir.canonicalize().map_err(|error| format!("--project {}: {error}", dir.display()))?;
            if !found.is_dir() {
                return Err(format!("--project {}: not a folder", dir.display()));
            }
            // Named on purpose, so it is this folder and not one above it.
            Some(found)
        }
    };
    let is_agent =
        AGENT_VARIABLES.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let operator = if is_agent { Operator::Ai } else { Operator::Human };
    Ok(Env {
        home,
        cwd,
        project,
        operator,
        locale: Lang::of_locale(),
        clock: clock::now,
        strict_rules: false,
        user: paths::user_home(),
        source: tanmi_event::Source::Api,
        disabled: is_disabled(),
        context: context(),
        session: session(),
        long_running: false,
        remote: false,
    })
}
