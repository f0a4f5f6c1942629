//! Runs an installed hook as its agent would, and looks at the answer.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Why a hook that is installed does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// The program is not there, or cannot be run.
    Missing,
    Exit(i32),
    Slow,
    /// It answered something else than this.
    Answer(String),
}

/// Longer than any hook of ours takes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Gives `payload` to a command line and waits for what it prints. `home` stands in for the home store: nothing of this
/// is remembered.
pub fn run_hook(command: &str, payload: &str, home: &Path) -> Result<String, ProbeError> {
    let mut shell = if cfg!(windows) { Command::new("cmd") } else { Command::new("sh") };
    shell.args([if cfg!(windows) { "/C" } else { "-c" }, command]);
    shell.env("TANMI_HOME", home).env_remove("TANMI_DISABLE");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = shell.spawn().map_err(|_| ProbeError::Missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(payload.as_bytes());
    }
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(ProbeError::Slow);
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Err(_) => return Err(ProbeError::Missing),
        }
    };
    let mut answer = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        let _ = stdout.read_to_string(&mut answer);
    }
    match status.code() {
        Some(0) => Ok(answer),
        Some(126 | 127) => Err(ProbeError::Missing),
        code => Err(ProbeError::Exit(code.unwrap_or(-1))),
    }
}
