//! Files of every shape, in and out again: what is not ours stays, byte by byte.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tanmi_base::Lang;
use tempfile::TempDir;

use crate::agent::{Folders, HookFormat};
use crate::plan::{TargetFile, target_files};
use crate::*;

mod any;

struct World {
    dir: TempDir,
    folders: Folders,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (user, project) = (dir.path().join("user"), dir.path().join("project"));
        std::fs::create_dir_all(&user).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let folders = Folders::new(user, project, |_| None);
        World { dir, folders }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn target_files(&self, agent: &'static Agent, scope: Scope) -> Vec<TargetFile> {
        target_files(agent, scope, &self.folders, Some(&options("/opt/tanmi")))
    }

    fn install(&self, agent: &'static Agent, scope: Scope, program: &str) -> Vec<AppliedChange> {
        let options = options(program);
        let plans =
            self.target_files(agent, scope).into_iter().map(|target| plan(target, &options)).collect();
        apply(&self.home(), plans, &options, 1).unwrap()
    }

    fn uninstall(&self, agent: &'static Agent, scope: Scope) -> Vec<AppliedChange> {
        let receipts = Receipts::load(&self.home());
        let target_files = target_files(agent, scope, &self.folders, None).into_iter();
        let plans = target_files.filter_map(|target| plan_removal(target, &receipts)).collect();
        remove(&self.home(), plans).unwrap()
    }

    /// Every file, but for the store's own.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(dir: &Path, out: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, out)
                } else {
                    out.push((path.clone(), std::fs::read(path).unwrap()))
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.folders.user, &mut out);
        walk(&self.folders.project, &mut out);
        out.sort();
        out
    }
}

fn options(program: &str) -> InstallOptions {
    InstallOptions {
        program: program.to_owned(),
        lang: Lang::En,
        hooks: true,
        server: true,
        guide: true,
        status_line: true,
    }
}

#[allow(clippy::disallowed_methods)] // a person's editor
fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn parsed(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    crate::json::Json::parse(text.trim_start_matches('\u{feff}')).unwrap().value()
}

fn event(agent: &Agent) -> &'static str {
    agent.hooks[0].event
}

/// A handler of somebody else's, as this agent writes them.
fn foreign(agent: &Agent, command: &str) -> Value {
    match agent.shape {
        HookFormat::Groups => {
            json!({"matcher": "startup", "hooks": [{"type": "command", "command": command}]})
        }
        HookFormat::Flat => json!({"command": command}),
        HookFormat::Shells => json!({"type": "command", "bash": command}),
    }
}

/// Files that people have, of an agent; and whether they can be taken.
fn nasty(agent: &Agent) -> Vec<(&'static str, String, bool)> {
    let event = event(agent);
    let other = foreign(agent, "/opt/other/tanmi-like hook claude-code SessionStart");
    let with_other = json!({"version": 1, "model": "x", "hooks": {event: [other], "Else": []}});
    let pretty = serde_json::to_string_pretty(&with_other).unwrap();
    vec![
        ("nothing in it", String::new(), true),
        ("blank", String::from(" \n\n"), true),
        ("an empty object without a line end", String::from("{}"), true),
        ("one line", with_other.to_string(), true),
        ("pretty", format!("{pretty}\n"), true),
        ("tabs", pretty.replace("  ", "\t"), true),
        ("lines of Windows", pretty.replace('\n', "\r\n"), true),
        ("a byte order mark", format!("\u{feff}{pretty}"), true),
        (
            "comments and trailing commas",
            format!(
                "// mine\n{{\n    /* keep */ \"a\": [1, 2,], // here\n    \"hooks\": {{ // there\n        \"{event}\": [\n            {other}, // theirs\n        ],\n    }},\n}}\n// end"
            ),
            true,
        ),
        ("an empty list", format!("{{\"hooks\": {{\"{event}\": []}}}}"), true),
        ("empty hooks", String::from("{\"hooks\": {}, \"mcpServers\": {}}\n"), true),
        ("Chinese", String::from("{\"说明\": \"保留\", \"emoji\": \"😀\"}\n"), true),
        (
            "numbers as they are",
            String::from("{\"n\": 1.0e5, \"big\": 123456789012345678901234567890}\n"),
            true,
        ),
        ("invalid", String::from("{\n  \"a\": 1\n  \"b\": 2\n}\n"), false),
        ("cut off", String::from("{\"hooks\": {"), false),
        ("a list", String::from("[]"), false),
        ("hooks as a list", String::from("{\n  \"x\": 1,\n  \"hooks\": []\n}"), false),
        ("an event as an object", format!("{{\"hooks\": {{\n\"{event}\": {{}}}}}}"), false),
        ("hooks twice", String::from("{\"hooks\": {},\n\"hooks\": {}}"), false),
        ("no text", String::from("\u{0}\u{1}"), false),
    ]
}

#[test]
fn nasty_files_come_through_byte_by_byte() {
    for agent in AGENTS {
        for scope in Scope::ALL {
            for (what, text, is_taken) in nasty(agent) {
                let world = World::new();
                let file = agent.hooks_file(scope, &world.folders);
                write(&file, &text);
                let before = world.files();
                let context = format!("{} {}: {what}", agent.id(), scope.as_str());
                let done = world.install(agent, scope, "/opt/my tools/tanmi");
                let outcome =
                    &done.iter().find(|done| done.planned.target.path == file).unwrap().planned.outcome;
                if !is_taken {
                    assert!(matches!(outcome, ChangeOutcome::Refused(_)), "{context}: {outcome:?}");
                    assert_eq!(std::fs::read(&file).unwrap(), text.as_bytes(), "{context}");
                    world.uninstall(agent, scope);
                    assert_eq!(world.files(), before, "{context}");
                    continue;
                }
                assert_eq!(*outcome, ChangeOutcome::Change, "{context}");
                check_installed(agent, &file, &context);
                let again = world.install(agent, scope, "/opt/my tools/tanmi");
                assert!(
                    again.iter().all(|done| done.planned.outcome == ChangeOutcome::Unchanged),
                    "{context}: twice"
                );
                world.uninstall(agent, scope);
                assert_eq!(world.files(), before, "{context}");
                assert!(!world.home().join("install").exists(), "{context}: nothing is left");
            }
        }
    }
}

/// Every event has us once, and what was there is still there.
fn check_installed(agent: &Agent, file: &Path, context: &str) {
    let now = parsed(file);
    for hook in agent.hooks {
        let list = now["hooks"][hook.event].as_array().unwrap_or_else(|| panic!("{context}: {now}"));
        let text = Value::from(list.clone()).to_string();
        assert_eq!(
            text.matches("/opt/my tools/tanmi").count(),
            if agent.shape == HookFormat::Shells { 2 } else { 1 }
        );
    }
    if now.get("model").is_some() {
        assert_eq!((&now["model"], &now["hooks"]["Else"]), (&json!("x"), &json!([])), "{context}");
        assert_eq!(now["hooks"][event(agent)].as_array().unwrap().len(), 2, "{context}: theirs and ours");
    }
}

#[test]
fn servers_come_and_go_and_other_people_s_stay() {
    for agent in AGENTS {
        let world = World::new();
        let Some(file) = agent.mcp_file(Scope::User, &world.folders) else { continue };
        let is_toml = agent.id() == "codex";
        let theirs = match is_toml {
            true => "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"other\" # keep\n",
            false => {
                "{\n  // mine\n  \"mcpServers\": {\"other\": {\"command\": \"other\"}},\n  \"z\": 1\n}\n"
            }
        };
        for text in
            [theirs.to_owned(), theirs.replace('\n', "\r\n"), format!("\u{feff}{theirs}"), String::new()]
        {
            write(&file, &text);
            world.install(agent, Scope::User, "/a/tanmi");
            let now = std::fs::read_to_string(&file).unwrap();
            assert!(
                now.contains("/a/tanmi") && now.contains("other") | text.is_empty(),
                "{}: {now}",
                agent.id()
            );
            assert_eq!(text.contains('\r'), now.contains('\r'), "{}: {now:?}", agent.id());
            assert!(
                !text.contains('\r') || !now.replace("\r\n", "").contains('\n'),
                "{}: {now:?}",
                agent.id()
            );
            // Moved: brought up to date in place, with whatever the person added to it.
            write(&file, now.replace("\"mcp\"", "\"mcp\" "));
            world.install(agent, Scope::User, "/b/tanmi");
            let now = std::fs::read_to_string(&file).unwrap();
            assert!(now.contains("/b/tanmi") && !now.contains("/a/tanmi"), "{now}");
            world.uninstall(agent, Scope::User);
            let left = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(!left.contains("tanmi"), "{left}");
            assert_eq!(left.contains("# keep") || left.contains("// mine"), !text.is_empty(), "{left}");
            let _ = std::fs::remove_file(&file);
        }
        let taken = match is_toml {
            true => "[mcp_servers.tanmi]\ncommand = \"somebody\"\n",
            false => "{\"mcpServers\": {\n\"tanmi\": {\"command\": \"somebody\"}}}",
        };
        write(&file, taken);
        let done = world.install(agent, Scope::User, "/a/tanmi");
        let refused = done.iter().find(|done| done.planned.target.path == file).unwrap();
        let ChangeOutcome::Refused(Refusal::NameTaken { line, .. }) = &refused.planned.outcome else {
            panic!("{}: {:?}", agent.id(), refused.planned.outcome)
        };
        assert_eq!(*line, if is_toml { 1 } else { 2 }, "{}", agent.id());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), taken);
    }
}

#[test]
fn refusals_name_the_line() {
    let world = World::new();
    let agent = &AGENTS[0];
    let file = agent.hooks_file(Scope::User, &world.folders);
    for (text, line) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 2),
        ("{\n\n  \"hooks\": []\n}", 3),
        ("{\"hooks\": {\n  \"Stop\": [],\n  \"SessionStart\": 7\n}}", 3),
        ("{\"hooks\": {},\n\"hooks\": {}}", 2),
    ] {
        write(&file, text);
        let planned = plan(world.target_files(agent, Scope::User).remove(0), &options("/t/tanmi"));
        let ChangeOutcome::Refused(refusal) = &planned.outcome else { panic!("{text}") };
        assert_eq!(refusal.line(), Some(line), "{text}: {refusal:?}");
    }
}

/// An older version wrote hours for seconds, left out resumed sessions, and stood there twice.
#[test]
fn an_older_entry_is_brought_up_to_date_in_place() {
    let world = World::new();
    let agent = &AGENTS[0];
    let file = agent.hooks_file(Scope::User, &world.folders);
    let old = json!({"hooks": {"SessionStart": [
        {"matcher": "startup|clear|compact", "hooks": [
            {"type": "command", "command": "/old/tanmi hook claude-code SessionStart", "timeout": 10000}]},
        {"hooks": [{"type": "command", "command": "theirs"}]},
        {"hooks": [
            {"type": "command", "command": "also theirs"},
            {"type": "command", "command": "tanmi hook claude-code"}]}]}});
    write(&file, serde_json::to_string_pretty(&old).unwrap());
    world.install(agent, Scope::User, "/new/tanmi");
    assert_eq!(
        parsed(&file)["hooks"]["SessionStart"],
        json!([
            {"hooks": [{"type": "command", "command": "/new/tanmi hook claude-code SessionStart", "timeout": 10}]},
            {"hooks": [{"type": "command", "command": "theirs"}]},
            {"hooks": [{"type": "command", "command": "also theirs"}]}])
    );
    world.uninstall(agent, Scope::User);
    let left = json!([{"hooks": [{"type": "command", "command": "theirs"}]}, {"hooks": [{"type": "command", "command": "also theirs"}]}]);
    assert_eq!(parsed(&file)["hooks"]["SessionStart"], left, "and only that is ours");
}

#[test]
fn what_a_person_changed_since_stays() {
    for agent in AGENTS {
        let world = World::new();
        let file = agent.hooks_file(Scope::Project, &world.folders);
        write(&file, "{\n  \"keep\": true\n}\n");
        world.install(agent, Scope::Project, "/t/tanmi");
        let edited = std::fs::read_to_string(&file)
            .unwrap()
            .replace("\"keep\": true", "\"keep\": false, \"more\": [1]");
        write(&file, &edited);
        // Installing again must not make the older state the one that is given back.
        world.install(agent, Scope::Project, "/u/tanmi");
        world.uninstall(agent, Scope::Project);
        assert_eq!(parsed(&file), json!({"keep": false, "more": [1]}), "{}", agent.id());
        assert!(!std::fs::read_to_string(&file).unwrap().contains("tanmi"));
    }
}

#[test]
fn without_receipts_our_entries_still_go() {
    for agent in AGENTS {
        let world = World::new();
        world.install(agent, Scope::User, "/t/tanmi");
        assert!(!world.files().is_empty());
        tanmi_base::fs::remove_tree(&world.home()).unwrap();
        world.uninstall(agent, Scope::User);
        for (path, bytes) in world.files() {
            assert!(!String::from_utf8_lossy(&bytes).contains("tanmi"), "{}", path.display());
        }
    }
}

/// A copy that was damaged is worth nothing: our entries are taken out one by one instead.
#[test]
fn a_damaged_copy_is_not_given_back() {
    let world = World::new();
    let agent = &AGENTS[0];
    let file = agent.hooks_file(Scope::User, &world.folders);
    write(&file, "{ \"a\" : 1 }");
    world.install(agent, Scope::User, "/t/tanmi");
    for entry in std::fs::read_dir(world.home().join("install")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "before") {
            write(&entry.path(), "GARBAGE");
        }
    }
    world.uninstall(agent, Scope::User);
    assert_eq!(parsed(&file), json!({"a": 1}));
}

/// Words of a person's in a place that is otherwise empty without us.
#[test]
fn comments_stay_where_nothing_else_does() {
    let world = World::new();
    let agent = &AGENTS[0];
    let file = agent.hooks_file(Scope::User, &world.folders);
    let text = "{\"a\":1,\"hooks\":{\n// keep me\n}}";
    write(&file, text);
    world.install(agent, Scope::User, "/t/tanmi");
    tanmi_base::fs::remove_tree(&world.home()).unwrap();
    world.uninstall(agent, Scope::User);
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(left.contains("// keep me") && !left.contains("tanmi"), "{left}");
    let codex = AGENTS.iter().find(|agent| agent.id() == "codex").unwrap();
    let file = codex.mcp_file(Scope::User, &world.folders).unwrap();
    write(&file, "a = 1\r\nb = \"\"\"x\ny\"\"\"\n# c\n[mcp_servers] # d\n# inside\n");
    let before = std::fs::read_to_string(&file).unwrap();
    world.install(codex, Scope::User, "/t/tanmi");
    let with = std::fs::read_to_string(&file).unwrap();
    assert!(with.starts_with(&before), "what is there is not touched: {with:?}");
    write(
        &file,
        with.replace("[mcp_servers.tanmi]", "# mine\n[mcp_servers.tanmi]")
            .replace("args =", "# also mine\nargs ="),
    );
    world.uninstall(codex, Scope::User);
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(left.contains("# mine") && left.contains("# also mine") && left.contains("# inside"), "{left}");
    assert!(!left.contains("tanmi"), "{left}");
}

/// Two agents below one new folder, and a file that was created by somebody else in between.
#[test]
fn folders_that_were_made_go_with_the_last_file() {
    let world = World::new();
    let new = world.dir.path().join("new");
    let folders = Folders::new(world.folders.user.clone(), world.folders.project.clone(), |name| {
        Some(new.join(if name == "CODEX_HOME" { "b" } else { "a" }))
    });
    let world = World { folders, ..world };
    let agents = ["claude-code", "codex"].map(|id| AGENTS.iter().find(|agent| agent.id() == id).unwrap());
    agents.iter().for_each(|agent| drop(world.install(agent, Scope::User, "/t/tanmi")));
    assert!(new.join("a/settings.json").exists() && new.join("b/config.toml").exists());
    agents.iter().for_each(|agent| drop(world.uninstall(agent, Scope::User)));
    assert!(!new.exists());
}

/// What a killed process left beside people's files goes with the next install.
#[test]
fn leftovers_are_swept() {
    let world = World::new();
    let agent = &AGENTS[0];
    let file = agent.hooks_file(Scope::User, &world.folders);
    let left = file.with_file_name("tmp-4194304-0-abcdef");
    let theirs = file.with_file_name("tmp-notes");
    write(&left, "secret");
    write(&theirs, "mine");
    world.install(agent, Scope::User, "/t/tanmi");
    assert!(!left.exists() && theirs.exists());
}

#[cfg(unix)]
#[test]
fn links_are_followed_modes_kept_and_read_only_files_left_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let world = World::new();
    let agent = &AGENTS[0];
    let (file, real) =
        (agent.hooks_file(Scope::User, &world.folders), world.dir.path().join("dotfiles/settings.json"));
    write(&real, "{}\n");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink(&real, &file).unwrap();
    world.install(agent, Scope::User, "/t/tanmi");
    assert!(tanmi_base::fs::is_link(&file), "still a link");
    assert!(parsed(&real)["hooks"]["Stop"].is_array());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    world.uninstall(agent, Scope::User);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{}\n");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o440)).unwrap();
    let outcome = |world: &World| world.install(agent, Scope::User, "/t/tanmi")[0].planned.outcome.clone();
    assert_eq!(outcome(&world), ChangeOutcome::Refused(Refusal::ReadOnly));
    std::fs::remove_file(&real).unwrap();
    assert!(matches!(outcome(&world), ChangeOutcome::Refused(Refusal::BrokenLink)), "a broken link");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(matches!(outcome(&world), ChangeOutcome::Refused(Refusal::NotAFile)), "a folder");
}

/// An agent rewrites its file all the time: what it wrote is never put back to what it was before.
#[test]
fn an_agent_that_rewrites_its_file_loses_nothing() {
    let world = World::new();
    let agent = &AGENTS[0];
    let file = agent.mcp_file(Scope::User, &world.folders).unwrap();
    write(&file, "{\"n\": 0}");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let rest = || std::thread::sleep(std::time::Duration::from_millis(3));
    let wrote = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Nobody else counts. For a moment somebody may be swapped in; then theirs is back.
                if parsed(&file)["n"] != n {
                    rest();
                }
                let mut value = parsed(&file);
                assert_eq!(value["n"], n, "what was written last is gone");
                n += 1;
                value["n"] = n.into();
                let temp = file.with_extension("tmp");
                write(&temp, value.to_string());
                std::fs::rename(&temp, &file).unwrap();
                rest();
            }
            n
        });
        for round in 0..40 {
            world.install(agent, Scope::User, &format!("/{round}/tanmi"));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert_eq!(parsed(&file)["n"], wrote);
    assert!(wrote > 3, "they met");
}

/// Two handlers of ours in one group, as somebody may have copied them, leave no empty group behind.
#[test]
fn a_group_goes_with_the_last_of_its_handlers() {
    let world = World::new();
    let agent = &AGENTS[0];
    let file = agent.hooks_file(Scope::User, &world.folders);
    let handler = json!({"type": "command", "command": "/old/tanmi hook claude-code Stop"});
    write(&file, json!({"a": 1, "hooks": {"Stop": [{"hooks": [handler, handler]}]}}).to_string());
    world.uninstall(agent, Scope::User);
    assert_eq!(parsed(&file), json!({"a": 1}));
}

/// Two agents whose settings are one file by a link: what is one's and what is the other's both go.
#[cfg(unix)]
#[test]
fn two_agents_with_one_file() {
    let world = World::new();
    let [claude, gemini] =
        ["claude-code", "gemini-cli"].map(|id| AGENTS.iter().find(|agent| agent.id() == id).unwrap());
    let (one, two) =
        (claude.hooks_file(Scope::User, &world.folders), gemini.hooks_file(Scope::User, &world.folders));
    write(&one, "{\"a\": 1}");
    std::fs::create_dir_all(two.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&one, &two).unwrap();
    for agent in [claude, gemini] {
        world.install(agent, Scope::User, "/t/tanmi");
    }
    let text = std::fs::read_to_string(&one).unwrap();
    assert!(text.contains("hook claude-code") && text.contains("hook gemini-cli"));
    write(&one, text.replace("\"a\": 1", "\"a\": 2"));
    for agent in [claude, gemini] {
        world.uninstall(agent, Scope::User);
    }
    assert_eq!(parsed(&one), json!({"a": 2}));
}
