//! Aligned columns; wide characters count as two.

use anstyle::Style;
use tanmi_base::text;

use crate::cli::wrap::wrap;
use crate::out;

pub struct Cell {
    text: String,
    style: Style,
}

pub fn cell(text: impl AsRef<str>) -> Cell {
    Cell { text: text::one_line(text.as_ref()), style: Style::new() }
}

pub fn styled(style: Style, text: impl AsRef<str>) -> Cell {
    Cell { style, ..cell(text) }
}

/// The width of a terminal that a wrapped table fits into, and the least width of its last column.
const COLUMNS: usize = 80;
const MIN_LAST: usize = 24;

/// Formats rows of cells for a terminal of 80 columns: the last column continues on further lines.
pub fn render_wrapped(rows: Vec<Vec<Cell>>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| text::width(&cell.text)).max().unwrap_or(0)
    };
    let indent: usize = (1..columns).map(|column| width_of(column - 1) + 2).sum();
    let width = COLUMNS.saturating_sub(indent).max(MIN_LAST);
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

/// Formats rows of cells. No column is wider than `max_width`.
pub fn render(rows: &[Vec<Cell>], max_width: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| text::width(&cell.text))
                .max()
                .unwrap_or(0)
                .min(max_width)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let shown = text::fit(&cell.text, *width);
            let pad = if at + 1 == row.len() { 0 } else { width - text::width(&shown) + 2 };
            if shown.is_empty() {
                line.push_str(&" ".repeat(pad));
            } else {
                line.push_str(&out::paint(cell.style, &shown));
                line.push_str(&" ".repeat(pad));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
