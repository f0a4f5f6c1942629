use super::*;

#[test]
fn mask_finds_example_of_every_pattern() {
    for pattern in PATTERNS {
        let text = format!("看 {} ok", pattern.example);
        let (masked, names) = mask(&text);
        assert_eq!(names, [pattern.name], "{}: {masked}", pattern.example);
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
    let two = format!("{} and {}", PATTERNS[1].example, PATTERNS[7].example);
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
