//! The embedding model that the user adds for semantic search.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tanmi_base::fs;
use tanmi_memory::vectors::Model;

use super::MemoryService;
use crate::error::{Error, Result};

impl MemoryService {
    fn model_file(&self) -> PathBuf {
        self.core.home().join("model.json")
    }

    /// Loads the model of the user, or returns the loaded one if its files have not changed. Returns `None` if
    /// `model.json` is missing or malformed.
    pub(crate) fn load_model(&self) -> Option<Result<Arc<Model>>> {
        let bytes = fs::read_optional(&self.model_file()).ok()??;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        Some(Model::load_shared(Path::new(value["dir"].as_str()?)).map_err(Error::from))
    }

    /// Returns what a search says if the model could not be loaded.
    pub(super) fn model_notice(&self, error: &Error) -> String {
        let lang = self.core.lang();
        let reason = error.message(lang);
        lang.pick(
            format!("只按词搜索：{reason}。用户可运行 `tanmi memory model add DIR` 或 `tanmi memory model remove`"),
            format!(
                "searched by words only: {reason}. The user can run `tanmi memory model add DIR` or `tanmi memory model remove`"
            ),
        )
    }

    /// Adds a model for semantic search.
    pub fn add_model(&self, dir: &Path) -> Result<Value> {
        let dir = dir.canonicalize().map_err(Error::io(dir))?;
        let model = Model::load(&dir)?;
        fs::create_private_dir(self.core.home()).map_err(Error::io(self.core.home()))?;
        let text = json!({"dir": dir}).to_string();
        fs::write_private(&self.model_file(), text.as_bytes()).map_err(Error::io(self.model_file()))?;
        Ok(json!({"dir": dir, "dimensions": model.dimensions}))
    }

    /// Removes the model. Returns whether there was one.
    pub fn remove_model(&self) -> Result<bool> {
        match std::fs::remove_file(self.model_file()) {
            Ok(()) => Ok(true),
            Err(error) if fs::is_absent(&error) => Ok(false),
            Err(error) => Err(Error::io(self.model_file())(error)),
        }
    }

    /// Returns the folder of the added model with its dimensions, or with the reason why it cannot be loaded; null if
    /// there is none.
    pub fn show_model(&self) -> Value {
        let bytes = fs::read_optional(&self.model_file()).ok().flatten().unwrap_or_default();
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let Some(dir) = value["dir"].as_str() else { return Value::Null };
        match Model::load(Path::new(dir)) {
            Ok(model) => json!({"dir": dir, "dimensions": model.dimensions}),
            Err(error) => json!({"dir": dir, "error": error.to_string()}),
        }
    }
}
