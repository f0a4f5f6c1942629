//! Whole projects in and out of the database, byte for byte: workspaces with their nodes, and the lines of the memory.

use std::collections::{BTreeMap, VecDeque};

use tanmi_base::Bilingual;
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::store::WorkspaceDocuments;
use tokio_postgres::Row;

use crate::flush::{self, Batch, Place};
use crate::pool::PooledConnection;
use crate::replica::READ;
use crate::rows;
use crate::store::{INSERT_STREAM, PgStore};

/// The number of nodes that one statement reads or writes.
const PAGE: usize = 1000;
/// Transfers and checks read whole projects, so one statement may take longer than that of a request.
pub(crate) const NO_LIMITS: &str =
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0";

const WORKSPACES: &str =
    "SELECT id, doc FROM workspace WHERE project = $1 AND deleted_at IS NULL ORDER BY id";
const STATE: &str =
    "SELECT doc, deleted_at IS NOT NULL AS is_deleted FROM workspace WHERE project = $1 AND id = $2";
const NODES: &str =
    "SELECT id, doc FROM node WHERE project = $1 AND ws = $2 AND id > $3 ORDER BY id LIMIT $4";

/// Whether a project contains a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspacePresence {
    Absent,
    /// With the same documents.
    Same,
    /// Another text of this document: a node id, or `workspace`.
    Different {
        document: String,
    },
    Deleted,
}

impl PgStore {
    /// Passes the documents of every workspace to `take`, with their number so far and the number of
    /// workspaces. Returns the lines of the memory. Everything is as of one moment.
    pub fn export(
        &self,
        take: &mut dyn FnMut(WorkspaceDocuments, usize, usize) -> Result<()>,
    ) -> Result<Vec<String>> {
        self.transact(READ, |connection| {
            connection.batch(NO_LIMITS)?;
            let workspaces = connection.query(WORKSPACES, &[&self.project])?;
            for (at, row) in workspaces.iter().enumerate() {
                let id = WorkspaceId::parse(row.get("id"))?;
                let nodes = self.node_documents(connection, &id)?;
                take(WorkspaceDocuments { id, workspace: row.get("doc"), nodes }, at + 1, workspaces.len())?;
            }
            crate::memory::transfer::lines(self, connection)
        })
    }

    fn node_documents(
        &self,
        connection: &mut PooledConnection<'_>,
        id: &WorkspaceId,
    ) -> Result<Vec<(NodeId, String)>> {
        let mut nodes: Vec<(NodeId, String)> = Vec::new();
        loop {
            let after = nodes.last().map_or("", |(id, _)| id.as_str());
            let page = connection.query(NODES, &[&self.project, &id.as_str(), &after, &rows::limit(PAGE)])?;
            let read = |row: &Row| Ok((NodeId::parse(row.get("id"))?, row.get("doc")));
            let read: Vec<(NodeId, String)> = page.iter().map(read).collect::<Result<_>>()?;
            nodes.extend(read);
            if page.len() < PAGE {
                return Ok(nodes);
            }
        }
    }

    /// Returns whether the project contains a workspace, and with the same documents.
    pub fn find_workspace(&self, documents: &WorkspaceDocuments) -> Result<WorkspacePresence> {
        let id = &documents.id;
        self.transact(READ, |connection| {
            let found = connection.query(STATE, &[&self.project, &id.as_str()])?;
            let Some(row) = found.first() else { return Ok(WorkspacePresence::Absent) };
            if row.get("is_deleted") {
                return Ok(WorkspacePresence::Deleted);
            }
            if row.get::<_, &str>("doc") != documents.workspace {
                return Ok(WorkspacePresence::Different { document: String::from("workspace") });
            }
            let stored: BTreeMap<NodeId, String> = self.node_documents(connection, id)?.into_iter().collect();
            let given: BTreeMap<&NodeId, &String> =
                documents.nodes.iter().map(|(id, text)| (id, text)).collect();
            let ids = stored.keys().chain(given.keys().copied());
            let different = ids.min_by_key(|id| (stored.get(*id) == given.get(id).copied(), (*id).clone()));
            Ok(match different.filter(|id| stored.get(*id) != given.get(id).copied()) {
                Some(id) => WorkspacePresence::Different { document: id.to_string() },
                None => WorkspacePresence::Same,
            })
        })
    }

    /// Adds a workspace with its documents. Fails if one of them cannot be parsed or does not fit to the others.
    pub fn import_workspace(&self, documents: &WorkspaceDocuments) -> Result<()> {
        let ParsedWorkspace { workspace, nodes } = parse_workspace(documents)?;
        let active_at = nodes.iter().map(|(node, _)| node.updated_at).chain([workspace.updated_at]).max();
        let (id, active_at) = (&documents.id, active_at.unwrap_or_default());
        self.transact("BEGIN", |connection| {
            connection.batch(NO_LIMITS)?;
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&self.project, &id.as_str(), &documents.workspace, &active_at];
            connection.query(INSERT_STREAM, &params)?;
            let place = Place { project: &self.project, workspace: id, seq: 0, now: active_at };
            for page in nodes.chunks(PAGE) {
                let nodes = page.iter().map(|(node, text)| (node, (*text).to_owned())).collect();
                flush::flush(connection, &place, &Batch { nodes, ..Batch::default() })?;
            }
            Ok(())
        })
    }
}

struct ParsedWorkspace<'a> {
    workspace: Workspace,
    /// Each after its parent.
    nodes: Vec<(Node, &'a str)>,
}

/// Fails if the documents of a workspace cannot be imported, and says which and why.
pub fn check_documents(documents: &WorkspaceDocuments) -> Result<()> {
    parse_workspace(documents).map(|_| ())
}

fn parse_workspace(documents: &WorkspaceDocuments) -> Result<ParsedWorkspace<'_>> {
    let id = &documents.id;
    let bad = |document: &str, zh: &str, en: &str| Error::Corrupt {
        place: format!("{id}/{document}"),
        line: 1,
        reason: Bilingual::new(zh, en),
    };
    let no_nul = |document: &str, text: &str| match text.contains('\0') {
        true => Err(bad(document, "含有空字符", "contains a NUL character")),
        false => Ok(()),
    };
    no_nul("Workspace.md", &documents.workspace)?;
    let workspace = rows::load_workspace(id, &documents.workspace)
        .map_err(|error| in_workspace(error, &format!("{id}/Workspace.md")))?
        .value;
    let mut children: BTreeMap<Option<NodeId>, Vec<(Node, &str)>> = BTreeMap::new();
    for (node_id, text) in &documents.nodes {
        let name = format!("nodes/{node_id}/Node.md");
        no_nul(&name, text)?;
        let node = rows::load_node(node_id, text)
            .map_err(|error| in_workspace(error, &format!("{id}/{name}")))?
            .value;
        if node.parent_id.is_none() != node_id.is_root() {
            return Err(bad(&name, "只有 root 没有父节点", "only root has no parent"));
        }
        if !is_legal(&node) {
            return Err(bad(
                &name,
                "此类型的节点不能有该状态",
                "a node of this type cannot have this status",
            ));
        }
        children.entry(node.parent_id.clone()).or_default().push((node, text));
    }
    let mut nodes = Vec::with_capacity(documents.nodes.len());
    let mut next: VecDeque<(Node, &str)> = children.remove(&None).unwrap_or_default().into();
    while let Some((node, text)) = next.pop_front() {
        if let Some(below) = children.remove(&Some(node.id.clone())) {
            if node.kind == NodeType::Execution {
                let name = format!("nodes/{}/Node.md", below[0].0.id);
                return Err(bad(&name, "父节点是执行节点", "its parent is an execution node"));
            }
            next.extend(below);
        }
        nodes.push((node, text));
    }
    if let Some((node, _)) = children.values().next().and_then(|below| below.first()) {
        let name = format!("nodes/{}/Node.md", node.id);
        return Err(bad(
            &name,
            "不在 root 之下：父节点不存在",
            "is not below root: its parent does not exist",
        ));
    }
    match nodes.is_empty() {
        true => Err(bad("nodes/root/Node.md", "不存在", "does not exist")),
        false => Ok(ParsedWorkspace { workspace, nodes }),
    }
}

/// Returns the error with the path of its document.
fn in_workspace(error: Error, path: &str) -> Error {
    match error {
        Error::Corrupt { line, reason, .. } => Error::Corrupt { place: path.to_owned(), line, reason },
        other => other,
    }
}

fn is_legal(node: &Node) -> bool {
    use NodeStatus::*;
    match node.kind {
        NodeType::Planning => matches!(node.status, Pending | Planning | Monitoring | Completed | Cancelled),
        NodeType::Execution => {
            matches!(node.status, Pending | Implementing | Validating | Completed | Failed)
        }
    }
}
