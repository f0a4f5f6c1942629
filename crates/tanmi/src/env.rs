//! The environment variables that the program reads, and the [`Env`] made from them.
//!
//! The variables of a client are part of its description in `tanmi_platform`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tanmi_app::Env;
use tanmi_base::{Lang, clock, paths};
use tanmi_event::{ClientVersion, Platform};
use tanmi_platform::CLIENTS;
use tanmi_session::ClientProcess;
use tanmi_workspace::model::Operator;

/// Variables with the same meaning.
pub struct Variable {
    pub names: Vec<&'static str>,
    pub about: String,
}

/// Variables of this program and of the system, and their meaning.
const OWN_VARIABLES: &[(&[&str], &str)] = &[
    (&["TANMI_HOME"], "home store, instead of `~/.tanmi-workspace`"),
    (&["TANMI_CONTEXT"], "`context.json` of the machine or container"),
    (
        &["TANMI_SAFE_PROJECTS"],
        "projects that are used although they belong to another user, separated as in `PATH`; `*` for all",
    ),
    (&["SUDO_UID"], "user whose projects root uses, set by `sudo`"),
    (
        &["TANMI_DATABASE_URL"],
        "address of the PostgreSQL database of a team, with its password, for `serve --listen` and `team`",
    ),
    (&["PGPASSFILE"], "file with passwords of databases, instead of `~/.pgpass`"),
    (&["TANMI_DISABLE"], "inject nothing, unless it is empty or `0`"),
    (&["TANMI_NOW"], "fixed time in milliseconds since the Unix epoch, for tests"),
    (&["HOME", "USERPROFILE"], "home folder of the user"),
    (&["LC_ALL", "LC_MESSAGES", "LANG"], "language of messages, unless the setting `language` decides it"),
    (&["TZ"], "time zone of times in logs and on the screen"),
    (&["NO_COLOR", "CLICOLOR_FORCE"], "turn colors off or on"),
    (
        &["COLUMNS"],
        "width of tables, trees and, if the output is not a terminal, help pages; without it, the width of the terminal",
    ),
    (&["PATH"], "where `install` searches for agents"),
    (&["TMPDIR"], "where `demo` and `doctor` create temporary folders"),
];

/// Returns the variables that `tanmi reference` lists.
pub fn variables() -> Vec<Variable> {
    let own = OWN_VARIABLES.iter().map(|(names, about)| (names.to_vec(), (*about).to_owned()));
    let shared = [
        (
            CLIENTS.agent_variables().collect(),
            String::from("the caller is an agent: its log entries are marked AI"),
        ),
        (CLIENTS.session_variables().collect(), String::from("session of the caller")),
        (CLIENTS.process_variables().collect(), String::from("client process that runs a hook")),
        (CLIENTS.version_variables().collect(), String::from("version of the client that runs a hook")),
    ];
    let folders = CLIENTS.iter().filter_map(|client| {
        let recipe = &client.recipe;
        let about = format!("configuration folder of {}, instead of `~/{}`", client.name, recipe.folder);
        Some((vec![recipe.folder_variable?], about))
    });
    own.chain(shared).chain(folders).map(|(names, about)| Variable { names, about }).collect()
}

fn session() -> Option<String> {
    CLIENTS.session_variables().filter_map(|name| std::env::var(name).ok()).find(|value| !value.is_empty())
}

/// Returns the name of this machine, as other people of a team see it.
pub fn machine_name() -> String {
    let of_system = tanmi_base::fs::read_limited(Path::new("/proc/sys/kernel/hostname"), 256).ok().flatten();
    let of_system = of_system.and_then(|bytes| String::from_utf8(bytes).ok());
    let of_variable = || ["COMPUTERNAME", "HOSTNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let name = of_system.or_else(of_variable).map(|name| name.trim().to_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| String::from("machine"))
}

/// Returns the address of the database of a team. It can contain a password.
pub fn database_url() -> Option<String> {
    std::env::var("TANMI_DATABASE_URL").ok().filter(|url| !url.is_empty())
}

/// Returns the file of passwords for databases, as the programs of PostgreSQL find it.
pub fn passfile() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(paths::user_home()?.join(".pgpass")))
}

pub fn is_disabled() -> bool {
    std::env::var_os("TANMI_DISABLE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns the client process that runs this program as a hook.
pub fn client() -> Option<ClientProcess> {
    let process = CLIENTS.process_variables().find_map(|name| std::env::var(name).ok());
    tanmi_session::client_of_hook(process.as_deref())
}

/// Returns the version of the client that runs this program, if the client tells it.
pub fn client_version(platform: &Platform) -> Option<ClientVersion> {
    let fallback = platform.fallback_files.as_ref()?;
    fallback.parse_version(&std::env::var(fallback.variable).ok()?)
}

/// Returns the version of the client, or the newest one if a person runs this program.
fn client_version_or_newest(platform: &Platform) -> Option<ClientVersion> {
    client_version(platform).or(Some([u32::MAX; 3]))
}

/// Returns the width of the output that the user asks for.
pub fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
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
    tanmi_app::language::for_person(None, setting, Lang::of_locale())
}

/// Returns whether the working directory is inside of a project with a store.
pub fn is_in_project() -> bool {
    let (Some(home), Ok(cwd)) = (paths::home_store(), std::env::current_dir()) else { return false };
    let store = paths::project_store(&paths::project_root(&cwd, &home));
    // The home store of the user is not a project.
    store.is_dir() && store != home
}

/// `Err` is the reason in the language of the user.
pub fn read(project: Option<PathBuf>) -> Result<Env, String> {
    let home = paths::home_store().ok_or_else(|| {
        let (zh, en) = (
            "找不到主目录；请设置 HOME 或 TANMI_HOME",
            "cannot find the home folder; set HOME or TANMI_HOME",
        );
        language().pick(zh, en).to_owned()
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
        CLIENTS.agent_variables().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let operator = if is_agent { Operator::Ai } else { Operator::Human };
    Ok(Env {
        home,
        cwd,
        project,
        operator,
        locale: Lang::of_locale(),
        clock: clock::now,
        client_version: client_version_or_newest,
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
