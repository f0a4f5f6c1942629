//! Answers of the database that are lost: a write that it carried out is not made a second time.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;
use tanmi_pg::*;
use tanmi_workspace::stories::NOW;
use tempfile::TempDir;

use crate::cluster::Cluster;

const SOCKET: &str = ".s.PGSQL.5432";

/// Passes on what a pool and the database send. On request it ends a connection in the place of one answer.
struct Proxy {
    dir: TempDir,
    /// The statement whose answer is lost next.
    lost: Arc<Mutex<Option<&'static str>>>,
}

impl Proxy {
    fn start(cluster: &Cluster) -> Proxy {
        let proxy = Proxy { dir: TempDir::new().unwrap(), lost: Arc::default() };
        let listener = UnixListener::bind(proxy.dir.path().join(SOCKET)).unwrap();
        let (target, lost) = (cluster.data().parent().unwrap().join(SOCKET), Arc::clone(&proxy.lost));
        thread::spawn(move || {
            for client in listener.incoming() {
                pass_on(client.unwrap(), UnixStream::connect(&target).unwrap(), Arc::clone(&lost));
            }
        });
        proxy
    }

    fn pool(&self) -> Pool {
        let address = format!("host={} user=tanmi dbname=postgres", self.dir.path().display());
        Pool::new(Address::parse(&address).unwrap())
    }

    /// Loses the answer to the next statement that contains this text.
    fn lose_answer_to(&self, text: &'static str) {
        *self.lost.lock().unwrap() = Some(text);
    }
}

fn pass_on(client: UnixStream, server: UnixStream, lost: Arc<Mutex<Option<&'static str>>>) {
    let is_lost = Arc::new(AtomicBool::new(false));
    let (ends, ending) = ((client.try_clone().unwrap(), server.try_clone().unwrap()), Arc::clone(&is_lost));
    thread::spawn(move || {
        let mut is_prepared = false;
        copy(client, server, |message| {
            // A statement with parameters is sent in one message and runs with the next one.
            ending.store(is_prepared, Ordering::SeqCst);
            is_prepared = false;
            let mut lost = lost.lock().unwrap();
            if lost.is_some_and(|text| String::from_utf8_lossy(message).contains(text)) {
                *lost = None;
                is_prepared = message[0] == b'P';
                ending.store(!is_prepared, Ordering::SeqCst);
            }
            true
        });
    });
    thread::spawn(move || copy(ends.1, ends.0, |_| !is_lost.load(Ordering::SeqCst)));
}

/// Copies messages until one end closes, or one of them is not to be passed on.
fn copy(mut from: UnixStream, mut to: UnixStream, mut is_passed: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if !is_passed(&buffer[..len]) || to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// A project with an admin, and a pool with an idle connection whose answers can be lost.
struct Team {
    cluster: Cluster,
    project: String,
    proxy: Proxy,
    pool: Pool,
    token: String,
}

impl Team {
    fn start() -> Option<Team> {
        let cluster = Cluster::start()?;
        migrate(&cluster.address()).unwrap();
        let project = create_project(&cluster.address(), "team", "app", NOW).unwrap();
        let mut owner = People::open(&cluster.address(), &project).unwrap();
        owner.set_member("ada", Role::Admin).unwrap();
        let token = owner.issue_token(&new_token()).unwrap().token;
        let proxy = Proxy::start(&cluster);
        let pool = proxy.pool();
        pool.check_health().unwrap();
        Some(Team { cluster, project, proxy, pool, token })
    }
}

fn new_token() -> NewToken<'static> {
    NewToken { person: "ada", name: "laptop", role: Role::Admin, lifetime: None, is_limited: true }
}

fn is_away(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Trouble(DatabaseTrouble::Away))
}

#[test]
fn token_created_with_lost_answer_is_created_once() {
    let Some(team) = Team::start() else { return };
    let Access::Granted(caller) = team.pool.authenticate(Some("app"), &team.token).unwrap() else { panic!() };
    let admin = Administrator::new(&caller, &team.token, None);
    team.proxy.lose_answer_to("COMMIT");
    let issued = team.pool.administer(&team.project, &admin, |people| people.issue_token(&new_token()));
    let count = team.cluster.sql("SELECT count(*) FROM token");
    assert_eq!(count.trim(), "2", "the token of the admin, and the new one: {issued:?}");
    assert!(matches!(issued, Err(AdminError::Database(error)) if is_away(&error)));
    assert_eq!(team.cluster.sql("SELECT count(*) FROM audit WHERE what = 'token_created'").trim(), "2");
}

#[test]
fn ticket_redeemed_with_lost_answer_is_an_error_of_the_database() {
    let Some(team) = Team::start() else { return };
    let (ticket, _) = team.pool.create_ticket(&team.project, &team.token).unwrap();
    team.proxy.lose_answer_to("DELETE FROM login USING now WHERE id");
    let redeemed = team.pool.redeem_ticket(&ticket);
    assert!(matches!(&redeemed, Err(error) if is_away(error)), "{redeemed:?}");
    assert_eq!(team.pool.redeem_ticket(&ticket).unwrap(), None, "redeemed already");
}

#[test]
fn audit_entry_with_lost_answer_is_recorded_once() {
    let Some(team) = Team::start() else { return };
    team.proxy.lose_answer_to("INSERT INTO audit");
    let (project, what) = (Some(team.project.as_str()), AuditKind::Logout);
    let event = AuditEvent { project, person: None, ip: None, what, detail: json!({}) };
    let recorded = team.pool.record_audit(&event);
    assert_eq!(team.cluster.sql("SELECT count(*) FROM audit WHERE what = 'logout'").trim(), "1");
    assert!(recorded.is_err_and(|error| is_away(&error)));
}
