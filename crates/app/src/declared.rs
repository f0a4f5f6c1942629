//! Declared context: `context.json` names files that every session is told, and `subagents/` holds what subagents are told
//! besides, in general and by their type.
//!
//! There is one of the user's (`~/.tanmi/`), one of the project's (`<project>/.tanmi/`, only of a project that is trusted,
//! and only files inside of it), and one of the machine's or container's, which the environment names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tanmi_base::fs::{self, FileSig};
use tanmi_base::hash;
use tanmi_base::paths::{self, PROJECT_DIR};
use tanmi_engine::escape_tags;
use tanmi_event::{API, Event, EventKind, Payload, Platform, Source, StartSource};

use crate::pipeline::{self, PipelineTrace};
use crate::trust::Trust;

pub const FILE: &str = "context.json";
/// Of each file no more is read: what is told at once is a small part of this.
const MAX_TEXT: u64 = 64 << 10;
/// Of one manifest no more count: a session starts in moments.
const MAX_FILES: usize = 64;
const MARKS: &[&str] = &["<!-- built by tanmi context build ", "<!-- tanmi:keep -->", "<!-- /tanmi:keep -->"];
/// In a prompt that a host has already put the context into.
const MARKER: &str = "## 工作区环境";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Manifest {
    /// Relative to the folder that `.tanmi` is in; `~/` is the home folder.
    pub files: Vec<String>,
    /// A prompt with this in it carries the context already.
    pub marker: Option<String>,
    /// What a client loads by itself, by platform, where the known list is wrong.
    pub loaded_by_client: BTreeMap<String, Vec<String>>,
}

/// Whose declaration it is.
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

/// One declared file.
#[derive(Clone, Debug)]
pub struct DeclaredEntry {
    pub declared_by: DeclaredBy,
    /// As it was named.
    pub name: String,
    /// Where it really is.
    pub path: PathBuf,
    pub inclusion: InclusionStatus,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InclusionStatus {
    Told(FileSig),
    /// The client loads this very file by itself.
    LoadedByClient,
    Missing,
    /// It leads out of the project.
    Outside,
    /// The project came from elsewhere.
    Untrusted,
}

pub struct ContextLookup<'a> {
    pub user: Option<&'a Path>,
    pub project: Option<&'a Path>,
    /// Where it is known which projects are trusted; asked only for what is there.
    pub home: &'a Path,
    /// Named by the environment.
    pub container: Option<&'a Path>,
    pub platform: &'static Platform,
    pub cwd: Option<&'a Path>,
    /// The type of a subagent; `None` for the session itself.
    pub agent: Option<&'a str>,
    /// Looked at from outside of a container: its folder here, and where that is inside. Nothing else is read.
    pub mount: Option<(&'a Path, &'a str)>,
}

#[derive(Debug, Default)]
pub struct Declaration {
    pub files: Vec<DeclaredEntry>,
    pub markers: Vec<String>,
    /// Manifests that cannot be read, with why.
    pub flaws: Vec<(PathBuf, String)>,
}

impl Declaration {
    /// Whether a prompt carries it already, as one of its marks shows.
    pub fn is_in(&self, prompt: &str) -> bool {
        self.markers.iter().any(|marker| !marker.is_empty() && prompt.contains(marker.as_str()))
    }

    pub fn included(&self) -> impl Iterator<Item = (&DeclaredEntry, FileSig)> {
        self.files.iter().filter_map(|file| match file.inclusion {
            InclusionStatus::Told(sig) => Some((file, sig)),
            _ => None,
        })
    }

    /// Another one as soon as any file is another.
    pub fn digest(&self) -> String {
        let mut all = String::new();
        for (file, sig) in self.included() {
            all.push_str(&format!("{}\0{} {} {}\0", file.path.display(), sig.mtime_ns, sig.size, sig.inode));
        }
        hash::md5_hex(all.as_bytes())
    }
}

pub fn text(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // Marks for the program that builds such files say nothing to a model.
    let is_mark = |line: &str| MARKS.iter().any(|mark| line.trim().starts_with(mark));
    let lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !is_mark(line));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Everything that is declared here, with what becomes of it. Nothing but the manifests is read.
pub fn find(lookup: &ContextLookup<'_>) -> Declaration {
    let mut out = Declaration::default();
    // Of a user's folder that is looked at from outside nothing is seen but itself.
    let is_seen = lookup.mount.is_none();
    let user = lookup.user.filter(|_| is_seen).map(|user| user.join(PROJECT_DIR));
    let project = lookup.project.filter(|_| is_seen).map(|project| project.join(PROJECT_DIR));
    // A home folder that is a project too has one for both, and it is the user's own.
    let project = project.filter(|project| Some(project) != user.as_ref());
    for (declared_by, dir, base) in
        [(DeclaredBy::Project, &project, lookup.project), (DeclaredBy::User, &user, lookup.user)]
    {
        if let (Some(dir), Some(base)) = (dir, base) {
            subagents(lookup, declared_by, dir, base, &mut out);
            manifest(lookup, declared_by, &dir.join(FILE), base, &mut out);
        }
    }
    if let Some(path) = lookup.container {
        // Beside a `.tanmi` folder like the others, or wherever it is.
        let dir = path.parent().unwrap_or(Path::new("/"));
        let base = if dir.ends_with(PROJECT_DIR) { dir.parent().unwrap_or(dir) } else { dir };
        manifest(lookup, DeclaredBy::Container, path, base, &mut out);
    }
    // Once; but what one may not tell, another may.
    let mut seen = Vec::new();
    out.files.retain(|file| {
        let is_new = !seen.contains(&file.path);
        if matches!(file.inclusion, InclusionStatus::Told(_) | InclusionStatus::LoadedByClient) {
            seen.push(file.path.clone());
        }
        is_new
    });
    out
}

fn manifest(
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
        // It may quote the file, which may be anybody's.
        Err(error) => {
            let reason = tanmi_base::text::fit(&tanmi_base::text::one_line(&error.to_string()), 200);
            return out.flaws.push((path.to_owned(), reason));
        }
    };
    if manifest.files.len() > MAX_FILES {
        let reason = format!("{} files; the first {MAX_FILES} count", manifest.files.len());
        out.flaws.push((path.to_owned(), reason));
    }
    let mut is_told = false;
    for name in manifest.files.iter().take(MAX_FILES) {
        let inside = lookup.mount.and_then(|(_, mount)| name.strip_prefix(mount)?.strip_prefix('/'));
        let path = match (name.strip_prefix("~/"), lookup.user) {
            (Some(rest), Some(user)) if lookup.mount.is_none() => user.join(rest),
            _ => base.join(inside.unwrap_or(name)),
        };
        let own = manifest.loaded_by_client.get(lookup.platform.id);
        let (path, inclusion) = inclusion(lookup, declared_by, path, base, own.map(Vec::as_slice));
        is_told |= matches!(inclusion, InclusionStatus::Told(_));
        out.files.push(DeclaredEntry { declared_by, name: name.clone(), path, inclusion });
    }
    // One that may not speak may not silence either.
    if is_told {
        out.markers.push(manifest.marker.unwrap_or_else(|| MARKER.to_owned()));
    }
}

/// The part for every subagent, and the one for this type.
fn subagents(
    lookup: &ContextLookup<'_>,
    declared_by: DeclaredBy,
    dir: &Path,
    base: &Path,
    out: &mut Declaration,
) {
    let Some(agent) = lookup.agent else { return };
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    // Types of plugins have a colon in them.
    let agent: String = agent.chars().map(|c| if c == ':' { '-' } else { c }).collect();
    let own = (!agent.is_empty() && !agent.starts_with('.') && agent.chars().all(is_plain)).then_some(agent);
    for name in [own.as_deref().filter(|own| *own != "general"), Some("general")].into_iter().flatten() {
        let name = format!("subagents/{name}.md");
        let path = dir.join(&name);
        if std::fs::symlink_metadata(&path).is_ok() {
            let (path, inclusion) = inclusion(lookup, declared_by, path, base, None);
            out.files.push(DeclaredEntry {
                declared_by,
                name: format!("{PROJECT_DIR}/{name}"),
                path,
                inclusion,
            });
        }
    }
}

/// Where a file really is, and what becomes of it.
fn inclusion(
    lookup: &ContextLookup<'_>,
    declared_by: DeclaredBy,
    path: PathBuf,
    base: &Path,
    own: Option<&[String]>,
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
    let inclusion = if is_loaded(lookup, sig, own) {
        InclusionStatus::LoadedByClient
    } else {
        InclusionStatus::Told(sig)
    };
    (real, inclusion)
}

/// In its own places: beside the working folder and above it, and in the home folder; under its name or by a link.
fn is_loaded(lookup: &ContextLookup<'_>, sig: FileSig, own: Option<&[String]>) -> bool {
    let is_same = |ws: PathBuf| FileSig::of(&ws).is_ok_and(|there| there == Some(sig));
    let is_it = |name: &str| match name.strip_prefix("~/") {
        Some(rest) => lookup.user.is_some_and(|user| is_same(user.join(rest))),
        None => lookup.cwd.is_some_and(|cwd| cwd.ancestors().any(|dir| is_same(dir.join(name)))),
    };
    match own {
        Some(own) => own.iter().any(|name| is_it(name)),
        None => lookup.platform.loads.iter().any(|name| is_it(name)),
    }
}

/// What stands before a prompt that a host pipes through; `None` if nothing is declared or the prompt has it.
pub fn for_prompt(
    home: &Path,
    user: Option<&Path>,
    cwd: &Path,
    container: Option<&Path>,
    prompt: &str,
) -> Option<String> {
    // Commands of a client are no prompts.
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
        // Nobody loads anything by itself in a pipe.
        platform: &API,
        cwd: Some(cwd),
        agent: None,
        mount: None,
    });
    if declaration.is_in(prompt) {
        return None;
    }
    let texts: Vec<String> = declaration
        .included()
        .filter_map(|(file, _)| text(&file.path))
        .map(|text| escape_tags(&text))
        .collect();
    let texts: Vec<&str> = texts.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

impl crate::App {
    /// Manifests that cannot be read, with why.
    pub(crate) fn declared_flaws(&self) -> Vec<(PathBuf, String)> {
        let (declaration, _) = self.context_show(&tanmi_event::CLAUDE_CODE, None, None, None);
        declaration.flaws
    }

    /// What a session of this platform, or a subagent of this type, would be told when it starts, here or in the folder of
    /// a user. Writes nothing.
    pub fn context_show(
        &self,
        platform: &'static Platform,
        agent: Option<&str>,
        session: Option<&str>,
        mount: Option<(&Path, &str)>,
    ) -> (Declaration, PipelineTrace) {
        let folder = mount.map(|(folder, _)| folder);
        let project = folder.unwrap_or(self.project());
        let payload = Payload {
            cwd: Some(project.display().to_string()),
            start: agent.is_none().then_some(StartSource::Startup),
            agent_type: agent.map(String::from),
            // Where a subagent is told by its prompt, it has one.
            tool_input: agent.map(|_| String::from("{\"prompt\":\"\"}")),
            ..Payload::default()
        };
        let kind = if agent.is_some() { EventKind::SubagentStart } else { EventKind::SessionStart };
        let session = session.unwrap_or("context-show").to_owned();
        let event = Event { source: Source::Hook, platform, kind, session, payload };
        let mut caller = self.caller();
        // A user's folder is what its container names.
        let own = folder.map(|folder| folder.join(PROJECT_DIR).join(FILE));
        caller.context = own.as_deref().or(caller.context);
        caller.mount = mount;
        let declaration = find(&pipeline::lookup(&caller, &event, Some(project)));
        (declaration, pipeline::explain(&caller, &event, None))
    }
}
