//! Reads the lines of an outline: headings, list items by indentation, and the text below them.

use super::{RawItem, item_line};
use crate::codec::ParseError;

/// The info string of the fence around a requirement that could be taken for items.
pub const REQUIREMENT_FENCE: &str = "requirement";

/// An item whose text is still being read.
struct OpenItem {
    item: RawItem,
    /// The indentation of its marker.
    indent: String,
    marker_width: usize,
    is_heading: bool,
    text: Vec<String>,
    /// Blank lines since the last line of its text.
    blank_lines: usize,
    /// Whether a fence contains the whole requirement.
    has_fenced_requirement: bool,
}

/// An open fence: its character and length, the line it began at, and whether it wraps a requirement.
struct Fence {
    mark: char,
    length: usize,
    line: usize,
    is_wrapper: bool,
}

#[derive(Default)]
struct Reader {
    items: Vec<RawItem>,
    open: Option<OpenItem>,
    fence: Option<Fence>,
    /// The headings above the current line: level and item.
    headings: Vec<(usize, usize)>,
    /// The list items above the current line: indentation and item.
    levels: Vec<(usize, usize)>,
    /// The character that indents items, once one is indented.
    indented_by: Option<char>,
}

pub fn parse(lines: &[(usize, &str)]) -> Result<Vec<RawItem>, ParseError> {
    let mut reader = Reader::default();
    for (number, line) in lines {
        reader.read(*number, line)?;
    }
    if let Some(fence) = &reader.fence {
        return Err(ParseError::new(fence.line, "代码围栏没有结束", "the fence is not closed"));
    }
    reader.close_item();
    Ok(reader.items)
}

/// Splits a line into its indentation and the rest.
fn split_indent(line: &str) -> (&str, &str) {
    let rest = line.trim_start_matches([' ', '\t']);
    (&line[..line.len() - rest.len()], rest)
}

/// Returns the level and the text of a heading.
pub fn strip_heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let text = line[level..].strip_prefix([' ', '\t']).filter(|_| (1..=6).contains(&level))?;
    Some((level, text.trim().trim_end_matches('#').trim()))
}

impl Reader {
    fn read(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        if self.fence.is_some() {
            self.read_fenced(line);
            return Ok(());
        }
        let (indent, rest) = split_indent(line);
        if rest.trim().is_empty() {
            self.open.iter_mut().for_each(|open| open.blank_lines += 1);
            return Ok(());
        }
        if let Some((text, marker_width)) = item_line::strip_marker(rest) {
            return self.begin_item(number, indent, text, marker_width);
        }
        match strip_heading(rest).filter(|_| indent.is_empty()) {
            Some((level, text)) => self.begin_heading(number, level, text),
            None => self.read_text(number, line, indent)?,
        }
        Ok(())
    }

    fn begin_item(
        &mut self,
        number: usize,
        indent: &str,
        text: &str,
        marker_width: usize,
    ) -> Result<(), ParseError> {
        self.check_indent(number, indent)?;
        let parent = self.parent_at(number, indent)?;
        self.close_item();
        self.levels.push((indent.len(), self.items.len()));
        let item = item_line::parse(text);
        if item.is_unclear {
            let (zh, en) = (
                "依赖不清楚：在标题末尾写 `(after: 标题, 标题)`；如果它属于标题，把标题写成 `**标题**`",
                "unclear dependencies: write `(after: Title, Title)` at the end of the title, or `**Title**` if it is part of it",
            );
            return Err(ParseError::new(number, zh, en));
        }
        self.open_item(number, parent, item, indent, marker_width, false);
        Ok(())
    }

    fn check_indent(&mut self, number: usize, indent: &str) -> Result<(), ParseError> {
        let Some(first) = indent.chars().next() else { return Ok(()) };
        if indent.chars().any(|c| c != *self.indented_by.get_or_insert(first)) {
            let (zh, en) = ("缩进混用了空格和制表符", "the indentation mixes spaces and tabs");
            return Err(ParseError::new(number, zh, en));
        }
        Ok(())
    }

    /// Returns the parent of an item with this indentation, and leaves the levels that end here.
    fn parent_at(&mut self, number: usize, indent: &str) -> Result<Option<usize>, ParseError> {
        let width = indent.len();
        let had_deeper = self.levels.last().is_some_and(|(level, _)| *level > width);
        while self.levels.last().is_some_and(|(level, _)| *level > width) {
            self.levels.pop();
        }
        let heading = self.headings.last().map(|(_, item)| *item);
        match self.levels.last() {
            Some((level, _)) if *level == width => {
                self.levels.pop();
                Ok(self.levels.last().map(|(_, item)| *item).or(heading))
            }
            Some((level, item)) if !had_deeper && (width > level + 1 || indent.starts_with('\t')) => {
                Ok(Some(*item))
            }
            None if !had_deeper => Ok(heading),
            _ => {
                let (zh, en) = (
                    "缩进与上面的任何一项都不一致；每层用两个空格",
                    "the indentation matches no item above; use two spaces per level",
                );
                Err(ParseError::new(number, zh, en))
            }
        }
    }

    fn begin_heading(&mut self, number: usize, level: usize, text: &str) {
        self.close_item();
        self.levels.clear();
        while self.headings.last().is_some_and(|(above, _)| *above >= level) {
            self.headings.pop();
        }
        let parent = self.headings.last().map(|(_, item)| *item);
        self.headings.push((level, self.items.len()));
        self.open_item(number, parent, item_line::parse_heading(text), "", 0, true);
    }

    fn open_item(
        &mut self,
        line: usize,
        parent: Option<usize>,
        first: item_line::ItemLine,
        indent: &str,
        marker_width: usize,
        is_heading: bool,
    ) {
        let item_line::ItemLine { is_completed, title, text, targets, .. } = first;
        self.open = Some(OpenItem {
            item: RawItem { line, parent, title, requirement: String::new(), is_completed, targets },
            indent: indent.to_owned(),
            marker_width,
            is_heading,
            text: if text.is_empty() { Vec::new() } else { vec![text] },
            blank_lines: 0,
            has_fenced_requirement: false,
        });
        // The position of the item in the list is known from now on.
        self.items.push(RawItem::default());
    }

    fn close_item(&mut self) {
        let Some(open) = self.open.take() else { return };
        let text = open.text.join("\n");
        let requirement = match text.is_empty() && !open.has_fenced_requirement {
            true => open.item.title.clone(),
            false => text,
        };
        if let Some(last) = self.items.last_mut() {
            *last = RawItem { requirement, ..open.item };
        }
    }

    /// Reads a line of text below an item.
    fn read_text(&mut self, number: usize, line: &str, indent: &str) -> Result<(), ParseError> {
        let is_below = |open: &&mut OpenItem| {
            open.is_heading || (indent.len() > open.indent.len() && line.starts_with(&open.indent))
        };
        let Some(open) = self.open.as_mut().filter(is_below) else {
            let (zh, en) = (
                "这一行不属于任何一项；以“- ”开头，或缩进到它所属的项之下",
                "the line belongs to no item; begin it with `- `, or indent it below its item",
            );
            return Err(ParseError::new(number, zh, en));
        };
        if open.has_fenced_requirement {
            let (zh, en) = ("需求围栏之后不能再有文字", "no text can follow the fence with the requirement");
            return Err(ParseError::new(number, zh, en));
        }
        let text = open.strip(line).to_owned();
        let opening = opening_fence(&text);
        let is_wrapper =
            open.text.is_empty() && opening.is_some_and(|(_, _, info)| info == REQUIREMENT_FENCE);
        self.fence = opening.map(|(mark, length, _)| Fence { mark, length, line: number, is_wrapper });
        if is_wrapper {
            open.has_fenced_requirement = true;
        } else {
            let blank_lines = if open.text.is_empty() { 0 } else { open.blank_lines };
            open.text.extend(std::iter::repeat_n(String::new(), blank_lines));
            open.text.push(text);
        }
        open.blank_lines = 0;
        Ok(())
    }

    fn read_fenced(&mut self, line: &str) {
        let (Some(open), Some(fence)) = (self.open.as_mut(), self.fence.as_ref()) else { return };
        let text = open.strip(line);
        let is_end = closes_fence(text, fence);
        if !(is_end && fence.is_wrapper) {
            open.text.push(text.to_owned());
        }
        if is_end {
            self.fence = None;
        }
    }
}

impl OpenItem {
    /// Returns a line without the indentation of the item's text, as far as the line has it.
    fn strip<'a>(&self, line: &'a str) -> &'a str {
        let Some(rest) = line.strip_prefix(&self.indent) else { return line.trim_start_matches([' ', '\t']) };
        if let Some(rest) = rest.strip_prefix('\t').filter(|_| self.marker_width > 0) {
            return rest;
        }
        let spaces = rest.bytes().take(self.marker_width).take_while(|b| *b == b' ').count();
        &rest[spaces..]
    }
}

/// Returns the character, the length and the info string of an opening fence.
fn opening_fence(text: &str) -> Option<(char, usize, &str)> {
    let text = text.trim();
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    let info = text[length..].trim();
    (length >= 3 && !info.contains('`')).then_some((mark, length, info))
}

fn closes_fence(text: &str, fence: &Fence) -> bool {
    let text = text.trim();
    text.chars().count() >= fence.length && text.chars().all(|c| c == fence.mark)
}
