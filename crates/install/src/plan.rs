//! Plans the changes of an installation or removal from the current files, without writing.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tanmi_base::Lang;
use tanmi_base::fs::{self, FileSig};
use tanmi_platform::{ClientSpec, Scope};

use crate::doc::TextFile;
use crate::folders::{Folders, GuideFile};
use crate::json::{self, Json};
use crate::receipt::Receipts;
use crate::{Refusal, TanmiCommand, guide, hooks, links, permissions, status_line, toml};

/// A part of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigPart {
    Hooks,
    Server,
    StatusLine,
    /// The permission to use our tools without asking.
    Permission,
    Guide(GuideFile),
}

/// A file of a client, with the parts that belong in it.
#[derive(Clone, Debug)]
pub struct TargetFile {
    pub client: &'static ClientSpec,
    pub scope: Scope,
    pub path: PathBuf,
    /// The project; `None` in the user scope.
    pub project: Option<PathBuf>,
    pub parts: Vec<ConfigPart>,
    /// Whether a custom rule needs to know of tool calls.
    pub has_tool_rules: bool,
}

/// What to install.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The path of the program that clients run.
    pub program: String,
    pub lang: Lang,
    pub hooks: bool,
    pub server: bool,
    pub guide: bool,
    /// Ignored for clients without a status line.
    pub status_line: bool,
    /// Whether the client may use our tools without asking. Ignored for clients without such a list. `false` keeps an
    /// existing permission.
    pub allow_tools: bool,
    /// Whether a custom rule for this client needs to know of tool calls. If not, the hook for them is removed.
    pub has_tool_rules: bool,
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
    /// The parts that were asked for. The target has those of them that are in the file.
    pub(crate) wanted: Vec<ConfigPart>,
    /// The target of the path if it is a symbolic link, otherwise the path.
    pub real: PathBuf,
    pub outcome: ChangeOutcome,
    pub before: Option<Vec<u8>>,
    /// `None` if the file is removed.
    pub after: Option<Vec<u8>>,
    pub(crate) sig: Option<FileSig>,
}

impl PlannedChange {
    pub fn is_change(&self) -> bool {
        matches!(self.outcome, ChangeOutcome::Create | ChangeOutcome::Change | ChangeOutcome::Remove)
    }

    /// Returns the change as a unified diff.
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

/// Maximum size of a settings file.
const MAX_BYTES: u64 = 64 << 20;

/// Returns the files of a client, each once. `None` for `options` includes all parts.
pub fn target_files(
    client: &'static ClientSpec,
    scope: Scope,
    folders: &Folders,
    options: Option<&InstallOptions>,
) -> Vec<TargetFile> {
    let mut target_files: Vec<TargetFile> = Vec::new();
    let project = (scope == Scope::Project).then(|| folders.project.clone());
    let has_tool_rules = options.is_some_and(|options| options.has_tool_rules);
    let mut add =
        |path: PathBuf, part: ConfigPart| match target_files.iter_mut().find(|target| target.path == path) {
            Some(target) => target.parts.push(part),
            None => {
                let (project, parts) = (project.clone(), vec![part]);
                target_files.push(TargetFile { client, scope, path, project, parts, has_tool_rules })
            }
        };
    if options.is_none_or(|options| options.hooks) {
        add(folders.hook_file(client, scope), ConfigPart::Hooks);
    }
    // A status line in a project would replace that of every user of the project.
    if client.wire.status_line.is_some()
        && scope == Scope::User
        && options.is_none_or(|options| options.status_line)
    {
        add(folders.hook_file(client, scope), ConfigPart::StatusLine);
    }
    if client.recipe.allowed_tools.is_some() && options.is_none_or(|options| options.allow_tools) {
        add(folders.hook_file(client, scope), ConfigPart::Permission);
    }
    if let Some(path) =
        folders.server_file(client, scope).filter(|_| options.is_none_or(|options| options.server))
    {
        add(path, ConfigPart::Server);
    }
    if let Some(file) =
        folders.guide_file(client, scope).filter(|_| options.is_none_or(|options| options.guide))
    {
        let (GuideFile::OwnFile(path) | GuideFile::Block(path)) = &file;
        add(path.clone(), ConfigPart::Guide(file.clone()));
    }
    target_files
}

/// The current state of a file.
pub(crate) struct CurrentFile {
    pub real: PathBuf,
    pub bytes: Option<Vec<u8>>,
    pub sig: Option<FileSig>,
}

fn read(path: &Path) -> Result<CurrentFile, Refusal> {
    let unusable = |error: io::Error| Refusal::Unusable(error.to_string());
    let real = match fs::is_link(path) {
        true => path.canonicalize().map_err(|_| Refusal::BrokenLink)?,
        false => path.to_owned(),
    };
    // The signature is read before the content, so that a change in between is noticed when the file is replaced.
    let sig = FileSig::of(&real).map_err(unusable)?;
    if sig.is_none() {
        return Ok(CurrentFile { real, bytes: None, sig });
    }
    let meta = std::fs::metadata(&real).map_err(unusable)?;
    if !meta.is_file() {
        return Err(Refusal::NotAFile);
    }
    if meta.len() > MAX_BYTES {
        return Err(Refusal::TooLarge);
    }
    if meta.permissions().readonly() {
        return Err(Refusal::ReadOnly);
    }
    let bytes = fs::read_limited(&real, MAX_BYTES).map_err(unusable)?;
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
            target: with_own_parts(&target, after.as_deref().ok()),
            wanted: target.parts.clone(),
            real: now.real,
            outcome,
            before: now.bytes,
            after: after.ok(),
            sig: now.sig,
        }
    };
    match links::check(&target).and_then(|()| read(&target.path)) {
        Err(refusal) => {
            planned(CurrentFile { real: target.path.clone(), bytes: None, sig: None }, Err(refusal))
        }
        Ok(now) => {
            let after = add_parts(&target, now.bytes.as_deref(), options);
            planned(now, after)
        }
    }
}

/// Returns the target without the status line and the permission if those in the content are not ours.
fn with_own_parts(target: &TargetFile, bytes: Option<&[u8]>) -> TargetFile {
    let settings = || Some(Json::parse(&TextFile::of(bytes?).ok()?.body).ok()?.value());
    let mut target = target.clone();
    let is_optional = |part: &ConfigPart| matches!(part, ConfigPart::StatusLine | ConfigPart::Permission);
    if target.parts.iter().any(is_optional) {
        let settings = settings().unwrap_or_default();
        let allowed = target.client.recipe.allowed_tools;
        target.parts.retain(|part| match part {
            ConfigPart::StatusLine => status_line::program(&settings).is_some(),
            ConfigPart::Permission => {
                allowed.is_some_and(|allowed| permissions::has_entry(&settings, allowed))
            }
            _ => true,
        });
    }
    target
}

/// The parts that one JSON file can have.
pub(crate) const JSON_PARTS: [ConfigPart; 4] =
    [ConfigPart::Hooks, ConfigPart::Server, ConfigPart::StatusLine, ConfigPart::Permission];

/// Returns whether a removal of the parts of the target leaves none of our parts in the content.
pub(crate) fn has_all_parts(target: &TargetFile, bytes: &[u8]) -> bool {
    if !matches!(format(target), Format::Json) {
        return true;
    }
    let Some(json) = TextFile::of(bytes).ok().and_then(|text| Json::parse(&text.body).ok()) else {
        return true;
    };
    let settings = json.value();
    JSON_PARTS.iter().filter(|part| !target.parts.contains(part)).all(|part| match part {
        ConfigPart::Hooks => hooks::find_hooks(&json, target.client).is_empty(),
        ConfigPart::Server => hooks::server_program(settings[hooks::SERVERS].get(hooks::NAME)).is_none(),
        ConfigPart::StatusLine => status_line::program(&settings).is_none(),
        _ => !target.client.recipe.allowed_tools.is_some_and(|it| permissions::has_entry(&settings, it)),
    })
}

/// Returns the content of a file with our parts.
pub(crate) fn add_parts(
    target: &TargetFile,
    bytes: Option<&[u8]>,
    options: &InstallOptions,
) -> Result<Vec<u8>, Refusal> {
    let text = || TextFile::of(bytes.unwrap_or_default());
    match format(target) {
        Format::Json => json::edit_bytes(bytes, |json| {
            if target.parts.contains(&ConfigPart::Hooks) {
                hooks::add(json, target.client, &options.program, target.has_tool_rules)?;
            }
            if target.parts.contains(&ConfigPart::Server) {
                hooks::add_server(json, target.client, &options.program)?;
            }
            if target.parts.contains(&ConfigPart::StatusLine) {
                status_line::add(json, &options.program)?;
            }
            let allowed = target.client.recipe.allowed_tools;
            if let Some(allowed) = allowed.filter(|_| target.parts.contains(&ConfigPart::Permission)) {
                permissions::add(json, allowed)?;
            }
            Ok(())
        }),
        Format::Toml => {
            let text = text()?;
            Ok(text.encode(&toml::add_server(&text, &options.program)?))
        }
        Format::Markdown(file) => {
            let text = text()?;
            let before = bytes.map(|_| text.body.as_str());
            let body = guide::add(file, before, options.lang).map_err(|line| match line {
                Some(line) => Refusal::Edited { line },
                None => Refusal::ForeignFile,
            })?;
            Ok(text.encode(&body))
        }
    }
}

/// Returns our parts as the content of a new file.
pub fn snippet(target: &TargetFile, options: &InstallOptions) -> String {
    add_parts(target, None, options)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// The format of a file.
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

/// Plans the removal of our parts from a file. Returns `None` if there is nothing to remove. The outcome is
/// [`ChangeOutcome::Unchanged`] if the file has none of our parts, but a killed process left a receipt or displaced a
/// newer file.
pub fn plan_removal(target: TargetFile, receipts: &Receipts) -> Option<PlannedChange> {
    let now = match check_removal(&target, receipts).and_then(|()| read(&target.path)) {
        Ok(now) => now,
        Err(refusal) => {
            let is_ours = receipts.has(&target.path);
            let (real, outcome) = (target.path.clone(), ChangeOutcome::Refused(refusal));
            return is_ours.then_some(PlannedChange {
                wanted: target.parts.clone(),
                target,
                real,
                outcome,
                before: None,
                after: None,
                sig: None,
            });
        }
    };
    let after = match &now.bytes {
        None => Ok(None),
        Some(bytes) => match receipts.original(&now.real, bytes).filter(|_| has_all_parts(&target, bytes)) {
            // Unchanged since the installation: the original content is restored.
            Some(original) => Ok(original),
            None => {
                let mut own = target.clone();
                own.parts.retain(|part| {
                    *part != ConfigPart::Permission || receipts.has_own_permission(&now.real).unwrap_or(true)
                });
                remove_parts(&own, bytes, &receipts.before(&now.real)).map(|left| left.into_content(bytes))
            }
        },
    };
    let outcome = match &after {
        Err(refusal) => ChangeOutcome::Refused(refusal.clone()),
        Ok(after) if *after == now.bytes => {
            let was_killed = receipts.is_of(&now.real, target.client) || fs::has_abandoned_swap(&now.real);
            was_killed.then_some(ChangeOutcome::Unchanged)?
        }
        Ok(None) => ChangeOutcome::Remove,
        Ok(Some(_)) => ChangeOutcome::Change,
    };
    let after = after.ok().flatten();
    let wanted = target.parts.clone();
    let target = with_own_parts(&target, now.bytes.as_deref());
    Some(PlannedChange { target, wanted, real: now.real, outcome, before: now.bytes, after, sig: now.sig })
}

/// Like [`links::check`], but accepts a link through which an earlier version wrote the file of this project.
fn check_removal(target: &TargetFile, receipts: &Receipts) -> Result<(), Refusal> {
    let was_followed = || {
        let real = target.path.canonicalize();
        real.is_ok_and(|real| real != target.path && receipts.is_of_project(&real, target.project.as_deref()))
    };
    match links::check(target) {
        Err(Refusal::LeavesProject { .. }) if was_followed() => Ok(()),
        other => other,
    }
}

/// The content of a file after the removal of our parts.
pub(crate) enum RemovalResult {
    Same,
    TextFile(Vec<u8>),
    Nothing,
}

impl RemovalResult {
    fn into_content(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            RemovalResult::Same => Some(bytes.to_vec()),
            RemovalResult::TextFile(text) => Some(text),
            RemovalResult::Nothing => None,
        }
    }
}

/// The content of a file before the installation, if known.
pub(crate) enum OriginalContent {
    Unknown,
    Absent,
    Bytes(Vec<u8>),
}

/// Returns the content of a file without the parts of the target.
pub(crate) fn remove_parts(
    target: &TargetFile,
    bytes: &[u8],
    before: &OriginalContent,
) -> Result<RemovalResult, Refusal> {
    let text = TextFile::of(bytes)?;
    let old = match before {
        OriginalContent::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let body = match format(target) {
        Format::Markdown(file) => match guide::remove(file, &text.body) {
            Err(line) => return Err(Refusal::Edited { line }),
            Ok(None) => text.body.clone(),
            Ok(Some(Some(left))) => left,
            Ok(Some(None)) => return Ok(RemovalResult::Nothing),
        },
        Format::Toml => toml::remove_server(&text, &old)?.unwrap_or_else(|| text.body.clone()),
        Format::Json => {
            let json = Json::parse(&text.body)?;
            let old = match before {
                OriginalContent::Unknown => Value::Null,
                _ => Json::parse(old.trim_start_matches('\u{feff}'))
                    .map(|json| json.value())
                    .unwrap_or_default(),
            };
            for part in &target.parts {
                match part {
                    ConfigPart::Hooks => hooks::remove(&json, target.client, &old),
                    ConfigPart::Server => hooks::remove_server(&json, &old),
                    ConfigPart::StatusLine => status_line::remove(&json),
                    ConfigPart::Permission => {
                        let allowed = target.client.recipe.allowed_tools;
                        allowed.into_iter().for_each(|allowed| permissions::remove(&json, allowed, &old));
                    }
                    ConfigPart::Guide(_) => {}
                }
            }
            json.text()
        }
    };
    if body == text.body {
        return Ok(RemovalResult::Same);
    }
    let is_own_name = target.path.file_stem().is_some_and(|name| name == "tanmi");
    let was_created = matches!(before, OriginalContent::Absent)
        || is_own_name && matches!(before, OriginalContent::Unknown);
    if was_created && matches!(body.trim(), "" | "{}") {
        return Ok(RemovalResult::Nothing);
    }
    Ok(RemovalResult::TextFile(text.encode(&body)))
}

/// Our parts that are installed in a file of a client.
#[derive(Clone, Debug)]
pub struct InstalledState {
    pub client: &'static ClientSpec,
    pub scope: Scope,
    pub path: PathBuf,
    /// Event, command line and parsed command.
    pub hooks: Vec<(String, String, TanmiCommand)>,
    /// The program of our server.
    pub server: Option<String>,
    /// The program of our status line.
    pub status_line: Option<String>,
    /// Whether the client may use all our tools without asking.
    pub allows_tools: bool,
    /// Whether our hook for all tool calls is installed.
    pub has_tool_hook: bool,
    pub has_guide: bool,
    /// Settings that disable our hooks or server.
    pub disabling_keys: Vec<String>,
    /// Events whose hook was altered so that it does not run as installed.
    pub altered: Vec<String>,
    pub refusal: Option<Refusal>,
}

/// Inspects all existing files of a client.
pub fn inspect(client: &'static ClientSpec, scope: Scope, folders: &Folders) -> Vec<InstalledState> {
    let inspect_file = |target: TargetFile| -> Option<InstalledState> {
        let mut found = InstalledState {
            client,
            scope,
            path: target.path.clone(),
            hooks: Vec::new(),
            server: None,
            status_line: None,
            allows_tools: false,
            has_tool_hook: false,
            has_guide: false,
            disabling_keys: Vec::new(),
            altered: Vec::new(),
            refusal: None,
        };
        let bytes = links::check(&target).and_then(|()| {
            fs::read_limited(&target.path, MAX_BYTES).map_err(|error| Refusal::Unusable(error.to_string()))
        });
        let bytes = match bytes {
            Ok(bytes) => bytes?,
            Err(refusal) => {
                found.refusal = Some(refusal);
                return Some(found);
            }
        };
        found.refusal = inspect_content(&mut found, &target, &bytes).err();
        Some(found)
    };
    target_files(client, scope, folders, None).into_iter().filter_map(inspect_file).collect()
}

fn inspect_content(found: &mut InstalledState, target: &TargetFile, bytes: &[u8]) -> Result<(), Refusal> {
    let text = TextFile::of(bytes)?;
    match format(target) {
        Format::Markdown(file) => {
            found.has_guide = guide::guide_state(file, &text.body) != guide::GuideState::None;
        }
        Format::Toml => {
            found.server = toml::server_program(&text)?;
            found.disabling_keys = toml::disabling_keys(&text, target.client);
        }
        Format::Json => {
            let json = Json::parse(&text.body)?;
            found.hooks = hooks::find_hooks(&json, target.client);
            found.disabling_keys = hooks::disabling_keys(&json, target.client);
            found.altered = hooks::altered_events(&json, target.client);
            found.has_tool_hook = hooks::has_tool_hook(&json, target.client);
            found.status_line = status_line::program(&json.value());
            let allowed = target.client.recipe.allowed_tools;
            found.allows_tools =
                allowed.is_some_and(|allowed| permissions::has_entry(&json.value(), allowed));
            found.server = hooks::server_program(json.value()[hooks::SERVERS].get(hooks::NAME));
        }
    }
    Ok(())
}
