//! What the doctor found.

use std::fmt::Write as _;

use tanmi_app::doctor::{CheckResult, Health};
use tanmi_base::{Lang, text};

use crate::out::{self, paint};

pub fn text(checks: &[CheckResult], lang: Lang) -> String {
    let mut out = String::new();
    for check in checks {
        let (style, sign) = match check.health {
            Health::Fine => (out::GREEN, "✓"),
            Health::Note => (out::DIM, "·"),
            Health::Mended => (out::GREEN, "✚"),
            Health::Mendable => (out::YELLOW, "!"),
            Health::ByHand => (out::RED, "✗"),
        };
        let _ = writeln!(out, "{} {}", paint(style, sign), text::one_line(&check.text));
        let advice = match check.health {
            Health::Mendable => lang.pick("tanmi doctor --fix 可修复", "tanmi doctor --fix mends it"),
            _ => &check.advice,
        };
        if !advice.is_empty() {
            let _ = writeln!(out, "  {}", paint(out::DIM, &format!("→ {}", text::one_line(advice))));
        }
    }
    let count = |health: Health| checks.iter().filter(|check| check.health == health).count();
    let (mendable, by_hand, mended) = (count(Health::Mendable), count(Health::ByHand), count(Health::Mended));
    let is_installed = checks.iter().any(|check| check.check == "install" && check.health == Health::Fine);
    let summary = match (mendable, by_hand) {
        (0, 0) if mended == 0 && !is_installed => lang.pick(
            String::from("没有损坏；还没有智能体用上它：tanmi install"),
            String::from("nothing is broken; no agent has it yet: tanmi install"),
        ),
        (0, 0) if mended == 0 => lang.pick(String::from("一切正常"), String::from("everything is in order")),
        (0, 0) => {
            lang.pick(format!("已修复 {mended} 项"), format!("{mended} mended, everything is in order"))
        }
        _ => lang.pick(
            format!("可修复 {mendable} 项，需手动处理 {by_hand} 项，已修复 {mended} 项"),
            format!("{mendable} can be mended, {by_hand} are for you, {mended} were mended"),
        ),
    };
    let _ = writeln!(out, "{}", paint(out::BOLD, &summary));
    out
}
