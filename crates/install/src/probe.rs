//! Runs an installed hook as its client would and checks the result.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Why an installed hook does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// The program does not exist or cannot be run.
    Missing,
    Exit(i32),
    Slow,
    /// The output is not the expected one.
    Answer(String),
}

/// Longer than any of our hooks takes.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a command line with `payload` on stdin and returns its output. `home` replaces the home store, so that the run
/// leaves no session state.
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
            Ok(None) if start.elapsed() > TIMEOUT => {
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
