//! Output of `doctor`.

use std::fmt::Write as _;

use tanmi_app::doctor::{CheckResult, Health};
use tanmi_base::{Lang, text};

use super::counted;
use crate::out::{self, paint};

pub fn text(checks: &[CheckResult], lang: Lang) -> String {
    let mut out = String::new();
    for check in checks {
        let (style, sign) = match check.health {
            Health::Fine => (out::GREEN, "✔"),
            Health::Note => (out::DIM, "·"),
            Health::Fixed => (out::GREEN, "✚"),
            Health::Fixable => (out::YELLOW, "!"),
            Health::ByHand => (out::RED, "✘"),
        };
        let _ = writeln!(out, "{} {}", paint(style, sign), text::one_line(&check.text));
        let advice = match check.health {
            Health::Fixable => "tanmi doctor --fix",
            _ => &check.advice,
        };
        if !advice.is_empty() {
            let _ = writeln!(out, "  {}", paint(out::DIM, &format!("→ {}", text::one_line(advice))));
        }
    }
    let count = |health: Health| checks.iter().filter(|check| check.health == health).count();
    let (fixable, by_hand, fixed) = (count(Health::Fixable), count(Health::ByHand), count(Health::Fixed));
    let is_installed = checks.iter().any(|check| check.check == "install" && check.health == Health::Fine);
    let summary = match (fixable, by_hand) {
        (0, 0) if fixed == 0 && !is_installed => lang.pick(
            String::from("没有发现问题；尚未为任何智能体安装 Tanmi，运行 tanmi install"),
            String::from("no problems found; Tanmi is not installed for any agent; run `tanmi install`"),
        ),
        (0, 0) if fixed == 0 => lang.pick(String::from("没有发现问题"), String::from("no problems found")),
        (0, 0) => {
            let problems = counted(fixed, "problem");
            lang.pick(format!("已修复 {fixed} 个问题，没有其他问题"), format!("fixed {problems}, none left"))
        }
        _ => lang.pick(
            format!("可用 --fix 修复 {fixable} 个，需手动处理 {by_hand} 个，已修复 {fixed} 个"),
            format!("problems: {fixable} fixable with --fix, {by_hand} to fix by hand, {fixed} fixed"),
        ),
    };
    let _ = writeln!(out, "{}", paint(out::BOLD, &summary));
    out
}
