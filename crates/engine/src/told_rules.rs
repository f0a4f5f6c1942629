//! The rules that a session was told, as its state keeps them: their texts, or a digest of each if the texts
//! are too long.

use std::collections::HashSet;

use tanmi_base::hash;

use crate::capped_text::labelled;

/// What is before a rule in a context, and before a new rule in what changed.
pub const RULE_MARK: &str = "- ";
pub const ADDED_MARK: &str = "+ ";

/// The maximum length of what is kept per session, in bytes.
const MAX_BYTES: usize = 4096;
/// The number of hexadecimal digits of a digest.
const DIGITS: usize = 7;

/// What changed since a session was told the rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RuleChanges<'a> {
    pub added: Vec<&'a str>,
    pub removed: Vec<&'a str>,
    /// The number of further removed rules, of which only digests were kept.
    pub removed_unnamed: usize,
}

/// Returns the rules of which a session knows the text after it was told a context, or what changed in it. Rules for which
/// the text had no room are not among them. `told` is what the session knew before, if it still knows it.
pub fn known_rules(content: &str, rules: &[String], told: Option<&[String]>) -> Vec<String> {
    let content = format!("\n{content}\n");
    let unknown: HashSet<&str> =
        told.map(|told| rule_changes(told, rules).added.into_iter().collect()).unwrap_or_default();
    let is_written = |rule: &str| {
        [RULE_MARK, ADDED_MARK]
            .iter()
            .any(|mark| content.contains(&format!("\n{}\n", labelled(mark, rule).trim_end())))
    };
    let is_known = |rule: &&String| (told.is_some() && !unknown.contains(rule.as_str())) || is_written(rule);
    rules.iter().filter(is_known).cloned().collect()
}

/// Returns what to keep of rules that were told; `None` if even the digests are too long.
pub fn told_rules(rules: Vec<String>) -> Option<Vec<String>> {
    let fits = |kept: &[String]| kept.iter().map(String::len).sum::<usize>() <= MAX_BYTES;
    if fits(&rules) {
        return Some(rules);
    }
    Some(rules.iter().map(|rule| digest(rule)).collect()).filter(|digests: &Vec<String>| fits(digests))
}

/// Returns what changed from `told` to `rules`.
pub fn rule_changes<'a>(told: &'a [String], rules: &'a [String]) -> RuleChanges<'a> {
    let known: HashSet<&str> = told.iter().map(String::as_str).collect();
    let digests: Vec<String> = rules.iter().map(|rule| digest(rule)).collect();
    let is_told = |(rule, digest): &(&String, &String)| {
        known.contains(rule.as_str()) || known.contains(digest.as_str())
    };
    let added = rules.iter().zip(&digests).filter(|rule| !is_told(rule)).map(|(rule, _)| rule.as_str());
    let now: HashSet<&str> = rules.iter().chain(&digests).map(String::as_str).collect();
    let gone = told.iter().map(String::as_str).filter(|rule| !now.contains(rule));
    let (unnamed, removed): (Vec<&str>, Vec<&str>) = gone.partition(|rule| is_digest(rule));
    RuleChanges { added: added.collect(), removed, removed_unnamed: unnamed.len() }
}

fn digest(rule: &str) -> String {
    format!("#{}", &hash::md5_hex(rule.as_bytes())[..DIGITS])
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_rules_are_those_that_were_written_or_known_before() {
        let rules = ["one", "one more", "a\n<b> c", "never told"].map(String::from);
        let content = "Rules: rulesHash x\n- one more\n- a\n  ‹b> c\n- never t …\nSession: s";
        let known = |told: Option<&[String]>| known_rules(content, &rules, told);
        assert_eq!(known(None), rules[1..3], "a cut rule is not known, and “one” is no line of its own");
        assert_eq!(known(Some(&rules[..1])), rules[..3]);
        assert_eq!(known_rules("Rules changed:\n+ never told", &rules, Some(&[])), rules[3..]);
        let kept = told_rules(vec!["x".repeat(5_000)]).unwrap();
        assert_eq!(known_rules("", &["x".repeat(5_000)], Some(&kept)).len(), 1, "known by its digest");
    }

    #[test]
    fn rule_changes_names_added_rule_also_if_texts_were_too_long_to_keep() {
        for (count, length) in [(3, 10), (150, 60), (500, 60)] {
            let mut rules: Vec<String> = (0..count).map(|n| format!("{n:0length$}")).collect();
            let told = told_rules(rules.clone()).unwrap();
            assert!(told.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
            assert_eq!(rule_changes(&told, &rules), RuleChanges::default());
            let first = rules.remove(0);
            rules.push(String::from("Tokens live for an hour"));
            let changes = rule_changes(&told, &rules);
            assert_eq!(changes.added, ["Tokens live for an hour"]);
            let is_named = count == 3;
            assert_eq!(changes.removed, if is_named { vec![first.as_str()] } else { Vec::new() });
            assert_eq!(changes.removed_unnamed, usize::from(!is_named));
        }
        assert_eq!(told_rules(vec!["x".repeat(10); 600]), None);
    }
}
