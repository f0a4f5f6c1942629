//! Creates and updates the folders of users that a host mounts into containers.
//!
//! A record lists the files that were written, so that they can be updated and removed. Files that a user created or
//! changed stay and are reported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tanmi_base::fs::{self, Durability};
use tanmi_base::{Lang, hash};
use tanmi_platform::{CLAUDE_CODE, CLIENTS};

use super::manifest::MANIFEST;
use super::{BuildManifest, Notice, SYMLINK, TextPair, build, inside};
use crate::json::{self, Json};
use crate::{Error, Result, hooks};

/// What to provision for every user.
pub struct ProvisionOptions {
    /// The folder with the folders of all users, for example `workspace/users`.
    pub root: PathBuf,
    /// The folder to synchronize to `.claude/` of each user.
    pub extensions: Option<PathBuf>,
    /// The `context.json` for each user.
    pub manifest: Option<PathBuf>,
    /// The path of the program inside the container.
    pub program: String,
    /// The path of the user folder inside the container.
    pub container: String,
    /// The language of the headings in `CLAUDE.md`.
    pub lang: Lang,
    pub dry_run: bool,
}

/// What was done for one user.
#[derive(Debug, Default, Serialize)]
pub struct ProvisionReport {
    pub user: String,
    pub added: Vec<String>,
    pub updated: Vec<String>,
    pub removed: Vec<String>,
    /// Files of the user that were not changed.
    pub kept: Vec<Notice>,
    pub problems: Vec<Notice>,
}

impl ProvisionReport {
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
/// The maximum size of a file in a user's folder that is read. The user of the container can write any file there.
const MAX_FILE: u64 = 16 << 20;
const CHANGED: TextPair = ("用户已修改", "changed by the user");

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ProvisionRecord {
    version: u32,
    /// The written files: path and digest. Two digests while a file is being replaced.
    files: BTreeMap<String, Vec<String>>,
}

/// Checks that a user id can be part of a path. The error describes valid ids.
pub fn check_user(id: &str) -> Result<(), TextPair> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !id.is_empty() && id.len() <= 64 && id.chars().all(is_plain) {
        return Ok(());
    }
    Err(("字母、数字、- 和 _，最多 64 个字符", "letters, digits, - and _, at most 64 characters"))
}

/// Returns the ids of all users that have a folder.
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

struct Provisioner<'a> {
    options: &'a ProvisionOptions,
    data: PathBuf,
    record: ProvisionRecord,
    report: ProvisionReport,
}

pub fn provision(options: &ProvisionOptions, user: &str) -> ProvisionReport {
    let mut report = ProvisionReport { user: user.to_owned(), ..ProvisionReport::default() };
    let data = options.root.join(format!("user_{user}")).join("data");
    if let Err((zh, en)) = check_user(user) {
        let reason = (format!("无效的用户 ID；可用{zh}"), format!("invalid user id; use {en}"));
        report.problems.push(Notice::new(Path::new(&format!("user_{user}")), reason));
        return report;
    }
    for folder in [data.parent().unwrap_or(&data), &data] {
        if fs::is_link(folder) {
            let reason = ("符号链接可能指向文件夹之外", "a symbolic link could lead out of the folder");
            report.problems.push(Notice::new(folder, reason));
            return report;
        }
    }
    let read = inside(&data, RECORD).ok().and_then(|path| fs::read_limited(&path, MAX_FILE).ok().flatten());
    let bytes = read.unwrap_or_default();
    let record = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut provisioner = Provisioner { options, data, record, report };
    provisioner.remove_leftovers();
    provisioner.create_folders();
    let mut wanted = provisioner.wanted_files();
    wanted.retain(|file| provisioner.may_write(file));
    // Recorded before the files are written, so that a process killed in between leaves no unknown files.
    provisioner.record_wanted(&wanted);
    wanted.iter().for_each(|file| provisioner.write_wanted(file));
    provisioner.remove_unwanted();
    provisioner.build_context();
    provisioner.merge_settings();
    provisioner.settle_record();
    provisioner.report
}

/// A file that a user should have.
struct WantedFile {
    rel: String,
    bytes: Vec<u8>,
    /// The mode in the extensions folder, so that scripts stay executable.
    mode: Option<u32>,
}

impl Provisioner<'_> {
    fn problem(&mut self, path: &Path, reason: TextPair) {
        self.report.problems.push(Notice::new(path, reason));
    }

    fn failure(&mut self, path: &Path, error: &std::io::Error) {
        self.report.problems.push(Notice::from_error(path, error));
    }

    fn resolve(&self, rel: &str) -> Result<PathBuf, TextPair> {
        inside(&self.data, rel)
    }

    fn create_folders(&mut self) {
        for rel in FOLDERS {
            match self.resolve(rel) {
                Err(reason) => self.problem(&self.data.join(rel), reason),
                Ok(path) if path.is_dir() => {}
                Ok(path) => {
                    let made = if self.options.dry_run { Ok(()) } else { std::fs::create_dir_all(&path) };
                    match made {
                        Ok(()) => self.report.added.push(format!("{rel}/")),
                        Err(error) => self.failure(&path, &error),
                    }
                }
            }
        }
    }

    /// Returns the extensions and the manifest.
    fn wanted_files(&mut self) -> Vec<WantedFile> {
        let mut wanted = Vec::new();
        let (mut found, mut notices) = (Vec::new(), Vec::new());
        if let Some(root) = self.options.extensions.clone() {
            walk(&root, &root, 0, &mut found, &mut notices);
        }
        self.report.problems.extend(notices);
        for (rel, path) in found {
            let to = format!(".claude/{rel}");
            if matches!(to.as_str(), ".claude/settings.json" | ".claude/CLAUDE.md" | RECORD) {
                self.problem(
                    &path,
                    ("此文件由合并或生成得到，不会复制", "this file is merged or built, not copied"),
                );
                continue;
            }
            match std::fs::read(&path) {
                Ok(bytes) => wanted.push(WantedFile { rel: to, bytes, mode: mode_of(&path) }),
                Err(error) => self.failure(&path, &error),
            }
        }
        let manifest = match &self.options.manifest {
            None => Ok(default_manifest(&self.options.container).into_bytes()),
            Some(path) => std::fs::read(path).map_err(|error| (path.clone(), error)),
        };
        match manifest {
            Ok(bytes) => wanted.push(WantedFile { rel: String::from(MANIFEST), bytes, mode: None }),
            Err((path, error)) => self.failure(&path, &error),
        }
        wanted
    }

    /// Returns whether the file is missing or unchanged since we wrote it. Otherwise it belongs to the user.
    fn may_write(&mut self, file: &WantedFile) -> bool {
        let path = match self.resolve(&file.rel) {
            Ok(path) => path,
            Err(reason) => {
                self.problem(&self.data.join(&file.rel), reason);
                return false;
            }
        };
        let now = match fs::read_limited(&path, MAX_FILE) {
            Ok(now) => now.map(|now| hash::sha256_hex(&now)),
            Err(error) => {
                self.failure(&path, &error);
                return false;
            }
        };
        let known = self.record.files.get(&file.rel);
        let is_ours = now.as_ref().is_none_or(|now| known.is_some_and(|known| known.contains(now)));
        // A file of the user with the same content is not worth a notice.
        if !is_ours && now != Some(hash::sha256_hex(&file.bytes)) {
            let reason =
                if known.is_some() { CHANGED } else { ("用户自己的文件", "a file of the user") };
            self.report.kept.push(Notice::new(&path, reason));
        }
        is_ours
    }

    fn record_wanted(&mut self, wanted: &[WantedFile]) {
        for file in wanted {
            let digest = hash::sha256_hex(&file.bytes);
            let known = self.record.files.entry(file.rel.clone()).or_default();
            if !known.contains(&digest) {
                known.push(digest);
            }
        }
        self.save();
    }

    fn write_wanted(&mut self, file: &WantedFile) {
        let Ok(path) = self.resolve(&file.rel) else { return };
        let now = fs::read_limited(&path, MAX_FILE).ok().flatten();
        if now.as_ref() != Some(&file.bytes) {
            self.write(&file.rel, &path, &file.bytes, now.is_some());
        }
        if !self.options.dry_run {
            set_mode(&path, file.mode);
        }
    }

    fn write(&mut self, rel: &str, path: &Path, bytes: &[u8], was_there: bool) {
        if !self.options.dry_run {
            let dir = path.parent().unwrap_or(path);
            let written = std::fs::create_dir_all(dir)
                .and_then(|()| fs::write_atomic(path, bytes, dir, Durability::Journaled).map(|_| ()));
            if let Err(error) = written {
                return self.failure(path, &error);
            }
        }
        let list = if was_there { &mut self.report.updated } else { &mut self.report.added };
        list.push(rel.to_owned());
    }

    /// Removes files that were written earlier and are no longer wanted, unless the user changed them.
    fn remove_unwanted(&mut self) {
        let Some(root) = self.options.extensions.clone() else { return };
        let is_unwanted =
            |rel: &String| rel.strip_prefix(".claude/").is_some_and(|rel| !root.join(rel).is_file());
        let unwanted: Vec<String> =
            self.record.files.keys().filter(|rel| is_unwanted(rel)).cloned().collect();
        for rel in unwanted {
            let known = self.record.files.remove(&rel).unwrap_or_default();
            let Ok(path) = self.resolve(&rel) else { continue };
            let Some(bytes) = fs::read_limited(&path, MAX_FILE).ok().flatten() else { continue };
            if !known.contains(&hash::sha256_hex(&bytes)) {
                self.report.kept.push(Notice::new(&path, CHANGED));
                continue;
            }
            if !self.options.dry_run {
                if let Err(error) = std::fs::remove_file(&path) {
                    self.failure(&path, &error);
                    continue;
                }
                let stop = self.data.join(".claude");
                for dir in
                    path.ancestors().skip(1).take_while(|dir| dir.parent() != Some(&stop) && **dir != stop)
                {
                    if std::fs::remove_dir(dir).is_err() {
                        break;
                    }
                }
            }
            self.report.removed.push(rel);
        }
    }

    /// Removes temporary files that a killed process left behind.
    fn remove_leftovers(&mut self) {
        let mut dirs = vec![self.data.join(".claude"), self.data.join(".tanmi"), self.data.clone()];
        // The user of the container can put a link there.
        dirs.retain(|dir| !fs::is_link(dir));
        let is_walked = |dir: &Path| !dir.ends_with("my-workspace");
        while let Some(dir) = dirs.pop().filter(|_| !self.options.dry_run) {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let (path, kind) = (entry.path(), entry.file_type());
                if kind.as_ref().is_ok_and(std::fs::FileType::is_file)
                    && fs::is_leftover(&entry.file_name().to_string_lossy())
                {
                    let _ = std::fs::remove_file(path);
                } else if kind.is_ok_and(|kind| kind.is_dir()) && dir != self.data && is_walked(&path) {
                    dirs.push(path);
                }
            }
        }
    }

    /// Builds `CLAUDE.md` and keeps the text of the user in it.
    fn build_context(&mut self) {
        let manifest = match BuildManifest::load_in(&self.data) {
            Ok(manifest) => manifest,
            Err(notice) => return self.report.problems.push(notice),
        };
        let built = match build(&self.data, &manifest, self.options.lang) {
            Ok(built) => built,
            Err(notice) => return self.report.kept.push(notice),
        };
        self.report.problems.extend(built.notices.iter().cloned());
        if !built.is_current() {
            self.write(manifest.output(), &built.path, built.text.as_bytes(), built.before.is_some());
        }
    }

    /// Merges our hooks into `settings.json` and our server into `.mcp.json`.
    fn merge_settings(&mut self) {
        let Some(client) = CLIENTS.find(&CLAUDE_CODE) else { return };
        let (settings, mcp) = (".claude/settings.json", ".mcp.json");
        let program = self.options.program.clone();
        self.merge(settings, |json| {
            // Whether rules need the hook for tool calls is known inside of the container only.
            let has_tool_hook = hooks::has_tool_hook(json, client);
            hooks::add(json, client, &program, has_tool_hook)
        });
        self.merge(mcp, |json| hooks::add_server(json, client, &program));
    }

    fn merge(&mut self, rel: &str, change: impl FnOnce(&mut Json) -> Result<(), crate::Refusal>) {
        let path = match self.resolve(rel) {
            Ok(path) => path,
            Err(reason) => return self.problem(&self.data.join(rel), reason),
        };
        let before = match fs::read_optional(&path) {
            Ok(before) => before,
            Err(error) => return self.failure(&path, &error),
        };
        match json::edit_bytes(before.as_deref(), change) {
            Ok(after) if before.as_ref() == Some(&after) => {}
            Ok(after) => self.write(rel, &path, &after, before.is_some()),
            Err(refusal) => {
                let line = |zh: &str, en: &str| match refusal.line() {
                    Some(line) => (format!("第 {line} 行：{zh}"), format!("line {line}: {en}")),
                    None => (zh.to_owned(), en.to_owned()),
                };
                let reason = line(&refusal.message(Lang::Zh), &refusal.message(Lang::En));
                self.report.problems.push(Notice::new(&path, reason));
            }
        }
    }

    /// Keeps only the new digest of files that were written. A file that could not be written keeps all its digests.
    fn settle_record(&mut self) {
        let files = std::mem::take(&mut self.record.files);
        for (rel, mut known) in files {
            let now =
                self.resolve(&rel).ok().and_then(|path| fs::read_limited(&path, MAX_FILE).ok().flatten());
            if now.is_some_and(|now| known.last() == Some(&tanmi_base::hash::sha256_hex(&now))) {
                known.drain(..known.len() - 1);
            }
            self.record.files.insert(rel, known);
        }
        self.save();
    }

    fn save(&mut self) {
        self.record.version = 1;
        let path = match self.resolve(RECORD) {
            Ok(path) => path,
            Err(reason) => return self.problem(&self.data.join(RECORD), reason),
        };
        let text = serde_json::to_string_pretty(&self.record).unwrap_or_default() + "\n";
        let is_same = fs::read_optional(&path).ok().flatten().is_some_and(|now| now == text.as_bytes());
        if is_same || self.options.dry_run || !path.parent().is_some_and(Path::is_dir) {
            return;
        }
        let dir = path.parent().unwrap_or(&path).to_owned();
        if let Err(error) = fs::write_atomic(&path, text.as_bytes(), &dir, Durability::Journaled) {
            self.failure(&path, &error);
        }
    }
}

#[cfg(unix)]
fn mode_of(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_: &Path) -> Option<u32> {
    None
}

/// Sets the execute permissions of a file to those of `mode`.
#[cfg(unix)]
fn set_mode(path: &Path, mode: Option<u32>) {
    use std::os::unix::fs::PermissionsExt;
    let now = std::fs::metadata(path).map(|meta| meta.permissions().mode() & 0o777);
    if let (Some(mode), Ok(now)) = (mode, now)
        && mode & 0o111 != now & 0o111
    {
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(now & !0o111 | mode & 0o111));
    }
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: Option<u32>) {}

/// Collects every file below a folder with its path relative to `root`.
fn walk(root: &Path, dir: &Path, depth: usize, out: &mut Vec<(String, PathBuf)>, notices: &mut Vec<Notice>) {
    let read = match std::fs::read_dir(dir) {
        Ok(read) => read,
        Err(error) => return notices.push(Notice::from_error(dir, error)),
    };
    let mut entries: Vec<_> = read.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => notices.push(Notice::new(&path, SYMLINK)),
            Ok(kind) if kind.is_dir() && depth < 12 => walk(root, &path, depth + 1, out, notices),
            Ok(kind) if kind.is_file() => {
                let rel = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                out.push((rel, path));
            }
            _ => {}
        }
    }
}

/// Returns the default `context.json` for a container.
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
