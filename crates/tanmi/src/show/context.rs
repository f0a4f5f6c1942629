//! Output of `context`: the injected files and their sources, the built file, and provisioned users.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tanmi_app::declared::{Declaration, DeclaredEntry, InclusionStatus};
use tanmi_app::pipeline::PipelineTrace;
use tanmi_app::trust::Consent;
use tanmi_base::{Lang, text};
use tanmi_event::{BuiltinRuleId, Platform};
use tanmi_install::context::{BuiltContext, Notice, ProvisionReport};

use super::counted;
use crate::out::{self, paint};

/// Returns the symbol and description of whether a declared file is injected. `injected` is the injected text: it may
/// contain the full file, a part of it, or only its path.
fn inclusion(file: &DeclaredEntry, injected: &str, lang: Lang) -> (&'static str, String) {
    let path = file.path.display().to_string();
    let is_cut =
        ["the rest is in ", "其余内容见 "].iter().any(|words| injected.contains(&format!("{words}{path}")));
    let (sign, zh, en) = match &file.inclusion {
        InclusionStatus::Included(sig) if is_cut => {
            let (zh, en) = (format!("{} 字节，已截断", sig.size), format!("{} bytes, truncated", sig.size));
            return ("◐", lang.pick(zh, en));
        }
        InclusionStatus::Included(_) if injected.contains(&path) => {
            ("✘", "放不下，只注入路径", "does not fit; only its path is injected")
        }
        InclusionStatus::Included(sig) => {
            return ("✔", lang.pick(format!("{} 字节", sig.size), counted(sig.size, "byte")));
        }
        InclusionStatus::LoadedByClient => ("·", "由客户端自行加载", "loaded by the client"),
        InclusionStatus::Missing => ("✘", "不存在", "not found"),
        InclusionStatus::Outside => ("✘", "位于项目之外", "outside the project"),
        InclusionStatus::NotAgreed(Consent::Outdated) => {
            let (zh, en) =
                ("该文件或其清单在你同意之后有变化", "it or its context.json changed since you agreed");
            return not_agreed(zh, en, lang);
        }
        InclusionStatus::NotAgreed(_) => {
            let (zh, en) = ("你尚未同意该文件或其清单", "you have not agreed to it or to its context.json");
            return not_agreed(zh, en, lang);
        }
        InclusionStatus::Untrusted => {
            ("✘", "项目未受信任；运行 `tanmi trust`", "the project is not trusted; run `tanmi trust`")
        }
    };
    (sign, lang.pick(zh, en).to_owned())
}

fn not_agreed(zh: &str, en: &str, lang: Lang) -> (&'static str, String) {
    ("✘", lang.pick(format!("{zh}；运行 `tanmi trust`"), format!("{en}; run `tanmi trust`")))
}

fn declared_text(explained: &PipelineTrace) -> String {
    let actions = explained.response.decision.actions.iter();
    actions
        .filter(|action| action.rule == BuiltinRuleId::DeclaredContext)
        .map(|action| action.content.clone())
        .collect()
}

pub fn json(declaration: &Declaration, explained: &PipelineTrace, with_text: bool) -> Value {
    let injected = declared_text(explained);
    let file = |file: &DeclaredEntry| json!({"name": file.name, "path": file.path, "whose": file.declared_by.as_str(), "told": matches!(file.inclusion, InclusionStatus::Included(_)), "fate": inclusion(file, &injected, Lang::En).1});
    let actions = explained.response.decision.actions.iter();
    let action_sizes: Vec<Value> = actions
        .map(|action| json!({"rule": action.rule, "type": action.kind, "bytes": action.content.len(), "tokens": text::estimate_tokens(&action.content)}))
        .collect();
    let mut value = json!({
        "bytes": explained.response.text.len(),
        "tokens": text::estimate_tokens(&explained.response.text),
        "told": action_sizes,
        "declared": declaration.files.iter().map(file).collect::<Vec<_>>(),
        "flaws": declaration.flaws.iter().map(|(path, reason)| json!({"path": path, "reason": reason})).collect::<Vec<_>>(),
    });
    if with_text {
        value["text"] = explained.response.text.clone().into();
    }
    value
}

pub fn tree(
    platform: &Platform,
    agent: Option<&str>,
    declaration: &Declaration,
    explained: &PipelineTrace,
    with_text: bool,
    lang: Lang,
) -> String {
    let mut out = String::new();
    let what = match agent {
        Some(agent) => lang.pick(format!("子智能体 {agent}"), format!("subagent {agent}")),
        None => lang.pick(String::from("会话开始"), String::from("session start")),
    };
    let size = |content: &str| {
        let (bytes, tokens) = (content.len(), text::estimate_tokens(content));
        lang.pick(format!("{bytes} 字节，约 {tokens} token"), format!("{bytes} bytes, about {tokens} tokens"))
    };
    let _ = writeln!(
        out,
        "{}  {}",
        paint(out::BOLD, &format!("{} · {what}", platform.id)),
        paint(out::DIM, &size(&explained.response.text))
    );
    let mut branches: Vec<(String, Vec<String>)> = Vec::new();
    for action in &explained.response.decision.actions {
        branches.push((format!("{}  {}", action.rule, paint(out::DIM, &size(&action.content))), Vec::new()));
    }
    let injected = declared_text(explained);
    let files: Vec<String> = declaration
        .files
        .iter()
        .map(|file| {
            let (sign, inclusion) = inclusion(file, &injected, lang);
            format!("{sign} {} ({})  {}", file.name, file.declared_by.as_str(), paint(out::DIM, &inclusion))
        })
        .chain(declaration.flaws.iter().map(|(path, reason)| format!("✘ {}: {reason}", path.display())))
        .collect();
    let rule = explained
        .response
        .decision
        .actions
        .iter()
        .position(|action| action.rule == BuiltinRuleId::DeclaredContext);
    match rule {
        Some(at) => branches[at].1 = files,
        None if !files.is_empty() => branches.push((lang.pick("未注入", "not injected").to_owned(), files)),
        None => {}
    }
    for (at, (line, leaves)) in branches.iter().enumerate() {
        let is_last = at + 1 == branches.len();
        let _ = writeln!(out, "{} {line}", if is_last { "└─" } else { "├─" });
        for (leaf_at, leaf) in leaves.iter().enumerate() {
            let stem = if is_last { "  " } else { "│ " };
            let branch = if leaf_at + 1 == leaves.len() { "└─" } else { "├─" };
            let _ = writeln!(out, "{stem} {branch} {leaf}");
        }
    }
    if branches.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("└─ （无）", "└─ (nothing)"));
    }
    if with_text && !explained.response.text.is_empty() {
        let _ = writeln!(out, "\n{}", text::printable(&explained.response.text));
    }
    out
}

fn notices(out: &mut String, notices: &[Notice], lang: Lang) {
    for notice in notices {
        let _ = writeln!(out, "{} {}: {}", paint(out::YELLOW, "!"), notice.place(), notice.reason.pick(lang));
    }
}

pub fn built(built: &BuiltContext, is_check: bool, lang: Lang) -> String {
    let path = built.path.display();
    let (zh, en) = match (built.is_current(), is_check) {
        (true, _) => (format!("{path} 已是最新"), format!("{path} is up to date")),
        (false, true) => (
            format!("{path} 不是最新；运行 tanmi context build"),
            format!("{path} is out of date; run tanmi context build"),
        ),
        (false, false) => (format!("已写入 {path}"), format!("wrote {path}")),
    };
    let counts = lang.pick(
        format!("{} 个 agent，{} 个 skill，{} 个 command", built.agents, built.skills, built.commands),
        format!("agents: {}, skills: {}, commands: {}", built.agents, built.skills, built.commands),
    );
    let mut out = format!("{}  {}\n", lang.pick(zh, en), paint(out::DIM, &counts));
    notices(&mut out, &built.notices, lang);
    out
}

/// The maximum number of users that are listed one by one.
const MAX_LISTED: usize = 20;

pub fn provisioned(reports: &[ProvisionReport], is_dry: bool, lang: Lang) -> String {
    let mut out = String::new();
    let is_listed = |report: &&ProvisionReport| {
        !report.is_unchanged() || !report.problems.is_empty() || !report.kept.is_empty()
    };
    for report in reports.iter().filter(is_listed).take(MAX_LISTED) {
        let (added, updated, removed) = (report.added.len(), report.updated.len(), report.removed.len());
        let counts = lang.pick(
            format!("新增 {added}，更新 {updated}，移除 {removed}"),
            format!("added {added}, updated {updated}, removed {removed}"),
        );
        let _ = writeln!(out, "{}  {counts}", paint(out::BOLD, &format!("user_{}", report.user)));
        for kept in &report.kept {
            let again = match kept.line {
                0 => "",
                _ => lang.pick("；然后重新运行此命令", "; then run this command again"),
            };
            let reason = kept.reason.pick(lang);
            let _ = writeln!(out, "  {} {}: {reason}{again}", paint(out::DIM, "="), kept.place());
        }
        for problem in &report.problems {
            let _ = writeln!(
                out,
                "  {} {}: {}",
                paint(out::RED, "✘"),
                problem.place(),
                problem.reason.pick(lang)
            );
        }
    }
    let unchanged = reports.iter().filter(|report| report.is_unchanged()).count();
    let changed = reports.len() - unchanged;
    let problems: usize = reports.iter().map(|report| report.problems.len()).sum();
    let summary = lang.pick(
        format!(
            "{} 个用户：{changed} 个{}，{unchanged} 个无变化，{problems} 个问题",
            reports.len(),
            if is_dry { "将变化" } else { "已更新" }
        ),
        format!(
            "{}: {changed} {}, {unchanged} unchanged, {}",
            counted(reports.len(), "user"),
            if is_dry { "would change" } else { "changed" },
            counted(problems, "problem")
        ),
    );
    let _ = writeln!(out, "{}", paint(out::BOLD, &summary));
    out
}
