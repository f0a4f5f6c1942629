//! The columns of a node and their meaning.

use tanmi_workspace::codec::{self, Document, ParseError};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::store::{NodeBrief, SiblingPosition, StatusCounts};
use tokio_postgres::Row;

/// The columns of a [`NodeBrief`], for `SELECT` lists. [`brief`] reads them by name.
macro_rules! brief_columns {
    () => {
        "n.id, n.parent, n.ord, n.title, n.kind, n.status, n.role, n.isolated, n.has_problem, \
         n.created_at, n.updated_at, n.status_changed_at, n.depends_on, n.holder"
    };
}
pub(crate) use brief_columns;

/// Reads the columns of [`brief_columns`].
pub(crate) fn brief(row: &Row) -> Result<NodeBrief> {
    let parent: Option<String> = row.get("parent");
    let role: Option<String> = row.get("role");
    let depends_on: &str = row.get("depends_on");
    let depends_on = depends_on.split(',').filter(|id| !id.is_empty()).map(NodeId::parse);
    Ok(NodeBrief {
        id: NodeId::parse(row.get("id"))?,
        parent_id: parent.map(|id| NodeId::parse_field("parentId", &id)).transpose()?,
        title: row.get("title"),
        kind: NodeType::parse("type", row.get("kind"))?,
        status: NodeStatus::parse("status", row.get("status"))?,
        role: role.map(|word| NodeRole::parse("role", &word)).transpose()?,
        isolated: row.get("isolated"),
        has_problem: row.get("has_problem"),
        updated_at: row.get("updated_at"),
        status_changed_at: row.get("status_changed_at"),
        depends_on: depends_on.collect::<Result<_>>()?,
        holder: row.get("holder"),
        position: SiblingPosition {
            order: row.get("ord"),
            created_at: row.get("created_at"),
            id: row.get("id"),
        },
        damage: None,
    })
}

pub(crate) fn briefs(rows: &[Row]) -> Result<Vec<NodeBrief>> {
    rows.iter().map(brief).collect()
}

/// Reads rows of a status and a number.
pub(crate) fn counts(rows: &[Row]) -> StatusCounts {
    let count = |row: &Row| {
        let n: i64 = row.get("n");
        Some((NodeStatus::from_word(row.get("status"))?, n.unsigned_abs()))
    };
    StatusCounts::of(rows.iter().filter_map(count))
}

/// A document and what it says.
pub(crate) struct Loaded<T> {
    pub doc: Document,
    pub value: T,
}

pub(crate) fn load_workspace(id: &WorkspaceId, text: &str) -> Result<Loaded<Workspace>> {
    let read = || -> Result<Loaded<Workspace>, ParseError> {
        let doc = Document::parse(text.as_bytes())?;
        Ok(Loaded { value: codec::read_workspace(&doc, id)?, doc })
    };
    read().map_err(|error| damaged(id.as_str(), error))
}

pub(crate) fn load_node(id: &NodeId, text: &str) -> Result<Loaded<Node>> {
    let read = || -> Result<Loaded<Node>, ParseError> {
        let doc = Document::parse(text.as_bytes())?;
        Ok(Loaded { value: codec::read_node(&doc, id)?, doc })
    };
    read().map_err(|error| damaged(id.as_str(), error))
}

fn damaged(place: &str, error: ParseError) -> Error {
    Error::Corrupt { place: place.to_owned(), line: error.line, reason: error.reason }
}

/// Returns the holder of a node for the column: a done node has none.
pub(crate) fn holder(node: &Node) -> Option<&str> {
    node.started_by.as_deref().filter(|_| !node.status.is_done())
}

/// Returns the dependencies of a node for the column.
pub(crate) fn depends_on(node: &Node) -> String {
    let ids: Vec<&str> = node.depends_on.iter().map(NodeId::as_str).collect();
    ids.join(",")
}

/// Returns a limit as the database takes it.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
