//! Traditional and simplified forms of Chinese characters, so that text in one script finds text in the other.
//!
//! `variants.txt` has one pair per line, sorted: a character and the form that replaces it. The pairs are
//! those of `kSimplifiedVariant` and `kTraditionalVariant` in Unihan (Unicode Character Database 15.0, ©
//! 1991–2022 Unicode, Inc., Unicode License, <https://www.unicode.org/license.txt>), with the variants
//! (`kZVariant`, `kSemanticVariant`) of characters that GB 2312 lacks. Changed by hand: 佈, 佔 and 託 were
//! added, and 覆, which is a simplified character too, was removed. The replacement is not always the usual
//! form of a word (著名 becomes 着名): it only has to be the same for the text and for the query.

/// The pairs. Every character in it has three bytes.
const PAIRS: &[u8] = include_bytes!("variants.txt");
/// The bytes of a line: two characters and a line end.
const LINE: usize = 7;
const CHAR: usize = 3;

/// Returns the form of a Han character that stands for all its variants.
pub fn fold(c: char) -> char {
    let mut buffer = [0; 4];
    let key = c.encode_utf8(&mut buffer).as_bytes();
    if key.len() != CHAR {
        return c;
    }
    let (mut low, mut high) = (0, PAIRS.len() / LINE);
    while low < high {
        let middle = (low + high) / 2;
        let line = &PAIRS[middle * LINE..middle * LINE + LINE];
        match line[..CHAR].cmp(key) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => {
                let folded = std::str::from_utf8(&line[CHAR..CHAR * 2]).ok();
                return folded.and_then(|text| text.chars().next()).unwrap_or(c);
            }
        }
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fold_traditional_character_returns_simplified_one() {
        for (from, to) in [('漢', '汉'), ('緩', '缓'), ('裏', '里'), ('説', '说'), ('佈', '布'), ('鬱', '郁')]
        {
            assert_eq!(fold(from), to);
        }
        for same in ['汉', '缓', '里', 'a', 'é', '𠀀', 'か', '한'] {
            assert_eq!(fold(same), same);
        }
    }

    #[test]
    fn pairs_are_sorted_and_folding_twice_changes_nothing() {
        let text = std::str::from_utf8(PAIRS).unwrap();
        let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        assert!(lines.len() >= 2_500 && PAIRS.len() == lines.len() * LINE);
        assert!(lines.iter().all(|line| line.len() == 2 && line.iter().all(|c| c.len_utf8() == CHAR)));
        assert!(lines.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        for line in &lines {
            assert_eq!((fold(line[0]), fold(line[1])), (line[1], line[1]));
        }
    }
}
