//! The supported clients as data: their files, their hook events, and the format and time unit of hooks.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tanmi_event::{CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Platform};

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

#[derive(Debug)]
pub struct Hook {
    pub event: &'static str,
    pub seconds: u32,
    /// The tools that trigger the hook.
    pub matcher: Option<&'static str>,
    /// Whether to set `loop_limit` to 1, so that the stop after our own request does not trigger another request.
    pub once: bool,
}

const fn hook(event: &'static str, seconds: u32) -> Hook {
    Hook { event, seconds, matcher: None, once: false }
}

#[derive(Debug)]
pub struct Agent {
    pub platform: &'static Platform,
    pub name: &'static str,
    /// The name of its program.
    pub program: &'static str,
    /// The name of its folder in the home folder.
    pub folder: &'static str,
    /// The environment variable that overrides its folder.
    pub folder_variable: Option<&'static str>,
    pub hook_format: HookFormat,
    pub hooks: &'static [Hook],
    /// The number of timeout units per second.
    pub timeout_units_per_second: u32,
    /// Whether it shows a status line that a command prints.
    pub has_status_line: bool,
}

pub static AGENTS: &[Agent] = &[
    Agent {
        platform: &CLAUDE_CODE,
        name: "Claude Code",
        program: "claude",
        folder: ".claude",
        folder_variable: Some("CLAUDE_CONFIG_DIR"),
        hook_format: HookFormat::Groups,
        hooks: &[
            hook("SessionStart", 10),
            hook("UserPromptSubmit", 5),
            hook("SubagentStart", 5),
            hook("PreCompact", 5),
            hook("Stop", 10),
            hook("SessionEnd", 30),
        ],
        timeout_units_per_second: 1,
        has_status_line: true,
    },
    Agent {
        platform: &CURSOR,
        name: "Cursor",
        program: "cursor",
        folder: ".cursor",
        folder_variable: None,
        hook_format: HookFormat::Flat,
        hooks: &[
            hook("sessionStart", 10),
            hook("beforeSubmitPrompt", 5),
            Hook { matcher: Some("Task"), ..hook("preToolUse", 5) },
            hook("preCompact", 5),
            Hook { once: true, ..hook("stop", 10) },
            hook("sessionEnd", 30),
        ],
        timeout_units_per_second: 1,
        has_status_line: false,
    },
    Agent {
        platform: &CODEX,
        name: "Codex",
        program: "codex",
        folder: ".codex",
        folder_variable: Some("CODEX_HOME"),
        hook_format: HookFormat::Groups,
        hooks: &[
            hook("SessionStart", 10),
            hook("UserPromptSubmit", 5),
            hook("SubagentStart", 5),
            hook("PreCompact", 5),
            hook("Stop", 10),
            // The maximum that Codex allows.
            hook("SessionEnd", 3),
        ],
        timeout_units_per_second: 1,
        has_status_line: false,
    },
    Agent {
        platform: &GEMINI_CLI,
        name: "Gemini CLI",
        program: "gemini",
        folder: ".gemini",
        folder_variable: None,
        hook_format: HookFormat::Groups,
        hooks: &[
            hook("SessionStart", 10),
            hook("BeforeAgent", 5),
            Hook { matcher: Some("invoke_agent|generalist"), ..hook("BeforeTool", 5) },
            hook("AfterAgent", 10),
            hook("SessionEnd", 30),
        ],
        timeout_units_per_second: 1000,
        has_status_line: false,
    },
    Agent {
        platform: &COPILOT_CLI,
        name: "Copilot CLI",
        program: "copilot",
        folder: ".copilot",
        folder_variable: None,
        hook_format: HookFormat::Shells,
        hooks: &[
            hook("sessionStart", 10),
            hook("userPromptSubmitted", 5),
            hook("subagentStart", 5),
            hook("preCompact", 5),
            hook("agentStop", 10),
            hook("sessionEnd", 30),
        ],
        timeout_units_per_second: 1,
        has_status_line: false,
    },
];

pub fn find(platform: &Platform) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.platform == platform)
}

/// The folders in which clients keep their files.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The home folder of the user.
    pub user: PathBuf,
    pub project: PathBuf,
    /// Client folders set by environment variables, with the name of the variable.
    pub named: Vec<(&'static str, PathBuf)>,
}

impl Folders {
    pub fn new(user: PathBuf, project: PathBuf, variable: impl Fn(&str) -> Option<PathBuf>) -> Folders {
        let named = AGENTS.iter().filter_map(|agent| {
            let name = agent.folder_variable?;
            Some((name, variable(name)?))
        });
        Folders { named: named.collect(), user, project }
    }

    /// Returns whether the project is the home folder. Only the user scope exists then.
    pub fn is_home(&self) -> bool {
        self.user.canonicalize().ok() == self.project.canonicalize().ok()
    }

    pub fn scopes(&self) -> &'static [Scope] {
        if self.is_home() { &Scope::ALL[..1] } else { &Scope::ALL }
    }

    fn named(&self, agent: &Agent) -> Option<&Path> {
        let name = agent.folder_variable?;
        self.named.iter().find(|(known, _)| *known == name).map(|(_, path)| path.as_path())
    }

    pub fn of(&self, agent: &Agent, scope: Scope) -> PathBuf {
        match scope {
            Scope::User => self.named(agent).map_or_else(|| self.user.join(agent.folder), Path::to_owned),
            Scope::Project => self.project.join(agent.folder),
        }
    }
}

/// The file in which a client looks for a guide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideFile {
    /// A file that contains only our guide.
    OwnFile(PathBuf),
    /// A marked block in a shared file.
    Block(PathBuf),
}

impl Agent {
    pub fn id(&self) -> &'static str {
        self.platform.id
    }

    /// Returns whether the client seems to be installed: its folder exists or its program is on the search path.
    pub fn is_detected(&self, folders: &Folders, path: Option<&std::ffi::OsStr>) -> bool {
        folders.of(self, Scope::User).is_dir() || self.is_on_path(path)
    }

    fn is_on_path(&self, path: Option<&std::ffi::OsStr>) -> bool {
        let names =
            [self.program.to_owned(), format!("{}.exe", self.program), format!("{}.cmd", self.program)];
        path.is_some_and(|path| {
            std::env::split_paths(path).any(|dir| names.iter().any(|name| dir.join(name).is_file()))
        })
    }

    pub fn hooks_file(&self, scope: Scope, folders: &Folders) -> PathBuf {
        let dir = folders.of(self, scope);
        match self.id() {
            "claude-code" | "gemini-cli" => dir.join("settings.json"),
            "copilot-cli" if scope == Scope::Project => folders.project.join(".github/hooks/tanmi.json"),
            "copilot-cli" => dir.join("hooks/tanmi.json"),
            _ => dir.join("hooks.json"),
        }
    }

    /// Returns the file with MCP servers, if the client has one in this scope.
    pub fn mcp_file(&self, scope: Scope, folders: &Folders) -> Option<PathBuf> {
        let dir = folders.of(self, scope);
        Some(match (self.id(), scope) {
            ("claude-code", Scope::Project) => folders.project.join(".mcp.json"),
            // Next to the folder `.claude`, or inside the folder set by the environment variable.
            ("claude-code", Scope::User) => folders.named(self).unwrap_or(&folders.user).join(".claude.json"),
            ("gemini-cli", _) => dir.join("settings.json"),
            ("codex", _) => dir.join("config.toml"),
            ("copilot-cli", Scope::Project) => return None,
            ("copilot-cli", Scope::User) => dir.join("mcp-config.json"),
            _ => dir.join("mcp.json"),
        })
    }

    /// Returns the file for the guide, if the client has one in this scope.
    pub fn guide_file(&self, scope: Scope, folders: &Folders) -> Option<GuideFile> {
        let dir = folders.of(self, scope);
        let project = &folders.project;
        Some(match (self.id(), scope) {
            ("claude-code", _) => GuideFile::OwnFile(dir.join("skills/tanmi/SKILL.md")),
            ("cursor", Scope::Project) => GuideFile::OwnFile(dir.join("rules/tanmi.mdc")),
            // User rules are stored in the settings of the application.
            ("cursor", Scope::User) => return None,
            ("codex", Scope::User) => GuideFile::Block(dir.join("AGENTS.md")),
            ("codex", Scope::Project) => GuideFile::Block(project.join("AGENTS.md")),
            ("gemini-cli", Scope::User) => GuideFile::Block(dir.join("GEMINI.md")),
            ("gemini-cli", Scope::Project) => GuideFile::Block(project.join("GEMINI.md")),
            (_, Scope::User) => GuideFile::Block(dir.join("copilot-instructions.md")),
            (_, Scope::Project) => GuideFile::Block(project.join(".github/copilot-instructions.md")),
        })
    }

    /// Returns the shell command of a hook.
    pub fn command(&self, program: &str, hook: &Hook) -> String {
        format!("{} hook {} {}", crate::quote(program), self.id(), hook.event)
    }

    /// Returns the JSON of a hook in the format of this client.
    pub fn handler(&self, command: &str, hook: &Hook) -> Value {
        let timeout = hook.seconds * self.timeout_units_per_second;
        let mut handler = match self.hook_format {
            HookFormat::Groups => json!({"type": "command", "command": command, "timeout": timeout}),
            HookFormat::Flat => json!({"command": command, "timeout": timeout}),
            HookFormat::Shells => {
                json!({"type": "command", "bash": command, "powershell": powershell_command(command), "timeoutSec": timeout})
            }
        };
        if self.id() == "gemini-cli" {
            handler["name"] = "tanmi".into();
        }
        if hook.once {
            handler["loop_limit"] = 1.into();
        }
        if let Some(matcher) = hook.matcher.filter(|_| self.hook_format == HookFormat::Flat) {
            handler["matcher"] = matcher.into();
        }
        handler
    }

    /// Returns the JSON of the MCP server in the format of this client.
    pub fn server(&self, program: &str) -> Value {
        match self.id() {
            "copilot-cli" => json!({"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}),
            "claude-code" => json!({"type": "stdio", "command": program, "args": ["mcp"]}),
            _ => json!({"command": program, "args": ["mcp"]}),
        }
    }
}

/// Returns the command for PowerShell, which needs `&` before a quoted program.
fn powershell_command(command: &str) -> String {
    if command.starts_with(['\'', '"']) { format!("& {command}") } else { command.to_owned() }
}
