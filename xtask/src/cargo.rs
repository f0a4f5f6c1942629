//! Cargo, started as by a person.

use std::process::Command;

/// Returns a command that runs cargo. `cargo run` tells this program the name and version of its package in
/// variables. Some build scripts of dependencies run again if those change, and all that depends on them
/// would be compiled again.
pub fn command() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}
