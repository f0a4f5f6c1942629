//! Markdown in and out. The files are the truth and people edit them, so a file is changed as little as possible:
//! every key and section whose value stays the same keeps its bytes, unknown ones always do.
//!
//! Any text but NUL survives any field byte for byte: it is written as plain Markdown wherever reading that back gives
//! the same text, and otherwise in a marked verbatim form (a `~~~tanmi` fence, a `- !"…"` list item, a quoted value).
//! That rule is checked at the moment of writing, not argued about.

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
use document::Names;
use tanmi_base::Millis;

const LOG: Names = Names { canonical: "Log", aliases: &["日志"] };
const PROBLEM: Names = Names { canonical: "Problem", aliases: &["问题"] };
const DOCS: Names = Names { canonical: "Docs", aliases: &["文档"] };

/// The bulleted entries of a text, wherever they stand; what stands between them is none.
pub fn bullets(body: &str) -> Vec<String> {
    list::bulleted(body)
}

/// `path: description` as a list entry has it.
pub fn doc_item(item: &str) -> crate::model::DocReference {
    list::read_doc(item)
}

/// Log and problem, which a workspace and a node write alike.
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
    order: &[Names],
    was: Option<&Activity>,
    now: &Activity,
    effort: Effort,
) {
    let empty = Activity::default();
    let was = was.unwrap_or(&empty);
    let problem_at = |activity: &Activity| activity.problem.as_ref().map(|problem| problem.updated_at);
    write_time(doc, "lastLogAt", was.last_log_at, now.last_log_at);
    write_time(doc, "problemUpdatedAt", problem_at(was), problem_at(now));
    write_list(doc, &LOG, order, &was.log, &now.log, effort, list::write_log);
    let text =
        |activity: &Activity| activity.problem.as_ref().map(|p| (p.description.clone(), p.next_step.clone()));
    if text(was) != text(now) || effort == Effort::Thorough {
        let body = now.problem.as_ref().map(|p| text::write_problem(&p.description, p.next_step.as_deref()));
        doc.set_section(&PROBLEM, order, body);
    }
}

/// A time that may be absent.
fn write_time(doc: &mut Document, key: &'static str, was: Option<Millis>, now: Option<Millis>) {
    match now {
        Some(at) if Some(at) != was => doc.set(key, &at.to_string()),
        None if was.is_some() => doc.unset(key),
        _ => {}
    }
}

/// A list section, keeping the bytes of every entry that stays.
fn write_list<T: PartialEq>(
    doc: &mut Document,
    names: &Names,
    order: &[Names],
    was: &[T],
    now: &[T],
    effort: Effort,
    write: impl Fn(&T) -> String,
) {
    if was != now || effort == Effort::Thorough {
        let body = match effort {
            Effort::Changes => list::rewrite(doc.section(names).unwrap_or_default(), was, now, write),
            // What was written between the entries goes before them.
            Effort::Thorough => {
                let remarks = list::remarks(doc.section(names).unwrap_or_default());
                list::rewrite(&document::as_plain_lines(&remarks), &[], now, write)
            }
        };
        let is_needed =
            !now.is_empty() || names.canonical == LOG.canonical || !list::remarks(&body).is_empty();
        doc.set_section(names, order, is_needed.then_some(body));
    }
}

/// How much of a file is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// What changed.
    Changes,
    /// Every text, because something a person left open reached into another section.
    Thorough,
}

/// A text section.
fn write_text(doc: &mut Document, names: &Names, order: &[Names], was: &str, now: &str, effort: Effort) {
    if was != now || effort == Effort::Thorough {
        doc.set_section(names, order, (!now.is_empty()).then(|| text::write(now)));
    }
}

#[cfg(test)]
mod tests;
