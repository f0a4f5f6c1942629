//! The demo: a whole story through the real binary, leaving nothing behind.

use crate::env::TestEnv;

fn play(env: &TestEnv) -> String {
    let temp = env.root().join("temp");
    std::fs::create_dir_all(&temp).unwrap();
    let output = env.command(&["demo"]).env("TMPDIR", &temp).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0, "nothing is left");
    assert!(!env.home_store().exists() && !env.project.join(".tanmi-workspace").exists());
    let text = env.redact(&String::from_utf8(output.stdout).unwrap());
    // Neither the name of the scratch folder, nor that of a fact, nor a measured time is the same twice.
    let lines = text.lines().map(|line| match (line.find("tanmi-demo-"), line.rfind("tok  ")) {
        (Some(at), _) => format!("{}tanmi-demo-…", &line[..at]),
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
    insta::assert_snapshot!(play(&TestEnv::new()));
}

#[test]
fn demo_chinese_output() {
    insta::assert_snapshot!(play(&TestEnv::with_lang("zh_CN.UTF-8")));
}

#[test]
fn demo_keep_leaves_usable_project() {
    let env = TestEnv::new();
    let dir = env.root().join("kept");
    let name = dir.display().to_string();
    let played = env.json(&["demo", "--keep", &name]);
    let scenes = played["scenes"].as_array().unwrap();
    let told = |n: usize| scenes[n]["told"].as_str();
    assert_eq!(played["kept"], name.as_str());
    assert!(told(0).unwrap().contains("demo-session") && told(1) == Some(""), "{played}");
    let tree = env.run_in(&dir.join("project"), &["tree"]);
    assert!(tree.ok && tree.stdout.contains("Verify tokens"), "{}{}", tree.stdout, tree.stderr);
    assert_eq!(env.error(&["demo", "--keep", &name])["code"], "IO", "what somebody has is not written into");
}
