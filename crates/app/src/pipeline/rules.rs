//! The rules files of the workspace, the project and the user, and whether each is trusted.

use std::path::{Path, PathBuf};

use tanmi_base::paths::{CONFIG_DIR, workspace_folder};
use tanmi_base::{Lang, fs, hash};
use tanmi_engine::{CustomRule, RuleFlaw, RuleSource, check_condition, parse_rules};
use tanmi_workspace::model::WorkspaceId;

use crate::trust::{Consent, ProjectFile, ProjectTrust};

/// Above the limit of [`parse_rules`], so that its error message is shown for files that are too long.
const MAX_BYTES: u64 = 1 << 20;
const FILE: &str = "rules.json";

#[derive(Clone, Debug)]
pub struct RuleFile {
    pub source: RuleSource,
    pub path: PathBuf,
    pub trusted: bool,
    /// Whether the user trusted other content of the file before.
    pub is_changed: bool,
    /// SHA-256 of the content.
    pub hash: String,
    pub rules: Vec<CustomRule>,
    pub flaws: Vec<RuleFlaw>,
}

/// Returns the existing rules files in order of precedence. A file that cannot be read is included with a flaw.
pub fn load(
    user: Option<&Path>,
    project: Option<&ProjectTrust>,
    workspace: Option<&WorkspaceId>,
) -> Vec<RuleFile> {
    paths(user, project.map(ProjectTrust::project), workspace)
        .into_iter()
        .filter_map(|(source, path)| match project.filter(|_| source != RuleSource::Global) {
            Some(project) => read_of_project(project, source, path),
            None => read_of_user(source, path),
        })
        .collect()
}

/// Returns the paths where rules files can be, in order of precedence.
pub fn paths(
    user: Option<&Path>,
    project: Option<&Path>,
    workspace: Option<&WorkspaceId>,
) -> Vec<(RuleSource, PathBuf)> {
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

fn read_of_user(source: RuleSource, path: PathBuf) -> Option<RuleFile> {
    match fs::read_limited(&path, MAX_BYTES) {
        Ok(None) => None,
        Ok(Some(bytes)) => Some(parsed(source, path, &bytes, Consent::Given)),
        Err(error) => Some(unreadable(source, path, &error)),
    }
}

fn read_of_project(project: &ProjectTrust, source: RuleSource, path: PathBuf) -> Option<RuleFile> {
    match read_project_file(project, source, &path) {
        Ok(None) => None,
        Ok(Some(file)) => {
            let consent = project.consent_to_rules(&file);
            Some(parsed(source, path, &file.bytes, consent))
        }
        Err(error) => Some(unreadable(source, path, &error)),
    }
}

/// Reads a rules file of a project or of a workspace in it; `None` if it is missing.
pub fn read_project_file(
    project: &ProjectTrust,
    source: RuleSource,
    path: &Path,
) -> std::io::Result<Option<ProjectFile>> {
    match source {
        RuleSource::Project => project.read_config_file(FILE, MAX_BYTES),
        _ => project.read(path, MAX_BYTES),
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
        Ok(bytes) => parsed(RuleSource::Project, path.to_owned(), &bytes, Consent::Given),
        Err(error) => unreadable(RuleSource::Project, path.to_owned(), &error),
    }
}

fn parsed(source: RuleSource, path: PathBuf, bytes: &[u8], consent: Consent) -> RuleFile {
    let (trusted, is_changed) = (consent == Consent::Given, consent == Consent::Outdated);
    let (rules, flaws) = parse_rules(bytes, source, trusted);
    RuleFile { source, path, trusted, is_changed, hash: hash::sha256_hex(bytes), rules, flaws }
}

fn unreadable(source: RuleSource, path: PathBuf, error: &std::io::Error) -> RuleFile {
    let (zh, en) = (format!("无法读取：{error}"), format!("cannot be read: {error}"));
    let flaws = vec![RuleFlaw { line: 0, rule: None, zh, en, fatal: true }];
    RuleFile { source, path, trusted: true, is_changed: false, hash: String::new(), rules: Vec::new(), flaws }
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
