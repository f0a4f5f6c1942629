//! Output of `node`.

use std::fmt::Write;

use tanmi_app::nodes::{NodeResult, TaskView, TransitionResult};
use tanmi_base::{Lang, clock, text};
use tanmi_workspace::model::{Node, RefStatus, WorkspaceId};
use tanmi_workspace::ops::{DeletedSubtree, NodePage, StatusChange};

use super::table::{self, cell, shrinkable, styled};
use super::{counted, short_ids, symbol, workspace};
use crate::out::{self, paint};

pub fn created(result: &NodeResult, lang: Lang) -> String {
    let verb = lang.pick("已创建节点", "created node");
    let mut out =
        format!("{verb} {} {}\n", paint(out::BOLD, &text::one_line(&result.node.title)), result.node_id);
    status_changes(&mut out, &result.status_changes, lang);
    out
}

pub fn moved(result: &NodeResult, lang: Lang) -> String {
    let parent = result.node.parent_id.as_ref().map_or("", |id| id.as_str());
    let title = paint(out::BOLD, &text::one_line(&result.node.title));
    let mut out = match lang {
        Lang::Zh => format!("已将 {title} 移到 {parent} 下\n"),
        Lang::En => format!("moved {title} under {parent}\n"),
    };
    status_changes(&mut out, &result.status_changes, lang);
    out
}

pub fn restored(result: &NodeResult, lang: Lang) -> String {
    let verb = lang.pick("已恢复节点", "restored node");
    let title = paint(out::BOLD, &text::one_line(&result.node.title));
    let mut out = format!("{verb} {title} {}\n", result.node_id);
    status_changes(&mut out, &result.status_changes, lang);
    out
}

pub fn deleted(deleted: &DeletedSubtree, lang: Lang) -> String {
    let title = paint(out::BOLD, &text::one_line(&deleted.title));
    let mut out = match lang {
        Lang::Zh => format!("已将 {title}（共 {} 个节点）移到回收站\n", deleted.count),
        Lang::En => format!("moved {title} to the trash ({})\n", counted(deleted.count, "node")),
    };
    for id in &deleted.dependents {
        let line = format!("{} {id}", lang.pick("已移除对它的依赖：", "removed the dependency on it:"));
        let _ = writeln!(out, "{}", paint(out::DIM, &line));
    }
    let undo = format!("{} tanmi node restore {}", lang.pick("撤销：", "undo:"), deleted.node_id);
    let _ = writeln!(out, "{}", paint(out::DIM, &undo));
    status_changes(&mut out, &deleted.status_changes, lang);
    out
}

pub fn transitioned(transitioned: &TransitionResult, workspace: &WorkspaceId, lang: Lang) -> String {
    let done = &transitioned.step;
    let (sign, style) = symbol(done.to);
    let mut out = format!(
        "{} {}  {} → {}\n",
        paint(style, sign),
        paint(out::BOLD, &text::one_line(&done.title)),
        done.from,
        done.to
    );
    status_changes(&mut out, &done.status_changes, lang);
    if let Some(collected) = &done.collected {
        let (rules, docs) = (collected.rules.len(), collected.docs.len());
        let _ = match lang {
            Lang::Zh => writeln!(out, "已归档到工作区：规则 {rules} 条，文档 {docs} 个"),
            Lang::En => writeln!(
                out,
                "archived to the workspace: {}, {}",
                counted(rules, "rule"),
                counted(docs, "doc")
            ),
        };
        for rule in &collected.rules {
            let _ = writeln!(out, "- {}", text::one_line(rule));
        }
        for doc in &collected.docs {
            let _ = writeln!(out, "- {}: {}", text::one_line(&doc.path), text::one_line(&doc.description));
        }
        for left in &collected.left_out {
            let _ = writeln!(
                out,
                "{} {}",
                lang.pick("超出上限，未归档：", "limit exceeded, not archived:"),
                text::one_line(left)
            );
        }
    }
    if let Some(problem) = &done.open_problem {
        let (zh, en) = ("问题尚未清除：", "the problem is still open: ");
        let line = format!("! {}{}", lang.pick(zh, en), text::fit(&text::one_line(problem), 80));
        let _ = writeln!(out, "{}", paint(out::YELLOW, &line));
        let _ = writeln!(out, "  → tanmi problem --clear --workspace {workspace} --node {}", done.node_id);
    }
    if let Some(focus) = done.focus.as_ref().filter(|_| done.focus_moved) {
        let line = format!("{}{focus}", lang.pick("聚焦：", "focus: "));
        let _ = writeln!(out, "{}", paint(out::DIM, &line));
    }
    for next in &transitioned.next {
        let title = text::one_line(&next.title);
        let line = format!("{}{title} {}", lang.pick("接下来：", "next: "), next.node_id);
        let _ = writeln!(out, "{}", paint(out::DIM, &line));
    }
    for reminder in &transitioned.reminders {
        out.push_str(&super::rules::quoted(reminder));
    }
    if let Some(asked) = &transitioned.task {
        out.push_str(&task(asked, lang));
    }
    out
}

/// Formats what a node asks for.
pub fn task(task: &TaskView, lang: Lang) -> String {
    let mut out = String::new();
    let problem = task.problem.as_ref();
    let texts = [
        (lang.pick("需求：", "requirement: "), out::DIM, Some(&task.requirement)),
        (lang.pick("备注：", "note: "), out::DIM, Some(&task.note)),
        (lang.pick("未解决的问题：", "open problem: "), out::YELLOW, problem.map(|it| &it.description)),
        (lang.pick("下一步：", "next step: "), out::YELLOW, problem.and_then(|it| it.next_step.as_ref())),
    ];
    for (label, style, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let _ = writeln!(out, "{}{}", paint(style, label), text::printable(text));
        }
    }
    if !task.dependency_conclusions.is_empty() {
        let heading = lang.pick("依赖的结论：", "conclusions of its dependencies:");
        let _ = writeln!(out, "{}", paint(out::DIM, heading));
    }
    for one in &task.dependency_conclusions {
        let (title, conclusion) = (text::one_line(&one.title), text::one_line(&one.conclusion));
        let _ = writeln!(out, "- {title} ({}): {conclusion}", one.status);
    }
    out
}

pub fn status_changes(out: &mut String, changes: &[StatusChange], lang: Lang) {
    for change in changes {
        let line = format!(
            "{} {}: {} → {}",
            lang.pick("同时变更", "also changed"),
            change.node_id,
            change.from,
            change.to
        );
        let _ = writeln!(out, "{}", paint(out::DIM, &line));
    }
}

pub fn list(page: &NodePage, lang: Lang) -> String {
    let mut rows = Vec::new();
    let ids = short_ids(page.nodes.iter().map(|row| row.node.id.as_str()));
    for (row, id) in page.nodes.iter().zip(ids) {
        let (sign, style) = symbol(row.node.status);
        let mark = match (&row.node.damage, row.node.has_problem) {
            (Some(_), _) => "✘",
            (None, true) => "!",
            _ => "",
        };
        rows.push(vec![
            styled(style, sign),
            cell(id),
            styled(style, row.node.status.as_str()),
            cell(row.node.kind.as_str()),
            shrinkable(cell(format!("{}{}", "  ".repeat(row.depth), row.node.title))),
            styled(out::RED, mark),
        ]);
    }
    let mut out = table::render(&rows, 60);
    if let Some(next) = &page.next_after {
        let _ = writeln!(
            out,
            "{}",
            paint(
                out::DIM,
                &format!("{} --after {next}", lang.pick("还有更多节点：加上", "more nodes: add"))
            )
        );
    }
    if rows.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("没有匹配的节点", "no matching nodes"));
    }
    out
}

pub fn full(node: &Node, lang: Lang) -> String {
    let mut out = String::new();
    let (sign, style) = symbol(node.status);
    let title = paint(out::BOLD, &text::one_line(&node.title));
    let _ = writeln!(out, "{} {title}  {}", paint(style, sign), paint(out::DIM, node.id.as_str()));
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let mut rows = vec![
        vec![label("类型", "type"), cell(node.kind.as_str())],
        vec![label("状态", "status"), cell(node.status.as_str())],
    ];
    if let Some(role) = node.role {
        rows.push(vec![label("角色", "role"), cell(role.as_str())]);
    }
    if let Some(parent) = &node.parent_id {
        rows.push(vec![label("父节点", "parent"), cell(parent.as_str())]);
    }
    if !node.depends_on.is_empty() {
        let ids: Vec<&str> = node.depends_on.iter().map(|id| id.as_str()).collect();
        rows.push(vec![label("依赖", "depends on"), cell(ids.join(" "))]);
    }
    if node.isolated {
        rows.push(vec![label("隔离", "isolated"), cell("true")]);
    }
    rows.push(vec![label("更新于", "updated"), cell(clock::local_stamp(node.updated_at))]);
    out.push_str(&table::render(&rows, 80));
    section(&mut out, lang.pick("需求", "Requirement"), &node.requirement);
    section(&mut out, lang.pick("结论", "Conclusion"), node.conclusion.as_deref().unwrap_or_default());
    section(&mut out, lang.pick("备注", "Note"), &node.note);
    workspace::docs(&mut out, &node.docs, lang);
    if !node.references.is_empty() {
        let _ = write!(out, "\n{}", references(node, lang));
    }
    if let Some(problem) = &node.activity.problem {
        section(&mut out, lang.pick("问题", "Problem"), &problem.description);
        section(&mut out, lang.pick("下一步", "Next step"), problem.next_step.as_deref().unwrap_or_default());
    }
    if !node.activity.log.is_empty() {
        let _ = writeln!(out, "\n{}", paint(out::BOLD, lang.pick("日志", "Log")));
        for entry in &node.activity.log {
            let _ = writeln!(out, "{}", super::activity::entry(entry));
        }
    }
    out
}

pub fn references(node: &Node, lang: Lang) -> String {
    let mut out = format!("{}\n", paint(out::BOLD, lang.pick("引用", "References")));
    for reference in &node.references {
        let mark = if reference.status == RefStatus::Expired { "[expired] " } else { "" };
        let _ = writeln!(
            out,
            "- {mark}{}: {}",
            text::printable(&reference.target_id),
            text::printable(&reference.description)
        );
    }
    if node.references.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("（无）", "(none)"));
    }
    out
}

fn section(out: &mut String, label: &str, body: &str) {
    if !body.is_empty() {
        let _ = writeln!(out, "\n{}\n{}", paint(out::BOLD, label), text::printable(body));
    }
}
