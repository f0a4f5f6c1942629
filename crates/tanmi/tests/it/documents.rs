//! The documents say what is so.

use std::path::{Path, PathBuf};

use crate::env::TestEnv;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn the_reference_is_of_this_program() {
    let written = std::fs::read_to_string(root().join("docs/reference.md")).unwrap_or_default();
    assert_eq!(
        TestEnv::new().ok(&["reference"]),
        written,
        "docs/reference.md is out of date: cargo xtask reference"
    );
}
