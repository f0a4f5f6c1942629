//! Finds private keys: PEM, OpenPGP, SSH2 and PuTTY.

use super::{Hit, Match};
use crate::text::prefix;

const KIND: &str = "private key";

/// Maximum number of bytes of one key.
const MAX_LEN: usize = 16 * 1024;

pub(super) fn find_pem(hit: Hit<'_>, found: &mut Vec<Match>) {
    let dashes = hit.before().trim_end_matches(' ');
    let start = dashes.trim_end_matches('-').len();
    let after = prefix(hit.after(), MAX_LEN);
    let Some(head) = prefix(after, 64).find("----") else { return };
    if dashes.len() - start < 4 || !after[..head].contains("PRIVATE KEY") {
        return;
    }
    let body_at = head + after[head..].len() - after[head..].trim_start_matches('-').len();
    // The next key ends this one; without this bound, many starts without an end would each be read in full.
    let body = &after[body_at..];
    let body = &body[..body.find("BEGIN ").unwrap_or(body.len())];
    let len = match body.find("END ").filter(|end| body[..*end].trim_end_matches(' ').ends_with("----")) {
        // Shorter is a text that names both lines.
        Some(end) if end < 20 => return,
        Some(end) => {
            let tail = end + body[end..].find("----").unwrap_or(0);
            tail + body[tail..].len() - body[tail..].trim_start_matches('-').len()
        }
        None => truncated_len(body),
    };
    if len > 0 {
        found.push(Match { range: start..hit.end + body_at + len, kind: KIND, rank: 0 });
    }
}

/// Returns the length of the lines of a key whose end is missing.
fn truncated_len(body: &str) -> usize {
    let mut end = 0;
    let mut from = 0;
    // A key on one line has escaped line ends.
    for line in body.replace("\\n", "\n\n").split('\n') {
        let text = line.trim();
        let is_key = !text.is_empty() && text.bytes().all(is_base64);
        from += line.len();
        if is_key {
            end = from;
        } else if !text.is_empty() && !text.contains(": ") {
            break;
        }
        from += 1;
    }
    end
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

pub(super) fn find_putty(hit: Hit<'_>, found: &mut Vec<Match>) {
    let after = prefix(hit.after(), MAX_LEN);
    let Some(start) = after.find('\n').map(|end| end + 1) else { return };
    let Ok(count) = after[..start].trim().parse::<usize>() else { return };
    let lines = after[start..].split('\n').take(count);
    let is_key = |line: &&str| !line.trim().is_empty() && line.trim().bytes().all(is_base64);
    let len: usize = lines.take_while(is_key).map(|line| line.len() + 1).sum();
    if len > 0 {
        let range = hit.end + start..hit.end + (start + len - 1).min(after.len());
        found.push(Match { range, kind: KIND, rank: 0 });
    }
}
