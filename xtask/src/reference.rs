//! `cargo xtask reference`: `docs/reference.md`, as the program itself prints it.

use std::path::Path;
use std::process::Command;

use tanmi_base::fs;

pub fn run() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| String::from("cargo"));
    // Whatever this machine has set is no part of it.
    let home = tempfile::tempdir().expect("a scratch folder");
    let output = Command::new(cargo)
        .env("TANMI_HOME", home.path())
        .args(["run", "--quiet", "--package", "tanmi", "--", "reference"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "tanmi reference failed");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::write_atomic(&docs.join("reference.md"), &output.stdout, &docs, fs::Durability::Synced)
        .expect("written");
    println!("docs/reference.md");
}
