//! `cargo xtask team-machines`: several machines of a team, each a scratch home with real `tanmi` processes
//! behind a proxy of its own.
//!
//! Proxies refuse, delay and cut connections or let none through; commands and MCP processes are killed or
//! sleep; the server is killed; the clocks of the machines differ by an hour. At the end everything is healed
//! and each machine synchronises. Invariants: every replica has the documents of the server, byte for byte;
//! every acknowledged write is there once, and every other one at most once; no outbox has an entry.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tanmi_cluster::{Cluster, Durability};

use crate::bench;
use crate::histories::proxy::Proxy;
use crate::rng::Rng;
use crate::team::check::{self, Kind, Write};
use crate::team::machine::Machine;
use crate::team::{self, Program};

mod machine;

use machine::FaultyMachine;

#[derive(clap::Args)]
pub struct Options {
    /// Duration of the writes
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Number of machines
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    machines: usize,
    /// Seed of the random choices; timing still differs between runs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Run this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// What happened during a run.
#[derive(Default)]
pub struct Counts {
    pub killed_commands: AtomicU64,
    pub killed_followers: AtomicU64,
    pub sleeps: AtomicU64,
    pub partitions: AtomicU64,
    killed_servers: AtomicU64,
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
    team::print_violations(&run_machines(options, &cluster, &Program::new(&tanmi), &tanmi))
}

/// Runs the test and returns its violations.
fn run_machines(
    options: &Options,
    cluster: &Cluster,
    program: &Program,
    tanmi: &std::path::Path,
) -> Vec<String> {
    let database = cluster.address();
    program.set_up(&database);
    let mut server = program.serve(&database, 0).expect("start a server");
    let machines: Vec<FaultyMachine> = (0..options.machines)
        .map(|number| {
            let person = format!("person{number}");
            let token = program.create_token(&database, &person);
            let proxy = Proxy::start(server.port, options.seed * 31 + number as u64 + 1);
            let proxy = proxy.expect("start a proxy");
            let machine = Machine::new(tanmi, number, &person, &token, proxy.port);
            FaultyMachine { machine, proxy }
        })
        .collect();
    machines.iter().for_each(|machine| machine.proxy.stop_faults());
    let workspace = machines[0].machine.create_workspace();
    machines.iter().for_each(|machine| machine.machine.sync().expect("the first synchronisation"));
    machines.iter().for_each(|machine| machine.proxy.start_faults());
    let (is_over, counts) = (AtomicBool::new(false), Counts::default());
    let mut writes: Vec<Write> = Vec::new();
    thread::scope(|scope| {
        let (is_over, counts, workspace) = (&is_over, &counts, workspace.as_str());
        let workers: Vec<_> = machines
            .iter()
            .flat_map(|machine| {
                let worker = scope.spawn(move || machine.work(workspace, options.seed, is_over, counts));
                let trouble = scope.spawn(move || machine.trouble(options.seed, is_over, counts));
                [worker, trouble]
            })
            .collect();
        let mut rng = Rng(options.seed * 7919 + 13);
        let end = Instant::now() + Duration::from_secs(options.seconds);
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(1000 + rng.below(3000)).min(end - Instant::now().min(end)));
            if rng.below(3) == 0 {
                server.kill();
                thread::sleep(Duration::from_millis(rng.below(500)));
                let limit = Instant::now() + Duration::from_secs(20);
                server = loop {
                    match program.serve(&database, server.port) {
                        Some(started) => break started,
                        None => assert!(Instant::now() < limit, "the server does not start again"),
                    }
                };
                counts.killed_servers.fetch_add(1, Ordering::Relaxed);
            }
        }
        is_over.store(true, Ordering::Release);
        for worker in workers {
            writes.extend(worker.join().expect("no machine panicked"));
        }
    });
    summarize(&machines, &writes, &counts);
    machines.iter().for_each(|machine| machine.proxy.stop_faults());
    let machines: Vec<&Machine> = machines.iter().map(|machine| &machine.machine).collect();
    check::check(cluster, &machines, &writes)
}

fn summarize(machines: &[FaultyMachine], writes: &[Write], counts: &Counts) {
    let acknowledged = |kind: Kind| {
        let is_counted = |write: &&Write| write.is_acknowledged && write.kind == kind;
        writes.iter().filter(is_counted).count()
    };
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} machines, {} writes, acknowledged: {} nodes, {} log entries, {} facts; {} cuts, {} partitions, {} sleeps; \
         killed: {} commands, {} MCP processes, {} servers",
        machines.len(),
        writes.len(),
        acknowledged(Kind::Node),
        acknowledged(Kind::Log),
        acknowledged(Kind::Fact),
        machines.iter().map(|machine| machine.proxy.cuts()).sum::<u64>(),
        count(&counts.partitions),
        count(&counts.sleeps),
        count(&counts.killed_commands),
        count(&counts.killed_followers),
        count(&counts.killed_servers),
    );
}
