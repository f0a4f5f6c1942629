//! Output of `trash`.

use std::fmt::Write;

use tanmi_app::workspaces::TrashList;
use tanmi_base::{Lang, Millis};
use tanmi_workspace::store::TrashEntry;

use super::short_ids;
use super::table::{self, Cell, cell, shrinkable, styled};
use super::workspace::ago;
use crate::out::{self, paint};

pub fn list(listed: &TrashList, now: Millis, lang: Lang) -> String {
    if listed.total == 0 {
        return format!("{}\n", lang.pick("回收站是空的", "the trash is empty"));
    }
    let id_of = |entry: &'_ TrashEntry| match &entry.node_id {
        Some(node) => node.to_string(),
        None => entry.workspace_id.to_string(),
    };
    let whole: Vec<String> = listed.entries.iter().map(id_of).collect();
    let ids = short_ids(whole.iter().map(String::as_str));
    let row = |(entry, id): (&TrashEntry, &str)| -> Vec<Cell> {
        let (zh, en) = if entry.node_id.is_some() { ("节点", "node") } else { ("工作区", "workspace") };
        let count = lang.pick(format!("{} 个节点", entry.count), super::counted(entry.count, "node"));
        vec![
            cell(id),
            cell(lang.pick(zh, en)),
            shrinkable(styled(out::BOLD, &entry.title)),
            cell(count),
            styled(out::DIM, ago(now - entry.deleted_at, lang)),
        ]
    };
    let mut out = table::render(&listed.entries.iter().zip(ids).map(row).collect::<Vec<_>>(), 60);
    let hidden = listed.total - listed.entries.len();
    if hidden > 0 {
        let (zh, en) =
            (format!("… 还有 {hidden} 项（用 --limit 显示）"), format!("… {hidden} more (use --limit)"));
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    let hint = lang.pick(
        "恢复：tanmi node restore ID、tanmi workspace restore ID",
        "restore: tanmi node restore ID, tanmi workspace restore ID",
    );
    let _ = writeln!(out, "{}", paint(out::DIM, hint));
    out
}
