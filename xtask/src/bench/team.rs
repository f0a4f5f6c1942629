//! Measures a team server on a PostgreSQL cluster that waits for its disk: commands over HTTP at several
//! numbers of connections, their statements and round trips, the latency of the feed, memory with many
//! readers, and hooks of a machine.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tanmi_cluster::{Cluster, Durability};
use tanmi_workspace::command::Command;
use tanmi_workspace::model::{NodeId, NodeType};
use tanmi_workspace::state::Action;

use super::Options;
use super::measure::{medians, percentile, process_mb, ratio};
use super::report::Report;
use crate::histories::commands;
use crate::rng::Rng;
use crate::team::http::Connection;
use crate::team::{self, Program, Server};

mod database;
mod hooks;

const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECTIONS: [usize; 3] = [1, 16, 64];
const READERS: usize = 1000;
/// The most nodes of one plan that fill a workspace.
const PLAN: usize = 200;

/// Two servers on one database.
struct Bench {
    cluster: Cluster,
    program: Program,
    token: String,
    servers: Vec<Server>,
    /// Makes the keys of requests different.
    requests: AtomicU64,
}

pub fn run(tanmi: &Path, options: &Options, report: &mut Report) {
    let cluster = match team::start_cluster(Durability::Disk) {
        Ok(cluster) => cluster,
        Err(reason) => return eprintln!("({reason}: team skipped)"),
    };
    let program = Program::new(tanmi);
    let token = program.set_up(&cluster.address());
    let serve = |_| program.serve(&cluster.address(), 0).expect("start a server");
    let servers = (0..2).map(serve).collect();
    let bench = Bench { cluster, program, token, servers, requests: AtomicU64::new(0) };
    // First, while the replica of a machine is small.
    hooks::run(&bench, tanmi, options.runs, report);
    let append = append_time(options.runs);
    let update = database::update_time(&bench.cluster, options.runs);
    report.add("team: pgbench, update of one row / fsynced append", ratio(update, append), "×", None);
    let baselines = [("fsynced append", append), ("pgbench update", update)];
    for &size in &options.sizes {
        let workspace = bench.create_workspace();
        bench.fill(&workspace, size);
        for connections in CONNECTIONS {
            let time = bench.create_nodes(&vec![workspace.clone(); connections], options.runs);
            report_rate(
                report,
                &format!("team {size}: node_create, connections: {connections}"),
                time,
                &baselines,
            );
        }
    }
    for connections in CONNECTIONS {
        let workspaces: Vec<String> = (0..connections).map(|_| bench.create_workspace()).collect();
        let time = bench.create_nodes(&workspaces, options.runs);
        let name = format!("team: node_create, connections with a workspace each: {connections}");
        report_rate(report, &name, time, &baselines);
    }
    bench.count_statements(report);
    bench.measure_feed(options.runs, report);
    bench.measure_memory(report);
}

fn report_rate(report: &mut Report, name: &str, time: Duration, baselines: &[(&str, Duration)]) {
    report.add(name, 1.0 / time.as_secs_f64(), "per second", None);
    for (baseline, baseline_time) in baselines {
        report.add(format!("{name} / {baseline}"), ratio(time, *baseline_time), "×", None);
    }
}

/// Returns the time of an fsynced append on the disk of the cluster.
fn append_time(runs: usize) -> Duration {
    // The cluster is in the folder for temporary files too.
    let mut log = tempfile::tempfile().expect("create a temporary file");
    let mut append = || {
        log.write_all(&[b'x'; 600]).expect("append to the file");
        log.sync_data().expect("sync the file");
    };
    medians(runs, &mut [&mut append])[0]
}

impl Bench {
    fn connect(&self, server: usize) -> Connection {
        Connection::open(self.servers[server].port, &self.token, TIMEOUT).expect("connect to the server")
    }

    /// Sends a request with a new key, which must succeed.
    fn run(&self, connection: &mut Connection, mut body: Value) -> Value {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        body["key"] = json!(format!("key-bench-{number}"));
        body["operator"] = json!("AI");
        let response = connection.run(&body).expect("the server answers");
        assert_eq!(response.status, 200, "{}", response.body);
        response.body
    }

    /// Runs a command for the session of a connection. As with agents, no two connections share one.
    fn run_command(&self, connection: &mut Connection, workspace: &str, command: &Command) -> Value {
        let session = format!("bench-{}", connection.local_port());
        self.run(connection, json!({"stream": workspace, "command": command, "session": session}))
    }

    fn create_node(&self, connection: &mut Connection, workspace: &str) -> Value {
        let command = commands::create_node(&NodeId::root(), NodeType::Execution, "a step of the work");
        self.run_command(connection, workspace, &command)
    }

    fn create_workspace(&self) -> String {
        let made = self.run(&mut self.connect(0), json!({"command": commands::create_workspace("bench")}));
        made["workspaceId"].as_str().expect("the workspace is created").to_owned()
    }

    /// Adds this many nodes to a workspace.
    fn fill(&self, workspace: &str, size: usize) {
        let (mut connection, mut left) = (self.connect(0), size);
        while left > 0 {
            let count = left.min(PLAN);
            let plan = commands::plan(NodeId::root(), count, false);
            self.run_command(&mut connection, workspace, &plan);
            left -= count;
        }
    }

    /// Creates nodes from one connection per entry of `workspaces`, spread over both servers. Returns the
    /// time per node.
    fn create_nodes(&self, workspaces: &[String], runs: usize) -> Duration {
        let mut connections: Vec<Connection> =
            (0..workspaces.len()).map(|n| self.connect(n % self.servers.len())).collect();
        // The servers first open their connections to the database and prepare their statements.
        self.create_nodes_with(&mut connections, workspaces, 2);
        self.create_nodes_with(&mut connections, workspaces, (runs / workspaces.len()).max(20))
    }

    fn create_nodes_with(
        &self,
        connections: &mut [Connection],
        workspaces: &[String],
        per_connection: usize,
    ) -> Duration {
        let start = Instant::now();
        thread::scope(|scope| {
            for (connection, workspace) in connections.iter_mut().zip(workspaces) {
                scope.spawn(move || {
                    for _ in 0..per_connection {
                        self.create_node(connection, workspace);
                    }
                });
            }
        });
        start.elapsed() / (per_connection * workspaces.len()) as u32
    }

    /// Counts what a server sends to the database for one command.
    fn count_statements(&self, report: &mut Report) {
        const COMMANDS: u64 = 20;
        let counter = database::Counter::start(&self.cluster);
        let server = self.program.serve(&counter.address(), 0).expect("start a server");
        let mut connection =
            Connection::open(server.port, &self.token, TIMEOUT).expect("connect to the server");
        let workspace = self.create_workspace();
        let mut nodes: Vec<NodeId> = Vec::new();
        // The second time: statements are prepared, and the token is known.
        for is_counted in [false, true] {
            let before = counter.read();
            for _ in 0..COMMANDS {
                let made = self.create_node(&mut connection, &workspace);
                let id = made["outcome"]["node"]["id"].as_str().expect("a node is created");
                nodes.push(NodeId::parse(id).expect("an id of the server"));
            }
            let created = counter.read();
            for node in nodes.drain(..) {
                let start = commands::transition(&node, Action::Start, false);
                self.run_command(&mut connection, &workspace, &start);
            }
            let started = counter.read();
            for (name, from, to) in [("node_create", before, created), ("start", created, started)] {
                if is_counted {
                    let per_command = |count: u64| count as f64 / COMMANDS as f64;
                    let (statements, trips) =
                        (to.statements - from.statements, to.round_trips - from.round_trips);
                    report.add(
                        format!("team: {name}, statements"),
                        per_command(statements),
                        "per command",
                        None,
                    );
                    report.add(format!("team: {name}, round trips"), per_command(trips), "per command", None);
                }
            }
        }
    }

    /// Measures the time from the answer to a command until it arrives at waiting readers of both servers.
    fn measure_feed(&self, runs: usize, report: &mut Report) {
        let workspace = self.create_workspace();
        let arrivals: Vec<Mutex<BTreeMap<u64, Instant>>> =
            self.servers.iter().map(|_| Mutex::default()).collect();
        let is_over = AtomicBool::new(false);
        let mut answers: Vec<(u64, Instant)> = Vec::new();
        thread::scope(|scope| {
            for (server, arrivals) in arrivals.iter().enumerate() {
                let (workspace, is_over) = (&workspace, &is_over);
                scope.spawn(move || self.follow(server, workspace, arrivals, is_over));
            }
            let (mut connection, mut rng) = (self.connect(0), Rng(5));
            for _ in 0..runs {
                // Random pauses, because the other server looks for changes in equal intervals.
                thread::sleep(Duration::from_millis(40 + rng.below(200)));
                let answer = self.create_node(&mut connection, &workspace);
                answers.push((answer["seq"].as_u64().expect("a number"), Instant::now()));
            }
            thread::sleep(Duration::from_secs(1));
            is_over.store(true, Ordering::Relaxed);
            self.create_node(&mut connection, &workspace);
        });
        for (name, arrivals) in ["the same server", "another server"].iter().zip(&arrivals) {
            let arrivals = arrivals.lock().expect("no reader panicked");
            let latency = |(seq, answered): &(u64, Instant)| {
                arrivals.get(seq).map(|arrived| arrived.saturating_duration_since(*answered))
            };
            let times: Vec<Duration> = answers.iter().filter_map(latency).collect();
            assert_eq!(times.len(), answers.len(), "a reader of {name} missed a change");
            for percent in [50, 99] {
                let row = format!("team: change at a reader of {name}, p{percent}");
                let time = percentile(times.clone(), percent);
                report.add(row, time.as_secs_f64() * 1000.0, "ms", None);
            }
        }
    }

    /// Reads the feed of a server with long polls and notes when each change arrives.
    fn follow(
        &self,
        server: usize,
        workspace: &str,
        arrivals: &Mutex<BTreeMap<u64, Instant>>,
        is_over: &AtomicBool,
    ) {
        let (mut connection, mut position) = (self.connect(server), 0);
        let known = self.known_streams(workspace);
        while !is_over.load(Ordering::Relaxed) {
            let path = feed_path(&known, workspace, position);
            let page = connection.get(&path).expect("read the feed").body;
            let now = Instant::now();
            for change in page["changes"].as_array().into_iter().flatten() {
                position = change["seq"].as_u64().expect("a number");
                arrivals.lock().expect("no reader panicked").insert(position, now);
            }
        }
    }

    /// Returns all other streams, as a reader names those that it knows and does not follow.
    fn known_streams(&self, workspace: &str) -> String {
        let heads = self.connect(0).get("feed").expect("read the feed").body["heads"].clone();
        let streams = heads.as_object().into_iter().flatten().map(|(stream, _)| stream);
        let others = streams.filter(|stream| *stream != workspace).map(|stream| format!("{stream}:-,"));
        others.collect()
    }

    /// Measures the memory of a server that many readers wait at.
    fn measure_memory(&self, report: &mut Report) {
        let server = &self.servers[1];
        report.add(
            "team: memory of a server, no readers",
            process_mb(server.id(), "status", "VmRSS:"),
            "MB",
            None,
        );
        let workspace = self.create_workspace();
        let path = feed_path(&self.known_streams(&workspace), &workspace, 0);
        let open = |_| {
            let mut reader = self.connect(1);
            reader.send("GET", &path, "").expect("send a request");
            reader
        };
        let mut readers: Vec<Connection> = (0..READERS).map(open).collect();
        thread::sleep(Duration::from_secs(5));
        report.add(
            format!("team: memory of a server, {READERS} readers"),
            process_mb(server.id(), "status", "VmRSS:"),
            "MB",
            None,
        );
        // Each of them still waits and gets the next change.
        self.create_node(&mut self.connect(0), &workspace);
        let answered = readers.iter_mut().filter_map(|reader| reader.receive().ok()).count();
        assert_eq!(answered, READERS, "some readers were disconnected");
    }
}

/// Returns the path of a long poll for the changes of a workspace after a position.
fn feed_path(known: &str, workspace: &str, position: u64) -> String {
    format!("feed?have={known}{workspace}:{position}&wait=25")
}
