//! What Tanmi knows about one client, as data. Each client has a file with one [`ClientSpec`].

use std::path::PathBuf;

use tanmi_event::{Event, Platform};

use crate::{Fields, Recipe, Transcript};

/// The description of a client: one row of the table.
#[derive(Debug)]
pub struct ClientSpec {
    pub platform: &'static Platform,
    /// The name of the product.
    pub name: &'static str,
    pub wire: Wire,
    pub environment: Environment,
    /// How to read its transcripts, if Tanmi knows their format.
    pub transcript: Option<Transcript>,
    pub recipe: Recipe,
}

impl ClientSpec {
    pub fn id(&self) -> &'static str {
        self.platform.id
    }
}

/// The data that a client and its hooks and server exchange.
#[derive(Debug)]
pub struct Wire {
    /// Reads the payload of a hook. Returns `None` for an event that is not handled. The name is the event in the
    /// installed hook command, for payloads without an event name.
    pub read: fn(name: Option<&str>, fields: &Fields) -> Option<Event>,
    /// Returns the response with an injected text, or `None` if no text can be injected at this event.
    pub write: fn(event: &Event, text: &str) -> Option<String>,
    /// The event name and the recorded payload of a session start.
    pub sample: (&'static str, &'static str),
    /// The hooks of another client that this client also runs.
    pub borrowed_hooks: Option<BorrowedHooks>,
    /// The names under which its MCP client introduces itself. A client can append the name of the server,
    /// after a hyphen.
    pub mcp_names: &'static [&'static str],
    /// The keys of the session id in the metadata of an MCP call.
    pub call_session_keys: &'static [&'static str],
    /// Reads the payload of the status line. `None` if the client shows no status line that a command prints.
    pub status_line: Option<fn(fields: &Fields) -> StatusLinePayload>,
}

/// Hooks in the settings of another client that a client also runs, with payloads of its own.
#[derive(Debug)]
pub struct BorrowedHooks {
    /// The client to which the hooks belong.
    pub owner: &'static Platform,
    /// Fields that only payloads of the borrower have, one of which identifies them.
    pub own_fields: &'static [&'static str],
}

/// The payload of a status line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusLinePayload {
    pub session: Option<String>,
    pub cwd: Option<PathBuf>,
}

/// Environment variables that a client sets for the programs it starts.
#[derive(Debug)]
pub struct Environment {
    /// Variables that mark the shell of an agent.
    pub agent: &'static [&'static str],
    /// Variables with the session id.
    pub session: &'static [&'static str],
    /// The variable with the process id of the client, for hooks.
    pub process: Option<&'static str>,
}
