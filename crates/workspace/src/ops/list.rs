//! Lists the tree in order, page by page, with limits for depth and length.

use std::collections::BTreeSet;

use serde::Serialize;

use super::*;

#[derive(Clone, Debug)]
pub struct ListQuery {
    pub under: NodeId,
    /// Levels below `under`; 0 lists that node only.
    pub depth: Option<usize>,
    /// Lists only nodes with these statuses; empty means all.
    pub statuses: Vec<NodeStatus>,
    /// Lists only nodes whose title contains all of these lower-case words. Case is ignored.
    pub words: Vec<String>,
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

    fn matches(&self, brief: &NodeBrief) -> bool {
        let has_status = self.statuses.is_empty() || self.statuses.contains(&brief.status);
        has_status && (self.words.is_empty() || contains_all(&brief.title.to_lowercase(), &self.words))
    }
}

fn contains_all(title: &str, words: &[String]) -> bool {
    words.iter().all(|word| title.contains(word.as_str()))
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
    parent: NodeId,
    after: Option<crate::store::SiblingPosition>,
    ready: std::collections::VecDeque<(NodeBrief, u64)>,
    is_exhausted: bool,
}

impl Level {
    fn new(parent: NodeId, after: Option<crate::store::SiblingPosition>) -> Level {
        Level { parent, after, ready: Default::default(), is_exhausted: false }
    }

    fn fill(&mut self, tx: &dyn Tx, page_size: usize) -> Result<()> {
        // One child more than needed, so that the last child can be recognized.
        while self.ready.len() < 2 && !self.is_exhausted {
            let page = tx.children_with_counts(&self.parent, self.after.as_ref(), page_size.clamp(2, 256))?;
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
    let is_match = |brief: &NodeBrief| query.matches(brief);
    let mut rows: Vec<ListRow> = Vec::new();
    let mut levels = match &query.after {
        None => {
            if is_match(&top) {
                let children = tx.status_counts(&top.id)?.total();
                rows.push(ListRow { depth: 0, node: top.clone(), children, is_last: true });
            }
            vec![Level::new(top.id.clone(), None)]
        }
        Some(after) => levels_after(tx, &query.under, after, query.depth)?,
    };
    let mut visited: BTreeSet<NodeId> = BTreeSet::new();
    // One row more than the limit shows that there is a next page.
    while rows.len() <= query.limit {
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
        if is_match(&brief) {
            rows.push(ListRow { depth, node: brief.clone(), children, is_last });
        }
        // The type is not checked because that of a damaged node is unknown.
        if children > 0 {
            levels.push(Level::new(brief.id, None));
        }
    }
    let has_more = rows.len() > query.limit;
    rows.truncate(query.limit);
    let next_after = rows.last().filter(|_| has_more).map(|row| row.node.id.clone());
    Ok(NodePage { nodes: rows, next_after })
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
        chain.windows(2).map(|pair| Level::new(pair[0].id.clone(), Some(pair[1].position.clone()))).collect();
    if depth.is_none_or(|max| levels.len() < max)
        && let Some(last) = chain.last()
    {
        levels.push(Level::new(last.id.clone(), None));
    }
    Ok(levels)
}

/// Returns the rows of these nodes as in a list. Missing nodes are left out.
pub fn rows(tx: &dyn Tx, ids: &[NodeId]) -> Result<Vec<ListRow>> {
    let mut rows = Vec::new();
    for id in ids {
        let Some(node) = tx.brief(id)? else { continue };
        let (depth, children) = (tx.ancestors(id)?.len(), tx.status_counts(id)?.total());
        rows.push(ListRow { depth, node, children, is_last: false });
    }
    Ok(rows)
}
