//! Past conversations: taken from the files that clients leave, without their secrets, into the home folder, so that they
//! can be searched. Never into the project.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_base::{fs, hash, id, secrets, text};
use tanmi_memory::dates;

use crate::App;
use crate::error::{Error, Result};
use crate::memory::project_key;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestResult {
    pub files: usize,
    pub turns: usize,
    /// Files that had nothing new.
    pub unchanged: usize,
    pub masked: usize,
}

/// Longer turns are pasted files: their beginning says what they are about.
const TURN_BYTES: usize = 4000;

fn folder(home: &Path, project: &Path) -> PathBuf {
    home.join("transcripts").join(project_key(project))
}

/// What was taken so far, for the index.
pub fn files(home: &Path, project: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder(home, project)).into_iter().flatten().flatten();
    let mut files: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| Some((format!("transcripts/{}", entry.file_name().to_str()?), entry.path())))
        .filter(|(name, _)| name.ends_with(".jsonl"))
        .collect();
    files.sort();
    files
}

impl App {
    /// Takes what is new in these files; without any, in those that Claude Code keeps of this project.
    pub fn memory_ingest(&self, paths: &[PathBuf]) -> Result<IngestResult> {
        // One that was named is wanted; one that was found may be of a project with a name like this one's.
        let is_named = !paths.is_empty();
        let paths = if is_named { expand(paths)? } else { self.own_transcripts() };
        let mut ingested = IngestResult::default();
        for path in paths.iter().filter(|path| is_named || is_of(path, self.project())) {
            ingest(self.home(), self.project(), path, &mut ingested)?;
        }
        if ingested.turns > 0 && self.memory_folder().exists() {
            self.memory_sync(|_, _| {})?;
        }
        Ok(ingested)
    }

    /// `~/.claude/projects/<path with dashes>/*.jsonl`
    fn own_transcripts(&self) -> Vec<PathBuf> {
        let Some(user) = &self.env.user else { return Vec::new() };
        let slug: String = self
            .project()
            .display()
            .to_string()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        expand(&[user.join(".claude/projects").join(slug)]).unwrap_or_default()
    }
}

fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(Error::io(path))?.flatten();
            out.extend(
                entries
                    .map(|entry| entry.path())
                    .filter(|path| path.extension().is_some_and(|end| end == "jsonl")),
            );
        } else if path.is_file() {
            out.push(path.clone());
        } else {
            return Err(Error::io(path)(std::io::ErrorKind::NotFound.into()));
        }
    }
    out.sort();
    Ok(out)
}

/// Whether a conversation happened in this project, as far as its first lines say where.
fn is_of(path: &Path, project: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(256 << 10).read_to_end(&mut bytes));
    let said = bytes.split(|byte| *byte == b'\n').find_map(|line| {
        let value: Value = serde_json::from_slice(line).ok()?;
        value.get("cwd")?.as_str().map(PathBuf::from)
    });
    read.is_ok()
        && said.is_none_or(|cwd| {
            cwd.starts_with(project) || cwd.canonicalize().is_ok_and(|cwd| cwd.starts_with(project))
        })
}

/// Whether a file can be taken in while a client waits.
pub fn is_quick(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() < 8 << 20)
}

/// How far a file was read, and what it began with: a file that begins otherwise is another one.
#[derive(serde::Deserialize, Serialize)]
struct Mark {
    size: u64,
    head: String,
}

fn head(bytes: &[u8]) -> String {
    hash::md5_hex(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default())
}

/// Takes what is new in one file. How far it was read stands in a file beside what was taken; what was taken stays.
pub fn ingest(home: &Path, project: &Path, path: &Path, ingested: &mut IngestResult) -> Result<()> {
    let dir = folder(home, project);
    let full = path.canonicalize().map_err(Error::io(path))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let key = &hash::md5_hex(full.as_os_str().as_encoded_bytes())[..8];
    let name = id::safe_name(&stem);
    let (taken, mark) = (dir.join(format!("{name}-{key}.jsonl")), dir.join(format!("{name}-{key}.at")));
    let bytes = fs::read_optional(path).map_err(Error::io(path))?.unwrap_or_default();
    let known =
        fs::read_optional(&mark).ok().flatten().and_then(|bytes| serde_json::from_slice::<Mark>(&bytes).ok());
    let start = known.filter(|known| known.head == head(&bytes) && known.size <= bytes.len() as u64);
    let start = start.map_or(0, |known| usize::try_from(known.size).unwrap_or(0));
    let rest = &bytes[start..];
    let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // A last line without its end counts if it is complete.
    let is_whole = serde_json::from_slice::<serde::de::IgnoredAny>(&rest[end..]).is_ok();
    let whole = if is_whole { rest.len() } else { end };
    if whole == 0 {
        ingested.unchanged += 1;
        return Ok(());
    }
    let (bytes, head) = (rest, head(&bytes));
    let mut lines = String::new();
    for line in bytes[..whole].split(|byte| *byte == b'\n') {
        let Some(turn) = serde_json::from_slice::<Value>(line).ok().and_then(|value| turn(&value, &name))
        else {
            continue;
        };
        let (content, masked) = secrets::mask(&turn.content);
        ingested.masked += masked.len();
        let content = text::cut(&content, TURN_BYTES);
        let position = line.as_ptr() as usize - bytes.as_ptr() as usize + start;
        let id = turn.id.unwrap_or_else(|| format!("{key}-{position}-{}", &hash::md5_hex(line)[..6]));
        let line = json!({
            "id": format!("turn-{id}"), "type": "turn", "content": content, "speaker": turn.speaker,
            "timestamp": turn.timestamp.unwrap_or_default(), "source": {"session": turn.session, "by": "transcript"},
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
        ingested.turns += 1;
    }
    fs::create_private_dir(&dir).map_err(Error::io(&dir))?;
    fs::append_private(&taken, lines.as_bytes()).map_err(Error::io(&taken))?;
    let text = serde_json::to_vec(&Mark { size: (start + whole) as u64, head }).unwrap_or_default();
    fs::write_private(&mark, &text).map_err(Error::io(&mark))?;
    ingested.files += 1;
    Ok(())
}

struct Turn {
    id: Option<String>,
    session: String,
    speaker: String,
    timestamp: Option<String>,
    content: String,
}

/// What a person or a model said, in the shapes of Claude Code, Codex and Cursor; tools and machinery are left out.
fn turn(value: &Value, name: &str) -> Option<Turn> {
    let message = value.get("message").or_else(|| value.get("payload")).unwrap_or(value);
    let role = message.get("role").or_else(|| value.get("role")).or_else(|| value.get("type"))?.as_str()?;
    if !matches!(role, "user" | "assistant") || value.get("isMeta") == Some(&Value::Bool(true)) {
        return None;
    }
    let content = said(message.get("content").or_else(|| message.get("text"))?);
    let content = content.trim();
    const MACHINERY: &[&str] =
        &["<command-", "<local-command", "<system-reminder", "<task-notification", "<bash-", "<user-memory"];
    if content.is_empty() || MACHINERY.iter().any(|start| content.starts_with(start)) {
        return None;
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(String::from);
    Some(Turn {
        id: text("uuid"),
        session: text("sessionId").or_else(|| text("session_id")).unwrap_or_else(|| name.to_owned()),
        speaker: role.to_owned(),
        timestamp: text("timestamp").filter(|stamp| dates::parse(stamp).is_some()),
        content: content.to_owned(),
    })
}

fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| {
                matches!(
                    part.get("type").and_then(Value::as_str),
                    Some("text" | "input_text" | "output_text")
                )
            });
            texts.filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
