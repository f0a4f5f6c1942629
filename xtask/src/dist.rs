//! `cargo xtask dist`: builds a release archive with a small static program, its man pages and shell completions, and
//! writes the SHA-256 digest of the archive next to it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(clap::Args)]
pub struct Options {
    /// Target triple to build for; a musl target needs the musl compiler (Debian: musl-tools)
    #[arg(long, value_name = "TRIPLE", default_value = "x86_64-unknown-linux-musl")]
    target: String,
}

/// Prints and runs a command; returns whether it succeeded.
fn run_in(dir: &Path, command: &mut Command) -> bool {
    println!("{command:?}");
    command.current_dir(dir).status().is_ok_and(|status| status.success())
}

#[allow(clippy::disallowed_methods)] // build output, created anew by every run
pub fn run(options: &Options) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("find the repository");
    let target = options.target.as_str();
    let mut build = crate::cargo::command();
    build.args(["build", "--locked", "--package", "tanmi", "--profile", "dist", "--target", target]);
    if !run_in(&root, &mut build) {
        eprintln!(
            "the build for {target} failed; without musl, try --target x86_64-unknown-linux-gnu (also static)"
        );
        return ExitCode::FAILURE;
    }
    let name = format!("tanmi-{}-{target}", env!("CARGO_PKG_VERSION"));
    let (dist, program) = (root.join("target/dist"), root.join(format!("target/{target}/dist/tanmi")));
    let folder = dist.join(&name);
    let _ = std::fs::remove_dir_all(&folder);
    for sub in ["man", "completions"] {
        std::fs::create_dir_all(folder.join(sub)).expect("create a folder");
    }
    for (from, to) in [
        (program.clone(), "tanmi"),
        (root.join("README.md"), "README.md"),
        (root.join("LICENSE-MIT"), "LICENSE-MIT"),
        (root.join("LICENSE-APACHE"), "LICENSE-APACHE"),
    ] {
        std::fs::copy(from, folder.join(to)).expect("copy a file");
    }
    let man = folder.join("man");
    let mut is_complete = run_in(&root, Command::new(&program).args(["man", "--dir"]).arg(&man));
    for (shell, file) in [("bash", "tanmi.bash"), ("zsh", "_tanmi"), ("fish", "tanmi.fish")] {
        let output = Command::new(&program).args(["completions", shell]).output().expect("run the program");
        is_complete &= output.status.success() && !output.stdout.is_empty();
        std::fs::write(folder.join("completions").join(file), output.stdout).expect("write the completions");
    }
    let archive: PathBuf = dist.join(format!("{name}.tar.gz"));
    is_complete &= run_in(&dist, Command::new("tar").arg("-czf").arg(&archive).arg(&name));
    if !is_complete {
        return ExitCode::FAILURE;
    }
    let bytes = std::fs::read(&archive).expect("read the archive");
    let digest = tanmi_base::hash::sha256_hex(&bytes);
    std::fs::write(dist.join(format!("{name}.tar.gz.sha256")), format!("{digest}  {name}.tar.gz\n"))
        .expect("write the digest");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len()) as f64 / 1e6;
    println!("{} ({:.1} MB; program: {:.1} MB)", archive.display(), size(&archive), size(&program));
    ExitCode::SUCCESS
}
