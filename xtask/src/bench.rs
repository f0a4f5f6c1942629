//! `cargo xtask bench`: measures the release build. Every number in the documents comes from here.
//!
//! A ratio is the median of interleaved runs with a warm cache. It compares the release build with `/bin/true` started
//! in the same run, or with an fsynced append to the same disk. These are not tests, because machines differ.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tanmi_base::fs;

mod compare;
pub mod hook;
mod install;
mod mcp;
pub mod measure;
mod memory;
mod others;
mod report;
#[cfg(unix)]
mod team;
mod workspace;

use report::Report;

#[derive(clap::Args)]
pub struct Options {
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Save the results to this file as JSON, for a later --compare
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare with saved results and fail if a measurement got worse
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// Fail only if a measurement got worse by more than this, in percent of the saved value
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    threshold: f64,
    /// Number of runs per measurement
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    runs: usize,
    /// Workspace sizes to measure, in nodes (comma-separated)
    #[arg(long, value_name = "NODES", value_delimiter = ',', default_values_t = [10, 1_000, 10_000])]
    sizes: Vec<usize>,
    /// Memory sizes to measure, in facts (comma-separated)
    #[arg(long, value_name = "FACTS", value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    facts: Vec<usize>,
    /// Measure this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder for temporary files; its disk is measured [default: the build folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Run only these parts (comma-separated) [default: all]
    #[arg(long, value_name = "PART", value_parser = ["hook", "workspace", "memory", "mcp", "install", "team"], value_delimiter = ',')]
    only: Vec<String>,
}

impl Options {
    fn includes(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == part)
    }
}

pub fn run(options: &Options) -> ExitCode {
    // Read first, so that an unusable file fails before the measurements, which take minutes.
    let old = options.compare.as_deref().map(read_saved);
    let built = options.program.clone().unwrap_or_else(build);
    let scratch = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        // The system's temporary folder may be in memory; the build folder is on a disk.
        None => tempfile::tempdir_in(built.parent().unwrap_or(Path::new("."))),
    };
    let scratch = scratch.expect("create a temporary folder");
    let tanmi = copy_program(&built, scratch.path());
    let mut report = Report::new();
    if options.includes("hook") {
        hook::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.includes("workspace") {
        workspace::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.includes("memory") {
        memory::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.includes("mcp") {
        mcp::run(&tanmi, scratch.path(), options, &mut report);
    }
    if options.includes("install") {
        install::run(&tanmi, scratch.path(), options, &mut report);
    }
    #[cfg(unix)]
    if options.includes("team") {
        team::run(&tanmi, options, &mut report);
    }
    if options.json {
        println!("{:#}", report.to_json());
    } else {
        println!("{}", report.to_text());
    }
    if let Some(path) = &options.save {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let text = format!("{:#}\n", report.to_json());
        fs::write_atomic(path, text.as_bytes(), dir, fs::Durability::Synced).expect("save the results");
    }
    let Some(old) = old else { return ExitCode::SUCCESS };
    let changes = compare::compare(&old, &report.rows(), options.threshold);
    let text = compare::to_text(&changes, options.threshold);
    if options.json {
        // Standard output must stay one JSON value.
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

/// Copies the program to the scratch folder, as an installation does, and returns the path of the copy.
///
/// A file that the linker has just written is in the page cache as single pages. At every start they take longer to map
/// than the large pages of a file that was copied or read from the disk.
#[allow(clippy::disallowed_methods)] // temporary file
fn copy_program(built: &Path, scratch: &Path) -> PathBuf {
    let tanmi = scratch.join("tanmi");
    std::fs::copy(built, &tanmi).expect("copy the program");
    tanmi
}

/// Builds the program with the release profile and returns its path.
pub fn build() -> PathBuf {
    let output = crate::cargo::command()
        .args(["build", "--release", "--package", "tanmi", "--message-format", "json-render-diagnostics"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("run cargo");
    assert!(output.status.success(), "the release build failed");
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut executable = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executable.next_back().expect("cargo prints the path of the executable")
}
