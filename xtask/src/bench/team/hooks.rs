//! Hooks of a machine that joined, while its server answers, is stopped, and never answers. They read only
//! the replica, so the times must not differ.

use std::net::TcpListener;
use std::path::Path;

use super::Bench;
use crate::bench::hook::{HookFixture, measure_joined};
use crate::bench::report::Report;
use crate::team::machine::Machine;

pub fn run(bench: &Bench, tanmi: &Path, runs: usize, report: &mut Report) {
    let mut server = bench.program.serve(&bench.cluster.address(), 0).expect("start a server");
    let machine = Machine::new(tanmi, 0, "ada", &bench.token, server.port);
    let workspace = machine.create_workspace();
    let create = ["node", "create", "--parent", "root", "--type", "execution", "--requirement", "r"];
    let made: Vec<_> =
        (0..10).map(|n| machine.run(&[&create[..], &["--title", &format!("task {n}")]].concat())).collect();
    let node = made[5]["nodeId"].as_str().expect("the id of a node");
    let fixture = HookFixture::of_machine(tanmi, &machine, &workspace, node);
    measure_joined(&fixture, "server reachable", runs, report);
    server.kill();
    measure_joined(&fixture, "server stopped", runs, report);
    // The system accepts connections, and no answer comes.
    let _listener = TcpListener::bind(("127.0.0.1", server.port)).expect("listen on the port of the server");
    measure_joined(&fixture, "server never answers", runs, report);
}
