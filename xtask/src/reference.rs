//! `cargo xtask reference`: writes the output of `tanmi reference` to `docs/reference.md`.

use std::path::Path;

use tanmi_base::fs;

pub fn run() {
    // An empty home store, so that the user's configuration does not change the output.
    let home = tempfile::tempdir().expect("create a temporary folder");
    let output = crate::cargo::command()
        .env("TANMI_HOME", home.path())
        .args(["run", "--quiet", "--package", "tanmi", "--", "reference"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("run cargo");
    assert!(output.status.success(), "tanmi reference failed");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::write_atomic(&docs.join("reference.md"), &output.stdout, &docs, fs::Durability::Synced)
        .expect("write docs/reference.md");
    println!("wrote docs/reference.md");
}
