//! Finds Markdown code: fenced blocks, and code spans within one line. Code without an end is not code.

use std::ops::Range;

/// Longer runs of backticks or tildes are no delimiters. The limit keeps the search linear: per length, at most one
/// search fails.
const MAX_RUN: usize = 15;

/// The length of a run of one delimiter character.
pub(super) fn run_len(text: &[u8], delimiter: u8) -> usize {
    text.iter().take_while(|byte| **byte == delimiter).count()
}

/// Lengths of delimiters for which the rest of the text has no end, one bit each.
#[derive(Default)]
struct Unclosed(u16);

impl Unclosed {
    /// Calls `search` unless a search for this length has failed before.
    fn find<T>(&mut self, len: usize, search: impl FnOnce() -> Option<T>) -> Option<T> {
        if len > MAX_RUN || self.0 & (1 << len) != 0 {
            return None;
        }
        let found = search();
        if found.is_none() {
            self.0 |= 1 << len;
        }
        found
    }
}

/// Finds the ends of fenced blocks. Blocks have to be searched from the start of the text to its end.
#[derive(Default)]
pub(super) struct Fences {
    backticks: Unclosed,
    tildes: Unclosed,
}

impl Fences {
    /// Returns the position after the block that begins with `fence`, if the block has an end. `body` is where the
    /// line after the fence begins.
    pub(super) fn end(&mut self, text: &str, fence: &Range<usize>, body: usize) -> Option<usize> {
        let delimiter = text.as_bytes()[fence.start];
        let unclosed = if delimiter == b'`' { &mut self.backticks } else { &mut self.tildes };
        unclosed.find(fence.len(), || {
            let mut at = body;
            text[body..].split_inclusive('\n').find_map(|line| {
                at += line.len();
                let run = run_len(line.trim_start().as_bytes(), delimiter);
                let is_end = run >= fence.len() && line.trim_start()[run..].trim().is_empty();
                is_end.then_some(at)
            })
        })
    }
}

/// Returns the delimiter of a line that begins a fenced block.
pub(super) fn fence_at(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let trimmed = text[line.clone()].trim_start();
    let delimiter = *trimmed.as_bytes().first()?;
    let len = run_len(trimmed.as_bytes(), delimiter);
    let is_fence = match delimiter {
        b'`' => len >= 3 && !trimmed[len..].contains('`'),
        b'~' => len >= 3,
        _ => false,
    };
    let start = line.end - trimmed.len();
    is_fence.then_some(start..start + len)
}

/// Finds the ends of code spans in one line, from its start to its end.
#[derive(Default)]
pub(super) struct Spans(Unclosed);

impl Spans {
    /// Returns where the content of the span ends that begins with `len` backticks before `from`.
    pub(super) fn content_end(
        &mut self,
        text: &[u8],
        from: usize,
        len: usize,
        line_end: usize,
    ) -> Option<usize> {
        self.0.find(len, || {
            let mut at = from;
            while at < line_end {
                match run_len(&text[at..line_end], b'`') {
                    0 => at += 1,
                    run if run == len => return Some(at),
                    run => at += run,
                }
            }
            None
        })
    }
}
