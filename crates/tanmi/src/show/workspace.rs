//! Output of `workspace`.

use std::fmt::Write;
use std::path::Path;

use tanmi_app::workspaces::{WorkspaceLine, WorkspaceLines, WorkspaceView};
use tanmi_base::paths::STORE_DIR;
use tanmi_base::{Lang, Millis, text};
use tanmi_workspace::model::{DocReference, RefStatus};

use super::short_ids;
use super::table::{self, cell, shrinkable, styled};
use crate::out::{self, paint};

/// Formats a new workspace. The suggested next command names the workspace unless it is the only one.
pub fn created(view: &WorkspaceView, is_only: bool, lang: Lang) -> String {
    let mut out = line("创建", "created", view, lang);
    let folder = Path::new(&view.project).join(STORE_DIR).join(view.workspace_id.as_str());
    // In a project of a team it is on the server.
    if folder.is_dir() {
        let place = format!("{} {}", lang.pick("存储在", "stored in"), folder.display());
        let _ = writeln!(out, "{}", paint(out::DIM, &place));
    }
    let option = if is_only { String::new() } else { format!(" -w {}", view.workspace_id) };
    let next = lang.pick("下一步：", "next: ");
    let next = format!("{next}tanmi node create{option} --type … --title … --requirement …");
    let _ = writeln!(out, "{}", paint(out::DIM, &next));
    if let Some(notice) = view.notice {
        let _ = writeln!(out, "{}", paint(out::YELLOW, notice));
    }
    out
}

pub fn line(zh: &str, en: &str, view: &WorkspaceView, lang: Lang) -> String {
    let verb = match lang {
        Lang::Zh => format!("已{zh}工作区"),
        Lang::En => format!("{en} workspace"),
    };
    format!("{verb} {} {}\n", paint(out::BOLD, &text::one_line(&view.name)), view.workspace_id)
}

pub fn archived(view: &WorkspaceView, lang: Lang) -> String {
    let mut out = line("归档", "archived", view, lang);
    let back = lang.pick("恢复：", "to restore it: ");
    let back = format!("{back}tanmi workspace restore {}", view.workspace_id);
    let _ = writeln!(out, "{}", paint(out::DIM, &back));
    out
}

pub fn deleted(deleted: &WorkspaceLine, days: u32, lang: Lang) -> String {
    let name = paint(out::BOLD, &text::one_line(&deleted.name));
    let id = &deleted.workspace_id;
    match lang {
        Lang::Zh => {
            format!("已将工作区 {name} {id} 移到回收站，保留 {days} 天\n恢复：tanmi workspace restore {id}\n")
        }
        Lang::En => format!(
            "moved workspace {name} {id} to the trash for {days} days\nto restore it: tanmi workspace restore {id}\n"
        ),
    }
}

pub fn focus(view: &WorkspaceView, lang: Lang) -> String {
    match &view.focused_node_id {
        Some(node) => format!("{}{node}\n", lang.pick("聚焦节点：", "focused node: ")),
        None => format!("{}\n", lang.pick("没有聚焦节点", "no focused node")),
    }
}

pub fn full(view: &WorkspaceView, lang: Lang) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}  {}",
        paint(out::BOLD, &text::one_line(&view.name)),
        paint(out::DIM, view.workspace_id.as_str())
    );
    let none = lang.pick("（无）", "(none)");
    let focus = view.focused_node_id.as_ref().map_or(none, |id| id.as_str());
    let mut rows = vec![
        vec![styled(out::DIM, lang.pick("状态", "status")), cell(view.status.as_str())],
        vec![
            styled(out::DIM, lang.pick("进度", "progress")),
            cell(format!("{}/{}", view.progress.completed, view.progress.total)),
        ],
        vec![styled(out::DIM, lang.pick("聚焦", "focus")), cell(focus)],
        vec![styled(out::DIM, lang.pick("项目", "project")), cell(view.project.display().to_string())],
    ];
    if let Some(language) = view.language {
        let name = lang.pick(language.pick("中文", "英文"), language.pick("Chinese", "English"));
        let name = lang.pick(format!("{name}（智能体所读文本）"), format!("{name} (texts for agents)"));
        rows.push(vec![styled(out::DIM, lang.pick("语言", "language")), cell(name)]);
    }
    if view.mask_secrets == Some(false) {
        let off = lang.pick("关闭：敏感信息按原样保存", "off: secrets are stored as they are");
        rows.push(vec![styled(out::DIM, lang.pick("遮盖", "masking")), cell(off)]);
    }
    out.push_str(&table::render(&rows, 200));
    let _ =
        writeln!(out, "\n{}\n{}", paint(out::BOLD, lang.pick("目标", "Goal")), text::printable(&view.goal));
    if !view.rules.is_empty() {
        let _ = writeln!(
            out,
            "\n{} {}",
            paint(out::BOLD, lang.pick("规则", "Rules")),
            paint(out::DIM, &view.rules_hash)
        );
        for rule in &view.rules {
            let _ = writeln!(out, "- {}", text::printable(rule).replace('\n', "\n  "));
        }
    }
    docs(&mut out, &view.docs, lang);
    out
}

pub fn docs(out: &mut String, docs: &[DocReference], lang: Lang) {
    if docs.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", paint(out::BOLD, lang.pick("文档", "Docs")));
    for doc in docs {
        let mark = if doc.status == RefStatus::Expired { "[expired] " } else { "" };
        let _ =
            writeln!(out, "- {mark}{}: {}", text::printable(&doc.path), text::printable(&doc.description));
    }
}

pub fn lines(lines: &WorkspaceLines, project: &Path, now: Millis, lang: Lang) -> String {
    if lines.workspaces.is_empty() {
        return format!(
            "{}\n",
            lang.pick(
                "没有工作区；用 tanmi workspace init --name … --goal … 创建",
                "no workspaces; create one with tanmi workspace init --name … --goal …",
            )
        );
    }
    let head = [
        lang.pick("工作区", "workspace"),
        lang.pick("名称", "name"),
        lang.pick("状态", "status"),
        lang.pick("进度", "progress"),
        lang.pick("最近活动", "active"),
        lang.pick("项目", "project"),
    ];
    let mut rows = vec![head.map(|word| styled(out::DIM, word)).into_iter().collect::<Vec<_>>()];
    let ids = short_ids(lines.workspaces.iter().map(|line| line.workspace_id.as_str()));
    for (line, id) in lines.workspaces.iter().zip(ids) {
        let place =
            if line.project == project { String::from(".") } else { line.project.display().to_string() };
        let style = if line.damage.is_some() { out::RED } else { anstyle::Style::new() };
        rows.push(vec![
            cell(id),
            shrinkable(styled(out::BOLD, &line.name)),
            styled(style, line.status.as_str()),
            cell(format!("{}/{}", line.progress.completed, line.progress.total)),
            cell(ago(now - line.active_at, lang)),
            shrinkable(cell(place)),
        ]);
    }
    let mut out = table::render(&rows, 44);
    for line in lines.workspaces.iter().filter_map(|line| line.damage.as_ref()) {
        let _ = writeln!(out, "{}", paint(out::RED, line));
    }
    let hidden = lines.total - lines.workspaces.len();
    if hidden > 0 {
        let (zh, en) =
            (format!("… 还有 {hidden} 个（用 --limit 显示）"), format!("… {hidden} more (use --limit)"));
        let _ = writeln!(out, "{}", lang.pick(zh, en));
    }
    out
}

/// Returns how long ago something was.
pub fn ago(millis: Millis, lang: Lang) -> String {
    let minutes = millis.max(0) / 60_000;
    let (n, zh, en) = match minutes {
        0 => return lang.pick("刚刚", "now").to_owned(),
        1..60 => (minutes, "分钟前", "min"),
        60..1440 => (minutes / 60, "小时前", "h"),
        _ => (minutes / 1440, "天前", "d"),
    };
    format!("{n} {}", lang.pick(zh, en))
}
