//! Output of `plan` and `next`.

use std::fmt::Write;

use tanmi_app::nodes::{NextResult, PlanResult, StartedView};
use tanmi_base::{Lang, text};
use tanmi_workspace::model::PERSON;
use tanmi_workspace::ops::{BlockReason, BlockedNode, NextNode, PlannedNode};

use super::table::{self, cell, shrinkable, styled};
use super::{counted, node, short_ids, symbol};
use crate::out::{self, paint};

pub fn planned(result: &PlanResult, lang: Lang) -> String {
    let nodes = &result.planned.nodes;
    let mut out = match lang {
        Lang::Zh => format!("已创建 {} 个节点\n", nodes.len()),
        Lang::En => format!("created {}\n", counted(nodes.len(), "node")),
    };
    let ids = short_ids(nodes.iter().map(|node| node.node_id.as_str()));
    let row = |(node, id): (&PlannedNode, &str)| {
        let title = format!("{}{}", "  ".repeat(node.level), text::one_line(&node.title));
        vec![cell(id), shrinkable(cell(title))]
    };
    out.push_str(&table::render(&nodes.iter().zip(ids).map(row).collect::<Vec<_>>(), 60));
    node::status_changes(&mut out, &result.planned.status_changes, lang);
    out
}

pub fn next(result: &NextResult, lang: Lang) -> String {
    if let Some(started) = &result.started {
        return self::started(started, lang);
    }
    if let Some(next) = result.next.as_ref().filter(|next| !next.is_empty()) {
        return ready(next, lang);
    }
    let (completed, total) = (result.progress.completed, result.progress.total);
    let out = match (result.blocked.is_empty(), total) {
        (true, 0) => String::from(lang.pick("还没有节点\n", "there are no nodes yet\n")),
        (true, _) => lang.pick(
            format!("没有可以开始的节点（已完成 {completed}/{total}）\n"),
            format!("nothing is left to start ({completed}/{total} completed)\n"),
        ),
        (false, _) => String::from(lang.pick("现在没有可以开始的节点：\n", "nothing can be started now:\n")),
    };
    out + &blocked(&result.blocked, lang)
}

fn ready(nodes: &[NextNode], lang: Lang) -> String {
    let ids = short_ids(nodes.iter().map(|node| node.node_id.as_str()));
    let row = |(node, id): (&NextNode, &str)| {
        let mark = if node.takeover { lang.pick("接手", "take over") } else { "" };
        vec![
            cell(id),
            cell(node.kind.as_str()),
            shrinkable(cell(text::one_line(&node.title))),
            styled(out::YELLOW, mark),
        ]
    };
    table::render(&nodes.iter().zip(ids).map(row).collect::<Vec<_>>(), 60)
}

fn blocked(nodes: &[BlockedNode], lang: Lang) -> String {
    let ids = short_ids(nodes.iter().map(|node| node.node_id.as_str()));
    let row = |(node, id): (&BlockedNode, &str)| {
        let (sign, style) = symbol(node.status);
        vec![
            styled(style, sign),
            cell(id),
            shrinkable(cell(text::one_line(&node.title))),
            shrinkable(cell(reason(node, lang))),
        ]
    };
    table::render(&nodes.iter().zip(ids).map(row).collect::<Vec<_>>(), 60)
}

/// Returns why a node cannot be started.
pub fn reason(node: &BlockedNode, lang: Lang) -> String {
    match (node.reason, &node.holder) {
        (BlockReason::ChildrenDone, _) => lang
            .pick("子节点都已结束，可以完成它", "all children are done, so it can be completed")
            .to_owned(),
        (BlockReason::InProgress, Some(holder)) if holder == PERSON => {
            lang.pick("由人进行中", "in progress by a person").to_owned()
        }
        (BlockReason::InProgress, Some(_)) if node.holder_name.is_some() => {
            let holder = text::fit(&text::one_line(node.holder_name.as_deref().unwrap_or_default()), 60);
            lang.pick(format!("{holder} 进行中"), format!("in progress by {holder}"))
        }
        (BlockReason::InProgress, Some(holder)) => {
            let holder = text::fit(&text::one_line(holder), 60);
            lang.pick(format!("会话 {holder} 进行中"), format!("in progress by session {holder}"))
        }
        (BlockReason::InProgress, None) => lang.pick("进行中", "in progress").to_owned(),
        (BlockReason::Dependencies, _) => {
            let one = |on: &tanmi_workspace::error::OpenDependency| {
                let status = on.status.map_or(lang.pick("不存在", "missing"), |status| status.as_str());
                let name = if on.title.is_empty() { on.node_id.as_str() } else { &on.title };
                format!("{} ({status})", text::fit(&text::one_line(name), 60))
            };
            let list: Vec<String> = node.waits_for.iter().map(one).collect();
            let list = list.join(lang.pick("、", ", "));
            lang.pick(format!("等待 {list}"), format!("waits for {list}"))
        }
    }
}

fn started(started: &StartedView, lang: Lang) -> String {
    let (sign, style) = symbol(started.status);
    let title = paint(out::BOLD, &text::one_line(&started.title));
    let mut out = format!("{} {title}  {} {}\n", paint(style, sign), started.status, started.node_id);
    if started.takeover {
        let (zh, en) = ("从已结束的会话接手", "taken over from a session that ended");
        let _ = writeln!(out, "{}", paint(out::YELLOW, lang.pick(zh, en)));
    }
    out.push_str(&super::node::task(&started.task, lang));
    out
}
