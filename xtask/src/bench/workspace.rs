//! Measures workspaces of several sizes, shaped as a star and as a tree with ten children per node.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tanmi_base::Millis;
use tanmi_workspace::command::{Command, NoLiveSessions};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{self, NewNode, NewWorkspace, OpContext, RulesHashCheck};
use tanmi_workspace::store::{FileStore, Workspaces};

use super::Options;
use super::measure::{self, medians, process, ratio, run as run_once};
use super::report::Report;

#[derive(Clone, Copy)]
pub enum Shape {
    /// All nodes are children of the root.
    Star,
    /// Every node has ten children.
    Tree,
}

const NOW: Millis = 1_765_432_100_000;

fn op() -> OpContext {
    OpContext { now: NOW, operator: Operator::Ai, auto_log: true, moves_focus: true }
}

/// A workspace to which nodes are added one at a time.
pub struct GrowingWorkspace {
    store: FileStore,
    id: WorkspaceId,
    shape: Shape,
    nodes: Vec<NodeId>,
}

impl GrowingWorkspace {
    pub fn new(project: &Path, shape: Shape) -> GrowingWorkspace {
        std::fs::create_dir_all(project).expect("create the project folder");
        let store = FileStore::in_folder(project);
        let new = NewWorkspace {
            name: "bench".into(),
            goal: "measure".into(),
            rules: vec!["a rule".into()],
            docs: Vec::new(),
        };
        let workspace = ops::init(&store, new, &op()).expect("create the workspace");
        GrowingWorkspace { store, id: workspace.id, shape, nodes: vec![NodeId::root()] }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the id of the workspace and of the nth node.
    pub fn ids(&self, n: usize) -> (String, String) {
        (self.id.to_string(), self.nodes[n].to_string())
    }

    pub fn rules_hash(&self) -> String {
        self.store.summary(&self.id, NOW).expect("read the workspace").0.rules_hash()
    }

    /// Adds one node.
    pub fn create(&mut self) {
        let n = self.nodes.len();
        let (parent, kind) = match self.shape {
            Shape::Star => (0, NodeType::Execution),
            Shape::Tree => ((n - 1) / 10, NodeType::Planning),
        };
        let new = NewNode {
            parent_id: self.nodes[parent].clone(),
            kind,
            title: format!("任务 {n}: a step of the work"),
            requirement: "Change the parser so that it accepts both formats; add a test for each one.".into(),
            role: None,
            note: String::new(),
            docs: Vec::new(),
            isolated: false,
            rules_check: RulesHashCheck::IfGiven(None),
        };
        let command = Command::CreateNode { node: new };
        let committed = self.store.run(&self.id, &command, &op(), &NoLiveSessions);
        let (node, _) = committed.and_then(|done| done.outcome.into_node()).expect("create a node");
        self.nodes.push(node.id);
    }
}

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    let home = scratch.join("home");
    for (shape, name) in [(Shape::Tree, "tree"), (Shape::Star, "star")] {
        let project = scratch.join(name);
        let mut growing = GrowingWorkspace::new(&project, shape);
        let mut smallest: Option<[Duration; 4]> = None;
        for &size in &options.sizes {
            let start = Instant::now();
            while growing.nodes.len() < size {
                growing.create();
            }
            eprintln!("({name} of {size} nodes after {:.1?})", start.elapsed());
            let medians =
                measure_size(tanmi, scratch, &project, &home, &mut growing, options, report, name, size);
            if let Some(smallest) = smallest {
                for (operation, (time, baseline)) in
                    ["create", "context", "tree", "list"].iter().zip(medians.iter().zip(smallest))
                {
                    let row = format!("{name}: {operation} at {size} nodes / at {}", options.sizes[0]);
                    report.add(row, ratio(*time, baseline), "×", Some(1.3));
                }
            } else {
                smallest = Some(medians);
            }
        }
        measure_peaks(tanmi, &project, &home, &growing, report, name);
    }
}

/// Measures one size and returns the times of create, context, tree and list.
#[allow(clippy::too_many_arguments)]
fn measure_size(
    tanmi: &Path,
    scratch: &Path,
    project: &Path,
    home: &Path,
    growing: &mut GrowingWorkspace,
    options: &Options,
    report: &mut Report,
    name: &str,
    size: usize,
) -> [Duration; 4] {
    // As many bytes as the journal record of one create.
    let line = vec![b'x'; 600];
    let mut log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(scratch.join("appends"))
        .expect("open the file to append to");
    let mut append = || {
        log.write_all(&line).expect("append to the file");
        log.sync_data().expect("sync the file");
    };
    let mut create = || growing.create();
    let times = medians(options.runs, &mut [&mut append, &mut create]);
    report.add(
        format!("{name} {size}: durable create / fsynced append"),
        ratio(times[1], times[0]),
        "×",
        Some(4.5),
    );
    let create_time = times[1];

    // A node in the middle: in a tree it has several ancestors.
    let node = growing.nodes[size / 2].to_string();
    let context = ["node", "context", node.as_str()];
    let mut jobs: Vec<Box<dyn FnMut()>> = Vec::new();
    let mut add = |args: &[&str]| {
        let mut command = process(tanmi, args, project, home);
        jobs.push(Box::new(move || run_once(&mut command)));
    };
    add(&context);
    add(&["tree", "--limit", "10"]);
    add(&["node", "list", "--limit", "10"]);
    add(&["next"]);
    let mut baseline = process(Path::new("/bin/true"), &[], project, home);
    jobs.push(Box::new(move || run_once(&mut baseline)));
    let mut borrowed: Vec<&mut dyn FnMut()> =
        jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
    let times = medians(options.runs, &mut borrowed);
    for (command, time) in ["node context", "tree --limit 10", "node list --limit 10"].iter().zip(&times) {
        report.add(format!("{name} {size}: {command} / true"), ratio(*time, times[4]), "×", None);
    }
    report.add(format!("{name} {size}: next / true"), ratio(times[3], times[4]), "×", Some(3.0));
    [create_time, times[0], times[1], times[2]]
}

fn measure_peaks(
    tanmi: &Path,
    project: &Path,
    home: &Path,
    growing: &GrowingWorkspace,
    report: &mut Report,
    name: &str,
) {
    let size = growing.nodes.len();
    let index = project.join(".tanmi-workspace").join(growing.id.as_str()).join(".local/index.sqlite");
    let mut add = |label: &str, args: &[&str]| {
        let kb = measure::peak_kb(tanmi, args, project, home);
        report.add(format!("{name} {size}: peak memory of {label}"), kb as f64 / 1024.0, "MB", Some(40.0));
    };
    let _ = std::fs::remove_file(&index);
    add("tree, index rebuilt", &["tree"]);
    add("tree --limit 0", &["tree", "--limit", "0"]);
    add("workspace check", &["workspace", "check"]);
    add("node create", &["node", "create", "--type", "execution", "--title", "x"]);
}
