//! The hook lane: unbound, bound and silent, with a reminder, with custom rules, at a start; in small and large
//! workspaces and homes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::Options;
use super::measure::{self, medians, process, ratio, run as run_once};
use super::others;
use super::report::Report;
use super::workspace::{Growing, Shape};

/// One kind of run.
#[derive(Clone, Copy)]
pub struct Variant {
    pub name: &'static str,
    session: &'static str,
    event: &'static str,
    /// With the rules of [`custom_rules`].
    has_rules: bool,
    budget: Option<f64>,
}

pub const VARIANTS: &[Variant] = &[
    variant("prompt, unbound", "nobody", Some(2.0)),
    variant("prompt, bound, silent", "bound", Some(2.0)),
    variant("prompt, bound, reminder", "stuck", None),
    Variant { has_rules: true, ..variant("prompt, bound, 20 custom rules", "bound", Some(6.0)) },
    Variant { event: "SessionStart", ..variant("start, bound", "bound", None) },
];

const fn variant(name: &'static str, session: &'static str, budget: Option<f64>) -> Variant {
    Variant { name, session, event: "UserPromptSubmit", has_rules: false, budget }
}

/// A project and a home with everything the variants need.
pub struct Stage {
    tanmi: PathBuf,
    project: PathBuf,
    home: PathBuf,
    home_with_rules: PathBuf,
    payloads: PathBuf,
}

/// Fixed, so that two counts of one program are the same.
const NOW: &str = "1765432100000";

impl Stage {
    pub fn new(tanmi: &Path, scratch: &Path, nodes: usize, bindings: usize) -> Stage {
        let dir = |name: &str| scratch.join(format!("{name}-{nodes}-{bindings}"));
        let stage = Stage {
            tanmi: tanmi.to_owned(),
            project: dir("hook"),
            home: dir("home"),
            home_with_rules: dir("home-rules"),
            payloads: dir("payloads"),
        };
        for dir in [&stage.home, &stage.payloads, &stage.home_with_rules.join(".tanmi")] {
            std::fs::create_dir_all(dir).expect("a folder");
        }
        write(&stage.home_with_rules.join(".tanmi/rules.json"), &custom_rules());
        let mut growing = Growing::new(&stage.project, Shape::Star);
        while growing.len() < nodes {
            growing.create();
        }
        let (workspace, node) = growing.ids(nodes / 2);
        let cli =
            |args: &[&str]| run_once(process(tanmi, args, &stage.project, &stage.home).env("TANMI_NOW", NOW));
        for n in 0..bindings {
            cli(&["session", "bind", "--session", &format!("s{n}"), "--workspace", &workspace]);
        }
        cli(&["session", "bind", "--session", "bound", "--workspace", &workspace, "--node", &node]);
        cli(&["session", "bind", "--session", "stuck", "--workspace", &workspace, "--node", "root"]);
        cli(&["problem", "--workspace", &workspace, "--node", "root", "stuck"]);
        for variant in VARIANTS {
            let prompt = "please go on with what we were doing";
            let payload = json!({
                "session_id": variant.session, "hook_event_name": variant.event, "cwd": stage.project,
                "prompt": prompt, "source": "startup",
            });
            write(&stage.payload(variant), &payload);
        }
        stage
    }

    fn payload(&self, variant: &Variant) -> PathBuf {
        self.payloads.join(format!("{}-{}.json", variant.session, variant.event))
    }

    /// A hook with its payload in a file, so that every run reads the same.
    pub fn hook(&self, variant: &Variant) -> Command {
        let user = if variant.has_rules { &self.home_with_rules } else { &self.home };
        let payload = self.payload(variant);
        let mut command = process(&self.tanmi, &["hook", "claude-code"], &self.project, user);
        command
            .env("TANMI_HOME", self.home.join(".tanmi-workspace"))
            .env("TANMI_NOW", NOW)
            .env("PAYLOAD", &payload)
            .stdin(std::fs::File::open(payload).expect("a payload"));
        command
    }
}

/// Each is looked at, each is compiled, and none has anything to say.
fn custom_rules() -> Value {
    let rule = |n: usize| {
        json!({
            "id": format!("bench/{n}"), "priority": n,
            "match": {
                "events": ["prompt_submit"],
                "condition": format!("node.title.includes('x{n}') && !workspace.rules.includes('rule {n}')"),
            },
            "action": {"type": "reminder", "content": format!("reminder {n}")},
        })
    };
    json!({"customRules": (0..20).map(rule).collect::<Vec<_>>()})
}

fn write(path: &Path, value: &Value) {
    let mut file = std::fs::File::create(path).expect("a file");
    file.write_all(value.to_string().as_bytes()).expect("written");
}

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    let mut smallest = None;
    for (size, bindings) in [(10, 1), (1_000, 1), (10_000, 1), (10, 1_000)] {
        let name = format!("{size} nodes, {bindings} bindings");
        let stage = Stage::new(tanmi, scratch, size, bindings);
        every_variant(&stage, &name, options.runs, report);
        let mut silent = || run_once(&mut stage.hook(&VARIANTS[1]));
        match &smallest {
            None => {
                let what = format!("hook, {name}: {}", VARIANTS[1].name);
                others::compare(&what, silent, &stage.project, &stage.home, options.runs, report);
                smallest = Some(stage);
            }
            Some(smallest) if size == 10_000 => {
                let mut in_smallest = || run_once(&mut smallest.hook(&VARIANTS[1]));
                let times = medians(options.runs, &mut [&mut silent, &mut in_smallest]);
                let what = "hook, bound and silent: at 10,000 nodes / at 10";
                report.add(what, ratio(times[0], times[1]), "×", Some(1.15));
            }
            Some(_) => {}
        }
    }
}

fn every_variant(stage: &Stage, name: &str, runs: usize, report: &mut Report) {
    let mut jobs: Vec<Box<dyn FnMut()>> = Vec::new();
    for variant in VARIANTS {
        jobs.push(Box::new(move || run_once(&mut stage.hook(variant))));
    }
    let mut nothing = process(Path::new("/bin/true"), &[], &stage.project, &stage.home);
    jobs.push(Box::new(move || run_once(&mut nothing)));
    let mut borrowed: Vec<&mut dyn FnMut()> =
        jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
    let times = medians(runs, &mut borrowed);
    let baseline = times[VARIANTS.len()];
    for (variant, time) in VARIANTS.iter().zip(&times) {
        let what = format!("hook, {name}: {} / true", variant.name);
        report.add(what, ratio(*time, baseline), "×", variant.budget);
    }
    for at in [1, 3] {
        let kb = peak_kb(stage, &VARIANTS[at]);
        let what = format!("hook, {name}: peak memory, {}", VARIANTS[at].name);
        report.add(what, kb as f64 / 1024.0, "MB", Some(8.0));
    }
}

fn peak_kb(stage: &Stage, variant: &Variant) -> u64 {
    let user = if variant.has_rules { &stage.home_with_rules } else { &stage.home };
    let script = format!(
        "TANMI_HOME='{}' exec '{}' hook claude-code < '{}'",
        stage.home.join(".tanmi-workspace").display(),
        stage.tanmi.display(),
        stage.payload(variant).display()
    );
    measure::peak_kb(Path::new("/bin/sh"), &["-c", &script], &stage.project, user)
}
