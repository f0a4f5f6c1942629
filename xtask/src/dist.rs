//! `cargo xtask dist`: a small static program, its man pages and completions, packed with a digest beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(clap::Args)]
pub struct Options {
    /// For which system. musl needs its compiler (Debian: musl-tools)
    #[arg(long, default_value = "x86_64-unknown-linux-musl")]
    target: String,
}

fn run_in(root: &Path, command: &mut Command) -> bool {
    println!("{command:?}");
    command.current_dir(root).status().is_ok_and(|status| status.success())
}

#[allow(clippy::disallowed_methods)] // a build folder, made anew each time
pub fn run(options: &Options) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository");
    let target = options.target.as_str();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| String::from("cargo"));
    let mut build = Command::new(cargo);
    build.args(["build", "--locked", "--package", "tanmi", "--profile", "dist", "--target", target]);
    if !run_in(&root, &mut build) {
        eprintln!("the build for {target} failed; --target x86_64-unknown-linux-gnu is static too");
        return ExitCode::FAILURE;
    }
    let name = format!("tanmi-{}-{target}", env!("CARGO_PKG_VERSION"));
    let (dist, program) = (root.join("target/dist"), root.join(format!("target/{target}/dist/tanmi")));
    let folder = dist.join(&name);
    let _ = std::fs::remove_dir_all(&folder);
    for sub in ["man", "completions"] {
        std::fs::create_dir_all(folder.join(sub)).expect("a folder");
    }
    for (from, to) in [
        (program.clone(), "tanmi"),
        (root.join("README.md"), "README.md"),
        (root.join("LICENSE-MIT"), "LICENSE-MIT"),
        (root.join("LICENSE-APACHE"), "LICENSE-APACHE"),
    ] {
        std::fs::copy(from, folder.join(to)).expect("copied");
    }
    let man = folder.join("man");
    let mut made = run_in(&root, Command::new(&program).args(["man", "--dir"]).arg(&man));
    for (shell, file) in [("bash", "tanmi.bash"), ("zsh", "_tanmi"), ("fish", "tanmi.fish")] {
        let out = Command::new(&program).args(["completions", shell]).output().expect("it runs");
        made &= out.status.success() && !out.stdout.is_empty();
        std::fs::write(folder.join("completions").join(file), out.stdout).expect("written");
    }
    let archive: PathBuf = dist.join(format!("{name}.tar.gz"));
    made &= run_in(&dist, Command::new("tar").arg("-czf").arg(&archive).arg(&name));
    if !made {
        return ExitCode::FAILURE;
    }
    let bytes = std::fs::read(&archive).expect("the archive");
    let digest = tanmi_base::hash::sha256_hex(&bytes);
    std::fs::write(dist.join(format!("{name}.tar.gz.sha256")), format!("{digest}  {name}.tar.gz\n"))
        .expect("written");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len()) as f64 / 1e6;
    println!("{} ({:.1} MB, the program {:.1} MB)", archive.display(), size(&archive), size(&program));
    ExitCode::SUCCESS
}
