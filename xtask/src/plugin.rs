//! `cargo xtask plugin`: writes the files of the Claude Code plugin, which `tanmi_install` generates.

use std::path::Path;

#[allow(clippy::disallowed_methods)] // generated files; Git has the old versions
pub fn run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, text) in tanmi_install::plugin::files(env!("CARGO_PKG_VERSION")) {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().expect("path has a folder")).expect("create a folder");
        std::fs::write(&file, text).expect("write the file");
        println!("wrote {path}");
    }
}
