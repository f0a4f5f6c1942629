//! Rules of the architecture that can be checked with Cargo metadata and the sources: which crate uses which
//! dependency, and which environment variables are read.

use std::collections::BTreeSet;

use serde_json::Value;

fn metadata() -> Value {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Returns the crates of this workspace that depend on `dependency` directly.
fn users_of(metadata: &Value, dependency: &str) -> BTreeSet<String> {
    let packages = metadata["packages"].as_array().unwrap();
    let ours = packages.iter().filter(|package| package["source"].is_null());
    ours.filter(|package| {
        let named = package["dependencies"].as_array().unwrap();
        named.iter().any(|d| d["name"] == dependency && d["kind"] != "dev")
    })
    .map(|package| package["name"].as_str().unwrap().to_owned())
    .collect()
}

#[test]
fn crate_dependencies_match_the_layers() {
    let metadata = metadata();
    let only = |dependency: &str, users: &[&str]| {
        let users: BTreeSet<String> = users.iter().map(|user| (*user).to_owned()).collect();
        assert_eq!(users_of(&metadata, dependency), users, "crates that use {dependency}");
    };
    only("rusqlite", &["tanmi-index"]);
    only("tanmi-index", &["tanmi-app", "tanmi-memory", "tanmi-workspace"]);
    only("cel", &["tanmi-engine"]);
    only("tanmi-app", &["tanmi", "tanmi-server"]);
    only("tanmi-engine", &["tanmi-app"]);
    only("tanmi-platform", &["tanmi", "tanmi-app", "tanmi-engine", "tanmi-install", "tanmi-server"]);
    only("clap", &["tanmi", "xtask"]);
    only("tokio-postgres", &["tanmi-pg"]);
    only("tokio", &["tanmi-pg", "tanmi-server"]);
    only("rmcp", &["tanmi-server"]);
}

#[test]
fn dependencies_are_declared_in_the_workspace() {
    let metadata = metadata();
    let root = metadata["workspace_root"].as_str().unwrap();
    for package in
        metadata["packages"].as_array().unwrap().iter().filter(|package| package["source"].is_null())
    {
        let manifest = std::fs::read_to_string(package["manifest_path"].as_str().unwrap()).unwrap();
        for line in manifest.lines().skip_while(|line| !line.contains("dependencies")) {
            let is_entry = line.contains('=')
                && !line.starts_with('[')
                && !line.starts_with("name")
                && !line.starts_with("path");
            let is_lint = line.starts_with("workspace = true") || line.starts_with("unsafe_code");
            assert!(!is_entry || is_lint || line.contains("workspace = true"), "{root}: {line}");
        }
    }
}

/// Checks the variables that are read by a literal name; other variables come from tables.
#[test]
fn environment_variables_are_in_the_reference() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let reference = std::fs::read_to_string(root.join("docs/reference.md")).unwrap();
    let mut checked = 0;
    for source in sources(&root.join("crates")) {
        let text = std::fs::read_to_string(&source).unwrap();
        for call in text.split("env::var").skip(1) {
            let call = call.strip_prefix("_os").unwrap_or(call);
            let Some((name, _)) = call.strip_prefix("(\"").and_then(|rest| rest.split_once('"')) else {
                continue;
            };
            assert!(reference.contains(&format!("`{name}`")), "{}: {name}", source.display());
            checked += 1;
        }
    }
    assert!(checked > 0, "no environment variable was found");
}

#[test]
fn file_stores_are_named_only_where_they_are_opened() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../app/src");
    let names = ["FileStore", "FileMemory", "FileBindings", "FileLedger"];
    let named: BTreeSet<String> = sources(&root)
        .into_iter()
        .filter(|source| {
            let text = std::fs::read_to_string(source).unwrap();
            names.iter().any(|name| text.contains(name))
        })
        .map(|source| source.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(named, BTreeSet::from([String::from("stores.rs")]));
}

/// Files outside of `platform` and `install` that name clients, and why.
const FILES_WITH_CLIENT_NAMES: &[&str] = &[
    // Descriptions of settings.
    "app/src/config.rs",
    // The folder of an older tool, which is used in place.
    "memory/src/folder.rs",
    // Help texts.
    "tanmi/src/cli.rs",
    "tanmi/src/cli/context.rs",
    "tanmi/src/cli/examples.rs",
    "tanmi/src/cli/install.rs",
    "tanmi/src/cli/memory.rs",
    "tanmi/src/cli/rules.rs",
    "tanmi/src/cli/zh/control.rs",
    "tanmi/src/cli/zh/setup.rs",
    "tanmi/src/cli/zh/work.rs",
];

/// Returns the code of a source in lower case, without tests. Comments are omitted, except those that clap shows as
/// help.
fn code(text: &str, is_help: bool) -> String {
    let text = text.split("\nmod tests {").next().unwrap();
    let lines = text.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("//") || is_help && line.starts_with("///")
    });
    lines.collect::<Vec<_>>().join("\n").to_lowercase()
}

#[test]
fn clients_are_named_only_in_platform_and_install() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut names: BTreeSet<String> = BTreeSet::new();
    for client in tanmi_platform::CLIENTS.iter() {
        let environment = &client.environment;
        let variables = environment.agent.iter().chain(environment.session).chain(&environment.process);
        let words = client.platform.aliases.iter().chain(variables).chain(&client.recipe.folder_variable);
        names.extend(words.map(|name| name.to_lowercase()));
        names.extend([client.id(), client.recipe.program, client.recipe.folder].map(str::to_lowercase));
        names.extend(client.name.split(' ').next().map(str::to_lowercase));
    }
    let mut found = BTreeSet::new();
    for source in sources(&root) {
        let path = source.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        let is_theirs = path.starts_with("platform/") || path.starts_with("install/");
        if is_theirs || path.ends_with("/tests.rs") {
            continue;
        }
        let code = code(&std::fs::read_to_string(&source).unwrap(), path.starts_with("tanmi/src/cli"));
        if names.iter().any(|name| code.contains(name.as_str())) {
            found.insert(path);
        }
    }
    let allowed: BTreeSet<String> = FILES_WITH_CLIENT_NAMES.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(found, allowed, "files that name a client");
}

/// A type with more public methods has more than one subject.
#[test]
fn public_types_have_at_most_25_public_methods() {
    const MAX: usize = 25;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut methods: std::collections::BTreeMap<String, usize> = Default::default();
    for source in sources(&root) {
        let krate = source.strip_prefix(&root).unwrap().iter().next().unwrap().to_string_lossy().into_owned();
        let mut subject = None;
        for line in std::fs::read_to_string(&source).unwrap().lines() {
            if line.starts_with("impl") || line.starts_with("pub trait") {
                // The methods of a trait are those of the trait, not of each type that implements it.
                let is_counted = !line.contains(" for ");
                let name = line.split([' ', '<', '{', ':']).find(|word| {
                    !["impl", "pub", "trait", "'_>"].contains(word) && word.starts_with(char::is_uppercase)
                });
                subject = name
                    .filter(|_| is_counted)
                    .map(|name| (format!("{krate}::{name}"), line.starts_with("pub")));
            } else if line == "}" {
                subject = None;
            } else if let Some((name, is_trait)) = &subject {
                let is_method = line.starts_with("    pub fn") || (*is_trait && line.starts_with("    fn"));
                *methods.entry(name.clone()).or_default() += usize::from(is_method);
            }
        }
    }
    assert!(methods.len() > 100, "only {} types were found", methods.len());
    let large: Vec<_> = methods.into_iter().filter(|(_, count)| *count > MAX).collect();
    assert!(large.is_empty(), "{large:?}");
}

/// Returns the Rust sources below a folder of crates, without tests.
fn sources(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "tests" {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
