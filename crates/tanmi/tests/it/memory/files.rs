//! Facts that name files.

use serde_json::{Value, json};

use super::memory_dir;
use crate::env::TestEnv;
use crate::mcp::Client;

fn states(memory: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let files = memory["files"].as_array().unwrap().iter();
    files.map(|file| (text(&file["path"]), text(&file["state"]))).collect()
}

fn file(path: &str, state: &str) -> (String, String) {
    (path.to_owned(), state.to_owned())
}

#[test]
fn fact_files_are_recorded_compared_and_listed_as_stale() {
    let env = TestEnv::new();
    let (auth, cache) = (env.project.join("src/auth.rs"), env.project.join("src/cache.rs"));
    env.make(&auth, "fn a() {}");
    env.make(&cache, "fn c() {}");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    env.make(&env.project.join(".git/HEAD"), "ref: refs/heads/main\n");
    env.make(&env.project.join(".git/packed-refs"), &format!("{commit} refs/heads/main\n"));
    let save = |args: &[&str]| {
        env.json(&[&["memory", "save-fact"], args].concat())["id"].as_str().unwrap().to_owned()
    };
    let id = save(&["Tokens are checked in src/auth.rs", "--path", "src/cache.rs"]);
    save(&["A fact without files"]);
    let shown = env.json(&["memory", "show", &id]);
    assert_eq!(states(&shown), [file("src/cache.rs", "same"), file("src/auth.rs", "same")]);
    assert_eq!(shown["commit"], commit);
    assert_eq!(env.json(&["memory", "stale"]), json!({"results": [], "checked": 1}));
    assert!(env.ok(&["memory", "stale"]).contains("no stale facts"));
    env.make(&auth, "fn b() {}");
    std::fs::remove_file(&cache).unwrap();
    let found = env.json(&["memory", "search", "tokens"])["results"][0].clone();
    assert_eq!(states(&found), [file("src/cache.rs", "gone"), file("src/auth.rs", "changed")]);
    let text = env.ok(&["memory", "search", "tokens"]);
    assert!(text.contains("src/auth.rs changed since") && text.contains("src/cache.rs is gone"), "{text}");
    let stale = env.json(&["memory", "stale", "--limit", "5"]);
    assert_eq!((&stale["results"][0]["id"], &stale["checked"]), (&json!(id), &json!(1)));
    assert_eq!(env.json(&["memory", "stale", "--limit", "0"])["results"][0]["id"], json!(id));
    // Saved again, the fact is about the files as they are now.
    env.tick(1000);
    let again = env.json(&["memory", "edit", &id, "Tokens are checked in src/auth.rs"])["id"].clone();
    let shown = env.json(&["memory", "show", again.as_str().unwrap()]);
    assert_eq!(states(&shown), [file("src/auth.rs", "same")]);
    assert_eq!(env.json(&["memory", "stale"])["results"], json!([]));
    let exported = env.ok(&["memory", "export"]);
    let other = TestEnv::new();
    let lines = other.root().join("in.jsonl");
    other.write(&lines, exported.as_bytes());
    other.ok(&["memory", "import", &lines.display().to_string()]);
    assert_eq!(other.ok(&["memory", "export"]), exported, "files and commit are kept");
}

#[test]
fn fact_paths_outside_of_the_project_are_refused() {
    let env = TestEnv::new();
    for path in ["../x", "/etc/passwd", "src/none.rs", "."] {
        let error = env.error(&["memory", "save-fact", "x", "--path", path]);
        assert_eq!(error["code"], "INVALID_ARGUMENT", "{path}");
        assert!(error["message"].as_str().unwrap().contains(path), "{error}");
    }
    let many: Vec<String> = (0..1000).flat_map(|n| ["--path".to_owned(), format!("f{n}")]).collect();
    let mut args = vec!["memory", "save-fact", "x"];
    args.extend(many.iter().map(String::as_str));
    let error = env.error(&args);
    assert!(error["message"].as_str().unwrap().contains("20"), "{error}");
    assert!(!memory_dir(&env).exists(), "nothing is saved");
    let mut client = Client::connect(&env);
    env.make(&env.project.join("a.txt"), "x");
    let saved = client.expect_ok("memory_save", json!({"content": "about a file", "paths": ["a.txt"]}));
    assert_eq!(
        states(&env.json(&["memory", "show", saved["id"].as_str().unwrap()])),
        [file("a.txt", "same")]
    );
    assert_eq!(
        client.expect_error("memory_save", json!({"content": "y", "paths": ["../x"]}))["code"],
        "INVALID_ARGUMENT"
    );
    client.finish();
}

/// A binary that does not know files rewrites daily files only to remove session lines.
#[test]
fn fact_line_with_unknown_keys_is_kept_byte_for_byte() {
    let env = TestEnv::new();
    env.ok(&["memory", "save-fact", "the first"]);
    let day = memory_dir(&env).join("daily/2025-12-11.jsonl");
    let line = r#"{"id":"x","type":"fact","content":"later format","timestamp":"2025-12-11T00:00:00Z","files":[{"path":"a","future":1}],"later":{"k":[1]}}"#;
    let session = r#"{"type":"session_start","timestamp":"2025-12-11T00:00:00Z"}"#;
    let text = format!("{}{session}\n{line}\n", std::fs::read_to_string(&day).unwrap());
    env.write(&day, text.as_bytes());
    env.tick(60 * super::DAY);
    let agent = crate::agent::Agent::claude(&env, "s");
    agent.start("startup");
    agent.send("SessionEnd", "sessionEnd", json!({"reason": "logout"}));
    let kept = std::fs::read_to_string(&day).unwrap();
    assert!(kept.contains(line) && !kept.contains("session_start"), "{kept}");
}

#[test]
fn export_claims_no_writer_and_import_counts_unknown_types() {
    let env = TestEnv::new();
    env.init();
    env.ok(&["memory", "save-fact", "The number is 7"]);
    let exported = env.ok(&["memory", "export"]);
    assert!(!exported.contains("\"by\""), "{exported}");
    let file = env.root().join("facts.jsonl");
    env.write(&file, b"{\"content\":\"ok1\",\"type\":\"B\"}\n{\"content\":\"ok2\",\"type\":\"Z\"}\n");
    let imported = env.json(&["memory", "import", file.to_str().unwrap()]);
    assert_eq!((&imported["added"], &imported["badLines"]), (&1.into(), &1.into()), "{imported}");
    assert!(!env.ok(&["memory", "list"]).contains("ok2"));
}
