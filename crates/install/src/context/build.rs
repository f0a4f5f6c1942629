//! Builds the declared context file from agents, skills and commands. The same input gives the same bytes. Text that a
//! person wrote between the marks stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tanmi_base::Lang;

use super::item::{self, ContextItem};
use super::{BuildManifest, NOT_UTF8, Notice, SYMLINK, TextPair, inside};

/// The start of the first line. A digest of the built text follows, so that edits outside the marks are recognized.
const HEADER: &str = "<!-- built by tanmi context build ";
const KEEP_BEGIN: &str = "<!-- tanmi:keep -->";
const KEEP_END: &str = "<!-- /tanmi:keep -->";

pub struct BuiltContext {
    pub path: PathBuf,
    pub text: String,
    /// The current content of the file.
    pub before: Option<String>,
    pub agents: usize,
    pub skills: usize,
    pub commands: usize,
    pub notices: Vec<Notice>,
}

impl BuiltContext {
    pub fn is_current(&self) -> bool {
        self.before.as_ref() == Some(&self.text)
    }
}

/// Builds the file with headings in this language. `base` is the folder that contains `.tanmi`. Fails if text
/// of a person would be lost.
pub fn build(base: &Path, manifest: &BuildManifest, lang: Lang) -> Result<BuiltContext, Notice> {
    let mut notices = Vec::new();
    let within = |rel: &str| inside(base, rel).map_err(|reason| Notice::new(&base.join(rel), reason));
    let sources = within(manifest.sources())?;
    let path = within(manifest.output())?;
    let is_markdown = path.extension().is_some_and(|end| end == "md");
    let is_reserved =
        [".tanmi", ".git", ".tanmi-workspace"].iter().any(|dir| path.starts_with(base.join(dir)));
    if !is_markdown || is_reserved {
        return Err(Notice::new(
            &path,
            ("output 必须是项目中的 .md 文件", "output must be a .md file of the project"),
        ));
    }
    let agents = drop_duplicates(read_items(&sources.join("agents"), &mut notices), &mut notices);
    let commands = drop_duplicates(read_items(&sources.join("commands"), &mut notices), &mut notices);
    let mut found = Vec::new();
    collect_skills(&sources.join("skills"), None, 0, &mut found, &mut notices);
    let skills = drop_duplicates(found, &mut notices);
    let before =
        tanmi_base::fs::read_limited(&path, 64 << 20).map_err(|error| Notice::from_error(&path, error))?;
    let before =
        before.map(|bytes| String::from_utf8(bytes).map_err(|_| Notice::new(&path, NOT_UTF8))).transpose()?;
    let render = |kept: &str| render(manifest, &agents, &skills, &commands, kept, lang);
    let kept = read_hand_written(before.as_deref()).map_err(|(line, reason)| {
        let line = line.unwrap_or_else(|| changed_line(before.as_deref().unwrap_or_default(), &render("\n")));
        Notice { line, ..Notice::new(&path, reason) }
    })?;
    let text = render(&kept);
    let (agents, skills, commands) = (agents.len(), skills.len(), commands.len());
    Ok(BuiltContext { path, text, before, agents, skills, commands, notices })
}

/// Returns the files and folders in sorted order. Skips symbolic links with a notice.
fn entries(dir: &Path, notices: &mut Vec<Notice>) -> Vec<PathBuf> {
    if tanmi_base::fs::is_link(dir) {
        notices.push(Notice::new(dir, SYMLINK));
        return Vec::new();
    }
    let read = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in read {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            notices.push(Notice::new(&entry.path(), SYMLINK));
        } else {
            paths.push(entry.path());
        }
    }
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read_items(dir: &Path, notices: &mut Vec<Notice>) -> Vec<ContextItem> {
    let files = entries(dir, notices);
    let files = files.iter().filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "md"));
    let mut out = Vec::new();
    for path in files {
        match item::read(path, &name_of(path), None) {
            Ok(item) => out.push(item),
            Err(notice) => notices.push(notice),
        }
    }
    out
}

/// Collects `skills/**/SKILL.md`. If folders are nested, the outermost one is the group.
fn collect_skills(
    dir: &Path,
    group: Option<&str>,
    depth: usize,
    out: &mut Vec<ContextItem>,
    notices: &mut Vec<Notice>,
) {
    for path in entries(dir, notices) {
        if path.is_file() && path.file_name().is_some_and(|name| name == "SKILL.md") && depth > 0 {
            let group = group.map(String::from).filter(|_| depth > 1);
            match item::read(&path, &name_of(dir), group) {
                Ok(item) => out.push(item),
                Err(notice) => notices.push(notice),
            }
        } else if path.is_dir() && depth < 5 {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            collect_skills(&path, group.or(Some(&name)), depth + 1, out, notices);
        }
    }
}

/// Keeps the first item of each name and reports the others.
fn drop_duplicates(found: Vec<ContextItem>, notices: &mut Vec<Notice>) -> Vec<ContextItem> {
    let mut out: Vec<ContextItem> = Vec::new();
    for item in found {
        match out.iter().find(|known| known.name == item.name) {
            Some(known) => {
                let (name, other) = (&item.name, known.path.display());
                let reason = (
                    format!("名称 {name} 已被 {other} 使用"),
                    format!("the name {name} is already used by {other}"),
                );
                notices.push(Notice::new(&item.path, reason));
            }
            None => out.push(item),
        }
    }
    out
}

fn render(
    manifest: &BuildManifest,
    agents: &[ContextItem],
    skills: &[ContextItem],
    commands: &[ContextItem],
    kept: &str,
    lang: Lang,
) -> String {
    let mut out = String::new();
    let title = match manifest.title.is_empty() {
        true => lang.pick("Claude Code Extensions - 扩展上下文", "Claude Code Extensions"),
        false => &manifest.title,
    };
    let _ = writeln!(out, "# {}", escape_marks(title));
    write_environment(&mut out, manifest, lang);
    write_agents(&mut out, agents, lang);
    write_skills(&mut out, manifest, skills, lang);
    if !commands.is_empty() {
        let _ = writeln!(out, "\n## {}\n", lang.pick("可用 Commands", "Commands"));
        write_bullets(
            &mut out,
            commands.iter().map(|command| format!("**/{}**: {}", command.name, command.about)),
        );
    }
    if !manifest.paths.is_empty() {
        let _ = writeln!(out, "\n## {}\n", lang.pick("文档生成路径规则", "Document paths"));
        write_bullets(&mut out, manifest.paths.iter().cloned());
    }
    write_intents(&mut out, manifest, lang);
    let head = format!("{HEADER}{} -->\n", digest(&out));
    format!("{head}{out}\n{KEEP_BEGIN}{kept}{KEEP_END}\n")
}

fn digest(text: &str) -> String {
    tanmi_base::hash::sha256_hex(text.trim().as_bytes())[..12].to_owned()
}

/// Escapes comments, so that no text can be mistaken for one of our marks.
fn escape_marks(text: &str) -> String {
    text.replace("<!--", "‹!--")
}

fn write_bullets(out: &mut String, lines: impl Iterator<Item = String>) {
    for line in lines {
        let _ = writeln!(out, "- {}", escape_marks(&line));
    }
}

fn write_environment(out: &mut String, manifest: &BuildManifest, lang: Lang) {
    if manifest.environment.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}\n", lang.pick("工作区环境", "Environment"));
    for (name, value) in &manifest.environment {
        let value = value.as_str().map_or_else(|| value.to_string(), String::from);
        let _ = writeln!(out, "- **{}**: `{}`", escape_marks(name), escape_marks(&value));
    }
}

fn write_agents(out: &mut String, agents: &[ContextItem], lang: Lang) {
    if agents.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}\n", lang.pick("可用 Agents", "Agents"));
    let _ = writeln!(
        out,
        "{}\n|-------|------|----------|",
        lang.pick("| Agent | 说明 | 适用场景 |", "| Agent | Description | When to use |")
    );
    let cell = |text: &str| escape_marks(text).replace('|', "\\|");
    for agent in agents {
        let _ = writeln!(out, "| {} | {} | {} |", cell(&agent.name), cell(&agent.about), cell(&agent.when));
    }
    let (how, ask) = (lang.pick("使用方式：", "Usage:"), lang.pick("[任务描述]", "[task description]"));
    let _ = writeln!(out, "\n{how}\n```\nTask subagent_type=\"{}\" prompt=\"{ask}\"\n```", agents[0].name);
}

fn write_skills(out: &mut String, manifest: &BuildManifest, skills: &[ContextItem], lang: Lang) {
    if skills.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}", lang.pick("可用 Skills", "Skills"));
    let mut groups: BTreeMap<(usize, Option<&str>), Vec<&ContextItem>> = BTreeMap::new();
    for skill in skills {
        let group = skill.group.as_deref();
        let position = manifest.skill_groups.keys().position(|known| Some(known.as_str()) == group);
        groups.entry((position.unwrap_or(usize::MAX), group)).or_default().push(skill);
    }
    for ((_, group), skills) in groups {
        let title = group
            .map(|group| manifest.skill_groups.get(group).and_then(|title| title.as_str()).unwrap_or(group));
        out.push_str(&title.map_or(String::from("\n"), |title| format!("\n### {title}\n")));
        write_bullets(out, skills.iter().map(|skill| skill_line(skill, lang)));
    }
    let how = lang.pick("使用方式：", "Usage:");
    let _ = writeln!(out, "\n{how}\n```\nSkill skill=\"{}\"\n```", skills[0].name);
}

fn skill_line(skill: &ContextItem, lang: Lang) -> String {
    let ContextItem { name, about, when, .. } = skill;
    let when = match when.is_empty() {
        true => String::new(),
        false => lang.pick(format!("（适用场景：{when}）"), format!(" (when to use: {when})")),
    };
    format!("**{name}**: {about}{when}")
}

fn write_intents(out: &mut String, manifest: &BuildManifest, lang: Lang) {
    if manifest.intents.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}", lang.pick("意图检测", "Intent detection"));
    for intent in &manifest.intents {
        let (zh, en) = (
            format!("当用户输入包含以下关键词时，请使用 `{}`", intent.target),
            format!("When the prompt contains one of these keywords, use `{}`", intent.target),
        );
        let _ = writeln!(out, "\n{}", lang.pick(zh, en));
        write_bullets(out, intent.words.iter().cloned());
    }
}

/// Returns the 1-based line of the first occurrence of a text, or else the last line.
fn line_of(text: &str, part: &str) -> usize {
    text[..text.find(part).unwrap_or(text.trim_end().len())].matches('\n').count() + 1
}

/// Returns the first line of a file that differs from what the build writes. The first line has the checksum.
fn changed_line(before: &str, built: &str) -> usize {
    let same =
        before.lines().zip(built.lines()).skip(1).take_while(|(before, built)| before == built).count();
    same + 2
}

/// Returns the text that a person wrote. That is the entire file if it was never built, otherwise the text between the
/// marks. Fails if there is text elsewhere, which would be lost; with the line, unless the built part was changed.
fn read_hand_written(before: Option<&str>) -> Result<String, (Option<usize>, TextPair)> {
    let Some(before) = before.filter(|before| !before.trim().is_empty()) else {
        return Ok(String::from("\n"));
    };
    let before = before.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let Some(rest) = before.strip_prefix(HEADER) else {
        if let Some(mark) = [HEADER, KEEP_BEGIN, KEEP_END].into_iter().find(|mark| before.contains(mark)) {
            let reason = (
                "该文件不是由 tanmi context build 生成的，但包含其标记；请先删除这些标记",
                "the file was not built by tanmi context build but contains its marks; remove the marks first",
            );
            return Err((Some(line_of(&before, mark)), reason));
        }
        return Ok(format!("\n{}\n", before.trim_end()));
    };
    let reason = (
        "标记已损坏；请用 `<!-- tanmi:keep -->` 和 `<!-- /tanmi:keep -->` 重新包住你写的内容",
        "the marks are damaged; put `<!-- tanmi:keep -->` and `<!-- /tanmi:keep -->` back around your own text",
    );
    let damaged = || {
        let known = [KEEP_BEGIN, KEEP_END].into_iter().find(|mark| before.contains(mark));
        (Some(line_of(&before, known.unwrap_or(KEEP_END))), reason)
    };
    // A person removes the digest to confirm that the built part contains no text of theirs.
    let (written, rest) = rest.split_once("-->\n").ok_or_else(damaged)?;
    let written = written.trim();
    let (built, rest) = rest.split_once(KEEP_BEGIN).ok_or_else(damaged)?;
    let (kept, after) = rest.rsplit_once(KEEP_END).ok_or_else(damaged)?;
    if kept.contains(KEEP_BEGIN) || kept.contains(KEEP_END) {
        return Err(damaged());
    }
    let is_built_part_changed = !written.is_empty() && written != digest(built);
    if is_built_part_changed || !after.trim().is_empty() {
        let added_at = before.len() - after.trim_start().len();
        let line = (!is_built_part_changed).then(|| before[..added_at].matches('\n').count() + 1);
        let reason = (
            "标记之外的内容被修改过；请将你写的内容移到 `<!-- tanmi:keep -->` 和 `<!-- /tanmi:keep -->` 之间，并删除第一行中的校验值",
            "the file was changed outside the marks; move your own text between `<!-- tanmi:keep -->` and `<!-- /tanmi:keep -->`, and delete the checksum in the first line",
        );
        return Err((line, reason));
    }
    Ok(kept.to_owned())
}
