//! The same random stories on PostgreSQL and in memory.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tanmi_pg::PgStore;
use tanmi_workspace::store::InMemoryStore;
use tanmi_workspace::stories::{Operation, Runner, operation};

use crate::cluster::Cluster;

#[test]
fn random_stories_postgres_and_memory_agree() {
    let Some(cluster) = Cluster::start() else { return };
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 48, max_shrink_iters: 200, ..Config::default() });
    let stories = prop::collection::vec(operation(), 1..40);
    let checked = runner.run(&stories, |operations| {
        number.set(number.get() + 1);
        compare(cluster.store(&format!("story {}", number.get())), &operations)
    });
    checked.unwrap();
}

fn compare(store: PgStore, operations: &[Operation]) -> Result<(), TestCaseError> {
    let in_memory = InMemoryStore::new();
    let (mut memory, mut postgres) = (Runner::new(in_memory.clone()), Runner::new(store.clone()));
    for operation in operations {
        prop_assert_eq!(memory.run(operation), postgres.run(operation), "{:?}", operation);
    }
    prop_assert_eq!(memory.state(), postgres.state());
    prop_assert_eq!(memory.snapshots(&in_memory), postgres.snapshots(&store));
    Ok(())
}
