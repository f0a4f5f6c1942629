//! `context build` and `context provision`: building the declared file and provisioning container users.

use std::path::Path;

use serde_json::{Value, json};

use crate::declared_context::{declare, redact_root};
use crate::env::TestEnv;

/// Creates the extensions folder of the specification's example.
fn seed_tree(env: &TestEnv, dir: &Path) {
    let matter =
        |name: &str, about: &str| format!("---\nname: {name}\ndescription: {about}\n---\n\n# {name}\n");
    let agent = "---\nname: generate-docs-agent\ndescription: 智能文档生成编排器\nwhen: 生成技术方案、专利、论文等文档\n---\n";
    env.make(&dir.join("agents/generate-docs-agent.md"), agent);
    env.make(&dir.join("commands/generate-docs.md"), &matter("generate-docs", "生成文档"));
    for (group, name, about) in [
        ("technical", "tech-solution", "技术方案生成"),
        ("technical", "value-proposition", "价值主张文档"),
        ("technical", "thesis-doc", "立论白皮书"),
        ("technical", "ethics-report", "伦理风险评估"),
        ("patent", "tech-disclosure", "技术交底书"),
        ("patent", "patent-writing", "权利要求书"),
        ("paper", "engineering-paper", "工程论文"),
        ("paper", "science-paper", "科学论文"),
    ] {
        env.make(&dir.join(format!("skills/{group}/{name}/SKILL.md")), &matter(name, about));
    }
}

fn seed_manifest() -> Value {
    json!({
        "files": [".claude/CLAUDE.md"],
        "title": "Claude Code Extensions - 扩展上下文",
        "environment": {
            "当前工作目录": "/workspace",
            "默认项目目录": "/workspace/my-workspace",
            "文档输出目录": "/workspace/my-workspace/generated_docs/",
        },
        "skillGroups": {"technical": "技术文档", "patent": "专利文档", "paper": "学术论文"},
        "paths": [
            "所有文档生成操作在 `/workspace` 目录下执行",
            "相对路径基于 `/workspace` 计算",
            "文档默认输出到 `/workspace/my-workspace/generated_docs/` 目录",
            "输出文件命名格式：`[文档类型]_[创意简述]_[时间戳].md`",
        ],
        "intents": [{"use": "generate-docs-agent", "words": ["技术交底书、专利、论文", "技术方案、商业计划、可行性评估", "生成文档、写论文、撰写专利"]}],
    })
}

#[test]
fn provision_specification_example_output() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    let extensions = env.root().join("extensions");
    seed_tree(&env, &extensions);
    let manifest = env.root().join("context.json");
    env.make(&manifest, &seed_manifest().to_string());
    let root = env.root().join("workspace/users");
    let args = [
        "context",
        "provision",
        "--root",
        root.to_str().unwrap(),
        "--user",
        "42",
        "--extensions",
        extensions.to_str().unwrap(),
        "--manifest",
        manifest.to_str().unwrap(),
    ];
    let mut out = redact_root(&env, &env.ok(&args));
    let data = root.join("user_42/data");
    out.push_str(&tree(&data, 0));
    for file in [".claude/CLAUDE.md", ".claude/settings.json", ".mcp.json"] {
        out.push_str(&format!("\n== {file}\n{}", std::fs::read_to_string(data.join(file)).unwrap()));
    }
    out.push_str(&format!("\n== again\n{}", redact_root(&env, &env.ok(&args))));
    insta::assert_snapshot!(out);
    let mut args =
        vec!["context", "show", "--root", root.to_str().unwrap(), "--user", "42", "--platform", "codex"];
    let shown = env.json(&args);
    assert_eq!(shown["declared"][0]["whose"], "container", "{shown}");
    assert!(shown["declared"].as_array().unwrap().iter().any(|file| file["told"] == true), "{shown}");
    // The markers of the builder are not shown to a model.
    args.push("--text");
    let injected = env.ok(&args);
    assert!(injected.contains("generate-docs-agent") && !injected.contains("<!--"), "{injected}");
    // `context build` produces the same file as `context provision`.
    let built = env.run_in(&data, &["context", "build", "--check", "--project", data.to_str().unwrap()]);
    assert!(built.ok, "{}{}", built.stdout, built.stderr);
}

fn tree(dir: &Path, depth: usize) -> String {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut out = String::new();
    for entry in entries {
        let is_dir = entry.path().is_dir();
        let name = entry.file_name().to_string_lossy().into_owned();
        out.push_str(&format!("{}{name}{}\n", "  ".repeat(depth), if is_dir { "/" } else { "" }));
        if is_dir {
            out.push_str(&tree(&entry.path(), depth + 1));
        }
    }
    out
}

#[test]
fn provision_keeps_files_and_edits_of_user() {
    let env = TestEnv::new();
    let (extensions, root) = (env.root().join("ext"), env.root().join("users"));
    seed_tree(&env, &extensions);
    let data = root.join("user_a/data");
    env.make(&data.join(".claude/settings.json"), "{\n  // mine\n  \"editor\": \"vim\",\n}\n");
    env.make(&data.join(".claude/skills/mine/SKILL.md"), "---\nname: mine\ndescription: my own\n---\n");
    env.make(&data.join(".claude/CLAUDE.md"), "# Written by hand\n");
    let provision = |more: &[&str]| {
        let mut args = vec![
            "context",
            "provision",
            "--root",
            root.to_str().unwrap(),
            "--user",
            "a",
            "--extensions",
            extensions.to_str().unwrap(),
        ];
        args.extend(more);
        env.run(&[&args[..], &["--json"]].concat())
    };
    let user =
        |run: &crate::env::Run| serde_json::from_str::<Value>(&run.stdout).unwrap()["users"][0].clone();
    let before = env.files(&root);
    let dry = provision(&["--dry-run"]);
    assert!(dry.ok && !user(&dry)["added"].as_array().unwrap().is_empty());
    assert_eq!(env.files(&root), before, "a dry run changes nothing");
    assert!(provision(&[]).ok);
    let read = |path: &str| std::fs::read_to_string(data.join(path)).unwrap();
    assert!(
        read(".claude/settings.json").contains("// mine")
            && read(".claude/settings.json").contains("SessionStart")
    );
    assert!(
        read(".claude/CLAUDE.md").contains("# Written by hand")
            && read(".claude/CLAUDE.md").contains("**mine**: my own")
    );
    // The user changes a provisioned file; the host changes the same file, removes another and adds one.
    env.write(
        &data.join(".claude/skills/patent/patent-writing/SKILL.md"),
        b"---\nname: patent-writing\ndescription: better\n---\n",
    );
    env.make(
        &extensions.join("skills/patent/patent-writing/SKILL.md"),
        "---\nname: patent-writing\ndescription: newer\n---\n",
    );
    tanmi_base::fs::remove_tree(&extensions.join("skills/paper")).unwrap();
    env.make(&extensions.join("agents/new.md"), "---\nname: new\ndescription: a new one\n---\n");
    env.make(
        &extensions.join("agents/generate-docs-agent.md"),
        "---\nname: generate-docs-agent\ndescription: updated\n---\n",
    );
    let run = provision(&[]);
    let report = user(&run);
    assert!(read(".claude/skills/patent/patent-writing/SKILL.md").contains("better"));
    assert_eq!(report["kept"][0]["reason"], "changed by the user", "{report}");
    assert!(
        !data.join(".claude/skills/paper").exists() && data.join(".claude/skills/mine/SKILL.md").exists()
    );
    assert!(
        read(".claude/agents/generate-docs-agent.md").contains("updated")
            && data.join(".claude/agents/new.md").exists()
    );
    let after = env.files(&root);
    assert!(user(&provision(&[]))["updated"].as_array().unwrap().is_empty());
    assert_eq!(env.files(&root), after);
}

#[test]
fn hostile_folders_are_refused_one_by_one() {
    let env = TestEnv::new();
    let (extensions, root, outside) =
        (env.root().join("ext"), env.root().join("users"), env.root().join("outside"));
    seed_tree(&env, &extensions);
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::create_dir_all(root.join("user_link")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("user_link/data")).unwrap();
    std::fs::create_dir_all(root.join("user_in/data/.claude")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("user_in/data/.claude/skills")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", extensions.join("agents/passwd.md")).unwrap();
    env.make(&extensions.join("agents/broken.md"), "---\nname: [unclosed\n---\n");
    env.make(&extensions.join("agents/bare.md"), "# nothing\n");
    env.make(&extensions.join("agents/twin.md"), "---\nname: generate-docs-agent\ndescription: again\n---\n");
    env.make(&root.join("user_bad/data/.claude/settings.json"), "{\n\"a\": 1\n\"b\": 2}");
    let mut args = vec![
        "context",
        "provision",
        "--root",
        root.to_str().unwrap(),
        "--extensions",
        extensions.to_str().unwrap(),
        "--json",
    ];
    for user in ["../x", "a/b", "..", "", "link", "in", "bad"] {
        args.extend(["--user", user]);
    }
    let run = env.run(&args);
    assert!(!run.ok);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let problems = |user: usize| value["users"][user]["problems"].to_string();
    for bad in 0..4 {
        assert!(problems(bad).contains("invalid user id"), "{}", problems(bad));
    }
    assert!(problems(4).contains("symbolic link") && problems(5).contains("symbolic link"));
    let bad = problems(6);
    for part in ["settings.json", "line 2", "passwd.md", "broken.md", "bare.md", "is already used by"] {
        assert!(bad.contains(part), "{part}: {bad}");
    }
    assert!(
        root.join("user_bad/data/.claude/agents/generate-docs-agent.md").exists(),
        "other files are still provisioned"
    );
    assert_eq!(
        std::fs::read_to_string(root.join("user_bad/data/.claude/settings.json")).unwrap(),
        "{\n\"a\": 1\n\"b\": 2}"
    );
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "nothing is written outside");
    assert!(!env.root().join("x").exists() && !env.root().join("user_").exists());
}

/// Text between the `tanmi:keep` markers belongs to the user and is kept. A file with damaged markers, or with edits
/// outside of them, is refused.
#[test]
fn build_keeps_text_of_user_or_refuses() {
    let env = TestEnv::new();
    let path = env.project.join(".claude/CLAUDE.md");
    let read = || std::fs::read_to_string(&path).unwrap();
    declare(&env, json!({"title": "T <!-- tanmi:keep -->"}));
    env.make(
        &env.project.join(".claude/agents/a.md"),
        "---\nname: a\ndescription: \"<!-- /tanmi:keep --> evil\"\n---\n",
    );
    env.make(&path, "\u{feff}# Mine\r\nTOP\r\n");
    env.ok(&["context", "build"]);
    assert!(
        read().contains("# Mine\nTOP") && read().matches("<!-- tanmi:keep -->").count() == 1,
        "{}",
        read()
    );
    env.ok(&["context", "build", "--check"]);
    env.edit(&path, |text| text.replace("TOP", "TOP\n\nMORE"));
    env.make(&env.project.join(".claude/agents/b.md"), "---\nname: b\ndescription: new\n---\n");
    env.ok(&["context", "build"]);
    assert!(read().contains("TOP\n\nMORE") && read().contains("| b | new |"));
    let built_text = read();
    for damage in [
        built_text.replace("<!-- tanmi:keep -->", ""),
        built_text.replace("<!-- /tanmi:keep -->", ""),
        built_text.replace("<!-- tanmi:keep -->", "").replace("<!-- /tanmi:keep -->", ""),
        built_text.replace("| b | new |", "| b | MINE |"),
        format!("{built_text}APPENDED\n"),
        built_text.replace("MORE", "<!-- tanmi:keep -->"),
        String::from("# Never built\n<!-- tanmi:keep -->\nx\n<!-- /tanmi:keep -->\n"),
    ] {
        env.write(&path, damage.as_bytes());
        assert_eq!(env.error(&["context", "build"])["code"], "FILE_DAMAGED", "{damage}");
        assert_eq!(read(), damage, "the file is unchanged");
    }
}

#[test]
fn build_stays_inside_project() {
    let env = TestEnv::new();
    let outside = env.root().join("outside");
    env.make(&outside.join("agents/x.md"), "---\nname: x\ndescription: SECRET\n---\n");
    std::os::unix::fs::symlink(&outside, env.project.join("d")).unwrap();
    std::os::unix::fs::symlink(outside.join("v.md"), env.project.join("v.md")).unwrap();
    let absolute = outside.join("v.md").display().to_string();
    for output in [
        "../outside/v.md",
        &absolute,
        "zz/../../outside/v.md",
        "d/v.md",
        "d/n/v.md",
        "v.md",
        ".git/config.md",
        "./.git/config.md",
        ".tanmi/x.md",
        "./.tanmi/x.md",
        "main.rs",
        ".mcp.json",
    ] {
        declare(&env, json!({"output": output}));
        assert_eq!(env.error(&["context", "build"])["code"], "FILE_DAMAGED", "{output}");
    }
    for sources in ["../outside", "d", outside.to_str().unwrap()] {
        declare(&env, json!({"sources": sources}));
        assert_eq!(env.error(&["context", "build"])["code"], "FILE_DAMAGED", "{sources}");
    }
    std::fs::create_dir_all(env.project.join(".claude")).unwrap();
    std::os::unix::fs::symlink(outside.join("agents"), env.project.join(".claude/agents")).unwrap();
    declare(&env, json!({}));
    let built = env.ok(&["context", "build"]);
    assert!(built.contains("symbolic link"), "{built}");
    assert!(!std::fs::read_to_string(env.project.join(".claude/CLAUDE.md")).unwrap().contains("SECRET"));
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

/// No manifest and no link in a user's folder gives access to another user's folder.
#[test]
fn users_cannot_reach_each_other() {
    let env = TestEnv::new();
    let (extensions, root) = (env.root().join("ext"), env.root().join("users"));
    seed_tree(&env, &extensions);
    env.make(&extensions.join("skills/s/run.sh"), "#!/bin/sh\n");
    std::fs::set_permissions(
        extensions.join("skills/s/run.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let (one, two) = (root.join("user_1/data"), root.join("user_2/data"));
    env.make(
        &one.join(".claude/commands/generate-docs.md"),
        &std::fs::read_to_string(extensions.join("commands/generate-docs.md")).unwrap(),
    );
    let provision = || {
        env.run(&[
            "context",
            "provision",
            "--root",
            root.to_str().unwrap(),
            "--user",
            "1",
            "--user",
            "2",
            "--extensions",
            extensions.to_str().unwrap(),
            "--json",
        ])
    };
    assert!(provision().ok);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(one.join(".claude/skills/s/run.sh")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o111, 0o111, "a script stays executable");
    // A file that the user already had with the same content is not removed.
    std::fs::remove_file(extensions.join("commands/generate-docs.md")).unwrap();
    assert!(provision().ok);
    assert!(
        one.join(".claude/commands/generate-docs.md").exists()
            && !two.join(".claude/commands/generate-docs.md").exists()
    );
    let of_two = env.files(&two);
    env.make(&two.join("s.md"), "SECRET-OF-TWO");
    env.make(&two.join(".claude/agents/own.md"), "---\nname: own\ndescription: SECRET-OF-TWO\n---\n");
    env.make(&one.join(".tanmi/context.json"), &json!({"files": ["/etc/hostname", "../../user_2/data/s.md", "/workspace/mine.md"], "sources": "../../user_2/data/.claude"}).to_string());
    env.make(&one.join("mine.md"), "OF-ONE");
    let shown = env.ok(&["context", "show", "--root", root.to_str().unwrap(), "--user", "1", "--text"]);
    assert!(shown.contains("OF-ONE") && !shown.contains("SECRET-OF-TWO"), "{shown}");
    assert!(shown.matches("outside the project").count() == 2, "{shown}");
    let run = provision();
    assert!(
        !std::fs::read_to_string(one.join(".claude/CLAUDE.md")).unwrap().contains("SECRET-OF-TWO"),
        "{}",
        run.stdout
    );
    tanmi_base::fs::remove_tree(&one.join(".claude")).unwrap();
    std::os::unix::fs::symlink(two.join(".claude"), one.join(".claude")).unwrap();
    std::fs::remove_file(two.join("s.md")).unwrap();
    std::fs::remove_file(two.join(".claude/agents/own.md")).unwrap();
    assert!(!provision().ok);
    assert_eq!(env.files(&two), of_two, "the other user's files are unchanged");
}

/// The parser of front matter calls itself for every level. One bad file of a user must not end the process.
#[test]
fn deep_or_long_front_matter_is_a_notice() {
    let env = TestEnv::new();
    let root = env.root().join("users");
    let bad = [
        "? ".repeat(100_000),
        "? ".repeat(8_000),
        "- ".repeat(8_000),
        "? - ".repeat(4_000),
        "-\t".repeat(8_000),
        format!("x: y\r{}", "? ".repeat(8_000)),
        format!("a: {}", "x".repeat(17_000)),
    ];
    for folder in [root.join("user_1/data"), env.project.clone()] {
        for (at, matter) in bad.iter().enumerate() {
            let text = format!("---\nname: b\ndescription: d\n{matter}x\n---\n");
            env.make(&folder.join(format!(".claude/agents/bad-{at}.md")), &text);
        }
        env.make(&folder.join(".claude/agents/good.md"), "---\nname: good\ndescription: d\n---\n");
    }
    std::fs::create_dir_all(root.join("user_2/data")).unwrap();
    let run = env.run(&["context", "provision", "--all", "--root", root.to_str().unwrap(), "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let built = env.json(&["context", "build"]);
    assert_eq!(built["agents"], 1, "{built}");
    for notices in [&value["users"][0]["problems"], &built["remarks"]] {
        let reasons = notices.as_array().unwrap().iter().map(|notice| notice["reason"].as_str().unwrap());
        assert_eq!(
            reasons.filter(|reason| reason.contains("too deeply nested")).count(),
            bad.len(),
            "{notices}"
        );
    }
    assert!(root.join("user_2/data/.claude/CLAUDE.md").exists(), "the next user is provisioned");
}

/// What the limits allow is parsed: levels with indentation, and levels that other words separate.
#[test]
fn deepest_allowed_front_matter_does_not_end_the_process() {
    let env = TestEnv::new();
    let indented = |open: &str| -> String {
        let width = open.len() + 1;
        let lines = (0..).take_while(|at| width * at * (at + 1) / 2 + (open.len() + 1) * at < 15_000);
        lines.map(|at| format!("{}{open}\n", " ".repeat(width * at))).collect()
    };
    let rows = format!("{}x:", "? ".repeat(16));
    let mut bad = vec![indented("a:"), indented(&rows), format!("{}{}", indented("a:"), "[".repeat(200))];
    for part in
        ["- &a ", "? &a ", "- !t ", "? !t ", "? a : ", "? \"a\": ", "- a: ", "-\u{feff} ", "? # ", "? |\r"]
    {
        bad.push(part.repeat(15_000 / part.len()));
        bad.push(format!("--- {}", part.repeat(15_000 / part.len())));
    }
    for (at, matter) in bad.iter().enumerate() {
        env.make(&env.project.join(format!(".claude/agents/{at}.md")), &format!("---\n{matter}\n---\n"));
    }
    let built = env.json(&["context", "build"]);
    assert_eq!(built["remarks"].as_array().unwrap().len(), bad.len(), "{built}");
}

/// A clone can carry such links.
#[test]
fn build_follows_no_link_to_manifest() {
    let env = TestEnv::new();
    let outside = env.root().join("outside");
    env.make(&outside.join("context.json"), r#"{"title": "PRIVATE"}"#);
    let link =
        |target: &Path, name: &str| std::os::unix::fs::symlink(target, env.project.join(name)).unwrap();
    link(&outside, ".tanmi");
    assert_eq!(env.error(&["context", "build"])["code"], "FILE_DAMAGED");
    std::fs::remove_file(env.project.join(".tanmi")).unwrap();
    std::fs::create_dir(env.project.join(".tanmi")).unwrap();
    link(&outside.join("context.json"), ".tanmi/context.json");
    let error = env.error(&["context", "build"]);
    assert!(error["code"] == "FILE_DAMAGED" && error.to_string().contains("symbolic link"), "{error}");
    std::fs::remove_file(env.project.join(".tanmi/context.json")).unwrap();
    env.make(&env.project.join(".tanmi/context.json"), &" ".repeat(2 << 20));
    let error = env.error(&["context", "build"]);
    assert!(error.to_string().contains("longer than"), "{error}");
    assert!(!env.project.join(".claude/CLAUDE.md").exists());
}

/// Rules inside of the container decide whether the hook for tool calls is needed, and the host does not know them.
#[test]
fn provision_again_keeps_hook_for_tool_calls() {
    let env = TestEnv::new();
    let root = env.root().join("users");
    std::fs::create_dir_all(root.join("user_1/data")).unwrap();
    let provision = || env.ok(&["context", "provision", "--user", "1", "--root", root.to_str().unwrap()]);
    provision();
    let path = root.join("user_1/data/.claude/settings.json");
    let read = || -> Value { serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap() };
    let mut settings = read();
    assert_eq!(settings["hooks"]["PreToolUse"], Value::Null, "not installed by itself");
    let prompt = settings["hooks"]["UserPromptSubmit"].to_string();
    settings["hooks"]["PreToolUse"] =
        serde_json::from_str(&prompt.replace("UserPromptSubmit", "PreToolUse")).unwrap();
    env.write(&path, settings.to_string().as_bytes());
    provision();
    assert!(read()["hooks"]["PreToolUse"].is_array(), "{}", read());
}
