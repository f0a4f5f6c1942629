//! Prints the output of commands: text, JSON, notes and errors. The hook lane writes its output itself.

pub mod progress;

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::Value;
use tanmi_base::{Lang, text};

use crate::env;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RED: Style = AnsiColor::Red.on_default();
pub const GREEN: Style = AnsiColor::Green.on_default();
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
pub const BLUE: Style = AnsiColor::Blue.on_default();

/// Returns styled text. The output stream removes the style if it is not a terminal.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Returns the number of columns of the output: `COLUMNS` if it is set, else the width of the terminal.
/// `None` for a file or a pipe, which have no width.
pub fn columns() -> Option<usize> {
    let terminal = || {
        let is_terminal = std::io::stdout().is_terminal();
        terminal_size::terminal_size().filter(|_| is_terminal).map(|(width, _)| usize::from(width.0))
    };
    env::columns().or_else(terminal).filter(|columns| *columns > 0)
}

/// Whether an output could not be written.
static OUTPUT_FAILED: AtomicBool = AtomicBool::new(false);

/// Returns whether an output could not be written. The program then exits with failure.
pub fn has_output_failed() -> bool {
    OUTPUT_FAILED.load(Ordering::Relaxed)
}

/// Records and reports a failed write, e.g. to a full disk. A closed pipe (`| head`) is not an error.
fn report_write_error(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
        && !OUTPUT_FAILED.swap(true, Ordering::Relaxed)
    {
        let lang = crate::env::language();
        let what = lang.pick("无法写出结果", "cannot write the output");
        labelled(RED.bold(), "错误", "error", &format!("{what}: {error}"), lang);
    }
}

/// Prints a text for people.
pub fn text(text: &str) {
    let text = &clean(text);
    let mut out = anstream::stdout().lock();
    let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    report_write_error(
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(end)).and_then(|()| out.flush()),
    );
}

/// Prints a document: as it is into a file or a pipe, cleaned in a terminal.
pub fn document(document: &str) {
    match std::io::stdout().is_terminal() {
        true => text(document),
        false => raw(document.as_bytes()),
    }
}

/// Prints a question to standard error, without a line end.
pub fn question(question: &str) {
    let mut out = anstream::stderr().lock();
    let _ = write!(out, "{}", clean(question)).and_then(|()| out.flush());
}

/// Prints bytes unchanged, for another program.
pub fn raw(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    report_write_error(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Prints JSON. It bypasses the colour filter, which would remove escape characters from the data.
pub fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(line) => {
            let mut out = std::io::stdout().lock();
            report_write_error(writeln!(out, "{line}").and_then(|()| out.flush()));
        }
        Err(error) => json_error("INTERNAL", &error.to_string()),
    }
}

pub fn json_error(code: &str, message: &str) {
    json(&serde_json::json!({"error": {"code": code, "message": message}}));
}

/// Prints a line to standard error.
pub fn note(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", clean(line));
}

/// Makes the characters of a text visible that would change how a terminal shows the rest: every text for
/// people passes here. The styles of [`paint`] stay.
fn clean(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut out = text::printable(parts.next().unwrap_or_default());
    for part in parts {
        let end =
            part.strip_prefix('[').and_then(|style| style.find(|c: char| !c.is_ascii_digit() && c != ';'));
        match end {
            Some(end) if part[1 + end..].starts_with('m') => out.push('\x1b'),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
        out.push_str(&text::printable(part));
    }
    out
}

/// Prints a line of a log to standard error, without a filter for colours.
pub fn log_line(line: &str) {
    // One write, so that lines of several threads do not mix. A log that cannot be written stops no server.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Prints a line with a label such as `error:` to standard error.
pub fn labelled(style: Style, zh: &str, en: &str, line: &str, lang: Lang) {
    let (label, colon) = lang.pick((zh, "："), (en, ": "));
    note(&format!("{}{colon}{line}", paint(style, label)));
}

/// Prints an error, given as JSON.
pub fn error(error: &Value, lang: Lang, as_json: bool) {
    if as_json {
        return json(&serde_json::json!({"error": error}));
    }
    let text_of = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let code = paint(DIM, &format!("[{}]", text_of("code")));
    labelled(RED.bold(), "错误", "error", &format!("{} {code}", text_of("message")), lang);
    for hint in [text_of("hint"), text_of("untrusted")].into_iter().filter(|hint| !hint.is_empty()) {
        labelled(GREEN, "提示", "hint", hint, lang);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_text_keeps_styles_and_shows_what_turns_a_line() {
        let styled = paint(RED.bold(), "error");
        assert_eq!(clean(&styled), styled);
        assert_eq!(clean("a\u{202e}b\r\x07c\td\n"), "a\u{fffd}b\u{fffd}\u{fffd}c\td\n");
        assert_eq!(clean("\x1b]0;title\x1b[2J"), "\u{fffd}]0;title\u{fffd}[2J");
    }
}
