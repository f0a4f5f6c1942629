//! `tanmi team push` that is killed, which a second one finishes, and writes while it runs.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

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

/// Forwards connections to a server. Calls `pause` before the first request that contains `word` goes on.
fn proxy(server: &Server, word: &'static str, pause: impl FnOnce() + Send + 'static) -> String {
    let (listener, port) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.port);
    let url = format!("http://{}", listener.local_addr().unwrap());
    let pause = std::sync::Arc::new(std::sync::Mutex::new(Some(pause)));
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut upstream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from, mut to) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            let pause = pause.clone();
            std::thread::spawn(move || {
                let mut part = vec![0; 1 << 16];
                while let Ok(count @ 1..) = client.read(&mut part) {
                    if String::from_utf8_lossy(&part[..count]).contains(word)
                        && let Some(pause) = pause.lock().unwrap().take()
                    {
                        pause();
                    }
                    upstream.write_all(&part[..count]).unwrap();
                }
                let _ = upstream.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    url
}

#[test]
fn push_loses_no_write_that_was_acknowledged_while_it_ran() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let local = std::sync::Arc::new(Local::new());
    let (machine, writer) = (local.clone(), std::sync::Arc::new(std::sync::Mutex::new(None::<Child>)));
    let started = writer.clone();
    // The lines come after the workspaces.
    let url = proxy(&server, "euros", move || {
        machine.env.ok(&["memory", "save-fact", "The late shop uses yen", "--type", "W"]);
        machine.env.ok(&["workspace", "init", "--name", "Three", "--goal", "late goal"]);
        let workspace = machine.workspaces[0].as_str();
        let mut log = machine.env.command(&["log", "--workspace", workspace, "--node", "root", "late line"]);
        let mut child = log.stderr(std::process::Stdio::piped()).spawn().unwrap();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(100));
            if child.try_wait().unwrap().is_some() {
                break;
            }
        }
        *started.lock().unwrap() = Some(child);
    });
    let file = token_file(&local.env, &team.admin);
    let pushed = local.env.json(&["team", "push", &url, "--project-name", "shop", "--token-file", &file]);
    assert_eq!((&pushed["pushed"], &pushed["lines"]), (&json!(3), &json!(2)), "{pushed}");
    let child = writer.lock().unwrap().take().unwrap();
    let output = child.wait_with_output().unwrap();
    let held: String = documents(&replica(&local.env)).into_values().collect();
    assert!(held.contains("late goal"), "a workspace that was created meanwhile");
    if output.status.success() {
        assert!(held.contains("late line"), "the line was acknowledged");
    }
    assert!(local.env.ok(&["memory", "export", "--all"]).contains("yen"));
    assert!(documents(&local.env.project).is_empty());
}

#[test]
fn push_of_workspace_that_is_edited_meanwhile_keeps_its_files_and_names_the_way_on() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let local = Local::new();
    let id = local.workspaces[1].clone();
    let path = local.env.project.join(".tanmi-workspace").join(&id).join("Workspace.md");
    let edited = format!("{}\n## Own\n\nlate edit\n", std::fs::read_to_string(&path).unwrap());
    let (target, text) = (path.clone(), edited.clone());
    let url = proxy(&server, "euros", move || write_file(target, text).unwrap());
    let file = token_file(&local.env, &team.admin);
    let args = ["team", "push", &url, "--project-name", "shop", "--token-file", &file];
    for _ in 0..2 {
        let refused = local.env.error(&args);
        assert_eq!(refused["code"], "NOT_EQUAL", "{refused}");
        assert!(refused["message"].as_str().unwrap().contains(&id), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), edited);
    }
    assert!(!documents(&local.env.project).keys().any(|path| path.starts_with(&local.workspaces[0])));
    std::fs::rename(path.parent().unwrap(), local.env.root().join("aside")).unwrap();
    local.env.json(&args);
    local.assert_moved("after the way on", None);
}
