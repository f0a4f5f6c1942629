//! Past conversations: taken from the files that clients leave, without their secrets, into the home folder, so that they
//! can be searched. Never into the project.

use std::io::{Read, Seek, SeekFrom};
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
pub struct Ingested {
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
    pub fn memory_ingest(&self, paths: &[PathBuf]) -> Result<Ingested> {
        let paths = if paths.is_empty() { self.own_transcripts() } else { expand(paths)? };
        let mut ingested = Ingested::default();
        for path in &paths {
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

/// Takes what is new in one file. How far it was read stands in a file beside what was taken.
pub fn ingest(home: &Path, project: &Path, path: &Path, ingested: &mut Ingested) -> Result<()> {
    let dir = folder(home, project);
    let name = id::safe_name(&path.file_stem().unwrap_or_default().to_string_lossy());
    let (taken, mark) = (dir.join(format!("{name}.jsonl")), dir.join(format!("{name}.at")));
    let known = fs::read_optional(&mark).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    let start: u64 = known.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let mut file = std::fs::File::open(path).map_err(Error::io(path))?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    // A file that became shorter is another one.
    let start = if size < start { 0 } else { start };
    file.seek(SeekFrom::Start(start)).map_err(Error::io(path))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::io(path))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole == 0 {
        ingested.unchanged += 1;
        return Ok(());
    }
    let mut lines = String::new();
    for line in bytes[..whole].split(|byte| *byte == b'\n') {
        let Some(turn) = serde_json::from_slice::<Value>(line).ok().and_then(|value| turn(&value, &name))
        else {
            continue;
        };
        let (content, masked) = secrets::mask(&turn.content);
        ingested.masked += masked.len();
        let content = text::cut(&content, TURN_BYTES);
        let id = turn.id.unwrap_or_else(|| hash::md5_hex(line)[..16].to_owned());
        let line = json!({
            "id": format!("turn-{id}"), "type": "turn", "content": content, "speaker": turn.speaker,
            "timestamp": turn.timestamp.unwrap_or_default(), "source": {"session": turn.session, "by": "transcript"},
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
        ingested.turns += 1;
    }
    fs::create_private_dir(&dir).map_err(Error::io(&dir))?;
    if start == 0 {
        let _ = std::fs::remove_file(&taken);
    }
    fs::append_private(&taken, lines.as_bytes()).map_err(Error::io(&taken))?;
    let end = format!("{}\n", start + whole as u64);
    fs::write_private(&mark, end.as_bytes()).map_err(Error::io(&mark))?;
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
    if content.is_empty() || content.starts_with('<') {
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
