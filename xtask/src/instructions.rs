//! `cargo xtask instructions`: counts the CPU instructions of the hook lane with callgrind, on fixed payloads
//! and homes.
//!
//! Unlike a time, the count is nearly the same on every machine, so CI can enforce a limit.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};
use tanmi_base::fs;

#[cfg(unix)]
use crate::bench::hook::JOINED;
use crate::bench::hook::{HookFixture, VARIANTS};
use crate::bench::{build, measure};

#[derive(clap::Args)]
pub struct Options {
    /// Save the current counts to xtask/instructions.json instead of comparing with it
    #[arg(long)]
    update: bool,
    /// Count this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// The accepted counts. The file is in the repository, so that a commit that changes them shows it.
const COUNTS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.json");
/// In percent.
const ALLOWED_GROWTH: f64 = 5.0;

pub fn run(options: &Options) -> ExitCode {
    let tanmi = options.program.clone().unwrap_or_else(build);
    let scratch = tempfile::Builder::new()
        .prefix("tanmi-count-")
        .rand_bytes(8)
        .tempdir()
        .expect("create a temporary folder");
    let fixture = HookFixture::new(&tanmi, scratch.path(), 10, 1);
    let mut counts = serde_json::Map::new();
    let hooks = VARIANTS.iter().map(|variant| (&fixture, variant));
    #[cfg(unix)]
    let joined = HookFixture::joined(&tanmi, scratch.path());
    #[cfg(unix)]
    let hooks = hooks.chain(JOINED.iter().map(|variant| (&joined, variant)));
    for (fixture, variant) in hooks {
        // The first run of a session writes more than the later ones, so it is not counted.
        measure::run(&mut fixture.hook(variant));
        counts.insert(variant.name.to_owned(), json!(count(&fixture.hook(variant))));
    }
    if options.update {
        let text = format!("{:#}\n", Value::Object(counts));
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::write_atomic(Path::new(COUNTS_FILE), text.as_bytes(), dir, fs::Durability::Synced)
            .expect("save the counts");
        println!("wrote {COUNTS_FILE}");
        return ExitCode::SUCCESS;
    }
    let accepted: Value =
        std::fs::read(COUNTS_FILE).ok().and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
    let mut is_any_over = false;
    for (name, count) in &counts {
        let (new, old) = (count.as_f64().unwrap_or(0.0), accepted[name].as_f64().unwrap_or(0.0));
        let growth = (new / old - 1.0) * 100.0;
        let is_over = !growth.is_finite() || growth > ALLOWED_GROWTH;
        is_any_over |= is_over;
        println!("{name:<32} {new:>12} {growth:>+7.1} %{}", if is_over { "  OVER" } else { "" });
    }
    if is_any_over {
        eprintln!(
            "the hook lane executes over {ALLOWED_GROWTH} % more instructions: reduce them, or accept the counts with \
             --update and explain why in the commit"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns the number of instructions that a hook command executes.
fn count(hook: &Command) -> u64 {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(hook.get_program())
        .args(hook.get_args());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(dir) = hook.get_current_dir() {
        command.current_dir(dir);
    }
    let payload = hook.get_envs().find(|(name, _)| *name == "PAYLOAD").and_then(|(_, path)| path);
    let payload = std::fs::File::open(Path::new(payload.expect("PAYLOAD is set"))).expect("open the payload");
    let output =
        command.stdin(payload).stdout(Stdio::null()).stderr(Stdio::piped()).output().expect("run valgrind");
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split("Collected :").nth(1));
    collected
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or_else(|| panic!("no instruction count in the output of valgrind:\n{text}"))
}
