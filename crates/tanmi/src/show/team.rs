//! Output of `team`.

use serde_json::Value;
use tanmi_base::{Lang, Millis, clock};
use tanmi_pg::{AuditEntry, PersonEntry, ProjectEntry, TokenEntry};

use super::counted;
use super::table::{self, Cell, cell, droppable, shrinkable, styled};
use super::workspace::ago;
use crate::out;

fn none(lang: Lang, zh: &str, en: &str) -> String {
    format!("{}\n", out::paint(out::DIM, lang.pick(zh, en)))
}

pub fn people(people: &[PersonEntry], lang: Lang) -> String {
    if people.is_empty() {
        return none(lang, "没有这样的人", "no such people");
    }
    let row = |person: &PersonEntry| -> Vec<Cell> {
        let roles: Vec<String> =
            person.roles.iter().map(|(project, role)| format!("{project}: {role}")).collect();
        let state = if person.disabled_at.is_some() { lang.pick("已停用", "disabled") } else { "" };
        vec![
            styled(out::BOLD, &person.name),
            droppable(cell(&person.team)),
            styled(out::YELLOW, state),
            shrinkable(cell(roles.join(", "))),
        ]
    };
    table::render(&people.iter().map(row).collect::<Vec<_>>(), 60)
}

pub fn projects(projects: &[ProjectEntry], lang: Lang) -> String {
    if projects.is_empty() {
        return none(lang, "没有项目", "no projects");
    }
    let row = |project: &ProjectEntry| -> Vec<Cell> {
        let workspaces = project.workspaces.unwrap_or_default();
        vec![
            styled(out::BOLD, &project.name),
            droppable(cell(&project.team)),
            cell(lang.pick(format!("{} 人", project.members), counted(project.members, "member"))),
            cell(lang.pick(format!("{workspaces} 个工作区"), counted(workspaces, "workspace"))),
        ]
    };
    table::render(&projects.iter().map(row).collect::<Vec<_>>(), 60)
}

pub fn tokens(tokens: &[TokenEntry], now: Millis, lang: Lang) -> String {
    if tokens.is_empty() {
        return none(lang, "没有这样的令牌", "no such tokens");
    }
    let day = clock::utc_day;
    let row = |token: &TokenEntry| -> Vec<Cell> {
        let state = match (token.revoked_at, token.expires_at) {
            (Some(_), _) => lang.pick("已撤销", "revoked").to_owned(),
            (None, Some(at)) if at <= now => lang.pick("已过期", "expired").to_owned(),
            (None, Some(at)) => lang.pick(format!("有效至 {}", day(at)), format!("until {}", day(at))),
            (None, None) => lang.pick("不过期", "no expiry").to_owned(),
        };
        let used = match token.last_used_at {
            Some(at) => {
                lang.pick(format!("{}用过", ago(now - at, lang)), format!("used {}", ago(now - at, lang)))
            }
            None => lang.pick("未用过", "never used").to_owned(),
        };
        vec![
            cell(&token.id),
            styled(out::BOLD, &token.person),
            shrinkable(cell(&token.name)),
            cell(&token.role),
            cell(token.project.as_deref().unwrap_or(lang.pick("所有项目", "all projects"))),
            cell(state),
            droppable(styled(out::DIM, used)),
            droppable(styled(out::DIM, day(token.created_at))),
        ]
    };
    table::render(&tokens.iter().map(row).collect::<Vec<_>>(), 60)
}

pub fn audit(entries: &[AuditEntry], lang: Lang) -> String {
    if entries.is_empty() {
        return none(lang, "没有这样的条目", "no such entries");
    }
    let row = |entry: &AuditEntry| -> Vec<Cell> {
        let by = entry.person.as_deref().unwrap_or("-");
        vec![
            styled(out::DIM, clock::local_stamp(entry.at)),
            cell(&entry.what),
            styled(out::BOLD, by),
            droppable(cell(entry.ip.as_deref().unwrap_or("-"))),
            droppable(cell(entry.project.as_deref().unwrap_or("-"))),
            shrinkable(cell(detail(&entry.detail))),
        ]
    };
    table::render(&entries.iter().map(row).collect::<Vec<_>>(), 80)
}

/// Returns the fields of a detail as `name=bob role=member`.
fn detail(detail: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = detail.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    fields.map(|(key, value)| format!("{key}={}", text(value))).collect::<Vec<_>>().join(" ")
}

pub fn imported(value: &Value, lang: Lang) -> String {
    let number = |key: &str| value[key].as_u64().unwrap_or_default();
    let mut lines = vec![lang.pick(
        format!(
            "已导入 {} 个工作区（{} 个早已存在）和 {} 行记忆（{} 行早已存在）",
            number("workspaces"),
            number("knownWorkspaces"),
            number("memoryLines"),
            number("knownMemoryLines")
        ),
        format!(
            "imported {} ({} known) and {} ({} known)",
            counted(number("workspaces"), "workspace"),
            number("knownWorkspaces"),
            counted(number("memoryLines"), "memory line"),
            number("knownMemoryLines")
        ),
    )];
    for (key, zh, en) in [
        ("privateMemories", "条私人记忆（看法和对话）", "private memories (opinions and conversations)"),
        ("unusableMemoryLines", "行无法使用的记忆", "memory lines that cannot be used"),
        ("deleted", "项在回收站中", "entries of the trash"),
    ] {
        let count = number(key);
        if count > 0 {
            lines.push(lang.pick(format!("未导入：{count} {zh}"), format!("left out: {count} {en}")));
        }
    }
    lines.join("\n")
}
