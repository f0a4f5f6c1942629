//! Writes what a transaction collected with one statement.

use tanmi_base::Millis;
use tanmi_protocol::{Document, Positions};
use tanmi_workspace::error::Result;
use tanmi_workspace::model::*;
use tanmi_workspace::store::{NodeBrief, WORKSPACE};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::contributions::Deed;
use crate::error::conflict;
use crate::pool::PooledConnection;
use crate::rows;
use crate::tx::Author;

/// Removes and writes nodes and keeps the counts. All parts see the rows as they were before the statement,
/// so `before` has the old parent and status of each node. A negative difference is an update, because a row
/// with a negative number cannot be inserted, not even to be merged with an existing one. The number of a
/// claim is that of its change, which is higher than every earlier one, also if the node was deleted in
/// between.
macro_rules! write_nodes {
    () => {
        "WITH input AS (
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
    SELECT $1, $2, id, $3::bigint, $21::bigint, doc FROM removed
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
        created_at, updated_at, status_changed_at, holder, CASE WHEN holder IS NULL THEN 0 ELSE $3::bigint END, doc,
        depends_on
    FROM input
    ON CONFLICT (project, ws, id) DO UPDATE SET
        seq = excluded.seq, parent = excluded.parent, ord = excluded.ord, title = excluded.title,
        kind = excluded.kind, status = excluded.status, role = excluded.role, isolated = excluded.isolated,
        has_problem = excluded.has_problem, created_at = excluded.created_at, updated_at = excluded.updated_at,
        status_changed_at = excluded.status_changed_at, holder = excluded.holder, doc = excluded.doc,
        depends_on = excluded.depends_on,
        fence = CASE WHEN excluded.holder IS NOT NULL
            AND excluded.holder IS DISTINCT FROM node.holder THEN $3::bigint ELSE node.fence END
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
), more AS (
    INSERT INTO tally (project, ws, parent, status, n)
    SELECT $1, $2, parent, status, n FROM difference WHERE n > 0
    ON CONFLICT (project, ws, parent, status) DO UPDATE SET n = tally.n + excluded.n
)"
    };
}
/// Counts the nodes that should be new and exist.
macro_rules! count_taken {
    () => {
        " SELECT NULL::text AS id, count(*) AS seq FROM before WHERE id = ANY($23::text[])"
    };
}
const FLUSH: &str = concat!(write_nodes!(), count_taken!());
/// Also takes the next number of the stream, records the written documents under it, and stores the answer of
/// a request. Returns the last change of every stream before it, if there is a request.
const FINISH: &str = concat!(
    write_nodes!(),
    ", numbered AS (
        UPDATE stream SET seq = $3 WHERE project = $1 AND id = $2 AND seq = $3::bigint - 1
            AND cardinality($24::text[]) > 0
    ), described AS (
        UPDATE workspace SET doc = coalesce($26::text, doc), active_at = greatest(active_at, $21::bigint)
        WHERE project = $1 AND id = $2 AND cardinality($24::text[]) > 0
    ), recorded AS (
        INSERT INTO change (project, stream, seq, at, names, docs, person, session, machine, what, subject)
        SELECT $1, $2, $3::bigint, $21::bigint, $24::text[], $25::text[], $27::text, $28::text, $29::text,
            $33::text, $34::text
        WHERE cardinality($24::text[]) > 0
    ), stored AS (
        INSERT INTO request (project, key, digest, answer, at)
        SELECT $1, $30::text, $31::text, $32::text, $21::bigint WHERE $30::text IS NOT NULL
    )",
    count_taken!(),
    " UNION ALL SELECT s.id, s.seq FROM stream s LEFT JOIN workspace w ON w.project = s.project AND w.id = s.id
    WHERE s.project = $1 AND w.deleted_at IS NULL AND $30::text IS NOT NULL"
);

/// Where the nodes are written: the project, the workspace, and the number and time of the change.
pub(crate) struct Place<'a> {
    pub project: &'a str,
    pub workspace: &'a WorkspaceId,
    pub seq: i64,
    pub now: Millis,
}

/// The nodes to write.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    /// Each with its document.
    pub nodes: Vec<(&'a Node, String)>,
    /// Those of `nodes` that should not exist yet.
    pub added: Vec<&'a str>,
    pub removed: Vec<&'a str>,
}

/// The change that a transaction makes: all its documents, who made it, what it counts as, and the request
/// that asked for it.
pub(crate) struct Change<'a> {
    pub documents: &'a [Document],
    pub author: Option<&'a Author>,
    pub deed: Option<&'a Deed>,
    pub request: Option<StoredRequest<'a>>,
}

/// The answer of a request, and what identifies the request.
#[derive(Clone, Copy)]
pub(crate) struct StoredRequest<'a> {
    pub key: &'a str,
    pub digest: &'a str,
    pub answer: &'a str,
}

/// Writes nodes. Fails with a conflict if one of them should be new and exists.
pub(crate) fn flush(
    connection: &mut PooledConnection<'_>,
    place: &Place<'_>,
    batch: &Batch<'_>,
) -> Result<()> {
    write(connection, FLUSH, place, batch, &[]).map(|_| ())
}

/// Writes nodes and records the change. Returns the last change of every stream before it, if there is a request.
pub(crate) fn finish(
    connection: &mut PooledConnection<'_>,
    place: &Place<'_>,
    batch: &Batch<'_>,
    change: &Change<'_>,
) -> Result<Positions> {
    let names: Vec<&str> = change.documents.iter().map(|document| document.name.as_str()).collect();
    let docs: Vec<Option<&str>> = change.documents.iter().map(|document| document.text.as_deref()).collect();
    let workspace = change.documents.first().filter(|document| document.name == WORKSPACE);
    let doc = workspace.and_then(|document| document.text.as_deref());
    let params: [&(dyn ToSql + Sync); 11] = [
        &names,
        &docs,
        &doc,
        &change.author.map(|author| author.person.as_str()),
        &change.author.and_then(|author| author.session.as_deref()),
        &change.author.map(|author| author.machine.as_str()),
        &change.request.map(|request| request.key),
        &change.request.map(|request| request.digest),
        &change.request.map(|request| request.answer),
        &change.deed.map(|deed| deed.what),
        &change.deed.and_then(|deed| deed.subject.as_deref()),
    ];
    write(connection, FINISH, place, batch, &params)
}

fn write(
    connection: &mut PooledConnection<'_>,
    sql: &'static str,
    place: &Place<'_>,
    batch: &Batch<'_>,
    more: &[&(dyn ToSql + Sync)],
) -> Result<Positions> {
    let nodes = &batch.nodes;
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
    let docs: Vec<&str> = nodes.iter().map(|(_, doc)| doc.as_str()).collect();
    let pairs = nodes.iter().flat_map(|(node, _)| node.depends_on.iter().map(|on| (&node.id, on)));
    let (dependents, targets): (Vec<&str>, Vec<&str>) =
        pairs.map(|(node, on)| (node.as_str(), on.as_str())).unzip();
    let depends_on: Vec<String> = nodes.iter().map(|(node, _)| rows::depends_on(node)).collect();
    let params: [&(dyn ToSql + Sync); 23] = [
        &place.project,
        &place.workspace.as_str(),
        &place.seq,
        &batch.removed,
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
        &batch.added,
    ];
    let rows = connection.query(sql, &[&params, more].concat())?;
    // The first row counts nodes.
    let (taken, heads): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.get::<_, Option<&str>>("id").is_none());
    match taken.first().is_some_and(|row| row.get::<_, i64>("seq") > 0) {
        true => Err(conflict()),
        false => Ok(heads.iter().map(|row| (row.get("id"), row.get("seq"))).collect()),
    }
}
