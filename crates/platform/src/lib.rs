//! The clients, one file each, and the table of them.
//!
//! A client's file contains everything that is specific to it: its limits, the JSON of its hooks, its environment
//! variables, its transcripts, and how to install Tanmi for it. No other crate except `install` names a client.
//! Unknown events and fields are ignored.

mod claude_code;
mod client;
mod codex;
mod copilot_cli;
mod cursor;
mod fields;
mod gemini_cli;
mod recipe;
mod table;
mod transcript;

pub use claude_code::{PLATFORM as CLAUDE_CODE, demo_payload, injected_text};
pub use client::{BorrowedHooks, ClientSpec, Environment, StatusLinePayload, Wire};
pub use cursor::PLATFORM as CURSOR;
pub use fields::{Fields, extend_prompt, non_blank};
pub use gemini_cli::PLATFORM as GEMINI_CLI;
pub use recipe::{
    AllowedTools, GuideLocation, Hook, HookFormat, InstallNote, Location, NoteCondition, OffSwitch, PerScope,
    Recipe, Scope, plain_server,
};
pub use table::ClientTable;
pub use transcript::{Message, Transcript, TranscriptFolder, Turn};

/// The supported clients, one row each.
pub static CLIENTS: ClientTable = ClientTable(&[
    &claude_code::CLIENT,
    &cursor::CLIENT,
    &codex::CLIENT,
    &gemini_cli::CLIENT,
    &copilot_cli::CLIENT,
]);

/// The client that is assumed where none is named. Payloads of clients that run its hooks are recognized too.
pub static DEFAULT_CLIENT: &ClientSpec = &claude_code::CLIENT;

#[cfg(test)]
mod tests;
