//! The queries of a transaction.

use crate::rows::brief_columns;

pub(crate) const HEADER: &str =
    "SELECT s.seq, w.doc FROM stream s JOIN workspace w ON w.project = s.project AND w.id = s.id
WHERE s.project = $1 AND s.id = $2 AND w.deleted_at IS NULL";
pub(crate) const DOCS: &str =
    "SELECT id, doc FROM node WHERE project = $1 AND ws = $2 AND id = ANY($3::text[])";
/// Nodes, their ancestors and what all of them depend on. With `$4`, also the documents of the nodes, their
/// claims and the counts of their children.
pub(crate) const FIND: &str = concat!(
    "WITH RECURSIVE chain(id) AS (
        SELECT unnest($3::text[]) COLLATE \"C\"
        UNION
        SELECT n.parent FROM chain JOIN node n ON n.project = $1 AND n.ws = $2 AND n.id = chain.id
        WHERE n.parent IS NOT NULL
    ), wanted AS (
        SELECT id FROM chain
        UNION
        SELECT d.target FROM chain JOIN dependency d ON d.project = $1 AND d.ws = $2 AND d.node = chain.id
    ), found AS (
        SELECT n.*, $4::bool AND n.id = ANY($3::text[]) AS is_named
        FROM wanted JOIN node n ON n.project = $1 AND n.ws = $2 AND n.id = wanted.id
    ) SELECT ",
    brief_columns!(),
    ", n.fence, CASE WHEN n.is_named THEN n.doc END AS doc, p.name AS person, s.machine,
        CASE WHEN n.is_named THEN (SELECT max(c.ord) FROM node c WHERE c.project = $1 AND c.ws = $2
            AND c.parent = n.id AND c.ord < 9223372036854775807) END AS last_order,
        ARRAY(SELECT t.status FROM tally t WHERE n.is_named AND t.project = $1 AND t.ws = $2
            AND t.parent = n.id AND t.n > 0 ORDER BY t.status) AS statuses,
        ARRAY(SELECT t.n FROM tally t WHERE n.is_named AND t.project = $1 AND t.ws = $2
            AND t.parent = n.id AND t.n > 0 ORDER BY t.status) AS numbers
    FROM found n
    LEFT JOIN session s ON n.is_named AND s.project = $1 AND s.id = n.holder
    LEFT JOIN person p ON p.id = s.person"
);
pub(crate) const SUBTREE: &str = concat!(
    "WITH RECURSIVE below(id, depth) AS (
        SELECT id, 1 FROM node WHERE project = $1 AND ws = $2 AND parent = $3
        UNION ALL
        SELECT n.id, depth + 1 FROM below JOIN node n ON n.project = $1 AND n.ws = $2 AND n.parent = below.id
    ) SELECT ",
    brief_columns!(),
    " FROM below JOIN node n ON n.project = $1 AND n.ws = $2 AND n.id = below.id
    ORDER BY depth, n.parent, n.ord, n.created_at, n.id"
);
/// The end of a query for children after a position.
macro_rules! children_after {
    () => {
        " FROM node n WHERE project = $1 AND ws = $2 AND parent = $3
        AND ($4::bigint IS NULL OR (n.ord, n.created_at, n.id) > ($4, $5, $6))
        ORDER BY n.ord, n.created_at, n.id LIMIT $7"
    };
}
pub(crate) const CHILDREN: &str = concat!("SELECT ", brief_columns!(), children_after!());
/// Each with the number of its own children.
pub(crate) const CHILDREN_WITH_COUNTS: &str = concat!(
    "SELECT ",
    brief_columns!(),
    ", coalesce((SELECT sum(t.n) FROM tally t
        WHERE t.project = n.project AND t.ws = n.ws AND t.parent = n.id), 0)::bigint AS children",
    children_after!()
);
pub(crate) const RECENT: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND parent = $3 AND status = $4
    ORDER BY n.status_changed_at DESC, n.id LIMIT $5"
);
pub(crate) const NAMED: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2
    AND (($4 AND right(n.id, length($3)) = $3) OR ($5 AND lower(n.title COLLATE \"C\") = lower($3 COLLATE \"C\")))
    ORDER BY n.id LIMIT $6"
);
/// A node with a dependency that is not completed. A dependency that does not exist counts as not completed.
macro_rules! is_blocked {
    () => {
        "EXISTS (SELECT 1 FROM dependency d
            LEFT JOIN node t ON t.project = d.project AND t.ws = d.ws AND t.id = d.target
            WHERE d.project = n.project AND d.ws = n.ws AND d.node = n.id AND t.status IS DISTINCT FROM 'completed')"
    };
}
/// The beginning of a query for nodes that can begin, or can have descendants that can.
macro_rules! can_begin {
    () => {
        concat!(
            "SELECT ",
            brief_columns!(),
            " FROM node n WHERE project = $1 AND ws = $2
            AND status NOT IN ('completed', 'failed', 'cancelled') AND (status = 'pending' OR kind = 'planning') AND "
        )
    };
}
pub(crate) const UNBLOCKED: &str = concat!(
    can_begin!(),
    "NOT ",
    is_blocked!(),
    " AND parent = $3 AND ($4::bigint IS NULL OR (n.ord, n.created_at, n.id) > ($4, $5, $6))
    ORDER BY n.ord, n.created_at, n.id LIMIT $7"
);
pub(crate) const BLOCKED: &str =
    concat!(can_begin!(), is_blocked!(), " ORDER BY n.ord, n.created_at, n.id LIMIT $3");
pub(crate) const HELD: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND holder IS NOT NULL ORDER BY n.status_changed_at, n.id LIMIT $3"
);
pub(crate) const STARTED: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND status IN ('implementing', 'validating')
    ORDER BY n.status_changed_at DESC, n.id LIMIT $3"
);
pub(crate) const DEPENDENCIES: &str =
    "SELECT node, target FROM dependency WHERE project = $1 AND ws = $2 ORDER BY node, target";
pub(crate) const DEPENDENTS: &str = "SELECT DISTINCT node FROM dependency
WHERE project = $1 AND ws = $2 AND target = ANY($3::text[]) ORDER BY node";
/// The nodes that were deleted together with one, including it, and do not exist.
pub(crate) const TRASHED: &str = "SELECT t.id, t.doc FROM trash t
JOIN trash own ON own.project = t.project AND own.ws = t.ws AND own.deletion = t.deletion
WHERE t.project = $1 AND t.ws = $2 AND own.id = $3 AND NOT EXISTS (
    SELECT 1 FROM node n WHERE n.project = t.project AND n.ws = t.ws AND n.id = t.id
) ORDER BY t.id";
/// A node that was created by hand has no position of its own and does not count.
pub(crate) const LAST_ORDER: &str = "SELECT max(ord) FROM node
WHERE project = $1 AND ws = $2 AND parent = $3 AND ord < 9223372036854775807";
pub(crate) const COUNTS: &str =
    "SELECT status, n FROM tally WHERE project = $1 AND ws = $2 AND parent = $3 AND n > 0";
