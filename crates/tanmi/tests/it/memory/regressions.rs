//! Regression tests of memory, and search with an embedding model.

use serde_json::{Value, json};

use super::{DAY, memory_dir, save, search};
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

/// Writes a minimal embedding model, six words in two dimensions, and returns its folder.
fn tiny_model(env: &TestEnv) -> String {
    let dir = env.root().join("model");
    std::fs::create_dir_all(&dir).unwrap();
    let words = ["[UNK]", "car", "automobile", "banana", "fruit", "repair"];
    let vectors: [[f32; 2]; 6] = [[0.0, 0.0], [1.0, 0.0], [0.98, 0.05], [0.0, 1.0], [0.05, 0.98], [0.7, 0.2]];
    let vocab: serde_json::Map<String, Value> =
        words.iter().enumerate().map(|(at, word)| ((*word).to_owned(), json!(at))).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    });
    env.write(&dir.join("tokenizer.json"), tokenizer.to_string().as_bytes());
    env.write(&dir.join("config.json"), json!({"normalize": true}).to_string().as_bytes());
    let data: Vec<u8> = vectors.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    let header =
        json!({"embeddings": {"dtype": "F32", "shape": [6, 2], "data_offsets": [0, data.len()]}}).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&data);
    env.write(&dir.join("model.safetensors"), &file);
    dir.display().to_string()
}

#[test]
fn embedding_model_finds_related_words() {
    let env = TestEnv::new();
    save(&env, "the automobile needs oil");
    save(&env, "a banana a day");
    assert_eq!(search(&env, "car"), [""; 0], "no word in common");
    assert_eq!(env.json(&["memory", "model", "show"]), Value::Null);
    assert_eq!(env.error(&["memory", "model", "add", &env.root().display().to_string()])["code"], "IO");
    let dir = tiny_model(&env);
    assert_eq!(env.json(&["memory", "model", "add", &dir])["dimensions"], 2);
    assert_eq!(search(&env, "car")[0], "the automobile needs oil");
    save(&env, "fruit for all");
    assert_eq!(search(&env, "banana")[0], "a banana a day", "words count for more than meaning");
    assert!(search(&env, "banana").contains(&"fruit for all".to_owned()));
    let id = env.json(&["memory", "search", "car"])["results"][0]["id"].as_str().unwrap().to_owned();
    env.ok(&["memory", "forget", &id]);
    assert!(!search(&env, "car").contains(&"the automobile needs oil".to_owned()));
    std::fs::rename(&dir, env.root().join("gone")).unwrap();
    assert_eq!(search(&env, "banana"), ["a banana a day"], "search works without the model");
    let notice = env.json(&["memory", "search", "banana"])["notice"].clone();
    assert!(notice.as_str().is_some_and(|notice| notice.contains("searched by words only")), "{notice}");
    assert!(env.ok(&["memory", "search", "banana"]).contains("searched by words only"));
    assert_eq!(env.json(&["memory", "model", "remove"])["removed"], true);
    // The doctor reports a missing model, and search still works.
    env.ok(&["memory", "model", "add", &tiny_model(&env)]);
    tanmi_base::fs::remove_tree(&env.root().join("model")).unwrap();
    assert_eq!(search(&env, "banana").len(), 1);
    let doctor = env.run(&["doctor"]);
    assert!(!doctor.ok && doctor.stdout.contains("search uses keywords only"), "{}", doctor.stdout);
}

#[test]
fn import_masks_secrets_everywhere() {
    let env = TestEnv::new();
    let key = concat!("gh", "p_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789");
    let lines = [
        json!({"id": "s1", "type": "summary", "topic": format!("t {key}"), "summary": key, "decisions": [key], "todos": []}),
        json!({"id": "f1", "content": "x", "entities": [key]}),
    ];
    let file = env.root().join("in.jsonl");
    env.write(&file, lines.map(|line| line.to_string()).join("\n").as_bytes());
    env.ok(&["memory", "import", &file.display().to_string()]);
    env.ok(&["memory", "stats"]);
    let text = format!("{}{}", env.ok(&["memory", "export"]), env.ok(&["memory", "list", "--json"]));
    assert!(!text.contains(key) && text.contains("masked"), "{text}");
    let index = std::fs::read(memory_dir(&env).join("index.sqlite")).unwrap();
    assert!(!String::from_utf8_lossy(&index).contains(key));
}

/// A cloned project cannot make a hook write outside of the project.
#[cfg(unix)]
#[test]
fn symlinks_are_not_followed_and_untrusted_memory_is_unchanged() {
    use std::os::unix::fs::symlink;
    let env = TestEnv::new();
    let (profile, day) = (env.root().join("home/.profile"), memory_dir(&env).join("daily/2025-12-11.jsonl"));
    env.write(&profile, b"mine\n");
    std::fs::create_dir_all(memory_dir(&env).join("daily")).unwrap();
    symlink(&profile, &day).unwrap();
    let agent = Agent::claude(&env, "s");
    env.init();
    agent.start("startup");
    agent.send("SessionEnd", "sessionEnd", json!({"reason": "logout"}));
    assert!(
        !memory_dir(&env).join("index.sqlite").exists() && !memory_dir(&env).join(".lock").exists(),
        "an untrusted memory folder is left unchanged"
    );
    env.ok(&["trust", "--yes"]);
    agent.start("startup");
    assert_eq!(env.error(&["memory", "save-fact", "x"])["code"], "IO");
    assert_eq!(std::fs::read(&profile).unwrap(), b"mine\n");
    std::fs::remove_file(&day).unwrap();
    symlink("/etc/passwd", memory_dir(&env).join("MEMORY.md")).unwrap();
    assert!(!agent.start("startup").contains("root:"));
}

#[test]
fn common_words_and_forgotten_facts_hide_no_results() {
    let env = TestEnv::new();
    let lines: Vec<String> = (0..4000)
        .map(|n| {
            let word = if n % 2 == 0 { "alpha" } else { "beta" };
            let kind = if n % 500 == 0 { "B" } else { "W" };
            json!({"id": format!("a{n}"), "content": format!("{word} module project item number{n}"), "memory_type": kind,
                "type": "fact", "session": format!("s{}", n / 100), "timestamp": 1_700_000_000 + n * 60})
            .to_string()
        })
        .collect();
    let file = env.root().join("in.jsonl");
    env.write(&file, lines.join("\n").as_bytes());
    env.ok(&["memory", "import", &file.display().to_string()]);
    let count = |args: &[&str]| {
        env.json(&[&["memory", "search"], args].concat())["results"].as_array().unwrap().len()
    };
    assert_eq!(count(&["alpha beta"]), 10, "words that never occur together");
    assert_eq!(count(&["project", "--session", "s3"]), 10, "a filter on a word that occurs in every fact");
    assert_eq!(count(&["project", "--type", "B"]), 8);
    let forgotten: Vec<String> = (0..300).map(|n| format!("a{n}")).collect();
    let mut args = vec!["memory", "forget"];
    args.extend(forgotten.iter().map(String::as_str));
    env.ok(&args);
    save(&env, "alpha module project item of a special kind");
    assert!(search(&env, "alpha module project special")[0].ends_with("special kind"));
}

#[test]
fn last_change_wins_despite_clock_skew() {
    let env = TestEnv::new();
    let id = save(&env, "the port is 80")["id"].as_str().unwrap().to_owned();
    env.tick(10 * DAY);
    env.ok(&["memory", "forget", &id]);
    env.tick(-5 * DAY);
    env.ok(&["memory", "restore", &id]);
    assert_eq!(search(&env, "port").len(), 1);
    let _ = std::fs::remove_file(memory_dir(&env).join("index.sqlite"));
    assert_eq!(search(&env, "port").len(), 1, "the same with a rebuilt index");
    let other = save(&env, "the port is 81")["id"].as_str().unwrap().to_owned();
    let edited = env.json(&["memory", "edit", &id, "the port is 81"]);
    assert_eq!((&edited["duplicate"], &edited["id"]), (&json!(true), &json!(other)));
    assert_eq!(search(&env, "port"), ["the port is 81"], "replaced by the existing fact");
    assert_eq!(env.error(&["memory", "edit", &id, "the port is 82"])["code"], "NOT_CURRENT");
    for (one, two) in [("timeout > 5", "timeout < 5"), ("limit 1,5", "limit 15")] {
        save(&env, one);
        assert!(save(&env, two).get("duplicate").is_none(), "{two}");
    }
}

#[test]
fn rebuilt_index_gives_same_results() {
    let env = TestEnv::new();
    let id = save(&env, "first words")["id"].as_str().unwrap().to_owned();
    env.tick(2 * DAY);
    env.ok(&["memory", "forget", &id]);
    env.tick(DAY);
    env.ok(&["memory", "restore", &id]);
    env.ok(&["memory", "sync"]);
    let days = |name: &str| memory_dir(&env).join("daily").join(name);
    let check_with_rebuilt_index = |env: &TestEnv| {
        let before = search(env, "first words");
        let _ = std::fs::remove_file(memory_dir(env).join("index.sqlite"));
        assert_eq!(search(env, "first words"), before);
        before.len()
    };
    assert_eq!(check_with_rebuilt_index(&env), 1);
    std::fs::remove_file(days("2025-12-14.jsonl")).unwrap();
    assert_eq!(check_with_rebuilt_index(&env), 0, "without the restore");
    std::fs::remove_file(days("2025-12-13.jsonl")).unwrap();
    assert_eq!(check_with_rebuilt_index(&env), 1, "without the forget");
    let text = std::fs::read_to_string(days("2025-12-11.jsonl")).unwrap();
    std::io::Write::write_all(
        &mut std::fs::OpenOptions::new().write(true).open(days("2025-12-11.jsonl")).unwrap(),
        text.replace("first", "other").as_bytes(),
    )
    .unwrap();
    assert_eq!(search(&env, "other words"), ["other words"], "an edit in place is seen");
}

#[cfg(unix)]
#[test]
fn irregular_files_are_skipped() {
    let env = TestEnv::new();
    save(&env, "sound");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(memory_dir(&env).join("daily/2020-01-01.jsonl"))
            .status()
            .unwrap()
            .success()
    );
    std::fs::create_dir(memory_dir(&env).join("daily/2020-01-02.jsonl")).unwrap();
    env.write(&memory_dir(&env).join("facts.jsonl"), b"{\"content\":\"a\"}\n{\"content\":\"penguin\"}");
    assert_eq!(search(&env, "sound"), ["sound"]);
    assert_eq!(search(&env, "penguin"), ["penguin"], "a last line without a line break");
    env.write(&memory_dir(&env).join("MEMORY.md"), "core words\n".repeat(200_000).as_bytes());
    let agent = Agent::claude(&env, "s");
    assert!(agent.start("startup").contains("core words"));
    agent.send("SessionEnd", "sessionEnd", json!({"reason": "logout"}));
}

#[test]
fn transcripts_are_ingested_separately() {
    let env = TestEnv::new();
    // Search also returns neighbouring turns, so any of the results may contain the word.
    let has = |word: &str| search(&env, word).iter().any(|text| text.contains(word));
    let turn = |text: &str, cwd: &str| {
        json!({"type": "user", "cwd": cwd, "message": {"role": "user", "content": text}}).to_string()
    };
    let write_transcript = |path: &std::path::Path, lines: &[String]| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        env.write(path, lines.join("\n").as_bytes());
    };
    let (a, b) = (env.root().join("a/x.jsonl"), env.root().join("b/x.jsonl"));
    write_transcript(&a, &[turn("redis it is", "/a"), turn("continue", "/a"), turn("continue", "/a")]);
    write_transcript(&b, &[turn("<div> is not centred", "/b")]);
    for path in [&a, &b] {
        env.ok(&["memory", "ingest", &path.display().to_string()]);
    }
    assert!(has("redis") && has("centred"));
    write_transcript(&a, &[turn("a badger, and a longer text than what was there before it", "/a")]);
    env.ok(&["memory", "ingest", &a.display().to_string()]);
    assert!(has("redis") && has("badger"), "ingested turns are kept");
    let slug: String = env
        .project
        .display()
        .to_string()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let own = env.root().join("home/.claude/projects").join(slug);
    write_transcript(&own.join("mine.jsonl"), &[turn("an otter", &env.project.display().to_string())]);
    write_transcript(&own.join("other.jsonl"), &[turn("a giraffe", "/somewhere/else")]);
    env.ok(&["memory", "ingest"]);
    assert!(has("otter") && !has("giraffe"));
}

#[test]
fn import_keeps_hidden_facts_hidden() {
    let env = TestEnv::new();
    let id = |content: &str| save(&env, content)["id"].as_str().unwrap().to_owned();
    let ids = ["one", "two", "three"].map(id);
    env.ok(&["memory", "forget", &ids[0]]);
    env.ok(&["memory", "edit", &ids[1], "two, and a half"]);
    let summary = env.json(&["memory", "save-summary", "--topic", "t", "--summary", "s"]);
    env.ok(&["memory", "forget", summary["id"].as_str().unwrap()]);
    let exported = env.ok(&["memory", "export", "--all"]);
    let seen = |env: &TestEnv| -> Vec<Value> {
        let listed = env.json(&["memory", "list", "--all"])["results"].clone();
        let one = |row: &Value| json!([row["id"], row["content"], row["hidden"], row["replacedBy"]]);
        listed.as_array().unwrap().iter().map(one).collect()
    };
    let other = TestEnv::new();
    let file = other.root().join("all.jsonl");
    let import = |text: &str| {
        other.write(&file, text.as_bytes());
        other.json(&["memory", "import", &file.display().to_string()])
    };
    let imported = import(&exported);
    assert_eq!((&imported["added"], &imported["badLines"]), (&json!(5), &json!(0)), "{exported}");
    assert_eq!(seen(&other), seen(&env));
    // A hidden summary can be restored.
    let summary = summary["id"].as_str().unwrap();
    other.ok(&["memory", "restore", summary]);
    assert_eq!(other.json(&["memory", "show", summary]).get("hidden"), None);
    other.ok(&["memory", "forget", summary]);
    // The other project restored a fact: an import does not hide it again, unless a new fact replaces it.
    other.ok(&["memory", "restore", &ids[0]]);
    env.ok(&["memory", "edit", &ids[2], "three, and a half"]);
    assert_eq!(import(&env.ok(&["memory", "export", "--all"]))["added"], 1);
    let hidden = |id: &str| seen(&other).iter().find(|row| row[0] == id).unwrap()[2] == true;
    assert!(!hidden(&ids[0]) && hidden(&ids[2]));
    // Marks and replacements apply in file order.
    let fact = |id: &str, more: Value| {
        let mut line = json!({"id": id, "content": id, "timestamp": "2025-11-01"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let lines = [
        fact("old", json!({})),
        mark("forget", "old"),
        mark("restore", "old"),
        fact("new", json!({"supersedes": ["old"]})),
        fact("back", json!({"timestamp": "2031-01-01"})),
        mark("forget", "back"),
        mark("restore", "back"),
    ];
    import(&lines.map(|line| line.to_string()).join("\n"));
    assert!(hidden("old") && !hidden("new") && !hidden("back"), "{:?}", seen(&other));
}

fn mark(kind: &str, target: &str) -> Value {
    json!({"type": kind, "target": target})
}

#[test]
fn facts_file_of_older_tool_is_told_at_session_start() {
    let env = TestEnv::new();
    save(&env, "known before");
    let line = |content: &str| json!({"content": content, "timestamp": "2025-12-10T01:00:00Z"}).to_string();
    let path = memory_dir(&env).join("facts.jsonl");
    env.write(&path, (line("penguins swim") + "\n").as_bytes());
    let told = || Agent::claude(&env, "s").start("startup");
    assert!(told().contains("penguins swim"), "before it is indexed: {}", told());
    assert_eq!(search(&env, "penguins").len(), 1);
    assert_eq!(told().matches("penguins swim").count(), 1, "after it is indexed: {}", told());
    env.edit(&path, |text| text + &line("owls fly"));
    assert!(told().contains("owls fly"), "a line that was added: {}", told());
    std::fs::remove_file(memory_dir(&env).join("index.sqlite")).unwrap();
    assert!(told().contains("penguins swim") && told().contains("owls fly"), "without an index: {}", told());
}

/// The three commands of the guide, with the same id.
#[test]
fn edit_forget_and_restore_leave_one_version_in_force() {
    let env = TestEnv::new();
    let id = save(&env, "The API speaks JSON")["id"].as_str().unwrap().to_owned();
    let in_force = || {
        let list = env.json(&["memory", "list"])["results"].clone();
        list.as_array()
            .unwrap()
            .iter()
            .map(|fact| fact["content"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    env.tick(1000);
    let new = env.json(&["memory", "edit", &id, "The API speaks CBOR"])["id"].as_str().unwrap().to_owned();
    let forgotten = env.ok(&["memory", "forget", &id]);
    assert!(forgotten.contains(&format!("superseded by {new}")), "{forgotten}");
    assert_eq!(in_force(), ["The API speaks CBOR"]);
    env.ok(&["memory", "restore", &id]);
    assert_eq!(in_force(), ["The API speaks JSON"]);
    assert_eq!(env.json(&["memory", "show", &new])["replacedBy"], id.as_str());
    let injected = Agent::claude(&env, "s").start("startup");
    assert!(injected.contains("JSON") && !injected.contains("CBOR"), "{injected}");
    env.ok(&["memory", "restore", &new]);
    assert_eq!(in_force(), ["The API speaks CBOR"]);
    std::fs::remove_file(memory_dir(&env).join("index.sqlite")).unwrap();
    assert_eq!(in_force(), ["The API speaks CBOR"], "the same with a rebuilt index");
}

#[test]
fn fact_saved_in_untrusted_project_is_reported_as_not_told() {
    let env = TestEnv::new();
    let line = json!({"content": "came with the clone", "timestamp": "2025-12-11"}).to_string();
    env.make(&memory_dir(&env).join("daily/2025-12-10.jsonl"), &line);
    let is_reported = |notice: &Value| {
        notice
            .as_str()
            .is_some_and(|text| text.contains("No session is told") && text.contains("`tanmi trust`"))
    };
    let saved = save(&env, "by a command");
    assert!(is_reported(&saved["notice"]), "{saved}");
    assert!(env.ok(&["memory", "save-fact", "by a person"]).contains("No session is told"));
    let mut client = Client::connect(&env);
    let saved = client.expect_ok("memory_save", json!({"content": "by a tool"}));
    assert!(is_reported(&saved["notice"]) && !saved.to_string().contains("--yes"), "{saved}");
    let saved = client.expect_ok("memory_summary", json!({"topic": "t", "summary": "s"}));
    assert!(is_reported(&saved["notice"]), "{saved}");
    env.ok(&["trust", "--yes"]);
    assert!(save(&env, "trusted now")["notice"].is_null());
}
