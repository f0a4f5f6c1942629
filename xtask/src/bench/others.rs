//! Compares with the start of interpreters in which hooks and servers of other tools are written.
//!
//! The interpreter runs an empty program, which is the lower bound of the cost of such a tool. The work of
//! the tool itself is not measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{medians, process, ratio, run as run_once};
use super::report::Report;

struct Interpreter {
    name: &'static str,
    /// Arguments that run an empty program.
    noop_args: &'static [&'static str],
    /// Arguments that print the path of the interpreter itself. The program on the PATH may be a wrapper script.
    path_args: [&'static str; 2],
}

const NODE: Interpreter =
    Interpreter { name: "node", noop_args: &["-e", "0"], path_args: ["-p", "process.execPath"] };
const PYTHON: Interpreter = Interpreter {
    name: "python3",
    noop_args: &["-c", "0"],
    path_args: ["-c", "import sys; print(sys.executable)"],
};
/// Python without installed packages, which may load code at every start.
const BARE_PYTHON: Interpreter = Interpreter { noop_args: &["-S", "-c", "0"], ..PYTHON };
const INTERPRETERS: &[Interpreter] = &[NODE, PYTHON, BARE_PYTHON];

/// Adds a line for each installed interpreter.
///
/// The interpreters take turns with `ours` in a separate loop, because they would disturb the CPU caches and with them
/// the ratios to /bin/true.
pub fn compare(
    name: &str,
    mut ours: impl FnMut(),
    dir: &Path,
    home: &Path,
    runs: usize,
    report: &mut Report,
) {
    let found: Vec<(&Interpreter, PathBuf)> =
        INTERPRETERS.iter().filter_map(|interpreter| Some((interpreter, find(interpreter)?))).collect();
    let mut jobs: Vec<Box<dyn FnMut() + '_>> = vec![Box::new(&mut ours)];
    for (interpreter, program) in &found {
        let mut command = process(program, interpreter.noop_args, dir, home);
        jobs.push(Box::new(move || run_once(&mut command)));
    }
    let mut borrowed: Vec<&mut dyn FnMut()> =
        jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
    let times = medians(runs, &mut borrowed);
    for ((interpreter, _), time) in found.iter().zip(&times[1..]) {
        let name = format!("{name} / {} {}", interpreter.name, interpreter.noop_args.join(" "));
        report.add_against_other(name, ratio(times[0], *time));
    }
}

/// Returns the path of an interpreter, if it is installed.
fn find(interpreter: &Interpreter) -> Option<PathBuf> {
    let output = Command::new(interpreter.name).args(interpreter.path_args).output().ok();
    let path = output
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|text| PathBuf::from(text.trim()))
        .filter(|path| path.is_file());
    if path.is_none() {
        eprintln!("({} is not installed: comparison skipped)", interpreter.name);
    }
    path
}
