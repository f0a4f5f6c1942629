use super::*;

/// Values of the examples. Tokens are put together in the tests, so that secret scanners do not report this file.
const KEY: &str = "Zk4Rt8Lw2Qx6Vn0Bm3Jc7Hd1Sf5Gp9Ya";
const HEX: &str = "9f8e7d6c5b4a39281706f5e4d3c2b1a0";
const UUID: &str = "01234567-89ab-cdef-0123-456789abcdef";

/// Returns an example with its values: `{key}`, `{hex}`, `{uuid}`.
fn fill(text: &str) -> String {
    text.replace("{key}", KEY).replace("{hex}", HEX).replace("{uuid}", UUID)
}

#[test]
fn mask_token_of_every_prefix_is_found() {
    for token in token::TOKENS {
        let value = if token.alphabet == token::Alphabet::Hex { HEX } else { KEY };
        let example = format!("{}{}", token.prefix, &value.repeat(3)[..token.min]);
        let text = format!("看 {example} ok");
        let (masked, kinds) = mask(&text);
        assert_eq!(kinds, [token.kind], "{example}: {masked}");
        assert!(masked.starts_with("看 ") && masked.ends_with(" ok"), "{masked}");
        assert_eq!(mask(&masked).1, [""; 0], "masking again finds nothing: {masked}");
    }
}

#[test]
fn mask_example_of_every_kind_is_found() {
    let examples = [
        (
            "private key",
            concat!(
                "-----BEGIN RSA PRIVATE",
                " KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE",
                " KEY-----"
            ),
        ),
        (
            "private key",
            concat!(
                "---- BEGIN SSH2 ENCRYPTED PRIVATE",
                " KEY ----\n{key}\n---- END SSH2 ENCRYPTED PRIVATE",
                " KEY ----"
            ),
        ),
        ("private key", "PuTTY-User-Key-File-3: x\nPrivate-Lines: 1\n{key}\nPrivate-MAC: 1"),
        ("JSON web token", concat!("ey", "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N")),
        (
            "JSON web token",
            concat!("ey", "JhbGciOiJSU0EifQ.OKOawDo13gRp2oja.48V1_ALb6US04U3b.5eym8TW_c8SuK0.XFBoMYUZodet"),
        ),
        ("Twilio key", "AC{hex}"),
        ("Mailchimp key", "{hex}-us12"),
        ("Azure secret", "abc8Q~{key}"),
        ("Telegram token", "123456789:AAE{key}"),
        ("Discord token", concat!("MTk4NjIyNDgzNDcx", "OTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs")),
        ("Airtable token", "patZk4Rt8Lw2Qx6Vn.{hex}{hex}"),
        ("password in a URL", "postgres://app:s3cr3t-pw@db.internal/x"),
        ("bearer token", "Authorization: Bearer 0123456789abcdefABCDEF"),
        ("cookie", "Cookie: theme=dark; session=0a1b2c3d4e5f6a7b"),
        ("webhook", "https://hooks.example.com/services/T0/B0/{key}"),
        ("passphrase", "passphrase: \"correct horse battery staple\""),
        ("password", "mysql -u app -phunter2x shop"),
        ("password", "DB_PASSWORD=hunter2!x"),
    ];
    for (kind, example) in examples {
        let text = format!("看 {} ok", fill(example));
        let (masked, kinds) = mask(&text);
        assert_eq!(kinds, [kind], "{text}: {masked}");
        assert!(masked.starts_with("看 ") && masked.ends_with(" ok"), "{masked}");
        assert_eq!(mask(&masked).1, [""; 0], "masking again finds nothing: {masked}");
    }
}

#[test]
fn mask_keeps_text_around_secret() {
    let cases = [
        ("postgres://app:s3cr3t-pw@db/x", "postgres://app:[masked: password in a URL]@db/x"),
        ("DB_PASSWORD='hunter2!x' next", "DB_PASSWORD='[masked: password]' next"),
        ("\"apiKey\": \"0a1b2c3d4e\",", "\"apiKey\": \"[masked: password]\","),
        ("数据库密码是 hunter2，别忘了", "数据库密码是 [masked: password]，别忘了"),
        ("密码：abc123。", "密码：[masked: password]。"),
        ("the password is Tr0ub4dor&3 now", "the password is [masked: password] now"),
        ("PGPASSWORD=correcthorse psql", "PGPASSWORD=[masked: password] psql"),
        ("run --password S3cretPass1 now", "run --password [masked: password] now"),
        ("Set-Cookie: sid=0a1b2c3d4e5f6a7b; Path=/", "Set-Cookie: sid=[masked: cookie]; Path=/"),
        ("mysql -phunter2x db", "mysql -p[masked: password] db"),
        ("\"passphrase\": 'four words in here'", "\"passphrase\": '[masked: passphrase]'"),
        ("password => 'S3cretPass1'", "password => '[masked: password]'"),
    ];
    for (text, want) in cases {
        assert_eq!(mask(text).0, want);
    }
    let two = format!("{}{KEY} and {}{KEY}", "sk-ant-", "ghp_");
    assert_eq!(mask(&two).1, ["Anthropic key", "GitHub token"]);
    let cut = concat!("x -----BEGIN PRIVATE", " KEY-----\nMIIE");
    assert_eq!(mask(cut).0, "x [masked: private key]");
}

#[test]
fn mask_ordinary_text_is_unchanged() {
    for text in [
        "",
        "password: required",
        "password is stored hashed",
        "token = get_token()",
        "API_KEY=${API_KEY}",
        "secret: process.env.SECRET1",
        "api_key: <your key 1>",
        "the token 是什么？",
        "密码是必填项",
        "https://example.org:8080/a@b",
        "sk-1 ask-me-something-long-enough-to-be-a-key-000",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "使用 JWT 认证，密钥从环境变量读取",
        "bearer of good news and of bad ones",
        "Use token: OAuth2",
        "let token: AccessToken = x;",
        "token: Option<String>",
        "pwd=/home/dev/app",
        "max_token: 4096000",
        "api_key: Settings.API_KEY",
        "secret: secretKeyRef",
        "invalid token: Unexpected",
        "密码为 SHA256 加盐存储",
        "密码：至少8位",
        "刷新令牌：7天有效",
        "sk-button-primary-large-rounded-shadow",
        "npm_config_registry_url_something_long_x",
        "export PASSWORD=$DB_PASSWORD",
        "Cookie: theme=dark; lang=zh-CN",
        "cookie: a jar of them",
        "mysql -P3306 -h db1",
        "ls -part2x",
        "passphrase: \"required\"",
        "a passphrase: the longer the better",
    ] {
        assert_eq!(mask(text).0, text);
    }
}
