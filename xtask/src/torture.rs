//! `cargo xtask torture`: many processes of every kind on one home and one project, killed at any moment, with editors and
//! deleted indexes in between; then every promise is checked. What was acknowledged must be there, once.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench;
use crate::dice::Dice;

mod check;
mod disk;
mod http;

#[derive(clap::Args)]
pub struct Options {
    /// For how long
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Workers side by side
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// Makes the same choices again, as far as the system lets it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// On a disk of so many megabytes that is full again and again; takes the right to mount one
    #[arg(long, value_name = "MB")]
    small_disk: Option<u64>,
}

/// What was acknowledged.
#[derive(Default)]
struct Promises {
    nodes: Vec<String>,
    /// Node and text.
    logs: Vec<(String, String)>,
    facts: Vec<String>,
    summaries: Vec<String>,
    /// Node and note, written by an editor.
    notes: Vec<(String, String)>,
    bindings: Vec<String>,
}

struct World {
    tanmi: PathBuf,
    root: PathBuf,
    workspace: String,
    promises: Mutex<Promises>,
    stop: AtomicBool,
    done: AtomicU64,
    killed: AtomicU64,
    /// How often the disk was full.
    full: AtomicU64,
    edits: Mutex<()>,
}

impl World {
    /// A home and a project with a workspace, and nobody there yet.
    fn begin(tanmi: PathBuf, root: PathBuf) -> World {
        for dir in ["home", "project"] {
            std::fs::create_dir_all(root.join(dir)).expect("a folder");
        }
        let mut world = World {
            tanmi,
            root,
            workspace: String::new(),
            promises: Mutex::default(),
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            killed: AtomicU64::new(0),
            full: AtomicU64::new(0),
            edits: Mutex::new(()),
        };
        // Named, because the build folder is inside a repository.
        let project = world.project().display().to_string();
        let args =
            ["workspace", "init", "--name", "Torture", "--goal", "survive", "--project", &project, "--json"];
        let mut dice = Dice(7);
        // The dice may kill this one too.
        let made = loop {
            if let Some(made) = world.run(&mut dice, &args) {
                break made;
            }
        };
        world.workspace = made["workspaceId"].as_str().expect("an id").to_owned();
        world
    }

    fn summary(&self) -> String {
        let promises = self.promises.lock().expect("promises");
        format!(
            "{} processes and calls, {} killed: {} nodes, {} log lines, {} facts, {} summaries, {} edits, {} bindings",
            self.done.load(Ordering::Relaxed),
            self.killed.load(Ordering::Relaxed),
            promises.nodes.len(),
            promises.logs.len(),
            promises.facts.len(),
            promises.summaries.len(),
            promises.notes.len(),
            promises.bindings.len(),
        )
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.tanmi);
        command.args(args).current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// What it printed, if it lived to its end and succeeded.
    fn run(&self, dice: &mut Dice, args: &[&str]) -> Option<Value> {
        let mut child = self.command(args).spawn().ok()?;
        if dice.roll(6) == 0 {
            std::thread::sleep(Duration::from_micros(dice.roll(12_000)));
            let _ = child.kill();
            self.killed.fetch_add(1, Ordering::Relaxed);
        }
        let output = child.wait_with_output().ok()?;
        self.done.fetch_add(1, Ordering::Relaxed);
        // Killed or refused: nothing was promised.
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    }

    fn some_node(&self, dice: &mut Dice) -> String {
        let promises = self.promises.lock().expect("promises");
        match promises.nodes.len() as u64 {
            0 => String::from("root"),
            count => promises.nodes[dice.roll(count) as usize].clone(),
        }
    }

    fn node_file(&self, node: &str) -> PathBuf {
        self.project().join(".tanmi-workspace").join(&self.workspace).join("nodes").join(node).join("Node.md")
    }
}

fn worker(world: &World, number: u64, seed: u64) {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ (seed * 1_000_003 + number + 1));
    let mut count = 0;
    while !world.stop.load(Ordering::Relaxed) {
        count += 1;
        let mark = format!("w{number}-{count}");
        match dice.roll(13) {
            0..3 => create(world, &mut dice, &mark),
            3..5 => log(world, &mut dice, &mark),
            5..7 => remember(world, &mut dice, &mark),
            7 => hook(world, &mut dice, &mark),
            8 => edit(world, &mut dice, &mark),
            9 => lose_indexes(world, &mut dice),
            10 => session(world, &mut dice, &mark),
            11 => http::serve(world, &mut dice, &mark),
            _ => serve(world, &mut dice, &mark),
        }
    }
}

fn create(world: &World, dice: &mut Dice, mark: &str) {
    let args = [
        "node",
        "create",
        "--parent",
        "root",
        "--type",
        "execution",
        "--title",
        mark,
        "--requirement",
        "r",
        "--json",
    ];
    if let Some(made) = world.run(dice, &args) {
        let id = made["nodeId"].as_str().expect("an id").to_owned();
        world.promises.lock().expect("promises").nodes.push(id);
    }
}

fn log(world: &World, dice: &mut Dice, mark: &str) {
    let node = world.some_node(dice);
    if world.run(dice, &["log", "--node", &node, mark, "--json"]).is_some() {
        world.promises.lock().expect("promises").logs.push((node, mark.to_owned()));
    }
}

fn remember(world: &World, dice: &mut Dice, mark: &str) {
    let text = format!("fact {mark} about caches");
    if dice.roll(4) == 0 {
        let args = ["memory", "save-summary", "--topic", mark, "--summary", &text, "--json"];
        if world.run(dice, &args).is_some() {
            world.promises.lock().expect("promises").summaries.push(mark.to_owned());
        }
    } else if world.run(dice, &["memory", "save-fact", &text, "--json"]).is_some() {
        world.promises.lock().expect("promises").facts.push(text);
    }
    if dice.roll(3) == 0 {
        world.run(dice, &["memory", "search", "caches", "--json"]);
    }
}

/// A hook answers with JSON or nothing, whatever happens around it.
fn hook(world: &World, dice: &mut Dice, mark: &str) {
    let events = ["SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd", "SubagentStart"];
    let event = events[dice.roll(6) as usize];
    let mut payload = json!({"session_id": format!("s{}", dice.roll(20)), "hook_event_name": event, "cwd": world.project(),
        "prompt": mark, "source": "startup", "agent_id": (event == "SubagentStart").then_some(mark), "agent_type": "x"});
    if event != "SubagentStart" {
        payload.as_object_mut().expect("an object").retain(|key, _| !key.starts_with("agent"));
    }
    let mut command = world.command(&["hook", "claude-code", event]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("a hook");
    let _ = child.stdin.take().expect("stdin").write_all(payload.to_string().as_bytes());
    let output = child.wait_with_output().expect("a hook");
    world.done.fetch_add(1, Ordering::Relaxed);
    assert!(output.status.success(), "a hook failed its agent: {event}");
    let is_plain = event == "PreCompact" || output.stdout.is_empty();
    assert!(
        is_plain || serde_json::from_slice::<Value>(&output.stdout).is_ok(),
        "a hook answered no JSON: {event}"
    );
}

/// As editors save: another file in the place of the old one. Two people do not edit one file at once.
#[allow(clippy::disallowed_methods)]
fn edit(world: &World, dice: &mut Dice, mark: &str) {
    let _one = world.edits.lock().expect("edits");
    let node = world.some_node(dice);
    let path = world.node_file(&node);
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    let temp = path.with_file_name(format!(".{mark}.swp"));
    let edited = format!("{}\n\n## Aside\n\n{mark}\n", text.trim_end());
    if text.contains("## Aside") {
        return;
    }
    if std::fs::write(&temp, edited).is_err() {
        let _ = std::fs::remove_file(&temp);
        return;
    }
    // What somebody wrote in the moment between is lost by the editor, not by us: then it does not count.
    let is_same = std::fs::read_to_string(&path).is_ok_and(|now| now == text);
    if is_same && std::fs::rename(&temp, &path).is_ok() {
        let is_there = std::fs::read_to_string(&path).is_ok_and(|now| now.contains(mark));
        if is_there {
            world.promises.lock().expect("promises").notes.push((node, mark.to_owned()));
        }
    } else {
        let _ = std::fs::remove_file(&temp);
    }
}

fn lose_indexes(world: &World, dice: &mut Dice) {
    let store = world.project().join(".tanmi-workspace");
    let index = match dice.roll(2) {
        0 => store.join(&world.workspace).join(".local/index.sqlite"),
        _ => store.join("memory/index.sqlite"),
    };
    if dice.roll(3) == 0 {
        let _ = std::fs::remove_file(index);
    }
    world.run(dice, &["tree", "--json"]);
}

fn session(world: &World, dice: &mut Dice, mark: &str) {
    let args = ["session", "bind", "--workspace", &world.workspace, "--session", mark, "--json"];
    if world.run(dice, &args).is_some() {
        world.promises.lock().expect("promises").bindings.push(mark.to_owned());
    }
    world.run(dice, &["doctor", "--fix", "--json"]);
}

/// A server with some calls; half of them are killed.
fn serve(world: &World, dice: &mut Dice, mark: &str) {
    let mut child = world.command(&["mcp"]).stdin(Stdio::piped()).spawn().expect("a server");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut ask = |id: u64, method: &str, params: Value| -> Option<Value> {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{request}").ok()?;
        let line = lines.next()?.ok()?;
        serde_json::from_str(&line).ok()
    };
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}});
    if ask(0, "initialize", hello).is_none() {
        return reap(child);
    }
    for id in 1..=1 + dice.roll(8) {
        let text = format!("fact {mark}-{id} by a server");
        let node = world.some_node(dice);
        let (name, arguments) = match dice.roll(2) {
            0 => ("memory_save", json!({"content": text})),
            _ => ("log_append", json!({"nodeId": node, "log": text, "workspaceId": world.workspace})),
        };
        let answer = ask(id, "tools/call", json!({"name": name, "arguments": arguments}));
        world.done.fetch_add(1, Ordering::Relaxed);
        let is_good = |answer: Value| answer["result"]["isError"] != true && answer.get("result").is_some();
        if !answer.is_some_and(is_good) {
            continue;
        }
        let mut promises = world.promises.lock().expect("promises");
        match name {
            "memory_save" => promises.facts.push(text),
            _ => promises.logs.push((node, text)),
        }
    }
    if dice.roll(2) == 0 {
        let _ = child.kill();
        world.killed.fetch_add(1, Ordering::Relaxed);
    }
    drop(stdin);
    reap(child);
}

fn reap(mut child: Child) {
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
    panic!("a server outlived its client");
}

pub fn run(options: &Options) -> ExitCode {
    let tanmi = bench::build();
    let scratch = tempfile::tempdir_in(tanmi.parent().unwrap_or(Path::new("."))).expect("a scratch folder");
    let root = scratch.path().canonicalize().expect("a folder");
    let small = match options.small_disk.map(|size| disk::SmallDisk::mount(&root, size)) {
        Some(Err(reason)) => {
            eprintln!("no small disk here: {reason}");
            return ExitCode::FAILURE;
        }
        Some(Ok(disk)) => Some(disk),
        None => None,
    };
    let world = World::begin(tanmi, root);
    let end = Instant::now() + Duration::from_secs(options.seconds);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.workers as u64)
            .map(|number| {
                let world = &world;
                scope.spawn(move || worker(world, number, options.seed))
            })
            .collect();
        if small.is_some() {
            scope.spawn(|| disk::fill(&world));
        }
        while Instant::now() < end && !workers.iter().any(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
        }
        world.stop.store(true, Ordering::Relaxed);
    });
    let broken = check::everything(&world);
    println!("{} s, {}", options.seconds, world.summary());
    if small.is_some() {
        println!("the disk was full {} times", world.full.load(Ordering::Relaxed));
    }
    for line in broken.iter().take(20) {
        println!("BROKEN: {line}");
    }
    println!("{} broken promises", broken.len());
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
