//! Listing the tree: in its order, page by page, no deeper and no longer than asked.

use std::collections::BTreeSet;

use serde::Serialize;

use super::*;

#[derive(Clone, Debug)]
pub struct ListQuery {
    pub under: NodeId,
    /// Levels below `under`; 0 is that node alone.
    pub depth: Option<usize>,
    /// Only these; empty means all.
    pub statuses: Vec<NodeStatus>,
    /// Only those whose title has all of these words, in any case.
    pub words: Vec<String>,
    pub limit: usize,
    /// The last node of the page before.
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
    /// What somebody typed, as words to look for.
    pub fn words_of(typed: &str) -> Vec<String> {
        typed.split_whitespace().map(str::to_lowercase).collect()
    }

    fn wants(&self, brief: &NodeBrief) -> bool {
        let has_status = self.statuses.is_empty() || self.statuses.contains(&brief.status);
        has_status && (self.words.is_empty() || has_all(&brief.title.to_lowercase(), &self.words))
    }
}

fn has_all(title: &str, words: &[String]) -> bool {
    words.iter().all(|word| title.contains(word.as_str()))
}

#[derive(Clone, Debug, Serialize)]
pub struct ListRow {
    pub depth: usize,
    #[serde(flatten)]
    pub node: NodeBrief,
    /// Children it has, shown or not.
    pub children: u64,
    #[serde(skip)]
    pub is_last: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePage {
    pub nodes: Vec<ListRow>,
    /// Give this as `after` for what follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<NodeId>,
}

/// One level of the walk: a parent whose children are taken in order.
struct Level {
    parent: NodeId,
    after: Option<crate::store::SiblingPosition>,
    ready: std::collections::VecDeque<NodeBrief>,
    exhausted: bool,
}

impl Level {
    fn new(parent: NodeId, after: Option<crate::store::SiblingPosition>) -> Level {
        Level { parent, after, ready: Default::default(), exhausted: false }
    }

    fn fill(&mut self, tx: &dyn Tx, want: usize) -> Result<()> {
        // One more than is taken now, so that the last child is known as such.
        while self.ready.len() < 2 && !self.exhausted {
            let page = tx.children(&self.parent, self.after.as_ref(), want.clamp(2, 256))?;
            match page.last() {
                Some(last) => self.after = Some(last.position.clone()),
                None => self.exhausted = true,
            }
            self.ready.extend(page);
        }
        Ok(())
    }

    fn next(&mut self, tx: &dyn Tx, want: usize) -> Result<Option<(NodeBrief, bool)>> {
        self.fill(tx, want)?;
        let next = self.ready.pop_front();
        Ok(next.map(|brief| (brief, self.ready.is_empty())))
    }
}

pub fn list(tx: &dyn Tx, query: &ListQuery) -> Result<NodePage> {
    let top = existing_brief(tx, "parentId", &query.under)?;
    let wanted = |brief: &NodeBrief| query.wants(brief);
    let mut rows: Vec<ListRow> = Vec::new();
    let mut levels = match &query.after {
        None => {
            if wanted(&top) {
                let children = tx.status_counts(&top.id)?.total();
                rows.push(ListRow { depth: 0, node: top.clone(), children, is_last: true });
            }
            vec![Level::new(top.id.clone(), None)]
        }
        Some(after) => levels_behind(tx, &query.under, after, query.depth)?,
    };
    let mut visited: BTreeSet<NodeId> = BTreeSet::new();
    // One more than asked tells whether there is a next page.
    while rows.len() <= query.limit {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { break };
        let in_depth = query.depth.is_none_or(|max| depth <= max);
        let next = if in_depth { level.next(tx, query.limit + 2 - rows.len())? } else { None };
        let Some((brief, is_last)) = next else {
            levels.pop();
            continue;
        };
        // A ring edited into the files must not be walked forever.
        if !visited.insert(brief.id.clone()) {
            continue;
        }
        let children = tx.status_counts(&brief.id)?.total();
        if wanted(&brief) {
            rows.push(ListRow { depth, node: brief.clone(), children, is_last });
        }
        // By what is there and not by its type: that of a damaged node is not known.
        if children > 0 {
            levels.push(Level::new(brief.id, None));
        }
    }
    let more = rows.len() > query.limit;
    rows.truncate(query.limit);
    let next_after = rows.last().filter(|_| more).map(|row| row.node.id.clone());
    Ok(NodePage { nodes: rows, next_after })
}

/// The open levels of a walk that has just shown `after`: each ancestor continues behind the child it was in.
fn levels_behind(tx: &dyn Tx, under: &NodeId, after: &NodeId, depth: Option<usize>) -> Result<Vec<Level>> {
    let last = existing_brief(tx, "after", after)?;
    let mut chain = vec![last];
    chain.extend(ancestors(tx, after)?);
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
