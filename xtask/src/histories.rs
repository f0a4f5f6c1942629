//! `cargo xtask histories`: many clients send random commands to two team servers on one database.
//!
//! Proxies refuse, delay and cut their connections, and servers and the database are killed. At the end,
//! [`check`] compares what the clients were told, what the database has and what readers of the feed saw.
//! Invariant: the changes of each workspace have one order, in which every acknowledged command happened
//! exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tanmi_cluster::{Cluster, Durability};

use crate::bench;
use crate::rng::Rng;
use crate::team::{self, Program, Server};

mod check;
mod claims;
mod client;
pub mod commands;
mod follower;
pub mod proxy;
mod record;
mod replay;
pub mod tables;

use check::Evidence;
use client::{Board, Client};
use follower::Follower;
use proxy::Proxy;
use record::LeaseEnd;

/// How long the lease of a session that a client leaves is still valid, in milliseconds. Long enough that every command
/// that runs then either ends before it or begins after it.
const LAST_LEASE: i64 = 2000;

#[derive(clap::Args)]
pub struct Options {
    /// Duration of the requests
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Number of clients
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    clients: usize,
    /// Seed of the random choices; timing still differs between runs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Instead, let 64 connections claim one node in each of this many rounds
    #[arg(long, value_name = "ROUNDS")]
    claims: Option<u64>,
    /// Run this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// A member of the team.
pub struct Person {
    pub name: String,
    pub token: String,
}

#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub struct Counts {
    pub commands: Count,
    pub acknowledged: Count,
    pub unknown: Count,
    pub settled: Count,
    killed_servers: Count,
    killed_databases: Count,
}

/// What all clients share.
pub struct Env {
    cluster: Mutex<Cluster>,
    proxies: Vec<Proxy>,
    stop: AtomicBool,
    pub counts: Counts,
    refusals: Mutex<BTreeMap<String, u64>>,
    lease_ends: Mutex<Vec<LeaseEnd>>,
    /// Sessions that sent a command after their client left them.
    woken: Mutex<BTreeSet<String>>,
    /// Violations that were noticed during the test.
    violations: Mutex<Vec<String>>,
}

impl Env {
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Returns the port in front of a random server.
    pub fn any_port(&self, rng: &mut Rng) -> u16 {
        self.proxies[rng.below(self.proxies.len() as u64) as usize].port
    }

    pub fn report(&self, violation: String) {
        self.violations.lock().expect("no client panicked").push(violation);
    }

    pub fn count_refusal(&self, code: &str) {
        *self.refusals.lock().expect("no client panicked").entry(code.to_owned()).or_default() += 1;
    }

    /// Lets the lease of a session end soon.
    pub fn end_lease(&self, session: &str) {
        let sql = format!(
            "UPDATE session SET lease_until = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + {LAST_LEASE}
             WHERE id = '{session}' RETURNING lease_until"
        );
        // The lock keeps the database alive meanwhile.
        let cluster = self.cluster.lock().expect("no client panicked");
        let printed = cluster.sql(&sql).expect("end a lease");
        // A session without a request has no lease.
        let Ok(until) = printed.trim().parse::<i64>() else { return };
        let end = LeaseEnd { session: session.to_owned(), at: until - LAST_LEASE, until };
        self.lease_ends.lock().expect("no client panicked").push(end);
    }

    /// Notes a command of a session that its client left. It renews the lease, also if it is refused.
    pub fn wake(&self, session: &str) {
        self.woken.lock().expect("no client panicked").insert(session.to_owned());
    }

    fn summary(&self) -> String {
        let Counts { commands, acknowledged, unknown, settled, killed_servers, killed_databases } =
            &self.counts;
        let cuts: u64 = self.proxies.iter().map(Proxy::cuts).sum();
        let refusals = self.refusals.lock().expect("no client panicked");
        let refused: Vec<String> = refusals.iter().map(|(code, count)| format!("{code} {count}")).collect();
        format!(
            "{} commands, {} acknowledged, {} with unknown outcome, {} of them settled; refused: {}\n\
             {} cuts, {} servers and {} databases killed",
            commands.get(),
            acknowledged.get(),
            unknown.get(),
            settled.get(),
            refused.join(", "),
            cuts,
            killed_servers.get(),
            killed_databases.get(),
        )
    }
}

/// Kills a random server or the database, again and again, and starts it again on the same port. Not on a thread of its
/// own: the database ends with the thread that started it.
fn kill_repeatedly(
    env: &Env,
    program: &Program,
    database: &str,
    servers: &mut [Server],
    seed: u64,
    end: Instant,
) {
    let mut rng = Rng(seed * 7919 + 13);
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(700 + rng.below(1500)));
        if rng.below(4) == 0 {
            env.cluster.lock().expect("no client panicked").crash().expect("start the database again");
            env.counts.killed_databases.add(1);
            continue;
        }
        let server = &mut servers[rng.below(2) as usize];
        server.kill();
        thread::sleep(Duration::from_millis(rng.below(300)));
        let limit = Instant::now() + Duration::from_secs(20);
        *server = loop {
            match program.serve(database, server.port) {
                Some(started) => break started,
                None => assert!(Instant::now() < limit, "the server does not start again"),
            }
        };
        env.counts.killed_servers.add(1);
    }
}

pub fn run(options: &Options) -> ExitCode {
    let tanmi = options.program.clone().unwrap_or_else(bench::build);
    let cluster = match team::start_cluster(Durability::Process) {
        Ok(cluster) => cluster,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::FAILURE;
        }
    };
    let program = Program::new(&tanmi);
    let violations = match options.claims {
        Some(rounds) => claims::run(cluster, &program, rounds),
        None => run_histories(options, cluster, &program),
    };
    for line in violations.iter().take(20) {
        println!("VIOLATION: {}", tanmi_base::text::fit(line, 4000));
    }
    println!("{} violations", violations.len());
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the test and returns its violations.
fn run_histories(options: &Options, cluster: Cluster, program: &Program) -> Vec<String> {
    let database = cluster.address();
    let mut people = vec![Person { name: String::from("ada"), token: program.set_up(&database) }];
    for name in ["bob", "eve"] {
        people.push(Person { name: name.to_owned(), token: program.create_token(&database, name) });
    }
    let mut servers: Vec<Server> =
        (0..2).map(|_| program.serve(&database, 0).expect("start a server")).collect();
    let proxy = |(n, server): (usize, &Server)| {
        Proxy::start(server.port, options.seed * 31 + n as u64 + 1).expect("start a proxy")
    };
    let env = Env {
        cluster: Mutex::new(cluster),
        proxies: servers.iter().enumerate().map(proxy).collect(),
        stop: AtomicBool::new(false),
        counts: Counts::default(),
        refusals: Mutex::default(),
        lease_ends: Mutex::default(),
        woken: Mutex::default(),
        violations: Mutex::default(),
    };
    let (board, is_quiet) = (Mutex::new(Board::default()), AtomicBool::new(false));
    let mut evidence = Evidence::default();
    thread::scope(|scope| {
        let (env, board, is_quiet) = (&env, &board, &is_quiet);
        let clients: Vec<_> = (0..options.clients)
            .map(|number| {
                let client = Client::new(env, board, &people[number % people.len()], number, options.seed);
                scope.spawn(move || client.run())
            })
            .collect();
        let heads = || tables::read_heads(&env.cluster.lock().expect("no client panicked"));
        let followers: Vec<_> = [("a", true), ("b", false)]
            .into_iter()
            .zip(&env.proxies)
            .map(|((name, from_first), proxy)| {
                let follower = Follower::new(name, proxy.port, &people[0].token, from_first);
                scope.spawn(move || follower.follow(is_quiet, heads))
            })
            .collect();
        let end = Instant::now() + Duration::from_secs(options.seconds);
        kill_repeatedly(env, program, &database, &mut servers, options.seed, end);
        env.stop.store(true, Ordering::Release);
        env.proxies.iter().for_each(Proxy::stop_faults);
        for client in clients {
            evidence.records.extend(client.join().expect("no client panicked"));
        }
        is_quiet.store(true, Ordering::Release);
        for follower in followers {
            evidence.followers.push(follower.join().expect("no reader panicked"));
        }
    });
    let cluster = env.cluster.lock().expect("no client panicked");
    evidence.database = tables::read_database(&cluster);
    evidence.snapshots = tables::fetch_snapshots(&evidence.database, env.proxies[0].port, &people[0].token);
    evidence.lease_ends = std::mem::take(&mut env.lease_ends.lock().expect("no client panicked"));
    evidence.woken = std::mem::take(&mut env.woken.lock().expect("no client panicked"));
    let findings = check::check(&evidence);
    println!("{} s, {}", options.seconds, env.summary());
    println!(
        "{} workspaces; {} commands carried out again by the model, {} changes read by 2 readers, {} late commits",
        evidence.database.streams.len(),
        findings.replayed,
        findings.followed,
        findings.late
    );
    let mut violations = std::mem::take(&mut *env.violations.lock().expect("no client panicked"));
    violations.extend(findings.violations);
    violations
}
