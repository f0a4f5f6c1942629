//! Formats results as text for people, in their language. Nothing is decided here.

pub mod activity;
pub mod check;
pub mod config;
pub mod context;
pub mod doctor;
pub mod install;
pub mod ledger;
pub mod memory;
pub mod node;
pub mod plan;
pub mod rules;
pub mod session;
pub mod status;
pub mod table;
pub mod team;
pub mod trash;
pub mod tree;
pub mod trust;
pub mod workspace;

use anstyle::Style;
use tanmi_base::{Lang, id};
use tanmi_workspace::model::NodeStatus;

use crate::out;

/// Returns the short ids of a list: parts that no other id in the list ends with.
pub fn short_ids<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    id::short_suffixes(&ids.collect::<Vec<_>>())
}

/// Returns a count with its noun, e.g. `1 node` or `2 nodes`.
pub fn counted(count: impl std::fmt::Display, noun: &str) -> String {
    match (count.to_string().as_str(), noun.strip_suffix('y')) {
        ("1", _) => format!("1 {noun}"),
        (count, Some(stem)) => format!("{count} {stem}ies"),
        (count, None) => format!("{count} {noun}s"),
    }
}

/// Returns a number of children.
pub fn counted_children(count: u64) -> String {
    if count == 1 { String::from("1 child") } else { format!("{count} children") }
}

/// Returns the sentence that tells which kinds of secrets were masked.
pub fn masked(kinds: &[&str], lang: Lang) -> String {
    let (zh, en) = (
        format!("保存前已遮盖敏感信息：{}", kinds.join("、")),
        format!("secrets masked before saving: {}", kinds.join(", ")),
    );
    lang.pick(zh, en)
}

/// Returns the symbol and the colour of a status. The shape alone identifies the status.
pub fn symbol(status: NodeStatus) -> (&'static str, Style) {
    match status {
        NodeStatus::Pending => ("○", out::DIM),
        NodeStatus::Planning => ("◇", out::BLUE),
        NodeStatus::Monitoring => ("◆", out::BLUE),
        NodeStatus::Implementing => ("▶", out::YELLOW),
        NodeStatus::Validating => ("◉", out::YELLOW),
        NodeStatus::Completed => ("✔", out::GREEN),
        NodeStatus::Failed => ("✘", out::RED),
        NodeStatus::Cancelled => ("–", out::DIM),
    }
}
