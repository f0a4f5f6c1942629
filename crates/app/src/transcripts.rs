//! Ingests transcripts: copies turns from the files of clients into the home store, with secrets masked, so that
//! they can be searched. Nothing is written to the project.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_base::{fs, hash, id, secrets, text};
use tanmi_memory::{dates, transcripts};
use tanmi_platform::{CLIENTS, TranscriptFolder};

use crate::error::{Error, Result};
use crate::memory::MemoryService;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestResult {
    pub files: usize,
    pub turns: usize,
    /// The number of files without new turns.
    pub unchanged: usize,
    pub masked: usize,
}

/// Longer turns are cut. They usually contain pasted files, whose beginning is enough for a search.
const TURN_BYTES: usize = 4000;

impl MemoryService {
    /// Ingests new turns from these files and folders. Without any, uses the transcripts that clients keep for this
    /// project.
    pub fn ingest(&self, paths: &[PathBuf]) -> Result<IngestResult> {
        let paths = if paths.is_empty() { self.find_transcripts() } else { expand(paths)? };
        let mut ingested = IngestResult::default();
        for path in &paths {
            ingest(self.core.home(), self.core.project.folder(), path, &mut ingested)?;
        }
        if ingested.turns > 0 && self.core.project.memory().exists() {
            self.sync(&mut |_, _| {})?;
        }
        Ok(ingested)
    }

    /// Returns the transcripts of this project in the folders of clients. A file may belong to another project,
    /// because two projects can have the same folder.
    fn find_transcripts(&self) -> Vec<PathBuf> {
        let Some(user) = &self.core.env.user else { return Vec::new() };
        let project = self.core.folder();
        let folders = CLIENTS.iter().filter_map(|client| client.transcript.as_ref()?.folder.as_ref());
        let files = |folder: &'static TranscriptFolder| {
            let found = expand(&[user.join((folder.path)(project))]).unwrap_or_default();
            found.into_iter().filter(|file| belongs_to(file, project, folder.cwd))
        };
        folders.flat_map(files).collect()
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

/// Returns whether a transcript belongs to this project, judging by the first working directory in its beginning. A
/// transcript without one counts as belonging to it.
fn belongs_to(path: &Path, project: &Path, cwd_of: fn(&Value) -> Option<&str>) -> bool {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(256 << 10).read_to_end(&mut bytes));
    let cwd = bytes.split(|byte| *byte == b'\n').find_map(|line| {
        let value: Value = serde_json::from_slice(line).ok()?;
        cwd_of(&value).map(PathBuf::from)
    });
    read.is_ok()
        && cwd.is_none_or(|cwd| {
            cwd.starts_with(project) || cwd.canonicalize().is_ok_and(|cwd| cwd.starts_with(project))
        })
}

/// Returns whether a file is small enough to be ingested while a client waits for its hook.
pub fn is_small(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() < 8 << 20)
}

/// How far a transcript was read, and the hash of its first line. If the first line changed, the file was replaced
/// and is read from its start.
#[derive(serde::Deserialize, Serialize)]
struct ReadPosition {
    size: u64,
    head: String,
}

fn head(bytes: &[u8]) -> String {
    hash::md5_hex(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default())
}

/// Ingests the new turns of one transcript. The read position is stored in a file next to the ingested turns. Turns
/// that were ingested before stay, even if the transcript was replaced.
pub fn ingest(home: &Path, project: &Path, path: &Path, ingested: &mut IngestResult) -> Result<()> {
    let dir = transcripts::folder(home, project);
    let full = path.canonicalize().map_err(Error::io(path))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let key = &hash::md5_hex(full.as_os_str().as_encoded_bytes())[..8];
    let name = id::safe_name(&stem);
    let (turns_file, position_file) =
        (dir.join(format!("{name}-{key}.jsonl")), dir.join(format!("{name}-{key}.at")));
    let bytes = fs::read_optional(path).map_err(Error::io(path))?.unwrap_or_default();
    let known = fs::read_optional(&position_file).ok().flatten();
    let known = known.and_then(|bytes| serde_json::from_slice::<ReadPosition>(&bytes).ok());
    let start = known.filter(|known| known.head == head(&bytes) && known.size <= bytes.len() as u64);
    let start = start.map_or(0, |known| usize::try_from(known.size).unwrap_or(0));
    let rest = &bytes[start..];
    let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // A last line without a newline counts if it is complete JSON.
    let is_complete = serde_json::from_slice::<serde::de::IgnoredAny>(&rest[end..]).is_ok();
    let complete_len = if is_complete { rest.len() } else { end };
    if complete_len == 0 {
        ingested.unchanged += 1;
        return Ok(());
    }
    let (bytes, head) = (rest, head(&bytes));
    let mut lines = String::new();
    for line in bytes[..complete_len].split(|byte| *byte == b'\n') {
        let Some(turn) = serde_json::from_slice(line).ok().and_then(|value| CLIENTS.read_turn(&value)) else {
            continue;
        };
        let (content, masked) = secrets::mask(&turn.content);
        ingested.masked += masked.len();
        let content = text::cut(&content, TURN_BYTES);
        let position = line.as_ptr() as usize - bytes.as_ptr() as usize + start;
        let id = turn.id.unwrap_or_else(|| format!("{key}-{position}-{}", &hash::md5_hex(line)[..6]));
        let line = json!({
            "id": format!("turn-{id}"), "type": "turn", "content": content, "speaker": turn.speaker,
            "timestamp": turn.timestamp.filter(|stamp| dates::parse(stamp).is_some()).unwrap_or_default(),
            "source": {"session": turn.session.as_ref().unwrap_or(&name), "by": "transcript"},
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
        ingested.turns += 1;
    }
    fs::create_private_dir(&dir).map_err(Error::io(&dir))?;
    fs::append_private(&turns_file, lines.as_bytes()).map_err(Error::io(&turns_file))?;
    let position = ReadPosition { size: (start + complete_len) as u64, head };
    let text = serde_json::to_vec(&position).unwrap_or_default();
    fs::write_private(&position_file, &text).map_err(Error::io(&position_file))?;
    ingested.files += 1;
    Ok(())
}
