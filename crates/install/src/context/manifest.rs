//! The settings in `context.json` for the file to build.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Notice, inside};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildManifest {
    pub title: String,
    /// The folder with agents, skills and commands, relative to the folder that contains `.tanmi`.
    pub sources: Option<String>,
    /// The file to build, relative to the same folder.
    pub output: Option<String>,
    /// Names and values, written in this order.
    pub environment: Map<String, Value>,
    /// Titles of the folders of skills, written in this order.
    pub skill_groups: Map<String, Value>,
    /// Rules for the paths of documents.
    pub paths: Vec<String>,
    pub intents: Vec<Intent>,
    // These keys are read by the declared context and only accepted here.
    pub files: Vec<String>,
    pub marker: Option<String>,
    pub loaded_by_client: BTreeMap<String, Vec<String>>,
}

/// Keywords in a prompt that select an agent or a skill.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Intent {
    #[serde(rename = "use")]
    pub target: String,
    pub words: Vec<String>,
}

/// The path of the manifest, relative to the folder that contains `.tanmi`.
pub(super) const MANIFEST: &str = ".tanmi/context.json";

impl BuildManifest {
    /// Loads the manifest of a folder. Follows no symbolic link in it.
    pub fn load_in(base: &Path) -> Result<BuildManifest, Notice> {
        let path = inside(base, MANIFEST).map_err(|reason| Notice::new(&base.join(MANIFEST), reason))?;
        BuildManifest::load(&path)
    }

    /// Loads the manifest. Returns the default if there is no file.
    pub fn load(path: &Path) -> Result<BuildManifest, Notice> {
        match tanmi_base::fs::read_limited(path, 1 << 20) {
            Ok(None) => Ok(BuildManifest::default()),
            Ok(Some(bytes)) => {
                let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
                let invalid = |error: serde_json::Error| {
                    Notice::from_error(path, format!("line {}: {error}", error.line()))
                };
                // Serde would accept a list as the fields in order, so an object is required first.
                serde_json::from_slice::<Map<String, Value>>(bytes).map_err(invalid)?;
                serde_json::from_slice(bytes).map_err(invalid)
            }
            Err(error) => Err(Notice::from_error(path, error)),
        }
    }

    pub fn sources(&self) -> &str {
        self.sources.as_deref().unwrap_or(".claude")
    }

    pub fn output(&self) -> &str {
        self.output.as_deref().unwrap_or(".claude/CLAUDE.md")
    }
}
