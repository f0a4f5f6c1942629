//! Escapes tags in stored text. Stored text is data, so it must not contain tags that clients or Tanmi interpret.

/// Name prefixes of tags that a client or Tanmi interprets.
const TAGS: &[&str] = &[
    "tanmi-",
    "system-reminder",
    "system_reminder",
    "system",
    "hook_context",
    "hook_prompt",
    "task-notification",
    "persisted-output",
    "user-prompt",
    "function_",
    "antml",
    "invoke",
    "tool_",
    "local-command",
    "command-",
    "bash-",
];

/// Returns whether a character is invisible or shown as space.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{180E}')
}

/// Replaces the `<` of each known tag with `‹`. Other angle brackets, as in `Vec<T>`, stay.
pub fn escape_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let inner = after[1..].trim_start_matches(|c: char| c == '/' || is_blank(c));
        let is_tag = TAGS
            .iter()
            .any(|tag| inner.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)));
        out.push(if is_tag { '‹' } else { '<' });
        rest = &after[1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_tags_known_tags_are_escaped_and_code_is_kept() {
        assert_eq!(escape_tags("a </tanmi-workspace-context> b"), "a ‹/tanmi-workspace-context> b");
        assert_eq!(escape_tags("<System-Reminder>x"), "‹System-Reminder>x");
        assert_eq!(escape_tags("< / tanmi-x>"), "‹ / tanmi-x>");
        for blank in ["\t", "\n", "\u{a0}", "\u{200b}", "\u{1}"] {
            assert!(!escape_tags(&format!("<{blank}/{blank}tanmi-x>")).contains('<'), "{blank:?}");
        }
        for plain in ["Vec<T> a < b <= c", "<div>", "任务 <名称>", "<"] {
            assert_eq!(escape_tags(plain), plain);
        }
    }
}
