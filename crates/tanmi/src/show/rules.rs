//! Output of `rules`.

use std::fmt::Write;

use tanmi_app::rules::{CheckedRules, Explanation, RuleLines, RuleState, Verdict};
use tanmi_base::{Lang, text};

use super::counted;
use super::table::{self, cell, styled};
use crate::out::{self, paint};

pub fn list(lines: &RuleLines, lang: Lang) -> String {
    let row = |line: &tanmi_app::rules::RuleLine| {
        let style = if line.state == RuleState::Active { out::GREEN } else { out::YELLOW };
        let events: Vec<&str> = line.events.iter().map(|kind| kind.as_str()).collect();
        let events = if events.is_empty() { String::from("*") } else { events.join(", ") };
        vec![
            cell(format!("{:>4}", line.priority)),
            styled(out::BOLD, line.id.as_str()),
            cell(line.source),
            styled(style, line.state.as_str()),
            cell(format!("{events}: {}", line.name)),
        ]
    };
    let mut out = table::render_wrapped(lines.rules.iter().map(row).collect());
    if lines.rules.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("没有匹配的规则", "no matching rules"));
    }
    let untrusted = lines.rules.iter().filter(|line| line.state == RuleState::Untrusted).count();
    if untrusted > 0 {
        let hint = lang.pick(
            "未信任的规则不会执行；运行 tanmi rules trust 查看并信任",
            "untrusted rules do not run; review and trust them with tanmi rules trust",
        );
        let _ = writeln!(out, "{}", paint(out::YELLOW, hint));
    }
    out
}

pub fn check(files: &[CheckedRules], lang: Lang) -> String {
    let mut out = String::new();
    for file in files {
        let (zh, en) = (format!("{} 条规则", file.rules), counted(file.rules, "rule"));
        let state = match (file.flaws.is_empty(), file.trusted) {
            (_, false) if file.changed => {
                paint(out::YELLOW, lang.pick("信任后有变化", "changed since you trusted it"))
            }
            (_, false) => paint(out::YELLOW, lang.pick("未信任", "not trusted")),
            (true, _) => paint(out::GREEN, lang.pick("有效", "valid")),
            (false, _) => paint(out::RED, lang.pick("有错误", "invalid")),
        };
        let _ = writeln!(out, "{}  {}  {state}", paint(out::BOLD, &file.path), lang.pick(zh, en));
        for flaw in &file.flaws {
            let rule =
                flaw.rule.as_ref().map(|rule| format!("{}: ", text::one_line(rule))).unwrap_or_default();
            let line = if flaw.line > 0 { format!("{}: ", flaw.line) } else { String::new() };
            let sign = if flaw.fatal { paint(out::RED, "✘") } else { paint(out::YELLOW, "!") };
            let _ = writeln!(out, "  {sign} {line}{rule}{}", text::one_line(&flaw.message));
        }
        for note in &file.notes {
            let _ = writeln!(out, "  {} {}", paint(out::DIM, "•"), text::one_line(note));
        }
    }
    if files.is_empty() {
        let _ = writeln!(out, "{}", paint(out::DIM, lang.pick("没有规则文件", "no rules files")));
    }
    out
}

pub fn explain(explained: &Explanation, all: bool, lang: Lang) -> String {
    let mut out = String::new();
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let none = || lang.pick("（无）", "(none)").to_owned();
    let mut head = vec![
        vec![label("事件", "event"), cell(format!("{} ({})", explained.event, explained.platform))],
        vec![label("会话", "session"), cell(non_empty(&explained.session_id).unwrap_or_else(none))],
        vec![label("工作区", "workspace"), cell(explained.workspace_id.clone().unwrap_or_else(none))],
    ];
    if let Some(node) = &explained.node_id {
        head.push(vec![label("节点", "node"), cell(node)]);
    }
    out.push_str(&table::render(&head, 90));
    if explained.silenced {
        let text = lang.pick(
            "注入已暂停或停用：不会注入任何内容",
            "injection is paused or disabled: nothing is injected",
        );
        let _ = writeln!(out, "{}", paint(out::YELLOW, text));
    }
    out.push('\n');
    let shown = explained.rules.iter().filter(|rule| all || rule.verdict != Verdict::OtherEvent);
    let row = |rule: &tanmi_app::rules::ExplainedRule| {
        let (sign, style) = match &rule.verdict {
            Verdict::Injected { .. } | Verdict::Matched => ("✔", out::GREEN),
            Verdict::ConditionFailed(_) => ("✘", out::RED),
            Verdict::Throttled { .. } | Verdict::Untrusted | Verdict::Stopped { .. } => ("!", out::YELLOW),
            _ => ("·", out::DIM),
        };
        let size =
            if rule.bytes > 0 { format!("{} B ≈ {} tok", rule.bytes, rule.tokens) } else { String::new() };
        vec![
            styled(style, sign),
            cell(format!("{:>4}", rule.priority)),
            styled(out::BOLD, rule.id.as_str()),
            cell(rule.source),
            styled(style, &rule.why),
            styled(out::DIM, size),
        ]
    };
    out.push_str(&table::render(&shown.map(row).collect::<Vec<_>>(), 70));
    for file in explained.files.iter().filter(|file| !file.flaws.is_empty()) {
        out.push('\n');
        out.push_str(&check(std::slice::from_ref(file), lang));
    }
    out.push('\n');
    if explained.text.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("不会注入任何内容。", "Nothing would be injected."));
    } else {
        let (bytes, tokens) = (explained.bytes, explained.tokens);
        let (zh, en) = (
            format!("将注入以下文本（{bytes} 字节，约 {tokens} token）："),
            format!("Injected text ({bytes} bytes, about {tokens} tokens):"),
        );
        let _ = writeln!(out, "{}", lang.pick(zh, en));
        out.push_str(&quoted(&explained.text));
    }
    out
}

/// Formats an injected text with a bar at the left of each line.
pub fn quoted(text: &str) -> String {
    let bar = paint(out::BLUE, "│");
    text::printable(text).lines().fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "  {bar} {line}");
        out
    })
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
