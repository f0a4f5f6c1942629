//! Lists in hints. The details of an error have all entries.

/// The number of entries of a list that a hint shows.
const SHOWN: usize = 5;

/// Returns the first entries in Chinese and English, and how many more there are.
pub fn short_list<T>(entries: &[T], show: impl Fn(&T) -> String) -> (String, String) {
    let shown: Vec<String> = entries.iter().take(SHOWN).map(show).collect();
    let shown = shown.join(", ");
    match entries.len().saturating_sub(SHOWN) {
        0 => (shown.clone(), shown),
        more => (format!("{shown}，还有 {more} 个"), format!("{shown} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_is_cut_and_counted() {
        assert_eq!(short_list(&[1, 2], ToString::to_string).1, "1, 2");
        assert_eq!(short_list(&[0; 25], ToString::to_string).1, "0, 0, 0, 0, 0 and 20 more");
    }
}
