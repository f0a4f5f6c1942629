//! Finds passwords in command lines: `curl -u user:password`, `mysql -pPASSWORD`, `sshpass -p PASSWORD`.

use super::assignment::read_value;
use super::value::{has_digit, is_code, is_mixed_case, is_password, is_placeholder, is_strong_password};
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
    client("openssl", "-k", false, true),
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
    let value = read_value(hit.text, start);
    // `tool -u bob -p …`: a program that takes a user takes a password.
    let is_login = flag == "-p"
        && is_separate
        && line.contains(" -u ")
        && has_digit(value.str)
        && is_mixed_case(value.str);
    if !is_known && !is_login {
        return;
    }
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

/// Finds the password that `echo` or `printf` writes to a command that reads it: `--password-stdin`.
pub(super) fn find_piped(hit: Hit<'_>, found: &mut Vec<Match>) {
    let line = hit.line_before();
    let Some(at) = ["echo ", "printf "].iter().find_map(|word| Some(line.find(word)? + word.len())) else {
        return;
    };
    let rest = line[at..].trim_start_matches("-n ").trim_start_matches("%s ").trim_start();
    let value = read_value(hit.text, hit.at - rest.len());
    if value.str.len() >= 6 && is_password(value.str) && !is_placeholder(value.str) && line.contains('|') {
        found.push(Match { range: value.start..value.start + value.str.len(), kind: KIND, rank: 0 });
    }
}

/// Finds the password in a line of `.pgpass`: `host:port:database:user:password`.
pub(super) fn find_pgpass(hit: Hit<'_>, found: &mut Vec<Match>) {
    let line = prefix(hit.after(), 200);
    let line = line.split('\n').next().unwrap_or(line);
    let is_host = !hit.line_before().is_empty() && !hit.line_before().contains([' ', ':', '/']);
    if let [database, user, password] = line.splitn(3, ':').collect::<Vec<_>>()[..]
        && is_host
        && ![database, user, password].iter().any(|part| part.is_empty() || part.contains(' '))
        && !is_placeholder(password)
    {
        found.push(Match {
            range: hit.end + line.len() - password.len()..hit.end + line.len(),
            kind: KIND,
            rank: 0,
        });
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
    let window = prefix(hit.after(), 120);
    let text = &hit.text[..hit.end + window.len()];
    let rest = prefix(window, 60);
    let rest = &rest[..rest.find(['\n', ',', ';', '，', '。', '(', '@']).unwrap_or(rest.len())];
    let is_user =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '`' | '.' | ':' | '：' | '/');
    let users = &rest[..rest.find(|c| !is_user(c)).unwrap_or(rest.len())];
    for (at, sign) in users.match_indices(['/', ':', '：']).take(3) {
        let after = rest[at + sign.len()..].trim_start_matches([' ', '`']);
        let value = read_value(text, hit.end + rest.len() - after.len());
        let is_chosen =
            sign == "/" && value.str.len() >= 8 && has_digit(value.str) && is_mixed_case(value.str);
        let is_secret = (is_strong_password(value.str) || (is_chosen && is_password(value.str)))
            && !value.str.contains(['/', ':', '.']);
        if is_secret && !is_placeholder(value.str) && !is_code(value.str) {
            found.push(Match { range: value.start..value.start + value.str.len(), kind: KIND, rank: 0 });
            return;
        }
    }
}
