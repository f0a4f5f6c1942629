//! Aligned columns; wide characters count as two. Rows fit into the width of the terminal: texts are cut, ids
//! stay whole.

use std::fmt::Write;

use anstyle::Style;
use tanmi_base::text;

use crate::cli::wrap::wrap;
use crate::out;

pub struct Cell {
    text: String,
    style: Style,
    narrow: Narrow,
}

/// What happens to a cell where the terminal is narrow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Narrow {
    Keep,
    /// The text is cut.
    Shrink,
    /// The column is left out if the others do not fit even after they were cut; the last such column first.
    Drop,
}

pub fn cell(text: impl AsRef<str>) -> Cell {
    Cell { text: text::one_line(text.as_ref()), style: Style::new(), narrow: Narrow::Keep }
}

pub fn styled(style: Style, text: impl AsRef<str>) -> Cell {
    Cell { style, ..cell(text) }
}

/// Returns the cell of a title or another text that is cut where the terminal is narrow.
pub fn shrinkable(cell: Cell) -> Cell {
    Cell { narrow: Narrow::Shrink, ..cell }
}

/// Returns the cell of a column that is left out where the terminal is narrow.
pub fn droppable(cell: Cell) -> Cell {
    Cell { narrow: Narrow::Drop, ..cell }
}

/// The space between two columns.
const GAP: usize = 2;
/// A column that can shrink has at least this width.
const MIN_WIDTH: usize = 8;

/// The width of a wrapped table where that of the output is unknown, and the least width of its last column.
const COLUMNS: usize = 80;
const MIN_LAST: usize = 24;

/// Formats rows of cells for the width of the output: the last column continues on further lines.
pub fn render_wrapped(rows: Vec<Vec<Cell>>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| text::width(&cell.text)).max().unwrap_or(0)
    };
    let indent: usize = (1..columns).map(|column| width_of(column - 1) + GAP).sum();
    let width = out::columns().unwrap_or(COLUMNS).saturating_sub(indent).max(MIN_LAST);
    let mut lines = Vec::new();
    for mut row in rows {
        let Some(last) = row.pop() else { continue };
        let style = last.style;
        let parts = wrap(&last.text, width).into_iter().map(|part| styled(style, part));
        for (at, part) in parts.enumerate() {
            let empty = || (1..columns).map(|_| cell("")).collect();
            let mut line: Vec<Cell> = if at == 0 { std::mem::take(&mut row) } else { empty() };
            line.push(part);
            lines.push(line);
        }
    }
    render(&lines, usize::MAX)
}

/// Formats rows of cells for the width of the output. Where that is unknown, no column is wider than `max_width`.
pub fn render(rows: &[Vec<Cell>], max_width: usize) -> String {
    render_for(rows, max_width, out::columns())
}

/// A row and the notes on it.
pub struct NotedRow {
    pub cells: Vec<Cell>,
    /// Each is on lines of its own below the first text of the row that can be cut.
    pub notes: Vec<Cell>,
}

/// Formats rows like [`render`], with the notes of each row below it.
pub fn render_with_notes(rows: Vec<NotedRow>, max_width: usize) -> String {
    render_with_notes_for(rows, max_width, out::columns())
}

fn render_with_notes_for(rows: Vec<NotedRow>, max_width: usize, total: Option<usize>) -> String {
    let (rows, notes): (Vec<_>, Vec<_>) = rows.into_iter().map(|row| (row.cells, row.notes)).unzip();
    let can_shrink = |cell: &Cell| cell.narrow == Narrow::Shrink;
    let text_column = rows.iter().find_map(|row| row.iter().position(can_shrink)).unwrap_or(0);
    let before = widths(&rows, max_width, total).into_iter().take(text_column).flatten();
    let indent = before.map(|width| width + GAP).sum::<usize>();
    let width = total.map_or(usize::MAX, |total| total.saturating_sub(indent).max(MIN_LAST));
    let mut out = String::new();
    for (line, notes) in render_for(&rows, max_width, total).lines().zip(notes) {
        let _ = writeln!(out, "{line}");
        for note in notes {
            for part in wrap(&note.text, width) {
                let part = out::paint(note.style, &text::fit(&part, width));
                let _ = writeln!(out, "{:indent$}{part}", "");
            }
        }
    }
    out
}

fn render_for(rows: &[Vec<Cell>], max_width: usize, total: Option<usize>) -> String {
    let widths = widths(rows, max_width, total);
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let Some(width) = width else { continue };
            let shown = text::fit(&cell.text, *width);
            let pad = width - text::width(&shown) + GAP;
            if !shown.is_empty() {
                line.push_str(&out::paint(cell.style, &shown));
            }
            line.push_str(&" ".repeat(pad));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Returns the width of each column, `None` for one that is left out.
fn widths(rows: &[Vec<Cell>], max_width: usize, total: Option<usize>) -> Vec<Option<usize>> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let is = |column: usize, narrow: Narrow| cells(column).any(|cell| cell.narrow == narrow);
    let natural = |column: usize| {
        let width = cells(column).map(|cell| text::width(&cell.text)).max().unwrap_or(0);
        let has_limit = total.is_none() || !is(column, Narrow::Shrink);
        // A column without any text is left out, too.
        (width > 0).then(|| if has_limit { width.min(max_width) } else { width })
    };
    let mut widths: Vec<Option<usize>> = (0..count).map(natural).collect();
    let Some(total) = total else { return widths };
    let mut droppable: Vec<usize> = (0..count).filter(|column| is(*column, Narrow::Drop)).collect();
    loop {
        let kept = widths.iter().flatten();
        let excess =
            (kept.clone().sum::<usize>() + GAP * kept.count().saturating_sub(1)).saturating_sub(total);
        // The widest column that can shrink gives way first.
        let shrinkable = (0..count).filter(|column| is(*column, Narrow::Shrink));
        let widest = shrinkable.max_by_key(|column| widths[*column]);
        match widest.and_then(|column| widths[column].as_mut()).filter(|width| **width > MIN_WIDTH) {
            _ if excess == 0 => return widths,
            Some(width) => *width -= 1,
            None => match droppable.pop() {
                Some(column) => {
                    // The columns that were cut get the space back.
                    widths = (0..count).map(|at| widths[at].and_then(|_| natural(at))).collect();
                    widths[column] = None;
                }
                None => return widths,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_narrow_output_cuts_texts_and_keeps_ids() {
        let rows = vec![
            vec![cell("node-a1b2c3"), shrinkable(cell("收集信息，然后设计令牌的结构")), cell("pending")],
            vec![cell("node-d4e5f6"), shrinkable(cell("Short")), cell("completed")],
        ];
        for total in [34, 40, 60] {
            let text = anstream::adapter::strip_str(&render_for(&rows, 12, Some(total))).to_string();
            assert!(text.lines().all(|line| text::width(line) <= total), "{total}\n{text}");
            assert!(text.contains("node-a1b2c3") && text.contains("completed"), "{text}");
            assert_eq!(text.contains('…'), total < 60, "{total}\n{text}");
        }
        let drop = [vec![cell("abcd"), shrinkable(cell("A long title")), droppable(cell("12 ms"))]];
        assert_eq!(render_for(&drop, 60, Some(16)), "abcd  A long ti…\n");
        assert!(render_for(&rows, 10, None).contains("node-a1b2…"), "without a width, columns have a limit");
    }

    #[test]
    fn render_notes_stand_below_the_text_and_leave_its_width() {
        let rows = || {
            let row = |id: &str, title: &str, notes: &[&str]| NotedRow {
                cells: vec![cell(id), shrinkable(cell(title)), cell("x")],
                notes: notes.iter().map(cell).collect(),
            };
            vec![
                row("abcd", "A title", &["src/main.rs changed since then", "a note"]),
                row("ef", "Other", &[]),
            ]
        };
        let lines = |total| {
            let text = render_with_notes_for(rows(), 60, total);
            anstream::adapter::strip_str(&text).to_string()
        };
        let wide = "abcd  A title  x\n      src/main.rs changed since then\n      a note\nef    Other    x\n";
        assert_eq!((lines(None).as_str(), lines(Some(40)).as_str()), (wide, wide));
        let wrapped = "      src/main.rs changed since\n      then\n";
        assert!(lines(Some(32)).contains(wrapped), "{}", lines(Some(32)));
    }
}
