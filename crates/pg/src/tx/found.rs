//! The nodes of a transaction as it found them. Each is read once, together with its ancestors and what these
//! depend on.
//!
//! Only this transaction changes them meanwhile, and it knows what it wrote. So what it found stays valid,
//! and the current state is what it found with its own changes.

use std::collections::HashMap;
use std::rc::Rc;

use tanmi_protocol::person_of_holder;
use tanmi_workspace::error::{Holder, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::store::{NodeBrief, StatusCounts};
use tokio_postgres::Row;

use super::PgTx;
use super::sql::{DOCS, FIND};
use crate::rows::{self, Loaded};

#[derive(Default)]
pub(super) struct FoundNodes {
    /// Whole documents. `None` for a node that does not exist.
    documents: HashMap<NodeId, Option<Rc<Loaded<Node>>>>,
    briefs: HashMap<NodeId, NodeBrief>,
    details: HashMap<NodeId, Details>,
}

/// What else is found of a node that a command names.
struct Details {
    claim: Claim,
    /// The counts of its children and the position of the last one. `None` if they were read after the transaction sent
    /// changes.
    children: Option<(StatusCounts, i64)>,
}

/// The claim on a node: its number and its holder.
#[derive(Clone)]
pub(crate) struct Claim {
    pub fence: i64,
    pub holder: Option<Holder>,
}

impl FoundNodes {
    /// Notes that a node with a new id does not exist. Returns `false` if it was found.
    pub fn expect_missing(&mut self, id: &NodeId) -> bool {
        !self.briefs.contains_key(id) && self.documents.entry(id.clone()).or_insert(None).is_none()
    }

    fn brief(&self, id: &NodeId) -> Option<Option<NodeBrief>> {
        let of_document = |document: &Option<Rc<Loaded<Node>>>| {
            document.as_ref().map(|loaded| NodeBrief::of(&loaded.value))
        };
        let brief = self.briefs.get(id).cloned().map(Some);
        brief.or_else(|| self.documents.get(id).map(of_document))
    }

    /// Keeps nodes that were found by another query.
    pub fn keep_briefs<'a>(&mut self, briefs: impl Iterator<Item = &'a NodeBrief>) {
        for brief in briefs {
            self.briefs.entry(brief.id.clone()).or_insert_with(|| brief.clone());
        }
    }

    /// Returns the parent and the status of a written node before the transaction, if it existed. The document was read
    /// before the node was written, and what was found later may be what the transaction sent. A node that was only
    /// removed may have no document here.
    fn origin(&self, id: &NodeId) -> Option<(Option<&NodeId>, NodeStatus)> {
        match self.documents.get(id) {
            Some(document) => {
                document.as_ref().map(|loaded| (loaded.value.parent_id.as_ref(), loaded.value.status))
            }
            None => self.briefs.get(id).map(|brief| (brief.parent_id.as_ref(), brief.status)),
        }
    }

    /// Keeps a row of [`FIND`], which was read after the transaction sent changes or before.
    fn keep(&mut self, row: &Row, has_sent: bool) -> Result<()> {
        let brief = rows::brief(row)?;
        let id = brief.id.clone();
        if let Some(doc) = row.get::<_, Option<&str>>("doc") {
            // A damaged document is reported when the transaction needs it.
            if let Ok(loaded) = rows::load_node(&id, doc) {
                self.documents.entry(id.clone()).or_insert(Some(Rc::new(loaded)));
            }
            self.details.entry(id.clone()).or_insert_with(|| Details {
                claim: claim(row),
                children: (!has_sent).then(|| children(row)),
            });
        }
        self.briefs.entry(id).or_insert(brief);
        Ok(())
    }
}

fn claim(row: &Row) -> Claim {
    let text = |column: &str| row.get::<_, Option<String>>(column);
    let (person, machine) = (text("person").unwrap_or_default(), text("machine").unwrap_or_default());
    let holder = text("holder").map(|session| match person_of_holder(&session) {
        Some(name) => Holder { person: name.to_owned(), machine, session },
        None => Holder { session, person, machine },
    });
    Claim { fence: row.get("fence"), holder }
}

fn children(row: &Row) -> (StatusCounts, i64) {
    let (statuses, numbers): (Vec<&str>, Vec<i64>) = (row.get("statuses"), row.get("numbers"));
    let count = |(word, n): (&str, i64)| Some((NodeStatus::from_word(word)?, n.unsigned_abs()));
    let counts = StatusCounts::of(statuses.into_iter().zip(numbers).filter_map(count));
    (counts, row.get::<_, Option<i64>>("last_order").unwrap_or(0))
}

impl PgTx<'_> {
    /// Reads nodes that were not found yet, their ancestors and what all of them depend on.
    pub(super) fn find(&self, ids: &[NodeId]) -> Result<()> {
        let is_known = |id: &NodeId| self.found.borrow().brief(id).is_some();
        let missing: Vec<&NodeId> = ids.iter().filter(|id| !is_known(id)).collect();
        self.read_nodes(&missing, false)
    }

    /// Also reads the documents of the nodes, their claims and the counts of their children.
    pub(super) fn find_with_details(&self, ids: &[NodeId]) -> Result<()> {
        let is_known = |id: &NodeId| {
            let found = self.found.borrow();
            found.details.contains_key(id) || found.documents.get(id).is_some_and(Option::is_none)
        };
        let missing: Vec<&NodeId> = ids.iter().filter(|id| !is_known(id)).collect();
        self.read_nodes(&missing, true)
    }

    fn read_nodes(&self, ids: &[&NodeId], with_details: bool) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let wanted: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        let rows = self.select_unchanged(FIND, &[&wanted, &with_details])?;
        let mut found = self.found.borrow_mut();
        rows.iter().try_for_each(|row| found.keep(row, self.has_sent.get()))?;
        for id in ids {
            if !found.briefs.contains_key(id) {
                found.documents.entry((*id).clone()).or_insert(None);
            }
        }
        Ok(())
    }

    /// Reads the documents that are not read yet.
    pub(super) fn load(&self, ids: &[NodeId]) -> Result<()> {
        let missing: Vec<&str> = {
            let found = self.found.borrow();
            ids.iter().filter(|id| !found.documents.contains_key(*id)).map(NodeId::as_str).collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        let rows = self.select_unchanged(DOCS, &[&missing])?;
        let documents = &mut self.found.borrow_mut().documents;
        for row in rows {
            let id = NodeId::parse(row.get("id"))?;
            let node = rows::load_node(&id, row.get("doc"))?;
            documents.insert(id, Some(Rc::new(node)));
        }
        for id in ids {
            documents.entry(id.clone()).or_insert(None);
        }
        Ok(())
    }

    /// Returns a document as the transaction found it.
    pub(super) fn original(&self, id: &NodeId) -> Result<Option<Rc<Loaded<Node>>>> {
        self.load(std::slice::from_ref(id))?;
        Ok(self.found.borrow().documents.get(id).cloned().flatten())
    }

    /// Returns a node as the transaction found it, without its texts.
    pub(super) fn original_brief(&self, id: &NodeId) -> Result<Option<NodeBrief>> {
        self.find(std::slice::from_ref(id))?;
        Ok(self.found.borrow().brief(id).flatten())
    }

    /// Returns the claim on a node as the transaction found it.
    pub fn claim(&self, id: &NodeId) -> Result<Option<Claim>> {
        self.find_with_details(std::slice::from_ref(id))?;
        Ok(self.found.borrow().details.get(id).map(|details| details.claim.clone()))
    }

    /// Returns the position of the last child, if it is known and the transaction did not change the children.
    pub(super) fn known_last_order(&self, parent: &NodeId) -> Option<i64> {
        let found = self.found.borrow();
        let is_changed = self.put_nodes.iter().any(|(id, put)| {
            put.as_ref().is_some_and(|node| node.parent_id.as_ref() == Some(parent))
                || found.origin(id).is_some_and(|(origin, _)| origin == Some(parent))
        });
        let (_, last_order) = found.details.get(parent)?.children.as_ref().filter(|_| !is_changed)?;
        Some(*last_order)
    }

    /// Returns the current counts of the children, if those that the transaction found are known.
    pub(super) fn known_counts(&self, parent: &NodeId) -> Option<StatusCounts> {
        let found = self.found.borrow();
        let status =
            |(of, status): (Option<&NodeId>, NodeStatus)| Some(status).filter(|_| of == Some(parent));
        let left = self.put_nodes.keys().filter_map(|id| found.origin(id).and_then(status));
        let own = self.put_nodes.values().flatten().map(|node| (node.parent_id.as_ref(), node.status));
        let came = own.filter_map(status);
        let (counts, _) = found.details.get(parent)?.children.as_ref()?;
        Some(counts.changed(left, came))
    }
}
