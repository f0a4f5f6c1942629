//! `tanmi team push` that is killed: a second one finishes the job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::machines::{address, documents, replica, token_file};
use super::{Team, run_body, send_as, write_file};
use crate::crash_safety::{has_strace, kill_at_call};
use crate::env::TestEnv;
use crate::serve::Server;

/// The system calls that send a request or put a file or folder in its place.
const CALLS: &[&str] = &["sendto", "rename", "renameat2"];

fn copy_tree(from: &Path, to: &Path) {
    let _ = tanmi_base::fs::remove_tree(to);
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// A machine with a local project, which is reset before every push.
struct Local {
    env: TestEnv,
    workspaces: Vec<String>,
    documents: BTreeMap<String, String>,
    facts: Vec<String>,
}

impl Local {
    fn new() -> Local {
        let env = TestEnv::new();
        let workspaces: Vec<String> = ["One", "Two"]
            .map(|name| {
                let made = env.json(&["workspace", "init", "--name", name, "--goal", "g"]);
                let id = made["workspaceId"].as_str().unwrap().to_owned();
                let args = ["node", "create", "--workspace", &id, "--parent", "root", "--type", "execution"];
                env.json(&[&args[..], &["--title", "Build", "--requirement", "r"]].concat());
                id
            })
            .into();
        for (kind, text) in [("W", "The shop uses euros"), ("O", "I like tea")] {
            env.ok(&["memory", "save-fact", text, "--type", kind]);
        }
        write_file(env.project.join(".tanmi-workspace/memory/MEMORY.md"), "Ask before a release.\n").unwrap();
        let documents = documents(&env.project);
        let mut local = Local { workspaces, documents, facts: Vec::new(), env };
        local.facts = local.export();
        for (folder, kept) in local.folders() {
            copy_tree(&folder, &kept);
        }
        local
    }

    /// Returns the folders of the machine, each with its copy.
    fn folders(&self) -> [(PathBuf, PathBuf); 2] {
        let home = self.env.home_store();
        [
            (self.env.project.clone(), self.env.root().join("kept-project")),
            (home, self.env.root().join("kept-home")),
        ]
    }

    fn reset(&self) {
        for (folder, kept) in self.folders() {
            copy_tree(&kept, &folder);
        }
    }

    fn export(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.env.ok(&["memory", "export", "--all"]).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Returns the workspaces that the interrupted push had sent.
    fn sent(&self) -> String {
        let private = std::fs::read_dir(self.env.home_store().join("team-private"));
        let mut files = private.into_iter().flatten().flatten().map(|entry| entry.path().join("pushed.json"));
        files.find_map(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
    }

    /// Asserts that everything is in its new place, once. `changed` is a workspace that others changed since.
    fn assert_moved(&self, what: &str, changed: Option<&str>) {
        let is_kept = |path: &str| path.starts_with("ws-") && changed.is_none_or(|id| !path.starts_with(id));
        let kept = |all: &BTreeMap<String, String>| {
            all.iter().filter(|(path, _)| is_kept(path)).map(|(a, b)| (a.clone(), b.clone())).collect()
        };
        let (here, expected): (BTreeMap<String, String>, BTreeMap<String, String>) =
            (kept(&documents(&replica(&self.env))), kept(&self.documents));
        assert_eq!(here, expected, "{what}");
        assert!(documents(&self.env.project).keys().all(|path| !path.starts_with("ws-")), "{what}");
        assert_eq!(self.export(), self.facts, "{what}");
        let private = std::fs::read_dir(self.env.home_store().join("team-private")).unwrap().next().unwrap();
        let private = private.unwrap().path();
        assert!(!private.join("pushed.json").exists(), "{what}");
        let core = private.join(".tanmi-workspace/memory/MEMORY.md");
        let core = std::fs::read_to_string(&core).unwrap_or_else(|error| panic!("{what}: {core:?}: {error}"));
        assert_eq!(core, "Ask before a release.\n", "{what}");
    }
}

/// Appends a log line to a workspace on the server, as another machine would.
fn change_workspace(server: &Server, token: &str, project: &str, workspace: &str) {
    let command = json!({"command": "append_log", "target": "workspace", "event": "seen by bob"});
    let body = run_body(&format!("seen-{project}"), workspace, command);
    let answer = send_as(server, token, "POST", &format!("{project}/run"), &[], &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[test]
fn push_killed_at_every_request_and_rename_is_finished_by_the_next_one() {
    if !has_strace() {
        return;
    }
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let local = Local::new();
    let url = address(&server);
    let (mut kills, mut changes) = (0, 0);
    for call in CALLS {
        for nth in 1..100 {
            local.reset();
            let project = format!("shop-{call}-{nth}");
            let token = team.setup(&project, "ada");
            let file = token_file(&local.env, &token);
            let args = ["team", "push", &url, "--project-name", &project, "--token-file", &file, "--json"];
            let is_killed = kill_at_call(&local.env, call, nth, &args).is_some();
            let what = format!("killed before {call} #{nth}");
            // What was sent can be changed by others before the push is repeated.
            let changed = Some(local.workspaces[0].as_str()).filter(|id| local.sent().contains(*id));
            if let Some(id) = changed {
                change_workspace(&server, &token, &project, id);
                changes += 1;
            }
            local.env.json(&args[..args.len() - 1]);
            local.assert_moved(&what, changed);
            if !is_killed {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 10 && changes > 2, "only {kills} kills and {changes} changes: does the injection work?");
}
