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
    let line = |out: &mut String, path: &str, about: &str| {
        let colon = lang.pick("：", ": ");
        let _ = writeln!(out, "{}{colon}{}", paint(out::BOLD, &text::one_line(path)), paint(out::DIM, about));
    };
    let file_text = |kind: &str, hash: &str, has_changed: bool| {
        let hash = &hash[..12];
        let changed = if has_changed {
            lang.pick("，同意之后有变化", ", changed since you agreed")
        } else {
            ""
        };
        lang.pick(format!("{kind}（{hash}{changed}）"), format!("{kind} ({hash}{changed})"))
    };
    if with_project && !view.trusted {
        let about = lang.pick("本项目，包括工作区和记忆", "this project, with its workspaces and memory");
        line(&mut out, &view.project, about);
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
        line(&mut out, &file.path, &file_text(kind, &file.hash, file.changed));
    }
    for file in &view.pending.rules {
        let kind = lang.pick("规则", "rules");
        line(&mut out, &file.path, &file_text(kind, &file.hash, file.changed));
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
