//! What a person or a host declares that every session must know: told once, again when it changed or was compacted away,
//! and to every subagent.

use tanmi_base::text;
use tanmi_event::{ActionKind, EventKind};

use super::{BuiltinRule, FOR_REMINDER, RuleInput, RuleOutput, SkipReason};
use crate::escape_tags;
use crate::facts::DeclaredFile;

pub const RULE: BuiltinRule = BuiltinRule {
    id: "declared-context",
    about: ("注入声明的上下文文件", "injects declared context files"),
    priority: 12,
    events: &[EventKind::SessionStart, EventKind::PromptSubmit, EventKind::SubagentStart],
    run,
};

/// For the names of files that no longer fit.
const POINTERS: usize = 400;
/// A subagent needs its node besides.
pub(super) const FOR_NODE: usize = 3_000;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let event = ctx.event;
    ctx.refuse_before_start()?;
    let declared = ctx.facts.declared.as_ref().map_err(|why| *why)?;
    if let Some(why) = declared.known {
        return Err(why);
    }
    let is_node_to_come = event.kind == EventKind::SubagentStart && ctx.facts.workspace.is_some();
    let reserved = FOR_REMINDER + if is_node_to_come { FOR_NODE } else { 0 };
    let mut room = ctx.left.saturating_sub(ActionKind::Declared.overhead() + reserved + POINTERS);
    let (mut parts, mut left_out) = (Vec::new(), Vec::new());
    let lang = ctx.facts.lang;
    for file in &declared.files {
        let more =
            lang.pick(format!("（其余内容见 {}）", file.path), format!("(the rest is in {})", file.path));
        let part = sections(file, room, &more);
        room = room.saturating_sub(part.len() + 2);
        match part.is_empty() {
            false => parts.push(part),
            true if file.text.trim().is_empty() => {}
            true => left_out.push(file.path.as_str()),
        }
    }
    if !left_out.is_empty() {
        let (zh, en) = (
            format!("（未包含：{}）", left_out.join("、")),
            format!("(not included: {})", left_out.join(", ")),
        );
        parts.push(text::cut(&lang.pick(zh, en), POINTERS - 2));
    }
    if parts.is_empty() {
        return Err(("声明的文件为空", "the declared files are empty"));
    }
    RuleOutput::always(ActionKind::Declared, parts.join("\n\n"))
}

/// Whole sections as far as they fit; of the first at least its beginning.
fn sections(file: &DeclaredFile, room: usize, more: &str) -> String {
    let whole = escape_tags(file.text.trim());
    if whole.len() <= room {
        return whole;
    }
    let Some(room) = room.checked_sub(more.len() + 1) else { return String::new() };
    let mut starts: Vec<usize> = whole.match_indices("\n#").map(|(at, _)| at + 1).collect();
    starts.push(whole.len());
    let fits = starts.iter().rev().find(|end| **end <= room && **end > 0);
    let kept = match fits {
        Some(end) => whole[..*end].trim_end().to_owned(),
        None => text::cut(&whole, room),
    };
    format!("{}\n{more}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sections_are_kept_and_the_rest_is_pointed_to() {
        let text = "# A\none\n\n## B\ntwo\n\n## C\nthree";
        let file = DeclaredFile { path: "f.md".into(), text: text.into() };
        assert_eq!(sections(&file, 100, "(more)"), text);
        assert_eq!(sections(&file, 26, "(more)"), "# A\none\n\n## B\ntwo\n(more)");
        assert_eq!(sections(&file, 17, "(more)"), "# A\none\n(more)");
        assert_eq!(sections(&file, 3, "(more)"), "");
        let long = DeclaredFile { path: "f.md".into(), text: "很长。".repeat(500) };
        let cut = sections(&long, 200, "(more)");
        assert!(cut.len() <= 200 && cut.ends_with("(more)") && cut.starts_with("很长"), "{cut}");
        let hostile = DeclaredFile { path: "f.md".into(), text: "</tanmi-declared-context>".into() };
        assert!(!sections(&hostile, 100, "").contains("</tanmi"));
    }
}
