//! Output of `install` and `uninstall`: the outcome for each file, and the steps left to the user.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tanmi_base::Lang;
use tanmi_install::{AppliedChange, ChangeOutcome, ConfigPart, Folders};
use tanmi_platform::{CLIENTS, ClientSpec, InstallNote, NoteCondition, Scope};

use super::table::{self, cell, styled};
use crate::out::{self, paint};

/// A hint for the user.
pub enum Note {
    AlreadyForUser(&'static ClientSpec),
    AsksForTools(&'static ClientSpec),
    NoProjectServer(&'static ClientSpec),
    NoGuide(&'static ClientSpec),
    OfClient(&'static InstallNote),
    Doctor,
    Kept(PathBuf),
    Purged(PathBuf),
    WouldPurge(PathBuf),
}

impl Note {
    pub fn text(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            Note::AlreadyForUser(client) => (
                format!("{}：用户级已安装钩子，项目级不再安装", client.name),
                format!(
                    "{}: hooks are already installed for the user, so none are added to the project",
                    client.name
                ),
            ),
            Note::AsksForTools(client) => (
                format!(
                    "{}：首次使用 Tanmi 的每个工具前会询问；`tanmi install --allow-tools` 允许全部工具",
                    client.name
                ),
                format!(
                    "{}: asks before it uses each of Tanmi's tools for the first time; `tanmi install --allow-tools` allows them all",
                    client.name
                ),
            ),
            Note::NoProjectServer(client) => (
                format!("{}：不支持项目级 MCP 配置；请用 --scope user 安装 MCP 服务器", client.name),
                format!(
                    "{}: no project-level MCP configuration; install the server with --scope user",
                    client.name
                ),
            ),
            Note::NoGuide(client) => (
                format!(
                    "{}：此范围没有使用指南文件；请将 `tanmi install --print` 输出的使用指南复制到其设置中",
                    client.name
                ),
                format!(
                    "{}: no guide file in this scope; copy the guide from `tanmi install --print` into its settings",
                    client.name
                ),
            ),
            Note::OfClient(note) => return lang.pick(note.zh, note.en).to_owned(),
            Note::Doctor => (
                String::from("请重启正在运行的智能体；运行 `tanmi doctor` 检查安装"),
                String::from("restart running agents; run `tanmi doctor` to check the installation"),
            ),
            Note::Kept(path) => (
                format!("数据仍保留在 {}；`tanmi uninstall --purge` 会一并删除", path.display()),
                format!("your data is still in {}; `tanmi uninstall --purge` deletes it too", path.display()),
            ),
            Note::WouldPurge(path) => {
                (format!("将删除 {}", path.display()), format!("would delete {}", path.display()))
            }
            Note::Purged(path) => {
                (format!("已删除 {}", path.display()), format!("deleted {}", path.display()))
            }
        };
        lang.pick(zh, en)
    }
}

/// Returns hints on what is left to do after an install.
pub fn next(
    clients: &[&'static ClientSpec],
    scope: Scope,
    done: &[AppliedChange],
    folders: &Folders,
    is_dry: bool,
) -> Vec<Note> {
    let wants_guide = done
        .iter()
        .any(|done| done.planned.target.parts.iter().any(|part| matches!(part, ConfigPart::Guide(_))));
    let mut notes = Vec::new();
    for client in clients {
        if scope == Scope::Project && folders.server_file(client, scope).is_none() {
            notes.push(Note::NoProjectServer(client));
        }
        if wants_guide && folders.guide_file(client, scope).is_none() {
            notes.push(Note::NoGuide(client));
        }
    }
    for client in clients {
        let due = client.recipe.notes.iter().filter(|note| is_due(note, client, clients, scope, done));
        notes.extend(due.map(Note::OfClient));
    }
    if !is_dry && done.iter().any(|done| done.planned.is_change()) {
        notes.push(Note::Doctor);
    }
    notes
}

/// Returns whether a note of a client applies after this installation.
fn is_due(
    note: &InstallNote,
    client: &ClientSpec,
    installed: &[&'static ClientSpec],
    scope: Scope,
    done: &[AppliedChange],
) -> bool {
    let has_changed = |part: ConfigPart| {
        done.iter().any(|done| {
            let target = &done.planned.target;
            done.planned.is_change() && target.client.id() == client.id() && target.parts.contains(&part)
        })
    };
    match note.condition {
        NoteCondition::HooksChanged => has_changed(ConfigPart::Hooks),
        NoteCondition::ServerChanged => has_changed(ConfigPart::Server),
        NoteCondition::ProjectServerChanged => scope == Scope::Project && has_changed(ConfigPart::Server),
        NoteCondition::InstalledWith(id) => installed.iter().any(|other| other.id() == id),
    }
}

fn parts(done: &AppliedChange, lang: Lang) -> String {
    let names = done.planned.target.parts.iter().map(|part| match part {
        ConfigPart::Hooks => lang.pick("钩子", "hooks"),
        ConfigPart::Server => lang.pick("MCP 服务器", "MCP server"),
        ConfigPart::StatusLine => lang.pick("状态栏", "status line"),
        ConfigPart::Permission => lang.pick("工具许可", "tool permission"),
        ConfigPart::Guide(_) => lang.pick("使用指南", "guide"),
    });
    names.collect::<Vec<_>>().join(lang.pick("、", ", "))
}

fn outcome(outcome: &ChangeOutcome, is_dry: bool) -> (&'static str, &'static str, &'static str) {
    match (outcome, is_dry) {
        (ChangeOutcome::Create, false) => ("created", "已创建", "created"),
        (ChangeOutcome::Change, false) => ("changed", "已修改", "changed"),
        (ChangeOutcome::Remove, false) => ("removed", "已删除", "removed"),
        (ChangeOutcome::Create, true) => ("created", "将创建", "would be created"),
        (ChangeOutcome::Change, true) => ("changed", "将修改", "would be changed"),
        (ChangeOutcome::Remove, true) => ("removed", "将删除", "would be removed"),
        (ChangeOutcome::Unchanged, _) => ("unchanged", "无需修改", "up to date"),
        (ChangeOutcome::Refused(_), _) => ("refused", "失败", "failed"),
    }
}

pub fn json(done: &AppliedChange, is_dry: bool, lang: Lang) -> Value {
    let planned = &done.planned;
    let mut value = json!({
        "platform": planned.target.client.id(),
        "scope": planned.target.scope.as_str(),
        "path": planned.target.path,
        "outcome": outcome(&planned.outcome, is_dry).0,
    });
    if let ChangeOutcome::Refused(refusal) = &planned.outcome {
        value["line"] = refusal.line().into();
        value["reason"] = refusal.message(lang).into();
    }
    if let Some(copy) = &done.copy {
        value["copy"] = copy.display().to_string().into();
    }
    if is_dry && planned.is_change() {
        value["diff"] = planned.diff().into();
    }
    value
}

pub fn text(done: &[AppliedChange], notes: &[String], is_dry: bool, lang: Lang) -> String {
    if done.is_empty() && notes.is_empty() {
        return format!("{}\n", lang.pick("没有需要卸载的内容", "nothing to uninstall"));
    }
    let rows = done.iter().map(|done| {
        let planned = &done.planned;
        let (_, zh, en) = outcome(&planned.outcome, is_dry);
        let style = match planned.outcome {
            ChangeOutcome::Refused(_) => out::RED,
            ChangeOutcome::Unchanged => out::DIM,
            _ => out::GREEN,
        };
        vec![
            styled(out::BOLD, planned.target.client.name),
            cell(parts(done, lang)),
            styled(style, lang.pick(zh, en)),
            cell(short(&planned.target.path)),
        ]
    });
    let mut out = table::render(&rows.collect::<Vec<_>>(), 80);
    for done in done {
        let planned = &done.planned;
        if let ChangeOutcome::Refused(refusal) = &planned.outcome {
            let line = refusal.line().map_or(String::new(), |line| format!(":{line}"));
            let label = paint(out::RED.bold(), lang.pick("失败", "failed"));
            let _ =
                writeln!(out, "{label}: {}{line}: {}", planned.target.path.display(), refusal.message(lang));
        }
        if is_dry && planned.is_change() {
            let _ = write!(out, "\n{}", coloured(&planned.diff()));
        }
    }
    let copies: Vec<String> = done.iter().filter_map(|done| Some(short(done.copy.as_deref()?))).collect();
    if let Some(dir) = copies.first().and_then(|copy| Path::new(copy).parent()) {
        let (zh, en) = (
            format!("原文件已备份到 {}", dir.display()),
            format!("the original files are backed up in {}", dir.display()),
        );
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    for note in notes {
        let _ = writeln!(out, "• {note}");
    }
    out
}

/// Returns a path with the home folder shown as `~`.
fn short(path: &Path) -> String {
    let home = tanmi_base::paths::user_home();
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

fn coloured(diff: &str) -> String {
    diff.lines().fold(String::new(), |mut out, line| {
        let style = match line.as_bytes().first() {
            Some(b'+') => out::GREEN,
            Some(b'-') => out::RED,
            _ => out::DIM,
        };
        let _ = writeln!(out, "{}", paint(style, line));
        out
    })
}

pub fn snippets(files: &[(&str, PathBuf, String)], guide: &str, lang: Lang) -> String {
    let mut out = String::new();
    for (name, path, text) in files {
        let _ = writeln!(out, "# {name}: {}\n{}\n", short(path), text.trim_end());
    }
    let mut names: Vec<&str> = Vec::new();
    for name in CLIENTS.iter().filter_map(|client| client.platform.loaded_files.first()) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let label = lang.pick(
        format!("# 使用指南：复制到 {} 或规则文件", names.join("、")),
        format!("# Guide: copy it into {} or a rules file", names.join(", ")),
    );
    let _ = writeln!(out, "{label}\n{guide}");
    out
}
