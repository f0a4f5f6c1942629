//! Output of `log` and `problem`.

use std::fmt::Write;

use tanmi_app::nodes::{LogResult, ProblemResult};
use tanmi_base::{Lang, text};
use tanmi_workspace::model::LogEntry;

use super::counted;
use crate::out::{self, paint};

pub fn entry(entry: &LogEntry) -> String {
    let head = format!("{} {:<5}", text::one_line(&entry.timestamp), entry.operator.as_str());
    format!("{} {}", paint(out::DIM, &head), text::printable(&entry.event).replace('\n', "\n  "))
}

pub fn log(log: &LogResult, lang: Lang) -> String {
    let mut out = String::new();
    let hidden = log.total - log.entries.len();
    // After an append only the new entry is shown, without a count of the earlier ones.
    if hidden > 0 && log.entries.len() > 1 {
        let (zh, en) = (
            format!("… 还有 {hidden} 条更早的日志（用 --limit 显示）"),
            format!("… {} not shown (use --limit)", counted(hidden, "earlier entry")),
        );
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    for line in &log.entries {
        let _ = writeln!(out, "{}", entry(line));
    }
    if let Some(notice) = log.notice {
        let _ = writeln!(out, "{}", paint(out::YELLOW, notice));
    }
    if log.entries.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("没有日志", "no log entries"));
    }
    out
}

pub fn problem(result: &ProblemResult, lang: Lang) -> String {
    if result.cleared == Some(true) {
        let (zh, en) = (
            format!("已清除 {} 的问题\n", result.node_id),
            format!("cleared the problem of {}\n", result.node_id),
        );
        return lang.pick(zh, en);
    }
    let Some(problem) = &result.problem else {
        return format!("{}: {}\n", result.node_id, lang.pick("没有未解决的问题", "no open problem"));
    };
    let mut out = String::new();
    if !problem.description.is_empty() {
        let _ = writeln!(
            out,
            "{}\n{}",
            paint(out::BOLD, lang.pick("问题", "Problem")),
            text::printable(&problem.description)
        );
    }
    if let Some(next) = &problem.next_step {
        let _ = writeln!(
            out,
            "{}\n{}",
            paint(out::BOLD, lang.pick("下一步", "Next step")),
            text::printable(next)
        );
    }
    out
}
