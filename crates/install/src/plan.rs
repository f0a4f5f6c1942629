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
use crate::{Ours, Refusal, guide, hooks, status_line, toml};

/// What one file is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Hooks,
    Server,
    StatusLine,
    Guide(GuideFile),
}

/// One file of one agent.
#[derive(Clone, Debug)]
pub struct Place {
    pub agent: &'static Agent,
    pub scope: Scope,
    pub path: PathBuf,
    /// The project, for a file of one.
    pub project: Option<PathBuf>,
    pub parts: Vec<What>,
}

/// What is to be put in.
#[derive(Clone, Debug)]
pub struct Wish {
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
pub enum Outcome {
    Create,
    Change,
    Unchanged,
    Remove,
    Refused(Refusal),
}

#[derive(Clone, Debug)]
pub struct Planned {
    pub place: Place,
    /// The file itself, where the path is a link.
    pub real: PathBuf,
    pub outcome: Outcome,
    pub before: Option<Vec<u8>>,
    /// `None`: the file goes.
    pub after: Option<Vec<u8>>,
    pub(crate) sig: Option<FileSig>,
}

impl Planned {
    pub fn is_change(&self) -> bool {
        matches!(self.outcome, Outcome::Create | Outcome::Change | Outcome::Remove)
    }

    /// As people read changes.
    pub fn diff(&self) -> String {
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let (before, after) = (text(&self.before), text(&self.after));
        let path = self.place.path.display().to_string();
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
pub fn places(agent: &'static Agent, scope: Scope, folders: &Folders, wish: Option<&Wish>) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let project = (scope == Scope::Project).then(|| folders.project.clone());
    let mut add = |path: PathBuf, what: What| match places.iter_mut().find(|place| place.path == path) {
        Some(place) => place.parts.push(what),
        None => places.push(Place { agent, scope, path, project: project.clone(), parts: vec![what] }),
    };
    if wish.is_none_or(|wish| wish.hooks) {
        add(agent.hooks_file(scope, folders), What::Hooks);
    }
    // A project's would take the place of everybody's own.
    if agent.has_status_line && scope == Scope::User && wish.is_none_or(|wish| wish.status_line) {
        add(agent.hooks_file(scope, folders), What::StatusLine);
    }
    if let Some(path) = agent.mcp_file(scope, folders).filter(|_| wish.is_none_or(|wish| wish.server)) {
        add(path, What::Server);
    }
    if let Some(file) = agent.guide_file(scope, folders).filter(|_| wish.is_none_or(|wish| wish.guide)) {
        let (GuideFile::Whole(path) | GuideFile::Block(path)) = &file;
        add(path.clone(), What::Guide(file.clone()));
    }
    places
}

/// A file as it is now.
pub(crate) struct Now {
    pub real: PathBuf,
    pub bytes: Option<Vec<u8>>,
    pub sig: Option<FileSig>,
}

pub(crate) fn read(path: &Path) -> Result<Now, Refusal> {
    let unusable = |error: io::Error| Refusal::Unusable(error.to_string());
    let real = match fs::is_link(path) {
        true => path.canonicalize().map_err(|_| Refusal::Unusable(String::from("a link to nowhere")))?,
        false => path.to_owned(),
    };
    // The look at what it is comes first: what changes in between is noticed when it is replaced.
    let sig = FileSig::of(&real).map_err(unusable)?;
    if sig.is_none() {
        return Ok(Now { real, bytes: None, sig });
    }
    let meta = std::fs::metadata(&real).map_err(unusable)?;
    if !meta.is_file() {
        return Err(Refusal::Unusable(String::from("it is not a file")));
    }
    if meta.len() > MAX_FILE {
        return Err(Refusal::TooLarge);
    }
    if meta.permissions().readonly() {
        return Err(Refusal::ReadOnly);
    }
    let bytes = fs::read_limited(&real, MAX_FILE).map_err(unusable)?;
    Ok(Now { real, bytes, sig })
}

pub fn plan(place: Place, wish: &Wish) -> Planned {
    let planned = |now: Now, after: Result<Vec<u8>, Refusal>| {
        let outcome = match &after {
            Err(refusal) => Outcome::Refused(refusal.clone()),
            Ok(after) if now.bytes.as_ref() == Some(after) => Outcome::Unchanged,
            Ok(_) if now.bytes.is_none() => Outcome::Create,
            Ok(_) => Outcome::Change,
        };
        Planned {
            place: named(&place, after.as_deref().ok()),
            real: now.real,
            outcome,
            before: now.bytes,
            after: after.ok(),
            sig: now.sig,
        }
    };
    match read(&place.path) {
        Err(refusal) => planned(Now { real: place.path.clone(), bytes: None, sig: None }, Err(refusal)),
        Ok(now) => {
            let after = with(&place, now.bytes.as_deref(), wish);
            planned(now, after)
        }
    }
}

/// The parts that are ours in this text: a status line may be somebody else's, and stays.
fn named(place: &Place, bytes: Option<&[u8]>) -> Place {
    let has_ours = || {
        let json = Json::parse(&Text::of(bytes?).ok()?.body).ok()?;
        status_line::program(&json.value())
    };
    let mut place = place.clone();
    if place.parts.contains(&What::StatusLine) && has_ours().is_none() {
        place.parts.retain(|part| *part != What::StatusLine);
    }
    place
}

/// The file with everything of ours in it.
pub(crate) fn with(place: &Place, bytes: Option<&[u8]>, wish: &Wish) -> Result<Vec<u8>, Refusal> {
    let text = || Text::of(bytes.unwrap_or_default());
    match format(place) {
        Format::Json => json::changed(bytes, |json| {
            if place.parts.contains(&What::Hooks) {
                hooks::put(json, place.agent, &wish.program)?;
            }
            if place.parts.contains(&What::Server) {
                hooks::put_server(json, place.agent, &wish.program)?;
            }
            if place.parts.contains(&What::StatusLine) {
                status_line::put(json, &wish.program)?;
            }
            Ok(())
        }),
        Format::Toml => {
            let text = text()?;
            Ok(text.with(&toml::put_server(&text, &wish.program)?))
        }
        Format::Markdown(file) => {
            let text = text()?;
            let before = bytes.map(|_| text.body.as_str());
            let body = guide::put(file, before, wish.lang).map_err(|line| match line {
                Some(line) => Refusal::Edited { line },
                None => {
                    let zh = "已有同名文件，不是 tanmi 写的；请先改名";
                    let en = "a file of that name is there, and tanmi did not write it; rename it first";
                    Refusal::Unusable(wish.lang.pick(zh, en).to_owned())
                }
            })?;
            Ok(text.with(&body))
        }
    }
}

/// What belongs into a file that has nothing of ours.
pub fn snippet(place: &Place, wish: &Wish) -> String {
    with(place, None, wish).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// What a file is written in.
enum Format<'a> {
    Markdown(&'a GuideFile),
    Toml,
    Json,
}

fn format(place: &Place) -> Format<'_> {
    let guide = place.parts.iter().find_map(|part| match part {
        What::Guide(file) => Some(file),
        _ => None,
    });
    match guide {
        Some(file) => Format::Markdown(file),
        None if place.path.extension().is_some_and(|extension| extension == "toml") => Format::Toml,
        None => Format::Json,
    }
}

/// What taking everything out of a file would do to it.
pub fn plan_removal(place: Place, receipts: &Receipts) -> Option<Planned> {
    let now = match read(&place.path) {
        Ok(now) => now,
        Err(refusal) => {
            let is_ours = receipts.has(&place.path);
            let (real, outcome) = (place.path.clone(), Outcome::Refused(refusal));
            return is_ours.then_some(Planned { place, real, outcome, before: None, after: None, sig: None });
        }
    };
    let bytes = now.bytes?;
    let after = match receipts.original(&now.real, &bytes) {
        // Nobody wrote to it since: it becomes what it was.
        Some(original) => Ok(original),
        None => without(&place, &bytes, &receipts.before(&now.real)).map(|left| left.or_gone(&bytes)),
    };
    let outcome = match &after {
        Err(refusal) => Outcome::Refused(refusal.clone()),
        Ok(None) => Outcome::Remove,
        Ok(Some(after)) if *after == bytes => return None,
        Ok(Some(_)) => Outcome::Change,
    };
    let after = after.ok().flatten();
    let place = named(&place, Some(&bytes));
    Some(Planned { place, real: now.real, outcome, before: Some(bytes), after, sig: now.sig })
}

/// What is left of a file without us.
pub(crate) enum Left {
    Same,
    Text(Vec<u8>),
    Nothing,
}

impl Left {
    fn or_gone(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Left::Same => Some(bytes.to_vec()),
            Left::Text(text) => Some(text),
            Left::Nothing => None,
        }
    }
}

/// What a file was before us, if that is known.
pub(crate) enum Before {
    Unknown,
    Absent,
    Bytes(Vec<u8>),
}

/// The file without anything of ours.
pub(crate) fn without(place: &Place, bytes: &[u8], before: &Before) -> Result<Left, Refusal> {
    let text = Text::of(bytes)?;
    let old = match before {
        Before::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let body = match format(place) {
        Format::Markdown(file) => match guide::take(file, &text.body) {
            Err(line) => return Err(Refusal::Edited { line }),
            Ok(None) => text.body.clone(),
            Ok(Some(Some(left))) => left,
            Ok(Some(None)) => return Ok(Left::Nothing),
        },
        Format::Toml => toml::take_server(&text, &old)?.unwrap_or_else(|| text.body.clone()),
        Format::Json => {
            let json = Json::parse(&text.body)?;
            let old = match before {
                Before::Unknown => Value::Null,
                _ => Json::parse(old.trim_start_matches('\u{feff}'))
                    .map(|json| json.value())
                    .unwrap_or_default(),
            };
            hooks::take(&json, place.agent, &old);
            hooks::take_server(&json, &old);
            status_line::take(&json);
            json.text()
        }
    };
    if body == text.body {
        return Ok(Left::Same);
    }
    let is_own_name = place.path.file_stem().is_some_and(|name| name == "tanmi");
    let was_made = matches!(before, Before::Absent) || is_own_name && matches!(before, Before::Unknown);
    if was_made && matches!(body.trim(), "" | "{}") {
        return Ok(Left::Nothing);
    }
    Ok(Left::Text(text.with(&body)))
}

/// What of ours is in an agent's files.
#[derive(Clone, Debug)]
pub struct Found {
    pub agent: &'static Agent,
    pub scope: Scope,
    pub path: PathBuf,
    /// Event, command line, and what it runs.
    pub hooks: Vec<(String, String, Ours)>,
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
pub fn survey(agent: &'static Agent, scope: Scope, folders: &Folders) -> Vec<Found> {
    let look = |place: Place| -> Option<Found> {
        let mut found = Found {
            agent,
            scope,
            path: place.path.clone(),
            hooks: Vec::new(),
            server: None,
            status_line: None,
            has_guide: false,
            off: Vec::new(),
            altered: Vec::new(),
            refusal: None,
        };
        let bytes = match fs::read_limited(&place.path, MAX_FILE) {
            Ok(bytes) => bytes?,
            Err(error) => {
                found.refusal = Some(Refusal::Unusable(error.to_string()));
                return Some(found);
            }
        };
        found.refusal = fill(&mut found, &place, &bytes).err();
        Some(found)
    };
    places(agent, scope, folders, None).into_iter().filter_map(look).collect()
}

fn fill(found: &mut Found, place: &Place, bytes: &[u8]) -> Result<(), Refusal> {
    let text = Text::of(bytes)?;
    match format(place) {
        Format::Markdown(file) => {
            found.has_guide = guide::standing(file, &text.body) != guide::Standing::None;
        }
        Format::Toml => {
            found.server = toml::server_program(&text)?;
            found.off = toml::switched_off(&text);
        }
        Format::Json => {
            let json = Json::parse(&text.body)?;
            found.hooks = hooks::found(&json, place.agent);
            found.off = hooks::switched_off(&json);
            found.altered = hooks::altered(&json, place.agent);
            found.status_line = status_line::program(&json.value());
            found.server = hooks::server_program(json.value()[hooks::SERVERS].get(hooks::NAME));
        }
    }
    Ok(())
}
