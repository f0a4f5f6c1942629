//! The rules files of the workspace, the project and the user, and whether each is trusted.

use std::path::{Path, PathBuf};

use tanmi_base::paths::{CONFIG_DIR, workspace_folder};
use tanmi_base::{Lang, fs, hash};
use tanmi_engine::{CustomRule, RuleFlaw, RuleSource, check_condition, parse_rules};
use tanmi_workspace::model::WorkspaceId;

use super::Caller;
use crate::trust::Trust;

/// Above the limit of [`parse_rules`], so that its error message is shown for files that are too long.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub struct RuleFile {
    pub source: RuleSource,
    pub path: PathBuf,
    pub trusted: bool,
    /// SHA-256 of the content.
    pub hash: String,
    pub rules: Vec<CustomRule>,
    pub flaws: Vec<RuleFlaw>,
}

/// Returns the existing rules files in order of precedence. A file that cannot be read is included with a flaw.
pub fn load(caller: &Caller<'_>, project: Option<&Path>, workspace: Option<&WorkspaceId>) -> Vec<RuleFile> {
    paths(caller.user, project, workspace)
        .into_iter()
        .filter_map(|(source, path)| read(caller, source, path))
        .collect()
}

/// Returns the paths where rules files can be, in order of precedence.
pub fn paths(
    user: Option<&Path>,
    project: Option<&Path>,
    workspace: Option<&WorkspaceId>,
) -> Vec<(RuleSource, PathBuf)> {
    const FILE: &str = "rules.json";
    let mut paths = Vec::new();
    if let (Some(project), Some(id)) = (project, workspace) {
        paths.push((RuleSource::Workspace, workspace_folder(project, id.as_str()).join(FILE)));
    }
    let global = user.map(|user| user.join(CONFIG_DIR).join(FILE));
    let of_project = project.map(|project| project.join(CONFIG_DIR).join(FILE));
    // If the home folder is also the project, both have the same file, which counts as global.
    let of_project = of_project.filter(|path| Some(path) != global.as_ref());
    paths.extend(of_project.map(|path| (RuleSource::Project, path)));
    paths.extend(global.map(|path| (RuleSource::Global, path)));
    paths
}

fn read(caller: &Caller<'_>, source: RuleSource, path: PathBuf) -> Option<RuleFile> {
    match fs::read_limited(&path, MAX_BYTES) {
        Ok(None) => None,
        Ok(Some(bytes)) => {
            let trusted = source == RuleSource::Global || Trust::new(caller.home).has_rules(&path, &bytes);
            Some(parsed(source, path, &bytes, trusted))
        }
        Err(error) => Some(unreadable(source, path, &error)),
    }
}

/// Replaces the rules file of the project with the file at `path`, which counts as trusted.
pub fn replace_project_file(files: &mut Vec<RuleFile>, path: &Path) {
    files.retain(|file| file.source != RuleSource::Project);
    files.push(read_as_trusted(path));
}

/// Reads one rules file as if it were a trusted file of the project.
pub fn read_as_trusted(path: &Path) -> RuleFile {
    match fs::read_limited(path, MAX_BYTES)
        .and_then(|read| read.ok_or_else(|| std::io::ErrorKind::NotFound.into()))
    {
        Ok(bytes) => parsed(RuleSource::Project, path.to_owned(), &bytes, true),
        Err(error) => unreadable(RuleSource::Project, path.to_owned(), &error),
    }
}

fn parsed(source: RuleSource, path: PathBuf, bytes: &[u8], trusted: bool) -> RuleFile {
    let (rules, flaws) = parse_rules(bytes, source, trusted);
    RuleFile { source, path, trusted, hash: hash::sha256_hex(bytes), rules, flaws }
}

fn unreadable(source: RuleSource, path: PathBuf, error: &std::io::Error) -> RuleFile {
    let (zh, en) = (format!("无法读取：{error}"), format!("cannot be read: {error}"));
    let flaws = vec![RuleFlaw { line: 0, rule: None, zh, en, fatal: true }];
    RuleFile { source, path, trusted: true, hash: String::new(), rules: Vec::new(), flaws }
}

pub fn flatten(files: &[RuleFile]) -> Vec<CustomRule> {
    files.iter().flat_map(|file| file.rules.iter().cloned()).collect()
}

/// Returns the fatal flaws of trusted files, for the log.
pub fn warnings(files: &[RuleFile]) -> Vec<String> {
    let of_file = |file: &RuleFile| {
        let path = file.path.display().to_string();
        file.flaws
            .iter()
            .filter(|flaw| flaw.fatal)
            .map(move |flaw| format!("{path}: {}", flaw.en))
            .collect::<Vec<_>>()
    };
    files.iter().filter(|file| file.trusted).flat_map(of_file).collect()
}

/// Returns all flaws of a file, including those of conditions.
pub fn check(file: &RuleFile) -> Vec<RuleFlaw> {
    let mut flaws = file.flaws.clone();
    for rule in &file.rules {
        if let Some(Err(error)) = rule.condition.as_deref().map(check_condition) {
            let zh = format!("条件有误：{}", error.message(Lang::Zh));
            let en = format!("condition: {}", error.message(Lang::En));
            flaws.push(RuleFlaw { line: rule.line, rule: Some(rule.id.clone()), zh, en, fatal: true });
        }
        if tanmi_engine::BUILTIN_RULES.iter().any(|known| known.id.as_str() == rule.id) {
            let (zh, en) = (
                String::from("id 与内置规则相同，不会生效"),
                String::from("has the ID of a built-in rule and is ignored"),
            );
            flaws.push(RuleFlaw { line: rule.line, rule: Some(rule.id.clone()), zh, en, fatal: true });
        }
    }
    flaws
}
