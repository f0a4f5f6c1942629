//! The scan: finds the places where a secret can start, and calls the finder for each.
//!
//! The triggers are kept in a hash table of their first three bytes that the compiler builds, so that a process
//! that masks one short text pays nothing for it at its start.

use super::{Hit, MARK, Match, assignment, command, http, private_key, token};
use token::TOKENS;

type Find = fn(Hit<'_>, &mut Vec<Match>);

/// Words that start a search, and the function that searches there.
struct Finder {
    /// At least three bytes each. Lower case, unless `is_exact`.
    starts: &'static [&'static str],
    is_exact: bool,
    find: Find,
}

/// Invariant: the order is the rank of the matches, after that of the tokens.
const FINDERS: &[Finder] = &[
    Finder { starts: &["BEGIN "], is_exact: true, find: private_key::find_pem },
    Finder { starts: &["private-lines:"], is_exact: false, find: private_key::find_putty },
    Finder { starts: &["eyJ"], is_exact: true, find: token::find_jwt },
    Finder { starts: token::TWILIO_STARTS, is_exact: true, find: token::find_twilio },
    Finder { starts: &["-us"], is_exact: true, find: token::find_mailchimp },
    Finder { starts: &["5Q~", "6Q~", "7Q~", "8Q~", "9Q~"], is_exact: true, find: token::find_azure },
    Finder { starts: &[".atlasv1."], is_exact: true, find: token::find_terraform },
    Finder { starts: &[":AA", ":APA91b"], is_exact: true, find: token::find_pair },
    Finder { starts: token::DISCORD_STARTS, is_exact: true, find: token::find_discord },
    Finder { starts: &["pat"], is_exact: true, find: token::find_airtable },
    Finder { starts: &["://"], is_exact: true, find: http::find_url_secrets },
    Finder { starts: &["authorization"], is_exact: false, find: http::find_authorization },
    Finder { starts: &["bearer ", "basic "], is_exact: false, find: http::find_credentials },
    Finder { starts: &["cookie"], is_exact: false, find: http::find_cookies },
    Finder { starts: &[" -b ", "--cookie"], is_exact: true, find: http::find_cookie_flag },
    Finder {
        starts: &["mnemonic", "seed phrase", "recovery phrase", "助记词"],
        is_exact: false,
        find: assignment::find_mnemonic,
    },
    Finder { starts: &["passphrase"], is_exact: false, find: assignment::find_passphrase },
    Finder {
        starts: &[" -u", "--user", "--proxy-user", "--auth"],
        is_exact: false,
        find: command::find_logins,
    },
    Finder {
        starts: &[" -p", " -P", " -a ", " -w ", " -N ", " -k "],
        is_exact: true,
        find: command::find_flags,
    },
    Finder {
        starts: &["auth(", "auth=(", "auth = (", "credentials(", "credential("],
        is_exact: false,
        find: command::find_arguments,
    },
    Finder { starts: &["-stdin"], is_exact: true, find: command::find_piped },
    Finder { starts: &[":5432:", ":*:"], is_exact: true, find: command::find_pgpass },
    Finder { starts: &["identified by"], is_exact: false, find: command::find_identified_by },
    Finder {
        starts: &["login", "log in", "sign in", "admin", "root", "creds", "credentials", "账号", "登录"],
        is_exact: false,
        find: command::find_pairs,
    },
    // The scan skips masks.
    Finder { starts: &[MARK], is_exact: true, find: |_, _| () },
    Finder { starts: super::name::STEMS, is_exact: false, find: assignment::find_assigned },
];

#[derive(Clone, Copy)]
struct Trigger {
    text: &'static str,
    is_exact: bool,
    /// Index into `TOKENS`, or after them into `FINDERS`.
    rank: usize,
}

const COUNT: usize = {
    let mut count = TOKENS.len();
    let mut at = 0;
    while at < FINDERS.len() {
        count += FINDERS[at].starts.len();
        at += 1;
    }
    count
};

const TRIGGERS: [Trigger; COUNT] = {
    let mut triggers = [Trigger { text: "", is_exact: true, rank: 0 }; COUNT];
    let mut count = 0;
    while count < TOKENS.len() {
        triggers[count] = Trigger { text: TOKENS[count].prefix, is_exact: true, rank: count };
        count += 1;
    }
    let mut finder = 0;
    while finder < FINDERS.len() {
        let Finder { starts, is_exact, .. } = FINDERS[finder];
        let mut at = 0;
        while at < starts.len() {
            triggers[count] = Trigger { text: starts[at], is_exact, rank: TOKENS.len() + finder };
            count += 1;
            at += 1;
        }
        finder += 1;
    }
    triggers
};

const SLOTS_LOG2: u32 = 12;

/// Hash table from the first three bytes of a trigger to its number plus one, with a chain of equal hashes.
struct Table {
    first: [u16; 1 << SLOTS_LOG2],
    next: [u16; COUNT],
}

static TABLE: Table = {
    let mut table = Table { first: [0; 1 << SLOTS_LOG2], next: [0; COUNT] };
    let mut at = COUNT;
    while at > 0 {
        at -= 1;
        let bytes = TRIGGERS[at].text.as_bytes();
        let slot = slot(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
        table.next[at] = table.first[slot];
        table.first[slot] = at as u16 + 1;
    }
    table
};

static ALL: [Trigger; COUNT] = TRIGGERS;

/// Returns the slot of three bytes. Upper and lower case share one.
const fn slot(bytes: u32) -> usize {
    ((bytes | 0x0020_2020).wrapping_mul(0x9E37_79B1) >> (32 - SLOTS_LOG2)) as usize
}

/// Number of bytes at the start of a secret in which another trigger may give it a better name, such as the prefix of
/// a token after `password=`. The scan skips the rest of the secret: otherwise each trigger in a long secret would read
/// it to its end again.
const NAMED_BY: usize = 512;

/// Returns all secrets of a text; matches may overlap.
pub(super) fn find_all(text: &str) -> Vec<Match> {
    let bytes = text.as_bytes();
    let mut found: Vec<Match> = Vec::new();
    let mut window = 0;
    // What the scan skips: a mask, which is ours and not a name before a value, or the rest of a long secret.
    let mut skipped = 0..0;
    for (end, byte) in bytes.iter().enumerate() {
        window = window >> 8 | u32::from(*byte) << 16;
        let first = TABLE.first[slot(window)];
        if first != 0 && end >= 2 && !skipped.contains(&(end - 2)) {
            let at = end - 2;
            let known = found.len();
            match mark_len(&bytes[at..]) {
                0 => find_at(text, at, first, &mut found),
                len => skipped = at..at + len,
            }
            for one in found[known..].iter().filter(|one| one.range.len() > NAMED_BY) {
                if one.range.end > skipped.end {
                    skipped = one.range.start + NAMED_BY..one.range.end;
                }
            }
        }
    }
    found
}

fn find_at(text: &str, at: usize, first: u16, found: &mut Vec<Match>) {
    let mut next = usize::from(first);
    while next != 0 {
        let trigger = ALL[next - 1];
        next = usize::from(TABLE.next[next - 1]);
        let end = at + trigger.text.len();
        let is_hit = text.as_bytes().get(at..end).is_some_and(|bytes| {
            let known = trigger.text.as_bytes();
            bytes == known || (!trigger.is_exact && bytes.eq_ignore_ascii_case(known))
        });
        if is_hit {
            let known = found.len();
            let hit = Hit { text, at, end };
            match TOKENS.get(trigger.rank) {
                Some(token) => token.find(hit, found),
                None => (FINDERS[trigger.rank - TOKENS.len()].find)(hit, found),
            }
            for one in &mut found[known..] {
                one.rank = trigger.rank;
            }
        }
    }
}

/// Returns the length of the mask at the start of a text, or zero.
fn mark_len(bytes: &[u8]) -> usize {
    if !bytes.starts_with(MARK.as_bytes()) {
        return 0;
    }
    bytes.iter().take(48).position(|byte| *byte == b']').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigger_is_at_least_three_bytes_and_lower_case() {
        for trigger in TRIGGERS {
            assert!(trigger.text.len() >= 3, "{}", trigger.text);
            assert!(
                trigger.is_exact || trigger.text == trigger.text.to_ascii_lowercase(),
                "{}",
                trigger.text
            );
        }
    }
}
