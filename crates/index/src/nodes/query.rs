//! Selections of nodes, each a condition with an order.

use rusqlite::ToSql;

use super::RowPosition;

/// Which nodes to select, and in which order. An index of the table covers each, except the
/// orphans and the nodes that a person names.
#[derive(Clone, Copy, Debug)]
pub enum NodeQuery<'a> {
    /// Children that are pending or can have pending descendants and whose own dependencies are completed, in their
    /// order, starting after a position.
    Unblocked { parent: &'a str, after: Option<&'a RowPosition> },
    /// Pending nodes, and planning nodes that are not done, with a dependency that is not completed.
    Blocked,
    /// Nodes that depend on this one.
    Dependents { target: &'a str },
    /// Claimed nodes that are not done, the earliest status change first.
    Held,
    /// Children with one status, the latest status change first.
    Recent { parent: &'a str, status: &'a str },
    /// Children that are not done, in their order.
    OpenChildren { parent: &'a str },
    /// Implementing and validating nodes, the latest status change first.
    Started,
    /// Nodes with an open problem, the latest change first.
    WithProblem,
    /// Nodes whose parent does not exist, except the root.
    Orphans,
    /// Nodes whose files cannot be read, by id.
    Damaged,
    /// Nodes whose id ends with a text, by id.
    IdSuffix { suffix: &'a str },
    /// Nodes with a title, by id. The case of ASCII letters is ignored.
    Title { title: &'a str },
}

/// A condition with an order, and the values of its named parameters.
type Selection<'a> = (&'static str, Vec<(&'static str, &'a dyn ToSql)>);

impl<'a> NodeQuery<'a> {
    pub(super) fn selection(&'a self) -> Selection<'a> {
        match self {
            NodeQuery::Unblocked { parent, after: None } => (UNBLOCKED, vec![(":parent", parent)]),
            NodeQuery::Unblocked { parent, after: Some(after) } => (
                UNBLOCKED_AFTER,
                vec![
                    (":parent", parent),
                    (":order", &after.order),
                    (":created", &after.created_at),
                    (":id", &after.id),
                ],
            ),
            NodeQuery::Blocked => (BLOCKED, Vec::new()),
            NodeQuery::Dependents { target } => (
                "id IN (SELECT node FROM dependencies WHERE target = :target) ORDER BY id",
                vec![(":target", target)],
            ),
            NodeQuery::Held => (
                "holder <> '' AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled'
                 ORDER BY status_changed_at, id",
                Vec::new(),
            ),
            NodeQuery::Recent { parent, status } => (
                "parent = :parent AND status = :status ORDER BY status_changed_at DESC",
                vec![(":parent", parent), (":status", status)],
            ),
            NodeQuery::OpenChildren { parent } => (
                "parent = :parent AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled'
                 ORDER BY ord, created_at, id",
                vec![(":parent", parent)],
            ),
            NodeQuery::Started => {
                ("status IN ('implementing', 'validating') ORDER BY status_changed_at DESC", Vec::new())
            }
            NodeQuery::WithProblem => ("has_problem ORDER BY updated_at DESC", Vec::new()),
            NodeQuery::Orphans => {
                ("parent <> '' AND NOT EXISTS (SELECT 1 FROM nodes AS p WHERE p.id = n.parent)", Vec::new())
            }
            NodeQuery::Damaged => ("damage IS NOT NULL ORDER BY id", Vec::new()),
            NodeQuery::IdSuffix { suffix } => {
                ("substr(id, -length(:suffix)) = :suffix ORDER BY id", vec![(":suffix", suffix)])
            }
            NodeQuery::Title { title } => {
                ("title = :title COLLATE NOCASE ORDER BY id", vec![(":title", title)])
            }
        }
    }
}

macro_rules! unblocked {
    ($position:literal) => {
        concat!(
            "parent = :parent AND waits_for = 0
             AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled'
             AND (status = 'pending' OR kind = 'planning') AND damage IS NULL",
            $position,
            " ORDER BY ord, created_at, id"
        )
    };
}

const UNBLOCKED: &str = unblocked!("");
const UNBLOCKED_AFTER: &str = unblocked!(" AND (ord, created_at, id) > (:order, :created, :id)");
const BLOCKED: &str =
    "waits_for > 0 AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled'
     AND (status = 'pending' OR kind = 'planning') ORDER BY ord, created_at, id";
