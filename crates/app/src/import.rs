//! `sessions.json`, where an older layout kept a project's bindings: taken over once per content. What the home store
//! knows already, and what was unbound since, wins.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tanmi_base::lock::Lock;
use tanmi_base::paths::STORE_DIR;
use tanmi_base::{Millis, fs, hash};
use tanmi_session::{Binding, Bindings, States};
use tanmi_workspace::model::{NodeId, WorkspaceId};

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

/// How many bindings were taken over. A file that cannot be read is nobody's.
pub fn sessions(home: &Path, project: &Path, now: Millis) -> usize {
    let path = project.join(STORE_DIR).join("sessions.json");
    let Some(bytes) = fs::read_limited(&path, 16 << 20).ok().flatten() else { return 0 };
    let Ok(file) = serde_json::from_slice::<SessionsFile>(&bytes) else { return 0 };
    if !is_news(home, &path, &bytes) {
        return 0;
    }
    let (bindings, states) = (Bindings::new(home), States::new(home));
    let mut taken = 0;
    for (session, old) in file.bindings {
        // What is wrong with one is not wrong with the others.
        let Ok(old) = serde_json::from_value::<OldBinding>(old) else { continue };
        let is_known = !matches!(bindings.find(&session), Ok(None)) || states.read(&session).unbound;
        let is_sound = WorkspaceId::parse(&old.workspace_id).is_ok();
        if is_known || !is_sound {
            continue;
        }
        let binding = Binding {
            workspace_id: old.workspace_id,
            focused_node_id: old.focused_node_id.filter(|id| NodeId::parse(id).is_ok()),
            // Counted from now: it would be stale at once otherwise.
            bound_at: old.bound_at.unwrap_or(now).max(now - 1),
            project: project.to_owned(),
            other: Default::default(),
        };
        taken += usize::from(bindings.bind(&session, &binding).is_ok());
    }
    taken
}

/// Whether this content was never taken over. From now on it was.
fn is_news(home: &Path, path: &Path, bytes: &[u8]) -> bool {
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
