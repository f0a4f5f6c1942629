//! Dictionary files that a user brings for search in two languages: CC-CEDICT
//! (`漢字 汉字 [han4 zi4] /sense/sense/`) and ECDICT (CSV with the columns `word` and `translation`).
//!
//! A file is read line by line, in bounded memory. Only short translations are kept: a definition of ten words finds
//! nothing.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use tanmi_base::lang::is_han;
use tanmi_base::text;

use crate::segment;

/// Maximum number of bytes of a line. A longer line counts as bad.
const MAX_LINE: usize = 64 << 10;
/// Maximum number of characters of a Chinese word.
const MAX_CHARS: usize = 6;
/// Maximum number of words of an English phrase.
const MAX_WORDS: usize = 3;

/// Returns the file of a home store that contains the dictionaries.
pub fn file(home: &Path) -> PathBuf {
    home.join("lexicon.sqlite")
}

/// The format of a dictionary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    CcCedict,
    /// The positions of the columns `word` and `translation`.
    Ecdict {
        word: usize,
        translation: usize,
    },
}

/// Counts of a dictionary file that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines without comments and empty lines.
    pub lines: u64,
    pub bad_lines: u64,
}

/// Reads a dictionary file and passes each pair of a Chinese word and an English phrase, both normalized, to `put`.
/// Returns `None` if the file has neither of the two formats.
pub fn read<E: From<std::io::Error>>(
    mut file: impl BufRead,
    mut put: impl FnMut(&str, &str) -> Result<(), E>,
) -> Result<Option<LineCounts>, E> {
    let mut counts = LineCounts::default();
    let mut format = None;
    let mut line = Vec::new();
    while read_line(&mut file, &mut line)? {
        let line = text::without_bom(&line).trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Some(known) = format.or_else(|| detect(line)) else {
            return Ok(None);
        };
        let is_header = format.is_none() && known != Format::CcCedict;
        format = Some(known);
        if is_header {
            continue;
        }
        counts.lines += 1;
        match std::str::from_utf8(line)
            .ok()
            .filter(|line| line.len() <= MAX_LINE)
            .and_then(|line| pairs(line, known))
        {
            Some(pairs) => pairs.iter().try_for_each(|(chinese, english)| put(chinese, english))?,
            None => counts.bad_lines += 1,
        }
    }
    Ok(format.map(|_| counts))
}

/// Reads a line into `line`, of a longer line only the first [`MAX_LINE`] bytes and one more. Returns `false`
/// at the end.
fn read_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let read = file.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', line)?;
    if read > MAX_LINE && !line.ends_with(b"\n") {
        file.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

/// Returns the format of a file by its first line.
fn detect(line: &[u8]) -> Option<Format> {
    let line = std::str::from_utf8(line).ok()?;
    if cc_cedict_parts(line).is_some() {
        return Some(Format::CcCedict);
    }
    let columns = csv_fields(line)?;
    let position = |name: &str| columns.iter().position(|column| column == name);
    Some(Format::Ecdict { word: position("word")?, translation: position("translation")? })
}

/// Returns the pairs of a line. `None` if the line does not have the format.
fn pairs(line: &str, format: Format) -> Option<BTreeSet<(String, String)>> {
    match format {
        Format::CcCedict => {
            let (word, senses) = cc_cedict_parts(line)?;
            let word = chinese_word(word);
            let phrases = senses.split(['/', ';']).filter_map(english_phrase);
            Some(
                word.iter()
                    .flat_map(|word| phrases.clone().map(move |phrase| (word.clone(), phrase)))
                    .collect(),
            )
        }
        Format::Ecdict { word, translation } => {
            let fields = csv_fields(line)?;
            let (word, translation) = (fields.get(word)?, fields.get(translation)?);
            let phrase = english_phrase(word);
            // Lines of a translation are separated by a backslash and an n.
            let senses =
                translation.split("\\n").flat_map(|sense| sense.split([',', ';', '，', '；', '、', '\n']));
            let words = senses.filter_map(|sense| chinese_word(sense_text(sense)));
            Some(
                phrase
                    .iter()
                    .flat_map(|phrase| words.clone().map(move |word| (word, phrase.clone())))
                    .collect(),
            )
        }
    }
}

/// Returns the simplified word and the senses of a line of CC-CEDICT.
fn cc_cedict_parts(line: &str) -> Option<(&str, &str)> {
    let (words, rest) = line.split_once(" [")?;
    let (_, senses) = rest.split_once("] /")?;
    let (_, simplified) = words.split_once(' ')?;
    Some((simplified, senses.strip_suffix('/')?))
}

/// Returns a Chinese word in the form that queries have, or `None` if it is none or too long.
fn chinese_word(word: &str) -> Option<String> {
    let word = word.trim();
    let is_word = !word.is_empty() && word.chars().all(is_han) && word.chars().count() <= MAX_CHARS;
    is_word.then(|| word.chars().map(segment::normalize).collect())
}

/// Returns a sense without its part of speech (`n.`, `vt.`), its field (`[计]`) and remarks in parentheses.
fn sense_text(sense: &str) -> &str {
    let mut sense = sense.trim();
    while let Some((head, rest)) = sense.split_once([' ', ']']) {
        if !head.is_ascii() && !head.starts_with('[') {
            break;
        }
        sense = rest.trim_start();
    }
    sense.split(['(', '（']).next().unwrap_or_default().trim()
}

/// Returns the stems of an English sense, separated by spaces. `None` for a remark and for a long definition.
fn english_phrase(sense: &str) -> Option<String> {
    let sense = without_parentheses(sense);
    const REMARKS: &[&str] =
        &["CL:", "variant of", "old variant", "see ", "see also", "abbr.", "surname ", "also pr."];
    if REMARKS.iter().any(|remark| sense.trim_start().starts_with(remark)) {
        return None;
    }
    let stems = segment::stems(&sense);
    (1..=MAX_WORDS).contains(&stems.len()).then(|| stems.join(" "))
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0usize;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// Returns the fields of a line of CSV. `None` if a quoted field does not end.
fn csv_fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let field = fields.last_mut()?;
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => field.push(c),
        }
    }
    (!is_quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &[u8]) -> Option<(LineCounts, Vec<String>)> {
        let mut found = Vec::new();
        let counts = read::<std::io::Error>(text, |zh, en| {
            found.push(format!("{zh}={en}"));
            Ok(())
        });
        counts.unwrap().map(|counts| (counts, found))
    }

    #[test]
    fn read_cc_cedict_returns_short_senses_and_counts_bad_lines() {
        let text = "\u{feff}# CC-CEDICT\n緩存 缓存 [huan3 cun2] /(computing) cache/buffer memory; store/CL:個|个[ge4]/\r\n\
                    broken line\n分佈 分布 [fen1 bu4] /to be scattered/distributed (over an area etc)/\n\n\
                    長 长 [chang2] /a definition that has many more words than any query would have/\n";
        let (counts, found) = read_text(text.as_bytes()).unwrap();
        assert_eq!(counts, LineCounts { lines: 4, bad_lines: 1 });
        assert_eq!(
            found,
            ["缓存=buffer memori", "缓存=cach", "缓存=store", "分布=distribut", "分布=scatter"]
        );
    }

    #[test]
    fn read_ecdict_returns_translations_without_part_of_speech() {
        let text = "word,phonetic,definition,translation,pos\n\
                    cache,kæʃ,\"n. a hidden \"\"storage\"\"\",\"n. 贮藏所, 缓存\\nvt. 隐藏\\n[计] 高速缓存(器)\",n\n\
                    \"open quote,x,y,z\nthrottle,,,vt. 限流；節流,\n";
        let (counts, found) = read_text(text.as_bytes()).unwrap();
        assert_eq!(counts, LineCounts { lines: 3, bad_lines: 1 });
        assert_eq!(
            found,
            ["缓存=cach", "贮藏所=cach", "隐藏=cach", "高速缓存=cach", "节流=throttl", "限流=throttl"]
        );
    }

    #[test]
    fn read_other_file_is_refused_and_long_line_is_bad() {
        assert_eq!(read_text(b"just some text\nmore"), None);
        assert_eq!(read_text(b""), None);
        assert_eq!(read_text(&[0xff, 0xfe, b'\n']), None);
        let long =
            format!("一 一 [yi1] /one/\n二 二 [er4] /{}/\n三 三 [san1] /three/\n", "x ".repeat(MAX_LINE));
        let (counts, found) = read_text(long.as_bytes()).unwrap();
        assert_eq!((counts.lines, counts.bad_lines), (3, 1));
        assert_eq!(found, ["一=one", "三=three"]);
    }

    proptest::proptest! {
        #[test]
        fn read_any_text_does_not_panic(text in ".{0,80}", line in "[\\[\\]/ ,\"\\\\n汉字a-z().]{0,40}") {
            for text in [text, format!("一 一 [yi1] /one/\n{line}"), format!("word,translation\n{line}")] {
                let _ = read_text(text.as_bytes());
            }
        }
    }
}
