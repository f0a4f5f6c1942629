//! The hook lane, and the status line, which is as hasty: chosen by a look at the arguments before anything else. Both
//! read their input for at most two seconds; a pipe of prompts reads to its end, because it must give everything back.
//! All of them exit 0 whatever happens: nothing here fails its agent.

use std::ffi::OsString;
#[cfg(not(unix))]
use std::io::Read;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tanmi_app::pipeline::{Caller, handle, write_log};
use tanmi_app::status_line::StatusLineInput;
use tanmi_base::{Lang, clock, lock, paths};
use tanmi_event::{EventKind, find_platform};

const MAX_INPUT: usize = 16 << 20;
const DEADLINE: Duration = Duration::from_secs(2);

/// `None` if these are not the arguments of a hook.
pub fn run(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    args.next();
    if args.next()? != "hook" {
        return None;
    }
    let rest: Vec<OsString> = args.collect();
    // For hosts that pipe prompts through: the payload comes back with the context before the prompt.
    let is_format = |two: &[OsString]| two[0] == "--format" && two[1] == "prompt";
    if rest.windows(2).any(is_format) || rest.iter().any(|word| word == "--format=prompt") {
        return Some(pipe());
    }
    let mut args = rest.into_iter();
    let platform = args.next().unwrap_or_default();
    let name = args.next();
    // Asking for help is not being run as a hook.
    if platform.is_empty() || platform.to_string_lossy().starts_with('-') {
        return None;
    }
    let name = name.as_ref().and_then(|name| name.to_str());
    let answer = answer(&platform.to_string_lossy(), name);
    if let Some(answer) = answer {
        let mut out = std::io::stdout().lock();
        let _ =
            out.write_all(answer.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    }
    Some(ExitCode::SUCCESS)
}

fn answer(via: &str, name: Option<&str>) -> Option<String> {
    let started = Instant::now();
    let home = paths::home_store()?;
    lock::set_lock_timeout(Duration::from_secs(1));
    let Some(platform) = find_platform(via) else {
        return log(&home, &format!("hook: unknown platform {via:?}"));
    };
    let input = match read_input() {
        Ok(input) => input,
        Err(reason) => return log(&home, &format!("hook {}: {reason}", platform.id)),
    };
    let Some(event) = tanmi_platform::read(platform, name, &input) else {
        if serde_json::from_slice::<serde::de::IgnoredAny>(&input).is_err() {
            return log(&home, &format!("hook {}: the payload is not JSON", platform.id));
        }
        return None;
    };
    if event.kind == EventKind::SessionEnd {
        // Clients wait a second for this one.
        lock::set_lock_timeout(Duration::from_millis(200));
    }
    let client = crate::env::client();
    let (user, context) = (paths::user_home(), crate::env::context());
    let caller = Caller {
        home: &home,
        user: user.as_deref(),
        // After the input: that may have taken its time, and others have spoken meanwhile.
        now: clock::now(),
        locale: Lang::of_locale(),
        client,
        via,
        started,
        disabled: crate::env::is_disabled(),
        context: context.as_deref(),
        mount: None,
    };
    tanmi_platform::write(&event, &handle(&caller, &event))
}

/// `tanmi statusline`, which a client runs as often as it draws: the same short way, one line, and never a failure.
pub fn status_line(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    args.next();
    if args.next()? != "statusline" || args.next().is_some() {
        return None;
    }
    let drawn = read_status_line_input();
    if let Some(home) = paths::home_store() {
        let status = tanmi_app::status_line::read(&home, &drawn, clock::now());
        let lang = tanmi_app::config::Config::load(&home, None).language.unwrap_or_else(Lang::of_locale);
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{}", status.line(lang));
    }
    Some(ExitCode::SUCCESS)
}

/// What a payload names; where a person runs it in a terminal, only the folder is known.
pub fn read_status_line_input() -> StatusLineInput {
    use std::io::IsTerminal;
    let input = if std::io::stdin().is_terminal() { None } else { read_input().ok() };
    let payload: serde_json::Value =
        input.and_then(|input| serde_json::from_slice(&input).ok()).unwrap_or_default();
    let text = |key: &str| payload.get(key).and_then(|value| value.as_str()).map(String::from);
    let cwd = text("cwd").map(PathBuf::from).or_else(|| std::env::current_dir().ok());
    StatusLineInput { session: text("session_id"), cwd }
}

/// What came in, with what is declared before its prompt; unchanged, to the byte, where there is nothing to put there.
fn pipe() -> ExitCode {
    use std::io::Read;
    let mut input = Vec::new();
    let _ = std::io::stdin().lock().read_to_end(&mut input);
    let more = std::str::from_utf8(&input).ok().filter(|_| !crate::env::is_disabled()).and_then(piped);
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(more.as_ref().map_or(&input[..], String::as_bytes)).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

fn piped(input: &str) -> Option<String> {
    let mut payload: serde_json::Value = serde_json::from_str(input).ok()?;
    let prompt = payload.get("prompt")?.as_str()?.to_owned();
    let cwd = payload.get("cwd").and_then(|cwd| cwd.as_str()).map(Into::into);
    let cwd = cwd.or_else(|| std::env::current_dir().ok())?;
    let home = paths::home_store()?;
    if tanmi_session::pause::paused_until(&home, clock::now()).is_some() {
        return None;
    }
    let (user, container) = (paths::user_home(), crate::env::context());
    let text = tanmi_app::declared::for_prompt(&home, user.as_deref(), &cwd, container.as_deref(), &prompt)?;
    payload["prompt"] = format!("{text}\n\n{prompt}").into();
    Some(payload.to_string())
}

/// One line for the person who wonders why nothing happened.
fn log(home: &Path, line: &str) -> Option<String> {
    write_log(home, clock::now(), line);
    None
}

/// Everything up to the end of the input, if that comes in time.
#[cfg(unix)]
fn read_input() -> Result<Vec<u8>, String> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let start = Instant::now();
    let stdin = std::io::stdin();
    let mut input = Vec::new();
    loop {
        // Most payloads are short: room that nobody writes to is room that nobody pays for.
        input.reserve(64 << 10);
        let left = DEADLINE.checked_sub(start.elapsed()).ok_or("the input did not end in two seconds")?;
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(String::from("the input did not end in two seconds")),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.to_string()),
            Ok(_) => {}
        }
        // Past its buffer: what is ready is taken, and nothing is waited for.
        let room = rustix::buffer::spare_capacity(&mut input);
        if rustix::io::read(&stdin, room).map_err(|error| error.to_string())? == 0 {
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
    match receive.recv_timeout(DEADLINE) {
        Ok(Ok(input)) if input.len() <= MAX_INPUT => Ok(input),
        Ok(Ok(_)) => Err(format!("the input is longer than {MAX_INPUT} bytes")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(String::from("the input did not end in two seconds")),
    }
}
