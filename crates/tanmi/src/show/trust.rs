//! Output of `trust` and `rules trust`.

use std::fmt::Write;

use serde_json::{Value, json};
use tanmi_app::owners::OwnerView;
use tanmi_app::rules::{PendingTrust, TrustView};
use tanmi_app::trust::pending::FileKind;
use tanmi_base::{Lang, text};

use crate::out::{self, paint};

/// Formats the content that the user is asked to agree to. `with_project` is false if only rules files are trusted.
pub fn pending(view: &TrustView, with_project: bool, lang: Lang) -> String {
    let mut out = String::new();
    let changed = |changed: bool| match changed {
        true => lang.pick("，同意之后有变化", ", changed since you agreed"),
        false => "",
    };
    let line = |out: &mut String, path: &str, about: &str| {
        let _ = writeln!(out, "{} {}", paint(out::BOLD, &text::one_line(path)), paint(out::DIM, about));
    };
    if with_project && !view.trusted {
        line(
            &mut out,
            &view.project,
            lang.pick("项目及其工作区和记忆", "project with its workspaces and memory"),
        );
    }
    if let Some(memory) = &view.pending.memory {
        line(&mut out, memory, lang.pick("记忆", "memory"));
    }
    for file in &view.pending.files {
        let kind = match file.kind {
            FileKind::Settings => lang.pick("设置", "settings"),
            FileKind::Manifest => lang.pick("声明的上下文的清单", "list of declared context"),
            FileKind::Context => lang.pick("声明的上下文", "declared context"),
            FileKind::Subagent => lang.pick("子智能体的文本", "text for subagents"),
        };
        line(&mut out, &file.path, &format!("{} {kind}{}", &file.hash[..12], changed(file.changed)));
    }
    for file in &view.pending.rules {
        line(&mut out, &file.path, &format!("{}{}", &file.hash[..12], changed(file.changed)));
        for rule in &file.rules {
            let _ = writeln!(out, "  - {}", text::one_line(rule));
        }
    }
    out
}

/// Returns the same content for programs: one list of rules files and other files.
pub fn details(pending: &PendingTrust) -> Value {
    let rules = pending.rules.iter().map(|file| json!(file));
    rules.chain(pending.files.iter().map(|file| json!(file))).collect()
}

pub fn trusted(view: &TrustView, was_needed: bool, lang: Lang) -> String {
    let text = match (was_needed, view.done) {
        (false, _) => lang.pick("没有需要信任的内容", "nothing to trust"),
        (true, true) => lang.pick("已信任", "trusted"),
        (true, false) => lang.pick("未信任，没有更改", "not trusted; nothing was changed"),
    };
    format!("{text}\n")
}

pub fn revoked(view: &TrustView, lang: Lang) -> String {
    let text = if view.done {
        lang.pick("已撤销信任", "trust revoked")
    } else {
        lang.pick("此项目未被信任，没有更改", "the project was not trusted; nothing was changed")
    };
    format!("{text}\n")
}

pub fn owner(view: &OwnerView, lang: Lang) -> String {
    let project = &view.project;
    let text = match view.owner {
        None => lang.pick(format!("{project} 属于你"), format!("{project} belongs to you")),
        Some(owner) if view.allowed => lang.pick(
            format!("允许使用 {project}（属于 uid {owner}）；`tanmi trust --revoke` 可撤销"),
            format!("{project} (of uid {owner}) is used; undo this with `tanmi trust --revoke`"),
        ),
        Some(owner) => lang.pick(
            format!("不使用 {project}（属于 uid {owner}）"),
            format!("{project} (of uid {owner}) is not used"),
        ),
    };
    format!("{text}\n")
}
