//! Decides whether an identifier names a secret: `DB_PASS` and `AccountKey` do, `password_hash` and `max_tokens`
//! do not.

/// Parts of names, in lower case. Each starts a search.
pub(super) const STEMS: &[&str] = &[
    "pass",
    "pwd",
    "pw:",
    "pw=",
    "pw ",
    "psw",
    "psk",
    "secret",
    "token",
    "key",
    "cred",
    "auth",
    "salt",
    "sig=",
    "signature",
    "otp",
    "pin",
    "code",
    "sessid",
    "jsessionid",
    "connect.sid",
    "sk:",
    "sk=",
    "ak:",
    "ak=",
    "sk：",
    "jwt",
    "密码",
    "密碼",
    "口令",
    "密钥",
    "密鑰",
    "金鑰",
    "秘钥",
    "密匙",
    "私钥",
    "令牌",
    "凭证",
    "凭据",
    "憑證",
    "暗号",
    "验证码",
    "驗證碼",
    "校验码",
    "动态码",
    "授权码",
    "提取码",
    "访问码",
    "取件码",
];

/// What kind of value a name announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Chosen by a person: short, may look like a word.
    Password,
    /// Generated, at least `min` characters.
    Key { min: usize },
    /// A few digits: a verification code or a PIN.
    Code,
}

const PASSWORDS: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "pw",
    "psw",
    "psk",
    "passwort",
    "pword",
    "userpw",
    "rootpw",
    "adminpw",
    "dbpw",
    "bindpw",
];

const PASSWORD_ENDS: &[&str] = &["password", "passwd", "passphrase", "passcode", "pwd", "pass", "passwort"];

/// Words that end like a name of a password.
const NOT_PASSWORDS: &[&str] =
    &["bypass", "compass", "trespass", "surpass", "encompass", "overpass", "underpass"];

const KEYS: &[&str] = &[
    "secret",
    "secrets",
    "token",
    "tokens",
    "credential",
    "credentials",
    "cred",
    "creds",
    "salt",
    "signature",
    "sig",
    "jwt",
    "sessid",
    "jsessionid",
    "phpsessid",
];

const KEY_ENDS: &[&str] = &[
    "secret",
    "token",
    "apikey",
    "apikeys",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "appkey",
    "accountkey",
    "masterkey",
    "sharedkey",
    "encryptionkey",
    "signingkey",
    "sshkey",
    "licensekey",
    "sessid",
];

/// Words before `key` that make it a secret.
const KEY_QUALIFIERS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "account",
    "encryption",
    "encrypt",
    "decryption",
    "signing",
    "sign",
    "master",
    "shared",
    "storage",
    "auth",
    "app",
    "application",
    "admin",
    "service",
    "license",
    "client",
    "jwt",
    "hmac",
    "crypto",
    "cipher",
    "aes",
    "ssh",
    "deploy",
    "webhook",
    "subscription",
    "instrumentation",
    "consumer",
    "function",
    "sas",
    "root",
    "seed",
    "recovery",
    "server",
    "user",
    "cookie",
    "session",
    "data",
    "fernet",
    "team",
    "project",
    "bot",
    "authentication",
    "authorization",
    "security",
    "symmetric",
    "preshared",
    "device",
    "machine",
    "wallet",
];

/// Words of names that are not secret, however random the value is.
const NOT_SECRET: &[&str] = &[
    "public",
    "pub",
    "next",
    "page",
    "continuation",
    "max",
    "min",
    "num",
    "total",
    "prompt",
    "completion",
    "input",
    "output",
    "cache",
    "foreign",
    "primary",
    "sort",
    "partition",
    "idempotency",
    "dedup",
    "row",
    "object",
    "translation",
    "i18n",
    "lookup",
    "index",
    "group",
    "unique",
    "fingerprint",
    "stop",
    "eos",
    "bos",
    "pad",
    "special",
    "count",
    "reset",
    "forgot",
    "publishable",
    "site",
    "sync",
    "hot",
    "short",
    "error",
    "status",
    "exit",
    "response",
];

/// Words after the name of a secret that leave it one.
const SUFFIXES: &[&str] = &[
    "base",
    "value",
    "val",
    "data",
    "string",
    "plain",
    "raw",
    "prod",
    "production",
    "dev",
    "staging",
    "test",
    "live",
    "old",
    "new",
    "primary",
    "secondary",
    "current",
    "b64",
    "base64",
    "confirmation",
    "confirm",
    "again",
    "default",
    "clear",
    "cleartext",
    "plaintext",
    "main",
    "master",
];

/// Words before `code` that make it a secret.
const CODE_QUALIFIERS: &[&str] = &[
    "verification",
    "security",
    "sms",
    "login",
    "otp",
    "2fa",
    "mfa",
    "confirmation",
    "auth",
    "authentication",
    "access",
    "backup",
    "recovery",
    "pin",
    "unlock",
    "door",
    "invite",
    "time",
    "pairing",
];

const HAN_CODES: &[&str] = &["验证码", "驗證碼", "校验码", "动态码", "提取码", "访问码", "取件码", "暗号"];

const HAN_PASSWORDS: &[&str] = &["密码", "密碼", "口令", "授权码"];

/// Returns the class of a Chinese name, if it is one.
pub(super) fn classify_han(name: &str) -> Option<Class> {
    if HAN_PASSWORDS.contains(&name) {
        Some(Class::Password)
    } else if HAN_CODES.contains(&name) {
        Some(Class::Code)
    } else {
        Some(Class::Key { min: 8 }).filter(|_| !name.is_ascii())
    }
}

/// Returns the class of an identifier. `before` is the text before it: in `secret access key`, each word counts.
pub(super) fn classify(identifier: &str, before: &str) -> Option<Class> {
    let mut words = split_words(identifier);
    if matches!(
        words.first().map(String::as_str),
        Some("key" | "keys" | "code" | "codes" | "token" | "tokens")
    ) {
        let last = before.strip_suffix(' ').unwrap_or_default();
        let word = &last[last.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len()..];
        words.insert(0, word.to_ascii_lowercase());
    }
    let has_id = words.last().is_some_and(|word| word == "id") && words.len() > 2;
    if has_id {
        words.pop();
    }
    while words.len() > 1
        && words.last().is_some_and(|word| word.is_empty() || SUFFIXES.contains(&word.as_str()))
    {
        words.pop();
    }
    let (last, qualifiers) = words.split_last()?;
    if qualifiers.iter().any(|word| NOT_SECRET.contains(&word.as_str())) {
        return None;
    }
    let class = classify_last(last, qualifiers)?;
    match class {
        Class::Key { min } if has_id => {
            (last.contains("key") || last == "secret").then_some(Class::Key { min: min.max(16) })
        }
        _ => (!has_id).then_some(class),
    }
}

fn classify_last(last: &str, qualifiers: &[String]) -> Option<Class> {
    let qualifier = qualifiers.last().map_or("", String::as_str);
    let ends_with = |ends: &[&str]| ends.iter().any(|end| last.ends_with(end));
    match last {
        _ if NOT_PASSWORDS.contains(&last) => None,
        _ if PASSWORDS.contains(&last) || ends_with(PASSWORD_ENDS) => Some(Class::Password),
        "key" | "keys" if KEY_QUALIFIERS.contains(&qualifier) => Some(Class::Key { min: 8 }),
        "key" | "keys" if qualifiers.iter().any(|word| !word.is_empty()) => Some(Class::Key { min: 16 }),
        "key" | "sk" | "ak" => Some(Class::Key { min: 20 }),
        "auth" => Some(Class::Key { min: if qualifier.is_empty() { 16 } else { 8 } }),
        "salt" | "signature" | "sig" | "jwt" => Some(Class::Key { min: 12 }),
        "sid" if qualifier == "connect" => Some(Class::Key { min: 16 }),
        _ if KEYS.contains(&last) || ends_with(KEY_ENDS) => Some(Class::Key { min: 8 }),
        "otp" | "pin" => Some(Class::Code),
        "code" | "codes" if CODE_QUALIFIERS.contains(&qualifier) => Some(Class::Code),
        _ => None,
    }
}

/// Splits an identifier into its words in lower case, without the numbers at their ends.
fn split_words(identifier: &str) -> Vec<String> {
    let bytes = identifier.as_bytes();
    let mut words = vec![String::new()];
    for (at, byte) in bytes.iter().enumerate() {
        let is_next_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let is_camel = byte.is_ascii_uppercase()
            && at > 0
            && (bytes[at - 1].is_ascii_lowercase() || (bytes[at - 1].is_ascii_uppercase() && is_next_lower));
        if is_camel || !byte.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if byte.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    for word in &mut words {
        let len = word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if len > 0 && !matches!(word.as_str(), "b64" | "base64") {
            word.truncate(len);
        }
    }
    words.retain(|word| !word.is_empty() && !word.bytes().all(|byte| byte.is_ascii_digit()));
    words
}
