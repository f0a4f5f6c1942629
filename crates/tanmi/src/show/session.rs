//! Output of `session`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;
use tanmi_app::sessions::{BindResult, Sessions};
use tanmi_base::{Lang, clock, text};

use super::short_ids;
use super::table::{self, cell, styled};
use crate::out::{self, paint};

pub fn list(listed: &Sessions, lang: Lang) -> String {
    let mut rows = Vec::new();
    let bound = listed.sessions.iter().filter_map(|line| line.bound.as_ref());
    let bound: BTreeSet<&str> = bound.map(|bound| bound.workspace_id.as_str()).collect();
    let workspaces: BTreeMap<&str, &str> =
        bound.iter().copied().zip(short_ids(bound.iter().copied())).collect();
    let ids = short_ids(listed.sessions.iter().map(|line| line.session_id.as_str()));
    for (line, id) in listed.sessions.iter().zip(ids) {
        let (style, sign) = if line.live { (out::GREEN, "●") } else { (out::DIM, "○") };
        let bound =
            line.bound.as_ref().and_then(|bound| workspaces.get(bound.workspace_id.as_str()).copied());
        let bound = bound.unwrap_or(lang.pick("未绑定", "not bound"));
        rows.push(vec![
            styled(style, sign),
            cell(id),
            cell(text::one_line(&line.platform)),
            styled(out::DIM, clock::local_stamp(line.alive_at)),
            cell(text::one_line(bound)),
        ]);
    }
    let mut out = table::render(&rows, 60);
    if listed.total == 0 {
        let _ = writeln!(out, "{}", lang.pick("没有会话", "no sessions"));
    }
    let hidden = listed.total - rows.len();
    if hidden > 0 {
        let (zh, en) =
            (format!("… 还有 {hidden} 个（用 --limit 显示）"), format!("… {hidden} more (use --limit)"));
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    out
}

pub fn bound(bound: &BindResult, session: &str, is_known_session: bool, lang: Lang) -> String {
    let mut out = format!("{} ({})\n", bound.message, text::one_line(session));
    if let Some(overview) = &bound.overview {
        let _ = writeln!(out, "{overview}");
    }
    if !is_known_session {
        let (zh, en) = (
            "此会话还没有运行过钩子；可用 tanmi session list 核对会话 ID",
            "no hook has run in this session yet; check the id with tanmi session list",
        );
        let _ = writeln!(out, "{}", paint(out::YELLOW, lang.pick(zh, en)));
    }
    out
}

pub fn status(status: &Value, lang: Lang) -> String {
    let word = |value: &Value| text::one_line(value.as_str().unwrap_or_default());
    let progress = |value: &Value| format!("{}/{}", value["progress"]["done"], value["progress"]["total"]);
    let mut out = String::new();
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let mut rows = vec![vec![label("会话", "session"), cell(word(&status["sessionId"]))]];
    if status["bound"] == true {
        let workspace = &status["workspace"];
        let name = format!("{} ({})", word(&workspace["name"]), word(&workspace["id"]));
        rows.push(vec![label("工作区", "workspace"), cell(name)]);
        rows.push(vec![label("进度", "progress"), cell(progress(workspace))]);
        let node = &status["focusedNode"];
        if node.is_object() {
            let focus = format!("{} [{}] {}", word(&node["title"]), word(&node["status"]), word(&node["id"]));
            rows.push(vec![label("聚焦", "focus"), cell(focus)]);
        }
        for present in status["team"].as_array().into_iter().flatten() {
            let (person, machine) = (word(&present["person"]), word(&present["machine"]));
            let work = format!("{person} ({machine}): {}", word(&present["nodeTitle"]));
            rows.push(vec![label("团队", "team"), cell(work)]);
        }
        return table::render(&rows, 100);
    }
    out.push_str(&table::render(&rows, 100));
    let _ = writeln!(out, "{}", lang.pick("未绑定。可用的工作区：", "Not bound. Available workspaces:"));
    let available = status["availableWorkspaces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |value: &Value| {
        vec![
            cell(word(&value["id"])),
            styled(out::BOLD, word(&value["name"])),
            cell(progress(value)),
            styled(out::DIM, word(&value["project"])),
        ]
    };
    out.push_str(&table::render(&available.iter().map(row).collect::<Vec<_>>(), 60));
    if available.is_empty() {
        let _ = writeln!(out, "{}", paint(out::DIM, lang.pick("（无）", "(none)")));
    }
    out
}
