//! The table of clients: all lookups of a client go through it.

use serde_json::Value;
use tanmi_event::{API, Event, Platform, WEB};

use crate::{ClientSpec, Fields, StatusLinePayload};

/// The descriptions of clients, one row each.
#[derive(Debug)]
pub struct ClientTable(pub &'static [&'static ClientSpec]);

/// Variables that mark the shell of an agent whose client is not supported otherwise.
const OTHER_AGENT_VARIABLES: &[&str] = &["OPENCODE"];

impl ClientTable {
    pub fn iter(&self) -> impl Iterator<Item = &'static ClientSpec> + use<> {
        self.0.iter().copied()
    }

    /// Returns the platforms of all clients, and the platforms without hooks.
    pub fn platforms(&self) -> impl Iterator<Item = &'static Platform> + use<> {
        self.iter().map(|client| client.platform).chain([&WEB, &API])
    }

    /// Returns the client of a platform; the platforms without hooks have none.
    pub fn find(&self, platform: &Platform) -> Option<&'static ClientSpec> {
        self.iter().find(|client| client.platform == platform)
    }

    /// Finds a platform by its id or an alias.
    pub fn find_platform(&self, name: &str) -> Option<&'static Platform> {
        self.platforms().find(|platform| platform.has_name(name))
    }

    /// Parses what a client wrote to the hook's standard input. Returns `None` for an event that is not handled.
    /// `name` is the event in the installed hook command, for payloads without an event name.
    pub fn read(&self, platform: &Platform, name: Option<&str>, bytes: &[u8]) -> Option<Event> {
        let installed = self.find(platform)?;
        let fields = Fields::parse(bytes)?;
        let sender = self.borrower(platform, &fields).unwrap_or(installed);
        (sender.wire.read)(name, &fields)
    }

    /// Returns the client that sent this payload with a hook of another client.
    fn borrower(&self, owner: &Platform, fields: &Fields) -> Option<&'static ClientSpec> {
        self.iter().find(|client| {
            client.wire.borrowed_hooks.as_ref().is_some_and(|borrowed| {
                borrowed.owner == owner && borrowed.own_fields.iter().any(|field| fields.has(field))
            })
        })
    }

    /// Returns the response with this text for the client, or `None` if there is no text to inject.
    pub fn write(&self, event: &Event, text: &str) -> Option<String> {
        let client = self.find(event.platform).filter(|_| !text.is_empty())?;
        (client.wire.write)(event, text)
    }

    /// Reads the payload of a status line.
    pub fn read_status_line(&self, bytes: &[u8]) -> StatusLinePayload {
        let read = self.iter().find_map(|client| client.wire.status_line);
        read.zip(Fields::parse(bytes)).map(|(read, fields)| read(&fields)).unwrap_or_default()
    }

    /// Returns the platform of an MCP client, by the name that it sends when it connects.
    pub fn platform_of_mcp_client(&self, name: &str) -> Option<&'static Platform> {
        let is_named = |known: &&str| {
            name.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let client = self.iter().find(|client| client.wire.mcp_names.iter().any(is_named))?;
        Some(client.platform)
    }

    /// Returns the session id in the metadata of an MCP call.
    pub fn session_of_call(&self, meta: &Value) -> Option<String> {
        let mut keys = self.iter().flat_map(|client| client.wire.call_session_keys);
        keys.find_map(|key| meta.get(key)?.as_str().map(String::from))
    }

    /// Returns the variables that mark the shell of an agent.
    pub fn agent_variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.iter().flat_map(|client| client.environment.agent).chain(OTHER_AGENT_VARIABLES).copied()
    }

    /// Returns the variables with the session id.
    pub fn session_variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.iter().flat_map(|client| client.environment.session).copied()
    }

    /// Returns the variables with the version of the client that runs a hook.
    pub fn version_variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.iter().filter_map(|client| client.platform.fallback_files.as_ref()).map(|files| files.variable)
    }

    /// Returns the variables with the process id of the client that runs a hook.
    pub fn process_variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.iter().filter_map(|client| client.environment.process)
    }
}
