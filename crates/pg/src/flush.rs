//! Writes the collected nodes of a transaction with one statement.

use postgres::types::ToSql;
use tanmi_base::Millis;
use tanmi_workspace::error::Result;
use tanmi_workspace::model::*;
use tanmi_workspace::store::NodeBrief;

use crate::pool::PooledConnection;
use crate::rows;

/// Removes and writes nodes and keeps the counts. All parts see the rows as they were before the statement, so `before` has
/// the old parent and status of each node. A negative difference is an update, because a row with a negative number
/// cannot be inserted, not even to be merged with an existing one.
const FLUSH: &str = "WITH input AS (
    SELECT * FROM unnest($5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[],
        $12::bool[], $13::bool[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[], $18::text[], $22::text[])
    AS t(id, parent, ord, title, kind, status, role, isolated, has_problem, created_at, updated_at,
        status_changed_at, holder, doc, depends_on)
), before AS (
    SELECT id, parent, status FROM node
    WHERE project = $1 AND ws = $2 AND (id = ANY($4::text[]) OR id = ANY($5::text[]))
), removed AS (
    DELETE FROM node WHERE project = $1 AND ws = $2 AND id = ANY($4::text[]) RETURNING id, doc
), trashed AS (
    INSERT INTO trash (project, ws, id, deletion, deleted_at, doc)
    SELECT $1, $2, id, $3, $21, doc FROM removed
    ON CONFLICT (project, ws, id) DO UPDATE SET
        deletion = excluded.deletion, deleted_at = excluded.deleted_at, doc = excluded.doc
), wanted AS (
    SELECT DISTINCT node, target FROM unnest($19::text[], $20::text[]) AS pair(node, target)
), dropped AS (
    DELETE FROM dependency d WHERE project = $1 AND ws = $2
        AND (node = ANY($4::text[]) OR node = ANY($5::text[]))
        AND NOT EXISTS (SELECT 1 FROM wanted w WHERE w.node = d.node AND w.target = d.target)
), added AS (
    INSERT INTO dependency (project, ws, node, target) SELECT $1, $2, node, target FROM wanted
    ON CONFLICT DO NOTHING
), written AS (
    INSERT INTO node (project, ws, seq, id, parent, ord, title, kind, status, role, isolated, has_problem,
        created_at, updated_at, status_changed_at, holder, fence, doc, depends_on)
    SELECT $1, $2, $3, id, parent, ord, title, kind, status, role, isolated, has_problem,
        created_at, updated_at, status_changed_at, holder, CASE WHEN holder IS NULL THEN 0 ELSE 1 END, doc,
        depends_on
    FROM input
    ON CONFLICT (project, ws, id) DO UPDATE SET
        seq = excluded.seq, parent = excluded.parent, ord = excluded.ord, title = excluded.title,
        kind = excluded.kind, status = excluded.status, role = excluded.role, isolated = excluded.isolated,
        has_problem = excluded.has_problem, created_at = excluded.created_at, updated_at = excluded.updated_at,
        status_changed_at = excluded.status_changed_at, holder = excluded.holder, doc = excluded.doc,
        depends_on = excluded.depends_on,
        fence = node.fence + CASE WHEN excluded.holder IS NOT NULL
            AND excluded.holder IS DISTINCT FROM node.holder THEN 1 ELSE 0 END
), difference AS (
    SELECT parent, status, sum(one)::bigint AS n FROM (
        SELECT parent, status, -1 AS one FROM before WHERE id <> 'root'
        UNION ALL SELECT '', status, -1 FROM before WHERE id <> 'root'
        UNION ALL SELECT parent, status, 1 FROM input WHERE id <> 'root'
        UNION ALL SELECT '', status, 1 FROM input WHERE id <> 'root'
    ) AS steps GROUP BY parent, status
), fewer AS (
    UPDATE tally SET n = tally.n + difference.n FROM difference
    WHERE difference.n < 0 AND tally.project = $1 AND tally.ws = $2
        AND tally.parent = difference.parent AND tally.status = difference.status
)
INSERT INTO tally (project, ws, parent, status, n)
SELECT $1, $2, parent, status, n FROM difference WHERE n > 0
ON CONFLICT (project, ws, parent, status) DO UPDATE SET n = tally.n + excluded.n";

/// Where the nodes are written: the project, the workspace, and the number and time of the change.
pub(crate) struct Place<'a> {
    pub project: &'a str,
    pub workspace: &'a WorkspaceId,
    pub seq: i64,
    pub now: Millis,
}

/// Writes `nodes`, each with its document, and removes `removed`.
pub(crate) fn flush(
    connection: &mut PooledConnection<'_>,
    place: &Place<'_>,
    nodes: &[(&Node, &str)],
    removed: &[&str],
) -> Result<()> {
    let briefs: Vec<NodeBrief> = nodes.iter().map(|(node, _)| NodeBrief::of(node)).collect();
    let ids: Vec<&str> = briefs.iter().map(|brief| brief.id.as_str()).collect();
    let parents: Vec<Option<&str>> =
        briefs.iter().map(|brief| brief.parent_id.as_ref().map(NodeId::as_str)).collect();
    let orders: Vec<i64> = briefs.iter().map(|brief| brief.position.order).collect();
    let titles: Vec<&str> = briefs.iter().map(|brief| brief.title.as_str()).collect();
    let kinds: Vec<&str> = briefs.iter().map(|brief| brief.kind.as_str()).collect();
    let statuses: Vec<&str> = briefs.iter().map(|brief| brief.status.as_str()).collect();
    let roles: Vec<Option<&str>> = briefs.iter().map(|brief| brief.role.map(NodeRole::as_str)).collect();
    let isolated: Vec<bool> = briefs.iter().map(|brief| brief.isolated).collect();
    let problems: Vec<bool> = briefs.iter().map(|brief| brief.has_problem).collect();
    let created: Vec<i64> = briefs.iter().map(|brief| brief.position.created_at).collect();
    let updated: Vec<i64> = briefs.iter().map(|brief| brief.updated_at).collect();
    let changed: Vec<i64> = briefs.iter().map(|brief| brief.status_changed_at).collect();
    let holders: Vec<Option<&str>> = nodes.iter().map(|(node, _)| rows::holder(node)).collect();
    let docs: Vec<&str> = nodes.iter().map(|(_, doc)| *doc).collect();
    let pairs = nodes.iter().flat_map(|(node, _)| node.depends_on.iter().map(|on| (&node.id, on)));
    let (dependents, targets): (Vec<&str>, Vec<&str>) =
        pairs.map(|(node, on)| (node.as_str(), on.as_str())).unzip();
    let depends_on: Vec<String> = nodes.iter().map(|(node, _)| rows::depends_on(node)).collect();
    let params: [&(dyn ToSql + Sync); 22] = [
        &place.project,
        &place.workspace.as_str(),
        &place.seq,
        &removed,
        &ids,
        &parents,
        &orders,
        &titles,
        &kinds,
        &statuses,
        &roles,
        &isolated,
        &problems,
        &created,
        &updated,
        &changed,
        &holders,
        &docs,
        &dependents,
        &targets,
        &place.now,
        &depends_on,
    ];
    connection.query(FLUSH, &params)?;
    Ok(())
}
