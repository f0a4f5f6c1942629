//! Medians of interleaved runs, and peaks of memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The median time of each job, all of them taken in turns so that whatever the machine does hits them alike.
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

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

pub fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

/// A process with the scratch home, its output thrown away.
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

pub fn run(command: &mut Command) {
    let status = command.status().expect("the command starts");
    assert!(status.success(), "{command:?} failed");
}

/// The peak of resident memory of one process, in kilobytes, measured by a helper that has no other child.
pub fn peak_kb(program: &Path, args: &[&str], dir: &Path, home: &Path) -> u64 {
    let helper = std::env::current_exe().expect("this program has a path");
    let program = program.to_string_lossy();
    let mut all = vec!["peak", program.as_ref()];
    all.extend(args);
    let output = process(&helper, &all, dir, home).stdout(Stdio::piped()).output().expect("the helper runs");
    assert!(output.status.success(), "{program} {args:?} failed: there is nothing to measure");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

#[cfg(unix)]
pub fn print_peak(command: &[String]) {
    use nix::sys::resource::{UsageWho, getrusage};
    let (program, args) = command.split_first().expect("a command");
    let status = Command::new(program).args(args).stdout(Stdio::null()).status().expect("the command starts");
    assert!(status.success());
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.max_rss()));
}

#[cfg(not(unix))]
pub fn print_peak(_: &[String]) {
    println!("0");
}
