//! Folders of users, as a host mounts them into containers: made and kept up to date. What was put there is written down, so
//! that it can be updated and taken away; what a user made or changed stays and is reported.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::fs::{self, Durability};
use tanmi_base::hash;

use super::{Recipe, Remark, build};
use crate::agent::AGENTS;
use crate::doc::Text;
use crate::json::Json;
use crate::{Error, Result, hooks};

/// What every user gets.
pub struct Job {
    /// The folder of all users: `workspace/users`.
    pub root: PathBuf,
    /// Synced into each `.claude/`.
    pub extensions: Option<PathBuf>,
    /// `context.json` for each of them.
    pub manifest: Option<PathBuf>,
    /// Where the program is inside the container.
    pub program: String,
    /// Where the user's folder is inside the container.
    pub container: String,
    pub dry_run: bool,
}

/// What was done for one user.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub user: String,
    pub added: Vec<String>,
    pub updated: Vec<String>,
    pub removed: Vec<String>,
    /// A user's own, left as it is.
    pub kept: Vec<Remark>,
    pub problems: Vec<Remark>,
}

impl Report {
    pub fn is_unchanged(&self) -> bool {
        self.added.is_empty() && self.updated.is_empty() && self.removed.is_empty()
    }
}

const FOLDERS: &[&str] = &[
    ".claude/agents",
    ".claude/commands",
    ".claude/skills",
    ".claude/hooks",
    "my-workspace/.claude",
    "my-workspace/generated_docs",
];
const RECORD: &str = ".claude/.tanmi.json";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    version: u32,
    /// What was put there: path and digest.
    files: BTreeMap<String, String>,
}

/// A name that cannot lead anywhere.
pub fn check_user(id: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !id.is_empty() && id.len() <= 64 && id.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!("user id {id:?}: only letters, digits, - and _, at most 64"))
}

/// Everybody who has a folder.
pub fn users(root: &Path) -> Result<Vec<String>> {
    let read = std::fs::read_dir(root).map_err(Error::io(root))?;
    let names = read.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut ids: Vec<String> = names
        .filter_map(|name| name.strip_prefix("user_").map(String::from))
        .filter(|id| check_user(id).is_ok())
        .collect();
    ids.sort();
    Ok(ids)
}

struct Work<'a> {
    job: &'a Job,
    data: PathBuf,
    record: Record,
    report: Report,
}

pub fn provision(job: &Job, user: &str) -> Report {
    let mut report = Report { user: user.to_owned(), ..Report::default() };
    let data = job.root.join(format!("user_{user}")).join("data");
    if let Err(reason) = check_user(user) {
        report.problems.push(Remark { path: format!("user_{user}"), reason });
        return report;
    }
    for folder in [data.parent().unwrap_or(&data), &data] {
        if fs::is_link(folder) {
            report.problems.push(Remark::new(folder, "a symbolic link; it could lead out of the tree"));
            return report;
        }
    }
    let bytes = fs::read_optional(&data.join(RECORD)).ok().flatten().unwrap_or_default();
    let record = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut work = Work { job, data, record, report };
    work.folders();
    work.extensions();
    work.manifest();
    work.context();
    work.settings();
    work.save();
    work.report
}

impl Work<'_> {
    fn problem(&mut self, path: &Path, reason: impl Into<String>) {
        self.report.problems.push(Remark::new(path, reason));
    }

    /// A place below the user's folder that no link leads out of.
    fn place(&self, rel: &str) -> Result<PathBuf, &'static str> {
        let mut path = self.data.clone();
        for part in Path::new(rel).components() {
            let Component::Normal(part) = part else { return Err("not a path inside of the tree") };
            path.push(part);
            if fs::is_link(&path) {
                return Err("a symbolic link; it could lead out of the tree");
            }
        }
        Ok(path)
    }

    fn folders(&mut self) {
        for rel in FOLDERS {
            match self.place(rel) {
                Err(reason) => self.problem(&self.data.join(rel), reason),
                Ok(path) if path.is_dir() => {}
                Ok(path) => {
                    self.report.added.push(format!("{rel}/"));
                    if !self.job.dry_run
                        && let Err(error) = std::fs::create_dir_all(&path)
                    {
                        self.problem(&path, error.to_string());
                    }
                }
            }
        }
    }

    /// Puts a file there, unless the user made or changed it.
    fn put(&mut self, rel: &str, bytes: &[u8]) {
        let path = match self.place(rel) {
            Ok(path) => path,
            Err(reason) => return self.problem(&self.data.join(rel), reason),
        };
        let digest = hash::sha256_hex(bytes);
        let now = match fs::read_limited(&path, u64::MAX) {
            Ok(now) => now.map(|now| hash::sha256_hex(&now)),
            Err(error) => return self.problem(&path, error.to_string()),
        };
        let known = self.record.files.get(rel);
        match now {
            Some(now) if now == digest => {}
            Some(now) if Some(&now) != known => {
                let reason = if known.is_some() { "changed by the user" } else { "the user's own" };
                self.report.kept.push(Remark::new(&path, reason));
                return;
            }
            Some(_) => self.write(rel, &path, bytes, true),
            None => self.write(rel, &path, bytes, false),
        }
        self.record.files.insert(rel.to_owned(), digest);
    }

    fn write(&mut self, rel: &str, path: &Path, bytes: &[u8], was_there: bool) {
        let list = if was_there { &mut self.report.updated } else { &mut self.report.added };
        list.push(rel.to_owned());
        if self.job.dry_run {
            return;
        }
        let dir = path.parent().unwrap_or(path);
        let written = std::fs::create_dir_all(dir)
            .and_then(|()| fs::write_atomic(path, bytes, dir, Durability::Journaled).map(|_| ()));
        if let Err(error) = written {
            self.problem(path, error.to_string());
        }
    }

    fn extensions(&mut self) {
        let Some(root) = self.job.extensions.clone() else { return };
        let mut found = Vec::new();
        let mut remarks = Vec::new();
        walk(&root, &root, 0, &mut found, &mut remarks);
        self.report.problems.extend(remarks);
        let mut wanted = Vec::new();
        for (rel, path) in found {
            let to = format!(".claude/{rel}");
            if matches!(to.as_str(), ".claude/settings.json" | ".claude/CLAUDE.md" | RECORD) {
                self.problem(&path, "this file is merged or built, not copied");
                continue;
            }
            wanted.push(to.clone());
            match std::fs::read(&path) {
                Ok(bytes) => self.put(&to, &bytes),
                Err(error) => self.problem(&path, error.to_string()),
            }
        }
        self.sweep(&wanted);
    }

    /// What was put there once and is no longer wanted goes, unless the user changed it.
    fn sweep(&mut self, wanted: &[String]) {
        let is_old = |rel: &String| rel.starts_with(".claude/") && !wanted.contains(rel);
        let old: Vec<String> = self.record.files.keys().filter(|rel| is_old(rel)).cloned().collect();
        for rel in old {
            let digest = self.record.files.remove(&rel).unwrap_or_default();
            let Ok(path) = self.place(&rel) else { continue };
            let Some(bytes) = fs::read_limited(&path, u64::MAX).ok().flatten() else { continue };
            if hash::sha256_hex(&bytes) != digest {
                self.report.kept.push(Remark::new(&path, "changed by the user"));
                continue;
            }
            self.report.removed.push(rel.clone());
            if self.job.dry_run {
                continue;
            }
            if let Err(error) = std::fs::remove_file(&path) {
                self.problem(&path, error.to_string());
            }
            let stop = self.data.join(".claude");
            for dir in path.ancestors().skip(1).take_while(|dir| dir.parent() != Some(&stop) && **dir != stop)
            {
                if std::fs::remove_dir(dir).is_err() {
                    break;
                }
            }
        }
    }

    fn manifest(&mut self) {
        let text = match &self.job.manifest {
            None => default_manifest(&self.job.container),
            Some(path) => match std::fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) => return self.problem(&path.clone(), error.to_string()),
            },
        };
        self.put(".tanmi/context.json", text.as_bytes());
    }

    /// `CLAUDE.md`, with what the user wrote into it.
    fn context(&mut self) {
        let file = self.data.join(".tanmi/context.json");
        let recipe = match Recipe::load(&file) {
            Ok(recipe) => recipe,
            Err(remark) => return self.report.problems.push(remark),
        };
        let built = build(&self.data, &recipe);
        self.report.problems.extend(built.remarks.iter().cloned());
        let rel = recipe.output().to_owned();
        match self.place(&rel) {
            Err(reason) => self.problem(&built.path, reason),
            Ok(_) if built.is_current() => {}
            Ok(path) => self.write(&rel, &path, built.text.as_bytes(), built.before.is_some()),
        }
    }

    /// Our hooks in `settings.json`, with everything that is there.
    fn settings(&mut self) {
        let Some(agent) = AGENTS.iter().find(|agent| agent.id() == "claude-code") else { return };
        let (settings, mcp) = (".claude/settings.json", ".mcp.json");
        let program = self.job.program.clone();
        self.merge(settings, |json| hooks::put(json, agent, &program));
        self.merge(mcp, |json| hooks::put_server(json, agent, &program));
    }

    fn merge(&mut self, rel: &str, change: impl FnOnce(&Json) -> Result<(), crate::Refusal>) {
        let path = match self.place(rel) {
            Ok(path) => path,
            Err(reason) => return self.problem(&self.data.join(rel), reason),
        };
        let before = match fs::read_optional(&path) {
            Ok(before) => before,
            Err(error) => return self.problem(&path, error.to_string()),
        };
        let merged = Text::of(before.as_deref().unwrap_or_default()).and_then(|text| {
            let json = Json::parse(if text.body.trim().is_empty() { "{}\n" } else { &text.body })?;
            change(&json)?;
            Ok(text.with(&json.text()))
        });
        match merged {
            Ok(after) if before.as_ref() == Some(&after) => {}
            Ok(after) => self.write(rel, &path, &after, before.is_some()),
            Err(refusal) => {
                let line = refusal.line().map_or(String::new(), |line| format!("line {line}: "));
                let reason = format!("{line}{}", refusal.message(tanmi_base::Lang::En));
                self.problem(&path, reason);
            }
        }
    }

    fn save(&mut self) {
        self.record.version = 1;
        let text = serde_json::to_string_pretty(&self.record).unwrap_or_default() + "\n";
        let path = self.data.join(RECORD);
        let is_same = fs::read_optional(&path).ok().flatten().is_some_and(|now| now == text.as_bytes());
        if !is_same && !self.job.dry_run && path.parent().is_some_and(Path::is_dir) && !fs::is_link(&path) {
            let dir = path.parent().unwrap_or(&path).to_owned();
            if let Err(error) = fs::write_atomic(&path, text.as_bytes(), &dir, Durability::Journaled) {
                self.problem(&path, error.to_string());
            }
        }
    }
}

/// Every file below a folder, by its path from there.
fn walk(root: &Path, dir: &Path, depth: usize, out: &mut Vec<(String, PathBuf)>, remarks: &mut Vec<Remark>) {
    let read = match std::fs::read_dir(dir) {
        Ok(read) => read,
        Err(error) => return remarks.push(Remark::new(dir, error.to_string())),
    };
    let mut entries: Vec<_> = read.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => remarks.push(Remark::new(&path, "a symbolic link")),
            Ok(kind) if kind.is_dir() && depth < 12 => walk(root, &path, depth + 1, out, remarks),
            Ok(kind) if kind.is_file() => {
                let rel = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                out.push((rel, path));
            }
            _ => {}
        }
    }
}

/// What a container is like if nobody says otherwise.
fn default_manifest(container: &str) -> String {
    let value = serde_json::json!({
        "files": [".claude/CLAUDE.md"],
        "environment": {
            "当前工作目录": container,
            "默认项目目录": format!("{container}/my-workspace"),
            "文档输出目录": format!("{container}/my-workspace/generated_docs/"),
        },
    });
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}
