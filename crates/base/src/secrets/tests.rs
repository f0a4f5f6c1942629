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

/// Texts with a secret, by class. The secret stands in `«»`, which the test removes.
const SECRETS: &[(&str, &[&str])] = &[
    (
        "assignment",
        &[
            "DB_PASS=«hunter2x»",
            "SECRET_KEY_BASE=«{hex}{hex}»",
            "AccountName=x;AccountKey=«{key}==»;EndpointSuffix=x",
            "APP_KEY=«base64:{key}»",
            "JWT_SECRET=«mysecret123»",
            "spring.datasource.password=«Sommer2024»",
            "password = \"«corr3ct horse»\"",
            "docker run -e POSTGRES_PASSWORD=«letmein» postgres",
            "API_KEY=\\\n«{key}»",
            "password: |\n  «q1w2e3r4!»\nuser: x",
            "PASSWORD_SALT=«{key}»",
            "\"auth\": \"«{key}»\"",
            "\"private_key_id\": \"«{hex}»\"",
            "host=db password=«19840215» dbname=x",
            "Server=x;Password=«Sup3r»;Database=d",
        ],
    ),
    (
        "code and markup",
        &[
            "define('DB_PASSWORD', '«q1w2e3r4»');",
            "ds.setPassword(\"«q1w2e3r4»\");",
            "const password: string = \"«q1w2e3r4»\"",
            "BasicAuth(\"bob\", \"«q1w2e3r4»\")",
            "<password>«q1w2e3r4»</password>",
            "<add key=\"Password\" value=\"«q1w2e3r4»\"/>",
            "- name: DB_PASSWORD\n  value: «q1w2e3r4»",
            "{\"name\":\"API_TOKEN\",\"value\":\"«{key}»\"}",
            "{\\\"password\\\":\\\"«hunter2x!»\\\"}",
            "| password | «hunter2x!» |",
            "- **password**: `«q1w2e3r4»`",
            "variable \"db_password\" {\n  default = \"«q1w2e3r4»\"\n}",
        ],
    ),
    (
        "command",
        &[
            "curl -u bob:«q1w2e3r4» https://x",
            "curl --user 'bob:«letmein!»' https://x",
            "curl -b 'session=«0a1b2c3d4e5f6a7b8c9d»' https://x",
            "sshpass -p «letmein» ssh root@h",
            "docker login -u bob -p «q1w2e3r4» r.io",
            "redis-cli -a «q1w2e3r4» ping",
            "tool --token «{key}» --verbose",
            "keytool -storepass «q1w2e3r4»",
            "ENV API_TOKEN «{key}»",
            "machine x login bob password «q1w2e3r4»",
            "CREATE USER bob IDENTIFIED BY '«q1w2e3r4»';",
            "echo '«q1w2e3r4»' | docker login -u bob --password-stdin",
            "db.internal:5432:shop:bob:«q1w2e3r4»",
            "hdbsql -u SYSTEM -p «Q1w2e3r4» 'select 1'",
        ],
    ),
    (
        "header",
        &[
            "X-Api-Key: «{key}»",
            "Authorization: token «{hex}»",
            "Authorization: Bearer «v^1.1#i^1#p^3#t^Ul4x»",
            "X-Vault-Token: «GfBIMhQcBsxkpNhhRhVFiToGwj»",
            "Authorization: Bearer «abc123def456»",
            "curl -H 'Authorization: Bearer «{key}»' https://x",
            "basic «Ym9iOmh1bnRlcjJwYXNz»",
            "Cookie: JSESSIONID=«0A1B2C3D4E5F6A7B»; theme=dark",
        ],
    ),
    (
        "address",
        &[
            "https://«{key}»@github.com/o/r.git",
            "postgres://app:«ab/cd3ef»@db:5432/x",
            "redis://:«q1w2e3r4»@r:6379/0",
            "https://x-access-token:«{key}»@github.com/o/r.git",
            "https://x.io/c?sv=2022-11-02&sig=«{key}%3D»&se=1",
            "https://x.io/send?key=«{uuid}»",
            "https://x.io/v1?api_key=«{key}»&x=1",
            "https://discord.com/api/webhooks/123456789012345678/«{key}{key}»",
            "https://open.feishu.cn/open-apis/bot/v2/hook/«{uuid}»",
            "otpauth://totp/X?secret=«JBSWY3DPEHPK3PXP»&issuer=X",
        ],
    ),
    (
        "English prose",
        &[
            "The root password for the staging box is «q1w2e3r4».",
            "my password was «hunter2x!»",
            "the password's «hunter2x!» today",
            "The root password for the NAS was changed to «q1w2e3r4».",
            "the auth token, «{hex}», was leaked",
            "the secret access key is «{key}»",
            "I changed the password to «q1w2e3r4» today",
            "log in with password «q1w2e3r4» please",
            "login with admin / «hunter2x!»",
            "«hunter2x!» is the password",
            "the verification code is «482913»",
            "the wifi password is \"«sunshine»\"",
            "Password (prod): «q1w2e3r4»",
            "seed phrase: «abandon ability able about above absent absorb abstract absurd abuse access accident»",
        ],
    ),
    (
        "Chinese prose",
        &[
            "密码改成了«q1w2e3r4»，别忘了",
            "账号admin/密码«Hunter2x!»",
            "密码是 «88888888»",
            "已将 SECRET_KEY 更新为 «9a8b7c6d5e4f3a2b1c0d»",
            "数据库密码设置为 «q1w2e3r4»。",
            "token是«abcdef123456789»",
            "凭证：«ab12cd34ef56gh78»",
            "验证码是 «482913»",
            "密码「«q1w2e3r4»」",
            "访问令牌：«{key}»",
            "提取码：«ab3d»",
            "用户名 bob 密码 «q1w2e3r4»",
            "«q1w2e3r4!» 是密码",
        ],
    ),
    (
        "hidden",
        &[
            "pass\u{200b}word: «hunter2x!» ok",
            "ｐａｓｓｗｏｒｄ：«q1w2e3r4» ok",
            "password%3D«hunter2x9»",
            "to\u{ad}ken = «{key}» ok",
        ],
    ),
];

#[test]
fn mask_secret_of_every_class_is_masked_and_rest_is_kept() {
    for (class, texts) in SECRETS {
        for example in *texts {
            let example = fill(example);
            let (before, rest) = example.split_once('«').unwrap();
            let (secret, after) = rest.split_once('»').unwrap();
            let text = format!("{before}{secret}{after}");
            let (masked, _) = mask(&text);
            let is_kept =
                masked.starts_with(&format!("{before}{MARK}")) && masked.ends_with(&format!("]{after}"));
            assert!(is_kept && masked.matches(MARK).count() == 1, "{class}: {text} → {masked}");
            assert_eq!(mask(&masked).0, masked, "{class}");
        }
    }
}

/// Returns a text of about a megabyte that repeats a part.
fn repeat(part: &str) -> String {
    part.repeat((1 << 20) / part.len())
}

/// In such texts each trigger is inside the secret of the one before it. A scan that reads the rest of the text at
/// each of them would take minutes.
#[test]
fn mask_long_secret_full_of_triggers_is_read_once() {
    for part in ["pass=a1", "!pass=a1b2", ".sk-abcdefghijklmnop0123456789abcdef", "key=a1B2c3d4e5f6g7h8i9j0"]
    {
        let text = repeat(part);
        let (masked, kinds) = mask(&text);
        assert!(masked.len() < 1024 && kinds.len() < 10, "{part}: {} bytes", masked.len());
    }
    let keys = repeat(concat!("-----BEGIN PRIVATE", " KEY-----"));
    assert_eq!(mask(&keys).0, keys);
}

#[test]
fn mask_token_that_a_text_assigns_is_named_by_its_prefix() {
    let text = format!("password={}{}", "ghp_", KEY.repeat(40));
    assert_eq!(mask(&text).1, ["GitHub token"]);
}

/// Texts without a secret, by class.
const ORDINARY: &[(&str, &[&str])] = &[
    (
        "placeholder",
        &[
            "token: YOUR_TOKEN_123",
            "api_key=<API_KEY_1>",
            "password: changeme123",
            "password=********",
            "secret: ${{ secrets.TOKEN_1 }}",
            "password: $db_password1",
            "Authorization: Bearer ${TOKEN1}",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "postgres://user:password@localhost/db",
            "curl -u $USER:$PASS https://x",
            "password: REDACTED",
            "password=true1",
        ],
    ),
    (
        "code",
        &[
            "password: string;",
            "token: str = Field(default=None)",
            "if token == \"abc12345\":",
            "assert password == 'Test1234!'",
            "password: process.env.DB_PASSWORD!",
            "access_key = row.access_key1",
            "access_key: AccessKey2",
            "private_key: path/to/key1.pem",
            "tests/test_password=reset1.py",
            "let key1 = map.get(\"key2\");",
            "passphrase=passphrase, password=password)",
            "\"AWS::IAM::AccessKey\": \"62d91b17309e76c8\"",
            "const ROOT_KEY: X509_USAGE_FLAGS = 2;",
            "LOCAL_CREDENTIALS = 0x80041064,",
            "<input type=\"password\" name=\"password2\">",
        ],
    ),
    (
        "identifier",
        &[
            "commit 3f786850e387550fdab836ed7e6dc881de23001b fixes it",
            "session_id: {uuid}",
            "cache_key: {hex}",
            "nextPageToken: {key}",
            "Redis key: session:5f2b1c9e",
            "token: XMLHTTPRequestIDGeneratorURL",
            "sha256:{hex}{hex}",
            "integrity: sha512-{key}{key}==",
            "key: sha256-{key}=",
            "data:image/png;base64,{key}{key}",
            "https://github.com/o/webhook/commit/3f786850e387550fdab836ed7e6dc881de23001b",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{key} bob@h",
            "cookie: consent=accepted-2024-01-01",
            "version 1.2.3-beta.4+build5",
        ],
    ),
    (
        "command",
        &[
            "docker run -p 8080:80 nginx1",
            "docker run -u 1000:1000 x",
            "ssh -p 2222 root@10.0.0.1",
            "mysql -u root -p shop1",
            "--password-stdin",
            "--token-file=/run/t1",
            "root:x:0:0:root:/root:/bin/bash",
        ],
    ),
    (
        "English prose",
        &[
            "the token is RS256 signed",
            "the api key is v2-only",
            "the password is wrong!",
            "the password is stored in 1Password",
            "basic understanding123 of the flow is needed",
            "The file starts with -----BEGIN RSA PRIVATE\u{20}KEY----- and then 3 lines follow",
            "error code: 50012345",
            "the passphrase: at least 4 words",
            "passphrase: \"words with spaces here\"",
            "pass: 120, fail: 3",
        ],
    ),
    (
        "Chinese prose",
        &[
            "密码为空时返回400",
            "密码为null1时",
            "密码长度为8-20位",
            "密码用SHA256哈希",
            "令牌有效期为24h",
            "验证码有效期为300秒",
            "密码字段是password2",
            "密钥长度为2048位",
            "token过期时间为7200s",
            "密码重置接口 /api/v1/reset",
        ],
    ),
];

#[test]
fn mask_ordinary_text_of_every_class_is_unchanged() {
    for (class, texts) in ORDINARY {
        for text in *texts {
            let text = fill(text);
            assert_eq!(mask(&text).0, text, "{class}");
        }
    }
}
