//! Measures times and peak memory of processes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the median time of each job. The jobs take turns, so that other load on the machine affects all of
/// them alike.
pub fn medians(runs: usize, jobs: &mut [&mut dyn FnMut()]) -> Vec<Duration> {
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(runs); jobs.len()];
    for _ in 0..runs {
        for (job, times) in jobs.iter_mut().zip(&mut times) {
            let start = Instant::now();
            job();
            times.push(start.elapsed());
        }
    }
    times.into_iter().map(median).collect()
}

pub fn median(times: Vec<Duration>) -> Duration {
    percentile(times, 50)
}

/// Returns the time that this percentage of the times is below.
pub fn percentile(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default()
}

pub fn ratio(time: Duration, baseline: Duration) -> f64 {
    time.as_secs_f64() / baseline.as_secs_f64()
}

/// Returns a command with the given home as its only state; its output is discarded.
pub fn process(program: &Path, args: &[&str], dir: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs a command and panics if it fails.
pub fn run(command: &mut Command) {
    let status = command.status().expect("start the command");
    assert!(status.success(), "{command:?} failed");
}

/// Returns the peak resident memory of one process in kilobytes.
///
/// A separate `xtask peak` process measures it, because the operating system reports the maximum of all children.
pub fn peak_kb(program: &Path, args: &[&str], dir: &Path, home: &Path) -> u64 {
    let helper = std::env::current_exe().expect("path of this program");
    let program = program.to_string_lossy();
    let mut helper_args = vec!["peak", program.as_ref()];
    helper_args.extend(args);
    let output =
        process(&helper, &helper_args, dir, home).stdout(Stdio::piped()).output().expect("run the helper");
    assert!(output.status.success(), "{program} {args:?} failed");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("the helper prints a number")
}

/// Returns a number of megabytes that the system tells about a process: the value of a key in a file below `/proc`.
pub fn process_mb(pid: u32, file: &str, key: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0 kB");
    line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Runs a command and prints its peak resident memory in kilobytes.
#[cfg(unix)]
pub fn print_peak(command: &[String]) {
    use nix::sys::resource::{UsageWho, getrusage};
    let (program, args) = command.split_first().expect("usage: xtask peak COMMAND");
    let status = Command::new(program).args(args).stdout(Stdio::null()).status().expect("start the command");
    assert!(status.success());
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.max_rss()));
}

#[cfg(not(unix))]
pub fn print_peak(_: &[String]) {
    println!("0");
}
