//! Finds secrets of the web: passwords and tokens in addresses, webhooks, credentials in headers, cookies.

use super::token::token_at;
use super::value::{is_code, is_encoded_login, is_name_like, is_placeholder, is_random, is_strong_password};
use super::{Hit, Match};
use crate::text::{find_byte, prefix};

/// Passwords of addresses in documents.
const EXAMPLE_PASSWORDS: &[&str] = &["password", "passwd", "pass", "pwd", "pw", "secret", "token", "pat"];

/// Number of bytes of an address that are looked at.
const MAX_URL: usize = 2048;

pub(super) fn find_url_secrets(hit: Hit<'_>, found: &mut Vec<Match>) {
    let rest = prefix(hit.after(), MAX_URL);
    // An address inside an address is found by itself.
    let rest = &rest[..rest.find("://").unwrap_or(rest.len())];
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '，' | '。' | '）');
    let url = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let url = &url[..url.find(super::MARK).unwrap_or(url.len())];
    let host_end = url.find('/').unwrap_or(url.len());
    let is_http = hit.before().ends_with("http") || hit.before().ends_with("https");
    let login = match url[..host_end].rfind('@') {
        Some(at) => &url[..at],
        // A password may contain a slash, though it should be encoded.
        None if !is_http => match url.rfind('@').filter(|at| is_login_with_slash(&url[..*at])) {
            Some(at) => &url[..at],
            None => "",
        },
        None => "",
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    if !password.is_empty() && !is_placeholder(password) && !EXAMPLE_PASSWORDS.contains(&password) {
        let start = hit.end + user.len() + 1;
        found.push(Match { range: start..start + password.len(), kind: "password in a URL", rank: 0 });
    }
    if user.len() >= 20 && is_random(user) {
        found.push(Match { range: hit.end..hit.end + user.len(), kind: "password in a URL", rank: 0 });
    }
    find_webhook(hit, url, found);
}

fn is_login_with_slash(login: &str) -> bool {
    login.split_once(':').is_some_and(|(user, password)| {
        let start = password.split('/').next().unwrap_or_default();
        !user.contains(['.', '/']) && !start.is_empty() && !start.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Finds the secret part of the path of a webhook.
fn find_webhook(hit: Hit<'_>, url: &str, found: &mut Vec<Match>) {
    let path = &url[..url.find(['?', '#', ')', ',']).unwrap_or(url.len())];
    let Some(marker) = ["hook", "/with/key/", "hc-ping.com", "api.day.app", "ntfy.sh"]
        .iter()
        .find_map(|part| path.find(part))
    else {
        return;
    };
    let is_hash = |part: &str| part.len() == 40 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut at = marker;
    let mut secret = None;
    for part in path[marker..].split('/') {
        if at > marker && part.len() >= 16 && is_random(part) && !is_hash(part) {
            secret = secret.or(Some(at..path.trim_end_matches('/').len()));
        } else if at > marker && part.len() >= 6 && is_random(part) && secret.is_none() && !is_hash(part) {
            let is_last = path[at + part.len()..].trim_matches('/').is_empty();
            secret = is_last.then(|| at..at + part.len());
        }
        at += part.len() + 1;
    }
    if let Some(range) = secret {
        found.push(Match { range: hit.end + range.start..hit.end + range.end, kind: "webhook", rank: 0 });
    }
}

/// Finds the credentials of an `Authorization` header.
pub(super) fn find_authorization(hit: Hit<'_>, found: &mut Vec<Match>) {
    let header = prefix(hit.after(), 4096);
    let rest = header.trim_start_matches(['"', '\'', '\\', ' ', '`', ']']);
    let Some(value) = rest.strip_prefix([':', '=', ',']) else { return };
    let value = value.trim_start_matches([' ', '"', '\'', '\\', '`', '>', '=']);
    // The scheme: `Bearer`, `token`, `ApiKey`.
    let scheme = &value[..value.find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(value.len())];
    let secret = match value[scheme.len()..].strip_prefix(' ') {
        Some(secret) if !scheme.is_empty() => secret.trim_start(),
        _ => value,
    };
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',');
    let whole = prefix(secret, 128);
    let whole = &whole[..whole.find(ends).unwrap_or(whole.len())];
    let token = if is_strong_password(whole) { whole } else { token_at(secret) };
    if token.len() >= 8 && is_credential(token) {
        let start = hit.end + header.len() - secret.len();
        found.push(Match { range: start..start + token.len(), kind: "bearer token", rank: 0 });
    }
}

fn is_credential(token: &str) -> bool {
    (is_random(token) || is_encoded_login(token)) && !is_placeholder(token) && !is_code(token)
}

/// Finds `Bearer …` and `Basic …` outside of a header.
pub(super) fn find_credentials(hit: Hit<'_>, found: &mut Vec<Match>) {
    let token = token_at(prefix(hit.after(), 4096));
    let is_basic = hit.text[hit.at..hit.end].eq_ignore_ascii_case("basic ");
    let is_secret =
        if is_basic { is_encoded_login(token) } else { token.len() >= 10 && is_credential(token) };
    if is_secret && !is_placeholder(token) {
        found.push(Match { range: hit.end..hit.end + token.len(), kind: "bearer token", rank: 0 });
    }
}

/// Finds the values of a `Cookie` header.
pub(super) fn find_cookies(hit: Hit<'_>, found: &mut Vec<Match>) {
    let rest = hit.after().trim_start_matches(['"', '\'', ' ', '`']);
    if let Some(list) = rest.strip_prefix([':', '=']) {
        find_cookie_list(hit, list, found);
    }
}

/// Finds the values of `curl -b 'name=value'`.
pub(super) fn find_cookie_flag(hit: Hit<'_>, found: &mut Vec<Match>) {
    if ["curl", "wget", "http"].iter().any(|client| hit.line_before().contains(client)) {
        find_cookie_list(hit, hit.after(), found);
    }
}

fn find_cookie_list(hit: Hit<'_>, list: &str, found: &mut Vec<Match>) {
    let line = prefix(list, MAX_URL);
    let line =
        &line[..find_byte(line.as_bytes(), |byte| matches!(byte, b'\n' | b'\r')).unwrap_or(line.len())];
    let mut from = hit.text.len() - list.len();
    for part in line.split(';') {
        if let Some((name, value)) = part.split_once('=') {
            let value_at = from + name.len() + 1 + usize::from(value.starts_with('"'));
            let text = value.trim_start_matches('"');
            let ends = |c: char| c.is_whitespace() || !c.is_ascii() || matches!(c, '"' | '\'' | '`' | ',');
            let value = &text[..text.find(ends).unwrap_or(text.len())];
            let name = name.trim().to_ascii_lowercase();
            let is_date = matches!(name.as_str(), "expires" | "path" | "domain");
            if value.len() >= 12
                && is_random(value)
                && !is_placeholder(value)
                && !is_name_like(value)
                && !is_date
            {
                found.push(Match { range: value_at..value_at + value.len(), kind: "cookie", rank: 0 });
            }
        }
        from += part.len() + 1;
    }
}
