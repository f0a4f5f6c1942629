//! The environment variables that the program reads, and the [`Env`] made from them.
//!
//! Variables that name the folder of an agent are in `tanmi_install::agent`.

use std::ffi::OsString;
use std::path::PathBuf;

use tanmi_app::Env;
use tanmi_base::{Lang, clock, paths};
use tanmi_session::ClientProcess;
use tanmi_workspace::model::Operator;

/// Variables with the same meaning.
pub struct Variable {
    pub names: &'static [&'static str],
    pub about: &'static str,
}

const fn variable(names: &'static [&'static str], about: &'static str) -> Variable {
    Variable { names, about }
}

/// The variables that `tanmi reference` lists.
pub const VARIABLES: &[Variable] = &[
    variable(&["TANMI_HOME"], "home store, instead of `~/.tanmi-workspace`"),
    variable(&["TANMI_CONTEXT"], "`context.json` of the machine or container"),
    variable(&["TANMI_DISABLE"], "inject nothing, unless it is empty or `0`"),
    variable(&["TANMI_NOW"], "fixed time in milliseconds since the Unix epoch, for tests"),
    variable(&["HOME", "USERPROFILE"], "home folder of the user"),
    variable(
        &["LC_ALL", "LC_MESSAGES", "LANG"],
        "language of messages, unless the setting `language` or the text at hand decides it",
    ),
    variable(&["TZ"], "time zone of times in logs and on the screen"),
    variable(&["NO_COLOR", "CLICOLOR_FORCE"], "turn colors off or on"),
    variable(&["COLUMNS"], "width of help pages if the output is not a terminal"),
    variable(&["PATH"], "where `install` searches for agents"),
    variable(&["TMPDIR"], "where `demo` and `doctor` create temporary folders"),
    variable(AGENT_VARIABLES, "the caller is an agent: its log entries are marked AI"),
    variable(SESSION_VARIABLES, "session of the caller"),
    variable(&["CLAUDE_PID"], "client process that runs a hook"),
];

/// Variables that agents set in the shells they start.
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

/// Variables in which agents pass the session id to the shells and servers they start.
const SESSION_VARIABLES: &[&str] =
    &["CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "COPILOT_AGENT_SESSION_ID"];

fn session() -> Option<String> {
    SESSION_VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).find(|value| !value.is_empty())
}

pub fn is_disabled() -> bool {
    std::env::var_os("TANMI_DISABLE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns the client process that runs this program as a hook.
pub fn client() -> Option<ClientProcess> {
    tanmi_session::client_of_hook(std::env::var("CLAUDE_PID").ok().as_deref())
}

/// Returns the search path for programs.
pub fn search_path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// Returns the folder that a variable names; an empty variable counts as unset.
pub fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the `context.json` that applies to all users of this machine or container.
pub fn context_file() -> Option<PathBuf> {
    path_variable("TANMI_CONTEXT")
}

/// The language of texts that are printed before a command runs: the setting, else the locale.
pub fn language() -> Lang {
    let setting = paths::home_store().and_then(|home| tanmi_app::config::Config::load(&home, None).language);
    setting.unwrap_or_else(Lang::of_locale)
}

/// `Err` is the reason in the language of the user.
pub fn read(project: Option<PathBuf>) -> Result<Env, String> {
    let home = paths::home_store().ok_or_else(|| {
        let (zh, en) = (
            "找不到主目录；请设置 HOME 或 TANMI_HOME",
            "cannot find the home folder; set HOME or TANMI_HOME",
        );
        Lang::of_locale().pick(zh, en).to_owned()
    })?;
    let cwd = std::env::current_dir().map_err(|error| {
        let what = language().pick("无法读取当前目录", "cannot read the working directory");
        format!("{what}: {error}")
    })?;
    let project = match project {
        None => None,
        Some(dir) => {
            let found =
                dir.canonicalize().map_err(|error| format!("--project {}: {error}", dir.display()))?;
            if !found.is_dir() {
                let what = language().pick("不是目录", "not a folder");
                return Err(format!("--project {}: {what}", dir.display()));
            }
            // The caller named it, so it is this folder and not a project above it.
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
        requires_rules_hash: false,
        user: paths::user_home(),
        source: tanmi_event::Source::Api,
        disabled: is_disabled(),
        context: context_file(),
        session: session(),
        long_running: false,
        remote: false,
    })
}
