//! Bodies of text sections, and of `## Problem` with its `### Next Step`.

use super::document::{fence_end, is_heading, line_at, open_fence};

const NEXT_STEP: &[&str] = &["next step", "下一步", "下一步计划"];

/// Returns the text without surrounding blank lines, or the content of a verbatim fence.
pub fn read(body: &str) -> String {
    let text = strip_blank_lines(body);
    verbatim(text).unwrap_or(text).to_owned()
}

pub fn write(text: &str) -> String {
    let plain = format!("\n{text}\n\n");
    if is_self_contained(&plain) && read(&plain) == text { plain } else { write_verbatim(text) }
}

fn write_verbatim(text: &str) -> String {
    let longest =
        text.split('\n').map(|line| line.chars().take_while(|c| *c == '~').count()).max().unwrap_or(0);
    let fence = "~".repeat(longest.max(2) + 1);
    format!("\n{fence}tanmi\n{text}\n{fence}\n\n")
}

fn verbatim(text: &str) -> Option<&str> {
    let length = text.chars().take_while(|c| *c == '~').count();
    let fence = &text[..length];
    let inner = text[length..].strip_prefix("tanmi\n")?.strip_suffix(fence)?;
    (length >= 3 && fence_end(text, 0) == Some(text.len())).then_some(())?;
    // The newline before the closing fence is part of the fence, even if the text is empty.
    inner.strip_suffix('\n')
}

/// Returns whether the body contains no section heading and no unclosed fence that would swallow the next section.
fn is_self_contained(body: &str) -> bool {
    let sentinel = "## Sentinel\n";
    let full = format!("{body}{sentinel}");
    open_fence(body).is_none() && find_line(&full, is_heading) == Some(body.len())
}

/// Returns the offset of the first line that satisfies `is_match`. Skips code fences.
fn find_line(text: &str, is_match: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let line = line_at(text, at);
        match fence_end(text, at) {
            Some(end) => at = end,
            None if is_match(line) => return Some(at),
            None => at += line.len(),
        }
    }
    None
}

fn is_next_step(line: &str) -> bool {
    line.strip_prefix("### ").is_some_and(|name| NEXT_STEP.contains(&name.trim().to_lowercase().as_str()))
}

/// Returns description and next step, or `None` if both are empty.
pub fn read_problem(body: &str) -> Option<(String, Option<String>)> {
    let (description, next) = match find_line(body, is_next_step) {
        Some(at) => (read(&body[..at]), read(&body[at + line_at(body, at).len()..])),
        None => (read(body), String::new()),
    };
    (!description.is_empty() || !next.is_empty())
        .then(|| (description, Some(next).filter(|next| !next.is_empty())))
}

pub fn write_problem(description: &str, next_step: Option<&str>) -> String {
    let part = |text: &str| {
        let plain = write(text);
        // A next-step heading inside the text would end it early.
        if find_line(&plain, is_next_step).is_some() { write_verbatim(text) } else { plain }
    };
    let mut out = if description.is_empty() { String::from("\n") } else { part(description) };
    if let Some(next) = next_step {
        out.push_str("### Next Step\n");
        out.push_str(&part(next));
    }
    out
}

fn strip_blank_lines(body: &str) -> &str {
    let is_blank = |line: &str| line.chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
    let mut text = body;
    while !text.is_empty() && is_blank(line_at(text, 0)) {
        text = &text[line_at(text, 0).len()..];
    }
    loop {
        let cut = text.strip_suffix('\n').unwrap_or(text);
        let last = cut.rfind('\n').map_or(0, |at| at + 1);
        if cut.is_empty() {
            return cut;
        }
        if !is_blank(&cut[last..]) {
            return cut;
        }
        text = &text[..last];
    }
}
