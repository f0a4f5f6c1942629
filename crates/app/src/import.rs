//! Imports bindings from `sessions.json`, the file of an older layout in the project store. Each content is imported
//! once. Bindings in the home store and later unbinds take precedence. A cloned project can contain such a file, so the
//! caller checks that the project is trusted, and the number of bindings is limited.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tanmi_base::lock::Lock;
use tanmi_base::paths::project_store;
use tanmi_base::{Millis, fs, hash, text};
use tanmi_session::{Binding, Bindings, States};
use tanmi_workspace::model::{NodeId, WorkspaceId};

/// The number of bindings that are imported from one file, the newest first.
const MAX_BINDINGS: usize = 1_000;

#[derive(Deserialize)]
struct SessionsFile {
    #[serde(default)]
    bindings: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldBinding {
    workspace_id: String,
    focused_node_id: Option<String>,
    bound_at: Option<Millis>,
}

/// Imports the bindings of a project and returns the number of those that are over the limit. A file that
/// cannot be read is ignored.
pub fn sessions(home: &Path, bindings: &dyn Bindings, project: &Path, now: Millis) -> usize {
    let path = project_store(project).join("sessions.json");
    let Some((bytes, _)) = fs::read_regular(&path, 16 << 20).ok().flatten() else { return 0 };
    let Ok(file) = serde_json::from_slice::<SessionsFile>(text::without_bom(&bytes)) else { return 0 };
    if !mark_imported(home, &path, &bytes) {
        return 0;
    }
    // A malformed binding does not affect the others.
    let parsed = |(session, old)| Some((session, serde_json::from_value::<OldBinding>(old).ok()?));
    let mut found: Vec<(String, OldBinding)> = file.bindings.into_iter().filter_map(parsed).collect();
    found.sort_by_key(|(_, old)| std::cmp::Reverse(old.bound_at));
    let left_out = found.len().saturating_sub(MAX_BINDINGS);
    let states = States::new(home);
    let new = found.into_iter().take(MAX_BINDINGS).filter_map(|(session, old)| {
        let is_valid = WorkspaceId::parse(&old.workspace_id).is_ok();
        if !is_valid || states.read(&session).was_unbound_by_user {
            return None;
        }
        let binding = Binding {
            workspace_id: old.workspace_id,
            focused_node_id: old.focused_node_id.filter(|id| NodeId::parse(id).is_ok()),
            // At least about now: an older binding would be stale at once.
            bound_at: old.bound_at.unwrap_or(now).max(now - 1),
            project: project.to_owned(),
            project_id: None,
            other: Default::default(),
        };
        Some((session, binding))
    });
    let _ = bindings.bind_unbound(new.collect());
    left_out
}

/// Marks this content as imported. Returns false if it was imported before or the mark cannot be written.
fn mark_imported(home: &Path, path: &Path, bytes: &[u8]) -> bool {
    let (key, digest) = (path.display().to_string(), hash::md5_hex(bytes));
    let file = home.join("imports.json");
    let read = || -> BTreeMap<String, String> {
        let bytes = fs::read_optional(&file).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    };
    if read().get(&key) == Some(&digest) || fs::create_private_dir(home).is_err() {
        return false;
    }
    let Ok(_lock) = Lock::exclusive(&home.join("imports.lock")) else { return false };
    let mut known = read();
    if known.insert(key, digest.clone()) == Some(digest) {
        return false;
    }
    let text = serde_json::to_vec_pretty(&known).unwrap_or_default();
    fs::write_private(&file, &text).is_ok()
}
