//! Agents as data: which files are theirs, which events they report, in which shape and unit.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tanmi_event::{CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Platform};

/// For all projects of a person, or for one project.
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

/// How hooks are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookFormat {
    /// `hooks.Event[] = {matcher, hooks: [{type, command, timeout}]}`
    Groups,
    /// `hooks.event[] = {command, timeout}`
    Flat,
    /// `hooks.event[] = {type, bash, powershell, timeoutSec}`
    Shells,
}

#[derive(Debug)]
pub struct Hook {
    pub event: &'static str,
    pub seconds: u32,
    /// Which tools it is about.
    pub matcher: Option<&'static str>,
    /// A stop that follows from what we asked does not ask again.
    pub once: bool,
}

const fn hook(event: &'static str, seconds: u32) -> Hook {
    Hook { event, seconds, matcher: None, once: false }
}

#[derive(Debug)]
pub struct Agent {
    pub platform: &'static Platform,
    pub name: &'static str,
    /// The name of its program, and of its folder in the home folder.
    pub program: &'static str,
    pub folder: &'static str,
    /// Where its folder is, if this is set.
    pub folder_variable: Option<&'static str>,
    pub shape: HookFormat,
    pub hooks: &'static [Hook],
    /// A timeout of one second in the agent's unit.
    pub second: u32,
    /// It shows a line that a command prints.
    pub has_status_line: bool,
}

pub static AGENTS: &[Agent] = &[
    Agent {
        platform: &CLAUDE_CODE,
        name: "Claude Code",
        program: "claude",
        folder: ".claude",
        folder_variable: Some("CLAUDE_CONFIG_DIR"),
        shape: HookFormat::Groups,
        hooks: &[
            hook("SessionStart", 10),
            hook("UserPromptSubmit", 5),
            hook("SubagentStart", 5),
            hook("PreCompact", 5),
            hook("Stop", 10),
            hook("SessionEnd", 30),
        ],
        second: 1,
        has_status_line: true,
    },
    Agent {
        platform: &CURSOR,
        name: "Cursor",
        program: "cursor",
        folder: ".cursor",
        folder_variable: None,
        shape: HookFormat::Flat,
        hooks: &[
            hook("sessionStart", 10),
            hook("beforeSubmitPrompt", 5),
            Hook { matcher: Some("Task"), ..hook("preToolUse", 5) },
            hook("preCompact", 5),
            Hook { once: true, ..hook("stop", 10) },
            hook("sessionEnd", 30),
        ],
        second: 1,
        has_status_line: false,
    },
    Agent {
        platform: &CODEX,
        name: "Codex",
        program: "codex",
        folder: ".codex",
        folder_variable: Some("CODEX_HOME"),
        shape: HookFormat::Groups,
        hooks: &[
            hook("SessionStart", 10),
            hook("UserPromptSubmit", 5),
            hook("SubagentStart", 5),
            hook("PreCompact", 5),
            hook("Stop", 10),
            // It allows no more.
            hook("SessionEnd", 3),
        ],
        second: 1,
        has_status_line: false,
    },
    Agent {
        platform: &GEMINI_CLI,
        name: "Gemini CLI",
        program: "gemini",
        folder: ".gemini",
        folder_variable: None,
        shape: HookFormat::Groups,
        hooks: &[
            hook("SessionStart", 10),
            hook("BeforeAgent", 5),
            Hook { matcher: Some("invoke_agent|generalist"), ..hook("BeforeTool", 5) },
            hook("AfterAgent", 10),
            hook("SessionEnd", 30),
        ],
        second: 1000,
        has_status_line: false,
    },
    Agent {
        platform: &COPILOT_CLI,
        name: "Copilot CLI",
        program: "copilot",
        folder: ".copilot",
        folder_variable: None,
        shape: HookFormat::Shells,
        hooks: &[
            hook("sessionStart", 10),
            hook("userPromptSubmitted", 5),
            hook("subagentStart", 5),
            hook("preCompact", 5),
            hook("agentStop", 10),
            hook("sessionEnd", 30),
        ],
        second: 1,
        has_status_line: false,
    },
];

pub fn find(platform: &Platform) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.platform == platform)
}

/// The folders everything is in.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The person's home folder.
    pub user: PathBuf,
    pub project: PathBuf,
    /// Folders of agents that the environment names, by variable.
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

    /// Whether the project is the home folder itself: then there is one scope, the user's.
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

/// Where an agent looks for a guide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideFile {
    /// A file of our own.
    Whole(PathBuf),
    /// A marked block in a file of everybody's.
    Block(PathBuf),
}

impl Agent {
    pub fn id(&self) -> &'static str {
        self.platform.id
    }

    /// Whether it seems to be in use: it left its folder, or its program is there.
    pub fn is_here(&self, folders: &Folders, path: Option<&std::ffi::OsStr>) -> bool {
        folders.of(self, Scope::User).is_dir() || self.is_on(path)
    }

    fn is_on(&self, path: Option<&std::ffi::OsStr>) -> bool {
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

    /// `None` where the agent has no such file.
    pub fn mcp_file(&self, scope: Scope, folders: &Folders) -> Option<PathBuf> {
        let dir = folders.of(self, scope);
        Some(match (self.id(), scope) {
            ("claude-code", Scope::Project) => folders.project.join(".mcp.json"),
            // Beside its folder; inside of one that the environment names.
            ("claude-code", Scope::User) => folders.named(self).unwrap_or(&folders.user).join(".claude.json"),
            ("gemini-cli", _) => dir.join("settings.json"),
            ("codex", _) => dir.join("config.toml"),
            ("copilot-cli", Scope::Project) => return None,
            ("copilot-cli", Scope::User) => dir.join("mcp-config.json"),
            _ => dir.join("mcp.json"),
        })
    }

    /// `None` where the agent keeps such texts elsewhere.
    pub fn guide_file(&self, scope: Scope, folders: &Folders) -> Option<GuideFile> {
        let dir = folders.of(self, scope);
        let project = &folders.project;
        Some(match (self.id(), scope) {
            ("claude-code", _) => GuideFile::Whole(dir.join("skills/tanmi/SKILL.md")),
            ("cursor", Scope::Project) => GuideFile::Whole(dir.join("rules/tanmi.mdc")),
            // Rules of a person are in the settings of the application.
            ("cursor", Scope::User) => return None,
            ("codex", Scope::User) => GuideFile::Block(dir.join("AGENTS.md")),
            ("codex", Scope::Project) => GuideFile::Block(project.join("AGENTS.md")),
            ("gemini-cli", Scope::User) => GuideFile::Block(dir.join("GEMINI.md")),
            ("gemini-cli", Scope::Project) => GuideFile::Block(project.join("GEMINI.md")),
            (_, Scope::User) => GuideFile::Block(dir.join("copilot-instructions.md")),
            (_, Scope::Project) => GuideFile::Block(project.join(".github/copilot-instructions.md")),
        })
    }

    /// The command line of a hook, for a shell.
    pub fn command(&self, program: &str, hook: &Hook) -> String {
        format!("{} hook {} {}", crate::quote(program), self.id(), hook.event)
    }

    /// One hook as this agent writes it down.
    pub fn handler(&self, command: &str, hook: &Hook) -> Value {
        let timeout = hook.seconds * self.second;
        let mut handler = match self.shape {
            HookFormat::Groups => json!({"type": "command", "command": command, "timeout": timeout}),
            HookFormat::Flat => json!({"command": command, "timeout": timeout}),
            HookFormat::Shells => {
                json!({"type": "command", "bash": command, "powershell": powershell(command), "timeoutSec": timeout})
            }
        };
        if self.id() == "gemini-cli" {
            handler["name"] = "tanmi".into();
        }
        if hook.once {
            handler["loop_limit"] = 1.into();
        }
        if let Some(matcher) = hook.matcher.filter(|_| self.shape == HookFormat::Flat) {
            handler["matcher"] = matcher.into();
        }
        handler
    }

    /// The MCP server as this agent writes it down.
    pub fn server(&self, program: &str) -> Value {
        match self.id() {
            "copilot-cli" => json!({"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}),
            "claude-code" => json!({"type": "stdio", "command": program, "args": ["mcp"]}),
            _ => json!({"command": program, "args": ["mcp"]}),
        }
    }
}

/// A quoted program is called with `&`.
fn powershell(command: &str) -> String {
    if command.starts_with(['\'', '"']) { format!("& {command}") } else { command.to_owned() }
}
