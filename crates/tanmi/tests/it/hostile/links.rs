//! Links in a store that point elsewhere, as a clone or another user can make them: no file outside of the store is
//! created, changed, locked or copied.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::crc32;
use crate::agent::Agent;
use crate::env::TestEnv;

/// A secret outside of the project.
const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n";

/// Commands that open every kind of file of a store.
fn use_store(env: &TestEnv, workspace: &str) {
    for args in [
        &["workspace", "list"][..],
        &["tree", workspace],
        &["node", "create", "-w", workspace, "--type", "execution", "--title", "x"],
        &["log", "-w", workspace, "line"],
        &["workspace", "check", workspace, "--fix"],
        &["workspace", "init", "--name", "n", "--goal", "g"],
        &["memory", "save-fact", "The port is 8080"],
        &["memory", "save-summary", "--topic", "t", "--summary", "s"],
        &["memory", "search", "port"],
        &["memory", "sync"],
        &["doctor", "--fix"],
        &["workspace", "delete", workspace, "--yes"],
    ] {
        let mut bounded = env.command_in("timeout", &env.project);
        let status = bounded.arg("60").arg(env!("CARGO_BIN_EXE_tanmi")).args(args).output().unwrap().status;
        assert_ne!(status.code(), Some(124), "{args:?} does not end");
    }
    Agent::claude(env, "s").start("startup");
}

/// Returns a project with a workspace, memory and a folder outside of the project that contains a key.
fn store() -> (TestEnv, String, PathBuf) {
    let env = TestEnv::new();
    let workspace = env.init();
    env.node("root", "execution", "a");
    env.ok(&["memory", "save-fact", "The host is example"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &workspace]);
    let outside = env.root().join("outside");
    env.make(&outside.join("id_rsa"), KEY);
    (env, workspace, outside)
}

fn replace_by_link(path: &Path, target: &Path) {
    tanmi_base::fs::remove_tree(path).unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// Returns every path below a folder, with the content of files.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(content(&path)),
            kind if kind.is_file() => found.push((path.clone(), std::fs::read(&path).unwrap())),
            _ => found.push((path, Vec::new())),
        }
    }
    found.sort();
    found
}

/// Asserts that no file below the folder contains the key.
fn assert_no_copy(folder: &Path, what: &str) {
    for (path, bytes) in content(folder) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("OPENSSH"), "{what}: copied to {}", path.display());
    }
}

#[test]
fn journal_link_is_refused_and_its_target_not_copied() {
    let (env, workspace, outside) = store();
    let journal = env.workspace_dir(&workspace).join(".local/journal");
    replace_by_link(&journal, &outside.join("id_rsa"));
    for args in [&["tree"][..], &["node", "create", "--type", "execution", "--title", "x"]] {
        let error = env.error(args);
        assert_eq!(error["code"], "FILE_DAMAGED");
        assert!(error["message"].as_str().unwrap().contains("symbolic link"), "{error}");
    }
    use_store(&env, &workspace);
    assert_no_copy(&env.project, "link");
    assert_eq!(std::fs::read_to_string(outside.join("id_rsa")).unwrap(), KEY);
}

#[test]
fn journal_with_second_name_is_refused_and_not_copied() {
    let (env, workspace, outside) = store();
    let local = env.workspace_dir(&workspace).join(".local");
    std::fs::remove_file(local.join("journal")).unwrap();
    std::fs::hard_link(outside.join("id_rsa"), local.join("journal")).unwrap();
    let error = env.error(&["tree"]);
    assert!(error["message"].as_str().unwrap().contains("more than one name"), "{error}");
    use_store(&env, &workspace);
    assert!(!local.join("kept").exists());
    assert_eq!(std::fs::read_to_string(outside.join("id_rsa")).unwrap(), KEY);
}

/// Every file and folder of the store in turn is a link to an existing file, to a missing one, and to a folder.
#[test]
fn link_in_place_of_any_store_file_changes_nothing_outside() {
    let names = [
        "WS/.local",
        "WS/.local/lock",
        "WS/.local/turnstile",
        "WS/.local/journal",
        "WS/.local/index.sqlite",
        "WS/.local/index.sqlite-journal",
        "WS/.local/index.sqlite-wal",
        "WS/.local/index.sqlite-shm",
        "WS/.local/tmp",
        "WS/.local/kept",
        "WS/nodes",
        "WS/nodes/root",
        "WS",
        ".local",
        ".local/lock",
        ".trash",
        "memory",
        "memory/.lock",
        "memory/daily",
        "memory/daily/2025-12-11.jsonl",
        "memory/sessions.jsonl",
        "memory/index.sqlite",
        "memory/index.sqlite-wal",
        "memory/index.sqlite-shm",
    ];
    let (env, workspace, outside) = store();
    let original = env.root().join("original");
    std::fs::rename(&env.project, &original).unwrap();
    let victims = ["id_rsa", "missing", "folder"];
    std::fs::create_dir(outside.join("folder")).unwrap();
    let before = content(&outside);
    for name in names {
        for victim in victims {
            tanmi_base::fs::remove_tree(&env.project).unwrap();
            let copied = std::process::Command::new("cp").arg("-a").arg(&original).arg(&env.project).status();
            assert!(copied.unwrap().success());
            let path = env.project.join(".tanmi-workspace").join(name.replace("WS", &workspace));
            replace_by_link(&path, &outside.join(victim));
            use_store(&env, &workspace);
            assert_eq!(content(&outside), before, "{name} -> {victim}");
            assert_no_copy(&env.project, name);
        }
    }
}

#[test]
fn legacy_memory_folder_that_is_a_link_is_refused() {
    let env = TestEnv::new();
    env.init();
    tanmi_base::fs::remove_tree(&env.project.join(".tanmi-workspace/memory")).unwrap();
    let outside = env.root().join("outside");
    std::fs::create_dir_all(outside.join("skills/memory-data")).unwrap();
    for (link, target) in [
        (".cursor", outside.clone()),
        (".cursor/skills", outside.join("skills")),
        (".cursor/skills/memory-data", outside.join("skills/memory-data")),
    ] {
        tanmi_base::fs::remove_tree(&env.project.join(".cursor")).unwrap();
        replace_by_link(&env.project.join(link), &target);
        let error = env.error(&["memory", "save-fact", "x is y"]);
        assert!(error["message"].as_str().unwrap().contains("symbolic link"), "{link}: {error}");
        assert_eq!(content(&outside), [], "{link}");
    }
}

#[test]
fn foreign_database_behind_index_link_is_unchanged_and_index_rebuilt() {
    let (env, workspace, outside) = store();
    let database = outside.join("app.sqlite");
    let local = env.workspace_dir(&workspace).join(".local");
    std::fs::rename(local.join("index.sqlite"), &database).unwrap();
    let before = std::fs::read(&database).unwrap();
    for index in [local.join("index.sqlite"), env.project.join(".tanmi-workspace/memory/index.sqlite")] {
        for is_hard in [false, true] {
            tanmi_base::fs::remove_tree(&index).unwrap();
            match is_hard {
                true => std::fs::hard_link(&database, &index).unwrap(),
                false => symlink(&database, &index).unwrap(),
            }
            env.node("root", "execution", "b");
            env.ok(&["memory", "save-fact", &format!("The index is {} {is_hard}", index.display())]);
            assert_eq!(std::fs::read(&database).unwrap(), before, "{}", index.display());
        }
    }
    assert!(env.ok(&["memory", "search", "host"]).contains("example"));
}

#[test]
fn forged_journal_cannot_write_through_linked_folders() {
    let changes = [
        r#"{"write":{"path":"nodes/node-aaaa1111-abcdef/Node.md","before":null,"text":"evil"}}"#,
        r#"{"move":{"from":"nodes/root","to":"../.trash/1-evil/root"}}"#,
    ];
    for change in changes {
        let (env, workspace, outside) = store();
        let dir = env.workspace_dir(&workspace);
        symlink(&outside, dir.join("nodes/node-aaaa1111-abcdef")).unwrap();
        std::fs::create_dir_all(env.project.join(".tanmi-workspace/.trash")).unwrap();
        symlink(&outside, env.project.join(".tanmi-workspace/.trash/1-evil")).unwrap();
        let json = format!(r#"{{"seq":1,"time":0,"changes":[{change}],"folders":[]}}"#);
        let record = format!("R {:08x} {json}", crc32(json.as_bytes()));
        let journal = format!("H {{\"version\":1,\"base\":0,\"boot\":\"other\"}}\n{record}\n");
        env.write(&dir.join(".local/journal"), journal.as_bytes());
        let before = content(&outside);
        use_store(&env, &workspace);
        assert_eq!(content(&outside), before, "{change}");
    }
}

#[test]
fn deleted_node_is_not_moved_through_linked_trash() {
    let (env, _, outside) = store();
    let node = env.node("root", "execution", "b");
    replace_by_link(&env.project.join(".tanmi-workspace/.trash"), &outside);
    assert_eq!(env.error(&["node", "delete", &node])["code"], "FILE_DAMAGED");
    assert_eq!(content(&outside).len(), 1);
}

#[test]
fn linked_folder_of_bound_workspace_is_not_injected() {
    for name in ["WS", "WS/nodes", "WS/nodes/root", ".tanmi-workspace"] {
        let (env, workspace, outside) = store();
        let agent = Agent::claude(&env, "s");
        env.ok(&["session", "bind", "--session", "s", "--workspace", &workspace, "--node", "root"]);
        env.edit(&env.node_md(&workspace, "root"), |text| format!("{text}\n## 需求\n\nSECRETWORD\n"));
        assert!(agent.start("startup").contains("SECRETWORD"));
        let store = env.project.join(".tanmi-workspace");
        let path = match name {
            ".tanmi-workspace" => store,
            _ => store.join(name.replace("WS", &workspace)),
        };
        std::fs::rename(&path, outside.join("moved")).unwrap();
        symlink(outside.join("moved"), &path).unwrap();
        assert!(!agent.start("startup").contains("SECRETWORD"), "{name}");
    }
}

/// A command that opened a pipe would wait for its other end.
#[test]
fn pipe_in_place_of_any_store_file_does_not_block() {
    for name in [
        "WS/.local/lock",
        "WS/.local/turnstile",
        "WS/.local/journal",
        "WS/.local/index.sqlite",
        "WS/.local/index.sqlite-journal",
        "WS/Workspace.md",
        ".local/lock",
        "memory/.lock",
        "memory/daily/2025-12-11.jsonl",
        "memory/sessions.jsonl",
        "memory/MEMORY.md",
        "memory/index.sqlite",
        "memory/index.sqlite-wal",
    ] {
        let (env, workspace, _) = store();
        let path = env.project.join(".tanmi-workspace").join(name.replace("WS", &workspace));
        tanmi_base::fs::remove_tree(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        use_store(&env, &workspace);
    }
}

/// The user's own files may be links into a repository of settings.
#[test]
fn linked_user_file_is_read() {
    let env = TestEnv::new();
    env.init();
    env.ok(&["config", "set", "language", "zh"]);
    let config = env.home_store().join("config.json");
    let dotfiles = env.root().join("dotfiles");
    std::fs::create_dir(&dotfiles).unwrap();
    std::fs::rename(&config, dotfiles.join("config.json")).unwrap();
    symlink(dotfiles.join("config.json"), &config).unwrap();
    assert!(env.ok(&["config", "get", "language"]).contains("zh"));
    let trust = env.home_store().join("trust.json");
    std::fs::rename(&trust, dotfiles.join("trust.json")).unwrap();
    symlink(dotfiles.join("trust.json"), &trust).unwrap();
    env.ok(&["memory", "save-fact", "The host is example"]);
    assert!(Agent::claude(&env, "s").start("startup").contains("example"));
}
