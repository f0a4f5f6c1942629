//! The interpreters that hooks and servers of other tools are written for, doing nothing: the least that such a tool
//! costs. What those tools do then is not measured here.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{medians, process, ratio, run as run_once};
use super::report::Report;

struct Interpreter {
    name: &'static str,
    /// Doing nothing.
    nothing: &'static [&'static str],
    /// What prints the path of the program itself: the one on the PATH may be a script that looks for it.
    own_path: [&'static str; 2],
}

const NODE: Interpreter =
    Interpreter { name: "node", nothing: &["-e", "0"], own_path: ["-p", "process.execPath"] };
const PYTHON: Interpreter = Interpreter {
    name: "python3",
    nothing: &["-c", "0"],
    own_path: ["-c", "import sys; print(sys.executable)"],
};
/// Installed packages may load code at every start of Python; this is without them.
const BARE_PYTHON: Interpreter = Interpreter { nothing: &["-S", "-c", "0"], ..PYTHON };
const INTERPRETERS: &[Interpreter] = &[NODE, PYTHON, BARE_PYTHON];

/// Adds a line for each interpreter that is here. They take turns with `ours` in a loop of their own: what they leave
/// in the caches would disturb the ratios to /bin/true.
pub fn compare(
    what: &str,
    mut ours: impl FnMut(),
    dir: &Path,
    home: &Path,
    runs: usize,
    report: &mut Report,
) {
    let here: Vec<(&Interpreter, PathBuf)> =
        INTERPRETERS.iter().filter_map(|interpreter| Some((interpreter, find(interpreter)?))).collect();
    let mut jobs: Vec<Box<dyn FnMut() + '_>> = vec![Box::new(&mut ours)];
    for (interpreter, program) in &here {
        let mut command = process(program, interpreter.nothing, dir, home);
        jobs.push(Box::new(move || run_once(&mut command)));
    }
    let mut borrowed: Vec<&mut dyn FnMut()> =
        jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
    let times = medians(runs, &mut borrowed);
    for ((interpreter, _), time) in here.iter().zip(&times[1..]) {
        let what = format!("{what} / {} {}", interpreter.name, interpreter.nothing.join(" "));
        report.add_against_other(what, ratio(times[0], *time));
    }
}

fn find(interpreter: &Interpreter) -> Option<PathBuf> {
    let found = Command::new(interpreter.name).args(interpreter.own_path).output().ok();
    let path = found
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|text| PathBuf::from(text.trim()))
        .filter(|path| path.is_file());
    if path.is_none() {
        eprintln!("({} is not here: not compared with it)", interpreter.name);
    }
    path
}
