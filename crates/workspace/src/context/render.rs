//! Renders a context as Markdown for people, in Chinese or English. Stored texts are indented, so that a line of one
//! cannot be taken for a label or a heading.

use std::fmt::Write;

use tanmi_base::Lang;
use tanmi_base::text::one_line;

use super::{ChainNode, Context};
use crate::model::{DocReference, Problem, RefKind};

impl Context {
    pub fn to_markdown(&self, lang: Lang) -> String {
        let mut out = String::new();
        let workspace = &self.workspace;
        let _ = writeln!(out, "# {}", one_line(&workspace.name));
        let _ =
            writeln!(out, "{} · {}/{}", workspace.id, workspace.progress.completed, workspace.progress.total);
        paragraph(&mut out, lang.pick("目标", "Goal"), &workspace.goal);
        if !workspace.rules.is_empty() {
            let _ = writeln!(out, "\n{} ({})", lang.pick("规则", "Rules"), workspace.rules_hash);
            workspace.rules.iter().for_each(|rule| item(&mut out, rule));
        }
        docs(&mut out, &workspace.docs, lang);
        problem(&mut out, workspace.problem.as_ref(), lang);
        for node in &self.chain {
            chain_node(&mut out, node, lang);
        }
        if !self.child_conclusions.is_empty() {
            let _ = writeln!(out, "\n## {}", lang.pick("子节点结论", "Child conclusions"));
            for child in &self.child_conclusions {
                item(
                    &mut out,
                    &format!("{} [{}] {}: {}", child.id, child.status, child.title, child.conclusion),
                );
            }
        }
        if !self.references.is_empty() {
            let _ = writeln!(out, "\n## {}", lang.pick("引用", "References"));
            for reference in &self.references {
                let mut line = reference.target_id.clone();
                if let (RefKind::Node, Some(title), Some(status)) =
                    (reference.kind, &reference.title, reference.status)
                {
                    let _ = write!(line, " [{status}] {title}");
                }
                if reference.missing {
                    let _ = write!(line, " ({})", lang.pick("不存在或无法读取", "missing or unreadable"));
                }
                if !reference.description.is_empty() {
                    let _ = write!(line, ": {}", reference.description);
                }
                if let Some(conclusion) = &reference.conclusion {
                    let _ = write!(line, " — {conclusion}");
                }
                item(&mut out, &line);
            }
        }
        if !self.omitted.is_empty() {
            let _ = writeln!(
                out,
                "\n{}",
                lang.pick("未显示（用 `tanmi node show` 查看）：", "Not shown (`tanmi node show` shows it):")
            );
            for omission in &self.omitted {
                item(&mut out, &format!("{} {}: {}", omission.of, omission.what, omission.count));
            }
        }
        out
    }
}

fn chain_node(out: &mut String, node: &ChainNode, lang: Lang) {
    let _ = writeln!(out, "\n## {} [{} {}]", one_line(&node.title), node.kind, node.status);
    let isolated = if node.isolated { lang.pick("（隔离）", " (isolated)") } else { "" };
    let _ = writeln!(out, "{}{isolated}", node.id);
    if let Some(damage) = &node.damage {
        let _ = writeln!(out, "{}{}", lang.pick("文件损坏：", "Damaged file: "), damage.text(lang));
    }
    paragraph(out, lang.pick("需求", "Requirement"), &node.requirement);
    paragraph(out, lang.pick("结论", "Conclusion"), node.conclusion.as_deref().unwrap_or_default());
    paragraph(out, lang.pick("备注", "Note"), &node.note);
    docs(out, &node.docs, lang);
    problem(out, node.problem.as_ref(), lang);
    if !node.log.is_empty() {
        let _ = writeln!(out, "\n{}", lang.pick("日志", "Log"));
        for entry in &node.log {
            item(out, &format!("[{}] [{}] {}", entry.timestamp, entry.operator, entry.event));
        }
    }
}

fn paragraph(out: &mut String, label: &str, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "\n{label}\n  {}", indented(text));
    }
}

fn docs(out: &mut String, docs: &[DocReference], lang: Lang) {
    if !docs.is_empty() {
        let _ = writeln!(out, "\n{}", lang.pick("文档", "Docs"));
        docs.iter().for_each(|doc| item(out, &format!("{}: {}", doc.path, doc.description)));
    }
}

fn problem(out: &mut String, problem: Option<&Problem>, lang: Lang) {
    let Some(problem) = problem else { return };
    paragraph(out, lang.pick("问题", "Problem"), &problem.description);
    paragraph(out, lang.pick("下一步", "Next step"), problem.next_step.as_deref().unwrap_or_default());
}

fn item(out: &mut String, text: &str) {
    let _ = writeln!(out, "- {}", indented(text));
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}
