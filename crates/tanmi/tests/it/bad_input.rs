//! Invalid input: an error code that names the field, and no change.

use crate::env::TestEnv;

#[test]
fn invalid_arguments_error_names_field_and_changes_nothing() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let inner = env.node(&plan, "planning", "inner");
    let task = env.node(&plan, "execution", "task");
    let before = env.files(&env.project);
    let huge = "长".repeat(201);
    let create = |parent: &str, kind: &str, title: &str, requirement: &str| {
        env.error(&[
            "node",
            "create",
            "--parent",
            parent,
            "--type",
            kind,
            "--title",
            title,
            "--requirement",
            requirement,
        ])
    };
    let cases = [
        (create("root", "executor", "t", "r"), "INVALID_ARGUMENT", "type"),
        (create("root", "execution", "", "r"), "INVALID_ARGUMENT", "title"),
        (create("root", "execution", " \t\n", "r"), "INVALID_ARGUMENT", "title"),
        (create("root", "execution", &huge, "r"), "INVALID_ARGUMENT", "title"),
        (create("../../x", "execution", "t", "r"), "INVALID_ARGUMENT", "parentId"),
        (create("__proto__", "execution", "t", "r"), "INVALID_ARGUMENT", "parentId"),
        (create("node-none", "execution", "t", "r"), "NODE_NOT_FOUND", "parentId"),
        (create(&task, "execution", "t", "r"), "PARENT_IS_EXECUTION", "parentId"),
        (env.error(&["node", "show", "../../x"]), "INVALID_ARGUMENT", "nodeId"),
        (env.error(&["node", "show", "__proto__"]), "INVALID_ARGUMENT", "nodeId"),
        (env.error(&["node", "list", "--workspace", "../../x"]), "INVALID_ARGUMENT", "workspaceId"),
        (env.error(&["node", "list", "--workspace", "ws-none"]), "WORKSPACE_NOT_FOUND", "workspaceId"),
        (env.error(&["node", "list", "--status", "finished"]), "INVALID_ARGUMENT", "status"),
        (env.error(&["node", "move", &plan, "--parent", &plan]), "MOVE_INTO_SELF", "parentId"),
        (env.error(&["node", "move", &plan, "--parent", &inner]), "MOVE_INTO_SELF", "parentId"),
        (env.error(&["node", "transition", &task, "--action", "finish"]), "INVALID_ARGUMENT", "action"),
        (env.error(&["node", "update", &task, "--role", "boss"]), "INVALID_ARGUMENT", "role"),
        (env.error(&["node", "update", &task, "--remove-doc", "x"]), "NOT_IN_LIST", "docs"),
        (env.error(&["node", "update", &task]), "NOTHING_TO_CHANGE", ""),
        (env.error(&["node", "delete", "root"]), "ROOT_PROTECTED", "nodeId"),
        (env.error(&["node", "move", "root", "--parent", &plan]), "ROOT_PROTECTED", "nodeId"),
        (env.error(&["node", "reference", &task, "--target", &task]), "INVALID_ARGUMENT", "targetId"),
        (env.error(&["node", "reference", &task, "--target", "node-none"]), "NODE_NOT_FOUND", "targetId"),
        (
            env.error(&["node", "reference", &task, "--target", "x", "--remove"]),
            "REFERENCE_NOT_FOUND",
            "targetId",
        ),
        (env.error(&["log", "--node", &task, "  "]), "INVALID_ARGUMENT", "log"),
        (env.error(&["log", "no focus"]), "NO_FOCUS", "nodeId"),
        (env.error(&["problem", "--node", &task, ""]), "INVALID_ARGUMENT", "description"),
        (env.error(&["workspace", "init", "--name", "", "--goal", "g"]), "INVALID_ARGUMENT", "name"),
        (env.error(&["workspace", "init", "--name", "n", "--goal", " "]), "INVALID_ARGUMENT", "goal"),
        (
            env.error(&["workspace", "init", "--name", "n", "--goal", "g", "--rule", ""]),
            "INVALID_ARGUMENT",
            "rules",
        ),
        (env.error(&["workspace", "restore", &ws]), "WORKSPACE_NOT_ARCHIVED", "workspaceId"),
    ];
    for (error, code, field) in &cases {
        assert_eq!(error["code"], *code, "{error}");
        assert_eq!(error["field"].as_str().unwrap_or(""), *field, "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    let existing = &cases[11].0["details"]["workspaces"];
    assert_eq!(existing[0]["id"], ws.as_str(), "the error lists existing workspaces");
    assert_eq!(env.files(&env.project), before);
}

#[test]
fn oversized_requirement_is_refused_with_limit() {
    let env = TestEnv::new();
    env.init();
    let mut command = env.command(&[
        "node",
        "create",
        "--type",
        "execution",
        "--title",
        "t",
        "--requirement",
        "-",
        "--json",
    ]);
    let big = env.root().join("big");
    env.write(&big, "x".repeat(2 << 20).as_bytes());
    let output = command.stdin(std::fs::File::open(&big).unwrap()).output().unwrap();
    let error: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(error["error"]["field"], "requirement");
    assert_eq!(error["error"]["details"]["limit"], 256 * 1024);
    assert_eq!(error["error"]["details"]["actual"], 2 << 20);
}

#[test]
fn rules_hash_wrong_is_refused() {
    let env = TestEnv::new();
    env.json(&["workspace", "init", "--name", "n", "--goal", "g", "--rule", "规则1", "--rule", "规则2"]);
    let create = ["node", "create", "--type", "execution", "--title", "t", "--rules-hash"];
    let error = env.error(&[&create[..], &["ff280711"]].concat());
    assert_eq!(error["code"], "RULES_HASH_MISMATCH");
    assert_eq!(error["details"]["rulesHash"], "8eb249a5");
    assert_eq!(error["details"]["rules"][1], "规则2");
    env.ok(&[&create[..], &["8eb249a5"]].concat());
}

#[test]
fn archived_workspace_refuses_every_write() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    env.ok(&["workspace", "archive"]);
    let before = env.files(&env.project);
    let w = ["--workspace", ws.as_str()];
    for args in [
        &["node", "create", "--type", "execution", "--title", "x"][..],
        &["node", "update", &task, "--title", "x"],
        &["node", "move", &task, "--parent", "root"],
        &["node", "delete", &task],
        &["node", "transition", &task, "--action", "start"],
        &["node", "reference", &task, "--target", "x"],
        &["log", "--node", &task, "x"],
        &["problem", "--node", &task, "x"],
        &["problem", "--node", &task, "--clear"],
        &["workspace", "update", "--name", "x"],
        &["workspace", "archive"],
        &["workspace", "focus", &task],
    ] {
        assert_eq!(env.error(&[args, &w[..]].concat())["code"], "WORKSPACE_ARCHIVED", "{args:?}");
    }
    assert_eq!(env.files(&env.project), before);
    env.ok(&["node", "show", &task, "-w", &ws]);
    env.ok(&["workspace", "restore", &ws]);
    env.ok(&["node", "transition", &task, "--action", "start"]);
}

#[test]
fn damaged_node_files_are_reported_and_left_unchanged() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let good = env.node(&plan, "execution", "good");
    let damage: &[(&str, &[u8], u64)] = &[
        ("truncated", b"---\nid: x\ntitle: trunc", 3),
        ("empty", b"", 1),
        ("no front matter", b"# Hello\n", 1),
        ("bad status", b"---\ntitle: a\ntype: execution\nstatus: done\nparentId: root\n---\n", 4),
        ("invalid UTF-8", b"---\ntitle: \xff\xfe\n---\n", 2),
    ];
    let mut broken = Vec::new();
    for (title, bytes, line) in damage {
        let node = env.node(&plan, "execution", title);
        env.write(&env.node_md(&ws, &node), bytes);
        broken.push((node, *bytes, *line));
    }
    for (node, _, line) in &broken {
        let error = env.error(&["node", "transition", node, "--action", "start"]);
        assert_eq!(error["code"], "FILE_DAMAGED", "{error}");
        assert_eq!(error["details"]["line"], *line, "{error}");
        assert!(error["details"]["path"].as_str().unwrap().ends_with(&format!("{node}/Node.md")));
        env.error(&["node", "update", node, "--title", "x"]);
        env.error(&["log", "--node", node, "x"]);
    }
    env.ok(&["node", "transition", &good, "--action", "start"]);
    env.ok(&["node", "context", &good]);
    env.node(&plan, "execution", "one more");
    let report = env.check(&["--fix"]);
    assert_eq!(report["findings"].as_array().unwrap().len(), broken.len(), "{report}");
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!((&finding["code"], &finding["fix"]), (&"UNREADABLE".into(), &"by-hand".into()));
    }
    for (node, bytes, _) in &broken {
        assert_eq!(std::fs::read(env.node_md(&ws, node)).unwrap(), *bytes, "never overwritten");
    }
    let tree = env.ok(&["tree"]);
    assert!(tree.contains("damaged 3: "), "{tree}");
}

#[test]
fn damaged_workspace_file_is_listed_with_line() {
    let env = TestEnv::new();
    let ws = env.init();
    let path = env.workspace_dir(&ws).join("Workspace.md");
    env.write(&path, b"---\nname: x\nstatus: asleep\n---\n");
    let line = env.json(&["workspace", "list"])["workspaces"][0].clone();
    assert_eq!(line["status"], "damaged");
    assert!(line["damage"].as_str().unwrap().contains("Workspace.md:3"), "{line}");
    assert_eq!(env.error(&["tree", &ws])["code"], "FILE_DAMAGED");
    assert_eq!(env.check(&[&ws])["findings"][0]["line"], 3);
}

#[test]
fn unwritable_project_is_readable() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    // Root ignores permissions, so a file in the place of its folder prevents the lock.
    let local = env.workspace_dir(&ws).join(".local");
    std::fs::rename(&local, env.root().join("aside")).unwrap();
    env.write(&local, b"not a folder");
    assert_eq!(env.status(&task), "pending");
    assert_eq!(env.error(&["node", "transition", &task, "--action", "start"])["code"], "IO");
}

#[test]
fn mistyped_option_in_place_of_a_text_is_refused() {
    let env = TestEnv::new();
    env.init();
    let task = env.node("root", "execution", "t");
    let before = env.files(&env.project);
    for (args, similar) in [
        (&["log", "--nod", "x", "text"][..], "--node"),
        (&["log", "--nod=x"], "--node"),
        (&["log", "--node", &task, "--mask-secret"], "--mask-secrets"),
        (&["problem", "--node", &task, "--nextstep", "x"], "--next-step"),
        (&["problem", "--node", &task, "--cleer"], "--clear"),
        (&["memory", "save-fact", "--typ", "W", "text"], "--type"),
    ] {
        let run = env.run(args);
        assert!(!run.ok && run.stderr.contains(similar), "{args:?}: {}{}", run.stdout, run.stderr);
    }
    assert_eq!(env.files(&env.project), before, "nothing is stored");
    let log = |args: &[&str], text: &str| {
        let shown = env.ok(&[&["log", "--node", &task], args].concat());
        assert!(shown.contains(text), "{args:?}: {shown}");
    };
    for text in ["- item", "-5 degrees", "--- line", "--node is the option"] {
        log(&[text], text);
    }
    log(&["--", "--nod"], "Human --nod");
    assert!(env.ok(&["problem", "--node", &task, "--", "--nod"]).contains("--nod"));
}

#[test]
fn messages_of_commands_name_options() {
    let env = TestEnv::new();
    env.init();
    for (args, option) in [
        (&["log", "--node", "nope", "x"][..], "--node"),
        (&["log", "--node", "node-none", "x"], "--node"),
        (
            &[
                "node",
                "create",
                "--parent",
                "nope",
                "--type",
                "execution",
                "--title",
                "t",
                "--requirement",
                "r",
            ],
            "--parent",
        ),
        (&["tree", "--parent", "node-none"], "--parent"),
        (&["tree", "--workspace", "../no"], "--workspace"),
    ] {
        let run = env.run(args);
        let message = run.stderr.lines().next().unwrap_or_default();
        assert!(!run.ok && message.contains(option) && !message.contains("Id"), "{args:?}: {message}");
    }
    let error = env.error(&["log", "--node", "nope", "x"]);
    assert_eq!(error["field"], "nodeId", "programs get the name of the parameter");
}

#[test]
fn check_of_a_damaged_workspace_exits_with_1_until_it_is_repaired() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let code = || env.command(&["workspace", "check"]).output().unwrap().status.code();
    assert_eq!(code(), Some(0));
    let text = std::fs::read_to_string(env.node_md(&ws, &node)).unwrap();
    env.write(&env.node_md(&ws, &node), b"broken");
    assert_eq!(code(), Some(1));
    env.write(&env.node_md(&ws, &node), text.as_bytes());
    assert_eq!(code(), Some(0));
}
