//! Trouble with the database, provoked on a cluster: each kind has its code, and texts that say what to do.

use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tanmi_base::Lang;
use tanmi_pg::{Address, DatabaseError, DatabaseTrouble, PgStore, Pool, VERSION, migrate};
use tanmi_workspace::command::{Command, NoLiveSessions};
use tanmi_workspace::model::*;
use tanmi_workspace::store::Workspaces;
use tanmi_workspace::stories::{NOW, new_node, new_workspace, op};

use crate::cluster::{Cluster, hand_over};

fn health(address: Address) -> Result<(), DatabaseTrouble> {
    Pool::new(address).check_health().map_err(trouble)
}

fn trouble(error: DatabaseError) -> DatabaseTrouble {
    match error {
        DatabaseError::Trouble(trouble) => trouble,
        other => panic!("{other}"),
    }
}

/// Creates a node, or returns what is wrong with the database.
fn write(store: &PgStore, id: &WorkspaceId) -> Result<(), DatabaseTrouble> {
    let command = Command::CreateNode { node: new_node(&NodeId::root(), NodeType::Execution, "task") };
    let written = store.run(id, &command, &op(NOW), &NoLiveSessions);
    written.map(|_| ()).map_err(|error| DatabaseTrouble::of(&error).unwrap_or_else(|| panic!("{error:?}")))
}

fn is_over(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let limit = Instant::now() + limit;
    while !condition() {
        if Instant::now() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn texts_say_what_to_do_in_both_languages() {
    let reason = || String::from("reason");
    let all = [
        DatabaseTrouble::Away,
        DatabaseTrouble::LoginRefused { reason: reason() },
        DatabaseTrouble::NoTls,
        DatabaseTrouble::Tls { reason: reason() },
        DatabaseTrouble::Slow,
        DatabaseTrouble::PoolBusy,
        DatabaseTrouble::TooManyConnections,
        DatabaseTrouble::ReadOnly,
        DatabaseTrouble::DiskFull,
        DatabaseTrouble::MissingSchema,
        DatabaseTrouble::OlderSchema { found: 1, known: 2 },
        DatabaseTrouble::NewerSchema { found: 3, known: 2 },
        DatabaseTrouble::UnsafeRole,
        DatabaseTrouble::NotAllowed { reason: reason() },
        DatabaseTrouble::Other { reason: reason() },
    ];
    for trouble in all {
        let (zh, en) = (trouble.message(Lang::Zh), trouble.message(Lang::En));
        assert!(zh.chars().any(tanmi_base::lang::is_han), "{zh}");
        assert!(en.is_ascii() && en.starts_with(char::is_lowercase) && !en.ends_with('.'), "{en}");
        assert!(trouble.hint(Lang::Zh).contains(char::is_alphabetic), "{trouble:?}");
        assert_eq!(trouble.to_string(), format!("{en}; {}", trouble.hint(Lang::En)));
        assert!(trouble.code().starts_with("DATABASE"), "{trouble:?}");
        // The error of a store has the same texts, except for a wait, which it reports as busy.
        let error = tanmi_workspace::Error::from(trouble.clone());
        let busy = [DatabaseTrouble::Slow, DatabaseTrouble::PoolBusy].contains(&trouble);
        assert_eq!(error.code(), if busy { "BUSY" } else { "IO" });
        assert!(busy || error.message(Lang::Zh).contains(&zh), "{error:?}");
        assert!(busy || DatabaseTrouble::of(&error) == Some(trouble), "{error:?}");
    }
}

#[test]
fn schema_missing_older_or_newer_is_named() {
    let Some(cluster) = Cluster::start() else { return };
    assert_eq!(health(cluster.address()), Err(DatabaseTrouble::MissingSchema), "no role and no tables");
    cluster.sql("CREATE ROLE tanmi_app NOLOGIN; GRANT tanmi_app TO tanmi");
    assert_eq!(health(cluster.address()), Err(DatabaseTrouble::MissingSchema), "no tables");
    migrate(&cluster.address()).unwrap();
    assert_eq!(health(cluster.address()), Ok(()));
    cluster.sql("UPDATE schema_version SET version = version + 1");
    let newer = DatabaseTrouble::NewerSchema { found: VERSION + 1, known: VERSION };
    assert_eq!(health(cluster.address()), Ok(()), "a newer schema that still knows this program");
    assert_eq!(trouble(migrate(&cluster.address()).unwrap_err()), newer);
    cluster.sql(&format!("UPDATE schema_version SET oldest = {}", VERSION + 1));
    assert_eq!(health(cluster.address()), Err(newer));
    cluster.sql("UPDATE schema_version SET version = 1");
    assert_eq!(health(cluster.address()), Err(DatabaseTrouble::OlderSchema { found: 1, known: VERSION }));
}

#[test]
fn role_that_bypasses_row_security_is_refused() {
    let Some(cluster) = Cluster::start() else { return };
    migrate(&cluster.address()).unwrap();
    for (attribute, back) in [("BYPASSRLS", "NOBYPASSRLS"), ("SUPERUSER", "NOSUPERUSER")] {
        cluster.sql(&format!("ALTER ROLE tanmi_app {attribute}"));
        assert_eq!(health(cluster.address()), Err(DatabaseTrouble::UnsafeRole), "{attribute}");
        cluster.sql(&format!("ALTER ROLE tanmi_app {back}"));
        assert_eq!(health(cluster.address()), Ok(()));
    }
    cluster.sql("CREATE ROLE eve LOGIN");
    assert!(matches!(health(cluster.address_of("eve")), Err(DatabaseTrouble::NotAllowed { .. })));
}

#[test]
fn rows_of_a_table_are_hidden_without_a_project() {
    let Some(cluster) = Cluster::start() else { return };
    migrate(&cluster.address()).unwrap();
    // Every table with rows of projects, except tokens, which are read before a project is chosen.
    let unprotected = "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind = 'r' AND a.attname = 'project' AND NOT c.relrowsecurity AND c.relname <> 'token'";
    let output = cluster.psql(unprotected).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "");
}

#[test]
fn login_refused_names_the_reason() {
    let prepare = |data: &std::path::Path| {
        let rules = "local all tanmi trust\nlocal all bob scram-sha-256\n";
        tanmi_base::fs::write_private(&data.join("pg_hba.conf"), rules.as_bytes()).unwrap();
        hand_over(&data.join("pg_hba.conf"), 0o600);
    };
    let Some(cluster) = Cluster::start_with(&[], prepare) else { return };
    migrate(&cluster.address()).unwrap();
    cluster.sql("CREATE ROLE bob LOGIN PASSWORD 'right'; GRANT tanmi_app TO bob");
    let with = |extra: &str| {
        let folder = cluster.data().parent().unwrap().display().to_string();
        health(Address::parse(&format!("host={folder} user=bob dbname=postgres {extra}")).unwrap())
    };
    assert_eq!(with("password=right"), Ok(()));
    for extra in ["password=wrong", "", "password=right dbname=nowhere", "user=eve"] {
        let refused = with(extra).unwrap_err();
        assert!(matches!(refused, DatabaseTrouble::LoginRefused { .. }), "{extra}: {refused:?}");
        assert!(!refused.is_retryable() && !refused.to_string().contains("wrong"), "{refused}");
    }
}

#[test]
fn database_that_is_read_only_or_full_is_named_and_recovers() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("app");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    cluster.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    cluster.sql("SELECT pg_reload_conf()");
    assert!(is_over(Duration::from_secs(10), || write(&store, &id) == Err(DatabaseTrouble::ReadOnly)));
    let mut reset = cluster.psql("ALTER SYSTEM RESET default_transaction_read_only");
    assert!(reset.env("PGOPTIONS", "-c default_transaction_read_only=off").status().unwrap().success());
    cluster.sql("SELECT pg_reload_conf()");
    assert!(is_over(Duration::from_secs(10), || write(&store, &id) == Ok(())));
    // A disk cannot be filled here, so a trigger fails as a full one does.
    cluster.sql(
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER fill BEFORE INSERT ON change EXECUTE FUNCTION fill()",
    );
    assert_eq!(write(&store, &id), Err(DatabaseTrouble::DiskFull));
    cluster.sql("DROP TRIGGER fill ON change");
    assert_eq!(write(&store, &id), Ok(()));
}

#[test]
fn wait_for_a_lock_ends_as_slow() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("app");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let mut holder = cluster
        .psql("BEGIN; SELECT 1 FROM stream FOR UPDATE; SELECT pg_sleep(60)")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(is_over(Duration::from_secs(20), || write(&store, &id) == Err(DatabaseTrouble::Slow)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND pid <> pg_backend_pid()");
    assert_eq!(write(&store, &id), Ok(()));
}

#[test]
fn connection_limit_is_named() {
    let Some(cluster) = Cluster::start() else { return };
    migrate(&cluster.address()).unwrap();
    cluster.sql("CREATE ROLE few LOGIN CONNECTION LIMIT 1; GRANT tanmi_app TO few");
    let (first, second) = (Pool::new(cluster.address_of("few")), Pool::new(cluster.address_of("few")));
    first.check_health().unwrap();
    let refused = trouble(second.check_health().unwrap_err());
    assert_eq!(refused, DatabaseTrouble::TooManyConnections);
    assert!(refused.is_retryable());
    drop(first);
    assert!(is_over(Duration::from_secs(10), || second.check_health().is_ok()));
}

#[test]
fn database_killed_is_away_and_the_pool_reconnects() {
    let Some(mut cluster) = Cluster::start() else { return };
    let pool = Arc::new(Pool::new(cluster.address()));
    let store = cluster.store("app");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    // Several idle connections.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| pool.check_health().unwrap());
        }
    });
    write(&store, &id).unwrap();
    cluster.kill();
    for _ in 0..3 {
        let away = trouble(pool.check_health().unwrap_err());
        assert!(away == DatabaseTrouble::Away && away.is_retryable(), "{away:?}");
    }
    cluster.restart();
    // The idle connections of both pools are dead; each pool finds that out without a further error.
    assert_eq!(pool.check_health().map_err(trouble), Ok(()));
    assert_eq!(write(&store, &id), Ok(()));
}

#[test]
fn database_that_stands_still_is_away_until_it_goes_on() {
    let Some(mut cluster) = Cluster::start() else { return };
    let store = cluster.store("app");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let (sender, receiver) = std::sync::mpsc::channel();
    cluster.freeze();
    // A call on an open connection, and one that has to connect. Both end by themselves.
    let (address, used, workspace) = (cluster.address(), store.clone(), id.clone());
    let second = sender.clone();
    thread::spawn(move || sender.send(write(&used, &workspace)));
    thread::spawn(move || second.send(health(address)));
    for _ in 0..2 {
        let answer = receiver.recv_timeout(Duration::from_secs(60));
        assert_eq!(answer, Ok(Err(DatabaseTrouble::Away)));
    }
    cluster.thaw();
    assert!(is_over(Duration::from_secs(20), || write(&store, &id) == Ok(())));
}

#[test]
fn writers_of_a_hot_workspace_leave_connections_to_others() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("app");
    let hot = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let calm = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let lock = format!("BEGIN; SELECT 1 FROM stream WHERE id = '{hot}' FOR UPDATE; SELECT pg_sleep(60)");
    let mut holder = cluster.psql(&lock).stdout(Stdio::null()).spawn().unwrap();
    let count = |condition: &str| {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE {condition}");
        let output = cluster.psql(&sql).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse::<usize>().unwrap()
    };
    let waiting = || count("wait_event_type = 'Lock' AND application_name = 'tanmi'");
    assert!(is_over(Duration::from_secs(10), || count("wait_event = 'PgSleep'") == 1));
    thread::scope(|scope| {
        for _ in 0..24 {
            let (store, hot) = (&store, &hot);
            scope.spawn(move || assert_eq!(write(store, hot), Err(DatabaseTrouble::Slow)));
        }
        let mut most = 0;
        assert!(is_over(Duration::from_secs(10), || {
            most = most.max(waiting());
            most >= 4
        }));
        for _ in 0..5 {
            assert_eq!(write(&store, &calm), Ok(()));
            most = most.max(waiting());
        }
        assert_eq!(most, 4);
    });
    holder.kill().unwrap();
    holder.wait().unwrap();
}
