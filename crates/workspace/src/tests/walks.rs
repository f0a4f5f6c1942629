//! Tests of the reads that answer for several nodes at once, on both stores.

use super::*;
use crate::store::NodeRead;

fn ids(briefs: Vec<crate::store::NodeBrief>) -> Vec<NodeId> {
    briefs.into_iter().map(|brief| brief.id).collect()
}

#[test]
fn ancestors_and_subtree_follow_the_tree() {
    on_both_stores(|b| {
        let root = NodeId::root();
        let plan = b.add_planning(&root, "plan");
        let (one, two) = (b.add_planning(&plan, "one"), b.add_execution(&plan, "two"));
        let leaf = b.add_execution(&one, "leaf");
        assert_eq!(ids(b.view(|tx| tx.ancestors(&leaf))), [one.clone(), plan.clone(), root.clone()]);
        assert_eq!(ids(b.view(|tx| tx.ancestors(&root))), []);
        let below = ids(b.view(|tx| tx.subtree(&plan)));
        assert_eq!(below.len(), 3);
        let position = |id: &NodeId| below.iter().position(|known| known == id).unwrap();
        assert!(position(&one) < position(&leaf) && below.contains(&two));
        assert_eq!(ids(b.view(|tx| tx.subtree(&leaf))), []);
    });
}

#[test]
fn children_with_counts_are_paged_like_children() {
    on_both_stores(|b| {
        let root = NodeId::root();
        let (one, two) = (b.add_planning(&root, "one"), b.add_planning(&root, "two"));
        b.add_execution(&one, "a");
        b.add_execution(&one, "b");
        let page = b.view(|tx| tx.children_with_counts(&root, None, 1));
        assert_eq!(page.iter().map(|(brief, n)| (&brief.id, *n)).collect::<Vec<_>>(), [(&one, 2)]);
        let after = page[0].0.position.clone();
        let page = b.view(|tx| tx.children_with_counts(&root, Some(&after), 10));
        assert_eq!(page.iter().map(|(brief, n)| (&brief.id, *n)).collect::<Vec<_>>(), [(&two, 0)]);
    });
}

#[test]
fn nodes_returns_one_result_for_each_id() {
    on_both_stores(|b| {
        let task = b.add_execution(&NodeId::root(), "task");
        let gone = NodeId::parse("node-gone").unwrap();
        let found = b.view(|tx| tx.nodes(&[gone.clone(), task.clone()]));
        assert_eq!(found, [NodeRead::Missing, NodeRead::Node(Box::new(b.node(&task)))]);
    });
}

#[test]
fn append_log_returns_number_of_entries_and_sets_times() {
    on_both_stores(|b| {
        let task = b.add_execution(&NodeId::root(), "task");
        for target in [Target::Workspace, Target::Node(task.clone())] {
            let before = b.view(|tx| read_activity(tx, &target)).log.len();
            let op = b.tick();
            let (entry, total) = b.change(|tx| append_log(tx, &target, "tried", op.now, &op)).unwrap();
            let activity = b.view(|tx| read_activity(tx, &target));
            assert_eq!((total, activity.log.len()), (before + 1, before + 1));
            assert_eq!((activity.log.last(), activity.last_log_at), (Some(&entry), Some(op.now)));
        }
        assert_eq!(b.node(&task).updated_at, b.now.get());
    });
}
