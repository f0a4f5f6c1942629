//! Hostile or irregular files in a store, such as a cloned repository may contain: nothing outside of the store is
//! touched, and unreadable data is an error.

use crate::agent::Agent;
use crate::env::TestEnv;

#[cfg(unix)]
mod access;
mod damaged_index;
#[cfg(unix)]
mod links;
#[cfg(unix)]
mod modes;
#[cfg(unix)]
mod second_round;

#[cfg(unix)]
#[test]
fn symlink_in_store_is_refused() {
    use std::os::unix::fs::symlink;
    let victim_of = |env: &TestEnv| {
        let victim = env.root().join("victim");
        std::fs::create_dir(&victim).unwrap();
        env.write(&victim.join("2019-taxes"), b"mine");
        victim
    };
    for name in [".local/tmp", ".local", "nodes"] {
        let env = TestEnv::new();
        let ws = env.init();
        env.node("root", "execution", "a");
        let victim = victim_of(&env);
        let link = env.workspace_dir(&ws).join(name);
        tanmi_base::fs::remove_tree(&link).unwrap();
        symlink(&victim, &link).unwrap();
        for args in [
            &["tree", &ws][..],
            &["workspace", "list"],
            &["node", "create", "-w", &ws, "--type", "execution", "--title", "x"],
        ] {
            env.run(args);
        }
        assert_eq!(env.error(&["tree", &ws])["code"], "FILE_DAMAGED", "{name}");
        let remaining: Vec<_> =
            std::fs::read_dir(&victim).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(remaining, ["2019-taxes"], "{name}");
    }
    let env = TestEnv::new();
    let ws = env.init();
    let victim = victim_of(&env);
    symlink(&victim, env.project.join(".tanmi-workspace/.trash")).unwrap();
    env.run(&["workspace", "init", "--name", "n", "--goal", "g"]);
    env.run(&["workspace", "delete", &ws, "--yes"]);
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 1);
}

/// Hooks refuse the same links as commands.
#[cfg(unix)]
#[test]
fn symlinked_workspace_file_is_not_injected() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    assert!(Agent::claude(&env, "s").start("startup").contains("Goal"));
    let path = env.workspace_dir(&ws).join("Workspace.md");
    let elsewhere = env.root().join("elsewhere.md");
    std::fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(!Agent::claude(&env, "s").start("startup").contains("Goal"));
    assert_eq!(env.json(&["session", "status", "--session", "s"])["bound"], false);
}

#[test]
fn cloned_journal_cannot_write_outside_workspace() {
    let env = TestEnv::new();
    let ws = env.init();
    let outside = env.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    env.write(&outside.join("secret"), b"s");
    let forged_journal = |path: &str| {
        let json = format!(r#"{{"seq":1,"time":0,"changes":[{path}],"folders":[9999999999999999999]}}"#);
        let json = json.replace("9999999999999999999", "9223372036854775807");
        format!(
            "H {{\"version\":1,\"base\":0,\"boot\":\"other\"}}\nR {:08x} {json}\nA 1\n",
            crc32(json.as_bytes())
        )
    };
    let root = outside.display();
    for change in [
        format!(r#"{{"write":{{"path":"{root}/keys","before":null,"text":"evil"}}}}"#),
        String::from(r#"{"write":{"path":"../../../outside/keys","before":null,"text":"evil"}}"#),
        String::from(
            r#"{"write":{"path":"nodes/../../../../outside/keys/Node.md","before":null,"text":"evil"}}"#,
        ),
        format!(r#"{{"move":{{"from":"{root}/secret","to":"{root}/stolen"}}}}"#),
        String::from(r#"{"move":{"from":"nodes/root","to":"../../../outside/x"}}"#),
        String::from(r#"{"move":{"from":"nodes/root","to":"../.trash/../x"}}"#),
    ] {
        env.write(&env.workspace_dir(&ws).join(".local/journal"), forged_journal(&change).as_bytes());
        env.ok(&["tree"]);
        let remaining: Vec<_> =
            std::fs::read_dir(&outside).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(remaining, ["secret"], "{change}");
        assert_eq!(env.status("root"), "pending");
    }
}

/// Computes the checksum of a journal record, so that the forged record is valid.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

#[test]
fn unreadable_workspace_is_not_skipped() {
    let env = TestEnv::new();
    let (first, _) = (env.init(), env.init());
    env.edit(&env.workspace_dir(&first).join("Workspace.md"), |text| {
        text.replace("status: active", "status: acttive")
    });
    let create = ["node", "create", "--type", "execution", "--title", "z"];
    assert_eq!(
        env.error(&create)["code"],
        "AMBIGUOUS_WORKSPACE",
        "the other workspace is not chosen silently"
    );

    let env = TestEnv::new();
    let workspace = env.init();
    env.edit(&env.workspace_dir(&workspace).join("Workspace.md"), |text| {
        text.replace("status: active", "status: acttive")
    });
    assert_eq!(env.error(&["tree"])["code"], "FILE_DAMAGED");
    assert_eq!(env.check(&[])["findings"][0]["code"], "UNREADABLE");
}

#[cfg(unix)]
#[test]
fn irregular_node_file_affects_only_its_node() {
    let env = TestEnv::new();
    let ws = env.init();
    let good = env.node("root", "execution", "good");
    let irregular: Vec<String> =
        ["folder", "pipe", "link", "loop"].iter().map(|kind| env.node("root", "execution", kind)).collect();
    for (n, node) in irregular.iter().enumerate() {
        let path = env.node_md(&ws, node);
        std::fs::remove_file(&path).unwrap();
        match n {
            0 => std::fs::create_dir(&path).unwrap(),
            1 => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
            2 => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
            _ => std::os::unix::fs::symlink("Node.md", &path).unwrap(),
        }
    }
    assert_eq!(env.status(&good), "pending");
    env.ok(&["node", "transition", &good, "--action", "start"]);
    let report = env.check(&[]);
    assert_eq!(report["findings"].as_array().unwrap().len(), 4, "{report}");
    for node in &irregular {
        assert_eq!(env.error(&["node", "show", node])["code"], "FILE_DAMAGED");
    }
}

#[test]
fn restore_uses_trash_and_creates_no_folder() {
    let env = TestEnv::new();
    let ws = env.init();
    let copy = env.root().join("project-copy");
    assert!(
        std::process::Command::new("cp").arg("-a").arg(&env.project).arg(&copy).status().unwrap().success()
    );
    env.ok(&["workspace", "delete", &ws, "--yes"]);
    assert_eq!(
        env.error(&["workspace", "update", &ws, "--name", "x"])["code"],
        "WORKSPACE_NOT_FOUND",
        "the copy of the project is not used"
    );
    env.ok(&["workspace", "restore", &ws]);
    env.ok(&["tree", &ws]);

    env.ok(&["workspace", "delete", &ws, "--yes"]);
    let moved = env.root().join("elsewhere");
    std::fs::rename(&env.project, &moved).unwrap();
    assert!(env.run_in(&moved, &["workspace", "restore", &ws]).ok);
    assert!(!env.project.exists(), "the old folder is not created again");

    let empty = env.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert!(!env.run_in(&empty, &["workspace", "restore", "ws-none"]).ok);
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn moved_project_is_registered_on_use() {
    let env = TestEnv::new();
    let ws = env.init();
    let moved = env.root().join("a/b/c/d/e/f/far");
    std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
    std::fs::rename(&env.project, &moved).unwrap();
    assert!(env.run_in(&moved, &["node", "create", "--type", "execution", "--title", "x"]).ok);
    assert!(env.run_in(&env.root(), &["workspace", "show", &ws]).ok);
}

#[test]
fn text_with_leading_dash_or_control_character_is_accepted() {
    let env = TestEnv::new();
    env.init();
    let created = env.json(&[
        "node",
        "create",
        "--type",
        "execution",
        "--title",
        "-5 degrees \u{7f}",
        "--requirement",
        "- do a\n- do b",
    ]);
    assert_eq!(created["node"]["title"], "-5 degrees \u{7f}");
    assert_eq!(created["node"]["requirement"], "- do a\n- do b");
    let id = created["nodeId"].as_str().unwrap();
    env.ok(&["node", "transition", id, "--action", "start"]);
    env.ok(&["log", "- fixed it"]);
    env.ok(&["problem", "- broken", "--next-step", "- fix"]);
    env.ok(&["node", "transition", id, "--action", "complete", "--conclusion", "- done"]);
    let esc =
        env.json(&["node", "create", "--type", "execution", "--title", "t", "--requirement", "\u{1b}[2J"]);
    let shown = env.ok(&["node", "show", esc["nodeId"].as_str().unwrap()]);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn json_option_makes_every_error_json() {
    let env = TestEnv::new();
    env.init();
    for args in [
        &["--project", "/nope", "tree"][..],
        &["tree", "--limit", "abc"],
        &["node", "create", "--type", "execution"],
        &["nonsense"],
    ] {
        let error = env.error(args);
        assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn home_store_is_private_to_owner() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["config", "set", "language", "en"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&env.home_store()), 0o700);
    for name in ["config.json", "registry.json"] {
        assert_eq!(mode(&env.home_store().join(name)), 0o600, "{name}");
    }
    let shared = env.node_md(&ws, "root");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o664)).unwrap();
    env.node("root", "execution", "a");
    assert_eq!(mode(&shared), 0o664, "the mode of a file shared with a group is kept");
}
