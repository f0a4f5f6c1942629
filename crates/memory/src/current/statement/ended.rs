//! What a fact says to have ended: `no longer …`, `instead of …`, `from … to`, 不再….

use super::{Statement, mark_verbs};
use crate::current::statement::listed::Listed;

/// Phrases before what ended.
const BEFORE: &[&str] =
    &["no longer ", "instead of ", "rather than ", "in place of ", "不再", "放弃", "而不是"];

/// Returns the clauses about what ended as one statement, or `None` if there is none.
pub fn clauses(text: &str) -> Option<Statement> {
    let mut ended = Statement::default();
    let after =
        BEFORE.iter().flat_map(|phrase| text.match_indices(phrase).map(|(at, _)| &text[at + phrase.len()..]));
    for clause in after.map(first_clause).chain(from_clauses(text)) {
        ended.read(&mark_verbs(clause, &Listed::of(clause).chinese), false);
    }
    ended.sort_terms();
    let is_empty = ended.terms.is_empty() && ended.values.is_empty() && ended.verbs.is_empty();
    (!is_empty).then_some(ended)
}

fn first_clause(text: &str) -> &str {
    let ends = |c: char| matches!(c, ',' | ';' | ':' | '，' | '；' | '。' | '、' | '!');
    &text[..text.find(ends).or_else(|| text.find(". ")).unwrap_or(text.len())]
}

/// Returns what stands between "from" and "to", or between 从 and a word of change.
fn from_clauses(text: &str) -> impl Iterator<Item = &str> {
    let between = |from: &'static str, to: &'static [&'static str]| {
        text.match_indices(from).filter_map(move |(at, _)| {
            let rest = first_clause(&text[at + from.len()..]);
            let end = to.iter().filter_map(|word| rest.find(word)).min()?;
            Some(&rest[..end]).filter(|clause| !clause.trim().is_empty())
        })
    };
    between(" from ", &[" to ", " into ", " onto "])
        .chain(between("从", &["改", "换", "迁", "切", "升", "降", "调", "移", "搬", "提", "缩", "延"]))
}
