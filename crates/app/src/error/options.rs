//! The names of parameters in messages: a command line has options.

use tanmi_base::{Interface, Lang};

use super::Error;

/// Parameters of tools, and the options that commands have for them. Other parameters have the same name.
const OPTIONS: [(&str, &str); 10] = [
    ("nodeId", "--node"),
    ("parentId", "--parent"),
    ("workspaceId", "--workspace"),
    ("sessionId", "--session"),
    ("rulesHash", "--rules-hash"),
    ("nextStep", "--next-step"),
    ("dependsOn", "--on"),
    ("before", "--before"),
    ("after", "--after"),
    ("export", "--export"),
];

impl Error {
    /// Returns the message with the names that the caller's interface uses.
    pub fn message_in(&self, lang: Lang, interface: Interface) -> String {
        let message = self.message(lang);
        let option = OPTIONS.iter().find(|(field, _)| self.field() == Some(field));
        let Some((field, option)) = option.filter(|_| interface.has_commands()) else { return message };
        // In parentheses it comes after a text of the caller, which may contain the same word.
        let starts = ["(", "（"].map(|open| (open.len(), message.rfind(&format!("{open}{field}"))));
        let start = starts.into_iter().find_map(|(length, at)| at.map(|at| at + length));
        let (before, rest) = message.split_at(start.unwrap_or(0));
        format!("{before}{}", rest.replacen(field, option, 1))
    }
}
