//! The place of a project: a store of another user, a forged link to another project, and a project that is moved,
//! replaced or deleted under a running server.
#![cfg(unix)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::env::{Run, TestEnv};
use crate::mcp::Client;
use crate::serve::Server;

/// Two user ids other than root. Debian names the second one `daemon`.
const OTHER: u32 = 65534;
const DAEMON: u32 = 1;

/// Gives a folder with its content to a user. Returns false if this process may not do that.
fn give(path: &Path, user: u32) -> bool {
    let status =
        std::process::Command::new("chown").arg("-R").arg(format!("{user}:{user}")).arg(path).output();
    let is_given = status.is_ok_and(|output| output.status.success());
    if !is_given {
        eprintln!("skipped: only root can give files to another user");
    }
    is_given
}

fn store_of(project: &Path) -> PathBuf {
    project.join(".tanmi-workspace")
}

/// Returns the error of a run with `--json` that failed.
fn error_of(run: &Run) -> Value {
    assert!(!run.ok, "{}", run.stdout);
    let value: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    value["error"].clone()
}

#[test]
fn commands_store_of_other_user_above_git_root_is_refused() {
    let env = TestEnv::new();
    let repository = env.project.join("repository");
    std::fs::create_dir_all(repository.join(".git")).unwrap();
    std::fs::create_dir(store_of(&env.project)).unwrap();
    if !give(&store_of(&env.project), OTHER) {
        return;
    }
    let init = ["workspace", "init", "--name", "a", "--goal", "b", "--json"];
    for args in [&init[..], &["workspace", "list", "--json"], &["memory", "save-fact", "x", "--json"]] {
        let error = error_of(&env.run_in(&repository, args));
        assert_eq!(error["code"], "PROJECT_OWNER", "{args:?}");
        assert_eq!(error["details"]["owner"], OTHER);
        assert_eq!(error["details"]["path"], store_of(&env.project).to_str().unwrap());
        assert!(error["hint"].as_str().unwrap().contains("tanmi trust --allow-owner"), "{error}");
    }
    assert_eq!(std::fs::read_dir(store_of(&env.project)).unwrap().count(), 0, "nothing was written");
    assert!(!store_of(&repository).exists(), "no other project was created");

    let run = env.run_in(&repository, &[&["--project", "."], &init[..]].concat());
    assert!(run.ok, "a named folder is the project: {}", run.stdout);
    assert!(env.run_in(&repository, &["tree"]).ok, "the nearest store counts");
}

#[test]
fn commands_folder_of_other_user_is_refused_with_and_without_store() {
    let env = TestEnv::new();
    env.init();
    if !give(&env.project, OTHER) || !give(&store_of(&env.project), 0) {
        return;
    }
    assert_eq!(
        env.error(&["tree"])["code"],
        "PROJECT_OWNER",
        "the owner of the folder can replace the store"
    );
    tanmi_base::fs::remove_tree(&store_of(&env.project)).unwrap();
    assert_eq!(env.json(&["workspace", "list"])["total"], 0, "there is no store to refuse");
    for args in [&["workspace", "init", "--name", "a", "--goal", "b"][..], &["memory", "save-fact", "x"]] {
        assert_eq!(env.error(args)["code"], "PROJECT_OWNER", "{args:?}");
    }
    assert!(!store_of(&env.project).exists());
}

#[test]
fn allow_owner_is_asked_for_once_and_can_be_revoked() {
    let env = TestEnv::new();
    env.init();
    assert_eq!(env.json(&["trust", "--allow-owner"])["done"], false, "the project belongs to the user");
    if !give(&store_of(&env.project), OTHER) {
        return;
    }
    let error = env.error(&["trust", "--allow-owner"]);
    assert_eq!(error["code"], "CONFIRMATION_REQUIRED");
    assert_eq!(error["details"]["owner"], OTHER);
    assert_eq!(env.error(&["tree"])["code"], "PROJECT_OWNER");
    let allowed = env.json(&["trust", "--allow-owner", "--yes"]);
    assert_eq!((&allowed["allowed"], &allowed["done"]), (&json!(true), &json!(true)));
    env.ok(&["tree"]);
    assert_eq!(env.json(&["trust", "--allow-owner"])["done"], false, "it is allowed already");
    assert_eq!(env.json(&["trust", "--revoke"])["done"], true);
    assert_eq!(env.error(&["tree"])["code"], "PROJECT_OWNER");
}

#[test]
fn environment_allows_projects_and_owner_of_sudo() {
    let env = TestEnv::new();
    env.init();
    if !give(&env.project, OTHER) {
        return;
    }
    let run =
        |name: &str, value: &str| env.command(&["tree"]).env(name, value).output().unwrap().status.success();
    let project = env.project.to_str().unwrap().to_owned();
    assert!(run("TANMI_SAFE_PROJECTS", "*"));
    assert!(run("TANMI_SAFE_PROJECTS", &format!("/nowhere:{project}")));
    assert!(!run("TANMI_SAFE_PROJECTS", "/nowhere"));
    assert!(run("SUDO_UID", &OTHER.to_string()));
    assert!(!run("SUDO_UID", &DAEMON.to_string()));
}

#[test]
fn user_without_root_refuses_store_of_other_user() {
    let env = TestEnv::new();
    std::fs::set_permissions(env.root(), PermissionsExt::from_mode(0o755)).unwrap();
    let (shared, home) = (env.root().join("shared"), env.root().join("home"));
    std::fs::create_dir_all(shared.join("repository/.git")).unwrap();
    std::fs::create_dir(store_of(&shared)).unwrap();
    let owners = [(&home, DAEMON), (&shared, DAEMON), (&store_of(&shared), OTHER)];
    if !owners.into_iter().all(|(path, user)| give(path, user)) {
        return;
    }
    let run = |args: &[&str]| {
        let mut command = env.command_in("setpriv", &shared.join("repository"));
        let user = format!("{DAEMON}");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups", env!("CARGO_BIN_EXE_tanmi")]);
        command.args(args).output()
    };
    // The binary can be in a folder that other users cannot read.
    if !run(&["--version"]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: setpriv is missing, or another user cannot run the program");
        return;
    }
    let run = |args: &[&str]| Run::of(run(args).unwrap());
    let init = ["workspace", "init", "--name", "a", "--goal", "b", "--json"];
    assert_eq!(error_of(&run(&init))["code"], "PROJECT_OWNER");
    assert!(run(&["trust", "--allow-owner", "--yes"]).ok);
    // Allowed, but its mode keeps other users out.
    assert_eq!(error_of(&run(&init))["code"], "IO");
    std::fs::remove_dir(store_of(&shared)).unwrap();
    assert!(run(&init).ok);
    assert_eq!(std::fs::metadata(store_of(&shared.join("repository"))).unwrap().uid(), DAEMON);
}

#[test]
fn hooks_store_of_other_user_is_not_told_and_not_written() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["memory", "save-fact", "The gateway is Kong"]);
    env.ok(&["session", "bind", "--workspace", &ws, "--session", "bound"]);
    let (free, bound) = (Agent::claude(&env, "free"), Agent::claude(&env, "bound"));
    assert!(free.start("startup").contains("Kong"), "the memory is told to its owner");
    assert!(bound.start("startup").contains("JWT"));
    let store = store_of(&env.project);
    if !give(&store, OTHER) {
        return;
    }
    let before = env.files(&store.join("memory/daily"));
    for source in ["startup", "resume", "compact"] {
        assert!(!free.start(source).contains("Kong"), "{source}");
    }
    assert!(!bound.start("startup").contains("JWT"));
    assert!(!bound.prompt("What is next?").contains("JWT"));
    assert_eq!(env.json(&["statusline"])["bound"], false);
    free.send("SessionEnd", "sessionEnd", json!({"reason": "logout"}));
    assert_eq!(env.files(&store.join("memory/daily")), before, "nothing was written");

    env.ok(&["trust", "--allow-owner", "--yes"]);
    assert!(free.start("startup").contains("Kong") && bound.start("startup").contains("JWT"));
}

#[test]
fn hooks_own_store_in_folder_of_other_user_is_not_told() {
    let env = TestEnv::new();
    env.ok(&["memory", "save-fact", "The gateway is Kong"]);
    let agent = Agent::claude(&env, "s");
    assert!(agent.start("startup").contains("Kong"));
    if !give(&env.project, OTHER) || !give(&store_of(&env.project), 0) {
        return;
    }
    assert!(!agent.start("startup").contains("Kong"));
}

#[test]
fn hooks_store_of_other_user_above_leaves_own_folder_a_project() {
    let env = TestEnv::new();
    std::fs::create_dir(store_of(&env.project)).unwrap();
    let repository = env.project.join("repository");
    std::fs::create_dir_all(repository.join(".git")).unwrap();
    env.make(&repository.join(".tanmi/context.json"), r#"{"files": ["NOTES.md"]}"#);
    env.make(&repository.join("NOTES.md"), "Deploy on Fridays only");
    if !give(&store_of(&env.project), OTHER) {
        return;
    }
    let run = env.run_in(&repository, &["--project", ".", "trust", "--yes"]);
    assert!(run.ok, "{}{}", run.stdout, run.stderr);
    let agent = Agent::claude(&env, "s");
    let told = agent.send("SessionStart", "", json!({"source": "startup", "cwd": repository}));
    assert!(told.contains("Deploy on Fridays"), "{told}");
    let told = agent.send("SessionStart", "", json!({"source": "startup", "cwd": env.project}));
    assert!(!told.contains("Deploy on Fridays"), "{told}");
}

#[test]
fn tools_and_doctor_report_store_of_other_user() {
    let env = TestEnv::new();
    env.init();
    let leftover = store_of(&env.project).join("tmp-4194304-0-abcdef");
    env.write(&leftover, b"x");
    if !give(&store_of(&env.project), OTHER) {
        return;
    }
    let mut client = Client::connect(&env);
    for (tool, arguments) in [("memory_save", json!({"content": "x"})), ("workspace_list", json!({}))] {
        let error = client.expect_error(tool, arguments);
        assert_eq!(error["code"], "PROJECT_OWNER", "{tool}");
        assert!(!error["hint"].as_str().unwrap().contains("allow-owner"), "only the user decides: {error}");
    }
    let server = Server::start(&env);
    let error = server.expect_error("POST", "/memory", json!({"content": "x"}), 409);
    assert_eq!((&error["code"], &error["details"]["owner"]), (&json!("PROJECT_OWNER"), &json!(OTHER)));
    // Allowed while the servers run.
    env.ok(&["trust", "--allow-owner", "--yes"]);
    client.expect_ok("memory_save", json!({"content": "x"}));
    env.ok(&["trust", "--revoke"]);

    let run = env.run(&["doctor", "--fix", "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let found = report["checks"].as_array().unwrap().iter().find(|result| result["check"] == "project");
    let found = found.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(found["health"], "by_hand");
    assert!(found["advice"].as_str().unwrap().contains("tanmi trust --allow-owner"));
    assert!(leftover.exists(), "nothing is repaired there");
}

#[test]
fn forged_git_file_does_not_open_memory_of_other_project() {
    let env = TestEnv::new();
    std::fs::create_dir(env.project.join(".git")).unwrap();
    env.ok(&["memory", "save-fact", "The gateway is Kong"]);
    let clone = env.root().join("clone");
    env.make(&clone.join(".git"), "gitdir: evil\n");
    env.make(&clone.join("evil/commondir"), env.project.join(".git").to_str().unwrap());
    env.make(&clone.join("evil/gitdir"), clone.join(".git").to_str().unwrap());
    let run = env.run_in(&clone, &["memory", "list", "--json"]);
    assert!(run.ok && !run.stdout.contains("Kong"), "{}{}", run.stdout, run.stderr);
    let told = Agent::claude(&env, "s").send("SessionStart", "", json!({"source": "startup", "cwd": clone}));
    assert!(!told.contains("Kong"), "{told}");
}

#[test]
fn moved_worktree_belongs_to_main_worktree_after_repair() {
    let env = TestEnv::new();
    env.init();
    let git = |dir: &Path, args: &[&str]| {
        let mut command = env.command_in("git", dir);
        let output = command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?} {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&env.project, &["init", "-q"]);
    git(&env.project, &["commit", "-qm", "x", "--allow-empty"]);
    git(&env.project, &["worktree", "add", "-q", "../linked"]);
    let (linked, moved) = (env.root().join("linked"), env.root().join("moved"));
    assert!(env.run_in(&linked, &["tree"]).ok);
    std::fs::rename(&linked, &moved).unwrap();
    assert_eq!(error_of(&env.run_in(&moved, &["tree", "--json"]))["code"], "NO_WORKSPACE");
    git(&moved, &["worktree", "repair"]);
    assert!(env.run_in(&moved, &["tree"]).ok);
}

/// Calls of an MCP client that write to the project or read from it.
fn calls(ws: &str) -> [(&'static str, Value); 7] {
    let node =
        json!({"workspaceId": ws, "parentId": "root", "type": "execution", "title": "t", "requirement": "r"});
    [
        ("memory_save", json!({"content": "The broker is NATS"})),
        ("memory_summary", json!({"topic": "t", "summary": "s"})),
        ("node_create", node),
        ("log_append", json!({"workspaceId": ws, "nodeId": "workspace", "log": "x"})),
        ("workspace_init", json!({"name": "a", "goal": "b"})),
        ("memory_search", json!({"query": "broker"})),
        ("context_check", json!({"sessionId": "s", "trigger": "session_start"})),
    ]
}

#[test]
fn mcp_moved_project_refuses_calls_until_it_is_back() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["memory", "save-fact", "The gateway is Kong"]);
    let mut client = Client::connect(&env);
    let moved = env.root().join("moved");
    std::fs::rename(&env.project, &moved).unwrap();
    for (tool, arguments) in calls(&ws) {
        let error = client.expect_error(tool, arguments);
        assert_eq!(error["code"], "PROJECT_MOVED", "{tool}");
        assert_eq!(error["details"]["path"], env.project.to_str().unwrap());
        assert!(error["hint"].as_str().unwrap().contains("restart"), "{error}");
    }
    assert!(!env.project.exists(), "the project is not created again");

    // Another project at the same path.
    std::fs::create_dir(&env.project).unwrap();
    env.ok(&["memory", "save-fact", "The gateway is Envoy"]);
    let before = env.files(&store_of(&env.project).join("memory/daily"));
    for (tool, arguments) in calls(&ws) {
        assert_eq!(client.expect_error(tool, arguments)["code"], "PROJECT_MOVED", "{tool}");
    }
    assert_eq!(env.files(&store_of(&env.project).join("memory/daily")), before);

    std::fs::rename(&env.project, env.root().join("other")).unwrap();
    std::fs::rename(&moved, &env.project).unwrap();
    client.expect_ok("memory_save", json!({"content": "The broker is NATS"}));
    assert!(env.ok(&["memory", "list"]).contains("NATS"));
}

#[test]
fn mcp_session_bound_to_moved_project_uses_no_other_workspace() {
    let env = TestEnv::new();
    let own = env.init();
    let (other, moved) = (env.root().join("other"), env.root().join("moved"));
    std::fs::create_dir(&other).unwrap();
    let init = ["workspace", "init", "--name", "a", "--goal", "b", "--json"];
    let created: Value = serde_json::from_str(&env.run_in(&other, &init).stdout).unwrap();
    let mut client = Client::connect(&env);
    client.expect_ok("session_bind", json!({"workspaceId": created["workspaceId"]}));
    let node = json!({"parentId": "root", "type": "execution", "title": "t", "requirement": "r"});
    client.expect_ok("node_create", node.clone());
    std::fs::rename(&other, &moved).unwrap();
    assert_eq!(client.expect_error("node_create", node)["code"], "PROJECT_MOVED");
    assert!(!other.exists());
    let nodes = std::fs::read_dir(env.workspace_dir(&own).join("nodes")).unwrap().count();
    assert_eq!(nodes, 1, "only the root");
}

#[test]
fn mcp_project_without_store_is_not_created_at_old_path() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    std::fs::rename(&env.project, env.root().join("moved")).unwrap();
    let calls =
        [("memory_save", json!({"content": "x"})), ("workspace_init", json!({"name": "a", "goal": "b"}))];
    for has_successor in [false, true] {
        if has_successor {
            std::fs::create_dir(&env.project).unwrap();
        }
        for (tool, arguments) in calls.clone() {
            assert_eq!(client.expect_error(tool, arguments)["code"], "PROJECT_MOVED", "{tool}");
        }
    }
    assert!(!store_of(&env.project).exists());
}

#[test]
fn mcp_first_store_and_store_of_other_process_are_used() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    client.expect_ok("memory_save", json!({"content": "The gateway is Kong"}));
    let ws = env.init();
    client.expect_ok("context_get", json!({"workspaceId": ws}));
    assert!(env.ok(&["memory", "list"]).contains("Kong"));
}

#[test]
fn mcp_deleted_store_is_not_created_again() {
    let env = TestEnv::new();
    let ws = env.init();
    let mut client = Client::connect(&env);
    tanmi_base::fs::remove_tree(&store_of(&env.project)).unwrap();
    for (tool, arguments) in calls(&ws) {
        assert_eq!(client.expect_error(tool, arguments)["code"], "PROJECT_MOVED", "{tool}");
    }
    assert!(!store_of(&env.project).exists());
    env.init();
    env.ok(&["tree"]);
}

#[test]
fn serve_moved_project_refuses_writes() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    std::fs::rename(&env.project, env.root().join("moved")).unwrap();
    let node = json!({"parentId": "root", "type": "execution", "title": "t", "requirement": "r"});
    let requests = [
        ("/memory", json!({"content": "x"})),
        (&*format!("/workspaces/{ws}/nodes"), node),
        ("/workspaces", json!({"name": "a", "goal": "b"})),
    ];
    for (path, body) in requests {
        let error = server.expect_error("POST", path, body, 409);
        assert_eq!(error["code"], "PROJECT_MOVED", "{path}");
    }
    assert!(!env.project.exists());
}
