//! `cargo xtask torture`: runs many processes of every kind on one home and one project and kills them at
//! random moments.
//!
//! Simulated people edit files, check out commits and move the project, and indexes are deleted, at the same
//! time. At the end, [`check`] looks for violations. Invariant: every acknowledged write exists exactly once.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench;
use crate::rng::Rng;

mod check;
mod disk;
mod http;
mod people;

#[derive(clap::Args)]
pub struct Options {
    /// Duration of the test
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Number of parallel workers
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    workers: usize,
    /// Seed of the random choices; timing still differs between runs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Run on a disk of this size that repeatedly fills up (needs permission to mount)
    #[arg(long, value_name = "MB")]
    small_disk: Option<u64>,
    /// Run this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Another version of the program; every second process runs it
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

/// Writes that a process acknowledged. Each must exist exactly once at the end.
#[derive(Default)]
struct AcknowledgedWrites {
    /// Ids.
    nodes: Vec<String>,
    /// Node id and log entry.
    logs: Vec<(String, String)>,
    facts: Vec<String>,
    /// Topics.
    summaries: Vec<String>,
    /// Node id and the line that an editor added to its file.
    edits: Vec<(String, String)>,
    /// Session ids.
    bindings: Vec<String>,
}

/// A home and a project with one workspace, shared by all workers.
struct TestEnv {
    tanmi: PathBuf,
    /// Another version of the program, which runs in turn with the first.
    other_version: Option<PathBuf>,
    started: AtomicU64,
    root: PathBuf,
    workspace: String,
    acknowledged: Mutex<AcknowledgedWrites>,
    stop: AtomicBool,
    /// How many processes ran and how many requests were sent.
    calls: AtomicU64,
    killed: AtomicU64,
    /// How often the disk was full.
    full_disk_count: AtomicU64,
    edit_lock: Mutex<()>,
    /// `None` without git.
    repository: Option<people::Repository>,
    /// Violations that were noticed during the test.
    violations: Mutex<Vec<String>>,
}

impl TestEnv {
    /// Creates the home, the project and its workspace.
    fn create(tanmi: PathBuf, other_version: Option<PathBuf>, root: PathBuf) -> TestEnv {
        for dir in ["home", "project"] {
            std::fs::create_dir_all(root.join(dir)).expect("create a folder");
        }
        let mut env = TestEnv {
            tanmi,
            other_version,
            started: AtomicU64::new(0),
            root,
            workspace: String::new(),
            acknowledged: Mutex::default(),
            stop: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            killed: AtomicU64::new(0),
            full_disk_count: AtomicU64::new(0),
            edit_lock: Mutex::new(()),
            repository: None,
            violations: Mutex::default(),
        };
        let project = env.project().display().to_string();
        let args =
            ["workspace", "init", "--name", "Torture", "--goal", "survive", "--project", &project, "--json"];
        let mut rng = Rng(7);
        // Retried, because `run` may kill this process too.
        let created = loop {
            if let Some(created) = env.run(&mut rng, &args) {
                break created;
            }
        };
        env.workspace = created["workspaceId"].as_str().expect("a workspaceId is printed").to_owned();
        create_node(&env, &mut rng, "branches");
        let node = env.acknowledged.lock().expect("no worker panicked").nodes.pop();
        env.repository = node.and_then(|node| people::Repository::create(&env, node));
        env
    }

    fn summary(&self) -> String {
        let acknowledged = self.acknowledged.lock().expect("no worker panicked");
        format!(
            "{} processes and requests, {} killed; acknowledged: {} nodes, {} log entries, {} facts, {} summaries, {} edits, {} bindings",
            self.calls.load(Ordering::Relaxed),
            self.killed.load(Ordering::Relaxed),
            acknowledged.nodes.len(),
            acknowledged.logs.len(),
            acknowledged.facts.len(),
            acknowledged.summaries.len(),
            acknowledged.edits.len(),
            acknowledged.bindings.len(),
        )
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn command(&self, args: &[&str]) -> Command {
        let is_odd = self.started.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        // The final checks run after the test, with the current version.
        let other = self.other_version.as_ref().filter(|_| is_odd && !self.stop.load(Ordering::Relaxed));
        let mut command = Command::new(other.unwrap_or(&self.tanmi));
        command.args(args).current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Starts a process. Its working directory is missing while the project is moved.
    fn spawn(&self, command: &mut Command) -> Child {
        let start = Instant::now();
        loop {
            match command.spawn() {
                Ok(child) => return child,
                Err(error) => {
                    assert!(start.elapsed() < Duration::from_secs(20), "start the program: {error}")
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs a command, which may be killed at random. Returns its JSON output if it succeeded.
    fn run(&self, rng: &mut Rng, args: &[&str]) -> Option<Value> {
        let mut child = self.spawn(&mut self.command(args));
        if rng.below(6) == 0 {
            std::thread::sleep(Duration::from_micros(rng.below(12_000)));
            let _ = child.kill();
            self.killed.fetch_add(1, Ordering::Relaxed);
        }
        let output = child.wait_with_output().ok()?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        // A killed or failed process acknowledged nothing.
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    }

    /// Returns the id of a random acknowledged node, or of the root.
    fn random_node(&self, rng: &mut Rng) -> String {
        let acknowledged = self.acknowledged.lock().expect("no worker panicked");
        match acknowledged.nodes.len() as u64 {
            0 => String::from("root"),
            count => acknowledged.nodes[rng.below(count) as usize].clone(),
        }
    }

    fn node_file(&self, node: &str) -> PathBuf {
        self.project().join(".tanmi-workspace").join(&self.workspace).join("nodes").join(node).join("Node.md")
    }
}

/// Runs random operations until `env.stop` is set.
fn run_worker(env: &TestEnv, number: u64, seed: u64) {
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15 ^ (seed * 1_000_003 + number + 1));
    let mut count = 0;
    while !env.stop.load(Ordering::Relaxed) {
        count += 1;
        let marker = format!("w{number}-{count}");
        match rng.below(16) {
            0..3 => create_node(env, &mut rng, &marker),
            3..5 => append_log(env, &mut rng, &marker),
            5..7 => save_memory(env, &mut rng, &marker),
            7 => run_hook(env, &mut rng, &marker),
            8 => people::edit_node_file(env, &mut rng, &marker),
            9 => delete_index(env, &mut rng),
            10 => bind_session(env, &mut rng, &marker),
            11 => http::run_server(env, &mut rng, &marker),
            12 if env.repository.is_some() => people::check_out(env, &mut rng),
            13 => people::move_project(env, &mut rng),
            14 => people::intrude(env, &mut rng),
            _ => run_mcp_server(env, &mut rng, &marker),
        }
    }
}

fn create_node(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let args = [
        "node",
        "create",
        "--parent",
        "root",
        "--type",
        "execution",
        "--title",
        marker,
        "--requirement",
        "r",
        "--json",
    ];
    if let Some(created) = env.run(rng, &args) {
        let id = created["nodeId"].as_str().expect("a nodeId is printed").to_owned();
        env.acknowledged.lock().expect("no worker panicked").nodes.push(id);
    }
}

fn append_log(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let node = env.random_node(rng);
    if env.run(rng, &["log", "--node", &node, marker, "--json"]).is_some() {
        env.acknowledged.lock().expect("no worker panicked").logs.push((node, marker.to_owned()));
    }
}

fn save_memory(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let text = format!("fact {marker} about caches");
    if rng.below(4) == 0 {
        let args = ["memory", "save-summary", "--topic", marker, "--summary", &text, "--json"];
        if env.run(rng, &args).is_some() {
            env.acknowledged.lock().expect("no worker panicked").summaries.push(marker.to_owned());
        }
    } else if env.run(rng, &["memory", "save-fact", &text, "--json"]).is_some() {
        env.acknowledged.lock().expect("no worker panicked").facts.push(text);
    }
    if rng.below(3) == 0 {
        env.run(rng, &["memory", "search", "caches", "--json"]);
    }
}

/// Runs a hook, which must succeed and print JSON or nothing. Only the output of PreCompact is plain text.
fn run_hook(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let events = ["SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd", "SubagentStart"];
    let event = events[rng.below(6) as usize];
    let mut payload = json!({"session_id": format!("s{}", rng.below(20)), "hook_event_name": event, "cwd": env.project(),
        "prompt": marker, "source": "startup", "agent_id": (event == "SubagentStart").then_some(marker), "agent_type": "x"});
    if event != "SubagentStart" {
        payload.as_object_mut().expect("the payload is an object").retain(|key, _| !key.starts_with("agent"));
    }
    let mut command = env.command(&["hook", "claude-code", event]);
    let mut child = env.spawn(command.stdin(Stdio::piped()));
    let _ = child.stdin.take().expect("stdin is piped").write_all(payload.to_string().as_bytes());
    let output = child.wait_with_output().expect("wait for the hook");
    env.calls.fetch_add(1, Ordering::Relaxed);
    assert!(output.status.success(), "the hook failed: {event}");
    let is_plain = event == "PreCompact" || output.stdout.is_empty();
    assert!(
        is_plain || serde_json::from_slice::<Value>(&output.stdout).is_ok(),
        "the output of the hook is not JSON: {event}"
    );
}

/// Sometimes deletes an index; then runs a command that needs one.
fn delete_index(env: &TestEnv, rng: &mut Rng) {
    let store = env.project().join(".tanmi-workspace");
    let index = match rng.below(2) {
        0 => store.join(&env.workspace).join(".local/index.sqlite"),
        _ => store.join("memory/index.sqlite"),
    };
    if rng.below(3) == 0 {
        let _ = std::fs::remove_file(index);
    }
    env.run(rng, &["tree", "--json"]);
}

fn bind_session(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let args = ["session", "bind", "--workspace", &env.workspace, "--session", marker, "--json"];
    if env.run(rng, &args).is_some() {
        env.acknowledged.lock().expect("no worker panicked").bindings.push(marker.to_owned());
    }
    env.run(rng, &["doctor", "--fix", "--json"]);
}

/// Starts an MCP server and calls tools. Half of the servers are killed, the others end when stdin closes.
fn run_mcp_server(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let mut child = env.spawn(env.command(&["mcp"]).stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let mut request = |id: u64, method: &str, params: Value| -> Option<Value> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{message}").ok()?;
        let line = lines.next()?.ok()?;
        serde_json::from_str(&line).ok()
    };
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}});
    if request(0, "initialize", params).is_none() {
        return wait_for_exit(child);
    }
    for id in 1..=1 + rng.below(8) {
        let text = format!("fact {marker}-{id} by a server");
        let node = env.random_node(rng);
        let (name, arguments) = match rng.below(2) {
            0 => ("memory_save", json!({"content": text})),
            _ => ("log_append", json!({"nodeId": node, "log": text, "workspaceId": env.workspace})),
        };
        let response = request(id, "tools/call", json!({"name": name, "arguments": arguments}));
        env.calls.fetch_add(1, Ordering::Relaxed);
        let is_success =
            |response: Value| response["result"]["isError"] != true && response.get("result").is_some();
        if !response.is_some_and(is_success) {
            continue;
        }
        let mut acknowledged = env.acknowledged.lock().expect("no worker panicked");
        match name {
            "memory_save" => acknowledged.facts.push(text),
            _ => acknowledged.logs.push((node, text)),
        }
    }
    if rng.below(2) == 0 {
        let _ = child.kill();
        env.killed.fetch_add(1, Ordering::Relaxed);
    }
    drop(stdin);
    wait_for_exit(child);
}

/// Closes the stdin of a server and waits for its exit. Panics if it still runs after 20 seconds.
fn wait_for_exit(mut child: Child) {
    drop(child.stdin.take());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("the server did not exit after its client disconnected");
}

pub fn run(options: &Options) -> ExitCode {
    let tanmi = options.program.clone().unwrap_or_else(bench::build);
    // Not in the build folder: that is inside a Git repository, whose stores a process would use while the
    // project is moved.
    let scratch = tempfile::tempdir().expect("create a temporary folder");
    let in_repository = |dir: &Path| dir.join(".git").exists() || dir.join(".tanmi-workspace").exists();
    assert!(
        !scratch.path().ancestors().any(in_repository),
        "the temporary folder is inside a project; set TMPDIR"
    );
    let root = scratch.path().canonicalize().expect("path of the temporary folder");
    // The second user can reach the folder, as in a shared file system.
    #[cfg(unix)]
    std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("open the folder");
    let small_disk = match options.small_disk.map(|size| disk::SmallDisk::mount(&root, size)) {
        Some(Err(reason)) => {
            eprintln!("cannot mount a small disk: {reason}");
            return ExitCode::FAILURE;
        }
        Some(Ok(disk)) => Some(disk),
        None => None,
    };
    let env = TestEnv::create(tanmi, options.with.clone(), root);
    let end = Instant::now() + Duration::from_secs(options.seconds);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.workers as u64)
            .map(|number| {
                let env = &env;
                scope.spawn(move || run_worker(env, number, options.seed))
            })
            .collect();
        if small_disk.is_some() {
            scope.spawn(|| disk::fill_repeatedly(&env));
        }
        while Instant::now() < end && !workers.iter().any(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
        }
        env.stop.store(true, Ordering::Relaxed);
    });
    let violations = check::find_violations(&env);
    println!("{} s, {}", options.seconds, env.summary());
    if small_disk.is_some() {
        println!("the disk was full {} times", env.full_disk_count.load(Ordering::Relaxed));
    }
    for line in violations.iter().take(20) {
        println!("VIOLATION: {line}");
    }
    println!("{} violations", violations.len());
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
