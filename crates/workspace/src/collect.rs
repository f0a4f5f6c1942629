//! Info collection: rules and docs in the conclusion of an `info_collection` node go into the workspace.

use serde::Serialize;
use tanmi_base::Millis;

use crate::codec;
use crate::error::Result;
use crate::limits;
use crate::model::*;
use crate::store::Tx;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Collected {
    pub rules: Vec<String>,
    pub docs: Vec<DocReference>,
    /// Over a limit; they stay in the conclusion only.
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

/// What a conclusion declares under `## 规则` / `## Rules` and `## 文档` / `## Docs`.
pub fn parse(conclusion: &str) -> (Vec<String>, Vec<DocReference>) {
    let mut rules = String::new();
    let mut docs = String::new();
    let mut part = Part::Other;
    for line in conclusion.lines() {
        if let Some(heading) = heading(line) {
            part = part_of(heading);
            continue;
        }
        let body = match part {
            Part::Rules => &mut rules,
            Part::Docs => &mut docs,
            Part::Other => continue,
        };
        body.push_str(line.trim_end());
        body.push('\n');
    }
    (codec::bullets(&rules), codec::bullets(&docs).iter().map(|item| codec::doc_item(item)).collect())
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len() && text.starts_with([' ', '\t'])).then(|| text.trim())
}

fn part_of(heading: &str) -> Part {
    let name = heading.trim_end_matches([':', '：']).trim().to_lowercase();
    match name.as_str() {
        "规则" | "rules" => Part::Rules,
        "文档" | "docs" => Part::Docs,
        _ => Part::Other,
    }
}

/// Adds what is new to the workspace. `None` if the conclusion declares nothing.
pub(crate) fn archive(tx: &mut dyn Tx, conclusion: &str, now: Millis) -> Result<Option<Collected>> {
    let (rules, docs) = parse(conclusion);
    if rules.is_empty() && docs.is_empty() {
        return Ok(None);
    }
    let mut workspace = tx.workspace()?;
    let mut collected = Collected::default();
    for rule in rules {
        if workspace.rules.contains(&rule) {
            continue;
        }
        if limits::filled_line("rules", &rule).is_err()
            || limits::list("rules", workspace.rules.len() + 1).is_err()
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
        if limits::filled_line("docs", &doc.path).is_err()
            || limits::list("docs", workspace.docs.len() + 1).is_err()
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
    fn both_languages_and_paths_with_colons() {
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
    fn prose_declares_nothing() {
        assert_eq!(parse("We looked at the rules.\n- a list\n"), (vec![], vec![]));
    }
}
