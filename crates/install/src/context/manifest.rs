//! What `context.json` says of the file that is built.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use tanmi_base::Lang;

use super::Notice;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildManifest {
    pub title: String,
    /// Where agents, skills and commands are looked for, and what is built; both relative to the folder of `.tanmi`.
    pub sources: Option<String>,
    pub output: Option<String>,
    /// Name and value, in this order.
    pub environment: Map<String, Value>,
    /// Titles of the folders that skills are in, in this order.
    pub skill_groups: Map<String, Value>,
    /// Where documents go.
    pub paths: Vec<String>,
    pub intents: Vec<Intent>,
    // Of the other reader of this file.
    pub files: Vec<String>,
    pub marker: Option<String>,
    pub loaded_by_client: BTreeMap<String, Vec<String>>,
}

/// Words that mean an agent or a skill.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Intent {
    #[serde(rename = "use")]
    pub target: String,
    pub words: Vec<String>,
}

impl BuildManifest {
    /// What the file says; nothing, where there is none.
    pub fn load(path: &Path) -> Result<BuildManifest, Notice> {
        match tanmi_base::fs::read_limited(path, 1 << 20) {
            Ok(None) => Ok(BuildManifest::default()),
            Ok(Some(bytes)) => {
                let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
                let wrong = |error: serde_json::Error| {
                    Notice::from_error(path, format!("line {}: {error}", error.line()))
                };
                // A list would be taken for the fields in their order.
                serde_json::from_slice::<Map<String, Value>>(bytes).map_err(wrong)?;
                serde_json::from_slice(bytes).map_err(wrong)
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

    /// Chinese unless what was written here is English: the specification's own language.
    pub fn lang(&self) -> Lang {
        let mut words = self.title.clone();
        self.environment.keys().chain(&self.paths).for_each(|text| words.push_str(text));
        Lang::of_text(&words).unwrap_or(Lang::Zh)
    }
}
