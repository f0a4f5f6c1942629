//! The interface a caller uses. It decides which next step a hint names.

/// Where a caller comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// A person at the command line.
    CommandLine,
    /// An agent that runs commands in its shell. It reads the same commands as a person, except those that override a
    /// refusal: only the user decides about these.
    AgentShell,
    /// MCP, over standard input or over HTTP.
    Mcp,
    /// The page, and programs that use its HTTP API.
    Page,
}

impl Interface {
    pub const ALL: [Interface; 4] =
        [Interface::CommandLine, Interface::AgentShell, Interface::Mcp, Interface::Page];

    /// Whether the caller types commands.
    pub fn has_commands(self) -> bool {
        matches!(self, Interface::CommandLine | Interface::AgentShell)
    }

    /// Whether an agent reads the answer.
    pub fn is_agent(self) -> bool {
        matches!(self, Interface::AgentShell | Interface::Mcp)
    }

    /// Returns the value for this interface. Both command lines share one.
    pub fn pick<T>(self, cli: T, mcp: T, page: T) -> T {
        match self {
            Interface::CommandLine | Interface::AgentShell => cli,
            Interface::Mcp => mcp,
            Interface::Page => page,
        }
    }
}
