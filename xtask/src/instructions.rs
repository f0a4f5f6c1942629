//! `cargo xtask instructions`: how many instructions the hook lane executes, counted by callgrind on a fixed payload and
//! home. Unlike a time, the count is nearly the same on every machine, so CI can hold the lane to it.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};
use tanmi_base::fs;

use crate::bench::hook::{Stage, VARIANTS};
use crate::bench::{build, measure};

#[derive(clap::Args)]
pub struct Options {
    /// Write the present counts into the repository
    #[arg(long)]
    update: bool,
}

/// Beside this program, so that a change of it shows in the same commit.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.json");
/// Percent.
const ALLOWED_GROWTH: f64 = 5.0;

pub fn run(options: &Options) -> ExitCode {
    let tanmi = build();
    let scratch = tempfile::Builder::new().prefix("tanmi-count-").rand_bytes(8).tempdir().expect("a folder");
    let stage = Stage::new(&tanmi, scratch.path(), 10, 1);
    let mut counts = serde_json::Map::new();
    for variant in VARIANTS {
        // The first run of a session writes more than the ones after it.
        measure::run(&mut stage.hook(variant));
        counts.insert(variant.name.to_owned(), json!(count(&stage.hook(variant))));
    }
    if options.update {
        let text = format!("{:#}\n", Value::Object(counts));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::write_atomic(Path::new(KEPT), text.as_bytes(), here, fs::Durability::Synced).expect("written");
        println!("written to {KEPT}");
        return ExitCode::SUCCESS;
    }
    let kept: Value =
        std::fs::read(KEPT).ok().and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
    let mut is_over = false;
    for (name, count) in &counts {
        let (now, then) = (count.as_f64().unwrap_or(0.0), kept[name].as_f64().unwrap_or(0.0));
        let growth = (now / then - 1.0) * 100.0;
        let over = !growth.is_finite() || growth > ALLOWED_GROWTH;
        is_over |= over;
        println!("{name:<32} {now:>12} {growth:>+7.1} %{}", if over { "  OVER" } else { "" });
    }
    if is_over {
        eprintln!(
            "the hook lane grew by more than {ALLOWED_GROWTH} %: make it smaller, or say why and run with --update"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What callgrind says it collected.
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
    let payload = std::fs::File::open(Path::new(payload.expect("a payload"))).expect("a payload");
    let output =
        command.stdin(payload).stdout(Stdio::null()).stderr(Stdio::piped()).output().expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split("Collected :").nth(1));
    collected.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no count in\n{text}"))
}
