//! The test environment: a scratch home and project, and the real binary run in them with a cleared environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// 2025-12-11 05:48:20 UTC
pub const NOW: i64 = 1_765_432_100_000;

/// A scratch home and project with a clock that only [`TestEnv::tick`] moves.
pub struct TestEnv {
    dir: tempfile::TempDir,
    pub project: PathBuf,
    now: std::sync::atomic::AtomicI64,
    lang: &'static str,
}

/// The result of a finished process.
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    pub ok: bool,
}

impl TestEnv {
    pub fn new() -> TestEnv {
        TestEnv::with_lang("en_US.UTF-8")
    }

    pub fn with_lang(lang: &'static str) -> TestEnv {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["home", "project"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        TestEnv { project: root.join("project"), dir, now: NOW.into(), lang }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub fn home_store(&self) -> PathBuf {
        self.root().join("home/.tanmi-workspace")
    }

    /// Advances the clock of later commands.
    pub fn tick(&self, millis: i64) {
        self.now.fetch_add(millis, std::sync::atomic::Ordering::Relaxed);
    }

    pub fn command_in(&self, program: &str, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(dir).stdin(Stdio::null());
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env("PATH", path)
            .env("HOME", self.root().join("home"))
            .env("TANMI_NOW", self.now.load(std::sync::atomic::Ordering::Relaxed).to_string())
            .env("TZ", "UTC")
            .env("LANG", self.lang);
        command
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.command_in(env!("CARGO_BIN_EXE_tanmi"), &self.project);
        command.args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    pub fn run_in(&self, dir: &Path, args: &[&str]) -> Run {
        let mut command = self.command_in(env!("CARGO_BIN_EXE_tanmi"), dir);
        Run::of(command.args(args).output().unwrap())
    }

    /// Runs a command that must succeed and returns its output.
    pub fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert!(run.ok, "{args:?}\n{}{}", run.stdout, run.stderr);
        run.stdout
    }

    /// Runs a command with `--json` that must succeed and returns its output.
    pub fn json(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.push("--json");
        let text = self.ok(&args);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}\n{text}"))
    }

    /// Checks the files of a workspace and returns the report. The exit status tells whether damage remains.
    pub fn check(&self, args: &[&str]) -> Value {
        let run = self.run(&[&["workspace", "check", "--json"], args].concat());
        let report: Value = serde_json::from_str(&run.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}\n{}{}", run.stdout, run.stderr));
        let is_repaired = |finding: &Value| finding["fix"] == "repaired";
        assert_eq!(run.ok, report["findings"].as_array().unwrap().iter().all(is_repaired), "{report}");
        report
    }

    /// Runs a command with `--json` that must fail and returns its error.
    pub fn error(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.push("--json");
        let run = self.run(&args);
        assert!(!run.ok, "{args:?} must fail\n{}", run.stdout);
        let value: Value = serde_json::from_str(&run.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}\n{}{}", run.stdout, run.stderr));
        value["error"].clone()
    }

    pub fn init(&self) -> String {
        self.json(&["workspace", "init", "--name", "Auth", "--goal", "JWT"])["workspaceId"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub fn node(&self, parent: &str, kind: &str, title: &str) -> String {
        let args =
            ["node", "create", "--parent", parent, "--type", kind, "--title", title, "--requirement", "r"];
        self.json(&args)["nodeId"].as_str().unwrap().to_owned()
    }

    pub fn status(&self, node: &str) -> String {
        self.json(&["node", "show", node])["node"]["status"].as_str().unwrap().to_owned()
    }

    pub fn workspace_dir(&self, id: &str) -> PathBuf {
        self.project.join(".tanmi-workspace").join(id)
    }

    pub fn node_md(&self, workspace: &str, node: &str) -> PathBuf {
        self.workspace_dir(workspace).join("nodes").join(node).join("Node.md")
    }

    /// Changes a file as an editor does: by replacing it with a new file.
    pub fn edit(&self, path: &Path, change: impl FnOnce(String) -> String) {
        let text = change(std::fs::read_to_string(path).unwrap());
        self.write(path, text.as_bytes());
    }

    /// Writes a file and creates the folders above it.
    pub fn make(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        self.write(path, text.as_bytes());
    }

    /// Writes a file atomically.
    pub fn write(&self, path: &Path, bytes: &[u8]) {
        use std::io::Write;
        let temp = self.root().join("edited");
        std::fs::File::create(&temp).unwrap().write_all(bytes).unwrap();
        std::fs::rename(&temp, path).unwrap();
    }

    /// Returns every file below a folder with its text, except derived files (`.local`).
    pub fn files(&self, dir: &Path) -> String {
        let mut paths = Vec::new();
        collect(dir, &mut paths);
        paths.sort();
        let mut out = String::new();
        for path in paths {
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            out.push_str(&format!("=== {name}\n{}", std::fs::read_to_string(&path).unwrap()));
        }
        self.redact(&out)
    }

    /// Replaces random ids by numbers in order of appearance, and the scratch path by `[ROOT]`.
    pub fn redact(&self, text: &str) -> String {
        let mut out = text.replace(&*self.root().to_string_lossy(), "[ROOT]");
        for prefix in ["ws-", "node-"] {
            let mut names: Vec<String> = Vec::new();
            let mut rest = std::mem::take(&mut out);
            while let Some(at) = rest.find(prefix) {
                let end = rest[at + prefix.len()..]
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
                    .map_or(rest.len(), |end| at + prefix.len() + end);
                let id = rest[at..end].to_owned();
                // Generated ids only: base36 time and six characters.
                let is_generated = id.len() == prefix.len() + 8 + 1 + 6;
                let known = names.iter().position(|name| *name == id);
                let shown = match (is_generated, known) {
                    (false, _) => id,
                    (true, Some(n)) => format!("{prefix}#{}", n + 1),
                    (true, None) => {
                        names.push(id);
                        format!("{prefix}#{}", names.len())
                    }
                };
                out.push_str(&rest[..at]);
                out.push_str(&shown);
                rest = rest.split_off(end);
            }
            out.push_str(&rest);
        }
        self.redact_short_ids(&out)
    }

    /// Replaces short ids of workspaces and nodes by numbers of the same width, in order of appearance.
    fn redact_short_ids(&self, text: &str) -> String {
        let mut ids = Vec::new();
        collect_ids(&self.project.join(".tanmi-workspace"), &mut ids);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let (mut known, mut out): (Vec<&str>, String) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(start) = rest.find(is_word) {
            let end = rest[start..].find(|c: char| !is_word(c)).map_or(rest.len(), |end| start + end);
            let word = &rest[start..end];
            let id = ids.iter().find(|id| (4..=8).contains(&word.len()) && id.ends_with(word));
            out.push_str(&rest[..start]);
            match id {
                Some(id) => {
                    let n = known.iter().position(|other| *other == id.as_str()).unwrap_or(known.len());
                    if n == known.len() {
                        known.push(id);
                    }
                    out.push_str(&format!("#{:0>width$}", n + 1, width = word.len() - 1));
                }
                None => out.push_str(word),
            }
            rest = &rest[end..];
        }
        out + rest
    }
}

/// Collects the names of the folders of workspaces and nodes, also of deleted ones.
fn collect_ids(dir: &Path, ids: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir())
    {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("ws-") || name.starts_with("node-") {
            ids.push(name);
        }
        collect_ids(&entry.path(), ids);
    }
}

impl Run {
    pub fn of(output: Output) -> Run {
        Run {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            ok: output.status.success(),
        }
    }
}

/// Returns the largest amount of memory that a process has used so far, in megabytes.
#[cfg(target_os = "linux")]
pub fn peak_megabytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

fn collect(dir: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != ".local" {
                collect(&path, paths);
            }
        } else {
            paths.push(path);
        }
    }
}
