//! Declared context: `context.json` names files that are injected into every session. `subagents/` contains
//! additional texts for subagents: one for all of them, and one per type.
//!
//! Both can belong to the user (`~/.tanmi/`) or to a project (`<project>/.tanmi/`; only if the project is trusted, only
//! with files inside it, and only with the content that the user agreed to). In addition, the environment can name a
//! `context.json` of the machine or container.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tanmi_base::fs::{self, FileSig};
use tanmi_base::hash;
use tanmi_base::paths::{self, CONFIG_DIR};
use tanmi_engine::{DeclaredFile, escape_tags};
use tanmi_event::{API, ClientVersion, EventKind, Payload, Platform, StartSource};
use tanmi_platform::DEFAULT_CLIENT;

use crate::pipeline::{self, PipelineTrace};
use crate::trust::{Consent, ProjectFile, ProjectTrust, Trust};

pub const FILE: &str = "context.json";
const SUBAGENTS: &str = "subagents";
/// The number of bytes that are read of each file. Much less than this fits into one injection.
const MAX_TEXT: u64 = 64 << 10;
/// The number of files that count in one manifest, because a session start must be fast.
const MAX_FILES: usize = 64;
/// The number of texts for subagents that the user can agree to at once.
const MAX_SUBAGENTS: usize = 256;
const MAX_MANIFEST: u64 = 1 << 20;
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
    /// The project is trusted, but the user did not agree to the present content of the file or of the manifest.
    NotAgreed(Consent),
}

pub struct ContextLookup<'a> {
    pub user: Option<&'a Path>,
    /// The project and the user's consent to it.
    pub project: Option<&'a ProjectTrust>,
    /// The `context.json` named by the environment.
    pub container: Option<&'a Path>,
    pub platform: &'static Platform,
    /// Returns the version of the client, if it is known.
    pub client_version: fn(&Platform) -> Option<ClientVersion>,
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

    /// Reads the included files. A file of the project whose content the user did not agree to is no longer included.
    pub fn read(&mut self, project: Option<&ProjectTrust>) -> Vec<DeclaredFile> {
        let mut read = Vec::new();
        for file in &mut self.files {
            let InclusionStatus::Included(_) = file.inclusion else { continue };
            let Some(bytes) = read_beginning(&file.path) else { continue };
            let of_project = project.filter(|_| file.declared_by == DeclaredBy::Project);
            let content = ProjectFile { path: file.path.clone(), bytes };
            match of_project.map_or(Consent::Given, |trust| trust.consent_to(&content)) {
                Consent::Given => {
                    let path = file.path.display().to_string();
                    read.push(DeclaredFile { path, text: clean_text(&content.bytes) });
                }
                consent => file.inclusion = InclusionStatus::NotAgreed(consent),
            }
        }
        read
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

/// Reads the part of a file that can be injected. The user agrees to this part.
fn read_beginning(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the text of a file without a byte order mark and without the marks of `tanmi context build`.
fn clean_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_mark = |line: &str| BUILD_MARKS.iter().any(|mark| line.trim().starts_with(mark));
    let lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !is_mark(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Finds all declared files and decides whether each is included. Only the manifests are read.
pub fn find(lookup: &ContextLookup<'_>) -> Declaration {
    let mut out = Declaration::default();
    // A lookup from outside a container must not use the declarations of this machine.
    let is_local = lookup.mount.is_none();
    let user = lookup.user.filter(|_| is_local).map(|user| user.join(CONFIG_DIR));
    // If the home folder is also the project, the declaration counts as that of the user.
    let is_user = |dir: &Path| Some(dir) == user.as_deref();
    let project = lookup.project.filter(|_| is_local);
    if let Some((trust, dir)) = project.and_then(|trust| Some((trust, trust.config_dir()?)))
        && !is_user(dir)
    {
        let source = ManifestSource { declared_by: DeclaredBy::Project, base: trust.project() };
        add_subagent_files(lookup, source, dir, &mut out);
        add_project_manifest(lookup, source, trust, &mut out);
    }
    if let (Some(dir), Some(base)) = (&user, lookup.user) {
        let source = ManifestSource { declared_by: DeclaredBy::User, base };
        add_subagent_files(lookup, source, dir, &mut out);
        let path = dir.join(FILE);
        add_manifest(lookup, source, &path, fs::read_limited(&path, MAX_MANIFEST), None, &mut out);
    }
    if let Some(path) = lookup.container {
        // Paths are relative to the parent of `.tanmi`, as in other manifests, or else to the folder of the file.
        let dir = path.parent().unwrap_or(Path::new("/"));
        let base = if dir.ends_with(CONFIG_DIR) { dir.parent().unwrap_or(dir) } else { dir };
        let source = ManifestSource { declared_by: DeclaredBy::Container, base };
        add_manifest(lookup, source, path, fs::read_limited(path, MAX_MANIFEST), None, &mut out);
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

/// The owner of a manifest, and the folder that its paths are relative to.
#[derive(Clone, Copy)]
struct ManifestSource<'a> {
    declared_by: DeclaredBy,
    base: &'a Path,
}

fn parse_manifest(bytes: &[u8]) -> serde_json::Result<Manifest> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    serde_json::from_slice::<serde_json::Map<_, _>>(bytes)
        .and_then(|fields| serde_json::from_value::<Manifest>(fields.into()))
}

/// Adds the files of the manifest of the project. Without the user's consent to the manifest, none of them is included.
fn add_project_manifest(
    lookup: &ContextLookup<'_>,
    source: ManifestSource<'_>,
    trust: &ProjectTrust,
    out: &mut Declaration,
) {
    let read = read_project_manifest(trust);
    let refused = match &read {
        Ok(Some(file)) => match (trust.is_trusted(), trust.consent_to(file)) {
            (false, _) => Some(InclusionStatus::Untrusted),
            (true, Consent::Given) => None,
            (true, consent) => Some(InclusionStatus::NotAgreed(consent)),
        },
        _ => None,
    };
    let path = source.base.join(CONFIG_DIR).join(FILE);
    add_manifest(lookup, source, &path, read.map(|file| file.map(|file| file.bytes)), refused, out);
}

/// Adds the files of a manifest. `refused` is the status of all of them, if none may be included.
fn add_manifest(
    lookup: &ContextLookup<'_>,
    source: ManifestSource<'_>,
    path: &Path,
    read: std::io::Result<Option<Vec<u8>>>,
    refused: Option<InclusionStatus>,
    out: &mut Declaration,
) {
    let ManifestSource { declared_by, base } = source;
    let bytes = match read {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return,
        Err(error) => return out.flaws.push((path.to_owned(), error.to_string())),
    };
    let manifest = match parse_manifest(&bytes) {
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
        let (path, inclusion) = match &refused {
            Some(refused) => (path, refused.clone()),
            None => inclusion(lookup, source, path, loaded.map(Vec::as_slice)),
        };
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
    source: ManifestSource<'_>,
    dir: &Path,
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
        let name = format!("{SUBAGENTS}/{name}.md");
        let path = dir.join(&name);
        if std::fs::symlink_metadata(&path).is_ok() {
            let (path, inclusion) = inclusion(lookup, source, path, None);
            out.files.push(DeclaredEntry {
                declared_by: source.declared_by,
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
    source: ManifestSource<'_>,
    path: PathBuf,
    loaded: Option<&[String]>,
) -> (PathBuf, InclusionStatus) {
    let ManifestSource { declared_by, base } = source;
    let is_trusted = || lookup.project.is_some_and(ProjectTrust::is_trusted);
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
        None => {
            lookup.platform.loaded_files.iter().any(|name| is_loaded_as(name))
                || fallback_names(lookup).iter().any(|name| is_loaded_as(name)) && !has_loaded_file(lookup)
        }
    }
}

/// Returns the files that this version of the client loads instead of its own files. None if the version is unknown:
/// then a file may be told twice, but never lost.
fn fallback_names(lookup: &ContextLookup<'_>) -> &'static [&'static str] {
    let fallback = lookup.platform.fallback_files.as_ref();
    let is_new = |since| (lookup.client_version)(lookup.platform).is_some_and(|version| version >= since);
    fallback.filter(|fallback| is_new(fallback.since)).map_or(&[], |fallback| fallback.names)
}

/// Returns whether the client finds one of its own files in the working directory or a folder above it. That of the
/// user does not count.
fn has_loaded_file(lookup: &ContextLookup<'_>) -> bool {
    let (of_user, of_project): (Vec<&str>, Vec<&str>) =
        lookup.platform.loaded_files.iter().partition(|name| name.starts_with("~/"));
    let is_of_user = |path: &Path| {
        let rest = lookup.user.and_then(|user| path.strip_prefix(user).ok());
        rest.is_some_and(|rest| of_user.iter().any(|name| Path::new(&name[2..]) == rest))
    };
    let mut folders = lookup.cwd.into_iter().flat_map(Path::ancestors);
    folders.any(|dir| {
        let mut paths = of_project.iter().map(|name| dir.join(name));
        paths.any(|path| path.is_file() && !is_of_user(&path))
    })
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
    let trust = paths::own_project_root(cwd, home).map(|project| Trust::new(home).of_project(&project));
    if !crate::config::Config::load(home, trust.as_ref()).declared_context {
        return None;
    }
    let mut declaration = find(&ContextLookup {
        user,
        project: trust.as_ref(),
        container,
        // A platform that loads no files by itself, because there is no client in a pipe.
        platform: &API,
        client_version: |_| None,
        cwd: Some(cwd),
        agent: None,
        mount: None,
    });
    if declaration.is_in_prompt(prompt) {
        return None;
    }
    let files = declaration.read(trust.as_ref());
    let texts: Vec<String> = files.iter().map(|file| escape_tags(&file.text).into_owned()).collect();
    let texts: Vec<&str> = texts.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Reads the manifest of a project; `None` if there is none.
pub(crate) fn read_project_manifest(trust: &ProjectTrust) -> std::io::Result<Option<ProjectFile>> {
    trust.read_config_file(FILE, MAX_MANIFEST)
}

/// Returns the files in the project that its manifest names, with the part of their content that can be injected.
pub(crate) fn files_in_manifest(trust: &ProjectTrust, manifest: &[u8]) -> Vec<ProjectFile> {
    let names = parse_manifest(manifest).unwrap_or_default().files;
    names.iter().take(MAX_FILES).filter_map(|name| read_inside(trust, &trust.project().join(name))).collect()
}

/// Returns the texts for subagents in a project.
pub(crate) fn subagent_files(trust: &ProjectTrust) -> Vec<ProjectFile> {
    let Some(dir) = trust.config_dir() else { return Vec::new() };
    let entries = std::fs::read_dir(dir.join(SUBAGENTS)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    paths.sort();
    paths.iter().take(MAX_SUBAGENTS).filter_map(|path| read_inside(trust, path)).collect()
}

fn read_inside(trust: &ProjectTrust, path: &Path) -> Option<ProjectFile> {
    let path = path.canonicalize().ok().filter(|path| path.is_file() && trust.contains(path))?;
    let bytes = read_beginning(&path)?;
    Some(ProjectFile { path, bytes })
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
        let event = self.hook_event(kind, session.map(String::from), Some(platform), payload);
        let mut caller = self.core.caller();
        // Inside its container, the environment names the manifest in this folder.
        let mounted = folder.map(|folder| folder.join(CONFIG_DIR).join(FILE));
        caller.context = mounted.as_deref().or(caller.context);
        caller.mount = mount;
        (caller.uses_tags, caller.reader) = (true, None);
        let trust = self.core.trust().of_project(project);
        let mut declaration = find(&pipeline::lookup(&caller, &event, Some(&trust)));
        declaration.read(Some(&trust));
        (declaration, pipeline::explain(&caller, &event, None))
    }
}
