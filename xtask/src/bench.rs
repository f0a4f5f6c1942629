//! `cargo xtask bench`: every number the documents name comes from here.
//!
//! A ratio is the median of interleaved runs with a warm cache, of the release build, against `/bin/true` started in
//! the same run, or against an fsynced append to the same disk. Nothing here is a test: machines differ.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tanmi_base::fs;

mod compare;
pub mod hook;
mod mcp;
pub mod measure;
mod memory;
mod others;
mod report;
mod workspace;

use report::Report;

#[derive(clap::Args)]
pub struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the JSON to this file as well
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare with what was saved before; fails if something got worse
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// How much worse is worse, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    threshold: f64,
    /// Runs per measurement
    #[arg(long, default_value_t = 200)]
    runs: usize,
    /// Numbers of nodes
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 10_000])]
    sizes: Vec<usize>,
    /// Numbers of facts
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    facts: Vec<usize>,
    /// Folder on the disk to be measured
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Only these parts: hook, workspace, memory, mcp
    #[arg(long, value_parser = ["hook", "workspace", "memory", "mcp"], value_delimiter = ',')]
    only: Vec<String>,
}

impl Options {
    fn is_wanted(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == part)
    }
}

pub fn run(options: &Options) -> ExitCode {
    // First, so that a file that cannot be used costs nobody minutes.
    let old = options.compare.as_deref().map(read_saved);
    let built = build();
    let scratch = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        // The temporary folder may be memory; the build folder is a disk.
        None => tempfile::tempdir_in(built.parent().unwrap_or(Path::new("."))),
    };
    let scratch = scratch.expect("a scratch folder");
    let tanmi = installed(&built, scratch.path());
    let mut report = Report::new();
    if options.is_wanted("hook") {
        hook::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.is_wanted("workspace") {
        workspace::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.is_wanted("memory") {
        memory::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.is_wanted("mcp") {
        mcp::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.json {
        println!("{:#}", report.to_json());
    } else {
        println!("{}", report.to_text());
    }
    if let Some(path) = &options.save {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let text = format!("{:#}\n", report.to_json());
        fs::write_atomic(path, text.as_bytes(), dir, fs::Durability::Synced).expect("saved");
    }
    let Some(old) = old else { return ExitCode::SUCCESS };
    let changes = compare::compare(&old, &report.rows(), options.threshold);
    let text = compare::to_text(&changes, options.threshold);
    if options.json {
        // The output is one JSON value.
        eprintln!("\n{text}");
    } else {
        println!("\n{text}");
    }
    if compare::is_any_worse(&changes) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn read_saved(path: &Path) -> Vec<compare::Row> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    compare::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A copy, as installing makes one. What a linker has just written lies in the page cache in single pages, which take
/// longer to map at every start than the large ones of a file that was copied or read from the disk.
#[allow(clippy::disallowed_methods)] // nobody's data
fn installed(built: &Path, scratch: &Path) -> PathBuf {
    let tanmi = scratch.join("tanmi");
    std::fs::copy(built, &tanmi).expect("copied");
    tanmi
}

/// The release build, as it is shipped.
pub fn build() -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| String::from("cargo"));
    let output = std::process::Command::new(cargo)
        .args(["build", "--release", "--package", "tanmi", "--message-format", "json-render-diagnostics"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "the release build failed");
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut executable = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executable.next_back().expect("cargo names the executable")
}
