//! The hook lane: `tanmi hook`, `tanmi hook --format prompt` and `tanmi statusline`, chosen before argument parsing so
//! that they start fast.
//!
//! Hooks and the status line read their input for at most two seconds. The prompt filter reads to the end of the input,
//! because it has to return all of it. Invariant: all of them exit with 0, even after an error, so that they never
//! disturb the client.

use std::ffi::OsString;
#[cfg(not(unix))]
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tanmi_app::pipeline::{Caller, handle, write_log};
use tanmi_app::status_line::StatusLineInput;
use tanmi_app::stores::Stores;
use tanmi_base::{Lang, clock, lock, paths};
use tanmi_event::EventKind;
use tanmi_platform::CLIENTS;

const MAX_INPUT: usize = 16 << 20;
/// A read with less free memory would return the input in small pieces.
#[cfg(unix)]
const MIN_SPARE: usize = 4 << 10;
const INPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs `tanmi hook`. `None` if these are not the arguments of a hook.
pub fn run(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    args.next();
    if args.next()? != "hook" {
        return None;
    }
    let rest: Vec<OsString> = args.collect();
    // For hosts that pipe payloads through a command: the context is inserted before the prompt.
    let is_format = |two: &[OsString]| two[0] == "--format" && two[1] == "prompt";
    if rest.windows(2).any(is_format) || rest.iter().any(|word| word == "--format=prompt") {
        return Some(run_prompt_filter());
    }
    let mut args = rest.into_iter();
    let platform = args.next().unwrap_or_default();
    let name = args.next();
    // `tanmi hook` or `tanmi hook --help`: clap prints the help.
    if platform.is_empty() || platform.to_string_lossy().starts_with('-') {
        return None;
    }
    let name = name.as_ref().and_then(|name| name.to_str());
    let output = handle_event(&platform.to_string_lossy(), name);
    if let Some(output) = output {
        let mut out = std::io::stdout().lock();
        let _ =
            out.write_all(output.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    }
    Some(ExitCode::SUCCESS)
}

/// Handles the event on stdin and returns the output for the client, if any.
fn handle_event(via: &str, name: Option<&str>) -> Option<String> {
    let started = Instant::now();
    let home = paths::home_store()?;
    lock::set_lock_timeout(Duration::from_secs(1));
    let Some(platform) = CLIENTS.find_platform(via) else {
        return log(&home, &format!("hook: unknown platform {via:?}"));
    };
    let input = match read_input() {
        Ok(input) => input,
        Err(reason) => return log(&home, &format!("hook {}: {reason}", platform.id)),
    };
    let Some(event) = CLIENTS.read(platform, name, &input) else {
        if serde_json::from_slice::<serde::de::IgnoredAny>(&input).is_err() {
            return log(&home, &format!("hook {}: the payload is not JSON", platform.id));
        }
        return None;
    };
    if event.kind == EventKind::SessionEnd {
        // Clients wait only one second for the hook of a session end.
        lock::set_lock_timeout(Duration::from_millis(200));
    }
    let client = crate::env::client();
    let (user, context) = (paths::user_home(), crate::env::context_file());
    let stores = Stores::local(&home);
    let caller = Caller {
        home: &home,
        stores: &stores,
        user: user.as_deref(),
        // Read after the input, which may take long: other hooks may have injected texts in the meantime.
        now: clock::now(),
        locale: Lang::of_locale(),
        reader: None,
        client,
        client_version: crate::env::client_version,
        via,
        started,
        disabled: crate::env::is_disabled(),
        suggests_commands: false,
        context: context.as_deref(),
        mount: None,
        uses_tags: true,
    };
    CLIENTS.write(&event, &handle(&caller, &event).text)
}

/// Runs `tanmi statusline`, which a client runs at every redraw. `None` if these are not its arguments.
pub fn status_line(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    args.next();
    if args.next()? != "statusline" || args.next().is_some() {
        return None;
    }
    let input = read_status_line_input();
    if let Some(home) = paths::home_store() {
        let status = tanmi_app::status_line::read(&home, &Stores::local(&home), &input, clock::now());
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{}", status.line(crate::env::language()));
    }
    Some(ExitCode::SUCCESS)
}

/// Reads the session and the folder from the payload. Without a payload, e.g. in a terminal, only the working directory
/// is known.
pub fn read_status_line_input() -> StatusLineInput {
    use std::io::IsTerminal;
    let input = if std::io::stdin().is_terminal() { None } else { read_input().ok() };
    let payload = input.map(|input| CLIENTS.read_status_line(&input)).unwrap_or_default();
    let cwd = payload.cwd.or_else(|| std::env::current_dir().ok());
    StatusLineInput { session: payload.session, cwd }
}

/// Writes the payload on stdin to stdout, with the declared context inserted before its prompt. Invariant: if there is
/// nothing to insert, the output is byte for byte the input.
fn run_prompt_filter() -> ExitCode {
    use std::io::Read;
    let mut input = Vec::new();
    let _ = std::io::stdin().lock().read_to_end(&mut input);
    let text = std::str::from_utf8(&input).ok().filter(|_| !crate::env::is_disabled());
    let extended = text.and_then(add_declared_context);
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(extended.as_ref().map_or(&input[..], String::as_bytes)).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

/// Returns the payload with the declared context before its prompt; `None` if there is nothing to insert.
fn add_declared_context(input: &str) -> Option<String> {
    let mut payload: serde_json::Value = serde_json::from_str(input).ok()?;
    let prompt = payload.get("prompt")?.as_str()?.to_owned();
    let cwd = payload.get("cwd").and_then(|cwd| cwd.as_str()).map(Into::into);
    let cwd = cwd.or_else(|| std::env::current_dir().ok())?;
    let home = paths::home_store()?;
    if tanmi_session::pause::paused_until(&home, clock::now()).is_some() {
        return None;
    }
    let (user, container) = (paths::user_home(), crate::env::context_file());
    let text = tanmi_app::declared::for_prompt(&home, user.as_deref(), &cwd, container.as_deref(), &prompt)?;
    payload["prompt"] = format!("{text}\n\n{prompt}").into();
    Some(payload.to_string())
}

/// Writes one line to the log, so that the user can find out why a hook did nothing. Returns `None`.
fn log(home: &Path, line: &str) -> Option<String> {
    write_log(home, clock::now(), line);
    None
}

/// Reads stdin to its end. An error if that takes longer than [`INPUT_TIMEOUT`] or the input is too long.
#[cfg(unix)]
fn read_input() -> Result<Vec<u8>, String> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let start = Instant::now();
    let stdin = std::io::stdin();
    let mut input = Vec::new();
    loop {
        // Growing the buffer copies it, so it is reserved once. Memory that is never written to costs nothing, and a
        // block of this size is mapped separately: freeing it leaves no hole in the heap.
        if input.capacity() - input.len() < MIN_SPARE {
            input.reserve(256 << 10);
        }
        let left =
            INPUT_TIMEOUT.checked_sub(start.elapsed()).ok_or("the input did not end in two seconds")?;
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(String::from("the input did not end in two seconds")),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.to_string()),
            Ok(_) => {}
        }
        // Bypasses the buffer of `Stdin`: the read returns the available bytes and does not block.
        let spare = rustix::buffer::spare_capacity(&mut input);
        if rustix::io::read(&stdin, spare).map_err(|error| error.to_string())? == 0 {
            return Ok(input);
        }
        if input.len() > MAX_INPUT {
            return Err(format!("the input is longer than {MAX_INPUT} bytes"));
        }
    }
}

#[cfg(not(unix))]
fn read_input() -> Result<Vec<u8>, String> {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut input = Vec::new();
        let read = std::io::stdin().lock().take(MAX_INPUT as u64 + 1).read_to_end(&mut input);
        let _ = send.send(read.map(|_| input));
    });
    match receive.recv_timeout(INPUT_TIMEOUT) {
        Ok(Ok(input)) if input.len() <= MAX_INPUT => Ok(input),
        Ok(Ok(_)) => Err(format!("the input is longer than {MAX_INPUT} bytes")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(String::from("the input did not end in two seconds")),
    }
}
