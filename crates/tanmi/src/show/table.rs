//! Aligned columns; wide characters count as two.

use anstyle::Style;
use tanmi_base::text;

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
