//! Output of `tree`.

use std::fmt::Write;

use tanmi_app::workspaces::WorkspaceView;
use tanmi_base::{Lang, text};
use tanmi_workspace::ops::{ListRow, NodePage};

use super::symbol;
use crate::out::{self, paint};

const MAX_LABEL_WIDTH: usize = 72;

pub fn render(view: &WorkspaceView, page: &NodePage, is_filtered: bool, lang: Lang) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}  {}  {}/{}",
        paint(out::BOLD, &text::one_line(&view.name)),
        paint(out::DIM, view.workspace_id.as_str()),
        view.progress.completed,
        view.progress.total
    );
    let labels = if is_filtered {
        page.nodes.iter().map(indented_label).collect()
    } else {
        branch_labels(&page.nodes)
    };
    let column = labels.iter().map(|line| text::width(line)).max().unwrap_or(0).min(MAX_LABEL_WIDTH);
    for (row, line) in page.nodes.iter().zip(&labels) {
        let (sign, style) = symbol(row.node.status);
        let line = text::fit(line, column);
        let pad = column - text::width(&line);
        let focused = view.focused_node_id.as_ref() == Some(&row.node.id);
        let shown = if focused { paint(out::BOLD, &line) } else { line };
        let shown = shown.replacen(sign, &paint(style, sign), 1);
        let _ = write!(
            out,
            "{shown}{}  {}",
            " ".repeat(pad),
            paint(out::DIM, &format!("{:<12} {}", row.node.status.as_str(), row.node.id))
        );
        if row.node.has_problem {
            let _ = write!(out, "  {}", paint(out::RED, lang.pick("! 有问题", "! problem")));
        }
        if let Some(damage) = &row.node.damage {
            let _ = write!(
                out,
                "  {}",
                paint(out::RED, &format!("{} {}", lang.pick("! 文件损坏", "! damaged"), damage.text(lang)))
            );
        }
        if focused {
            let _ = write!(out, "  {}", paint(out::YELLOW, lang.pick("← 聚焦", "← focus")));
        }
        out.push('\n');
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
