//! Measures the hook lane: unbound, bound without output, with and without a focus, with a reminder, with
//! custom rules and at session start, in workspaces and homes of several sizes, and in a joined project.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::Options;
use super::measure::{self, medians, process, ratio, run as run_once};
use super::others;
use super::report::Report;
use super::workspace::{GrowingWorkspace, Shape};

/// One kind of hook run.
#[derive(Clone, Copy)]
pub struct Variant {
    pub name: &'static str,
    session: &'static str,
    event: &'static str,
    /// The user has the rules of [`custom_rules`].
    has_rules: bool,
    /// The highest acceptable ratio to /bin/true.
    budget: Option<f64>,
}

pub const VARIANTS: &[Variant] = &[
    variant("prompt, unbound", "unbound", Some(1.7)),
    variant("prompt, bound, silent", "bound", Some(1.7)),
    variant("prompt, bound, reminder", "stuck", None),
    Variant { has_rules: true, ..variant("prompt, bound, 20 custom rules", "bound", Some(4.0)) },
    Variant { event: "SessionStart", ..variant("start, bound", "bound", None) },
];

/// Measured here only; its instructions are not counted.
const NO_FOCUS: Variant = variant("prompt, bound, no focus", "s0", Some(2.2));

/// In a project that joined a team.
#[cfg(unix)]
pub const JOINED: &[Variant] = &[
    variant("prompt, bound, silent, joined", "bound", Some(2.0)),
    Variant { event: "SessionStart", ..variant("start, bound, joined", "bound", None) },
];

fn all_variants() -> impl Iterator<Item = &'static Variant> {
    VARIANTS.iter().chain([&NO_FOCUS])
}

const fn variant(name: &'static str, session: &'static str, budget: Option<f64>) -> Variant {
    Variant { name, session, event: "UserPromptSubmit", has_rules: false, budget }
}

/// A project and homes with everything that the variants need.
pub struct HookFixture {
    tanmi: PathBuf,
    project: PathBuf,
    home: PathBuf,
    home_with_rules: PathBuf,
    payloads: PathBuf,
}

/// Fixed, so that two runs of one program execute the same number of instructions.
const NOW: &str = "1765432100000";

impl HookFixture {
    pub fn new(tanmi: &Path, scratch: &Path, nodes: usize, bindings: usize) -> HookFixture {
        let dir = |name: &str| scratch.join(format!("{name}-{nodes}-{bindings}"));
        let fixture = HookFixture::in_folders(tanmi, &dir("hook"), &dir("home"), &dir("home-rules"));
        let (workspace, node) = create_nodes(&fixture.project, nodes);
        for n in 0..bindings {
            fixture.run(&["session", "bind", "--session", &format!("s{n}"), "--workspace", &workspace]);
        }
        fixture.bind("bound", &workspace, &node);
        fixture.bind("stuck", &workspace, "root");
        fixture.run(&["problem", "--workspace", &workspace, "--node", "root", "stuck"]);
        fixture
    }

    /// Returns a project that joined a team and has ten nodes in its replica. There is no server: hooks do not ask it.
    #[cfg(unix)]
    pub fn joined(tanmi: &Path, scratch: &Path) -> HookFixture {
        let dir = |name: &str| scratch.join(format!("{name}-joined"));
        let fixture = HookFixture::in_folders(tanmi, &dir("hook"), &dir("home"), &dir("home-rules"));
        let store = fixture.home.join(".tanmi-workspace");
        let member = crate::team::machine::join(&store, &fixture.project, 9, "ada", "laptop", "token");
        let (workspace, node) = create_nodes(&member.replica(&store), 10);
        fixture.bind("bound", &workspace, &node);
        fixture
    }

    /// Returns the checkout of a machine with a session that is bound to a node.
    #[cfg(unix)]
    pub fn of_machine(
        tanmi: &Path,
        machine: &crate::team::machine::Machine,
        workspace: &str,
        node: &str,
    ) -> HookFixture {
        let root = machine.root();
        let fixture = HookFixture::in_folders(tanmi, &machine.checkout(), &root, &root.join("rules"));
        fixture.bind("bound", workspace, node);
        fixture
    }

    fn in_folders(tanmi: &Path, project: &Path, home: &Path, home_with_rules: &Path) -> HookFixture {
        let fixture = HookFixture {
            tanmi: tanmi.to_owned(),
            project: project.to_owned(),
            home: home.to_owned(),
            home_with_rules: home_with_rules.to_owned(),
            payloads: home.join("payloads"),
        };
        for dir in [project, home, &fixture.payloads, &home_with_rules.join(".tanmi")] {
            std::fs::create_dir_all(dir).expect("create a folder");
        }
        write(&home_with_rules.join(".tanmi/rules.json"), &custom_rules());
        for variant in all_variants() {
            let prompt = "please go on with what we were doing";
            let payload = json!({
                "session_id": variant.session, "hook_event_name": variant.event, "cwd": project,
                "prompt": prompt, "source": "startup",
            });
            write(&fixture.payload(variant), &payload);
        }
        fixture
    }

    fn run(&self, args: &[&str]) {
        run_once(process(&self.tanmi, args, &self.project, &self.home).env("TANMI_NOW", NOW));
    }

    fn bind(&self, session: &str, workspace: &str, node: &str) {
        self.run(&["session", "bind", "--session", session, "--workspace", workspace, "--node", node]);
    }

    fn payload(&self, variant: &Variant) -> PathBuf {
        self.payloads.join(format!("{}-{}.json", variant.session, variant.event))
    }

    /// Returns a hook command. It reads its payload from a file, so that every run gets the same bytes.
    pub fn hook(&self, variant: &Variant) -> Command {
        let home = if variant.has_rules { &self.home_with_rules } else { &self.home };
        let payload = self.payload(variant);
        let mut command = process(&self.tanmi, &["hook", "claude-code"], &self.project, home);
        command
            .env("TANMI_HOME", self.home.join(".tanmi-workspace"))
            .env("TANMI_NOW", NOW)
            .env("PAYLOAD", &payload)
            .stdin(std::fs::File::open(payload).expect("open the payload"));
        command
    }
}

/// Creates a workspace with this many nodes. Returns its id and the id of one of them.
fn create_nodes(project: &Path, nodes: usize) -> (String, String) {
    let mut growing = GrowingWorkspace::new(project, Shape::Star);
    while growing.len() < nodes {
        growing.create();
    }
    growing.ids(nodes / 2)
}

/// Returns 20 rules. Every condition is compiled and evaluated, and none is true.
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
    let mut file = std::fs::File::create(path).expect("create a file");
    file.write_all(value.to_string().as_bytes()).expect("write the file");
}

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    let mut smallest = None;
    for (size, bindings) in [(10, 1), (1_000, 1), (10_000, 1), (100_000, 1), (10, 1_000)] {
        let sizes = format!("{size} nodes, {bindings} bindings");
        let fixture = HookFixture::new(tanmi, scratch, size, bindings);
        measure_variants(&fixture, &sizes, options.runs, report);
        match &smallest {
            None => {
                let name = format!("hook, {sizes}: {}", VARIANTS[1].name);
                let silent = || run_once(&mut fixture.hook(&VARIANTS[1]));
                others::compare(&name, silent, &fixture.project, &fixture.home, options.runs, report);
                smallest = Some(fixture);
            }
            Some(smallest) if size >= 10_000 => {
                // Their time must not depend on the number of nodes.
                for variant in [&VARIANTS[1], &NO_FOCUS] {
                    let mut large = || run_once(&mut fixture.hook(variant));
                    let mut small = || run_once(&mut smallest.hook(variant));
                    let times = medians(options.runs, &mut [&mut large, &mut small]);
                    let name = format!("hook, {}: at {size} nodes / at 10", variant.name);
                    report.add(name, ratio(times[0], times[1]), "×", Some(1.15));
                }
            }
            Some(_) => {}
        }
    }
}

/// Measures hooks of a joined project whose server is in a state.
#[cfg(unix)]
pub fn measure_joined(fixture: &HookFixture, state: &str, runs: usize, report: &mut Report) {
    for variant in JOINED {
        // The first run of a session is told the context.
        run_once(&mut fixture.hook(variant));
        let output = fixture.hook(variant).stdout(std::process::Stdio::piped()).output().expect("run a hook");
        assert_eq!(output.stdout.is_empty(), variant.event == "UserPromptSubmit", "{}", variant.name);
    }
    measure_ratios(fixture, &JOINED.iter().collect::<Vec<_>>(), state, runs, report);
}

/// Measures each variant against /bin/true.
fn measure_ratios(
    fixture: &HookFixture,
    variants: &[&Variant],
    title: &str,
    runs: usize,
    report: &mut Report,
) {
    let mut jobs: Vec<Box<dyn FnMut()>> = Vec::new();
    for &variant in variants {
        jobs.push(Box::new(move || run_once(&mut fixture.hook(variant))));
    }
    let mut baseline = process(Path::new("/bin/true"), &[], &fixture.project, &fixture.home);
    jobs.push(Box::new(move || run_once(&mut baseline)));
    let mut borrowed: Vec<&mut dyn FnMut()> =
        jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
    let times = medians(runs, &mut borrowed);
    let baseline = times[times.len() - 1];
    for (variant, time) in variants.iter().zip(&times) {
        let name = format!("hook, {title}: {} / true", variant.name);
        report.add(name, ratio(*time, baseline), "×", variant.budget);
    }
}

fn measure_variants(fixture: &HookFixture, sizes: &str, runs: usize, report: &mut Report) {
    measure_ratios(fixture, &all_variants().collect::<Vec<_>>(), sizes, runs, report);
    for (at, budget) in [(1, Some(8.0)), (3, None)] {
        let kb = peak_kb(fixture, &VARIANTS[at]);
        let name = format!("hook, {sizes}: peak memory, {}", VARIANTS[at].name);
        report.add(name, kb as f64 / 1024.0, "MB", budget);
    }
}

/// Returns the peak resident memory of a variant in kilobytes.
fn peak_kb(fixture: &HookFixture, variant: &Variant) -> u64 {
    let home = if variant.has_rules { &fixture.home_with_rules } else { &fixture.home };
    let script = format!(
        "TANMI_HOME='{}' exec '{}' hook claude-code < '{}'",
        fixture.home.join(".tanmi-workspace").display(),
        fixture.tanmi.display(),
        fixture.payload(variant).display()
    );
    measure::peak_kb(Path::new("/bin/sh"), &["-c", &script], &fixture.project, home)
}
