//! Finds passwords in command lines: `curl -u user:password`, `mysql -pPASSWORD`, `sshpass -p PASSWORD`.

use super::assignment::read_value;
use super::value::{is_code, is_password, is_placeholder, is_strong_password};
use super::{Hit, Match};
use crate::text::prefix;

const KIND: &str = "password";

/// A program that takes a password after a flag.
struct Client {
    /// Occurs in the line before the flag.
    word: &'static str,
    flag: &'static str,
    is_attached: bool,
    is_separate: bool,
}

const fn client(word: &'static str, flag: &'static str, is_attached: bool, is_separate: bool) -> Client {
    Client { word, flag, is_attached, is_separate }
}

const CLIENTS: &[Client] = &[
    client("mysql", "-p", true, false),
    client("mariadb", "-p", true, false),
    client("sshpass", "-p", true, true),
    client("login", "-p", false, true),
    client("mongo", "-p", false, true),
    client("7z", "-p", true, false),
    client("ipmitool", "-P", false, true),
    client("mosquitto", "-P", false, true),
    client("sqlcmd", "-P", false, true),
    client("bcp", "-P", false, true),
    client("zip", "-P", false, true),
    client("rar", "-p", true, false),
    client("redis-cli", "-a", false, true),
    client("valkey-cli", "-a", false, true),
    client("ldap", "-w", false, true),
    client("ssh-keygen", "-N", false, true),
    client("ssh-keygen", "-P", false, true),
];

/// Finds a password after a flag of a program that is known to take one.
pub(super) fn find_flags(hit: Hit<'_>, found: &mut Vec<Match>) {
    let flag = hit.text[hit.at..hit.end].trim();
    let line = hit.line_before();
    let rest = hit.text[hit.at + 1 + flag.len()..].trim_start_matches(' ');
    let start = hit.text.len() - rest.len();
    let is_separate = start > hit.at + 1 + flag.len();
    let is_known = CLIENTS.iter().any(|client| {
        client.flag == flag
            && line.contains(client.word)
            && if is_separate { client.is_separate } else { client.is_attached }
    });
    if !is_known {
        return;
    }
    let value = read_value(hit.text, start);
    let is_secret = is_password(value.str) || (line.contains("sshpass") && value.str.len() >= 6);
    if value.str.len() >= 6 && is_secret && !is_placeholder(value.str) && !is_code(value.str) {
        found.push(Match { range: value.start..value.start + value.str.len(), kind: KIND, rank: 0 });
    }
}

/// Finds `-u user:password`.
pub(super) fn find_logins(hit: Hit<'_>, found: &mut Vec<Match>) {
    let rest = hit.after().trim_start_matches([' ', '=']);
    let value = read_value(hit.text, hit.text.len() - rest.len());
    let Some((user, password)) = value.str.split_once([':', '%']) else { return };
    let line = hit.line_before();
    let is_web = ["curl", "http", "wget"].iter().any(|client| line.contains(client));
    let is_secret = is_password(password) || (is_web && password.len() >= 6 && password != "password");
    if password.len() >= 5
        && is_secret
        && user != password
        && !user.contains(['/', ' ', '\n'])
        && !password.contains([' ', '/'])
        && !is_placeholder(password)
        && !is_code(password)
    {
        let start = value.start + user.len() + 1;
        found.push(Match { range: start..start + password.len(), kind: KIND, rank: 0 });
    }
}

/// Finds `IDENTIFIED BY 'password'`.
pub(super) fn find_identified_by(hit: Hit<'_>, found: &mut Vec<Match>) {
    let rest = hit.after().trim_start_matches(' ');
    let rest = rest.strip_prefix("PASSWORD ").unwrap_or(rest);
    let value = read_value(hit.text, hit.text.len() - rest.len());
    if value.str.len() >= 5
        && rest.starts_with(['\'', '"'])
        && !is_placeholder(value.str)
        && !value.str.contains(' ')
    {
        found.push(Match { range: value.start..value.start + value.str.len(), kind: KIND, rank: 0 });
    }
}

/// Finds the second of two arguments: `BasicAuth("user", "password")`.
pub(super) fn find_arguments(hit: Hit<'_>, found: &mut Vec<Match>) {
    let rest = prefix(hit.after(), 120);
    let rest = &rest[..rest.find(['\n', ')']).unwrap_or(rest.len())];
    let Some(comma) = rest.find(',').filter(|_| rest.starts_with(['"', '\''])) else { return };
    let argument = rest[comma + 1..].trim_start();
    let value = read_value(hit.text, hit.end + rest.len() - argument.len());
    if argument.starts_with(['"', '\''])
        && is_password(value.str)
        && value.str.len() >= 6
        && !is_placeholder(value.str)
    {
        found.push(Match { range: value.start..value.start + value.str.len(), kind: KIND, rank: 0 });
    }
}

/// Finds `login with admin / password` and `admin:password`.
pub(super) fn find_pairs(hit: Hit<'_>, found: &mut Vec<Match>) {
    if hit.before().ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return;
    }
    let rest = prefix(hit.after(), 60);
    let rest = &rest[..rest.find(['\n', ',', ';', '，', '。', '(', '@']).unwrap_or(rest.len())];
    let is_user =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '`' | '.' | ':' | '：' | '/');
    let users = &rest[..rest.find(|c| !is_user(c)).unwrap_or(rest.len())];
    for (at, sign) in users.match_indices(['/', ':', '：']).take(3) {
        let after = rest[at + sign.len()..].trim_start_matches([' ', '`']);
        let value = read_value(hit.text, hit.end + rest.len() - after.len());
        let is_secret = is_strong_password(value.str) && !value.str.contains(['/', ':']);
        if is_secret && !is_placeholder(value.str) && !is_code(value.str) {
            found.push(Match { range: value.start..value.start + value.str.len(), kind: KIND, rank: 0 });
            return;
        }
    }
}
