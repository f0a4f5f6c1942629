//! The names of parameters in messages: a command line has options.

use tanmi_base::{Interface, Lang};

use super::Error;

/// Parameters of tools, and the options that commands have for them. Other parameters have the same name.
const OPTIONS: [(&str, &str); 6] = [
    ("nodeId", "--node"),
    ("parentId", "--parent"),
    ("workspaceId", "--workspace"),
    ("sessionId", "--session"),
    ("rulesHash", "--rules-hash"),
    ("nextStep", "--next-step"),
];

impl Error {
    /// Returns the message with the names that the caller's interface uses.
    pub fn message_in(&self, lang: Lang, interface: Interface) -> String {
        let message = self.message(lang);
        let option = OPTIONS.iter().find(|(field, _)| self.field() == Some(field));
        match option.filter(|_| interface.has_commands()) {
            Some((field, option)) => message.replacen(field, option, 1),
            None => message,
        }
    }
}
