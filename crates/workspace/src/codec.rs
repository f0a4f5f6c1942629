//! Reads and writes the Markdown files of workspaces and nodes.
//!
//! The files are the source of truth and people edit them, so a write changes as little as possible. A key or section
//! whose value stays the same keeps its bytes; unknown keys and sections always keep theirs.
//!
//! Invariant: any text without NUL survives a write and a read of any field byte for byte. It is written as
//! plain Markdown if that reads back as the same text, otherwise in a verbatim form (a `~~~tanmi` fence, a
//! `- !"…"` list item, a quoted value). Each write reads its result back to check this.

mod document;
mod list;
mod node;
mod scalar;
mod text;
mod workspace;

pub use document::{Document, ParseError};
pub use node::{read_node, write_node};
pub use workspace::{read_workspace, write_workspace};

use crate::model::{Activity, Problem};
use document::SectionNames;
use tanmi_base::Millis;

const LOG: SectionNames = SectionNames { canonical: "Log", aliases: &["日志"] };
const PROBLEM: SectionNames = SectionNames { canonical: "Problem", aliases: &["问题"] };
const DOCS: SectionNames = SectionNames { canonical: "Docs", aliases: &["文档"] };

/// Returns the list items of a text and skips everything between them.
pub fn bullets(body: &str) -> Vec<String> {
    list::bulleted_items(body)
}

/// Parses a list item of the form `path: description`.
pub fn parse_doc_item(item: &str) -> crate::model::DocReference {
    list::read_doc(item)
}

/// Reads the log and the problem of a workspace or node.
fn read_activity(doc: &Document) -> Result<Activity, ParseError> {
    let log =
        doc.section(&LOG).map(|body| list::items(body).iter().map(|item| list::read_log(item)).collect());
    let updated_at = doc.integer("problemUpdatedAt")?;
    let problem = doc.section(&PROBLEM).and_then(text::read_problem);
    Ok(Activity {
        log: log.unwrap_or_default(),
        last_log_at: doc.integer("lastLogAt")?,
        problem: problem.map(|(description, next_step)| Problem {
            description,
            next_step,
            updated_at: updated_at.unwrap_or_default(),
        }),
    })
}

fn write_activity(
    doc: &mut Document,
    order: &[SectionNames],
    old: Option<&Activity>,
    new: &Activity,
    scope: RewriteScope,
) {
    let empty = Activity::default();
    let old = old.unwrap_or(&empty);
    let problem_at = |activity: &Activity| activity.problem.as_ref().map(|problem| problem.updated_at);
    write_optional_integer(doc, "lastLogAt", old.last_log_at, new.last_log_at);
    write_optional_integer(doc, "problemUpdatedAt", problem_at(old), problem_at(new));
    write_list(doc, &LOG, order, &old.log, &new.log, scope, list::write_log);
    let text =
        |activity: &Activity| activity.problem.as_ref().map(|p| (p.description.clone(), p.next_step.clone()));
    if text(old) != text(new) || scope == RewriteScope::Full {
        let body = new.problem.as_ref().map(|p| text::write_problem(&p.description, p.next_step.as_deref()));
        doc.set_section(&PROBLEM, order, body);
    }
}

/// Writes an integer key that can be absent.
fn write_optional_integer(doc: &mut Document, key: &'static str, old: Option<Millis>, new: Option<Millis>) {
    match new {
        Some(at) if Some(at) != old => doc.set(key, &at.to_string()),
        None if old.is_some() => doc.unset(key),
        _ => {}
    }
}

/// Writes a list section. Entries that did not change keep their bytes.
fn write_list<T: PartialEq>(
    doc: &mut Document,
    names: &SectionNames,
    order: &[SectionNames],
    old: &[T],
    new: &[T],
    scope: RewriteScope,
    write: impl Fn(&T) -> String,
) {
    if old != new || scope == RewriteScope::Full {
        let body = match scope {
            RewriteScope::Changed => list::rewrite(doc.section(names).unwrap_or_default(), old, new, write),
            // Text between the entries moves before them.
            RewriteScope::Full => {
                let remarks = list::remarks(doc.section(names).unwrap_or_default());
                list::rewrite(&document::as_plain_lines(&remarks), &[], new, write)
            }
        };
        let is_needed =
            !new.is_empty() || names.canonical == LOG.canonical || !list::remarks(&body).is_empty();
        doc.set_section(names, order, is_needed.then_some(body));
    }
}

/// How much of a file is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RewriteScope {
    /// Only values that changed.
    Changed,
    /// Every text, because an unclosed fence or comment in the file reaches into another section.
    Full,
}

/// Writes a text section.
fn write_text(
    doc: &mut Document,
    names: &SectionNames,
    order: &[SectionNames],
    old: &str,
    new: &str,
    scope: RewriteScope,
) {
    if old != new || scope == RewriteScope::Full {
        doc.set_section(names, order, (!new.is_empty()).then(|| text::write(new)));
    }
}

#[cfg(test)]
mod tests;
