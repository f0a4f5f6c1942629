//! What would be written where: computed from the files as they are, before anything is touched.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tanmi_base::Lang;
use tanmi_base::fs::{self, FileSig};

use crate::agent::{Agent, Folders, GuideFile, Scope};
use crate::doc::Text;
use crate::json::{self, Json};
use crate::receipt::Receipts;
use crate::{Refusal, TanmiCommand, guide, hooks, status_line, toml};

/// What one file is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigPart {
    Hooks,
    Server,
    StatusLine,
    Guide(GuideFile),
}

/// One file of one agent.
#[derive(Clone, Debug)]
pub struct TargetFile {
    pub agent: &'static Agent,
    pub scope: Scope,
    pub path: PathBuf,
    /// The project, for a file of one.
    pub project: Option<PathBuf>,
    pub parts: Vec<ConfigPart>,
}

/// What is to be put in.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The program as agents will find it.
    pub program: String,
    pub lang: Lang,
    pub hooks: bool,
    pub server: bool,
    pub guide: bool,
    /// Where the agent has one.
    pub status_line: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    Create,
    Change,
    Unchanged,
    Remove,
    Refused(Refusal),
}

#[derive(Clone, Debug)]
pub struct PlannedChange {
    pub target: TargetFile,
    /// The file itself, where the path is a link.
    pub real: PathBuf,
    pub outcome: ChangeOutcome,
    pub before: Option<Vec<u8>>,
    /// `None`: the file goes.
    pub after: Option<Vec<u8>>,
    pub(crate) sig: Option<FileSig>,
}

impl PlannedChange {
    pub fn is_change(&self) -> bool {
        matches!(self.outcome, ChangeOutcome::Create | ChangeOutcome::Change | ChangeOutcome::Remove)
    }

    /// As people read changes.
    pub fn diff(&self) -> String {
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let (before, after) = (text(&self.before), text(&self.after));
        let path = self.target.path.display().to_string();
        let name =
            |bytes: &Option<Vec<u8>>| if bytes.is_some() { path.clone() } else { String::from("/dev/null") };
        similar::TextDiff::from_lines(&before, &after)
            .unified_diff()
            .context_radius(2)
            .header(&name(&self.before), &name(&self.after))
            .to_string()
    }
}

/// Larger files are nobody's settings.
const MAX_FILE: u64 = 64 << 20;

/// The files of an agent, each once.
pub fn target_files(
    agent: &'static Agent,
    scope: Scope,
    folders: &Folders,
    options: Option<&InstallOptions>,
) -> Vec<TargetFile> {
    let mut target_files: Vec<TargetFile> = Vec::new();
    let project = (scope == Scope::Project).then(|| folders.project.clone());
    let mut add = |path: PathBuf, what: ConfigPart| match target_files
        .iter_mut()
        .find(|target| target.path == path)
    {
        Some(target) => target.parts.push(what),
        None => {
            target_files.push(TargetFile { agent, scope, path, project: project.clone(), parts: vec![what] })
        }
    };
    if options.is_none_or(|options| options.hooks) {
        add(agent.hooks_file(scope, folders), ConfigPart::Hooks);
    }
    // A project's would take the place of everybody's own.
    if agent.has_status_line && scope == Scope::User && options.is_none_or(|options| options.status_line) {
        add(agent.hooks_file(scope, folders), ConfigPart::StatusLine);
    }
    if let Some(path) =
        agent.mcp_file(scope, folders).filter(|_| options.is_none_or(|options| options.server))
    {
        add(path, ConfigPart::Server);
    }
    if let Some(file) =
        agent.guide_file(scope, folders).filter(|_| options.is_none_or(|options| options.guide))
    {
        let (GuideFile::Whole(path) | GuideFile::Block(path)) = &file;
        add(path.clone(), ConfigPart::Guide(file.clone()));
    }
    target_files
}

/// A file as it is now.
pub(crate) struct CurrentFile {
    pub real: PathBuf,
    pub bytes: Option<Vec<u8>>,
    pub sig: Option<FileSig>,
}

pub(crate) fn read(path: &Path) -> Result<CurrentFile, Refusal> {
    let unusable = |error: io::Error| Refusal::Unusable(error.to_string());
    let real = match fs::is_link(path) {
        true => path.canonicalize().map_err(|_| Refusal::BrokenLink)?,
        false => path.to_owned(),
    };
    // The look at what it is comes first: what changes in between is noticed when it is replaced.
    let sig = FileSig::of(&real).map_err(unusable)?;
    if sig.is_none() {
        return Ok(CurrentFile { real, bytes: None, sig });
    }
    let meta = std::fs::metadata(&real).map_err(unusable)?;
    if !meta.is_file() {
        return Err(Refusal::NotAFile);
    }
    if meta.len() > MAX_FILE {
        return Err(Refusal::TooLarge);
    }
    if meta.permissions().readonly() {
        return Err(Refusal::ReadOnly);
    }
    let bytes = fs::read_limited(&real, MAX_FILE).map_err(unusable)?;
    Ok(CurrentFile { real, bytes, sig })
}

pub fn plan(target: TargetFile, options: &InstallOptions) -> PlannedChange {
    let planned = |now: CurrentFile, after: Result<Vec<u8>, Refusal>| {
        let outcome = match &after {
            Err(refusal) => ChangeOutcome::Refused(refusal.clone()),
            Ok(after) if now.bytes.as_ref() == Some(after) => ChangeOutcome::Unchanged,
            Ok(_) if now.bytes.is_none() => ChangeOutcome::Create,
            Ok(_) => ChangeOutcome::Change,
        };
        PlannedChange {
            target: named(&target, after.as_deref().ok()),
            real: now.real,
            outcome,
            before: now.bytes,
            after: after.ok(),
            sig: now.sig,
        }
    };
    match read(&target.path) {
        Err(refusal) => {
            planned(CurrentFile { real: target.path.clone(), bytes: None, sig: None }, Err(refusal))
        }
        Ok(now) => {
            let after = with(&target, now.bytes.as_deref(), options);
            planned(now, after)
        }
    }
}

/// The parts that are ours in this text: a status line may be somebody else's, and stays.
fn named(target: &TargetFile, bytes: Option<&[u8]>) -> TargetFile {
    let has_ours = || {
        let json = Json::parse(&Text::of(bytes?).ok()?.body).ok()?;
        status_line::program(&json.value())
    };
    let mut target = target.clone();
    if target.parts.contains(&ConfigPart::StatusLine) && has_ours().is_none() {
        target.parts.retain(|part| *part != ConfigPart::StatusLine);
    }
    target
}

/// The file with everything of ours in it.
pub(crate) fn with(
    target: &TargetFile,
    bytes: Option<&[u8]>,
    options: &InstallOptions,
) -> Result<Vec<u8>, Refusal> {
    let text = || Text::of(bytes.unwrap_or_default());
    match format(target) {
        Format::Json => json::changed(bytes, |json| {
            if target.parts.contains(&ConfigPart::Hooks) {
                hooks::put(json, target.agent, &options.program)?;
            }
            if target.parts.contains(&ConfigPart::Server) {
                hooks::put_server(json, target.agent, &options.program)?;
            }
            if target.parts.contains(&ConfigPart::StatusLine) {
                status_line::put(json, &options.program)?;
            }
            Ok(())
        }),
        Format::Toml => {
            let text = text()?;
            Ok(text.with(&toml::put_server(&text, &options.program)?))
        }
        Format::Markdown(file) => {
            let text = text()?;
            let before = bytes.map(|_| text.body.as_str());
            let body = guide::put(file, before, options.lang).map_err(|line| match line {
                Some(line) => Refusal::Edited { line },
                None => Refusal::ForeignFile,
            })?;
            Ok(text.with(&body))
        }
    }
}

/// What belongs into a file that has nothing of ours.
pub fn snippet(target: &TargetFile, options: &InstallOptions) -> String {
    with(target, None, options).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// What a file is written in.
enum Format<'a> {
    Markdown(&'a GuideFile),
    Toml,
    Json,
}

fn format(target: &TargetFile) -> Format<'_> {
    let guide = target.parts.iter().find_map(|part| match part {
        ConfigPart::Guide(file) => Some(file),
        _ => None,
    });
    match guide {
        Some(file) => Format::Markdown(file),
        None if target.path.extension().is_some_and(|extension| extension == "toml") => Format::Toml,
        None => Format::Json,
    }
}

/// What taking everything out of a file would do to it.
pub fn plan_removal(target: TargetFile, receipts: &Receipts) -> Option<PlannedChange> {
    let now = match read(&target.path) {
        Ok(now) => now,
        Err(refusal) => {
            let is_ours = receipts.has(&target.path);
            let (real, outcome) = (target.path.clone(), ChangeOutcome::Refused(refusal));
            return is_ours.then_some(PlannedChange {
                target,
                real,
                outcome,
                before: None,
                after: None,
                sig: None,
            });
        }
    };
    let bytes = now.bytes?;
    let after = match receipts.original(&now.real, &bytes) {
        // Nobody wrote to it since: it becomes what it was.
        Some(original) => Ok(original),
        None => without(&target, &bytes, &receipts.before(&now.real)).map(|left| left.or_gone(&bytes)),
    };
    let outcome = match &after {
        Err(refusal) => ChangeOutcome::Refused(refusal.clone()),
        Ok(None) => ChangeOutcome::Remove,
        Ok(Some(after)) if *after == bytes => return None,
        Ok(Some(_)) => ChangeOutcome::Change,
    };
    let after = after.ok().flatten();
    let target = named(&target, Some(&bytes));
    Some(PlannedChange { target, real: now.real, outcome, before: Some(bytes), after, sig: now.sig })
}

/// What is left of a file without us.
pub(crate) enum RemovalResult {
    Same,
    Text(Vec<u8>),
    Nothing,
}

impl RemovalResult {
    fn or_gone(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            RemovalResult::Same => Some(bytes.to_vec()),
            RemovalResult::Text(text) => Some(text),
            RemovalResult::Nothing => None,
        }
    }
}

/// What a file was before us, if that is known.
pub(crate) enum OriginalContent {
    Unknown,
    Absent,
    Bytes(Vec<u8>),
}

/// The file without anything of ours.
pub(crate) fn without(
    target: &TargetFile,
    bytes: &[u8],
    before: &OriginalContent,
) -> Result<RemovalResult, Refusal> {
    let text = Text::of(bytes)?;
    let old = match before {
        OriginalContent::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let body = match format(target) {
        Format::Markdown(file) => match guide::take(file, &text.body) {
            Err(line) => return Err(Refusal::Edited { line }),
            Ok(None) => text.body.clone(),
            Ok(Some(Some(left))) => left,
            Ok(Some(None)) => return Ok(RemovalResult::Nothing),
        },
        Format::Toml => toml::take_server(&text, &old)?.unwrap_or_else(|| text.body.clone()),
        Format::Json => {
            let json = Json::parse(&text.body)?;
            let old = match before {
                OriginalContent::Unknown => Value::Null,
                _ => Json::parse(old.trim_start_matches('\u{feff}'))
                    .map(|json| json.value())
                    .unwrap_or_default(),
            };
            hooks::take(&json, target.agent, &old);
            hooks::take_server(&json, &old);
            status_line::take(&json);
            json.text()
        }
    };
    if body == text.body {
        return Ok(RemovalResult::Same);
    }
    let is_own_name = target.path.file_stem().is_some_and(|name| name == "tanmi");
    let was_made = matches!(before, OriginalContent::Absent)
        || is_own_name && matches!(before, OriginalContent::Unknown);
    if was_made && matches!(body.trim(), "" | "{}") {
        return Ok(RemovalResult::Nothing);
    }
    Ok(RemovalResult::Text(text.with(&body)))
}

/// What of ours is in an agent's files.
#[derive(Clone, Debug)]
pub struct InstalledState {
    pub agent: &'static Agent,
    pub scope: Scope,
    pub path: PathBuf,
    /// Event, command line, and what it runs.
    pub hooks: Vec<(String, String, TanmiCommand)>,
    /// The program of our server.
    pub server: Option<String>,
    /// The program of our status line.
    pub status_line: Option<String>,
    pub has_guide: bool,
    /// Keys that switch us off, and events whose hook is no longer the one we wrote.
    pub off: Vec<String>,
    pub altered: Vec<String>,
    pub refusal: Option<Refusal>,
}

/// Looks at every file that is there.
pub fn inspect(agent: &'static Agent, scope: Scope, folders: &Folders) -> Vec<InstalledState> {
    let look = |target: TargetFile| -> Option<InstalledState> {
        let mut found = InstalledState {
            agent,
            scope,
            path: target.path.clone(),
            hooks: Vec::new(),
            server: None,
            status_line: None,
            has_guide: false,
            off: Vec::new(),
            altered: Vec::new(),
            refusal: None,
        };
        let bytes = match fs::read_limited(&target.path, MAX_FILE) {
            Ok(bytes) => bytes?,
            Err(error) => {
                found.refusal = Some(Refusal::Unusable(error.to_string()));
                return Some(found);
            }
        };
        found.refusal = fill(&mut found, &target, &bytes).err();
        Some(found)
    };
    target_files(agent, scope, folders, None).into_iter().filter_map(look).collect()
}

fn fill(found: &mut InstalledState, target: &TargetFile, bytes: &[u8]) -> Result<(), Refusal> {
    let text = Text::of(bytes)?;
    match format(target) {
        Format::Markdown(file) => {
            found.has_guide = guide::guide_state(file, &text.body) != guide::GuideState::None;
        }
        Format::Toml => {
            found.server = toml::server_program(&text)?;
            found.off = toml::switched_off(&text);
        }
        Format::Json => {
            let json = Json::parse(&text.body)?;
            found.hooks = hooks::found(&json, target.agent);
            found.off = hooks::switched_off(&json);
            found.altered = hooks::altered(&json, target.agent);
            found.status_line = status_line::program(&json.value());
            found.server = hooks::server_program(json.value()[hooks::SERVERS].get(hooks::NAME));
        }
    }
    Ok(())
}
