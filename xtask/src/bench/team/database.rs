//! The database below the servers: its own speed, and what the servers send to it.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tanmi_cluster::Cluster;

/// The name of the socket of PostgreSQL in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// Returns the time of a committed update of one row on one connection, as `pgbench` measures it.
pub fn update_time(cluster: &Cluster, runs: usize) -> Duration {
    cluster
        .sql("CREATE TABLE bench (id integer PRIMARY KEY, n integer NOT NULL); INSERT INTO bench VALUES (1, 0)")
        .expect("create a table");
    let mut script = tempfile::NamedTempFile::new().expect("create a temporary file");
    writeln!(script, "UPDATE bench SET n = n + 1 WHERE id = 1;").expect("write the script");
    let mut pgbench = cluster.program("pgbench");
    pgbench.args(["-n", "-M", "prepared", "-c", "1", "-t", &runs.to_string(), "-f"]).arg(script.path());
    let output = pgbench.output().expect("run pgbench");
    let text = String::from_utf8_lossy(&output.stdout);
    let latency = text.lines().find_map(|line| line.strip_prefix("latency average = "));
    let ms = latency.and_then(|latency| latency.split(' ').next()?.parse::<f64>().ok());
    Duration::from_secs_f64(ms.unwrap_or_else(|| panic!("pgbench printed no latency: {text}")) / 1000.0)
}

/// What was sent so far. A batch of statements without parameters counts as one statement.
#[derive(Clone, Copy)]
pub struct Sent {
    pub statements: u64,
    pub round_trips: u64,
}

/// A socket in front of the one of a cluster that counts messages.
pub struct Counter {
    dir: tempfile::TempDir,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    statements: AtomicU64,
    round_trips: AtomicU64,
}

impl Counter {
    /// Starts to count. Runs until the process ends.
    pub fn start(cluster: &Cluster) -> Counter {
        let dir = tempfile::tempdir().expect("create a temporary folder");
        let listener = UnixListener::bind(dir.path().join(SOCKET)).expect("create the socket");
        let (target, counts) = (cluster.dir().join(SOCKET), Arc::<Counts>::default());
        let for_connections = Arc::clone(&counts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (target, counts) = (target.clone(), Arc::clone(&for_connections));
                thread::spawn(move || pass_on(&client, &target, &counts));
            }
        });
        Counter { dir, counts }
    }

    /// Returns the address for the owner of the cluster.
    pub fn address(&self) -> String {
        format!("host={} user=tanmi dbname=postgres", self.dir.path().display())
    }

    pub fn read(&self) -> Sent {
        Sent {
            statements: self.counts.statements.load(Ordering::SeqCst),
            round_trips: self.counts.round_trips.load(Ordering::SeqCst),
        }
    }
}

fn pass_on(client: &UnixStream, target: &Path, counts: &Counts) {
    let Ok(server) = UnixStream::connect(target) else { return };
    thread::scope(|scope| {
        scope.spawn(|| {
            // Execute, and a query without parameters.
            let is_statement = |kind: u8| matches!(kind, b'E' | b'Q');
            let mut messages = Messages { has_no_kind: true, ..Messages::default() };
            let _ = copy(client, &server, &mut messages, &counts.statements, is_statement);
            let _ = server.shutdown(std::net::Shutdown::Both);
        });
        // The server is ready for the next query.
        let is_end = |kind: u8| kind == b'Z';
        let _ = copy(&server, client, &mut Messages::default(), &counts.round_trips, is_end);
        let _ = client.shutdown(std::net::Shutdown::Both);
    });
}

fn copy(
    mut from: &UnixStream,
    mut to: &UnixStream,
    messages: &mut Messages,
    count: &AtomicU64,
    is_counted: impl Fn(u8) -> bool,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        let kinds = messages.take(&buffer[..read]);
        // Counted before it is passed on, so that a reader of the answer finds it counted.
        count.fetch_add(kinds.into_iter().filter(|kind| is_counted(*kind)).count() as u64, Ordering::SeqCst);
        to.write_all(&buffer[..read])?;
    }
}

/// Splits the bytes of one direction into messages: a kind, a length that includes itself, and content.
#[derive(Default)]
struct Messages {
    /// The first message of a client has no kind.
    has_no_kind: bool,
    header: Vec<u8>,
    /// The bytes of the current message that are still to come.
    left: usize,
}

impl Messages {
    /// Returns the kinds of the messages that begin in these bytes.
    fn take(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut kinds = Vec::new();
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            self.header.push(bytes[0]);
            bytes = &bytes[1..];
            let kind_length = usize::from(!self.has_no_kind);
            if let Some(length) =
                self.header.get(kind_length..).and_then(|length| <[u8; 4]>::try_from(length).ok())
            {
                self.left = (u32::from_be_bytes(length) as usize).saturating_sub(4);
                if !self.has_no_kind {
                    kinds.push(self.header[0]);
                }
                self.has_no_kind = false;
                self.header.clear();
            }
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_any_pieces_are_counted_once() {
        let mut bytes = vec![0, 0, 0, 6, 9, 9];
        bytes.extend(b"Q\0\0\0\x06BB");
        bytes.extend(b"S\0\0\0\x04");
        for piece in 1..bytes.len() {
            let mut messages = Messages { has_no_kind: true, ..Messages::default() };
            let kinds: Vec<u8> = bytes.chunks(piece).flat_map(|piece| messages.take(piece)).collect();
            assert_eq!(kinds, b"QS", "{piece}");
        }
    }
}
