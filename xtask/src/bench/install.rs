//! Measures an installation into settings files with many keys on one line.

use std::path::Path;

use serde_json::{Map, Value};

use super::Options;
use super::measure::{medians, process, ratio, run as run_once};
use super::report::Report;

const KEYS: [usize; 2] = [1_000, 8_000];

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    let project = scratch.join("install");
    std::fs::create_dir_all(&project).expect("create the project folder");
    let mut jobs: Vec<Box<dyn FnMut()>> = Vec::new();
    for keys in KEYS {
        let home = scratch.join(format!("home-{keys}-keys"));
        let files = [".claude/settings.json", ".claude.json"].map(|file| home.join(file));
        let settings: Map<String, Value> = (0..keys).map(|n| (format!("key {n}"), n.into())).collect();
        let text = Value::Object(settings).to_string();
        let mut install = process(tanmi, &["install", "--platform", "claude-code"], &project, &home);
        jobs.push(Box::new(move || {
            files.iter().for_each(|file| write(file, &text));
            run_once(&mut install);
        }));
    }
    let mut baseline = process(Path::new("/bin/true"), &[], &project, &project);
    jobs.push(Box::new(move || run_once(&mut baseline)));
    let mut borrowed: Vec<&mut dyn FnMut()> =
        jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
    let times = medians(options.runs, &mut borrowed);
    for (keys, time) in KEYS.iter().zip(&times) {
        report.add(format!("install: {keys} keys on one line / true"), ratio(*time, times[2]), "×", None);
    }
    let name = format!("install: at {} keys / at {}", KEYS[1], KEYS[0]);
    // Eight times the keys: more than eight times the time would not be linear.
    report.add(name, ratio(times[1], times[0]), "×", Some(8.0));
}

#[allow(clippy::disallowed_methods)] // temporary file
fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("the file is in a folder")).expect("create a folder");
    std::fs::write(path, text).expect("write the settings");
}
