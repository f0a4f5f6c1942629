//! The rules that a session was told, as its state keeps them: their texts, or a digest of each if the texts
//! are too long.

use std::collections::HashSet;

use tanmi_base::hash;

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
