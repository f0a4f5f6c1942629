//! Output of `ledger`.

use std::collections::BTreeMap;
use std::fmt::Write;

use tanmi_app::ledger::{LedgerLine, LedgerView, Totals};
use tanmi_base::{Lang, clock};

use super::table::{self, Cell, cell, droppable, shrinkable, styled};
use super::{counted, short_ids};
use crate::out::{self, paint};

pub fn view(view: &LedgerView, lang: Lang) -> String {
    if view.total.decisions == 0 {
        let none = lang.pick("没有账本记录", "no ledger entries");
        return format!("{}\n", paint(out::DIM, none));
    }
    let mut out = String::new();
    let names: Vec<&str> = view.sessions.keys().map(String::as_str).collect();
    let ids: BTreeMap<&str, &str> = names.iter().copied().zip(short_ids(names.iter().copied())).collect();
    let id_of = |session: &str| ids.get(session).map_or_else(|| session.to_owned(), |id| (*id).to_owned());
    let row = |line: &LedgerLine| row(line, &id_of(&line.entry.session));
    let with_text = view.entries.iter().any(|line| line.content.is_some());
    if with_text {
        for line in &view.entries {
            out.push_str(&table::render(&[row(line)], 60));
            out.push_str(&super::rules::quoted(line.content.as_deref().unwrap_or_default()));
        }
    } else {
        out.push_str(&table::render(&view.entries.iter().map(row).collect::<Vec<_>>(), 60));
    }
    let hidden = view.total.decisions.saturating_sub(view.entries.len());
    if hidden > 0 {
        let (zh, en) = (
            format!("… 还有 {hidden} 条更早的记录（用 --limit 显示）"),
            format!("… {} not shown (use --limit)", counted(hidden, "earlier injection")),
        );
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    let _ = writeln!(out);
    let mut totals: Vec<Vec<Cell>> =
        view.days.iter().map(|(day, total)| total_row(day, total, lang)).collect();
    if view.sessions.len() > 1 {
        let mut sessions: Vec<_> = view.sessions.iter().collect();
        sessions.sort_by_key(|(_, total)| std::cmp::Reverse(total.bytes));
        totals.extend(
            sessions.into_iter().take(20).map(|(session, total)| total_row(&id_of(session), total, lang)),
        );
    }
    totals.push(total_row(lang.pick("合计", "total"), &view.total, lang));
    out.push_str(&table::render(&totals, 50));
    if view.unreadable > 0 {
        let count = view.unreadable;
        let (zh, en) = (format!("{count} 行无法读取"), format!("{} cannot be read", counted(count, "line")));
        let _ = writeln!(out, "{}", paint(out::YELLOW, &lang.pick(zh, en)));
    }
    out
}

/// The width below which the event and the rules need the space of the columns that can be left out.
const WIDE: usize = 110;

fn row(line: &LedgerLine, session: &str) -> Vec<Cell> {
    let entry = &line.entry;
    let is_wide = out::columns().is_none_or(|columns| columns >= WIDE);
    // A column without any text is left out.
    let if_wide = |text: String| if is_wide { text } else { String::new() };
    vec![
        styled(out::DIM, clock::local_stamp(entry.at)),
        cell(session),
        droppable(cell(if_wide(entry.platform.clone()))),
        shrinkable(cell(&entry.event)),
        shrinkable(styled(out::BOLD, entry.rules.join(", "))),
        droppable(cell(if_wide(format!("{} B", entry.bytes)))),
        cell(format!("≈{} tok", entry.tokens)),
        droppable(styled(out::DIM, if_wide(format!("{:.1} ms", entry.micros as f64 / 1000.0)))),
    ]
}

fn total_row(name: &str, total: &Totals, lang: Lang) -> Vec<Cell> {
    vec![
        styled(out::BOLD, name),
        cell(lang.pick(format!("{} 次注入", total.decisions), counted(total.decisions, "injection"))),
        cell(format!("{} B", total.bytes)),
        cell(format!("≈{} tok", total.tokens)),
    ]
}
