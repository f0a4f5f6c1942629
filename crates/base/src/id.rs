//! Ids (`ws-mj2hy912-u02rz9`), random characters and safe file names. Other crates define what an id refers to.

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

/// Returns `len` characters of `0-9a-z`, each equally likely.
pub fn random(len: usize) -> String {
    let mut out = String::with_capacity(len);
    let mut pool = [0u8; 16];
    while out.len() < len {
        // Fallback without entropy: the address of a local variable still differs between processes.
        if getrandom::fill(&mut pool).is_err() {
            let here = std::ptr::from_ref(&pool) as usize as u64 ^ u64::from(std::process::id());
            pool = u128::from(here).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835).to_le_bytes();
        }
        for &byte in &pool {
            // 252 = 7 × 36. Accepting larger bytes would favour the first digits.
            if byte < 252 && out.len() < len {
                out.push(char::from(DIGITS[usize::from(byte % 36)]));
            }
        }
    }
    out
}

/// Like [`random`], for values that must not be guessable. Returns `None` if the system has no entropy.
pub fn secret(len: usize) -> Option<String> {
    getrandom::fill(&mut [0u8; 1]).ok()?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
