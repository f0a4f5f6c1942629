//! Licences and sources of dependencies against `deny.toml`. Needs no cargo-deny, which checks more.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns the packages built for this system. Packages of other systems may not have been downloaded.
fn packages() -> Vec<Value> {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "host-tuple"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    metadata["packages"].as_array().unwrap().clone()
}

/// Returns the licences that `deny.toml` allows.
fn allowed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deny.toml")).unwrap();
    let list = text.split_once("\nallow = [").unwrap().1.split_once(']').unwrap().0;
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the licence of a package. A licence that is only a file is recognized by its first line.
fn licence(package: &Value) -> String {
    if let Some(expression) = package["license"].as_str() {
        return expression.to_owned();
    }
    let folder = std::path::Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
    let file =
        package["license_file"].as_str().map(|file| std::fs::read_to_string(folder.join(file)).unwrap());
    match file.as_deref().and_then(|text| text.lines().next()) {
        Some("MIT License") => String::from("MIT"),
        other => panic!("{}: unknown licence {other:?}", package["name"]),
    }
}

/// Returns whether the allowed licences satisfy an SPDX expression. A slash is an older spelling of `OR`.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "{expression}");
    met
}

fn any(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(words, at, allowed);
    }
    met
}

fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    if words[*at] == "(" {
        *at += 1;
        let met = any(words, at, allowed);
        assert_eq!(words.get(*at), Some(&")"), "{words:?}");
        *at += 1;
        return met;
    }
    let mut name = words[*at].to_owned();
    *at += 1;
    if words.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", words[*at + 1]);
        *at += 2;
    }
    allowed.contains(&name)
}

#[test]
fn spdx_expressions_are_evaluated() {
    let allowed: BTreeSet<String> = ["MIT", "Zlib"].map(String::from).into();
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("MIT AND Apache-2.0", false),
        ("MIT AND Zlib", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
        ("Unicode-3.0 OR (MIT AND Zlib)", true),
        ("MIT OR Apache-2.0 AND Unicode-3.0", true),
        ("MIT WITH exception", false),
        ("MIT WITH exception OR Zlib", true),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
}

#[test]
fn licences_are_allowed_and_allow_list_is_minimal() {
    let allowed = allowed();
    let licences: Vec<(String, String)> =
        packages().iter().map(|package| (package["name"].to_string(), licence(package))).collect();
    for (name, expression) in &licences {
        assert!(is_met(expression, &allowed), "{name}: {expression} is not allowed by deny.toml");
    }
    for licence in &allowed {
        let others: BTreeSet<String> = allowed.iter().filter(|other| *other != licence).cloned().collect();
        let is_needed = licences.iter().any(|(_, expression)| !is_met(expression, &others));
        assert!(is_needed, "{licence}: no dependency needs this entry");
    }
}

#[test]
fn dependencies_come_from_one_registry() {
    let packages = packages();
    let sources: BTreeSet<&str> = packages.iter().filter_map(|package| package["source"].as_str()).collect();
    assert!(
        sources.len() == 1 && sources.iter().all(|source| source.starts_with("registry+")),
        "{sources:?}"
    );
}
