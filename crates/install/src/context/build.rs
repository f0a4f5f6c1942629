//! The declared file, built from what is there: the same things give the same bytes. What a person wrote into it between
//! the marks stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tanmi_base::Lang;

use super::matter::{self, Matter};
use super::{Recipe, Remark};

const BUILT: &str = "<!-- built by tanmi context build -->";
const KEEP: &str = "<!-- tanmi:keep -->";
const KEPT: &str = "<!-- /tanmi:keep -->";

pub struct Built {
    pub path: PathBuf,
    pub text: String,
    /// What is there now.
    pub before: Option<String>,
    pub agents: usize,
    pub skills: usize,
    pub commands: usize,
    pub remarks: Vec<Remark>,
}

impl Built {
    pub fn is_current(&self) -> bool {
        self.before.as_ref() == Some(&self.text)
    }
}

/// `base` is the folder that `.tanmi` is in.
pub fn build(base: &Path, recipe: &Recipe) -> Built {
    let mut remarks = Vec::new();
    let sources = base.join(recipe.sources());
    let agents = unique(flat(&sources.join("agents"), &mut remarks), &mut remarks);
    let commands = unique(flat(&sources.join("commands"), &mut remarks), &mut remarks);
    let mut found = Vec::new();
    skills_in(&sources.join("skills"), None, 0, &mut found, &mut remarks);
    let skills = unique(found, &mut remarks);
    let path = base.join(recipe.output());
    let before = tanmi_base::fs::read_limited(&path, 64 << 20).ok().flatten();
    let before = before.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text(recipe, &agents, &skills, &commands, before.as_deref());
    let (agents, skills, commands) = (agents.len(), skills.len(), commands.len());
    Built { path, text, before, agents, skills, commands, remarks }
}

/// Files and folders in order; links are nobody's.
fn entries(dir: &Path, remarks: &mut Vec<Remark>) -> Vec<PathBuf> {
    let read = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in read {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            remarks.push(Remark::new(&entry.path(), "a symbolic link"));
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

fn flat(dir: &Path, remarks: &mut Vec<Remark>) -> Vec<Matter> {
    let files = entries(dir, remarks);
    let files = files.iter().filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "md"));
    let mut out = Vec::new();
    for path in files {
        match matter::read(path, &name_of(path), None) {
            Ok(matter) => out.push(matter),
            Err(remark) => remarks.push(remark),
        }
    }
    out
}

/// `skills/**/SKILL.md`; the first folder of several is the group.
fn skills_in(
    dir: &Path,
    group: Option<&str>,
    depth: usize,
    out: &mut Vec<Matter>,
    remarks: &mut Vec<Remark>,
) {
    for path in entries(dir, remarks) {
        if path.is_file() && path.file_name().is_some_and(|name| name == "SKILL.md") && depth > 0 {
            let group = group.map(String::from).filter(|_| depth > 1);
            match matter::read(&path, &name_of(dir), group) {
                Ok(matter) => out.push(matter),
                Err(remark) => remarks.push(remark),
            }
        } else if path.is_dir() && depth < 5 {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            skills_in(&path, group.or(Some(&name)), depth + 1, out, remarks);
        }
    }
}

/// Of two with one name the first counts.
fn unique(found: Vec<Matter>, remarks: &mut Vec<Remark>) -> Vec<Matter> {
    let mut out: Vec<Matter> = Vec::new();
    for matter in found {
        match out.iter().find(|known| known.name == matter.name) {
            Some(known) => {
                let reason = format!("{} is also the name of {}", matter.name, known.path.display());
                remarks.push(Remark::new(&matter.path, reason));
            }
            None => out.push(matter),
        }
    }
    out
}

fn text(
    recipe: &Recipe,
    agents: &[Matter],
    skills: &[Matter],
    commands: &[Matter],
    before: Option<&str>,
) -> String {
    let lang = recipe.lang();
    let mut out = String::new();
    let title = match recipe.title.is_empty() {
        true => lang.pick("Claude Code Extensions - 扩展上下文", "Claude Code Extensions"),
        false => &recipe.title,
    };
    let _ = writeln!(out, "# {title}\n\n{BUILT}");
    environment(&mut out, recipe, lang);
    agents_table(&mut out, agents, lang);
    skills_lists(&mut out, recipe, skills, lang);
    if !commands.is_empty() {
        let _ = writeln!(out, "\n## {}\n", lang.pick("可用 Commands", "Commands"));
        bullets(&mut out, commands.iter().map(|command| format!("**/{}**: {}", command.name, command.about)));
    }
    if !recipe.paths.is_empty() {
        let _ = writeln!(out, "\n## {}\n", lang.pick("文档生成路径规则", "Where documents go"));
        bullets(&mut out, recipe.paths.iter().cloned());
    }
    intents(&mut out, recipe, lang);
    let _ = writeln!(out, "\n{KEEP}{}{KEPT}", hand_written(before));
    out
}

fn bullets(out: &mut String, lines: impl Iterator<Item = String>) {
    for line in lines {
        let _ = writeln!(out, "- {line}");
    }
}

fn environment(out: &mut String, recipe: &Recipe, lang: Lang) {
    if recipe.environment.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}\n", lang.pick("工作区环境", "Environment"));
    for (name, value) in &recipe.environment {
        let value = value.as_str().map_or_else(|| value.to_string(), String::from);
        let _ = writeln!(out, "- **{name}**: `{value}`");
    }
}

fn agents_table(out: &mut String, agents: &[Matter], lang: Lang) {
    if agents.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}\n", lang.pick("可用 Agents", "Agents"));
    let _ = writeln!(
        out,
        "{}\n|-------|------|----------|",
        lang.pick("| Agent | 说明 | 适用场景 |", "| Agent | What it does | When |")
    );
    let cell = |text: &str| text.replace('|', "\\|");
    for agent in agents {
        let _ = writeln!(out, "| {} | {} | {} |", cell(&agent.name), cell(&agent.about), cell(&agent.when));
    }
    let (how, ask) = (lang.pick("使用方式：", "To use one:"), lang.pick("[任务描述]", "[what to do]"));
    let _ = writeln!(out, "\n{how}\n```\nTask subagent_type=\"{}\" prompt=\"{ask}\"\n```", agents[0].name);
}

fn skills_lists(out: &mut String, recipe: &Recipe, skills: &[Matter], lang: Lang) {
    if skills.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}", lang.pick("可用 Skills", "Skills"));
    let mut groups: BTreeMap<(usize, Option<&str>), Vec<&Matter>> = BTreeMap::new();
    for skill in skills {
        let group = skill.group.as_deref();
        let place = recipe.skill_groups.keys().position(|known| Some(known.as_str()) == group);
        groups.entry((place.unwrap_or(usize::MAX), group)).or_default().push(skill);
    }
    for ((_, group), skills) in groups {
        let title = group
            .map(|group| recipe.skill_groups.get(group).and_then(|title| title.as_str()).unwrap_or(group));
        out.push_str(&title.map_or(String::from("\n"), |title| format!("\n### {title}\n")));
        bullets(out, skills.iter().map(|skill| format!("**{}**: {}", skill.name, skill.about)));
    }
    let how = lang.pick("使用方式：", "To use one:");
    let _ = writeln!(out, "\n{how}\n```\nSkill skill=\"{}\"\n```", skills[0].name);
}

fn intents(out: &mut String, recipe: &Recipe, lang: Lang) {
    if recipe.intents.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {}", lang.pick("意图检测", "What is meant"));
    for intent in &recipe.intents {
        let (zh, en) = (
            format!("当用户输入包含以下关键词时，请使用 `{}`", intent.target),
            format!("When the user's words have one of these in them, use `{}`", intent.target),
        );
        let _ = writeln!(out, "\n{}", lang.pick(zh, en));
        bullets(out, intent.words.iter().cloned());
    }
}

/// What a person wrote. A file that was never built is all theirs.
fn hand_written(before: Option<&str>) -> String {
    let Some(before) = before.filter(|before| !before.trim().is_empty()) else { return String::from("\n") };
    let between =
        before.split_once(KEEP).and_then(|(_, rest)| rest.rsplit_once(KEPT)).map(|(between, _)| between);
    match between {
        Some(between) => between.to_owned(),
        None if before.contains(BUILT) => String::from("\n"),
        None => format!("\n{}\n", before.trim_end()),
    }
}
