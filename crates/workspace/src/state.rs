//! The state machines of planning and execution nodes, as one table with the prerequisites of each transition.
//! [`crate::ops`] checks the prerequisites.

use serde::{Deserialize, Serialize};

use crate::model::NodeStatus::{self, *};
use crate::model::NodeType::{self, Execution, Planning as Plan};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Start,
    Submit,
    Complete,
    Fail,
    Retry,
    Reopen,
    Cancel,
}

use Action::*;

impl Action {
    pub const ALL: &[Action] = &[Start, Submit, Complete, Fail, Retry, Reopen, Cancel];
    pub const WORDS: &[&str] = &["start", "submit", "complete", "fail", "retry", "reopen", "cancel"];

    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    pub fn parse(field: &'static str, word: &str) -> crate::Result<Action> {
        let at = Self::WORDS.iter().position(|known| *known == word);
        at.map(|at| Self::ALL[at]).ok_or_else(|| crate::Error::unknown_word(field, word, Self::WORDS))
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The condition for a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prerequisite {
    Nothing,
    Conclusion,
    /// At least one child.
    Children,
    /// At least one child, all of them done, and a conclusion.
    ChildrenDoneAndConclusion,
}

impl Prerequisite {
    pub fn conclusion(self) -> bool {
        matches!(self, Prerequisite::Conclusion | Prerequisite::ChildrenDoneAndConclusion)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransitionRule {
    pub kind: NodeType,
    pub from: NodeStatus,
    pub action: Action,
    pub to: NodeStatus,
    pub needs: Prerequisite,
}

const fn rule(
    kind: NodeType,
    from: NodeStatus,
    action: Action,
    to: NodeStatus,
    needs: Prerequisite,
) -> TransitionRule {
    TransitionRule { kind, from, action, to, needs }
}

/// All legal transitions through an action. [`parent_status_when_child_appears`] and
/// [`parent_status_when_last_child_removed`] contain the automatic transitions of a parent.
#[rustfmt::skip]
pub const TRANSITION_RULES: &[TransitionRule] = &[
    rule(Plan,      Pending,      Start,    Planning,     Prerequisite::Nothing),
    // Continues after a reopen, when the children still exist.
    rule(Plan,      Planning,     Start,    Monitoring,   Prerequisite::Children),
    rule(Plan,      Planning,     Cancel,   Cancelled,    Prerequisite::Conclusion),
    rule(Plan,      Monitoring,   Complete, Completed,    Prerequisite::ChildrenDoneAndConclusion),
    rule(Plan,      Monitoring,   Cancel,   Cancelled,    Prerequisite::Conclusion),
    rule(Plan,      Completed,    Reopen,   Planning,     Prerequisite::Nothing),
    rule(Plan,      Cancelled,    Reopen,   Planning,     Prerequisite::Nothing),
    rule(Execution, Pending,      Start,    Implementing, Prerequisite::Nothing),
    rule(Execution, Implementing, Submit,   Validating,   Prerequisite::Nothing),
    rule(Execution, Implementing, Complete, Completed,    Prerequisite::Conclusion),
    rule(Execution, Implementing, Fail,     Failed,       Prerequisite::Conclusion),
    rule(Execution, Validating,   Complete, Completed,    Prerequisite::Conclusion),
    rule(Execution, Validating,   Fail,     Failed,       Prerequisite::Conclusion),
    rule(Execution, Failed,       Retry,    Implementing, Prerequisite::Nothing),
    rule(Execution, Completed,    Reopen,   Implementing, Prerequisite::Nothing),
];

pub fn find(
    kind: NodeType,
    from: NodeStatus,
    action: Action,
    has_children: bool,
) -> Option<&'static TransitionRule> {
    allowed_rules(kind, from, has_children).find(|rule| rule.action == action)
}

/// Returns the actions that are legal from this status.
pub fn allowed(kind: NodeType, from: NodeStatus, has_children: bool) -> Vec<Action> {
    allowed_rules(kind, from, has_children).map(|rule| rule.action).collect()
}

fn allowed_rules(
    kind: NodeType,
    from: NodeStatus,
    has_children: bool,
) -> impl Iterator<Item = &'static TransitionRule> {
    TRANSITION_RULES
        .iter()
        .filter(move |rule| rule.kind == kind && rule.from == from)
        .filter(move |rule| rule.needs != Prerequisite::Children || has_children)
}

/// Returns whether a node of this type can have this status.
pub fn is_possible(kind: NodeType, status: NodeStatus) -> bool {
    TRANSITION_RULES.iter().any(|rule| rule.kind == kind && (rule.from == status || rule.to == status))
}

/// Why a parent has another unfinished child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appearance {
    /// The child was created or moved here.
    New,
    /// The child was reopened or retried.
    Returned,
}

/// Returns the new status of a parent when an unfinished child appears, or `None` if the status stays the same. The
/// caller rejects a cancelled parent first.
pub fn parent_status_when_child_appears(parent: NodeStatus, appearance: Appearance) -> Option<NodeStatus> {
    match (parent, appearance) {
        (Pending | Completed, _) | (Planning, Appearance::New) => Some(Monitoring),
        _ => None,
    }
}

/// Returns the new status of a parent that lost its last child, or `None` if the status stays the same.
pub fn parent_status_when_last_child_removed(parent: NodeStatus) -> Option<NodeStatus> {
    matches!(parent, Monitoring | Completed).then_some(Planning)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares every (type, status, action), with and without children, with the transitions of the specification.
    #[test]
    fn transition_table_every_combination_matches_specification() {
        let spec: &[(&str, &str, &str, bool, &str)] = &[
            ("planning", "pending", "start", false, "planning"),
            ("planning", "pending", "start", true, "planning"),
            ("planning", "planning", "start", true, "monitoring"),
            ("planning", "planning", "cancel", false, "cancelled"),
            ("planning", "planning", "cancel", true, "cancelled"),
            ("planning", "monitoring", "complete", false, "completed"),
            ("planning", "monitoring", "complete", true, "completed"),
            ("planning", "monitoring", "cancel", false, "cancelled"),
            ("planning", "monitoring", "cancel", true, "cancelled"),
            ("planning", "completed", "reopen", false, "planning"),
            ("planning", "completed", "reopen", true, "planning"),
            ("planning", "cancelled", "reopen", false, "planning"),
            ("planning", "cancelled", "reopen", true, "planning"),
            ("execution", "pending", "start", false, "implementing"),
            ("execution", "implementing", "submit", false, "validating"),
            ("execution", "implementing", "complete", false, "completed"),
            ("execution", "implementing", "fail", false, "failed"),
            ("execution", "validating", "complete", false, "completed"),
            ("execution", "validating", "fail", false, "failed"),
            ("execution", "failed", "retry", false, "implementing"),
            ("execution", "completed", "reopen", false, "implementing"),
        ];
        let mut legal = 0;
        for kind in NodeType::ALL {
            for status in NodeStatus::ALL {
                for action in Action::ALL {
                    for has_children in [false, true] {
                        if *kind == Execution && has_children {
                            continue;
                        }
                        let want = spec
                            .iter()
                            .find(|s| {
                                (s.0, s.1, s.2, s.3)
                                    == (kind.as_str(), status.as_str(), action.as_str(), has_children)
                            })
                            .map(|s| s.4);
                        let got = find(*kind, *status, *action, has_children).map(|rule| rule.to.as_str());
                        assert_eq!(got, want, "{kind} {status} {action} children={has_children}");
                        assert_eq!(
                            allowed(*kind, *status, has_children).contains(action),
                            want.is_some(),
                            "{kind} {status} {action}"
                        );
                        legal += usize::from(got.is_some());
                    }
                }
            }
        }
        assert_eq!(legal, spec.len());
    }

    #[test]
    fn transition_rules_have_specified_prerequisites() {
        for rule in TRANSITION_RULES {
            let want = match (rule.kind, rule.from, rule.action) {
                (Plan, Monitoring, Complete) => Prerequisite::ChildrenDoneAndConclusion,
                (_, _, Complete | Fail | Cancel) => Prerequisite::Conclusion,
                (Plan, Planning, Start) => Prerequisite::Children,
                _ => Prerequisite::Nothing,
            };
            assert_eq!(rule.needs, want, "{rule:?}");
        }
    }

    #[test]
    fn action_word_parses_to_same_action() {
        for action in Action::ALL {
            assert_eq!(Action::parse("action", action.as_str()).unwrap(), *action);
        }
    }
}
