//! Install and uninstall on files of many formats. Content that is not ours stays unchanged byte for byte.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tanmi_base::Lang;
use tanmi_platform::{CLIENTS, ClientSpec, HookFormat, Scope};
use tempfile::TempDir;

use crate::plan::{TargetFile, target_files};
use crate::*;

mod acme;
mod any;
mod line_ends;
#[cfg(unix)]
mod links;
mod new_client;
mod one_line;
mod tools;

struct TestEnv {
    dir: TempDir,
    folders: Folders,
}

impl TestEnv {
    fn new() -> TestEnv {
        let dir = tempfile::tempdir().unwrap();
        let (user, project) = (dir.path().join("user"), dir.path().join("project"));
        std::fs::create_dir_all(&user).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let folders = Folders::new(user, project, |_| None);
        TestEnv { dir, folders }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn target_files(&self, client: &'static ClientSpec, scope: Scope) -> Vec<TargetFile> {
        target_files(client, scope, &self.folders, Some(&options("/opt/tanmi")))
    }

    fn install(&self, client: &'static ClientSpec, scope: Scope, program: &str) -> Vec<AppliedChange> {
        let options = options(program);
        let plans =
            self.target_files(client, scope).into_iter().map(|target| plan(target, &options)).collect();
        apply(&self.home(), plans, &options, 1).unwrap()
    }

    fn uninstall(&self, client: &'static ClientSpec, scope: Scope) -> Vec<AppliedChange> {
        let receipts = Receipts::load(&self.home());
        let target_files = target_files(client, scope, &self.folders, None).into_iter();
        let plans = target_files.filter_map(|target| plan_removal(target, &receipts)).collect();
        remove(&self.home(), plans).unwrap()
    }

    /// Returns all files outside the home store.
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
        allow_tools: true,
        has_tool_rules: true,
    }
}

#[allow(clippy::disallowed_methods)] // simulates the editor of a user
fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn parsed(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    crate::json::Json::parse(text.trim_start_matches('\u{feff}')).unwrap().value()
}

fn find(id: &str) -> &'static ClientSpec {
    CLIENTS.iter().find(|client| client.id() == id).unwrap()
}

fn event(client: &ClientSpec) -> &'static str {
    client.recipe.hooks[0].event
}

/// Returns a hook handler of another program in the format of this client.
fn foreign_handler(client: &ClientSpec, command: &str) -> Value {
    match client.recipe.hook_format {
        HookFormat::Groups => {
            json!({"matcher": "startup", "hooks": [{"type": "command", "command": command}]})
        }
        HookFormat::Flat => json!({"command": command}),
        HookFormat::Shells => json!({"type": "command", "bash": command}),
    }
}

/// Returns unusual settings files: description, content, and whether an installation is possible.
fn unusual_files(client: &ClientSpec) -> Vec<(&'static str, String, bool)> {
    let event = event(client);
    let other = foreign_handler(client, "/opt/other/tanmi-like hook claude-code SessionStart");
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
fn install_unusual_files_round_trip_byte_by_byte() {
    for client in CLIENTS.iter() {
        for scope in Scope::ALL {
            for (description, text, is_accepted) in unusual_files(client) {
                let env = TestEnv::new();
                let file = env.folders.hook_file(client, scope);
                write(&file, &text);
                let before = env.files();
                let context = format!("{} {}: {description}", client.id(), scope.as_str());
                let done = env.install(client, scope, "/opt/my tools/tanmi");
                let outcome =
                    &done.iter().find(|done| done.planned.target.path == file).unwrap().planned.outcome;
                if !is_accepted {
                    assert!(matches!(outcome, ChangeOutcome::Refused(_)), "{context}: {outcome:?}");
                    assert_eq!(std::fs::read(&file).unwrap(), text.as_bytes(), "{context}");
                    env.uninstall(client, scope);
                    assert_eq!(env.files(), before, "{context}");
                    continue;
                }
                assert_eq!(*outcome, ChangeOutcome::Change, "{context}");
                check_installed(client, &file, &context);
                let again = env.install(client, scope, "/opt/my tools/tanmi");
                assert!(
                    again.iter().all(|done| done.planned.outcome == ChangeOutcome::Unchanged),
                    "{context}: second installation"
                );
                env.uninstall(client, scope);
                assert_eq!(env.files(), before, "{context}");
                assert!(!env.home().join("install").exists(), "{context}: nothing is left");
            }
        }
    }
}

/// Checks that every event has our hook once and that other content is still there.
fn check_installed(client: &ClientSpec, file: &Path, context: &str) {
    let now = parsed(file);
    for hook in client.recipe.hooks {
        let list = now["hooks"][hook.event].as_array().unwrap_or_else(|| panic!("{context}: {now}"));
        let text = Value::from(list.clone()).to_string();
        assert_eq!(
            text.matches("/opt/my tools/tanmi").count(),
            if client.recipe.hook_format == HookFormat::Shells { 2 } else { 1 }
        );
    }
    if now.get("model").is_some() {
        assert_eq!((&now["model"], &now["hooks"]["Else"]), (&json!("x"), &json!([])), "{context}");
        assert_eq!(now["hooks"][event(client)].as_array().unwrap().len(), 2, "{context}: theirs and ours");
    }
}

#[test]
fn server_install_and_uninstall_keep_other_servers() {
    for client in CLIENTS.iter() {
        let env = TestEnv::new();
        let Some(file) = env.folders.server_file(client, Scope::User) else { continue };
        let is_toml = client.id() == "codex";
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
            env.install(client, Scope::User, "/a/tanmi");
            let now = std::fs::read_to_string(&file).unwrap();
            assert!(
                now.contains("/a/tanmi") && now.contains("other") | text.is_empty(),
                "{}: {now}",
                client.id()
            );
            assert_eq!(text.contains('\r'), now.contains('\r'), "{}: {now:?}", client.id());
            assert!(
                !text.contains('\r') || !now.replace("\r\n", "").contains('\n'),
                "{}: {now:?}",
                client.id()
            );
            // The program moved: the entry is updated in place and keeps edits of the user.
            write(&file, now.replace("\"mcp\"", "\"mcp\" "));
            env.install(client, Scope::User, "/b/tanmi");
            let now = std::fs::read_to_string(&file).unwrap();
            assert!(now.contains("/b/tanmi") && !now.contains("/a/tanmi"), "{now}");
            env.uninstall(client, Scope::User);
            let left = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(!left.contains("tanmi"), "{left}");
            assert_eq!(left.contains("# keep") || left.contains("// mine"), !text.is_empty(), "{left}");
            let _ = std::fs::remove_file(&file);
        }
        let foreign_server = match is_toml {
            true => "[mcp_servers.tanmi]\ncommand = \"other\"\n",
            false => "{\"mcpServers\": {\n\"tanmi\": {\"command\": \"other\"}}}",
        };
        write(&file, foreign_server);
        let done = env.install(client, Scope::User, "/a/tanmi");
        let refused = done.iter().find(|done| done.planned.target.path == file).unwrap();
        let ChangeOutcome::Refused(Refusal::NameTaken { line, .. }) = &refused.planned.outcome else {
            panic!("{}: {:?}", client.id(), refused.planned.outcome)
        };
        assert_eq!(*line, if is_toml { 1 } else { 2 }, "{}", client.id());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), foreign_server);
    }
}

#[test]
fn plan_invalid_file_refusal_names_line() {
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.hook_file(client, Scope::User);
    for (text, line) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 2),
        ("{\n\n  \"hooks\": []\n}", 3),
        ("{\"hooks\": {\n  \"Stop\": [],\n  \"SessionStart\": 7\n}}", 3),
        ("{\"hooks\": {},\n\"hooks\": {}}", 2),
    ] {
        write(&file, text);
        let planned = plan(env.target_files(client, Scope::User).remove(0), &options("/t/tanmi"));
        let ChangeOutcome::Refused(refusal) = &planned.outcome else { panic!("{text}") };
        assert_eq!(refusal.line(), Some(line), "{text}: {refusal:?}");
    }
}

/// The file has entries of an older version: a wrong timeout unit, a matcher without resumed sessions, a duplicate.
#[test]
fn install_older_entries_are_updated_in_place() {
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.hook_file(client, Scope::User);
    let old = json!({"hooks": {"SessionStart": [
        {"matcher": "startup|clear|compact", "hooks": [
            {"type": "command", "command": "/old/tanmi hook claude-code SessionStart", "timeout": 10000}]},
        {"hooks": [{"type": "command", "command": "theirs"}]},
        {"hooks": [
            {"type": "command", "command": "also theirs"},
            {"type": "command", "command": "tanmi hook claude-code"}]}]}});
    write(&file, serde_json::to_string_pretty(&old).unwrap());
    env.install(client, Scope::User, "/new/tanmi");
    assert_eq!(
        parsed(&file)["hooks"]["SessionStart"],
        json!([
            {"hooks": [{"type": "command", "command": "/new/tanmi hook claude-code SessionStart", "timeout": 10}]},
            {"hooks": [{"type": "command", "command": "theirs"}]},
            {"hooks": [{"type": "command", "command": "also theirs"}]}])
    );
    env.uninstall(client, Scope::User);
    let left = json!([{"hooks": [{"type": "command", "command": "theirs"}]}, {"hooks": [{"type": "command", "command": "also theirs"}]}]);
    assert_eq!(parsed(&file)["hooks"]["SessionStart"], left, "only our handlers are removed");
}

#[test]
fn uninstall_edited_file_keeps_user_changes() {
    for client in CLIENTS.iter() {
        let env = TestEnv::new();
        let file = env.folders.hook_file(client, Scope::Project);
        write(&file, "{\n  \"keep\": true\n}\n");
        env.install(client, Scope::Project, "/t/tanmi");
        let edited = std::fs::read_to_string(&file)
            .unwrap()
            .replace("\"keep\": true", "\"keep\": false, \"more\": [1]");
        write(&file, &edited);
        // A second installation must not restore the state before the edit later.
        env.install(client, Scope::Project, "/u/tanmi");
        env.uninstall(client, Scope::Project);
        assert_eq!(parsed(&file), json!({"keep": false, "more": [1]}), "{}", client.id());
        assert!(!std::fs::read_to_string(&file).unwrap().contains("tanmi"));
    }
}

#[test]
fn uninstall_without_receipts_removes_own_entries() {
    for client in CLIENTS.iter() {
        let env = TestEnv::new();
        env.install(client, Scope::User, "/t/tanmi");
        assert!(!env.files().is_empty());
        tanmi_base::fs::remove_tree(&env.home()).unwrap();
        env.uninstall(client, Scope::User);
        for (path, bytes) in env.files() {
            assert!(!String::from_utf8_lossy(&bytes).contains("tanmi"), "{}", path.display());
        }
    }
}

/// With a damaged copy of the original file, our entries are removed one by one.
#[test]
fn uninstall_damaged_copy_is_not_restored() {
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.hook_file(client, Scope::User);
    write(&file, "{ \"a\" : 1 }");
    env.install(client, Scope::User, "/t/tanmi");
    for entry in std::fs::read_dir(env.home().join("install")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "before") {
            write(&entry.path(), "GARBAGE");
        }
    }
    env.uninstall(client, Scope::User);
    assert_eq!(parsed(&file), json!({"a": 1}));
}

/// Comments of the user stay in a container that is empty without our entries.
#[test]
fn uninstall_comments_in_empty_containers_are_kept() {
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.hook_file(client, Scope::User);
    let text = "{\"a\":1,\"hooks\":{\n// keep me\n}}";
    write(&file, text);
    env.install(client, Scope::User, "/t/tanmi");
    tanmi_base::fs::remove_tree(&env.home()).unwrap();
    env.uninstall(client, Scope::User);
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(left.contains("// keep me") && !left.contains("tanmi"), "{left}");
    let codex = find("codex");
    let file = env.folders.server_file(codex, Scope::User).unwrap();
    write(&file, "a = 1\r\nb = \"\"\"x\ny\"\"\"\n# c\n[mcp_servers] # d\n# inside\n");
    let before = std::fs::read_to_string(&file).unwrap();
    env.install(codex, Scope::User, "/t/tanmi");
    let with = std::fs::read_to_string(&file).unwrap();
    assert!(with.starts_with(&before), "existing content is unchanged: {with:?}");
    write(
        &file,
        with.replace("[mcp_servers.tanmi]", "# mine\n[mcp_servers.tanmi]")
            .replace("args =", "# also mine\nargs ="),
    );
    env.uninstall(codex, Scope::User);
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(left.contains("# mine") && left.contains("# also mine") && left.contains("# inside"), "{left}");
    assert!(!left.contains("tanmi"), "{left}");
}

/// Two clients share a new parent folder; it is removed with the last file.
#[test]
fn uninstall_created_folders_are_removed_with_last_file() {
    let env = TestEnv::new();
    let new = env.dir.path().join("new");
    let folders = Folders::new(env.folders.user.clone(), env.folders.project.clone(), |name| {
        Some(new.join(if name == "CODEX_HOME" { "b" } else { "a" }))
    });
    let env = TestEnv { folders, ..env };
    let clients = ["claude-code", "codex"].map(find);
    clients.iter().for_each(|client| drop(env.install(client, Scope::User, "/t/tanmi")));
    assert!(new.join("a/settings.json").exists() && new.join("b/config.toml").exists());
    clients.iter().for_each(|client| drop(env.uninstall(client, Scope::User)));
    assert!(!new.exists());
}

/// The next installation removes temporary files that a killed process left next to settings files.
#[test]
fn install_leftover_temporary_files_are_removed() {
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.hook_file(client, Scope::User);
    let left = file.with_file_name("tmp-4194304-0-abcdef");
    let theirs = file.with_file_name("tmp-notes");
    write(&left, "secret");
    write(&theirs, "mine");
    env.install(client, Scope::User, "/t/tanmi");
    assert!(!left.exists() && theirs.exists());
}

/// A process was killed after it had displaced a file that the client had just written.
#[cfg(target_os = "linux")]
#[test]
fn displaced_file_of_client_gets_its_place_back() {
    use tanmi_base::fs::FileSig;
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.hook_file(client, Scope::User);
    let displace = |newest: &str| {
        let sig = FileSig::of(&file).unwrap().unwrap();
        let sig = format!("{:x}.{:x}.{:x}", sig.mtime_ns, sig.size, sig.inode);
        let name = file.file_name().unwrap().to_str().unwrap();
        write(&file.with_file_name(format!("swap-4194304-0-abcdef-{sig}-1.1.1-{name}")), newest);
    };
    write(&file, "{\"old\": 1}\n");
    env.install(client, Scope::User, "/t/tanmi");
    displace("{\"newest\": 1}\n");
    env.install(client, Scope::User, "/t/tanmi");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("newest") && text.contains("/t/tanmi"), "{text}");
    // The same in an uninstall, which had already written the file without our entries.
    write(&file, "{\"old\": 1}\n");
    displace(&text);
    env.uninstall(client, Scope::User);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"newest\": 1}\n");
    assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn install_links_modes_and_read_only_files_are_respected() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let (file, real) =
        (env.folders.hook_file(client, Scope::User), env.dir.path().join("dotfiles/settings.json"));
    write(&real, "{}\n");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink(&real, &file).unwrap();
    env.install(client, Scope::User, "/t/tanmi");
    assert!(tanmi_base::fs::is_link(&file), "the path is still a link");
    assert!(parsed(&real)["hooks"]["Stop"].is_array());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    env.uninstall(client, Scope::User);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{}\n");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o440)).unwrap();
    let outcome = |env: &TestEnv| env.install(client, Scope::User, "/t/tanmi")[0].planned.outcome.clone();
    assert_eq!(outcome(&env), ChangeOutcome::Refused(Refusal::ReadOnly));
    std::fs::remove_file(&real).unwrap();
    assert!(matches!(outcome(&env), ChangeOutcome::Refused(Refusal::BrokenLink)), "a broken link");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(matches!(outcome(&env), ChangeOutcome::Refused(Refusal::NotAFile)), "a folder");
}

/// A client rewrites its file during installations. Its changes must never be reverted.
#[test]
fn install_concurrent_rewrites_by_client_are_kept() {
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.server_file(client, Scope::User).unwrap();
    write(&file, "{\"n\": 0}");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let rest = || std::thread::sleep(std::time::Duration::from_millis(3));
    let wrote = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Only this thread increments `n`. A concurrent replacement can show an older value for a moment.
                let is_last = |value: &Value| value["n"] == n;
                let reads = (0..1000).map(|_| parsed(&file)).inspect(|value| {
                    if !is_last(value) {
                        rest()
                    }
                });
                let mut value = reads.into_iter().find(is_last).expect("the last write is there");
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
            env.install(client, Scope::User, &format!("/{round}/tanmi"));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert_eq!(parsed(&file)["n"], wrote);
    assert!(wrote > 3, "the installations and the writer must overlap");
}

/// Two of our handlers in one group, as a user may have copied them, leave no empty group behind.
#[test]
fn uninstall_last_handler_removes_its_group() {
    let env = TestEnv::new();
    let client = CLIENTS.0[0];
    let file = env.folders.hook_file(client, Scope::User);
    let handler = json!({"type": "command", "command": "/old/tanmi hook claude-code Stop"});
    write(&file, json!({"a": 1, "hooks": {"Stop": [{"hooks": [handler, handler]}]}}).to_string());
    env.uninstall(client, Scope::User);
    assert_eq!(parsed(&file), json!({"a": 1}));
}

/// Two clients share one settings file through a link. The hooks of both are removed.
#[cfg(unix)]
#[test]
fn uninstall_two_clients_with_one_linked_file_removes_both() {
    let env = TestEnv::new();
    let [claude, gemini] = ["claude-code", "gemini-cli"].map(find);
    let (one, two) = (env.folders.hook_file(claude, Scope::User), env.folders.hook_file(gemini, Scope::User));
    write(&one, "{\"a\": 1}");
    std::fs::create_dir_all(two.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&one, &two).unwrap();
    for client in [claude, gemini] {
        env.install(client, Scope::User, "/t/tanmi");
    }
    let text = std::fs::read_to_string(&one).unwrap();
    assert!(text.contains("hook claude-code") && text.contains("hook gemini-cli"));
    write(&one, text.replace("\"a\": 1", "\"a\": 2"));
    for client in [claude, gemini] {
        env.uninstall(client, Scope::User);
    }
    assert_eq!(parsed(&one), json!({"a": 2}));
}
