//! How to install Tanmi for a client, as data: its files, its hook events, and the formats of hooks and servers. The
//! `install` crate carries a recipe out.

use serde_json::{Value, json};

/// Whether to install for all projects of a user or for one project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    Project,
}

impl Scope {
    pub const ALL: [Scope; 2] = [Scope::User, Scope::Project];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }
}

/// A value for each scope.
#[derive(Clone, Copy, Debug)]
pub struct PerScope<T> {
    pub user: T,
    pub project: T,
}

impl<T: Copy> PerScope<T> {
    /// Returns the same value for both scopes.
    pub const fn both(value: T) -> PerScope<T> {
        PerScope { user: value, project: value }
    }

    pub fn of(&self, scope: Scope) -> T {
        match scope {
            Scope::User => self.user,
            Scope::Project => self.project,
        }
    }
}

/// The format of hooks in the settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookFormat {
    /// `hooks.Event[] = {matcher, hooks: [{type, command, timeout}]}`
    Groups,
    /// `hooks.event[] = {command, timeout}`
    Flat,
    /// `hooks.event[] = {type, bash, powershell_command, timeoutSec}`
    Shells,
}

#[derive(Clone, Copy, Debug)]
pub struct Hook {
    pub event: &'static str,
    pub seconds: u32,
    /// The tools that trigger the hook.
    pub matcher: Option<&'static str>,
    /// Whether to set `loop_limit` to 1, so that the stop after our own request does not trigger another request.
    pub once: bool,
    /// Whether custom rules for tool calls need the hook. It is installed for all tools if there is such a rule,
    /// otherwise only for the tools of its matcher, or not at all without one.
    pub reports_tools: bool,
}

impl Hook {
    /// Returns a hook for all tools.
    pub const fn new(event: &'static str, seconds: u32) -> Hook {
        Hook { event, seconds, matcher: None, once: false, reports_tools: false }
    }

    /// Returns the hook to install, if any. `has_tool_rules` tells whether a custom rule needs to know of tool calls.
    pub fn to_install(self, has_tool_rules: bool) -> Option<Hook> {
        match self.reports_tools {
            true if has_tool_rules => Some(Hook { matcher: None, ..self }),
            true => Some(self).filter(|hook| hook.matcher.is_some()),
            false => Some(self),
        }
    }
}

/// The list of tools that a client uses without asking, in the file with its hooks.
#[derive(Clone, Copy, Debug)]
pub struct AllowedTools {
    /// The key of the list.
    pub path: &'static [&'static str],
    /// The entry that covers all tools of our server.
    pub entry: &'static str,
}

/// The place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In the folder of the client: below the home folder or below the project, depending on the scope.
    Folder(&'static str),
    Project(&'static str),
    /// In the home folder, or in the folder of the client if an environment variable sets it.
    Home(&'static str),
}

/// The place of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideLocation {
    /// A file that contains only our guide.
    OwnFile(Location),
    /// A marked block in a shared file.
    Block(Location),
}

/// A setting that turns all hooks off, with the value that does so.
#[derive(Debug)]
pub struct OffSwitch {
    pub path: &'static [&'static str],
    pub value: bool,
}

/// When to tell the user a note after an installation.
#[derive(Debug)]
pub enum NoteCondition {
    HooksChanged,
    ServerChanged,
    ProjectServerChanged,
    /// The client with this id was installed together with this one.
    InstalledWith(&'static str),
}

/// A step that is left to the user after an installation, or an explanation.
#[derive(Debug)]
pub struct InstallNote {
    pub condition: NoteCondition,
    pub zh: &'static str,
    pub en: &'static str,
}

#[derive(Debug)]
pub struct Recipe {
    /// The name of its program.
    pub program: &'static str,
    /// The name of its folder in the home folder.
    pub folder: &'static str,
    /// The environment variable that overrides its folder.
    pub folder_variable: Option<&'static str>,
    pub hook_file: PerScope<Location>,
    /// The file with MCP servers. A file with the extension `toml` is edited as TOML, any other as JSON.
    pub server_file: PerScope<Option<Location>>,
    pub guide: PerScope<Option<GuideLocation>>,
    pub hook_format: HookFormat,
    pub hooks: &'static [Hook],
    /// Keys with a fixed value in every hook.
    pub hook_keys: &'static [(&'static str, &'static str)],
    /// The number of timeout units per second.
    pub timeout_units_per_second: u32,
    pub off_switches: &'static [OffSwitch],
    /// `None` if the client has no such list in that file.
    pub allowed_tools: Option<AllowedTools>,
    /// Returns the JSON of the MCP server that this program runs.
    pub server: fn(program: &str) -> Value,
    pub notes: &'static [InstallNote],
}

/// Returns the JSON of a server with the two keys that all clients have.
pub fn plain_server(program: &str) -> Value {
    json!({"command": program, "args": ["mcp"]})
}
