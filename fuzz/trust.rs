//! The target `trust`: any content of the files in the home store that name projects.

use std::path::Path;

use serde_json::{Map, Value};
use tanmi_app::registry::Registry;
use tanmi_app::trust::{ProjectStatus, Trust};
use tanmi_base::fs;
use tanmi_base::paths::project_store;
use tanmi_workspace::model::WorkspaceId;

use super::{NOW, replace};

/// The id in the folder of the project.
const ID: &str = "fuzz";

/// Checks `trust.json` and `registry.json`, separated by a zero byte. The word `@project` in them stands for
/// the project.
pub fn trust(data: &[u8]) {
    let dir = std::env::temp_dir().join(format!("tanmi-fuzz-trust-{}", std::process::id()));
    fs::remove_tree(&dir).expect("remove the folder of the last input");
    let (home, project) = (dir.join("home"), dir.join("project"));
    std::fs::create_dir_all(&home).expect("create the home store");
    let id_file = project_store(&project).join(".local/project-id");
    fs::write_private(&id_file, ID.as_bytes()).expect("write the id");
    let key = project.canonicalize().expect("the project exists").display().to_string();
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut next = || replace(parts.next().unwrap_or_default(), b"@project", key.as_bytes());
    let (trust_json, registry_json) = (next(), next());
    check_trust(&home, &project, &key, &trust_json);
    check_registry(&home, &project, &registry_json);
    fs::remove_tree(&dir).expect("remove the folder");
}

/// Trusts the project and removes the trust. What cannot be read trusts nothing and stays, and so does what belongs to
/// other projects or to a newer version.
fn check_trust(home: &Path, project: &Path, key: &str, bytes: &[u8]) {
    let (trust, file) = (Trust::new(home), home.join("trust.json"));
    fs::write_private(&file, bytes).expect("write trust.json");
    let read = || std::fs::read(&file).expect("trust.json exists");
    let status = trust.of_project(project).status();
    let is_object = object(bytes).is_some();
    if trust.add_project(project, "trusted", &[], NOW).is_err() {
        assert_eq!(status, ProjectStatus::Unknown, "a file that cannot be edited trusts nothing");
        assert!(trust.remove_project(project).is_err());
        assert_eq!(read(), bytes, "a file that cannot be read stays");
        return;
    }
    assert!(is_object, "a file without an object was overwritten");
    assert_eq!(trust.of_project(project).status(), ProjectStatus::Trusted);
    let (before, added) = (object(bytes).unwrap_or_default(), object(&read()).expect("an object"));
    assert_same(&others(&added, key), &others(&before, key));
    let own = |file: &Map<String, Value>| file.get("projects")?.get(key)?.as_object().cloned();
    if let Some(entry) = own(&before).filter(|_| status != ProjectStatus::Replaced) {
        assert_same(&unknown(&own(&added).expect("the entry")), &unknown(&entry));
    }
    trust.add_project(project, "trusted", &[], NOW).expect("the project can be trusted again");
    assert_same(&Value::from(object(&read()).expect("an object")), &Value::from(added));
    assert!(trust.remove_project(project).expect("the trust can be removed"));
    assert_eq!(trust.of_project(project).status(), ProjectStatus::Unknown);
    assert_same(&others(&object(&read()).expect("an object"), key), &others(&before, key));
}

/// Returns the content of `trust.json` without the version and what belongs to the project.
fn others(file: &Map<String, Value>, project: &str) -> Value {
    let mut file = file.clone();
    file.remove("version");
    for kind in ["projects", "rules"] {
        // An older program writes no empty maps.
        let mut entries =
            file.remove(kind).and_then(|entries| entries.as_object().cloned()).unwrap_or_default();
        entries.retain(|path, _| !Path::new(path).starts_with(project));
        for entry in entries.values_mut().filter_map(Value::as_object_mut) {
            // Optional values.
            entry.retain(|name, value| !(value.is_null() && ["id", "memory"].contains(&name.as_str())));
        }
        file.insert(kind.to_owned(), Value::from(entries));
    }
    Value::from(file)
}

fn unknown(entry: &Map<String, Value>) -> Value {
    let is_known = |name: &str| ["at", "how", "id", "memory"].contains(&name);
    Value::from(entry.clone().into_iter().filter(|(name, _)| !is_known(name)).collect::<Map<_, _>>())
}

/// Records a workspace. A file that is a registry keeps what belongs to a newer version.
fn check_registry(home: &Path, project: &Path, bytes: &[u8]) {
    let (registry, file) = (Registry::new(home), home.join("registry.json"));
    let id = WorkspaceId::parse("ws-fuzz").expect("valid id");
    for bytes in [
        bytes.to_vec(),
        object(bytes).map(|file| Value::from(file).to_string().into_bytes()).unwrap_or_default(),
    ] {
        fs::write_private(&file, &bytes).expect("write registry.json");
        registry.projects().expect("the projects are read");
        registry.entries().expect("the entries are read");
    }
    let before = object(bytes).filter(is_registry);
    registry.record(&id, project).expect("a workspace is recorded");
    let entries = registry.entries().expect("the entries are read");
    assert!(entries.iter().any(|(found, entry)| *found == id && entry.project == project));
    assert_eq!(registry.find(&id).expect("the project is looked up"), None, "it has no such workspace");
    let Some(before) = before else { return };
    let after = object(&std::fs::read(&file).expect("registry.json exists")).expect("an object");
    assert_same(&newer_parts(&after), &newer_parts(&before));
}

fn is_registry(file: &Map<String, Value>) -> bool {
    let is_entry = |entry: &Value| entry["project"].is_string() && entry["name"].is_string();
    let is_version = |version: &Value| version.as_u64().is_some_and(|version| u32::try_from(version).is_ok());
    file.get("workspaces").and_then(Value::as_object).is_some_and(|entries| entries.values().all(is_entry))
        && file.get("version").is_none_or(is_version)
        && file.get("projects").is_none_or(|projects| {
            projects.as_array().is_some_and(|projects| projects.iter().all(Value::is_string))
        })
}

/// Returns what this version does not know: in the file, and in each entry.
fn newer_parts(file: &Map<String, Value>) -> Value {
    let mut file = file.clone();
    file.remove("version");
    file.remove("projects");
    if let Some(entries) = file.get_mut("workspaces").and_then(Value::as_object_mut) {
        for entry in entries.values_mut().filter_map(Value::as_object_mut) {
            entry.remove("project");
            entry.remove("name");
        }
        entries.retain(|_, entry| entry.as_object().is_some_and(|entry| !entry.is_empty()));
    }
    Value::from(file)
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(bytes).ok()
}

/// Compares two values. The last digit of a number may differ, because it was read and written.
fn assert_same(found: &Value, expected: &Value) {
    assert!(is_same(found, expected), "{found}\n{expected}");
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= a.abs() * 1e-12,
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}
