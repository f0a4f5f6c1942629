//! What a session is bound to.

use std::fmt::Write;

use serde_json::Value;
use tanmi_base::{Lang, text};

use super::table::{self, cell, styled};
use crate::out::{self, paint};

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
        return table::render(&rows, 100);
    }
    out.push_str(&table::render(&rows, 100));
    let _ = writeln!(out, "{}", lang.pick("未绑定。可用的工作区：", "Not bound. There are:"));
    let available = status["availableWorkspaces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |value: &Value| {
        vec![cell(word(&value["id"])), styled(out::BOLD, word(&value["name"])), cell(progress(value))]
    };
    out.push_str(&table::render(&available.iter().map(row).collect::<Vec<_>>(), 60));
    if available.is_empty() {
        let _ = writeln!(out, "{}", paint(out::DIM, lang.pick("（无）", "(none)")));
    }
    out
}
