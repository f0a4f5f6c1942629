//! Which node waits for which: dependencies together with the tree.
//!
//! A node starts after its dependencies have ended and after its parent could start. It ends after it started and after
//! its children ended. A dependency that would make a node wait for itself can never be satisfied.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The start or the end of the work on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment<K> {
    Start(K),
    End(K),
}

impl<K: Copy> Moment<K> {
    fn node(self) -> K {
        match self {
            Moment::Start(node) | Moment::End(node) => node,
        }
    }
}

/// The nodes of a tree with their parents and dependencies. Nodes that no dependency concerns can be left out, as long
/// as the ancestors of every node are in it.
#[derive(Clone, Debug)]
pub struct WaitGraph<K> {
    parents: BTreeMap<K, K>,
    children: BTreeMap<K, Vec<K>>,
    depends_on: BTreeMap<K, Vec<K>>,
}

impl<K: Clone + Ord> WaitGraph<K> {
    pub fn new() -> WaitGraph<K> {
        WaitGraph { parents: BTreeMap::new(), children: BTreeMap::new(), depends_on: BTreeMap::new() }
    }

    pub fn add_child(&mut self, parent: K, child: K) {
        self.children.entry(parent.clone()).or_default().push(child.clone());
        self.parents.insert(child, parent);
    }

    pub fn add_dependency(&mut self, node: K, on: K) {
        self.depends_on.entry(node).or_default().push(on);
    }

    /// Returns whether a node is the other one, or above or below it.
    pub fn is_related(&self, node: &K, other: &K) -> bool {
        self.is_at_or_above(node, other) || self.is_at_or_above(other, node)
    }

    fn is_at_or_above(&self, upper: &K, lower: &K) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = Some(lower);
        while let Some(node) = next.filter(|node| seen.insert(*node)) {
            if node == upper {
                return true;
            }
            next = self.parents.get(node);
        }
        false
    }

    /// Returns the nodes that a dependency makes wait for each other, from `node` back to `node`, if it does.
    pub fn find_cycle(&self, node: &K, on: &K) -> Option<Vec<K>> {
        let path = self.find_path(Moment::End(on), Moment::Start(node))?;
        Some(std::iter::once(node.clone()).chain(path).collect())
    }

    /// Returns whether any nodes wait for each other. One look at all nodes, where [`WaitGraph::find_cycle`]
    /// is one for each dependency.
    pub fn has_cycle(&self) -> bool {
        !self.find_blocked().is_empty()
    }

    /// Returns a cycle for each group of nodes that wait for each other because of a dependency, from a node
    /// back to itself.
    pub fn find_cycles(&self) -> Vec<Vec<K>> {
        let blocked = self.find_blocked();
        let mut cycles: Vec<Vec<K>> = Vec::new();
        let mut known = BTreeSet::new();
        for (node, dependencies) in &self.depends_on {
            for on in dependencies {
                let is_candidate = !known.contains(node)
                    && blocked.contains(&Moment::Start(node))
                    && blocked.contains(&Moment::End(on));
                if let Some(cycle) = is_candidate.then(|| self.find_cycle(node, on)).flatten() {
                    known.extend(cycle.iter().cloned());
                    cycles.push(cycle);
                }
            }
        }
        cycles
    }

    /// Returns the moments that never come, because they wait for themselves or for such a moment.
    fn find_blocked(&self) -> BTreeSet<Moment<&K>> {
        let nodes = self.parents.iter().flat_map(|(child, parent)| [child, parent]);
        let dependencies = self.depends_on.iter().flat_map(|(node, on)| std::iter::once(node).chain(on));
        let nodes: BTreeSet<&K> = nodes.chain(dependencies).collect();
        let moments = nodes.into_iter().flat_map(|node| [Moment::Start(node), Moment::End(node)]);
        let mut waits: BTreeMap<Moment<&K>, usize> = BTreeMap::new();
        let mut waiting: BTreeMap<Moment<&K>, Vec<Moment<&K>>> = BTreeMap::new();
        for moment in moments {
            let targets = self.waits_for(moment);
            waits.insert(moment, targets.len());
            targets.into_iter().for_each(|target| waiting.entry(target).or_default().push(moment));
        }
        let mut open: Vec<Moment<&K>> = waits.iter().filter(|(_, n)| **n == 0).map(|(m, _)| *m).collect();
        while let Some(moment) = open.pop() {
            waits.remove(&moment);
            for next in waiting.get(&moment).into_iter().flatten() {
                if let Some(count) = waits.get_mut(next) {
                    *count -= 1;
                    if *count == 0 {
                        open.push(*next);
                    }
                }
            }
        }
        waits.into_keys().collect()
    }

    /// Returns the nodes that wait for each other because a node is below its parent, from the node back to itself.
    pub fn find_cycle_through_parent(&self, node: &K) -> Option<Vec<K>> {
        let parent = self.parents.get(node)?;
        self.find_path(Moment::Start(parent), Moment::Start(node))
            .map(|path| std::iter::once(node.clone()).chain(path).collect())
            .or_else(|| {
                let path = self.find_path(Moment::End(node), Moment::End(parent))?;
                Some(path.into_iter().chain([node.clone()]).collect())
            })
    }

    /// Returns the nodes on the shortest way from a moment to one that it waits for.
    fn find_path(&self, from: Moment<&K>, to: Moment<&K>) -> Option<Vec<K>> {
        let mut came_from: BTreeMap<Moment<&K>, Moment<&K>> = BTreeMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(moment) = open.pop_front() {
            if moment == to {
                let mut path = vec![moment.node()];
                let mut last = moment;
                while let Some(before) = came_from.get(&last).filter(|_| last != from) {
                    last = *before;
                    if path.last() != Some(&last.node()) {
                        path.push(last.node());
                    }
                }
                return Some(path.into_iter().rev().cloned().collect());
            }
            for next in self.waits_for(moment) {
                if next != from && !came_from.contains_key(&next) {
                    came_from.insert(next, moment);
                    open.push_back(next);
                }
            }
        }
        None
    }

    fn waits_for<'a>(&'a self, moment: Moment<&'a K>) -> Vec<Moment<&'a K>> {
        match moment {
            Moment::Start(node) => {
                let dependencies = self.depends_on.get(node).into_iter().flatten().map(Moment::End);
                dependencies.chain(self.parents.get(node).map(Moment::Start)).collect()
            }
            Moment::End(node) => {
                let children = self.children.get(node).into_iter().flatten().map(Moment::End);
                std::iter::once(Moment::Start(node)).chain(children).collect()
            }
        }
    }
}

impl<K: Clone + Ord> Default for WaitGraph<K> {
    fn default() -> WaitGraph<K> {
        WaitGraph::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row: the tree as `child<parent`, the dependencies as `node>on`, the new dependency, and the cycle.
    #[test]
    fn find_cycle_returns_nodes_that_wait_for_each_other() {
        for (tree, dependencies, new, cycle) in [
            ("", "", "a>b", ""),
            ("", "", "a>a", "a a"),
            ("", "b>a", "a>b", "a b a"),
            ("", "b>c c>a", "a>b", "a b c a"),
            ("", "a>b b>c", "a>c", ""),
            ("a<p", "", "a>p", "a p a"),
            ("a<p", "", "p>a", "p a p"),
            // The parent of `b` waits for `a`, so `b` does.
            ("b<p", "p>a", "a>b", "a b p a"),
            // `p` ends only after `b`, which waits for `a`.
            ("b<p", "b>a", "a>p", "a p b a"),
            ("a<p b<q", "p>q", "a>b", ""),
            ("a<p b<q", "q>a", "p>b", "p b q a p"),
        ] {
            let mut graph = WaitGraph::new();
            for pair in tree.split_whitespace() {
                let (child, parent) = pair.split_once('<').unwrap();
                graph.add_child(parent, child);
            }
            for pair in dependencies.split_whitespace().chain([new]) {
                let (node, on) = pair.split_once('>').unwrap();
                graph.add_dependency(node, on);
            }
            let (node, on) = new.split_once('>').unwrap();
            let found = graph.find_cycle(&node, &on).map(|path| path.join(" ")).unwrap_or_default();
            assert_eq!(found, cycle, "{tree} | {dependencies} | {new}");
        }
    }

    #[test]
    fn find_cycles_returns_each_cycle_once() {
        let mut graph = WaitGraph::new();
        graph.add_child("p", "c");
        for (node, on) in [("a", "b"), ("b", "a"), ("behind", "a"), ("p", "d"), ("d", "c"), ("x", "y")] {
            graph.add_dependency(node, on);
        }
        assert!(graph.has_cycle());
        let cycles: Vec<String> = graph.find_cycles().iter().map(|cycle| cycle.join(" ")).collect();
        assert_eq!(cycles, ["a b a", "d c p d"]);
    }

    #[test]
    fn find_cycle_through_parent_after_move_is_found_in_both_directions() {
        let graph = |dependency: (&'static str, &'static str)| {
            let mut graph = WaitGraph::new();
            graph.add_child("p", "moved");
            graph.add_child("moved", "below");
            graph.add_dependency(dependency.0, dependency.1);
            graph.find_cycle_through_parent(&"moved").map(|path| path.join(" "))
        };
        assert_eq!(graph(("p", "below")).as_deref(), Some("moved p below moved"));
        assert_eq!(graph(("below", "p")).as_deref(), Some("moved below p moved"));
        assert_eq!(graph(("below", "other")), None);
    }
}
