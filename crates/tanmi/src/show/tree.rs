//! Output of `tree`.

use std::fmt::Write;

use tanmi_app::workspaces::WorkspaceView;
use tanmi_base::{Lang, text};
use tanmi_workspace::ops::{ListRow, NodePage};

use super::{short_ids, symbol};
use crate::out::{self, paint};

/// The maximum width of a label if the width of the output is unknown.
const MAX_LABEL_WIDTH: usize = 72;
/// A label is not cut further than this.
const MIN_LABEL_WIDTH: usize = 12;

pub fn render(view: &WorkspaceView, page: &NodePage, is_filtered: bool, lang: Lang) -> String {
    let mut out = String::new();
    let columns = out::columns();
    let progress = format!("{}/{}", view.progress.completed, view.progress.total);
    let name = text::one_line(&view.name);
    let rest = view.workspace_id.as_str().len() + progress.len() + 4;
    let name = columns.map_or(name.clone(), |columns| text::fit(&name, columns.saturating_sub(rest).max(1)));
    let id = paint(out::DIM, view.workspace_id.as_str());
    let _ = writeln!(out, "{}  {id}  {progress}", paint(out::BOLD, &name));
    let labels = if is_filtered {
        page.nodes.iter().map(indented_label).collect()
    } else {
        branch_labels(&page.nodes)
    };
    let is_focused = |row: &ListRow| view.focused_node_id.as_ref() == Some(&row.node.id);
    let ids = short_ids(page.nodes.iter().map(|row| row.node.id.as_str()));
    let tails: Vec<String> =
        page.nodes.iter().zip(ids).map(|(row, id)| tail(row, id, is_focused(row), lang)).collect();
    let width = |styled: &String| text::width(&anstream::adapter::strip_str(styled).to_string());
    // The text about a damaged file is long; it does not make the labels shorter.
    let sound = page.nodes.iter().zip(&tails).filter(|(row, _)| row.node.damage.is_none());
    let tail_width = sound.map(|(_, tail)| width(tail)).max().unwrap_or(0);
    let limit = columns
        .map_or(MAX_LABEL_WIDTH, |columns| columns.saturating_sub(tail_width + 2).max(MIN_LABEL_WIDTH));
    let column = labels.iter().map(|line| text::width(line)).max().unwrap_or(0).min(limit);
    for ((row, line), tail) in page.nodes.iter().zip(&labels).zip(&tails) {
        let (sign, style) = symbol(row.node.status);
        let line = text::fit(line, column);
        let pad = column - text::width(&line) + 2;
        let shown = if is_focused(row) { paint(out::BOLD, &line) } else { line };
        let shown = shown.replacen(sign, &paint(style, sign), 1);
        let _ = writeln!(out, "{shown}{}{tail}", " ".repeat(pad));
    }
    if page.next_after.is_some() {
        let _ = writeln!(
            out,
            "{}",
            paint(
                out::DIM,
                lang.pick("… 还有更多节点（--limit 0 显示全部）", "… more nodes (--limit 0 shows all)")
            )
        );
    }
    if page.nodes.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("没有匹配的节点", "no matching nodes"));
    }
    out
}

/// Returns what follows the label of a node: its status, its id and what needs attention.
fn tail(row: &ListRow, id: &str, is_focused: bool, lang: Lang) -> String {
    let mut tail = paint(out::DIM, &format!("{:<12} {id}", row.node.status.as_str()));
    if row.node.has_problem {
        let _ = write!(tail, "  {}", paint(out::RED, lang.pick("! 有问题", "! problem")));
    }
    if let Some(damage) = &row.node.damage {
        let damage = format!("{} {}", lang.pick("! 文件损坏", "! damaged"), damage.text(lang));
        let _ = write!(tail, "  {}", paint(out::RED, &damage));
    }
    if is_focused {
        let _ = write!(tail, "  {}", paint(out::YELLOW, lang.pick("← 聚焦", "← focus")));
    }
    tail
}

/// Returns labels like `├─ ▶ title` for rows that form a connected part of the tree.
fn branch_labels(rows: &[ListRow]) -> Vec<String> {
    // Whether the ancestor at each depth was the last of its siblings.
    let mut last_at: Vec<bool> = Vec::new();
    let mut labels = Vec::new();
    for row in rows {
        last_at.truncate(row.depth);
        let mut line = String::new();
        for was_last in last_at.iter().skip(1) {
            line.push_str(if *was_last { "   " } else { "│  " });
        }
        if row.depth > 0 {
            line.push_str(if row.is_last { "└─ " } else { "├─ " });
        }
        last_at.push(row.is_last);
        line.push_str(&label(row));
        labels.push(line);
    }
    labels
}

/// Returns the label of a filtered row. Filtered rows have gaps, so they are indented without branch lines.
fn indented_label(row: &ListRow) -> String {
    format!("{}{}", "  ".repeat(row.depth), label(row))
}

fn label(row: &ListRow) -> String {
    format!("{} {}", symbol(row.node.status).0, text::one_line(&row.node.title))
}
