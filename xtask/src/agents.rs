//! `cargo xtask team-agents`: many agents of a team at once, each with a home, a checkout and a real
//! `tanmi mcp` process of its own, on two servers and one PostgreSQL that waits for its disk.
//!
//! Each agent takes turns as a coding agent does: a hook at the prompt, then tool calls with pauses. Eight
//! agents share a workspace and compete for its nodes. At the end the times, errors and memory are printed,
//! and the replicas and writes are checked as after `team-machines`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tanmi_cluster::{Cluster, Durability};

use crate::bench;
use crate::bench::measure::{percentile, process_mb};
use crate::team::check::{self, Write};
use crate::team::machine::Machine;
use crate::team::{self, Program, Server};

mod agent;

use agent::{Agent, Call};

/// The number of agents that share a workspace.
const TEAM: usize = 8;
/// The refusals that competing agents get, also if one tries to complete the root. Any other error is a violation.
const EXPECTED: [&str; 4] = ["CHILDREN_UNFINISHED", "CLAIM_LOST", "INVALID_TRANSITION", "NODE_TAKEN"];

#[derive(clap::Args)]
pub struct Options {
    /// Number of agents; each is a process of about 20 MB
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    agents: usize,
    /// Duration of the work
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Average pause before a call
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000)]
    think: u64,
    /// Seed of the random choices; timing still differs between runs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Run this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

pub fn run(options: &Options) -> ExitCode {
    let tanmi = options.program.clone().unwrap_or_else(bench::build);
    match team::start_cluster(Durability::Disk) {
        Ok(cluster) => team::print_violations(&run_agents(options, &cluster, &tanmi)),
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Lets all agents work, prints what was measured and returns the violations.
fn run_agents(options: &Options, cluster: &Cluster, tanmi: &Path) -> Vec<String> {
    let (program, database) = (Program::new(tanmi), cluster.address());
    program.set_up(&database);
    let servers = [0, 1].map(|_| program.serve(&database, 0).expect("start a server"));
    let machines: Vec<Machine> = (0..options.agents)
        .map(|number| {
            let person = format!("person{number}");
            let token = program.create_token(&database, &person);
            Machine::new(tanmi, number, &person, &token, servers[number % servers.len()].port)
        })
        .collect();
    let leaders = machines.iter().step_by(TEAM);
    let workspaces: Vec<String> = leaders.map(Machine::create_workspace).collect();
    let all_ready = Barrier::new(machines.len());
    let agents: Vec<Agent> = thread::scope(|scope| {
        let workers: Vec<_> = machines
            .iter()
            .map(|machine| {
                let (workspaces, all_ready) = (&workspaces, &all_ready);
                scope.spawn(move || {
                    let workspace = &workspaces[machine.number / TEAM];
                    let mut agent = Agent::start(machine, workspace, options.think, options.seed);
                    all_ready.wait();
                    let end = Instant::now() + Duration::from_secs(options.seconds);
                    while Instant::now() < end {
                        agent.take_turn();
                    }
                    agent
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no agent panicked")).collect()
    });
    print_memory(&agents, &servers, cluster);
    let (mut calls, mut writes): (Vec<Call>, Vec<Write>) = (Vec::new(), Vec::new());
    for agent in agents {
        let (made, written) = agent.stop();
        calls.extend(made);
        writes.extend(written);
    }
    print_times(&calls, options.seconds);
    let mut violations = find_errors(&calls);
    violations.extend(check::check(cluster, &machines.iter().collect::<Vec<_>>(), &writes));
    let acknowledged = writes.iter().filter(|write| write.is_acknowledged).count();
    println!("{acknowledged} acknowledged writes of {} agents checked", machines.len());
    violations
}

/// Prints the memory while all agents are connected. PostgreSQL's processes share most of theirs, so each
/// counts its part.
fn print_memory(agents: &[Agent], servers: &[Server], cluster: &Cluster) {
    let resident = |pid: u32| process_mb(pid, "status", "VmRSS:");
    for server in servers {
        println!("{:<28} {:>8.1} MB", "memory of a server", resident(server.id()));
    }
    let processes = cluster.processes().expect("list the processes of PostgreSQL");
    let database: f64 = processes.iter().map(|pid| process_mb(*pid, "smaps_rollup", "Pss:")).sum();
    println!("{:<28} {database:>8.1} MB in {} processes", "memory of the database", processes.len());
    let mut clients: Vec<f64> = agents.iter().map(|agent| resident(agent.id())).collect();
    clients.sort_by(f64::total_cmp);
    let (median, most) = (clients[clients.len() / 2], clients[clients.len() - 1]);
    println!("{:<28} {median:>8.1} MB, at most {most:.1} MB", "memory of tanmi mcp, median");
}

/// Prints the number and the times of the calls of each tool, and of hooks.
fn print_times(calls: &[Call], seconds: u64) {
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for call in calls {
        times.entry(call.name).or_default().push(call.time);
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("{:<28} {:>8} {:>9} {:>9} {:>9}", "", "calls", "p50 ms", "p99 ms", "most ms");
    for (name, times) in times {
        let [p50, p99, most] = [50, 99, 100].map(|percent| ms(percentile(times.clone(), percent)));
        println!("{name:<28} {:>8} {p50:>9.1} {p99:>9.1} {most:>9.1}", times.len());
    }
    println!("{} calls in {seconds} seconds", calls.len());
}

/// Prints how often each error occurred, and returns those that are not expected.
fn find_errors(calls: &[Call]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut violations = Vec::new();
    for (call, error) in calls.iter().filter_map(|call| Some((call, call.error.as_ref()?))) {
        *counts.entry((call.name, &error.code)).or_default() += 1;
        if !EXPECTED.contains(&error.code.as_str()) {
            violations.push(format!("{}: {}: {}", call.name, error.code, error.message));
        }
    }
    for ((name, code), count) in counts {
        println!("{name:<28} {count:>8} {code}");
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::agent::CallError;
    use super::*;

    #[test]
    fn find_errors_other_than_lost_races_are_violations() {
        let call = |code: Option<&str>| {
            let error = |code: &str| CallError { code: code.to_owned(), message: String::from("m") };
            Call { name: "node_next", time: Duration::ZERO, error: code.map(error) }
        };
        assert!(find_errors(&[call(None), call(Some("NODE_TAKEN")), call(Some("CLAIM_LOST"))]).is_empty());
        let found = find_errors(&[call(Some("NODE_TAKEN")), call(Some("TEAM_UNREACHABLE"))]);
        assert_eq!(found, ["node_next: TEAM_UNREACHABLE: m"]);
    }
}
