use serde_json::json;

use super::*;

struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(machine.project()).unwrap();
        machine
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("p")
    }

    fn trust(&self) -> Trust {
        Trust::new(&self.dir.path().join("home"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        fs::write_private(&path, text.as_bytes()).unwrap();
        path
    }

    fn read(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.trust().path()).unwrap()).unwrap()
    }
}

#[test]
fn unknown_keys_survive_every_edit() {
    let machine = Machine::new();
    let (trust, project) = (machine.trust(), machine.project());
    let path = key(&project);
    let file = json!({
        "version": 7, "future": {"a": 1},
        "projects": {&path: {"at": 1, "how": "trusted", "note": "x"}, "/other": {"at": 1, "how": "trusted", "note": "y"}},
        "rules": {"/other/.tanmi/rules.json": {"at": 1, "sha256": "00", "by": "z"}},
    });
    fs::write_private(&trust.path(), file.to_string().as_bytes()).unwrap();
    let check = |step: &str| {
        let read = machine.read();
        assert_eq!((&read["version"], &read["future"]), (&json!(7), &json!({"a": 1})), "{step}");
        assert_eq!(read["projects"]["/other"]["note"], "y", "{step}");
        assert_eq!(read["rules"]["/other/.tanmi/rules.json"]["by"], "z", "{step}");
    };
    trust.upgrade(&project, 2);
    check("upgrade");
    assert!(machine.read()["projects"][&path]["id"].is_string());
    assert_eq!(machine.read()["projects"][&path]["note"], "x");
    trust.add_project(&project, "trusted", &[], 3).unwrap();
    check("trust");
    assert_eq!(machine.read()["projects"][&path]["note"], "x");
    trust.add_files(&project, &[], 4).unwrap();
    check("files");
    trust.remove_project(&project).unwrap();
    check("revoke");
}

/// The version before ids and other files required exactly these keys.
#[test]
fn entries_have_the_keys_of_the_older_version() {
    let machine = Machine::new();
    let path = machine.write(".tanmi/rules.json", "[]").canonicalize().unwrap();
    let file = ProjectFile { path: path.clone(), bytes: b"[]".to_vec() };
    machine.trust().add_project(&machine.project(), "trusted", &[file], 5).unwrap();
    let read = machine.read();
    let project = &read["projects"][&key(&machine.project())];
    assert_eq!((&project["at"], &project["how"]), (&json!(5), &json!("trusted")));
    let rules = &read["rules"][path.display().to_string()];
    assert_eq!((&rules["at"], &rules["sha256"]), (&json!(5), &json!(hash::sha256_hex(b"[]"))));
}

#[test]
fn folder_with_other_id_is_not_trusted() {
    let machine = Machine::new();
    let (trust, project) = (machine.trust(), machine.project());
    trust.add_project(&project, "trusted", &[], 1).unwrap();
    assert_eq!(trust.of_project(&project).status(), ProjectStatus::Trusted);
    let copy = machine.dir.path().join("copy");
    let id = std::fs::read(project.join(".tanmi-workspace/.local/project-id")).unwrap();
    fs::write_private(&copy.join(".tanmi-workspace/.local/project-id"), &id).unwrap();
    assert_eq!(trust.of_project(&copy).status(), ProjectStatus::Unknown, "a copy of the id at another path");
    fs::remove_tree(&project).unwrap();
    std::fs::create_dir(&project).unwrap();
    assert_eq!(trust.of_project(&project).status(), ProjectStatus::Replaced);
    identity::renew(&project).unwrap();
    assert_eq!(trust.of_project(&project).status(), ProjectStatus::Replaced);
    trust.add_project(&project, "trusted", &[], 2).unwrap();
    assert_eq!(trust.of_project(&project).status(), ProjectStatus::Trusted);
}

#[test]
fn replaced_folder_loses_consent_to_files() {
    let machine = Machine::new();
    let (trust, project) = (machine.trust(), machine.project());
    let path = machine.write(".tanmi/rules.json", "[]").canonicalize().unwrap();
    let file = ProjectFile { path, bytes: b"[]".to_vec() };
    trust.add_files(&project, std::slice::from_ref(&file), 1).unwrap();
    assert_eq!(trust.of_project(&project).consent_to_rules(&file), Consent::Given);
    assert_eq!(trust.of_project(&project).consent_to(&file), Consent::Missing, "the project is not trusted");
    trust.add_project(&project, "trusted", &[], 2).unwrap();
    assert_eq!(trust.of_project(&project).consent_to(&file), Consent::Given);
    let changed = ProjectFile { bytes: b"[ ]".to_vec(), ..file.clone() };
    assert_eq!(trust.of_project(&project).consent_to(&changed), Consent::Outdated);
    fs::remove_tree(&project_store(&project)).unwrap();
    assert_eq!(trust.of_project(&project).consent_to_rules(&file), Consent::Missing);
    trust.add_project(&project, "trusted", &[], 3).unwrap();
    assert_eq!(trust.of_project(&project).consent_to(&file), Consent::Missing, "consent to the other folder");
}

#[test]
fn folder_with_any_content_is_not_clean() {
    for content in [".tanmi-workspace/x", ".tanmi/x", ".cursor/skills/memory-data/MEMORY.md"] {
        let machine = Machine::new();
        assert!(is_clean(&machine.project()));
        machine.write(content, "");
        assert!(!is_clean(&machine.project()), "{content}");
    }
    let machine = Machine::new();
    std::fs::create_dir(machine.project().join(".tanmi-workspace")).unwrap();
    assert!(is_clean(&machine.project()), "an empty store");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("missing", machine.project().join(".tanmi")).unwrap();
        assert!(!is_clean(&machine.project()), "a dangling link");
    }
}
