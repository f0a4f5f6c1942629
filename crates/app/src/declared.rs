//! Declared context: `context.json` names files that are injected into every session. `subagents/` contains
//! additional texts for subagents: one for all of them, and one per type.
//!
//! Both can belong to the user (`~/.tanmi/`) or to a project (`<project>/.tanmi/`; only if the project is trusted,
//! and only with files inside it). In addition, the environment can name a `context.json` of the machine or
//! container.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tanmi_base::fs::{self, FileSig};
use tanmi_base::hash;
use tanmi_base::paths::{self, CONFIG_DIR};
use tanmi_engine::escape_tags;
use tanmi_event::{API, Event, EventKind, Payload, Platform, Source, StartSource};
use tanmi_platform::DEFAULT_CLIENT;

use crate::pipeline::{self, PipelineTrace};
use crate::trust::Trust;

pub const FILE: &str = "context.json";
/// The number of bytes that are read of each file. Much less than this fits into one injection.
const MAX_TEXT: u64 = 64 << 10;
/// The number of files that count in one manifest, because a session start must be fast.
const MAX_FILES: usize = 64;
const BUILD_MARKS: &[&str] =
    &["<!-- built by tanmi context build ", "<!-- tanmi:keep -->", "<!-- /tanmi:keep -->"];
/// Marks a prompt to which a host has already added the context, if the manifest sets no `marker`.
const DEFAULT_MARKER: &str = "## 工作区环境";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Manifest {
    /// Paths relative to the folder that contains `.tanmi`; `~/` is the home folder.
    pub files: Vec<String>,
    /// A prompt that contains this text already contains the context.
    pub marker: Option<String>,
    /// Files that a client loads by itself, by platform. Replaces the built-in list of that platform.
    pub loaded_by_client: BTreeMap<String, Vec<String>>,
}

/// The owner of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredBy {
    Project,
    User,
    Container,
}

impl DeclaredBy {
    pub fn as_str(self) -> &'static str {
        match self {
            DeclaredBy::Project => "project",
            DeclaredBy::User => "user",
            DeclaredBy::Container => "container",
        }
    }
}

#[derive(Clone, Debug)]
pub struct DeclaredEntry {
    pub declared_by: DeclaredBy,
    /// The path as written in the manifest.
    pub name: String,
    /// The resolved path.
    pub path: PathBuf,
    pub inclusion: InclusionStatus,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InclusionStatus {
    Included(FileSig),
    /// The client loads the same file by itself.
    LoadedByClient,
    Missing,
    /// The path leads out of the project or the mounted folder.
    Outside,
    /// The project is not trusted.
    Untrusted,
}

pub struct ContextLookup<'a> {
    pub user: Option<&'a Path>,
    pub project: Option<&'a Path>,
    /// The home store, which records the trusted projects.
    pub home: &'a Path,
    /// The `context.json` named by the environment.
    pub container: Option<&'a Path>,
    pub platform: &'static Platform,
    pub cwd: Option<&'a Path>,
    /// The type of a subagent; `None` for the session itself.
    pub agent: Option<&'a str>,
    /// For a lookup from outside a container: its folder here, and the path of that folder inside the container.
    /// Nothing outside the folder is read.
    pub mount: Option<(&'a Path, &'a str)>,
}

#[derive(Debug, Default)]
pub struct Declaration {
    pub files: Vec<DeclaredEntry>,
    pub markers: Vec<String>,
    /// Manifests with problems, and the reasons.
    pub flaws: Vec<(PathBuf, String)>,
}

impl Declaration {
    /// Returns whether a prompt already contains the context, which a marker shows.
    pub fn is_in_prompt(&self, prompt: &str) -> bool {
        self.markers.iter().any(|marker| !marker.is_empty() && prompt.contains(marker.as_str()))
    }

    pub fn included(&self) -> impl Iterator<Item = (&DeclaredEntry, FileSig)> {
        self.files.iter().filter_map(|file| match file.inclusion {
            InclusionStatus::Included(sig) => Some((file, sig)),
            _ => None,
        })
    }

    /// Returns a hash that changes when the list or the metadata of the included files changes.
    pub fn digest(&self) -> String {
        let mut all = String::new();
        for (file, sig) in self.included() {
            all.push_str(&format!("{}\0{} {} {}\0", file.path.display(), sig.mtime_ns, sig.size, sig.inode));
        }
        hash::md5_hex(all.as_bytes())
    }
}

/// Reads the beginning of a file without a byte order mark and without the marks of `tanmi context build`.
pub fn read_text(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let is_mark = |line: &str| BUILD_MARKS.iter().any(|mark| line.trim().starts_with(mark));
    let lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !is_mark(line));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Finds all declared files and decides whether each is included. Only the manifests are read.
pub fn find(lookup: &ContextLookup<'_>) -> Declaration {
    let mut out = Declaration::default();
    // A lookup from outside a container must not use the declarations of this machine.
    let is_local = lookup.mount.is_none();
    let user = lookup.user.filter(|_| is_local).map(|user| user.join(CONFIG_DIR));
    let project = lookup.project.filter(|_| is_local).map(|project| project.join(CONFIG_DIR));
    // If the home folder is also the project, the declaration counts as that of the user.
    let project = project.filter(|project| Some(project) != user.as_ref());
    for (declared_by, dir, base) in
        [(DeclaredBy::Project, &project, lookup.project), (DeclaredBy::User, &user, lookup.user)]
    {
        if let (Some(dir), Some(base)) = (dir, base) {
            add_subagent_files(lookup, declared_by, dir, base, &mut out);
            add_manifest(lookup, declared_by, &dir.join(FILE), base, &mut out);
        }
    }
    if let Some(path) = lookup.container {
        // Paths are relative to the parent of `.tanmi`, as in other manifests, or else to the folder of the file.
        let dir = path.parent().unwrap_or(Path::new("/"));
        let base = if dir.ends_with(CONFIG_DIR) { dir.parent().unwrap_or(dir) } else { dir };
        add_manifest(lookup, DeclaredBy::Container, path, base, &mut out);
    }
    // A file is included once. One that is excluded here may still be included by a later declaration.
    let mut seen = Vec::new();
    out.files.retain(|file| {
        let is_new = !seen.contains(&file.path);
        if matches!(file.inclusion, InclusionStatus::Included(_) | InclusionStatus::LoadedByClient) {
            seen.push(file.path.clone());
        }
        is_new
    });
    out
}

fn add_manifest(
    lookup: &ContextLookup<'_>,
    declared_by: DeclaredBy,
    path: &Path,
    base: &Path,
    out: &mut Declaration,
) {
    let bytes = match fs::read_limited(path, 1 << 20) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return,
        Err(error) => return out.flaws.push((path.to_owned(), error.to_string())),
    };
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    let parsed = serde_json::from_slice::<serde_json::Map<_, _>>(bytes)
        .and_then(|fields| serde_json::from_value::<Manifest>(fields.into()));
    let manifest = match parsed {
        Ok(manifest) => manifest,
        // The message may quote the untrusted file, so it is reduced to one short line.
        Err(error) => {
            let reason = tanmi_base::text::fit(&tanmi_base::text::one_line(&error.to_string()), 200);
            return out.flaws.push((path.to_owned(), reason));
        }
    };
    if manifest.files.len() > MAX_FILES {
        let reason = format!("{} files; the first {MAX_FILES} count", manifest.files.len());
        out.flaws.push((path.to_owned(), reason));
    }
    let mut is_any_included = false;
    for name in manifest.files.iter().take(MAX_FILES) {
        let inside = lookup.mount.and_then(|(_, mount)| name.strip_prefix(mount)?.strip_prefix('/'));
        let path = match (name.strip_prefix("~/"), lookup.user) {
            (Some(rest), Some(user)) if lookup.mount.is_none() => user.join(rest),
            _ => base.join(inside.unwrap_or(name)),
        };
        let loaded = manifest.loaded_by_client.get(lookup.platform.id);
        let (path, inclusion) = inclusion(lookup, declared_by, path, base, loaded.map(Vec::as_slice));
        is_any_included |= matches!(inclusion, InclusionStatus::Included(_));
        out.files.push(DeclaredEntry { declared_by, name: name.clone(), path, inclusion });
    }
    // A manifest without included files, such as an untrusted one, must not suppress others with its marker.
    if is_any_included {
        out.markers.push(manifest.marker.unwrap_or_else(|| DEFAULT_MARKER.to_owned()));
    }
}

/// Adds the text for this type of subagent and the text for all subagents.
fn add_subagent_files(
    lookup: &ContextLookup<'_>,
    declared_by: DeclaredBy,
    dir: &Path,
    base: &Path,
    out: &mut Declaration,
) {
    let Some(agent) = lookup.agent else { return };
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    // Types that come from plugins contain a colon.
    let agent: String = agent.chars().map(|c| if c == ':' { '-' } else { c }).collect();
    let is_valid = !agent.is_empty() && !agent.starts_with('.') && agent.chars().all(is_plain);
    let of_type = is_valid.then_some(agent);
    for name in [of_type.as_deref().filter(|name| *name != "general"), Some("general")].into_iter().flatten()
    {
        let name = format!("subagents/{name}.md");
        let path = dir.join(&name);
        if std::fs::symlink_metadata(&path).is_ok() {
            let (path, inclusion) = inclusion(lookup, declared_by, path, base, None);
            out.files.push(DeclaredEntry {
                declared_by,
                name: format!("{CONFIG_DIR}/{name}"),
                path,
                inclusion,
            });
        }
    }
}

/// Returns the resolved path of a file, and whether it is included. `loaded` replaces the list of files that the
/// client loads by itself.
fn inclusion(
    lookup: &ContextLookup<'_>,
    declared_by: DeclaredBy,
    path: PathBuf,
    base: &Path,
    loaded: Option<&[String]>,
) -> (PathBuf, InclusionStatus) {
    let is_trusted = || lookup.project.is_some_and(|project| Trust::new(lookup.home).has_project(project));
    if declared_by == DeclaredBy::Project && !is_trusted() {
        return (path, InclusionStatus::Untrusted);
    }
    let sig = FileSig::of(&path).ok().flatten().filter(|_| path.is_file());
    let (Some(sig), Ok(real)) = (sig, path.canonicalize()) else { return (path, InclusionStatus::Missing) };
    let is_inside = |base: &Path| base.canonicalize().is_ok_and(|base| real.starts_with(base));
    if declared_by == DeclaredBy::Project && !is_inside(base)
        || lookup.mount.is_some_and(|(folder, _)| !is_inside(folder))
    {
        return (path, InclusionStatus::Outside);
    }
    let inclusion = if is_loaded_by_client(lookup, sig, loaded) {
        InclusionStatus::LoadedByClient
    } else {
        InclusionStatus::Included(sig)
    };
    (real, inclusion)
}

/// Returns whether the client loads this file by itself: from the home folder, the working directory or a folder
/// above it. Files are compared by signature, so that links are found too.
fn is_loaded_by_client(lookup: &ContextLookup<'_>, sig: FileSig, loaded: Option<&[String]>) -> bool {
    let is_same = |path: PathBuf| FileSig::of(&path).is_ok_and(|other| other == Some(sig));
    let is_loaded_as = |name: &str| match name.strip_prefix("~/") {
        Some(rest) => lookup.user.is_some_and(|user| is_same(user.join(rest))),
        None => lookup.cwd.is_some_and(|cwd| cwd.ancestors().any(|dir| is_same(dir.join(name)))),
    };
    match loaded {
        Some(names) => names.iter().any(|name| is_loaded_as(name)),
        None => lookup.platform.loaded_files.iter().any(|name| is_loaded_as(name)),
    }
}

/// Returns the declared context for a prompt that a host pipes through this program; `None` if nothing is declared or
/// the prompt already contains it.
pub fn for_prompt(
    home: &Path,
    user: Option<&Path>,
    cwd: &Path,
    container: Option<&Path>,
    prompt: &str,
) -> Option<String> {
    // Commands of a client are not prompts.
    if prompt.starts_with(['/', '!']) {
        return None;
    }
    let project = paths::project_root(cwd, home);
    if !crate::config::Config::load(home, Some(&project)).declared_context {
        return None;
    }
    let declaration = find(&ContextLookup {
        user,
        project: Some(&project),
        home,
        container,
        // A platform that loads no files by itself, because there is no client in a pipe.
        platform: &API,
        cwd: Some(cwd),
        agent: None,
        mount: None,
    });
    if declaration.is_in_prompt(prompt) {
        return None;
    }
    let texts: Vec<String> = declaration
        .included()
        .filter_map(|(file, _)| read_text(&file.path))
        .map(|text| escape_tags(&text).into_owned())
        .collect();
    let texts: Vec<&str> = texts.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Returns whether a project declares context.
pub(crate) fn has_declarations(project: &Path) -> bool {
    [FILE, "subagents"].iter().any(|name| project.join(CONFIG_DIR).join(name).exists())
}

impl crate::rules::RuleService {
    /// Returns manifests with problems, and the reasons.
    pub(crate) fn declared_flaws(&self) -> Vec<(PathBuf, String)> {
        let (declaration, _) = self.declared_context(DEFAULT_CLIENT.platform, None, None, None);
        declaration.flaws
    }

    /// Returns what would be injected when a session of this platform or a subagent of this type starts, here or in
    /// the folder of a user (`mount`). Writes nothing.
    pub fn declared_context(
        &self,
        platform: &'static Platform,
        agent: Option<&str>,
        session: Option<&str>,
        mount: Option<(&Path, &str)>,
    ) -> (Declaration, PipelineTrace) {
        let folder = mount.map(|(folder, _)| folder);
        let project = folder.unwrap_or(self.core.folder());
        let payload = Payload {
            cwd: Some(project.display().to_string()),
            start: agent.is_none().then_some(StartSource::Startup),
            agent_type: agent.map(String::from),
            // Some platforms add the text to the prompt of the subagent, so there must be one.
            tool_input: agent.map(|_| String::from("{\"prompt\":\"\"}")),
            ..Payload::default()
        };
        let kind = if agent.is_some() { EventKind::SubagentStart } else { EventKind::SessionStart };
        let session = session.unwrap_or("context-show").to_owned();
        let event = Event { source: Source::Hook, platform, kind, session, payload };
        let mut caller = self.core.caller();
        // Inside its container, the environment names the manifest in this folder.
        let mounted = folder.map(|folder| folder.join(CONFIG_DIR).join(FILE));
        caller.context = mounted.as_deref().or(caller.context);
        caller.mount = mount;
        caller.uses_tags = true;
        let declaration = find(&pipeline::lookup(&caller, &event, Some(project)));
        (declaration, pipeline::explain(&caller, &event, None))
    }
}
