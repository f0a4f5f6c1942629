//! The hash of the context of a session, which detects changes.

use tanmi_base::hash;

use crate::facts::{NodeFacts, WorkspaceFacts};

/// A hash of each part of a context that should be injected again when it changes. Status, progress, log and
/// problem are not included, because they change all the time. Only that the node is done counts: it needs no more work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextHash {
    /// Of the name and the goal.
    pub goal: String,
    pub rules: String,
    pub docs: String,
    /// Of the focused node, or of its id if it cannot be read; empty if no node is focused.
    pub node: String,
}

/// The number of hexadecimal digits that are kept of a hash.
const DIGITS: usize = 16;

impl ContextHash {
    pub fn of(workspace: &WorkspaceFacts, node: Option<&NodeFacts>) -> ContextHash {
        ContextHash {
            goal: digest(&[&workspace.name, &workspace.goal]),
            rules: digest(&workspace.rules),
            docs: digest(&workspace.docs),
            node: match (node, &workspace.damaged_focus) {
                (Some(node), _) if node.status.is_done() => {
                    digest(&[node.id.as_str(), &node.title, &node.requirement, &node.note, "done"])
                }
                (Some(node), _) => digest(&[&node.id, &node.title, &node.requirement, &node.note]),
                (None, Some(damaged)) => digest(&[&damaged.id]),
                (None, None) => String::new(),
            },
        }
    }

    /// Parses the form of [`ContextHash::to_string`]. Returns `None` for the form of an older version.
    pub fn parse(text: &str) -> Option<ContextHash> {
        let parts: Vec<&str> = text.split('.').collect();
        let [goal, rules, docs, node] = parts.as_slice() else { return None };
        let [goal, rules, docs, node] = [goal, rules, docs, node].map(|part| (*part).to_owned());
        Some(ContextHash { goal, rules, docs, node })
    }
}

impl std::fmt::Display for ContextHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}.{}", self.goal, self.rules, self.docs, self.node)
    }
}

fn digest(parts: &[impl AsRef<str>]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    hash::md5_hex(parts.join("\u{0}").as_bytes())[..DIGITS].to_owned()
}
