//! Bindings of sessions to workspaces: the [`Bindings`] trait and its implementation in the home store.
//!
//! `session-bindings.json` has one entry per bound session. It changes only on bind, unbind, focus and prune.
//! Every hook reads it, so reading one entry does not parse the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, fs};

use crate::{Error, Result, check_session};

/// The binding of a session to a workspace. Unknown fields are preserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    pub workspace_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focused_node_id: Option<String>,
    pub bound_at: Millis,
    /// The project of the workspace, because the working directory of a session may change.
    pub project: PathBuf,
    /// The id of the project folder. Another folder at the same path is another project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The bindings of all sessions.
pub trait Bindings: Send + Sync {
    /// Returns the binding of a session, if any.
    fn find(&self, session: &str) -> Result<Option<Binding>>;
    /// Returns every readable binding with its session.
    fn all(&self) -> Result<Vec<(String, Binding)>>;
    /// Binds a session, replacing its binding if it has one. Returns the previous binding.
    fn bind(&self, session: &str, binding: &Binding) -> Result<Option<Binding>>;
    /// Binds those of the sessions that have no binding yet. A store that can do so writes once.
    fn bind_unbound(&self, new: Vec<(String, Binding)>) -> Result<()> {
        for (session, binding) in new {
            if self.find(&session)?.is_none() {
                self.bind(&session, &binding)?;
            }
        }
        Ok(())
    }
    /// Unbinds a session. Returns its binding, if it had one.
    fn unbind(&self, session: &str) -> Result<Option<Binding>>;
    /// Sets the focus of a session if it is still bound to that workspace. Returns whether it was.
    fn focus(&self, session: &str, workspace: &str, node: Option<&str>) -> Result<bool>;
    /// Removes the stale bindings. Returns the ids of their sessions.
    fn prune(&self, is_stale: &dyn Fn(&str, &Binding) -> bool) -> Result<Vec<String>>;
    /// Returns whether the stored bindings cannot be read.
    fn is_damaged(&self) -> Result<bool>;
    /// Sets damaged data aside, so that sessions can be bound again. Returns whether there was any.
    fn repair(&self) -> Result<bool>;
    /// Returns the files that hold damaged data, which was set aside.
    fn set_aside(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Returns those of these files that were created since the last call.
    fn take_set_aside(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Returns a number that changes when a binding changes.
    fn revision(&self) -> u64;
}

/// The bindings in the home store.
pub struct FileBindings {
    home: PathBuf,
    set_aside: Mutex<Vec<PathBuf>>,
}

type Entries = BTreeMap<String, Value>;

impl FileBindings {
    pub fn new(home: &Path) -> FileBindings {
        FileBindings { home: home.to_owned(), set_aside: Mutex::default() }
    }

    fn path(&self) -> PathBuf {
        self.home.join("session-bindings.json")
    }

    /// Like `is_damaged`, but keeps nothing in memory. Runs at every start.
    fn looks_damaged(&self) -> Result<bool> {
        let path = self.path();
        let Some(bytes) = fs::read_optional(&path).map_err(Error::io(&path))? else { return Ok(false) };
        let is_map = |text: &str| {
            text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        };
        Ok(!std::str::from_utf8(&bytes).is_ok_and(is_map))
    }

    fn load(&self) -> Result<(Entries, bool)> {
        let path = self.path();
        match fs::read_optional(&path).map_err(Error::io(&path))? {
            None => Ok((Entries::new(), false)),
            Some(bytes) => match serde_json::from_slice(&bytes) {
                Ok(entries) => Ok((entries, false)),
                Err(_) => Ok((Entries::new(), true)),
            },
        }
    }

    fn edit<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> Result<T> {
        fs::create_private_dir(&self.home).map_err(Error::io(&self.home))?;
        let _lock = Lock::exclusive(&self.home.join("session-bindings.lock"))?;
        let (mut entries, is_damaged) = self.load()?;
        let path = self.path();
        if is_damaged {
            let kept = fs::set_aside(&path).map_err(Error::io(&path))?;
            self.set_aside.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        }
        let before = entries.clone();
        let outcome = change(&mut entries);
        if entries != before || is_damaged {
            let mut text = serde_json::to_string_pretty(&entries).unwrap_or_default();
            text.push('\n');
            fs::write_private(&path, text.as_bytes()).map_err(Error::io(&path))?;
        }
        Ok(outcome)
    }
}

impl Bindings for FileBindings {
    /// An unreadable file means unbound; the next write moves that file aside.
    fn find(&self, session: &str) -> Result<Option<Binding>> {
        let path = self.path();
        let Some(bytes) = fs::read_optional(&path).map_err(Error::io(&path))? else { return Ok(None) };
        Ok(find_entry(&bytes, session))
    }

    fn all(&self) -> Result<Vec<(String, Binding)>> {
        let (entries, _) = self.load()?;
        let readable =
            entries.into_iter().filter_map(|(id, entry)| Some((id, serde_json::from_value(entry).ok()?)));
        Ok(readable.collect())
    }

    fn is_damaged(&self) -> Result<bool> {
        Ok(self.load()?.1)
    }

    fn repair(&self) -> Result<bool> {
        let is_damaged = self.looks_damaged()?;
        if is_damaged {
            self.edit(|_| ())?;
        }
        Ok(is_damaged)
    }

    fn bind(&self, session: &str, binding: &Binding) -> Result<Option<Binding>> {
        check_session(session)?;
        let entry = serde_json::to_value(binding).unwrap_or_default();
        let previous = self.edit(|entries| entries.insert(session.to_owned(), entry.clone()))?;
        Ok(previous.and_then(|entry| serde_json::from_value(entry).ok()))
    }

    fn bind_unbound(&self, new: Vec<(String, Binding)>) -> Result<()> {
        let is_valid = |(session, _): &(String, Binding)| check_session(session).is_ok();
        self.edit(|entries| {
            for (session, binding) in new.into_iter().filter(is_valid) {
                entries.entry(session).or_insert_with(|| serde_json::to_value(binding).unwrap_or_default());
            }
        })
    }

    fn unbind(&self, session: &str) -> Result<Option<Binding>> {
        let previous = self.edit(|entries| entries.remove(session))?;
        Ok(previous.and_then(|entry| serde_json::from_value(entry).ok()))
    }

    fn focus(&self, session: &str, workspace: &str, node: Option<&str>) -> Result<bool> {
        self.edit(|entries| {
            let Some(Value::Object(entry)) = entries.get_mut(session) else { return false };
            if entry.get("workspaceId").and_then(Value::as_str) != Some(workspace) {
                return false;
            }
            match node {
                Some(node) => entry.insert(String::from("focusedNodeId"), Value::from(node)),
                None => entry.remove("focusedNodeId"),
            };
            true
        })
    }

    fn prune(&self, is_stale: &dyn Fn(&str, &Binding) -> bool) -> Result<Vec<String>> {
        let find_stale = |entries: &Entries| -> Vec<String> {
            let is_stale_entry = |(id, entry): &(&String, &Value)| {
                serde_json::from_value((*entry).clone()).is_ok_and(|binding| is_stale(id, &binding))
            };
            entries.iter().filter(is_stale_entry).map(|(id, _)| id.clone()).collect()
        };
        if find_stale(&self.load()?.0).is_empty() {
            return Ok(Vec::new());
        }
        // Checked again under the lock: a session may have been bound again meanwhile.
        self.edit(|entries| {
            let stale = find_stale(entries);
            entries.retain(|id, _| !stale.contains(id));
            stale
        })
    }

    fn set_aside(&self) -> Vec<PathBuf> {
        fs::find_set_aside(&self.path())
    }

    fn take_set_aside(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.set_aside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn revision(&self) -> u64 {
        fs::revision([self.path()])
    }
}

/// Finds one entry without parsing the others: searches for its key as text and parses the value after it.
fn find_entry(bytes: &[u8], session: &str) -> Option<Binding> {
    let text = std::str::from_utf8(bytes).ok()?;
    let key = serde_json::to_string(session).ok()?;
    for (at, _) in text.match_indices(&key) {
        let Some(value) = text[at + key.len()..].trim_start().strip_prefix(':') else { continue };
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<Binding>();
        if let Some(Ok(binding)) = values.next() {
            return Some(binding);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(workspace: &str) -> Binding {
        Binding {
            workspace_id: workspace.into(),
            focused_node_id: None,
            bound_at: 1,
            project: "/p".into(),
            project_id: None,
            other: Map::new(),
        }
    }

    #[test]
    fn bind_focus_and_unbind_change_only_own_entry() {
        let home = tempfile::tempdir().unwrap();
        let bindings = FileBindings::new(home.path());
        assert_eq!(bindings.find("a").unwrap(), None);
        assert_eq!(bindings.bind("a", &binding("ws-1")).unwrap(), None);
        assert_eq!(bindings.bind("会话 \"b\"", &binding("ws-2")).unwrap(), None);
        assert!(bindings.focus("a", "ws-1", Some("node-x")).unwrap());
        assert!(
            !bindings.focus("a", "ws-2", Some("node-y")).unwrap(),
            "session is bound to another workspace"
        );
        assert_eq!(bindings.find("a").unwrap().unwrap().focused_node_id.as_deref(), Some("node-x"));
        assert_eq!(bindings.find("会话 \"b\"").unwrap(), Some(binding("ws-2")));
        assert_eq!(bindings.bind("a", &binding("ws-3")).unwrap().unwrap().workspace_id, "ws-1");
        assert_eq!(
            bindings.find("a").unwrap().unwrap().focused_node_id,
            None,
            "binding again clears the focus"
        );
        assert!(bindings.unbind("a").unwrap().is_some());
        assert!(bindings.unbind("a").unwrap().is_none());
        assert_eq!(bindings.all().unwrap().len(), 1);
        assert!(bindings.bind(" ", &binding("ws-1")).is_err());
    }

    #[test]
    fn bind_unbound_keeps_existing_bindings() {
        let dir = tempfile::tempdir().unwrap();
        let bindings = FileBindings::new(dir.path());
        bindings.bind("a", &binding("ws-1")).unwrap();
        let new = ["a", "b", ""].map(|session| (session.to_owned(), binding("ws-2")));
        bindings.bind_unbound(new.into()).unwrap();
        let all: Vec<(String, String)> = bindings
            .all()
            .unwrap()
            .into_iter()
            .map(|(session, binding)| (session, binding.workspace_id))
            .collect();
        assert_eq!(all, [("a".into(), "ws-1".into()), ("b".into(), String::from("ws-2"))]);
    }

    #[test]
    fn edit_preserves_unknown_fields() {
        let home = tempfile::tempdir().unwrap();
        let text = r#"{"a":{"workspaceId":"ws-1","boundAt":1,"project":"/p","mine":{"x":1}},"odd":7}"#;
        fs::write_private(&home.path().join("session-bindings.json"), text.as_bytes()).unwrap();
        let bindings = FileBindings::new(home.path());
        bindings.focus("a", "ws-1", Some("node-x")).unwrap();
        let text = std::fs::read_to_string(home.path().join("session-bindings.json")).unwrap();
        assert!(text.contains("\"mine\"") && text.contains("\"odd\": 7"), "{text}");
    }

    #[test]
    fn damaged_file_means_unbound_and_is_moved_aside_by_next_write() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("session-bindings.json");
        let bindings = FileBindings::new(home.path());
        for (text, is_damaged) in [
            (&b"{}"[..], false),
            (b"[]", true),
            (b"", true),
            (b"{\"a\": \"\xff\"}", true),
            (b"{\"a\": {", true),
        ] {
            fs::write_private(&path, text).unwrap();
            assert_eq!(bindings.is_damaged().unwrap(), is_damaged, "{text:?}");
            assert_eq!(bindings.looks_damaged().unwrap(), is_damaged, "{text:?}");
        }
        assert_eq!(bindings.find("a").unwrap(), None);
        assert_eq!(find_entry(br#"{"x":{"mine":"a"},"a":7,"b":{"a":{}}}"#, "a"), None);
        assert!(bindings.is_damaged().unwrap());
        bindings.bind("b", &binding("ws-1")).unwrap();
        assert!(!bindings.is_damaged().unwrap());
        let names: Vec<String> = std::fs::read_dir(home.path())
            .unwrap()
            .flatten()
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().any(|name| name.starts_with("session-bindings.damaged-")), "{names:?}");
    }

    #[test]
    fn bind_from_many_threads_loses_no_entry() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let home = home.path();
                scope.spawn(move || {
                    let bindings = FileBindings::new(home);
                    for n in 0..10 {
                        bindings.bind(&format!("s{thread}-{n}"), &binding("ws-1")).unwrap();
                    }
                    bindings.unbind(&format!("s{thread}-0")).unwrap();
                });
            }
        });
        assert_eq!(FileBindings::new(home.path()).all().unwrap().len(), 72);
    }

    #[test]
    fn prune_removes_only_stale_bindings() {
        let home = tempfile::tempdir().unwrap();
        let bindings = FileBindings::new(home.path());
        bindings.bind("old", &binding("ws-1")).unwrap();
        bindings.bind("new", &Binding { bound_at: 100, ..binding("ws-1") }).unwrap();
        assert_eq!(bindings.prune(&|_, binding| binding.bound_at < 50).unwrap(), ["old"]);
        assert_eq!(bindings.all().unwrap().len(), 1);
    }
}
