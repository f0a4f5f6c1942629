//! Answers as people read them: aligned, in their language. Nothing is decided here.

pub mod activity;
pub mod check;
pub mod config;
pub mod context;
pub mod doctor;
pub mod install;
pub mod ledger;
pub mod memory;
pub mod node;
pub mod rules;
pub mod session;
pub mod table;
pub mod tree;
pub mod workspace;

use anstyle::Style;
use tanmi_workspace::model::NodeStatus;

use crate::out;

/// One sign per status, told apart by shape and not by colour alone.
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
