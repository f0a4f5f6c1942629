//! One machine with faults: a proxy, an MCP process that follows, and random commands.

use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::Counts;
use crate::histories::proxy::Proxy;
use crate::rng::Rng;
use crate::team::check::{Kind, Write};
use crate::team::machine::Machine;

/// How long a command may run before it counts as stuck: longer than the deadline of its request.
const STUCK: Duration = Duration::from_secs(40);

/// A machine behind a proxy of its own.
pub struct FaultyMachine {
    pub machine: Machine,
    pub proxy: Proxy,
}

impl FaultyMachine {
    /// Returns a command whose clock is wrong: the first machine is right, the next ones are an hour ahead or behind.
    fn skewed(&self, args: &[&str]) -> Command {
        let hours = [0, 1, -1][self.machine.number % 3];
        let mut command = self.machine.command(args);
        if hours != 0 {
            let now = tanmi_base::clock::now() + hours * 3_600_000;
            command.env("TANMI_NOW", now.to_string());
        }
        command
    }

    /// Runs random writes until the time is over. Returns them.
    pub fn work(&self, workspace: &str, seed: u64, is_over: &AtomicBool, counts: &Counts) -> Vec<Write> {
        let mut rng = Rng(seed * 104_729 + self.machine.number as u64 * 977 + 3);
        let mut writes = Vec::new();
        let mut nodes: Vec<String> = Vec::new();
        for number in 0.. {
            if is_over.load(Ordering::Acquire) {
                break;
            }
            let text = format!("{}-write-{number}.", self.machine.name());
            let (kind, args) = match rng.below(8) {
                0..3 => {
                    let args = ["node", "create", "--type", "execution", "--title", &text];
                    let more = ["--parent", "root", "--requirement", "r", "--workspace", workspace];
                    (Kind::Node, [args, more].concat())
                }
                3 | 4 => (Kind::Log, vec!["log", "--node", "workspace", &text, "--workspace", workspace]),
                5 | 6 => (Kind::Fact, vec!["memory", "save-fact", &text]),
                _ => {
                    self.claim(workspace, &nodes, &mut rng);
                    continue;
                }
            };
            let child = self.skewed(&[args, vec!["--json"]].concat()).spawn().expect("run the program");
            let output = match rng.below(6) {
                0 => self.kill_soon(child, &mut rng, counts),
                1 => self.let_sleep(child, &mut rng, counts),
                _ => wait(child),
            };
            if let Some(made) =
                output.as_ref().and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok())
            {
                nodes.extend(made["nodeId"].as_str().map(str::to_owned));
            }
            let is_acknowledged = output.is_some_and(|output| output.status.success());
            writes.push(Write { kind, text, is_acknowledged });
        }
        writes
    }

    /// Starts or completes a node of this machine. The server decides; a refusal is as right as a success.
    fn claim(&self, workspace: &str, nodes: &[String], rng: &mut Rng) {
        let Some(node) = rng.pick(nodes) else { return };
        let session = format!("{}-session", self.machine.name());
        let action = if rng.below(2) == 0 { "start" } else { "complete" };
        let args = [
            "node",
            "transition",
            node,
            "--action",
            action,
            "--conclusion",
            "done",
            "--session",
            &session,
            "--workspace",
            workspace,
            "--json",
        ];
        wait(self.skewed(&args).spawn().expect("run the program"));
    }

    /// Kills a command before it ends, if it takes long enough.
    fn kill_soon(&self, mut child: Child, rng: &mut Rng, counts: &Counts) -> Option<Output> {
        thread::sleep(Duration::from_millis(rng.below(40)));
        if child.try_wait().ok().flatten().is_none() {
            let _ = child.kill();
            counts.killed_commands.fetch_add(1, Ordering::Relaxed);
        }
        child.wait_with_output().ok()
    }

    /// Stops a command for a while, as a laptop that sleeps.
    fn let_sleep(&self, child: Child, rng: &mut Rng, counts: &Counts) -> Option<Output> {
        thread::sleep(Duration::from_millis(rng.below(30)));
        sleep_process(&child, Duration::from_millis(rng.below(1500)));
        counts.sleeps.fetch_add(1, Ordering::Relaxed);
        wait(child)
    }

    /// Runs an MCP process that follows the project, and troubles it and the network until the time is over.
    pub fn trouble(&self, seed: u64, is_over: &AtomicBool, counts: &Counts) -> Vec<Write> {
        let mut rng = Rng(seed * 15_485_863 + self.machine.number as u64 * 31 + 7);
        let follow =
            || self.machine.command(&["mcp"]).stdin(Stdio::piped()).spawn().expect("run the program");
        let mut follower = follow();
        while !is_over.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(300 + rng.below(1200)));
            match rng.below(5) {
                0 => {
                    let _ = (follower.kill(), follower.wait());
                    follower = follow();
                    counts.killed_followers.fetch_add(1, Ordering::Relaxed);
                }
                1 => {
                    sleep_process(&follower, Duration::from_millis(rng.below(3000)));
                    counts.sleeps.fetch_add(1, Ordering::Relaxed);
                }
                2 => {
                    self.proxy.set_away(true);
                    thread::sleep(Duration::from_millis(rng.below(3000)));
                    self.proxy.set_away(false);
                    counts.partitions.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
        }
        let _ = (follower.kill(), follower.wait());
        Vec::new()
    }
}

fn sleep_process(child: &Child, time: Duration) {
    let pid = Pid::from_raw(child.id().cast_signed());
    if kill(pid, Signal::SIGSTOP).is_ok() {
        thread::sleep(time);
        let _ = kill(pid, Signal::SIGCONT);
    }
}

/// Waits for a command. Panics if it is stuck.
fn wait(mut child: Child) -> Option<Output> {
    let limit = Instant::now() + STUCK;
    while child.try_wait().ok()?.is_none() {
        assert!(Instant::now() < limit, "a command does not end");
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().ok()
}
