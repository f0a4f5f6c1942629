//! The hook lane: unbound, bound and silent, bound with a reminder, at a start; in small and large workspaces and homes.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Options;
use super::measure::{self, medians, process, ratio, run as run_once};
use super::report::Report;
use super::workspace::{Growing, Shape};

/// A hook with its payload in a file, so that every run reads the same.
fn hook(tanmi: &Path, project: &Path, home: &Path, payload: &Path) -> Command {
    let mut command = process(tanmi, &["hook", "claude-code"], project, home);
    command.stdin(std::fs::File::open(payload).expect("a payload"));
    command
}

fn write(path: &Path, value: &Value) {
    let mut file = std::fs::File::create(path).expect("a file");
    file.write_all(value.to_string().as_bytes()).expect("written");
}

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    let mut silent = Vec::new();
    for (size, bindings) in [(10, 1), (10_000, 1), (10, 1_000)] {
        let name = format!("{size} nodes, {bindings} bindings");
        let project = scratch.join(format!("hook-{size}-{bindings}"));
        let home = scratch.join(format!("hook-home-{size}-{bindings}"));
        std::fs::create_dir_all(&home).expect("a home");
        let mut growing = Growing::new(&project, Shape::Star);
        while growing.len() < size {
            growing.create();
        }
        let (workspace, node) = growing.ids(size / 2);
        let cli = |args: &[&str]| run_once(&mut process(tanmi, args, &project, &home));
        for n in 0..bindings {
            cli(&["session", "bind", "--session", &format!("s{n}"), "--workspace", &workspace]);
        }
        cli(&["session", "bind", "--session", "bound", "--workspace", &workspace, "--node", &node]);
        cli(&["session", "bind", "--session", "stuck", "--workspace", &workspace, "--node", "root"]);
        cli(&["problem", "--workspace", &workspace, "--node", "root", "stuck"]);

        let payload = |session: &str, event: &str| {
            let path = scratch.join(format!("{session}-{event}.json"));
            let prompt = "please go on with what we were doing";
            write(
                &path,
                &json!({"session_id": session, "hook_event_name": event, "cwd": project, "prompt": prompt, "source": "startup"}),
            );
            path
        };
        let variants = [
            ("prompt, unbound", payload("nobody", "UserPromptSubmit"), Some(2.0)),
            ("prompt, bound, silent", payload("bound", "UserPromptSubmit"), Some(2.0)),
            ("prompt, bound, reminder", payload("stuck", "UserPromptSubmit"), None),
            ("start, bound", payload("bound", "SessionStart"), None),
        ];
        let mut jobs: Vec<Box<dyn FnMut()>> = Vec::new();
        for (_, path, _) in &variants {
            let (project, home) = (project.clone(), home.clone());
            let path = path.clone();
            jobs.push(Box::new(move || run_once(&mut hook(tanmi, &project, &home, &path))));
        }
        let mut nothing = process(Path::new("/bin/true"), &[], &project, &home);
        jobs.push(Box::new(move || run_once(&mut nothing)));
        let mut borrowed: Vec<&mut dyn FnMut()> =
            jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
        let times = medians(options.runs, &mut borrowed);
        let baseline = times[variants.len()];
        for ((what, _, budget), time) in variants.iter().zip(&times) {
            report.add(format!("hook, {name}: {what} / true"), ratio(*time, baseline), "×", *budget);
        }
        silent.push(times[1]);
        let kb = peak_kb(tanmi, &project, &home, &variants[1].1);
        report.add(format!("hook, {name}: peak memory"), kb as f64 / 1024.0, "MB", Some(8.0));
    }
    report.add(
        "hook, bound and silent: at 10,000 nodes / at 10",
        ratio(silent[1], silent[0]),
        "×",
        Some(1.15),
    );
}

fn peak_kb(tanmi: &Path, project: &Path, home: &Path, payload: &Path) -> u64 {
    let script = format!("exec '{}' hook claude-code < '{}'", tanmi.display(), payload.display());
    measure::peak_kb(Path::new("/bin/sh"), &["-c", &script], project, home)
}
