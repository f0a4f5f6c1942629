//! Reads the front matter of agents, skills and commands: name, description and when to use them.

use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, Yaml};

use super::{NOT_UTF8, Notice};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextItem {
    pub name: String,
    pub about: String,
    pub when: String,
    /// The folder of a skill below `skills`, if skills are grouped in folders.
    pub group: Option<String>,
    pub path: PathBuf,
}

/// Maximum size of a file.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum size of the front matter.
const MAX_MATTER_BYTES: usize = 16 << 10;
/// Maximum number of lists and mappings that the front matter may open in a row, as in `- - - x`.
const MAX_LEVELS_IN_ROW: usize = 16;
/// Maximum length of a description.
const MAX_ABOUT: usize = 400;

/// Reads an item. `name` is the name of the file or folder, used if the front matter has none.
pub fn read(path: &Path, name: &str, group: Option<String>) -> Result<ContextItem, Notice> {
    let bytes =
        tanmi_base::fs::read_limited(path, MAX_BYTES).map_err(|error| Notice::from_error(path, error))?;
    let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|_| Notice::new(path, NOT_UTF8))?;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let Some(rest) = text.strip_prefix("---\n") else {
        return Err(Notice::new(
            path,
            ("没有 front matter（--- name, description ---）", "no front matter (--- name, description ---)"),
        ));
    };
    let Some(end) = rest.find("\n---") else {
        return Err(Notice::new(
            path,
            ("front matter 没有结束标记（---）", "the front matter has no end (---)"),
        ));
    };
    let matter = &rest[..end];
    if matter.len() > MAX_MATTER_BYTES || is_deep(matter) {
        return Err(Notice::new(
            path,
            ("front matter 过长或嵌套过深", "the front matter is too long or too deeply nested"),
        ));
    }
    let parsed = Yaml::load_from_str(matter)
        .map_err(|error| Notice::from_error(path, format!("front matter: {error}")))?;
    let matter = parsed.first();
    let field = |key: &str| {
        let text = matter.and_then(|matter| matter.as_mapping_get(key)?.as_str()).unwrap_or_default();
        tanmi_base::text::one_line(text.trim())
    };
    let about = tanmi_base::text::cut(&field("description"), MAX_ABOUT);
    if about.is_empty() {
        return Err(Notice::new(
            path,
            ("front matter 中没有 description", "the front matter has no description"),
        ));
    }
    let own = field("name");
    let name = if own.is_empty() { name.to_owned() } else { own };
    let when = Some(field("when")).filter(|when| !when.is_empty()).unwrap_or_else(|| field("when_to_use"));
    Ok(ContextItem { name, about, when, group, path: path.to_owned() })
}

/// Returns whether the YAML could be nested too deeply for the parser, which calls itself for every level. Levels that
/// are not opened in a row need indentation, so the size of the text limits them; the parser limits brackets itself.
fn is_deep(yaml: &str) -> bool {
    let mut row = 0;
    yaml.split_whitespace().any(|word| {
        row = if matches!(word, "-" | "?" | ":") { row + 1 } else { 0 };
        row > MAX_LEVELS_IN_ROW
    })
}
