//! Dictionaries that the user adds for search in two languages.

use std::io::{BufReader, Read};
use std::path::Path;

use serde::Serialize;
use tanmi_base::fs;
use tanmi_memory::{LexiconIndex, LexiconInfo, dates, lexicon};

use super::MemoryService;
use crate::error::{Error, Result};

/// A dictionary as all interfaces show it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lexicon {
    /// The name of its file.
    pub name: String,
    /// The number of pairs of a Chinese word and an English phrase.
    pub pairs: u64,
    pub lines: u64,
    pub bad_lines: u64,
    pub added: String,
}

impl From<LexiconInfo> for Lexicon {
    fn from(info: LexiconInfo) -> Lexicon {
        let LexiconInfo { name, lines, bad_lines, pairs, added_at } = info;
        Lexicon { name, pairs, lines, bad_lines, added: dates::iso(added_at) }
    }
}

impl MemoryService {
    /// Adds a dictionary in the place of one with the same file name. `progress` receives the bytes read and
    /// the size of the file.
    pub fn add_lexicon(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Lexicon> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = std::fs::File::open(path).map_err(Error::io(path))?;
        let size = file.metadata().map_err(Error::io(path))?.len();
        let reader = BufReader::new(CountedFile { file, done: 0, size, progress });
        fs::create_private_dir(self.core.home()).map_err(Error::io(self.core.home()))?;
        let store = self.lexicon_store()?;
        let added = store.replace(&name, self.core.now(), |put| {
            let counts =
                lexicon::read(reader, |chinese, english| Ok::<(), ReadError>(put(chinese, english)?))?;
            let counts = counts.ok_or(ReadError::NotALexicon)?;
            Ok((counts.lines, counts.bad_lines))
        });
        match added {
            Ok(info) => Ok(info.into()),
            Err(ReadError::Io(error)) => Err(Error::io(path)(error)),
            Err(ReadError::Index(error)) => Err(tanmi_memory::Error::from(error).into()),
            Err(ReadError::NotALexicon) => Err(Error::NotALexicon { path: path.to_owned() }),
        }
    }

    fn lexicon_store(&self) -> Result<LexiconIndex> {
        Ok(LexiconIndex::open(&lexicon::file(self.core.home())).map_err(tanmi_memory::Error::from)?)
    }

    /// Returns the dictionaries, sorted by name.
    pub fn lexicons(&self) -> Result<Vec<Lexicon>> {
        let file = lexicon::file(self.core.home());
        let Some(store) = LexiconIndex::open_existing(&file) else { return Ok(Vec::new()) };
        let all = store.list().map_err(tanmi_memory::Error::from)?;
        Ok(all.into_iter().map(Lexicon::from).collect())
    }

    /// Removes a dictionary.
    pub fn remove_lexicon(&self, name: &str) -> Result<()> {
        let known: Vec<String> = self.lexicons()?.into_iter().map(|one| one.name).collect();
        if !known.iter().any(|one| one == name) {
            return Err(Error::LexiconNotFound { name: name.to_owned(), known });
        }
        self.lexicon_store()?.remove(name).map_err(tanmi_memory::Error::from)?;
        Ok(())
    }
}

/// Why a dictionary file was not added.
enum ReadError {
    Io(std::io::Error),
    Index(tanmi_memory::IndexError),
    NotALexicon,
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

impl From<tanmi_memory::IndexError> for ReadError {
    fn from(error: tanmi_memory::IndexError) -> ReadError {
        ReadError::Index(error)
    }
}

/// A file that reports how much of it was read.
struct CountedFile<'a> {
    file: std::fs::File,
    done: u64,
    size: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Read for CountedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.done += read as u64;
        (self.progress)(self.done, self.size);
        Ok(read)
    }
}
