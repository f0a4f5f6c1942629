//! Lists the tree in order, page by page, with limits for depth and length.

use std::collections::BTreeSet;

use serde::Serialize;

use super::search::{TextMatch, TextSearch, contains_all};
use super::*;
use crate::store::NodeRead;

#[derive(Clone, Debug)]
pub struct ListQuery {
    pub under: NodeId,
    /// Levels below `under`; 0 lists that node only.
    pub depth: Option<usize>,
    /// Lists only nodes with these statuses; empty means all.
    pub statuses: Vec<NodeStatus>,
    /// Lists only nodes whose title contains all of these lower-case words. Case is ignored.
    pub words: Vec<String>,
    /// Whether the words may also be in the other texts of a node. A page can then have fewer rows than the limit.
    pub in_texts: bool,
    /// Whether the rows have the conclusions.
    pub with_conclusions: bool,
    pub limit: usize,
    /// The last node of the previous page.
    pub after: Option<NodeId>,
}

impl Default for ListQuery {
    fn default() -> ListQuery {
        ListQuery {
            under: NodeId::root(),
            depth: None,
            statuses: Vec::new(),
            words: Vec::new(),
            in_texts: false,
            with_conclusions: false,
            limit: 50,
            after: None,
        }
    }
}

impl ListQuery {
    /// Splits a search text into lower-case words.
    pub fn split_search_words(typed: &str) -> Vec<String> {
        typed.split_whitespace().map(str::to_lowercase).collect()
    }

    /// Returns whether a node has one of the statuses, and its title all the words.
    fn matches(&self, brief: &NodeBrief) -> bool {
        self.has_status(brief) && (self.words.is_empty() || contains_all(&brief.title, &self.words))
    }

    fn is_filtered(&self) -> bool {
        !self.statuses.is_empty() || !self.words.is_empty()
    }

    pub(super) fn has_status(&self, brief: &NodeBrief) -> bool {
        self.statuses.is_empty() || self.statuses.contains(&brief.status)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct ListRow {
    pub depth: usize,
    #[serde(flatten)]
    pub node: NodeBrief,
    /// Number of children, whether or not they are in the list.
    pub children: u64,
    #[serde(skip)]
    pub is_last: bool,
    /// From the root or the listed node down. Empty in a list without a filter, which has the ancestors as rows.
    #[serde(skip)]
    pub ancestors: Vec<AncestorTitle>,
    /// Where the words were found, if not in the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<TextMatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
}

impl ListRow {
    fn new(depth: usize, node: NodeBrief, children: u64) -> ListRow {
        let (ancestors, found, conclusion) = (Vec::new(), None, None);
        ListRow { depth, node, children, is_last: false, ancestors, found, conclusion }
    }
}

/// A node on the path to a listed one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AncestorTitle {
    pub id: NodeId,
    pub title: String,
}

impl AncestorTitle {
    fn of(brief: &NodeBrief) -> AncestorTitle {
        AncestorTitle { id: brief.id.clone(), title: brief.title.clone() }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePage {
    pub nodes: Vec<ListRow>,
    /// The value of `after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<NodeId>,
}

/// One level of the tree walk: a parent whose children are visited in order.
struct Level {
    parent: NodeBrief,
    after: Option<crate::store::SiblingPosition>,
    ready: std::collections::VecDeque<(NodeBrief, u64)>,
    is_exhausted: bool,
}

impl Level {
    fn new(parent: NodeBrief, after: Option<crate::store::SiblingPosition>) -> Level {
        Level { parent, after, ready: Default::default(), is_exhausted: false }
    }

    fn fill(&mut self, tx: &dyn Tx, page_size: usize) -> Result<()> {
        // One child more than needed, so that the last child can be recognized.
        while self.ready.len() < 2 && !self.is_exhausted {
            let page =
                tx.children_with_counts(&self.parent.id, self.after.as_ref(), page_size.clamp(2, 256))?;
            match page.last() {
                Some((last, _)) => self.after = Some(last.position.clone()),
                None => self.is_exhausted = true,
            }
            self.ready.extend(page);
        }
        Ok(())
    }

    /// Returns the next child, the number of its own children, and whether it is the last child.
    fn next(&mut self, tx: &dyn Tx, page_size: usize) -> Result<Option<(NodeBrief, u64, bool)>> {
        self.fill(tx, page_size)?;
        let next = self.ready.pop_front();
        Ok(next.map(|(brief, children)| (brief, children, self.ready.is_empty())))
    }
}

pub fn list(tx: &dyn Tx, query: &ListQuery) -> Result<NodePage> {
    let top = existing_brief(tx, "parentId", &query.under)?;
    let mut texts = TextSearch::new(query);
    let mut rows: Vec<ListRow> = Vec::new();
    let mut levels = match &query.after {
        None => {
            let found = if query.matches(&top) { None } else { texts.find(tx, &top)? };
            if found.is_some() || query.matches(&top) {
                let row = ListRow::new(0, top.clone(), tx.status_counts(&top.id)?.total());
                rows.push(ListRow { found, is_last: true, ..row });
            }
            vec![Level::new(top, None)]
        }
        Some(after) => levels_after(tx, &query.under, after, query.depth)?,
    };
    let mut visited: BTreeSet<NodeId> = BTreeSet::new();
    let mut last = None;
    // One row more than the limit shows that there is a next page.
    while rows.len() <= query.limit && !texts.is_exhausted() {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { break };
        let in_depth = query.depth.is_none_or(|max| depth <= max);
        let next = if in_depth { level.next(tx, query.limit + 2 - rows.len())? } else { None };
        let Some((brief, children, is_last)) = next else {
            levels.pop();
            continue;
        };
        // A cycle, which manual edits of files can create, must not cause an endless walk.
        if !visited.insert(brief.id.clone()) {
            continue;
        }
        let found = if query.matches(&brief) { None } else { texts.find(tx, &brief)? };
        if found.is_some() || query.matches(&brief) {
            let path = levels.iter().filter(|_| query.is_filtered());
            let ancestors = path.map(|level| AncestorTitle::of(&level.parent)).collect();
            rows.push(ListRow { is_last, ancestors, found, ..ListRow::new(depth, brief.clone(), children) });
        }
        last = Some(brief.id.clone());
        // The type is not checked because that of a damaged node is unknown.
        if children > 0 {
            levels.push(Level::new(brief, None));
        }
    }
    let next_after = match rows.len() > query.limit {
        true => rows.get(query.limit.saturating_sub(1)).map(|row| row.node.id.clone()),
        // The rest of the texts is searched for the next page.
        false => last.filter(|_| texts.is_exhausted()),
    };
    rows.truncate(query.limit);
    if query.with_conclusions {
        add_conclusions(tx, &mut rows)?;
    }
    Ok(NodePage { nodes: rows, next_after })
}

/// Adds their conclusions to the rows of nodes that are done. A damaged file has none.
fn add_conclusions(tx: &dyn Tx, rows: &mut [ListRow]) -> Result<()> {
    let mut done: Vec<&mut ListRow> = rows.iter_mut().filter(|row| row.node.status.is_done()).collect();
    let ids: Vec<NodeId> = done.iter().map(|row| row.node.id.clone()).collect();
    for (row, read) in done.iter_mut().zip(tx.nodes(&ids)?) {
        if let NodeRead::Node(node) = read {
            row.conclusion = node.conclusion;
        }
    }
    Ok(())
}

/// Returns the open levels of a walk that just listed `after`. Each ancestor continues after the child on the path.
fn levels_after(tx: &dyn Tx, under: &NodeId, after: &NodeId, depth: Option<usize>) -> Result<Vec<Level>> {
    let last = existing_brief(tx, "after", after)?;
    let mut chain = vec![last];
    chain.extend(tx.ancestors(after)?);
    let Some(top) = chain.iter().position(|brief| brief.id == *under) else {
        return Err(Error::node_not_found("after", after));
    };
    chain.truncate(top + 1);
    chain.reverse();
    let mut levels: Vec<Level> =
        chain.windows(2).map(|pair| Level::new(pair[0].clone(), Some(pair[1].position.clone()))).collect();
    if depth.is_none_or(|max| levels.len() < max)
        && let Some(last) = chain.last()
    {
        levels.push(Level::new(last.clone(), None));
    }
    Ok(levels)
}

/// Returns the rows of these nodes as in a list. Missing nodes are left out.
pub fn rows(tx: &dyn Tx, ids: &[NodeId]) -> Result<Vec<ListRow>> {
    let mut rows = Vec::new();
    for id in ids {
        let Some(node) = tx.brief(id)? else { continue };
        let ancestors: Vec<AncestorTitle> = tx.ancestors(id)?.iter().rev().map(AncestorTitle::of).collect();
        let row = ListRow::new(ancestors.len(), node, tx.status_counts(id)?.total());
        rows.push(ListRow { ancestors, ..row });
    }
    Ok(rows)
}
