//! Embedding vectors, if the user provides a model: a static embedding model in a local folder (model2vec).
//! Optional.
//!
//! Vectors are stored with one byte per dimension. A search compares their signs first, see `tanmi_index`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tanmi_base::{Bilingual, fs, hash};

use crate::{Error, Result};

/// Files that a model folder must contain.
const FILES: &[&str] = &["tokenizer.json", "model.safetensors", "config.json"];

pub struct Model {
    #[cfg(feature = "vectors")]
    inner: model2vec_rs::model::StaticModel,
    /// Identifies the model. Changes with its files, so that vectors of another model are computed again.
    pub id: String,
    pub dimensions: usize,
}

/// The model that this process loaded last.
static LOADED: Mutex<Option<(PathBuf, Arc<Model>)>> = Mutex::new(None);

impl Model {
    /// Returns the model of a folder. Loads it only if this process has not loaded it yet, or if its files changed.
    pub fn load_shared(dir: &Path) -> Result<Arc<Model>> {
        let id = Model::read_id(dir)?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, model)) = &*loaded
            && of == dir
            && model.id == id
        {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(Model::open(dir, id)?);
        *loaded = Some((dir.to_owned(), Arc::clone(&model)));
        Ok(model)
    }

    pub fn load(dir: &Path) -> Result<Model> {
        Model::open(dir, Model::read_id(dir)?)
    }

    /// Returns the id of the model in a folder. Fails if a file is missing.
    fn read_id(dir: &Path) -> Result<String> {
        for name in FILES {
            let path = dir.join(name);
            if !path.is_file() {
                return Err(Error::io(path)(std::io::ErrorKind::NotFound.into()));
            }
        }
        let mut fingerprint =
            fs::read_optional(&dir.join("config.json")).map_err(Error::io(dir))?.unwrap_or_default();
        for name in FILES {
            let sig = fs::FileSig::of(&dir.join(name)).map_err(Error::io(dir))?.unwrap_or_default();
            fingerprint.extend_from_slice(format!("{}:{}", sig.size, sig.mtime_ns).as_bytes());
        }
        Ok(hash::md5_hex(&fingerprint))
    }

    #[cfg(feature = "vectors")]
    fn open(dir: &Path, id: String) -> Result<Model> {
        let bad = |reason: Bilingual| Error::Model { dir: dir.to_owned(), reason };
        let inner = model2vec_rs::model::StaticModel::from_pretrained(dir, None, Some(true), None)
            .map_err(|error| bad(Bilingual::new(format!("{error:#}"), format!("{error:#}"))))?;
        let dimensions = inner.encode_single("x").len();
        if dimensions == 0 {
            return Err(bad(Bilingual::new("没有维度", "it has no dimensions")));
        }
        Ok(Model { inner, id, dimensions })
    }

    #[cfg(not(feature = "vectors"))]
    fn open(dir: &Path, _: String) -> Result<Model> {
        let reason = Bilingual::new("此程序编译时未包含向量支持", "this program was built without vectors");
        Err(Error::Model { dir: dir.to_owned(), reason })
    }

    #[cfg(feature = "vectors")]
    pub fn embed(&self, text: &str) -> Vec<u8> {
        let vector = self.inner.encode_single(text);
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::EPSILON);
        vector.iter().map(|x| (x / length * 127.0).round().clamp(-127.0, 127.0) as i8 as u8).collect()
    }

    #[cfg(not(feature = "vectors"))]
    pub fn embed(&self, _: &str) -> Vec<u8> {
        Vec::new()
    }
}

/// Returns the cosine similarity of two vectors, from -1 to 1.
pub fn similarity(a: &[u8], b: &[u8]) -> f32 {
    let dot: i32 = a.iter().zip(b).map(|(a, b)| i32::from(*a as i8) * i32::from(*b as i8)).sum();
    dot as f32 / (127.0 * 127.0)
}
