//! A plan as a Markdown outline: list items become nodes, indentation makes children, `(after: Title)` makes
//! dependencies, `[x]` marks what is completed. Reading and writing are pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::codec::ParseError;
use crate::dependencies::WaitGraph;
use crate::limits::{TEXT_BYTES, TITLE_CHARS};
use crate::model::NodeId;

mod escape;
mod item_line;
mod lines;
mod spec_kit;
#[cfg(test)]
mod tests;
mod write;

pub use write::write;

/// Maximum number of nodes in one outline.
pub const MAX_ITEMS: usize = 200;
/// Maximum number of levels in one outline.
pub const MAX_LEVELS: usize = 6;
/// Maximum bytes of one outline.
pub const MAX_BYTES: usize = 1 << 20;

/// One node of an outline. Parents come before their children.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutlineItem {
    /// The line in the outline; the first line is 1.
    pub line: usize,
    /// The position of the parent among the items.
    pub parent: Option<usize>,
    pub title: String,
    pub requirement: String,
    pub is_completed: bool,
    pub depends_on: Vec<OutlineTarget>,
}

/// What an item depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutlineTarget {
    /// The item of the outline at this position.
    Item(usize),
    /// A node that exists already.
    Node(NodeId),
}

/// An item as it is written, before its dependencies are resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RawItem {
    line: usize,
    parent: Option<usize>,
    title: String,
    requirement: String,
    is_completed: bool,
    /// The texts of `(after: …)`, with their escapes.
    targets: Vec<String>,
}

/// Reads an outline. The error names the line.
pub fn parse(text: &str) -> Result<Vec<OutlineItem>, ParseError> {
    if text.len() > MAX_BYTES {
        let (zh, en) = (
            format!("大纲过长：{} 字节，上限 {MAX_BYTES}", text.len()),
            format!("the outline is too long: {} bytes, the limit is {MAX_BYTES}", text.len()),
        );
        return Err(ParseError::new(1, zh, en));
    }
    let raw = parse_raw(text)?;
    check_items(&raw)?;
    let items = resolve(raw)?;
    check_dependencies(&items)?;
    Ok(items)
}

fn parse_raw(text: &str) -> Result<Vec<RawItem>, ParseError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    // As in node files: editors that write CRLF do so on every line.
    let has_crlf = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    let normalized = if has_crlf { text.replace("\r\n", "\n") } else { text.to_owned() };
    let numbered: Vec<(usize, &str)> = (1..).zip(normalized.split('\n')).collect();
    match numbered.iter().any(|(_, line)| spec_kit::is_task(line)) {
        true => spec_kit::parse(&numbered),
        false => lines::parse(&numbered),
    }
}

fn check_items(items: &[RawItem]) -> Result<(), ParseError> {
    if items.is_empty() {
        let (zh, en) = (
            "大纲没有条目；每个节点写一行“- 标题：需求”",
            "the outline has no items; write one line `- Title: text` per node",
        );
        return Err(ParseError::new(1, zh, en));
    }
    if let Some(item) = items.get(MAX_ITEMS) {
        let (zh, en) = (
            format!("条目过多：{} 个，上限 {MAX_ITEMS}；分成几次", items.len()),
            format!("too many items: {}, the limit is {MAX_ITEMS}; split the outline", items.len()),
        );
        return Err(ParseError::new(item.line, zh, en));
    }
    let mut levels: Vec<usize> = Vec::new();
    for item in items {
        let level = item.parent.map_or(1, |parent| levels[parent] + 1);
        levels.push(level);
        check_item(item, level)?;
    }
    for item in items {
        if let Some(parent) = item.parent.map(|parent| &items[parent])
            && parent.is_completed
            && !item.is_completed
        {
            let (zh, en) = (
                "这一项标记为 [x]，但它下面有未完成的项",
                "the item is marked [x], but an item below it is not",
            );
            return Err(ParseError::new(parent.line, zh, en));
        }
    }
    Ok(())
}

fn check_item(item: &RawItem, level: usize) -> Result<(), ParseError> {
    let error = |zh: String, en: String| Err(ParseError::new(item.line, zh, en));
    let chars = item.title.chars().count();
    if level > MAX_LEVELS {
        return error(format!("超过 {MAX_LEVELS} 层"), format!("deeper than {MAX_LEVELS} levels"));
    }
    if item.title.trim().is_empty() {
        return error(String::from("标题为空"), String::from("the title is empty"));
    }
    if chars > TITLE_CHARS {
        return error(
            format!("标题过长：{chars} 个字符，上限 {TITLE_CHARS}；把细节写在冒号之后"),
            format!(
                "the title is too long: {chars} characters, the limit is {TITLE_CHARS}; put the details after a colon"
            ),
        );
    }
    if item.requirement.len() > TEXT_BYTES {
        let actual = item.requirement.len();
        return error(
            format!("需求过长：{actual} 字节，上限 {TEXT_BYTES}"),
            format!("the requirement is too long: {actual} bytes, the limit is {TEXT_BYTES}"),
        );
    }
    if item.title.contains('\0') || item.requirement.contains('\0') {
        return error(String::from("包含 NUL 字符"), String::from("contains a NUL character"));
    }
    Ok(())
}

fn resolve(raw: Vec<RawItem>) -> Result<Vec<OutlineItem>, ParseError> {
    let mut titles: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, item) in raw.iter().enumerate() {
        titles.entry(&item.title).or_default().push(at);
    }
    let mut resolved = Vec::new();
    for item in &raw {
        let mut targets = Vec::new();
        for target in &item.targets {
            let found = find_target(target, &titles, raw.len())
                .map_err(|reason| ParseError { line: item.line, reason })?;
            if !targets.contains(&found) {
                targets.push(found);
            }
        }
        resolved.push(targets);
    }
    let item = |(item, depends_on): (RawItem, Vec<OutlineTarget>)| OutlineItem {
        line: item.line,
        parent: item.parent,
        title: item.title,
        requirement: item.requirement,
        is_completed: item.is_completed,
        depends_on,
    };
    Ok(raw.into_iter().zip(resolved).map(item).collect())
}

/// Returns what a text in `(after: …)` names: `#3` the third item, a node id an existing node, else a title.
fn find_target(
    raw: &str,
    titles: &BTreeMap<&str, Vec<usize>>,
    count: usize,
) -> Result<OutlineTarget, tanmi_base::Bilingual> {
    let shown = tanmi_base::text::fit(&tanmi_base::text::one_line(raw), 60);
    let error = |zh: String, en: String| Err(tanmi_base::Bilingual::new(zh, en));
    if let Some(number) = raw.strip_prefix('#').and_then(|number| number.parse::<usize>().ok()) {
        return match (1..=count).contains(&number) {
            true => Ok(OutlineTarget::Item(number - 1)),
            false => error(format!("没有第 {number} 项"), format!("there is no item {shown}")),
        };
    }
    if let Some(id) = NodeId::parse(raw).ok().filter(|id| !id.is_root()) {
        return Ok(OutlineTarget::Node(id));
    }
    let title = escape::unescape(raw);
    match titles.get(title.as_str()).or_else(|| titles.get(raw)).map(Vec::as_slice) {
        Some([at]) => Ok(OutlineTarget::Item(*at)),
        Some(several) => {
            let numbers: Vec<String> = several.iter().map(|at| format!("#{}", at + 1)).collect();
            let numbers = numbers.join(", ");
            error(
                format!("有 {} 个标题为“{shown}”的项；用序号指定：{numbers}", several.len()),
                format!(
                    "{} items have the title “{shown}”; name one by its number: {numbers}",
                    several.len()
                ),
            )
        }
        None => error(
            format!("(after: …) 中的“{shown}”不是大纲中的标题，也不是节点 ID"),
            format!("“{shown}” in (after: …) is neither a title in this outline nor a node id"),
        ),
    }
}

/// Checks that no item waits for itself.
fn check_dependencies(items: &[OutlineItem]) -> Result<(), ParseError> {
    let mut graph: WaitGraph<usize> = WaitGraph::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(parent) = item.parent {
            graph.add_child(parent, at);
        }
        item_targets(item).for_each(|on| graph.add_dependency(at, on));
    }
    let has_cycle = graph.has_cycle();
    for (at, item) in items.iter().enumerate() {
        for on in item_targets(item) {
            if graph.is_related(&at, &on) {
                let title = &items[on].title;
                return Err(ParseError::new(
                    item.line,
                    format!("一项不能依赖自己、它上面或下面的项（“{title}”）"),
                    format!("an item cannot depend on itself, or on an item above or below it (“{title}”)"),
                ));
            }
            if let Some(cycle) = has_cycle.then(|| graph.find_cycle(&at, &on)).flatten() {
                let titles: Vec<&str> = cycle.iter().map(|at| items[*at].title.as_str()).collect();
                let cycle = titles.join(" → ");
                return Err(ParseError::new(
                    item.line,
                    format!("依赖形成循环：{cycle}"),
                    format!("the dependencies form a cycle: {cycle}"),
                ));
            }
        }
    }
    Ok(())
}

fn item_targets(item: &OutlineItem) -> impl Iterator<Item = usize> {
    item.depends_on.iter().filter_map(|target| match target {
        OutlineTarget::Item(at) => Some(*at),
        OutlineTarget::Node(_) => None,
    })
}
