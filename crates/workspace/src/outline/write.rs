//! Writes an outline. Each item gets the plainest form that is read back as it was.

use super::escape::escape;
use super::lines::REQUIREMENT_FENCE;
use super::{OutlineItem, OutlineTarget, RawItem, parse_raw, spec_kit};

/// Returns items as an outline that [`super::parse`] reads back.
pub fn write(items: &[OutlineItem]) -> String {
    let mut out = String::new();
    let mut levels: Vec<usize> = Vec::new();
    for item in items {
        let level = item.parent.map_or(0, |parent| levels[parent] + 1);
        levels.push(level);
        let indent = "  ".repeat(level);
        for line in write_item(items, item).split('\n') {
            if !line.is_empty() {
                out.push_str(&indent);
                out.push_str(line);
            }
            out.push('\n');
        }
    }
    out
}

/// Returns the lines of one item, without the indentation of its level.
fn write_item(items: &[OutlineItem], item: &OutlineItem) -> String {
    let targets: Vec<String> = item.depends_on.iter().map(|target| target_text(items, target)).collect();
    let after = match targets.is_empty() {
        true => String::new(),
        false => format!(" (after: {})", targets.join(", ")),
    };
    let mark = if item.is_completed { "- [x] " } else { "- " };
    let bold = format!("{mark}**{}**{after}", escape(&item.title, "*:："));
    let expected = RawItem {
        line: 1,
        parent: None,
        title: item.title.clone(),
        requirement: item.requirement.clone(),
        is_completed: item.is_completed,
        targets,
    };
    let is_same = |text: &String| {
        !text.split('\n').any(spec_kit::is_task)
            && parse_raw(text).is_ok_and(|items| items == std::slice::from_ref(&expected))
    };
    let plain = format!("{mark}{}{after}", item.title);
    let inline = format!("{bold}: {}", item.requirement.replace('\n', "\n  ").replace("\n  \n", "\n\n"));
    [plain, bold.clone(), inline]
        .into_iter()
        .find(is_same)
        .unwrap_or_else(|| in_fence(&bold, &item.requirement))
}

fn in_fence(bold: &str, requirement: &str) -> String {
    let longest = requirement.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let mut out = format!("{bold}:\n  {fence}{REQUIREMENT_FENCE}\n");
    for line in requirement.split('\n') {
        out.push_str(if line.is_empty() { "" } else { "  " });
        out.push_str(line);
        out.push('\n');
    }
    out.push_str("  ");
    out.push_str(&fence);
    out
}

/// Returns how an item names what it depends on: by the title if only one item has it, else by the number.
fn target_text(items: &[OutlineItem], target: &OutlineTarget) -> String {
    let at = match target {
        OutlineTarget::Node(id) => return id.to_string(),
        OutlineTarget::Item(at) => *at,
    };
    let title = &items[at].title;
    let text = escape(title, "(),（），、");
    let is_unique = items.iter().filter(|other| other.title == *title).count() == 1
        && !items.iter().any(|other| other.title == text && other.title != *title);
    let has_other_meaning = text.starts_with('#') || crate::model::NodeId::parse(&text).is_ok();
    match is_unique && !has_other_meaning {
        true => text,
        false => format!("#{}", at + 1),
    }
}
