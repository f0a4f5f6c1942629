//! `tanmi demo`: its output in both languages, and that it leaves nothing behind.

use crate::env::TestEnv;

fn run_demo(env: &TestEnv) -> String {
    let temp = env.root().join("temp");
    std::fs::create_dir_all(&temp).unwrap();
    let output = env.command(&["demo"]).env("TMPDIR", &temp).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0, "no temporary file is left");
    assert!(!env.home_store().exists() && !env.project.join(".tanmi-workspace").exists());
    let text = env.redact(&String::from_utf8(output.stdout).unwrap());
    // The scratch folder, ids and measured times differ in every run.
    let has_short_id =
        |line: &str| ["  [W]  ", "  monitoring   ", "  completed    "].iter().any(|mark| line.contains(mark));
    let lines = text.lines().map(|line| match (line.find("tanmi-demo-"), line.rfind("tok  ")) {
        (Some(at), _) => format!("{}tanmi-demo-…", &line[..at]),
        _ if has_short_id(line) && !line.ends_with("root") => format!("{}…", &line[..line.len() - 4]),
        _ if line.contains(" fact-") => {
            line.split(" fact-").next().unwrap_or_default().to_owned() + " fact-…"
        }
        (_, Some(at)) if line.ends_with(" ms") => format!("{}tok  … ms", &line[..at]),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn demo_english_output() {
    insta::assert_snapshot!(run_demo(&TestEnv::new()));
}

#[test]
fn demo_chinese_output() {
    insta::assert_snapshot!(run_demo(&TestEnv::with_lang("zh_CN.UTF-8")));
}

#[test]
fn demo_keep_leaves_usable_project() {
    let env = TestEnv::new();
    let dir = env.root().join("kept");
    let name = dir.display().to_string();
    let report = env.json(&["demo", "--keep", &name]);
    let scenes = report["scenes"].as_array().unwrap();
    let injected = |n: usize| scenes[n]["told"].as_str();
    assert_eq!(report["kept"], name.as_str());
    assert!(injected(0).unwrap().contains("demo-0001") && injected(1) == Some(""), "{report}");
    let tree = env.run_in(&dir.join("project"), &["tree"]);
    assert!(tree.ok && tree.stdout.contains("Verify tokens"), "{}{}", tree.stdout, tree.stderr);
    assert_eq!(env.error(&["demo", "--keep", &name])["code"], "IO", "an existing folder is not overwritten");
}
