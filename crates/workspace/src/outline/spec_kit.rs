//! Reads `tasks.md` of spec-kit: headings are phases, `- [ ] T001 [P] [US1] text` is a task,
//! `(depends on T001)` a dependency, in any case and with or without a colon. Indented lines below a task
//! belong to its requirement. Other lines explain the tasks and are left out, and so are headings without
//! tasks. A list item beside tasks that is not a task is an error: it would be lost.

use super::item_line::{strip_checkbox, strip_marker};
use super::lines::strip_heading;
use super::{RawItem, escape};
use crate::codec::ParseError;
use crate::limits::TITLE_CHARS;

/// Returns whether a line is a task of spec-kit.
pub fn is_task(line: &str) -> bool {
    parse_task(line).is_some()
}

/// Returns the text of a task, and whether it is done.
fn parse_task(line: &str) -> Option<(&str, bool)> {
    let (text, is_completed) = strip_checkbox(strip_marker(line)?.0)?;
    is_task_id(first_word(text)).then_some((text, is_completed))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// Returns whether a word is the number of a task: `T001` or `T012a`. A template has `X` in the place of digits.
fn is_task_id(word: &str) -> bool {
    let Some(number) = word.strip_prefix('T').filter(|number| number.is_ascii()) else { return false };
    let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
    number.len() - digits.len() <= 1
        && (2..=5).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'X')
}

pub fn parse(lines: &[(usize, &str)]) -> Result<Vec<RawItem>, ParseError> {
    let mut items: Vec<RawItem> = Vec::new();
    let mut section = Section::default();
    // The headings above the current line: level, line, text, and the item once a task is below it.
    let mut headings: Vec<(usize, usize, &str, Option<usize>)> = Vec::new();
    for (number, line) in lines {
        // The first level is the name of the document.
        if let Some((level, text)) = strip_heading(line) {
            section.end()?;
            section = Section::default();
            headings.retain(|(above, ..)| *above < level);
            if level > 1 {
                headings.push((level, *number, text, None));
            }
        } else if let Some((text, is_completed)) = parse_task(line) {
            let mut parent = None;
            for (_, line, title, item) in &mut headings {
                parent = Some(*item.get_or_insert_with(|| {
                    items.push(phase(*line, parent, title));
                    items.len() - 1
                }));
            }
            items.push(task(*number, parent, text, is_completed));
            section.has_task = true;
            section.is_in_task = true;
        } else if line.starts_with([' ', '\t']) && section.is_in_task && !line.trim().is_empty() {
            if let Some(task) = items.last_mut() {
                task.requirement = format!("{}\n{}", task.requirement, line.trim());
            }
        } else if !line.trim().is_empty() {
            section.is_in_task = false;
            if strip_marker(line).is_some() {
                section.other_item.get_or_insert(*number);
            }
        }
    }
    section.end()?;
    for at in 0..items.len() {
        let targets = depends_on(&items[at].requirement);
        let targets = targets.into_iter().map(|id| find_task(&items, id, items[at].line));
        items[at].targets = targets.collect::<Result<_, _>>()?;
    }
    // A phase is done if all its tasks are.
    for at in (0..items.len()).rev() {
        let mut children = items.iter().filter(|item| item.parent == Some(at)).peekable();
        if children.peek().is_some() {
            items[at].is_completed = children.all(|child| child.is_completed);
        }
    }
    Ok(items)
}

/// The lines below one heading.
#[derive(Default)]
struct Section {
    has_task: bool,
    /// Whether the last line belongs to a task.
    is_in_task: bool,
    /// The first list item that is not a task.
    other_item: Option<usize>,
}

impl Section {
    fn end(&self) -> Result<(), ParseError> {
        match self.other_item.filter(|_| self.has_task) {
            None => Ok(()),
            Some(line) => Err(ParseError::new(
                line,
                "任务列表中有一项不是任务；写成 `- [ ] T001 …`，或缩进到它所属的任务之下",
                "an item beside tasks is not a task: write `- [ ] T001 …`, or indent it below the task it belongs to",
            )),
        }
    }
}

fn phase(line: usize, parent: Option<usize>, title: &str) -> RawItem {
    let title = fit(title);
    RawItem { line, parent, requirement: title.clone(), title, ..RawItem::default() }
}

/// Returns a task. Its title leaves out the labels `[P]` and `[US1]`, which the requirement keeps.
fn task(line: usize, parent: Option<usize>, text: &str, is_completed: bool) -> RawItem {
    let (id, mut rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    while let Some((label, after)) = rest.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && (label == "P" || label.starts_with("US") || label.starts_with("Story"))
    {
        rest = after;
    }
    let title = fit(format!("{id} {}", rest.trim()).trim());
    RawItem { line, parent, title, requirement: text.to_owned(), is_completed, targets: Vec::new() }
}

fn fit(title: &str) -> String {
    match title.char_indices().nth(TITLE_CHARS) {
        None => title.to_owned(),
        Some(_) => title.chars().take(TITLE_CHARS - 1).chain(['…']).collect(),
    }
}

/// Returns the ids in `(depends on T012, T013)`, also as `(Depends on: T012)`.
fn depends_on(text: &str) -> Vec<&str> {
    const START: &str = "(depends on";
    let starts = text.to_ascii_lowercase();
    let lists = starts.match_indices(START).map(|(at, _)| &text[at + START.len()..]);
    let lists = lists.filter(|list| list.starts_with([':', '：']) || list.starts_with(char::is_whitespace));
    let ids = lists
        .flat_map(|list| list.split(')').next().unwrap_or_default().split(|c: char| !c.is_alphanumeric()));
    ids.filter(|word| is_task_id(word)).collect()
}

/// Returns the position of the task with this id for a task in `line`, as in `(after: #3)`.
fn find_task(items: &[RawItem], id: &str, line: usize) -> Result<String, ParseError> {
    let has_id = |(_, item): &(usize, &RawItem)| first_word(&item.requirement) == id;
    let found: Vec<(usize, &RawItem)> = items.iter().enumerate().filter(has_id).collect();
    match found.as_slice() {
        [] => Ok(escape::escape(id, "")),
        [(at, _)] => Ok(format!("#{}", at + 1)),
        several => {
            let lines: Vec<String> = several.iter().map(|(_, item)| item.line.to_string()).collect();
            let lines = lines.join(", ");
            Err(ParseError::new(
                line,
                format!("多个任务的编号是 {id}（第 {lines} 行）；给每个任务不同的编号"),
                format!("several tasks have the number {id} (lines {lines}); give each its own number"),
            ))
        }
    }
}
