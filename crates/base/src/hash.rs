//! Two digests: MD5 to detect changes, SHA-256 where collisions must be infeasible.

use md5::{Digest, Md5};
use sha2::Sha256;

/// Returns the MD5 of a content, to detect changes during refresh and recovery. Not collision-resistant.
pub fn md5_hex(bytes: &[u8]) -> String {
    hex(&Md5::digest(bytes))
}

/// Returns the SHA-256 of content that the user agreed to. Collision-resistant, so other content cannot use the
/// same consent.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Without `format!`, because a hook computes several digests at every prompt.
fn hex(digest: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    let mut out = String::with_capacity(2 * digest.len());
    for byte in digest {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 0xf));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_published_test_vectors() {
        assert_eq!(md5_hex(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
