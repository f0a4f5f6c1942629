//! Front-matter values. Written plain if any YAML reader accepts that, otherwise as a JSON string. Other YAML styles
//! (single quotes, block scalars) are read too.

/// Parses the text after `key:`, including continuation lines.
pub fn read(raw: &str) -> String {
    let (first, rest) = raw.split_once('\n').unwrap_or((raw, ""));
    let first = first.trim();
    if first.starts_with('"')
        && let Ok(text) = serde_json::from_str::<String>(first)
    {
        return text;
    }
    if first.len() >= 2 && first.starts_with('\'') && first.ends_with('\'') {
        return first[1..first.len() - 1].replace("''", "'");
    }
    if rest.trim().is_empty() {
        return first.to_owned();
    }
    match first.chars().next() {
        Some('|') if is_block_header(first) => dedent(rest).join("\n"),
        Some('>') if is_block_header(first) => dedent(rest).join(" "),
        _ => {
            let lines = std::iter::once(first).chain(rest.lines().map(str::trim));
            lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        }
    }
}

pub fn write(value: &str) -> String {
    if is_plain(value) && read(&format!(" {value}\n")) == value {
        return value.to_owned();
    }
    serde_json::Value::from(value).to_string()
}

/// Returns whether any YAML reader reads the value unchanged without quotes.
fn is_plain(value: &str) -> bool {
    let has_reserved_start =
        value.starts_with(|c: char| c.is_whitespace() || "-?:,[]{}#&*!|>'\"%@`=".contains(c));
    let is_reserved_value = matches!(
        value.to_ascii_lowercase().as_str(),
        "" | "null" | "~" | "true" | "false" | "yes" | "no" | "on" | "off" | ".nan" | ".inf"
    ) || value.parse::<f64>().is_ok();
    !has_reserved_start
        && !is_reserved_value
        && !value.contains(": ")
        && !value.contains(" #")
        && !value.ends_with([':', ' '])
        && !value.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}'))
}

fn is_block_header(first: &str) -> bool {
    first[1..].chars().all(|c| matches!(c, '-' | '+' | '1'..='9'))
}

fn dedent(block: &str) -> Vec<&str> {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = block.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let mut lines: Vec<&str> = block.lines().map(|line| line.get(common..).unwrap_or("")).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}
