//! Both state machines, as one table. What a step needs is in the table too; who checks it is [`crate::ops`].

use serde::Serialize;

use crate::model::NodeStatus::{self, *};
use crate::model::NodeType::{self, Execution, Planning as Plan};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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

/// What has to hold before a step may be taken.
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

const fn step(
    kind: NodeType,
    from: NodeStatus,
    action: Action,
    to: NodeStatus,
    needs: Prerequisite,
) -> TransitionRule {
    TransitionRule { kind, from, action, to, needs }
}

/// Every legal step there is. Steps that happen by themselves (a child appears, the last one goes) are in
/// [`parent_when_child_appears`] and [`parent_when_last_child_goes`].
#[rustfmt::skip]
pub const TRANSITION_RULES: &[TransitionRule] = &[
    step(Plan,      Pending,      Start,    Planning,     Prerequisite::Nothing),
    // The way on after a reopen: the children are still there.
    step(Plan,      Planning,     Start,    Monitoring,   Prerequisite::Children),
    step(Plan,      Planning,     Cancel,   Cancelled,    Prerequisite::Conclusion),
    step(Plan,      Monitoring,   Complete, Completed,    Prerequisite::ChildrenDoneAndConclusion),
    step(Plan,      Monitoring,   Cancel,   Cancelled,    Prerequisite::Conclusion),
    step(Plan,      Completed,    Reopen,   Planning,     Prerequisite::Nothing),
    step(Plan,      Cancelled,    Reopen,   Planning,     Prerequisite::Nothing),
    step(Execution, Pending,      Start,    Implementing, Prerequisite::Nothing),
    step(Execution, Implementing, Submit,   Validating,   Prerequisite::Nothing),
    step(Execution, Implementing, Complete, Completed,    Prerequisite::Conclusion),
    step(Execution, Implementing, Fail,     Failed,       Prerequisite::Conclusion),
    step(Execution, Validating,   Complete, Completed,    Prerequisite::Conclusion),
    step(Execution, Validating,   Fail,     Failed,       Prerequisite::Conclusion),
    step(Execution, Failed,       Retry,    Implementing, Prerequisite::Nothing),
    step(Execution, Completed,    Reopen,   Implementing, Prerequisite::Nothing),
];

pub fn find(
    kind: NodeType,
    from: NodeStatus,
    action: Action,
    has_children: bool,
) -> Option<&'static TransitionRule> {
    allowed_steps(kind, from, has_children).find(|step| step.action == action)
}

/// The actions that are possible from here.
pub fn allowed(kind: NodeType, from: NodeStatus, has_children: bool) -> Vec<Action> {
    allowed_steps(kind, from, has_children).map(|step| step.action).collect()
}

fn allowed_steps(
    kind: NodeType,
    from: NodeStatus,
    has_children: bool,
) -> impl Iterator<Item = &'static TransitionRule> {
    TRANSITION_RULES
        .iter()
        .filter(move |step| step.kind == kind && step.from == from)
        .filter(move |step| step.needs != Prerequisite::Children || has_children)
}

/// Whether a node of this type can have this status at all.
pub fn is_possible(kind: NodeType, status: NodeStatus) -> bool {
    TRANSITION_RULES.iter().any(|step| step.kind == kind && (step.from == status || step.to == status))
}

/// How an unfinished child came to be under its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appearance {
    /// Created or moved in: a plan takes shape.
    New,
    /// Reopened or retried: it was there before.
    Again,
}

/// What an unfinished child makes of the node above it. `None` leaves it as it is; a cancelled parent is refused
/// before this is asked.
pub fn parent_when_child_appears(parent: NodeStatus, appearance: Appearance) -> Option<NodeStatus> {
    match (parent, appearance) {
        (Pending | Completed, _) | (Planning, Appearance::New) => Some(Monitoring),
        _ => None,
    }
}

pub fn parent_when_last_child_goes(parent: NodeStatus) -> Option<NodeStatus> {
    matches!(parent, Monitoring | Completed).then_some(Planning)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every (type, status, action) there is, with and without children, against the specification written out.
    #[test]
    fn the_whole_table() {
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
                        let got = find(*kind, *status, *action, has_children).map(|step| step.to.as_str());
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
    fn what_steps_need() {
        for step in TRANSITION_RULES {
            let want = match (step.kind, step.from, step.action) {
                (Plan, Monitoring, Complete) => Prerequisite::ChildrenDoneAndConclusion,
                (_, _, Complete | Fail | Cancel) => Prerequisite::Conclusion,
                (Plan, Planning, Start) => Prerequisite::Children,
                _ => Prerequisite::Nothing,
            };
            assert_eq!(step.needs, want, "{step:?}");
        }
    }

    #[test]
    fn words_and_actions_agree() {
        for action in Action::ALL {
            assert_eq!(Action::parse("action", action.as_str()).unwrap(), *action);
        }
    }
}
