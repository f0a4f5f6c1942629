//! Ids (`ws-mj2hy912-u02rz9`), random characters and safe file names. Other crates define what an id refers to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Millis;

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Returns a new id: `{prefix}-{base36 time}-{six random characters}`.
pub fn fresh(prefix: &str, now: Millis) -> String {
    format!("{prefix}-{}-{}", base36(now.unsigned_abs()), random(6))
}

pub fn base36(mut value: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[(value % 36) as usize]));
        value /= 36;
        if value == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

/// Random bytes that were read and not used yet. A change of many files needs many short names, and each read of the
/// system's generator is a system call.
static POOL: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn lock_pool() -> MutexGuard<'static, Vec<u8>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `len` characters of `0-9a-z`, each equally likely.
pub fn random(len: usize) -> String {
    let mut out = String::with_capacity(len);
    let mut pool = lock_pool();
    while out.len() < len {
        match pool.pop() {
            // 252 = 7 × 36. Accepting larger bytes would favour the first digits.
            Some(byte) if byte < 252 => out.push(char::from(DIGITS[usize::from(byte % 36)])),
            Some(_) => {}
            None => *pool = random_bytes(),
        }
    }
    out
}

fn random_bytes() -> Vec<u8> {
    let mut bytes = vec![0; 256];
    // Fallback without entropy: the address of a local variable still differs between processes.
    if getrandom::fill(&mut bytes).is_err() {
        let here = std::ptr::from_ref(&bytes) as usize as u64 ^ u64::from(std::process::id());
        let mixed = u128::from(here).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        return mixed.to_le_bytes().to_vec();
    }
    bytes
}

/// Like [`random`], for values that must not be guessable. Returns `None` if the system has no entropy.
pub fn secret(len: usize) -> Option<String> {
    getrandom::fill(&mut [0u8; 1]).ok()?;
    // What is left may come from the time without entropy.
    lock_pool().clear();
    Some(random(len))
}

/// Returns a name that is safe as one path component on every system, for any input. Distinct inputs stay
/// distinct.
pub fn safe_name(raw: &str) -> String {
    let plain = !raw.is_empty()
        && raw.len() <= 80
        && !raw.starts_with(['.', '-'])
        && !raw.ends_with('.')
        && raw
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'));
    if plain {
        return raw.to_owned();
    }
    let kept: String = raw.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    format!("{}~{}", kept.to_ascii_lowercase(), crate::hash::md5_hex(raw.as_bytes()))
}

/// The minimum number of characters of a suffix that stands for an id.
pub const MIN_SUFFIX: usize = 4;

/// Returns whether a text can stand for ids that end with it.
pub fn can_be_suffix(text: &str) -> bool {
    text.len() >= MIN_SUFFIX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// The length of an id that [`short`] leaves whole, and that of the suffix of a longer one.
const WHOLE: usize = 12;
const SHORT: usize = 8;

/// Returns the end of an id, for a text in which it only has to be recognized. Short ids stay whole.
pub fn short(id: &str) -> &str {
    if id.len() <= WHOLE {
        return id;
    }
    let start = (id.len() - SHORT..id.len()).find(|at| id.is_char_boundary(*at)).unwrap_or(0);
    id[start..].trim_start_matches(['-', '_'])
}

/// Returns the shortest suffix of each id that no other of these ids ends with, of at least [`MIN_SUFFIX`]
/// bytes. It does not begin with a hyphen, which would make it an option of a command, or with an underscore.
pub fn short_suffixes<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by(|a, b| ids[*a].bytes().rev().cmp(ids[*b].bytes().rev()));
    let common = |a: usize, b: usize| {
        ids[a].bytes().rev().zip(ids[b].bytes().rev()).take_while(|(left, right)| left == right).count()
    };
    let mut lengths = vec![MIN_SUFFIX; ids.len()];
    // Ids with a long common end are neighbours in this order.
    for pair in order.windows(2) {
        let length = common(pair[0], pair[1]) + 1;
        for id in pair {
            lengths[*id] = lengths[*id].max(length);
        }
    }
    let suffix = |(id, length): (&&'a str, usize)| {
        let is_start = |at: &usize| id.is_char_boundary(*at) && !id[*at..].starts_with(['-', '_']);
        let start = (0..=id.len().saturating_sub(length)).rev().find(is_start).unwrap_or(0);
        &id[start..]
    };
    ids.iter().zip(lengths).map(suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_suffixes_are_unique_and_at_least_four_bytes() {
        let ids = ["node-a-123456", "node-b-123456", "node-a-99wxyz", "root", "node-c-0056-x", "会话会话"];
        let short = short_suffixes(&ids);
        assert_eq!(short, ["a-123456", "b-123456", "wxyz", "root", "56-x", "会话"]);
        assert_eq!(short_suffixes(&["abc", "xabc"]), ["abc", "xabc"]);
        assert_eq!(short_suffixes(&["node-a-b12"]), ["a-b12"]);
    }

    #[test]
    fn short_keeps_short_ids_and_end_of_long_ones() {
        assert_eq!(short("day-1"), "day-1");
        assert_eq!(short("0a1b2c3d-1111-4222-8333-444455556666"), "55556666");
        assert_eq!(short("mcp-mj10oujk-4hj7qp"), "k-4hj7qp");
        assert_eq!(short("会话会话会话"), "会话");
    }

    #[test]
    fn fresh_id_has_prefix_time_and_random_part() {
        let id = fresh("ws", 1_765_432_100_000);
        let parts: Vec<&str> = id.split('-').collect();
        assert_eq!(parts[..2], ["ws", "mj10oujk"]);
        assert_eq!(parts[2].len(), 6);
        assert!(parts[2].bytes().all(|b| DIGITS.contains(&b)));
    }

    #[test]
    fn random_repeated_calls_differ() {
        let many: std::collections::BTreeSet<String> = (0..1000).map(|_| random(6)).collect();
        assert!(many.len() > 990, "only {} distinct of 1000", many.len());
    }

    #[test]
    fn safe_name_hostile_input_is_one_path_component() {
        assert_eq!(safe_name("abc-123"), "abc-123");
        for raw in ["../../x", "a/b", "", ".", "..", "ABC", "会话", "a\0b", "CON.", &"x".repeat(500)] {
            let safe = safe_name(raw);
            assert!(
                !safe.contains(['/', '\\', '\0']) && !safe.starts_with('.') && safe.len() < 120,
                "{safe}"
            );
        }
        assert_ne!(
            safe_name("ABC"),
            safe_name("abc"),
            "case-insensitive file systems must not merge sessions"
        );
    }
}
