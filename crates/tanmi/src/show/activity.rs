//! Log lines and problems.

use std::fmt::Write;

use tanmi_app::node::{LogResult, ProblemResult};
use tanmi_base::{Lang, text};
use tanmi_workspace::model::LogEntry;

use crate::out::{self, paint};

pub fn entry(entry: &LogEntry) -> String {
    let head = format!("{} {:<5}", text::one_line(&entry.timestamp), entry.operator.as_str());
    format!("{} {}", paint(out::DIM, &head), text::printable(&entry.event).replace('\n', "\n  "))
}

pub fn log(log: &LogResult, lang: Lang) -> String {
    let mut out = String::new();
    let hidden = log.total - log.entries.len();
    // A line that was just written stands alone; what came before it is no news.
    if hidden > 0 && log.entries.len() > 1 {
        let _ = writeln!(out, "{}", paint(out::DIM, &format!("… +{hidden} (--limit)")));
    }
    for line in &log.entries {
        let _ = writeln!(out, "{}", entry(line));
    }
    if log.entries.is_empty() {
        let _ = writeln!(out, "{}", lang.pick("没有日志", "no log lines"));
    }
    out
}

pub fn problem(result: &ProblemResult, lang: Lang) -> String {
    let Some(problem) = &result.problem else {
        return format!("{}: {}\n", result.node_id, lang.pick("没有问题", "no problem"));
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
