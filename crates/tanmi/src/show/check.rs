//! Output of `workspace check`.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;
use tanmi_base::Lang;
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{CheckReport, Fix};

use super::counted;
use crate::out::{self, paint};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckView {
    workspace_id: WorkspaceId,
    nodes: u64,
    findings: Vec<FindingLine>,
}

#[derive(Serialize)]
struct FindingLine {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    code: &'static str,
    message: String,
    #[serde(serialize_with = "as_word")]
    fix: Fix,
}

fn as_word<S: serde::Serializer>(fix: &Fix, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match fix {
        Fix::Repaired => "repaired",
        Fix::Repairable => "repairable",
        Fix::ByHand => "by-hand",
    })
}

impl CheckView {
    pub fn new(id: &WorkspaceId, report: &CheckReport, project: &Path, lang: Lang) -> CheckView {
        let findings = report.findings.iter().map(|finding| FindingLine {
            path: finding.path.strip_prefix(project).unwrap_or(&finding.path).display().to_string(),
            line: finding.line,
            code: finding.flaw.code(),
            message: finding.flaw.message(lang),
            fix: finding.fix,
        });
        CheckView { workspace_id: id.clone(), nodes: report.nodes, findings: findings.collect() }
    }

    pub fn to_text(&self, lang: Lang) -> String {
        let mut out = String::new();
        for finding in &self.findings {
            let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
            let (style, fix) = match finding.fix {
                Fix::Repaired => (out::GREEN, lang.pick("已修复", "fixed")),
                Fix::Repairable => (out::YELLOW, lang.pick("可用 --fix 修复", "can be fixed with --fix")),
                Fix::ByHand => (out::RED, lang.pick("需手动处理", "must be fixed by hand")),
            };
            let _ = writeln!(
                out,
                "{}{line}: {} [{}] {}",
                finding.path,
                finding.message,
                finding.code,
                paint(style, fix)
            );
        }
        let nodes = self.nodes;
        let _ = match (lang, self.findings.len()) {
            (Lang::Zh, 0) => {
                writeln!(out, "{} {}：{nodes} 个节点，没有损坏", paint(out::GREEN, "✔"), self.workspace_id)
            }
            (Lang::En, 0) => writeln!(
                out,
                "{} {}: {}, no damage",
                paint(out::GREEN, "✔"),
                self.workspace_id,
                counted(nodes, "node")
            ),
            (Lang::Zh, n) => writeln!(out, "{}：{nodes} 个节点，{n} 处损坏", self.workspace_id),
            (Lang::En, n) => {
                writeln!(out, "{}: {}, {}", self.workspace_id, counted(nodes, "node"), counted(n, "defect"))
            }
        };
        out
    }
}
