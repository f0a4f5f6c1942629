//! Info collection: adds the rules and docs in the conclusion of an `info_collection` node to the workspace.

use serde::{Deserialize, Serialize};
use tanmi_base::Millis;

use crate::codec;
use crate::error::Result;
use crate::limits;
use crate::model::*;
use crate::store::Tx;

/// The rules and docs that a conclusion added to the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectedInfo {
    pub rules: Vec<String>,
    pub docs: Vec<DocReference>,
    /// Entries that exceed a limit. They stay in the conclusion only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    pub rules_hash: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Rules,
    Docs,
    Other,
}

/// Returns the list entries under `## 规则` / `## Rules` and `## 文档` / `## Docs` of a conclusion.
///
/// Another heading of the same or a higher level ends a part; a deeper heading does not. Prose and code are ignored.
pub fn parse(conclusion: &str) -> (Vec<String>, Vec<DocReference>) {
    let mut rules = String::new();
    let mut docs = String::new();
    let mut part = Part::Other;
    let mut part_depth = 0;
    let mut is_code = false;
    for line in conclusion.lines() {
        let line = line.trim_end();
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            continue;
        }
        if let Some((depth, heading)) = heading(line) {
            let heading_part = part_named(heading);
            if heading_part != Part::Other || depth <= part_depth || part == Part::Other {
                (part, part_depth) = (heading_part, depth);
            }
            continue;
        }
        let body = match part {
            Part::Rules => &mut rules,
            Part::Docs => &mut docs,
            Part::Other => continue,
        };
        body.push_str(line);
        body.push('\n');
    }
    (codec::bullets(&rules), codec::bullets(&docs).iter().map(|item| codec::parse_doc_item(item)).collect())
}

/// Returns the number of `#` characters and the text after them, if the line is a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    (depth > 0 && text.starts_with([' ', '\t'])).then(|| (depth, text.trim()))
}

fn part_named(heading: &str) -> Part {
    let name = heading.trim_end_matches([':', '：']).trim().to_lowercase();
    match name.as_str() {
        "规则" | "rules" => Part::Rules,
        "文档" | "docs" => Part::Docs,
        _ => Part::Other,
    }
}

/// Adds new rules and docs to the workspace. Returns `None` if the conclusion declares none.
pub(crate) fn archive(tx: &mut dyn Tx, conclusion: &str, now: Millis) -> Result<Option<CollectedInfo>> {
    let (rules, docs) = parse(conclusion);
    if rules.is_empty() && docs.is_empty() {
        return Ok(None);
    }
    let mut workspace = tx.workspace()?;
    let mut collected = CollectedInfo::default();
    for rule in rules {
        if workspace.rules.contains(&rule) {
            continue;
        }
        if limits::check_filled_line("rules", &rule).is_err()
            || limits::check_list("rules", workspace.rules.len() + 1).is_err()
        {
            collected.left_out.push(tanmi_base::text::cut(&rule, 120));
            continue;
        }
        workspace.rules.push(rule.clone());
        collected.rules.push(rule);
    }
    for doc in docs {
        if workspace.docs.iter().any(|known| known.path == doc.path) {
            continue;
        }
        if limits::check_filled_line("docs", &doc.path).is_err()
            || limits::check_line("docs", &doc.description).is_err()
            || limits::check_list("docs", workspace.docs.len() + 1).is_err()
        {
            collected.left_out.push(tanmi_base::text::cut(&doc.path, 120));
            continue;
        }
        workspace.docs.push(doc.clone());
        collected.docs.push(doc);
    }
    collected.rules_hash = workspace.rules_hash();
    if !collected.rules.is_empty() || !collected.docs.is_empty() {
        workspace.updated_at = now;
        tx.put_workspace(workspace)?;
    }
    Ok(Some(collected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_lists_in_both_languages_and_paths_with_colons_are_read() {
        let text = "Summary first.\n\n## 规则\n- 规则1\n- 规则2\n\n## 文档\n- /path/to/doc1: 文档描述1\n\
            - C:\\docs\\a.md: Windows\n- https://host:8080/x: served\n\n## Else\n- not a rule\n\n### Rules:\n* third\n";
        let (rules, docs) = parse(text);
        assert_eq!(rules, ["规则1", "规则2", "third"]);
        let docs: Vec<(&str, &str)> =
            docs.iter().map(|d| (d.path.as_str(), d.description.as_str())).collect();
        assert_eq!(
            docs,
            [
                ("/path/to/doc1", "文档描述1"),
                ("C:\\docs\\a.md", "Windows"),
                ("https://host:8080/x", "served")
            ]
        );
    }

    #[test]
    fn parse_prose_and_code_declare_nothing() {
        assert_eq!(parse("We looked at the rules.\n- a list\n"), (vec![], vec![]));
        let text =
            "## Rules\nHere are the rules we found:\n\n- a\n\n---\n\nThat is all.\n\n## Docs\nNone found.\n";
        assert_eq!(parse(text), (vec!["a".into()], vec![]));
        let divided = "## 规则\n### 编码\n- a\n### 测试\n- b\n```\n# comment\n- c\n```\n# 其他\n- d";
        assert_eq!(parse(divided).0, ["a", "b"]);
    }
}
