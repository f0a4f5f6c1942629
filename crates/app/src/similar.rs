//! Finds the known name that a misspelled name probably meant: a setting, a tool or an argument.

use tanmi_base::text;

/// Returns the known name that was probably meant: equal without case, underscores and hyphens, or at most two edits
/// away.
pub fn find_similar(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(text::prefix(name, 64));
    let distance = |candidate: &str| {
        let candidate = plain(candidate);
        // A prefix of at least four letters counts as close: `parent` for `parentId`.
        if candidate.starts_with(&wanted) && wanted.len() >= 4 {
            1
        } else {
            strsim::levenshtein(&wanted, &candidate)
        }
    };
    known
        .map(|candidate| (distance(candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= 2)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_similar_misspelled_name_returns_known_name() {
        let known = || ["workspaceId", "nodeId", "parentId", "rulesHash"].into_iter();
        for (wrong, right) in [
            ("workspace_id", Some("workspaceId")),
            ("NodeID", Some("nodeId")),
            ("parent", Some("parentId")),
            ("ruleHash", Some("rulesHash")),
            ("workspace", Some("workspaceId")),
            ("colour", None),
        ] {
            assert_eq!(find_similar(wrong, known()), right, "{wrong}");
        }
    }

    #[test]
    fn find_setting_misspelled_key_suggests_known_key() {
        for (wrong, right) in [("auto-log", Some("autoLog")), ("memori", Some("memory")), ("nonsense", None)]
        {
            match crate::config::find(wrong) {
                Err(crate::Error::UnknownKey { near, .. }) => assert_eq!(near, right, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}
