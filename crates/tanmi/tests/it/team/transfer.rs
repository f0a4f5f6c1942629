//! A local project into the database and back.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::Team;

/// The documents of a project by path.
fn documents(project: &Path) -> BTreeMap<String, Vec<u8>> {
    let store = project.join(".tanmi-workspace");
    let mut found = BTreeMap::new();
    let mut open = vec![store.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() && !name.starts_with('.') && name != "memory" {
                open.push(path);
            } else if name.ends_with(".md") {
                let name = path.strip_prefix(&store).unwrap().to_string_lossy().into_owned();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// The lines of each memory file, without starts of sessions and without those that contain `private`.
fn lines(project: &Path, private: &[&str]) -> BTreeMap<String, Vec<String>> {
    let memory = project.join(".tanmi-workspace/memory");
    let mut files: Vec<_> =
        std::fs::read_dir(memory.join("daily")).unwrap().flatten().map(|entry| entry.path()).collect();
    files.push(memory.join("sessions.jsonl"));
    let is_shared =
        |line: &&str| !line.contains("session_start") && !private.iter().any(|part| line.contains(part));
    let read = |path: &Path| -> Vec<String> {
        std::fs::read_to_string(path).unwrap().lines().filter(is_shared).map(String::from).collect()
    };
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), read(path))).filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Fills the project of the environment. Returns the ids of a workspace and of a node in it.
fn fill(team: &Team) -> (String, String) {
    let env = &team.env;
    let workspace = env.init();
    let plan = env.node("root", "planning", "认证");
    let task = env.node(&plan, "execution", "签发令牌 — sign");
    let second = env.node(&plan, "execution", "Verify");
    env.ok(&["node", "depend", &second, "--on", &task]);
    env.ok(&["log", "--node", &task, "first entry，第一条"]);
    env.ok(&["problem", "--node", &task, "The key is lost", "--next-step", "Find it"]);
    env.ok(&["node", "transition", &task, "--action", "start"]);
    env.edit(&env.node_md(&workspace, &second), |text| {
        text.replacen("---\n", "---\nowner: 李雷\nticket: [1, 2]\n", 1)
    });
    let other = env.json(&["workspace", "init", "--name", "另一个", "--goal", "目标", "--rule", "先写测试"]);
    let other = other["workspaceId"].as_str().unwrap().to_owned();
    let args = ["node", "create", "--workspace", &other, "--parent", "root", "--type", "execution"];
    env.json(&[&args[..], &["--title", "x", "--requirement", "r"]].concat());
    let gone = env.json(&["workspace", "init", "--name", "Gone", "--goal", "g"]);
    env.ok(&["workspace", "delete", gone["workspaceId"].as_str().unwrap(), "--yes"]);
    let fact = |text: &str, more: &[&str]| {
        env.tick(1000);
        let saved = env.json(&[&["memory", "save-fact", text][..], more].concat());
        saved["id"].as_str().unwrap().to_owned()
    };
    let forgotten = fact("The port is 8080", &[]);
    let old = fact("数据库是 MySQL", &["--type", "B"]);
    fact("数据库是 PostgreSQL", &["--type", "B", "--supersedes", &old]);
    let opinion = fact("I prefer tabs", &["--type", "O", "--confidence", "0.9"]);
    env.ok(&["memory", "forget", &forgotten, &opinion]);
    env.tick(24 * 60 * 60 * 1000);
    env.ok(&["memory", "restore", &forgotten]);
    env.tick(1000);
    env.ok(&["memory", "forget", &forgotten]);
    env.ok(&[
        "memory",
        "save-summary",
        "--topic",
        "登录",
        "--summary",
        "done",
        "--todos",
        "docs",
        "--decisions",
        "JWT",
    ]);
    fact("Deploys run at noon", &[]);
    (workspace, second)
}

#[test]
fn project_imported_and_exported_has_the_same_bytes() {
    let Some(team) = Team::new() else { return };
    let (workspace, node) = fill(&team);
    let (local, copy) = (team.env.project.clone(), team.env.root().join("copy"));
    let import = ["team", "import", local.to_str().unwrap(), "--project-name", "shop"];
    let imported = team.run(&import);
    assert_eq!((&imported["workspaces"], &imported["privateMemories"]), (&json!(2), &json!(1)), "{imported}");
    assert_eq!(
        (&imported["deleted"], &imported["unusableMemoryLines"]),
        (&json!(1), &json!(0)),
        "{imported}"
    );
    let again = team.run(&import);
    assert_eq!((&again["workspaces"], &again["memoryLines"]), (&json!(0), &json!(0)), "{again}");
    assert_eq!(again["knownWorkspaces"], 2);
    assert_eq!(team.run(&["team", "check"])["findings"], json!([]));
    let exported = team.run(&["team", "export", copy.to_str().unwrap(), "--project-name", "shop"]);
    assert_eq!(exported["workspaces"], 2, "{exported}");
    let (before, after) = (documents(&local), documents(&copy));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert_eq!(before, after);
    let opinion = team.env.json(&["memory", "list", "--type", "O", "--all"]);
    let opinion = opinion["results"][0]["id"].as_str().unwrap_or_else(|| panic!("{opinion}")).to_owned();
    assert_eq!(lines(&local, &[&opinion]), lines(&copy, &[]));
    assert!(lines(&copy, &[]).values().map(Vec::len).sum::<usize>() >= 8);
    // The program works in the copy as in the original.
    let tree = |dir: &Path| team.env.run_in(dir, &["tree", &workspace, "--json"]);
    assert_eq!(tree(&copy).stdout, tree(&local).stdout);
    let shown = team.env.run_in(&copy, &["workspace", "check", &workspace, "--json"]);
    assert!(shown.ok, "{}{}", shown.stdout, shown.stderr);
    let audit = team.run(&["team", "audit", "--limit", "2"]);
    let what: Vec<&Value> = audit["entries"].as_array().unwrap().iter().map(|entry| &entry["what"]).collect();
    assert_eq!(what, ["exported", "imported"], "a second import changes nothing");
    // A document with other content is a conflict, and names itself.
    team.env.edit(&team.env.node_md(&workspace, &node), |text| text.replace("Verify", "Check"));
    let run = team
        .env
        .command(&import)
        .arg("--json")
        .env("TANMI_DATABASE_URL", team.cluster.address())
        .output()
        .unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(!run.status.success() && text.contains("IMPORT_CONFLICT") && text.contains(&node), "{text}");
    let full = team.run(&["team", "export", copy.to_str().unwrap(), "--project-name", "shop"]);
    assert_eq!(full["error"]["code"], "INVALID_ARGUMENT", "a folder with content");
    let empty = team.env.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let none = team.run(&["team", "import", empty.to_str().unwrap()]);
    assert_eq!(none["error"]["code"], "INVALID_ARGUMENT", "not a project");
}

#[test]
fn import_refuses_a_damaged_document_by_name() {
    let Some(team) = Team::new() else { return };
    let workspace = team.env.init();
    let plan = team.env.node("root", "planning", "plan");
    let task = team.env.node(&plan, "execution", "task");
    let path = team.env.node_md(&workspace, &task);
    let good = std::fs::read_to_string(&path).unwrap();
    for (from, to) in
        [(plan.as_str(), "node-none-aaaaaa"), ("status: pending", "status: planning"), ("task", "ta\0sk")]
    {
        team.env.edit(&path, |_| good.replace(from, to));
        let refused = team.run(&["team", "import", team.env.project.to_str().unwrap()]);
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{to}: {refused}"));
        assert!(message.contains(&task), "{to}: {message}");
    }
    assert_eq!(
        team.cluster.sql("SELECT count(*) FROM workspace").unwrap().trim(),
        "0",
        "nothing was imported"
    );
    team.env.edit(&path, |_| good.clone());
    assert_eq!(team.run(&["team", "import", team.env.project.to_str().unwrap()])["workspaces"], 1);
}
