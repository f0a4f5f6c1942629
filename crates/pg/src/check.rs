//! `tanmi team check`: compares the rows of a project with their documents and with each other.

use tanmi_base::Lang;
use tanmi_memory::record::{self, Line};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::store::NodeBrief;
use tokio_postgres::Row;

use crate::pool::PooledConnection;
use crate::replica::READ;
use crate::rows::{self, brief_columns};
use crate::store::PgStore;
use crate::transfer::NO_LIMITS;

const PAGE: usize = 1000;

const STREAMS: &str = "SELECT s.id, s.seq, count(c.seq) AS n, coalesce(min(c.seq), 0) AS first,
    coalesce(max(c.seq), 0) AS last
FROM stream s LEFT JOIN change c ON c.project = s.project AND c.stream = s.id
WHERE s.project = $1 GROUP BY s.id, s.seq
HAVING coalesce(max(c.seq), 0) <> s.seq OR count(c.seq) <> coalesce(max(c.seq) - min(c.seq) + 1, 0) ORDER BY s.id";
const WORKSPACES: &str = "SELECT w.id, w.doc, NOT EXISTS (
    SELECT 1 FROM node n WHERE n.project = w.project AND n.ws = w.id AND n.id = 'root'
) AS is_rootless FROM workspace w WHERE w.project = $1 ORDER BY w.id";
const NODES: &str = concat!(
    "SELECT n.ws, n.doc, n.seq > coalesce(s.seq, 0) AS is_ahead, ",
    brief_columns!(),
    " FROM node n LEFT JOIN stream s ON s.project = n.project AND s.id = n.ws
    WHERE n.project = $1 AND (n.ws, n.id) > ($2, $3) ORDER BY n.ws, n.id LIMIT $4"
);
const PARENTS: &str = "SELECT n.ws, n.id, n.parent FROM node n
LEFT JOIN node p ON p.project = n.project AND p.ws = n.ws AND p.id = n.parent AND p.kind = 'planning'
WHERE n.project = $1 AND n.id <> 'root' AND p.id IS NULL ORDER BY n.ws, n.id";
/// Nodes whose ancestors do not end at the root, although each of them exists.
const UNREACHABLE: &str = "WITH RECURSIVE below AS (
    SELECT ws, id FROM node WHERE project = $1 AND parent IS NULL
    UNION SELECT n.ws, n.id FROM below JOIN node n ON n.project = $1 AND n.ws = below.ws AND n.parent = below.id
) SELECT n.ws, n.id FROM node n JOIN node p ON p.project = n.project AND p.ws = n.ws AND p.id = n.parent
WHERE n.project = $1 AND NOT EXISTS (SELECT 1 FROM below WHERE below.ws = n.ws AND below.id = n.id)
ORDER BY n.ws, n.id";
const HOLDERS: &str = "SELECT ws, id, holder FROM node
WHERE project = $1 AND holder IS NOT NULL AND status IN ('completed', 'failed', 'cancelled') ORDER BY ws, id";
const TALLY: &str = "WITH counted AS (
    SELECT ws, parent, status, count(*) AS n FROM (
        SELECT ws, parent, status FROM node WHERE project = $1 AND id <> 'root'
        UNION ALL SELECT ws, '', status FROM node WHERE project = $1 AND id <> 'root'
    ) AS steps GROUP BY ws, parent, status
), stored AS (SELECT ws, parent, status, n FROM tally WHERE project = $1 AND n > 0)
SELECT ws, parent, status, coalesce(stored.n, 0) AS stored, coalesce(counted.n, 0) AS counted
FROM counted FULL JOIN stored USING (ws, parent, status)
WHERE coalesce(stored.n, 0) <> coalesce(counted.n, 0) ORDER BY ws, parent, status";
const DEPENDENCIES: &str = "WITH named AS (
    SELECT DISTINCT ws, id AS node, target COLLATE \"C\" AS target, true AS is_named
    FROM node, unnest(string_to_array(depends_on, ',')) AS target WHERE project = $1 AND depends_on <> ''
), stored AS (SELECT ws, node, target, true AS is_stored FROM dependency WHERE project = $1)
SELECT ws, node, target FROM named FULL JOIN stored USING (ws, node, target)
WHERE is_named IS NULL OR is_stored IS NULL ORDER BY ws, node, target";
const TRASH: &str = "SELECT ws, id, doc FROM trash WHERE project = $1 ORDER BY ws, id";
const MEMORY: &str =
    "SELECT id, kind, line, content_hash FROM memory WHERE project = $1 AND id > $2 ORDER BY id LIMIT $3";
const TWICE: &str = "SELECT min(id) AS id, string_agg(id, ', ' ORDER BY id) AS ids FROM memory
WHERE project = $1 AND kind = 'fact' AND NOT hidden GROUP BY content_hash HAVING count(*) > 1 ORDER BY 1";

/// A row that contradicts its document or another row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFinding {
    /// A code that stays the same.
    pub code: &'static str,
    /// Names the row: the table and its key.
    pub place: String,
    zh: String,
    en: String,
}

impl ProjectFinding {
    fn new(code: &'static str, place: String, zh: String, en: String) -> ProjectFinding {
        ProjectFinding { code, place, zh, en }
    }

    pub fn message(&self, lang: Lang) -> &str {
        lang.pick(&self.zh, &self.en)
    }
}

impl PgStore {
    /// Checks the project as of one moment. Returns what is wrong.
    pub fn check(&self) -> Result<Vec<ProjectFinding>> {
        self.transact(READ, |connection| {
            connection.batch(NO_LIMITS)?;
            let mut findings = Vec::new();
            for check in [
                check_streams,
                check_workspaces,
                check_nodes,
                check_tree,
                check_counts,
                check_trash,
                check_memory,
            ] {
                findings.extend(check(connection, &self.project)?);
            }
            Ok(findings)
        })
    }
}

type Findings = Result<Vec<ProjectFinding>>;

fn check_streams(connection: &mut PooledConnection<'_>, project: &str) -> Findings {
    let finding = |row: &Row| {
        let number = |column: &str| row.get::<_, i64>(column);
        let (seq, n, first, last) = (number("seq"), number("n"), number("first"), number("last"));
        ProjectFinding::new(
            "STREAM_GAP",
            format!("stream {}", row.get::<_, &str>("id")),
            format!("序号为 {seq}，但有 {n} 个变更，从 {first} 到 {last}"),
            format!("its number is {seq}, but there are {n} changes from {first} to {last}"),
        )
    };
    Ok(connection.query(STREAMS, &[&project])?.iter().map(finding).collect())
}

fn check_workspaces(connection: &mut PooledConnection<'_>, project: &str) -> Findings {
    let mut findings = Vec::new();
    for row in connection.query(WORKSPACES, &[&project])? {
        let place = format!("workspace {}", row.get::<_, &str>("id"));
        let loaded =
            WorkspaceId::parse(row.get("id")).and_then(|id| rows::load_workspace(&id, row.get("doc")));
        findings.extend(loaded.err().map(|error| unreadable(place.clone(), &error)));
        if row.get("is_rootless") {
            let (zh, en) = (String::from("没有 root 节点"), String::from("has no node root"));
            findings.push(ProjectFinding::new("ROOT_MISSING", place, zh, en));
        }
    }
    Ok(findings)
}

fn unreadable(place: String, error: &Error) -> ProjectFinding {
    let (zh, en) = match error {
        Error::Corrupt { line, reason, .. } => {
            (format!("第 {line} 行：{}", reason.zh), format!("line {line}: {}", reason.en))
        }
        other => (other.to_string(), other.to_string()),
    };
    let (zh, en) = (format!("无法解析文档，{zh}"), format!("cannot parse the document, {en}"));
    ProjectFinding::new("UNREADABLE", place, zh, en)
}

fn node_place(row: &Row) -> String {
    format!("node {}/{}", row.get::<_, &str>("ws"), row.get::<_, &str>("id"))
}

fn check_nodes(connection: &mut PooledConnection<'_>, project: &str) -> Findings {
    let mut findings = Vec::new();
    let (mut ws, mut id) = (String::new(), String::new());
    loop {
        let page = connection.query(NODES, &[&project, &ws, &id, &rows::limit(PAGE)])?;
        findings.extend(page.iter().filter_map(check_node));
        match page.last() {
            Some(row) if page.len() == PAGE => (ws, id) = (row.get("ws"), row.get("id")),
            _ => return Ok(findings),
        }
    }
}

fn check_node(row: &Row) -> Option<ProjectFinding> {
    let node = NodeId::parse(row.get("id")).and_then(|id| rows::load_node(&id, row.get("doc")));
    let node = match node {
        Ok(loaded) => loaded.value,
        Err(error) => return Some(unreadable(node_place(row), &error)),
    };
    let mut different = match rows::brief(row) {
        Ok(stored) => different_columns(&stored, &node),
        Err(error) => return Some(unreadable(node_place(row), &error)),
    };
    different.extend(row.get::<_, bool>("is_ahead").then_some("seq"));
    (!different.is_empty()).then(|| {
        let columns = different.join(", ");
        ProjectFinding::new(
            "NODE_OUTDATED",
            node_place(row),
            format!("与文档不一致的列：{columns}"),
            format!("columns that contradict the document: {columns}"),
        )
    })
}

/// Returns the columns of a node whose values are not those of its document.
fn different_columns(stored: &NodeBrief, node: &Node) -> Vec<&'static str> {
    let wanted = NodeBrief::of(node);
    let is_equal = [
        ("parent", stored.parent_id == wanted.parent_id),
        ("ord", stored.position.order == wanted.position.order),
        ("title", stored.title == wanted.title),
        ("kind", stored.kind == wanted.kind),
        ("status", stored.status == wanted.status),
        ("role", stored.role == wanted.role),
        ("isolated", stored.isolated == wanted.isolated),
        ("has_problem", stored.has_problem == wanted.has_problem),
        ("created_at", stored.position.created_at == wanted.position.created_at),
        ("updated_at", stored.updated_at == wanted.updated_at),
        ("status_changed_at", stored.status_changed_at == wanted.status_changed_at),
        ("depends_on", stored.depends_on == wanted.depends_on),
        ("holder", stored.holder.as_deref() == rows::holder(node)),
    ];
    is_equal.iter().filter(|(_, is_equal)| !is_equal).map(|(column, _)| *column).collect()
}

fn check_tree(connection: &mut PooledConnection<'_>, project: &str) -> Findings {
    let orphan = |row: &Row| {
        let parent: Option<&str> = row.get("parent");
        let parent = parent.unwrap_or("-");
        ProjectFinding::new(
            "PARENT_MISSING",
            node_place(row),
            format!("父节点 {parent} 不存在，或不是规划节点"),
            format!("its parent {parent} does not exist or is not a planning node"),
        )
    };
    let unreachable = |row: &Row| {
        let (zh, en) = ("祖先节点不通向 root", "its ancestors do not lead to root");
        ProjectFinding::new("UNREACHABLE", node_place(row), zh.to_owned(), en.to_owned())
    };
    let held = |row: &Row| {
        let holder: &str = row.get("holder");
        ProjectFinding::new(
            "HOLDER_ON_DONE",
            node_place(row),
            format!("已结束，但由 {holder} 持有"),
            format!("is done, but held by {holder}"),
        )
    };
    let mut findings: Vec<ProjectFinding> =
        connection.query(PARENTS, &[&project])?.iter().map(orphan).collect();
    findings.extend(connection.query(UNREACHABLE, &[&project])?.iter().map(unreachable));
    findings.extend(connection.query(HOLDERS, &[&project])?.iter().map(held));
    Ok(findings)
}

fn check_counts(connection: &mut PooledConnection<'_>, project: &str) -> Findings {
    let tally = |row: &Row| {
        let text = |column: &str| row.get::<_, &str>(column);
        let (stored, counted): (i64, i64) = (row.get("stored"), row.get("counted"));
        ProjectFinding::new(
            "TALLY_WRONG",
            format!("tally {}/{:?}/{}", text("ws"), text("parent"), text("status")),
            format!("记为 {stored}，实际为 {counted}"),
            format!("says {stored}, but there are {counted}"),
        )
    };
    let dependency = |row: &Row| {
        let text = |column: &str| row.get::<_, &str>(column);
        ProjectFinding::new(
            "DEPENDENCY_WRONG",
            format!("dependency {}/{}", text("ws"), text("node")),
            format!("对 {} 的依赖只在节点或只在依赖表中", text("target")),
            format!("the dependency on {} is only in the node or only in the table", text("target")),
        )
    };
    let mut findings: Vec<ProjectFinding> = connection.query(TALLY, &[&project])?.iter().map(tally).collect();
    findings.extend(connection.query(DEPENDENCIES, &[&project])?.iter().map(dependency));
    Ok(findings)
}

fn check_trash(connection: &mut PooledConnection<'_>, project: &str) -> Findings {
    let check = |row: &Row| {
        let loaded = NodeId::parse(row.get("id")).and_then(|id| rows::load_node(&id, row.get("doc")));
        let place = format!("trash {}/{}", row.get::<_, &str>("ws"), row.get::<_, &str>("id"));
        loaded.err().map(|error| unreadable(place, &error))
    };
    Ok(connection.query(TRASH, &[&project])?.iter().filter_map(check).collect())
}

fn check_memory(connection: &mut PooledConnection<'_>, project: &str) -> Findings {
    let (mut findings, mut after) = (Vec::new(), String::new());
    loop {
        let page = connection.query(MEMORY, &[&project, &after, &rows::limit(PAGE)])?;
        findings.extend(page.iter().filter_map(check_record));
        match page.last() {
            Some(row) if page.len() == PAGE => after = row.get("id"),
            _ => break,
        }
    }
    let twice = |row: &Row| {
        let ids: &str = row.get("ids");
        ProjectFinding::new(
            "FACT_TWICE",
            format!("memory {}", row.get::<_, &str>("id")),
            format!("同样的内容同时有效多次：{ids}"),
            format!("the same content is in force several times: {ids}"),
        )
    };
    findings.extend(connection.query(TWICE, &[&project])?.iter().map(twice));
    Ok(findings)
}

fn check_record(row: &Row) -> Option<ProjectFinding> {
    let id: &str = row.get("id");
    let place = format!("memory {id}");
    let Line::Record { row: memory, .. } = record::read_line(row.get::<_, &str>("line").as_bytes(), "")
    else {
        let (zh, en) = ("无法解析该行", "cannot parse the line");
        return Some(ProjectFinding::new("UNREADABLE", place, zh.to_owned(), en.to_owned()));
    };
    let is_equal = [
        ("id", memory.id == id),
        ("kind", memory.letter.kind().as_str() == row.get::<_, &str>("kind")),
        ("content_hash", memory.content_hash == row.get::<_, i64>("content_hash")),
    ];
    let different: Vec<&str> =
        is_equal.iter().filter(|(_, is_equal)| !is_equal).map(|(column, _)| *column).collect();
    (!different.is_empty()).then(|| {
        let columns = different.join(", ");
        ProjectFinding::new(
            "MEMORY_OUTDATED",
            place,
            format!("与该行不一致的列：{columns}"),
            format!("columns that contradict the line: {columns}"),
        )
    })
}
