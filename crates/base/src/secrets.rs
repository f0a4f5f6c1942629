//! Masks keys, tokens and passwords in a text before the text is stored.
//!
//! Written by hand instead of with regular expressions, because this runs in hooks. Each pattern carries an
//! example, and each example is a test.

use std::borrow::Cow;
use std::ops::Range;

/// One kind of secret.
struct Pattern {
    name: &'static str,
    kind: PatternKind,
    /// Example for the test. Split with `concat!`, so that secret scanners do not report this file.
    #[cfg_attr(not(test), expect(dead_code))]
    example: &'static str,
}

enum PatternKind {
    /// A unique prefix followed by at least `min` characters.
    Token { prefix: &'static str, min: usize },
    /// Three parts separated by dots.
    Jwt,
    /// A PEM block.
    PrivateKey,
    /// `://user:password@`
    UrlPassword,
    /// `Bearer …` or `Basic …`, as in an `Authorization` header.
    HttpCredentials,
    /// `Cookie: session=…`
    Cookie,
    /// `passphrase = "several words"`
    Passphrase,
    /// `mysql -pSECRET`
    Flag,
    /// `password = …`, `密码：…`
    Assignment,
}

const fn token(name: &'static str, prefix: &'static str, min: usize, example: &'static str) -> Pattern {
    Pattern { name, kind: PatternKind::Token { prefix, min }, example }
}

/// Invariant: of two prefixes that start alike, the longer comes first.
const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "private key",
        kind: PatternKind::PrivateKey,
        example: concat!(
            "-----BEGIN RSA PRIVATE",
            " KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE",
            " KEY-----"
        ),
    },
    token("Anthropic key", "sk-ant-", 20, concat!("sk-", "ant-api03-AbCdEfGhIjKlMnOpQrSt")),
    token("OpenAI key", "sk-proj-", 20, concat!("sk-", "proj-AbCdEfGhIjKl12OpQrStUv")),
    token("API key", "sk-", 32, concat!("sk", "-AbCdEfGhIjKlMnOpQrStUvWxYz012345")),
    token("Stripe key", "sk_live_", 16, concat!("sk_", "live_AbCdEfGhIjKl12Op")),
    token("Stripe key", "rk_live_", 16, concat!("rk_", "live_AbCdEfGhIjKl12Op")),
    token("GitHub token", "github_pat_", 30, concat!("github", "_pat_11ABCDEFG0123456789abcdefghijklm")),
    token("GitHub token", "ghp_", 30, concat!("gh", "p_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("GitHub token", "gho_", 30, concat!("gh", "o_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("GitHub token", "ghu_", 30, concat!("gh", "u_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("GitHub token", "ghs_", 30, concat!("gh", "s_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("GitLab token", "glpat-", 16, concat!("gl", "pat-AbCdEfGhIjKl12OpQrSt")),
    token("Slack token", "xoxb-", 16, concat!("xo", "xb-123456789012-AbCdEfGhIjKl")),
    token("Slack token", "xoxp-", 16, concat!("xo", "xp-123456789012-AbCdEfGhIjKl")),
    token("Slack token", "xapp-", 16, concat!("xa", "pp-1-A0123456789-AbCdEf")),
    token("npm token", "npm_", 30, concat!("np", "m_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("PyPI token", "pypi-", 30, concat!("py", "pi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAw")),
    token("Hugging Face token", "hf_", 30, concat!("h", "f_AbCdEfGhIjKlMnOpQrStUvWxYz012345")),
    token("Google API key", "AIza", 30, concat!("AI", "zaSyAbCdEfGhIjKlMnOpQrStUvWxYz0123456")),
    token("Google OAuth token", "ya29.", 20, concat!("ya", "29.a0AfH6SMBAbCdEfGhIjKlMn")),
    token("AWS key id", "AKIA", 16, concat!("AK", "IAIOSFODNN7EXAMPLE")),
    token("AWS key id", "ASIA", 16, concat!("AS", "IAIOSFODNN7EXAMPLE")),
    token("Aliyun key id", "LTAI", 12, concat!("LT", "AI5tAbCdEfGhIjKlMn")),
    token(
        "SendGrid key",
        "SG.",
        40,
        concat!("S", "G.AbCdEfGhIjKlMnOpQrStUv.AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"),
    ),
    token(
        "DigitalOcean token",
        "dop_v1_",
        40,
        concat!("dop", "_v1_0123456789abcdef0123456789abcdef0123456789ab"),
    ),
    token("GitHub token", "ghr_", 30, concat!("gh", "r_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("Groq key", "gsk_", 30, concat!("gs", "k_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("xAI key", "xai-", 30, concat!("xa", "i-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")),
    token("GitLab token", "glrt-", 16, concat!("gl", "rt-AbCdEfGhIjKlMnOp1234")),
    token("Stripe key", "sk_test_", 16, concat!("sk_", "test_AbCdEfGhIjKl1234")),
    token("Stripe key", "rk_test_", 16, concat!("rk_", "test_AbCdEfGhIjKl1234")),
    token("Stripe key", "whsec_", 16, concat!("wh", "sec_AbCdEfGhIjKl1234")),
    token("Google OAuth secret", "GOCSPX-", 16, concat!("GOC", "SPX-AbCdEfGhIjKl1234")),
    token("Shopify token", "shpat_", 16, concat!("sh", "pat_0123456789abcdef0123")),
    token("Docker token", "dckr_pat_", 16, concat!("dckr", "_pat_AbCdEfGhIjKl1234")),
    token("Vault token", "hvs.", 16, concat!("h", "vs.AbCdEfGhIjKl1234AbCd")),
    token("Linear key", "lin_api_", 16, concat!("lin", "_api_AbCdEfGhIjKl1234")),
    token("Notion token", "ntn_", 20, concat!("n", "tn_AbCdEfGhIjKl1234AbCd")),
    token("Figma token", "figd_", 16, concat!("fi", "gd_AbCdEfGhIjKl1234")),
    token("Tailscale key", "tskey-", 16, concat!("ts", "key-auth-AbCdEfGh1234")),
    Pattern {
        name: "JSON web token",
        kind: PatternKind::Jwt,
        example: concat!("ey", "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"),
    },
    Pattern {
        name: "password in a URL",
        kind: PatternKind::UrlPassword,
        example: "postgres://app:s3cr3t-pw@db.internal/x",
    },
    Pattern {
        name: "bearer token",
        kind: PatternKind::HttpCredentials,
        example: "Authorization: Bearer 0123456789abcdefABCDEF",
    },
    Pattern {
        name: "cookie",
        kind: PatternKind::Cookie,
        example: "Cookie: theme=dark; session=0a1b2c3d4e5f6a7b",
    },
    Pattern {
        name: "passphrase",
        kind: PatternKind::Passphrase,
        example: "passphrase: \"correct horse battery staple\"",
    },
    Pattern { name: "password", kind: PatternKind::Flag, example: "mysql -u app -phunter2x shop" },
    Pattern { name: "password", kind: PatternKind::Assignment, example: "DB_PASSWORD=hunter2!x" },
];

/// Names of secret values, compared with the end of the text before `=` or `:`.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passcode",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "secret_key",
    "secretkey",
    "private_key",
    "privatekey",
    "client_secret",
    "credential",
    "credentials",
    "密码",
    "口令",
    "密钥",
    "令牌",
];

const MARK: &str = "[masked: ";

/// Maximum number of passes. A match can hide another secret, which the next pass finds.
const MAX_PASSES: usize = 8;

/// Returns the text with its secrets masked, and the names of the masked patterns.
pub fn mask(text: &str) -> (Cow<'_, str>, Vec<&'static str>) {
    let (mut masked, mut names) = mask_once(text);
    if names.is_empty() {
        return (masked, names);
    }
    for _ in 1..MAX_PASSES {
        let (again, more) = mask_once(&masked);
        if more.is_empty() {
            break;
        }
        masked = Cow::Owned(again.into_owned());
        names.extend(more);
    }
    (masked, names)
}

fn mask_once(text: &str) -> (Cow<'_, str>, Vec<&'static str>) {
    let mut found: Vec<(Range<usize>, &'static str)> = Vec::new();
    for pattern in PATTERNS {
        for range in find_all(text, pattern) {
            if !found.iter().any(|(known, _)| known.start < range.end && range.start < known.end) {
                found.push((range, pattern.name));
            }
        }
    }
    if found.is_empty() {
        return (Cow::Borrowed(text), Vec::new());
    }
    found.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (range, name) in &found {
        out.push_str(&text[from..range.start]);
        out.push_str(MARK);
        out.push_str(name);
        out.push(']');
        from = range.end;
    }
    out.push_str(&text[from..]);
    (Cow::Owned(out), found.into_iter().map(|(_, name)| name).collect())
}

fn find_all(text: &str, pattern: &Pattern) -> Vec<Range<usize>> {
    match &pattern.kind {
        PatternKind::Token { prefix, min } => find_tokens(text, prefix, *min),
        PatternKind::Jwt => {
            find_tokens(text, "eyJ", 30).into_iter().filter(|range| is_jwt(&text[range.clone()])).collect()
        }
        PatternKind::PrivateKey => find_private_keys(text),
        PatternKind::UrlPassword => find_url_passwords(text),
        PatternKind::HttpCredentials => find_http_credentials(text),
        PatternKind::Cookie => find_cookies(text),
        PatternKind::Passphrase => find_passphrases(text),
        PatternKind::Flag => find_password_flags(text),
        PatternKind::Assignment => find_assigned(text),
    }
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '=')
}

/// Returns the end of a token. Punctuation after it (`.`, `-`, `/`, `=`) is not part of it.
fn token_end(text: &str, from: usize) -> usize {
    let len: usize = text[from..].chars().take_while(|c| is_token_char(*c)).map(char::len_utf8).sum();
    from + text[from..from + len].trim_end_matches(['.', '-', '/', '=']).len().max(usize::from(len > 0))
}

fn find_tokens(text: &str, prefix: &str, min: usize) -> Vec<Range<usize>> {
    let starts = text.match_indices(prefix).filter(|(at, _)| {
        // Inside a longer word the prefix means something else.
        !text[..*at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    let ranges = starts.map(|(at, _)| at..token_end(text, at + prefix.len()).max(at + prefix.len()));
    // An ordinary name can start like a key. Requires a digit, which nearly every key contains and most names do not.
    let has_digit = |range: &Range<usize>| {
        text[range.start + prefix.len()..range.end].bytes().any(|byte| byte.is_ascii_digit())
    };
    ranges.filter(|range| range.len() >= prefix.len() + min && has_digit(range)).collect()
}

fn is_jwt(token: &str) -> bool {
    token.split('.').filter(|part| part.len() >= 4).count() == 3
}

fn find_private_keys(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("-----BEGIN ").map(|at| from + at) {
        let head = text[at + 11..].find("-----").map(|end| &text[at + 11..at + 11 + end]);
        from = at + 11;
        if !head.is_some_and(|head| head.len() < 60 && head.contains("PRIVATE KEY")) {
            continue;
        }
        // A truncated key is secret to the end of the text.
        let end = text[from..].find("-----END ").and_then(|end| {
            let tail = from + end + 9;
            text[tail..].find("-----").map(|dashes| tail + dashes + 5)
        });
        let end = end.unwrap_or(text.len());
        found.push(at..end);
        from = end;
    }
    found
}

fn find_url_passwords(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let host_end =
            rest.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '<' | '>' | '`'));
        let authority = &rest[..host_end.unwrap_or(rest.len())];
        if let Some((login, _)) = authority.rsplit_once('@')
            && let Some((user, password)) = login.split_once(':')
            && !password.is_empty()
            && !is_placeholder(password)
        {
            let start = at + 3 + user.len() + 1;
            found.push(start..start + password.len());
        }
    }
    found
}

fn find_http_credentials(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let starts = ["bearer ", "basic "].iter().flat_map(|word| {
        let places: Vec<usize> = lower.match_indices(word).map(|(at, _)| at + word.len()).collect();
        places
    });
    let ranges = starts.map(|start| start..token_end(text, start));
    ranges.filter(|range| range.len() >= 16 && looks_random(&text[range.clone()])).collect()
}

fn find_cookies(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, word) in lower.match_indices("cookie:") {
        let start = at + word.len();
        let line = &text[start..start + text[start..].find(['\n', '\r']).unwrap_or(text.len() - start)];
        let mut from = start;
        for part in line.split(';') {
            if let Some((name, value)) = part.split_once('=') {
                let value_at = from + name.len() + 1;
                let end = token_end(text, value_at).min(from + part.len());
                if end - value_at >= 12 && value.len() >= 12 && looks_random(&text[value_at..end]) {
                    found.push(value_at..end);
                }
            }
            from += part.len() + 1;
        }
    }
    found
}

/// Finds quoted passphrases of several words. Only for this name: a quoted text after "password" may be a
/// sentence about passwords.
fn find_passphrases(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, word) in lower.match_indices("passphrase") {
        let rest = text[at + word.len()..].trim_start_matches(['"', '\'', ' ']);
        let Some(rest) = rest.strip_prefix([':', '=']) else { continue };
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else { continue };
        let start = text.len() - rest.len() + 1;
        let Some(len) = text[start..].find(quote) else { continue };
        let value = &text[start..start + len];
        if value.split_whitespace().count() >= 3 && !value.contains('\n') && !is_placeholder(value) {
            found.push(start..start + len);
        }
    }
    found
}

/// Finds `-pSECRET`: the MySQL and MariaDB clients take a password without a space.
fn find_password_flags(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, flag) in text.match_indices(" -p") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let start = at + flag.len();
        let end = text[start..].find(char::is_whitespace).map_or(text.len(), |len| start + len);
        let value = &text[start..end];
        let is_client = ["mysql", "mariadb"].iter().any(|client| line.contains(client));
        if is_client && value.len() >= 6 && looks_random(value) && !is_placeholder(value) {
            found.push(start..end);
        }
    }
    found
}

fn find_assigned(text: &str) -> Vec<Range<usize>> {
    let signs = text.char_indices().filter(|(_, c)| matches!(c, '=' | ':' | '：' | '是' | '为'));
    let mut places: Vec<(usize, usize, bool)> =
        signs.map(|(at, sign)| (at, at + sign.len_utf8(), matches!(sign, '是' | '为'))).collect();
    // `the password is …`, `--password …`
    places.extend(text.match_indices(" is ").map(|(at, sign)| (at, at + sign.len(), false)));
    places.extend(
        text.match_indices("--password ").map(|(at, sign)| (at + sign.len() - 1, at + sign.len(), false)),
    );
    let mut found = Vec::new();
    for (at, behind, is_han) in places {
        let name = text[..at].trim_end_matches([' ', '"', '\'', '`', ')', ']']);
        let matched = SECRET_NAMES.iter().find(|known| ends_with_ignore_case(name, known));
        let Some(matched) = matched.filter(|known| !is_han || !known.is_ascii()) else { continue };
        // `[masked: bearer token]: …` ends in a known name, but it is our own mark.
        if name.rfind(MARK).is_some_and(|mark| !name[mark..].contains(']')) {
            continue;
        }
        let skip = |c: &char| matches!(c, ' ' | '"' | '\'' | '`' | '=' | ':' | '>');
        let skipped: usize = text[behind..].chars().take_while(skip).map(char::len_utf8).sum();
        let start = behind + skipped;
        let end_at = |c: char| {
            c.is_whitespace()
                || matches!(c, '"' | '\'' | '`' | ',' | ';' | ')' | '，' | '。' | '；' | '）' | '<')
        };
        let end = text[start..].find(end_at).map_or(text.len(), |len| start + len);
        let value = &text[start..end];
        let shortest = if matched.is_ascii() { 6 } else { 4 };
        // `PGPASSWORD=correcthorse` contains no digit, but cannot be anything else than a password.
        let is_bare = skipped == 0
            && text[at..].starts_with('=')
            && value.len() >= 8
            && matched.starts_with("pass")
            && is_word(value);
        let is_secret = is_bare || (value.chars().count() >= shortest && looks_random(value));
        if is_secret && !is_placeholder(value) {
            found.push(start..end);
        }
    }
    found
}

fn is_word(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn ends_with_ignore_case(text: &str, end: &str) -> bool {
    text.len() >= end.len()
        && text.get(text.len() - end.len()..).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// Returns whether a value mixes letters with digits or signs, as a secret does. `password: required` is prose,
/// `token: OAuth2` a name, `pwd=/home/dev` a path.
fn looks_random(value: &str) -> bool {
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_sign = value.contains(['!', '@', '#', '$', '%', '^', '&', '*', '~', '+', '?', '=']);
    let is_code = value.contains(['(', ')', '[', ']', '{', '}', '<', '>', '|'])
        || value.contains("::")
        || value.starts_with(['/', '.']);
    // `SHA256`, `OAuth2.0`, `RSA2048`
    let tail = value.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_name = value.starts_with(|c: char| c.is_ascii_uppercase())
        && tail.len() < value.len()
        && tail.len() <= 6
        && tail.bytes().all(|byte| byte.is_ascii_alphabetic());
    has_letter && (has_digit || has_sign) && value.is_ascii() && !is_code && !is_name
}

/// Returns whether a value is a placeholder for a secret.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    value.starts_with(['<', '{', '%', '[', '*'])
        || value
            .strip_prefix('$')
            .is_some_and(|name| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
        || value.contains("${")
        || value.contains("(")
        || ["process.env", "os.environ", "env.", "xxx", "your"].iter().any(|start| lower.starts_with(start))
        || value.chars().all(|c| c == 'x' || c == '*' || c == '.')
}

#[cfg(test)]
mod tests;
