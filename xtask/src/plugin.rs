//! `cargo xtask plugin`: the files of the Claude Code plugin, written from the recipe of the install.

use std::path::Path;

#[allow(clippy::disallowed_methods)] // files of the repository, which has them all
pub fn run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, text) in tanmi_install::plugin::files(env!("CARGO_PKG_VERSION")) {
        let to = root.join(path);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::write(&to, text).expect("written");
        println!("{path}");
    }
}
