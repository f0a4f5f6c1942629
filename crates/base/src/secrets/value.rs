//! Decides whether a value looks like a secret, or like a name, a placeholder or code.

/// Names of algorithms, formats and types, without the number at their end.
const ALGORITHMS: &[&str] = &[
    "sha", "md", "rsa", "dsa", "ecdsa", "ed", "ecdh", "oauth", "oidc", "jwt", "jwe", "jws", "rs", "hs", "es",
    "ps", "aes", "des", "tls", "ssl", "mtls", "bcrypt", "argon", "argon2id", "argon2i", "pbkdf", "scrypt",
    "base", "utf", "http", "https", "saml", "hmac", "pkcs", "ntlm", "ntlmv", "wpa", "gcm", "cbc", "sm",
    "blake", "blake2b", "crc", "ascii", "varchar", "char", "int", "uint", "uuid", "uuidv", "ulid",
    "kerberos", "ldap", "ldapv", "fido", "v", "ipv", "hex", "totp", "hotp", "x", "i", "u", "f", "p", "h",
    "s", "str", "string", "pem", "der", "k",
];

/// Words that stand for a value that is not there, with or without a number at their end.
const EMPTY_WORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "none",
    "nil",
    "undefined",
    "yes",
    "no",
    "on",
    "off",
    "empty",
    "default",
    "todo",
    "tbd",
    "foo",
    "bar",
    "baz",
    "foobar",
    "na",
    "hidden",
    "secret",
    "password",
    "passwd",
    "token",
    "value",
    "string",
];

/// Starts of placeholders.
const PLACEHOLDERS: &[&str] = &[
    "your",
    "change",
    "replace",
    "redacted",
    "masked",
    "placeholder",
    "example",
    "dummy",
    "insert",
    "enter-",
    "enter_",
    "todo",
    "fixme",
    "xxx",
    "some-",
    "some_",
    "my-",
    "my_",
    "the-",
    "the_",
    "put-",
    "put_",
    "fake",
    "sample",
    "process.env",
    "os.environ",
    "os.getenv",
    "env.",
    "env:",
    "env(",
    "import.meta",
    "vault:",
    "secretref",
    "op://",
    "ssm:",
    "arn:",
    "keyring:",
    "file:",
    "...",
    "not-a-",
    "not_a_",
    "notreal",
    "insecure-",
];

/// Roots of an expression such as `config.db.password`.
const ROOTS: &[&str] = &[
    "process", "os", "env", "config", "cfg", "conf", "settings", "self", "this", "ctx", "context", "row",
    "req", "request", "res", "response", "props", "state", "user", "data", "args", "opts", "options",
    "params", "body", "form", "event", "input", "secrets", "vars", "var", "local", "module", "app", "db",
    "values", "account", "auth", "model", "obj", "item", "record", "payload", "session", "client", "crypto",
    "base64", "std",
];

/// Ends of file names.
const EXTENSIONS: &[&str] = &[
    ".py", ".rs", ".ts", ".tsx", ".js", ".jsx", ".md", ".pem", ".key", ".txt", ".json", ".yaml", ".yml",
    ".toml", ".html", ".go", ".sh", ".env", ".crt", ".cer", ".cfg", ".conf", ".lock", ".java", ".rb", ".php",
    ".vue", ".css", ".gpg", ".asc", ".p12", ".pfx", ".jks", ".snap", ".sql", ".csv", ".log", ".xml", ".c",
    ".h", ".cpp", ".ini",
];

pub(super) fn has_letter(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

pub(super) fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

pub(super) fn is_mixed_case(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_uppercase()) && value.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Returns whether a value contains a sign that passwords contain and names do not. At the start or the end of a
/// value it may belong to the sentence.
fn has_sign(value: &str) -> bool {
    value
        .trim_start_matches(['@', '#', '$', '~'])
        .trim_end_matches(['!', '?'])
        .contains(['!', '@', '#', '$', '%', '^', '&', '*', '~'])
}

/// Returns whether a value can be a password: letters with digits or signs.
pub(super) fn is_password(value: &str) -> bool {
    value.is_ascii()
        && has_letter(value)
        && (has_digit(value) || (has_sign(value) && !is_email(value)))
        && !is_algorithm(value)
        && !is_measure(value)
        && !is_reference(value)
}

/// Returns whether a value can be nothing else than a password: letters, digits and a sign.
pub(super) fn is_strong_password(value: &str) -> bool {
    value.len() >= 6
        && has_digit(value)
        && value.contains(['!', '@', '#', '$', '%', '^', '&', '*', '~'])
        && !value.contains(['/', '(', '[', '{', '='])
        && is_password(value)
        && !is_email(value)
}

/// Returns whether a value was generated: letters and digits that form no words.
pub(super) fn is_random(value: &str) -> bool {
    value.is_ascii()
        && has_letter(value)
        && (has_digit(value) || has_random_case(value))
        && !is_name_like(value)
        && !is_digest(value)
        && !is_measure(value)
        && !is_reference(value)
}

/// Returns whether a value consists of words and numbers, such as `linux-node-18`, `v1.2.3`, `AccessKey2`.
pub(super) fn is_name_like(value: &str) -> bool {
    (value.split(|c: char| !c.is_ascii_alphanumeric()).all(is_word_with_number) && !has_random_case(value))
        || is_constant(value)
}

/// Returns whether upper and lower case change as often as in a generated value. Words change rarely, even several
/// words in camel case: they have more lower than upper case letters.
fn has_random_case(value: &str) -> bool {
    let letters = || value.bytes().filter(u8::is_ascii_alphabetic);
    let len = letters().count();
    let upper = letters().filter(u8::is_ascii_uppercase).count();
    let changes =
        letters().zip(letters().skip(1)).filter(|(a, b)| a.is_ascii_uppercase() != b.is_ascii_uppercase());
    value.len() >= 16 && len >= 12 && upper * 3 > len + 2 && changes.count() * 3 >= len
}

/// Returns whether a value is written as a constant: `X509_USAGE_FLAGS`.
fn is_constant(value: &str) -> bool {
    value.contains('_')
        && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_word_with_number(part: &str) -> bool {
    let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = part.len() - word.len();
    if word.is_empty() {
        return true;
    }
    // `24h`, `3d`
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    if unit.len() < word.len() {
        return digits == 0 && word.len() - unit.len() <= 3 && unit.len() <= 5 && !has_digit(unit);
    }
    digits <= 4 && !has_digit(word) && is_word(word)
}

/// Returns whether letters are written as a word, a constant or in camel case.
fn is_word(letters: &str) -> bool {
    let upper = letters.bytes().filter(u8::is_ascii_uppercase).count();
    upper == letters.len() || upper * 3 <= letters.len() + 2
}

/// Returns whether a value is the checksum of a file.
fn is_digest(value: &str) -> bool {
    let lower = lower_prefix(value);
    ["sha1-", "sha256-", "sha384-", "sha512-", "sha1:", "sha256:", "sha512:", "md5:", "blake3:"]
        .iter()
        .any(|start| lower.starts_with(start))
}

/// Returns the first 16 bytes of a value in lower case.
fn lower_prefix(value: &str) -> String {
    crate::text::prefix(value, 16).to_ascii_lowercase()
}

fn is_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => matches!(byte, b'-' | b'/'),
            _ => byte.is_ascii_digit(),
        })
}

fn is_email(value: &str) -> bool {
    value.split_once('@').is_some_and(|(user, host)| {
        user.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+'))
            && host.contains('.')
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
    })
}

/// Returns whether a value starts with the name of an algorithm, a format or a version: `SHA256`, `v2-only`.
fn is_algorithm(value: &str) -> bool {
    let first = value.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let word = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = first.len() - word.len();
    // A single letter is a name only with a number: `v2`, `x509`.
    (word.len() > 1 || digits > 0)
        && digits <= 5
        && ALGORITHMS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Returns whether a value is a measure, a number or a date: `30d`, `8-char`, `12chars`, `0x8004`.
fn is_measure(value: &str) -> bool {
    let number = value.strip_prefix("0x").filter(|number| number.len() <= 16);
    if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return true;
    }
    let rest = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = value.len() - rest.len();
    let unit = rest.trim_start_matches(['-', '+', '~']);
    let is_unit = !unit.is_empty() && unit.bytes().all(|byte| byte.is_ascii_lowercase());
    ((1..=2).contains(&digits) && is_unit) || is_date(value)
}

/// Returns whether a value is an expression, a path, an address or the name of a file.
pub(super) fn is_reference(value: &str) -> bool {
    let value = value.trim_end_matches(['!', '?']);
    // Base64 may start with a slash.
    let is_path = value.starts_with('.')
        || (value.starts_with('/') && (value.len() < 24 || is_name_like(value)))
        || value.starts_with("~/")
        || value[1.min(value.len())..].starts_with(":\\");
    let is_identifier = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_member = value.contains('.') && value.split('.').all(is_identifier) && {
        let lower = value.to_ascii_lowercase();
        let (root, member) = lower.split_once('.').unwrap_or_default();
        ROOTS.contains(&root)
            || ["pass", "token", "secret", "key", "cred"].iter().any(|stem| member.contains(stem))
    };
    is_path
        || is_member
        || value.contains("::")
        || value.contains("://")
        || value.contains("->")
        || value.rfind('.').is_some_and(|dot| {
            let end = &value[dot..];
            EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(end))
        })
}

/// Returns whether an unquoted value is code.
pub(super) fn is_code(value: &str) -> bool {
    value.contains(['(', ')', '[', ']', '{', '}', '<', '>', '|'])
}

/// Returns whether a value is a placeholder for a secret.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = lower_prefix(value);
    let word = lower.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let is_tag = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_variable = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_repeated = value.len() >= 3
        && !value.as_bytes()[0].is_ascii_digit()
        && value.bytes().all(|byte| byte == value.as_bytes()[0]);
    value.starts_with(['<', '{', '%', '[', '*'])
        || value.strip_prefix('!').is_some_and(is_tag)
        || value.strip_prefix('$').is_some_and(is_variable)
        || ["${", "$(", "{{", "..."].iter().any(|part| value.contains(part))
        || value.as_bytes().windows(4).any(|part| part.eq_ignore_ascii_case(b"xxxx"))
        || PLACEHOLDERS.iter().any(|start| lower.starts_with(start))
        || (value.len() - word.len() <= 1 && EMPTY_WORDS.contains(&word))
        || is_repeated
}

/// Returns whether a value is base64 of `user:password`.
pub(super) fn is_encoded_login(value: &str) -> bool {
    let mut decoded = Vec::with_capacity(value.len());
    let (mut bits, mut count) = (0u32, 0);
    for byte in value.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) as u8);
        }
    }
    decoded.contains(&b':') && decoded.iter().all(|byte| (0x20..0x7f).contains(byte))
}
