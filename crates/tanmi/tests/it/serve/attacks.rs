//! Attacks on the server: missing authentication, cross-origin requests, path traversal, hostile bodies and kills.

use serde_json::{Value, json};

use super::Server;
use crate::env::TestEnv;

/// Returns paths that exist and need authentication.
fn protected_paths(server: &Server, ws: &str) -> Vec<String> {
    let entry = server.send_with_headers("GET", &ticket_path(server), &[("Host", &host(server))], "");
    let page_path = entry.body.split("url=").nth(1).unwrap().split('"').next().unwrap().to_owned();
    vec![
        String::from("/api/v1/workspaces?all=true"),
        format!("/api/v1/workspaces/{ws}"),
        String::from("/api/v1/openapi.json"),
        String::from("/api/v1/changes"),
        String::from("/mcp"),
        format!("{page_path}main.js"),
        format!("{page_path}api/v1/workspaces"),
        page_path,
    ]
}

fn host(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port)
}

fn ticket_path(server: &Server) -> String {
    format!("/?{}", server.link.split_once('?').unwrap().1)
}

#[test]
fn request_without_token_reveals_nothing() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let host = host(&server);
    let bearer = format!("Bearer {}", server.token);
    let evil = format!("evil.example:{}", server.port);
    let ours = format!("http://{host}");
    let short = format!("Bearer {}", &server.token[..39]);
    for path in protected_paths(&server, &ws) {
        // (attack, headers, status)
        type Headers<'a> = Vec<(&'a str, &'a str)>;
        let attacks: Vec<(&str, Headers<'_>, u16)> = vec![
            ("no token", vec![("Host", &host)], 401),
            ("a wrong token", vec![("Host", &host), ("Authorization", "Bearer wrong")], 401),
            ("an empty token", vec![("Host", &host), ("Authorization", "Bearer ")], 401),
            ("a part of it", vec![("Host", &host), ("Authorization", &short)], 401),
            ("another scheme", vec![("Host", &host), ("Authorization", "Basic dGFubWk6")], 401),
            ("a made-up cookie", vec![("Host", &host), ("Cookie", "tanmi-1=x; session=y")], 401),
            ("DNS rebinding", vec![("Host", &evil), ("Authorization", &bearer)], 403),
            ("rebinding without a port", vec![("Host", "127.0.0.1"), ("Authorization", &bearer)], 403),
            ("a second Host", vec![("Host", &host), ("Host", &evil), ("Authorization", &bearer)], 400),
            ("no Host", vec![("Authorization", &bearer)], 400),
            (
                "a foreign page",
                vec![("Host", &host), ("Authorization", &bearer), ("Origin", "http://evil.example")],
                403,
            ),
            ("a sandboxed page", vec![("Host", &host), ("Authorization", &bearer), ("Origin", "null")], 403),
            (
                "another port",
                vec![("Host", &host), ("Authorization", &bearer), ("Origin", "http://127.0.0.1:1")],
                403,
            ),
            (
                "https of ours",
                vec![("Host", &host), ("Authorization", &bearer), ("Origin", "https://127.0.0.1")],
                403,
            ),
            (
                "a foreign picture tag",
                vec![("Host", &host), ("Authorization", &bearer), ("Sec-Fetch-Site", "cross-site")],
                403,
            ),
            (
                "a page of another port",
                vec![
                    ("Host", &host),
                    ("Authorization", &bearer),
                    ("Origin", &ours),
                    ("Sec-Fetch-Site", "same-site"),
                ],
                403,
            ),
        ];
        for (attack, headers, expected) in attacks {
            let response = server.send_with_headers("GET", &path, &headers, "");
            let refused = response.status == expected || (expected == 400 && response.status == 403);
            assert!(refused, "{attack}, {path}: {}\n{}", response.head, response.body);
            for secret in [ws.as_str(), "JWT", server.token.as_str(), "workspaces/{"] {
                assert!(
                    !response.body.contains(secret),
                    "{attack}, {path} tells {secret}: {}",
                    response.body
                );
            }
            assert!(response.header("access-control-allow-origin").is_none(), "{attack}");
        }
    }
    // A preflight request is refused like other cross-origin requests.
    let preflight = server.send_with_headers(
        "OPTIONS",
        "/api/v1/workspaces",
        &[("Host", &host), ("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")],
        "",
    );
    assert_eq!(preflight.status, 403);
    assert!(preflight.header("access-control-allow-origin").is_none());
}

#[test]
fn ticket_works_once_and_cookie_only_for_page() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    let host = host(&server);
    let open_ticket = || {
        server.send_with_headers(
            "GET",
            &ticket_path(&server),
            &[("Host", &host), ("Sec-Fetch-Site", "cross-site")],
            "",
        )
    };
    let entry = open_ticket();
    assert_eq!(entry.status, 200);
    let cookie = entry.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let page_path = cookie.split("Path=").nth(1).unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(open_ticket().status, 401, "a ticket works once");
    assert_eq!(server.send_with_headers("GET", "/?ticket=", &[("Host", &host)], "").status, 401);
    assert_eq!(server.send_with_headers("GET", "/", &[("Host", &host)], "").status, 401);

    let cookie = cookie.split(';').next().unwrap().to_owned();
    let send_with_cookie = |method: &str, path: &str, more: &[(&str, &str)], body: &str| {
        let mut headers = vec![("Host", host.as_str()), ("Cookie", cookie.as_str())];
        headers.extend(more);
        server.send_with_headers(method, path, &headers, body)
    };
    let page = send_with_cookie("GET", &page_path, &[], "");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(send_with_cookie("GET", &format!("{page_path}api/v1/workspaces"), &[], "").status, 200);
    assert_eq!(
        send_with_cookie("GET", "/api/v1/workspaces", &[], "").status,
        401,
        "the cookie is valid only below the path of the page"
    );
    // A page cannot create tickets, and a page of another origin cannot use its cookie.
    assert_eq!(send_with_cookie("POST", &format!("{page_path}api/v1/tickets"), &[], "{}").status, 403);
    let foreign = [("Origin", "http://127.0.0.1:1"), ("Sec-Fetch-Site", "same-site")];
    let created = send_with_cookie(
        "POST",
        &format!("{page_path}api/v1/workspaces"),
        &foreign,
        r#"{"name":"x","goal":"y"}"#,
    );
    assert_eq!(created.status, 403);
    assert_eq!(env.json(&["workspace", "list"])["total"], 1);
}

#[test]
fn path_traversal_is_refused() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let secret = env.root().join("secret.md");
    env.write(&secret, b"SECRET");
    let up = format!("..%2f..%2f..{}", secret.display().to_string().replace('/', "%2f"));
    for path in [
        format!("/workspaces/{up}"),
        format!("/workspaces/{ws}/nodes/{up}"),
        format!("/workspaces/{ws}/nodes/..%2fWorkspace.md"),
        format!("/workspaces/{ws}/nodes/%00"),
        format!("/ledger/texts/{up}"),
        String::from("/ledger/texts/..%2f..%2ftrust.json"),
        format!("/memory/facts/{up}"),
        String::from("/../../../../etc/passwd"),
        String::from("/%2e%2e/%2e%2e/serve.json"),
        String::from("/workspaces/ws-%ff"),
        String::from("/nothing/of/the/kind"),
    ] {
        let response = server.send_request("GET", &path, &[], &Value::Null);
        assert!((400..500).contains(&response.status), "{path}: {}\n{}", response.head, response.body);
        assert!(
            !response.body.contains("SECRET") && !response.body.contains("root:"),
            "{path}: {}",
            response.body
        );
        assert!(response.json()["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{path}");
    }
    // Paths in bodies and unknown projects are handled the same way.
    let doc = json!({"docs": [{"path": "../../../etc/passwd"}]});
    assert_eq!(
        server.send_request("PATCH", &format!("/workspaces/{ws}"), &[], &doc).status,
        200,
        "the path of a doc is stored, not read"
    );
    let bad =
        server.send_request("POST", "/workspaces?project=/etc", &[], &json!({"name": "x", "goal": "y"}));
    assert_eq!(bad.status, 404);
}

#[test]
fn hostile_bodies_and_partial_requests_are_survived() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let (host, bearer) = (host(&server), format!("Bearer {}", server.token));
    let post = |kind: &str, body: &[u8], length: usize| {
        let mut request = format!(
            "POST /api/v1/workspaces HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\n\
             Connection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend(body);
        server.send_bytes(&request)
    };
    let large = vec![b'x'; 3 << 20];
    assert_eq!(post("application/json", &large, large.len()).status, 413);
    assert_eq!(post("application/json", b"", 9_999_999_999).status, 413);
    let valid = br#"{"name":"x","goal":"y"}"#;
    assert_eq!(post("text/plain", valid, valid.len()).status, 415);
    for (body, code) in [
        (&b"{"[..], "INVALID_ARGUMENT"),
        (b"[]", "INVALID_ARGUMENT"),
        (b"null", "INVALID_ARGUMENT"),
        (b"\xff\xfe", "INVALID_ARGUMENT"),
        (br#"{"name":"x"}"#, "INVALID_ARGUMENT"),
        (br#"{"name":"x","goal":"y","colour":1}"#, "UNKNOWN_PARAMETER"),
        (br#"{"name":7,"goal":"y"}"#, "INVALID_ARGUMENT"),
    ] {
        let response = post("application/json", body, body.len());
        assert_eq!(response.status, 400, "{}", response.body);
        assert_eq!(response.json()["error"]["code"], code, "{}", response.body);
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(post("application/json", nested.as_bytes(), nested.len()).status, 400);
    // Two hundred connections that send half a request do not block other clients.
    let idle: Vec<_> = (0..200)
        .map(|_| {
            use std::io::Write;
            let mut stream = server.connect();
            stream.write_all(b"POST /api/v1/workspaces HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    // Titles with markup or bidirectional controls are returned unchanged.
    for title in
        ["<script>alert(1)</script>", "\u{202e}evil\u{2066}", "\"><img src=x onerror=alert(1)>", "a\tb"]
    {
        let created = json!({"type": "execution", "title": title, "requirement": title, "parentId": "root"});
        let response = server.send_request("POST", &format!("/workspaces/{ws}/nodes"), &[], &created);
        assert_eq!(response.status, 201, "{}", response.body);
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.json()["title"], title);
    }
    drop(idle);
    assert!(server.stop());
}

/// Any user of the machine can connect. Connections that send no authorized request do not keep the owner out, and do
/// not end a stream of the owner.
#[cfg(target_os = "linux")]
#[test]
fn half_open_connections_do_not_block_owner() {
    use std::collections::VecDeque;
    use std::io::{Read, Write};
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    let mut stream = server.connect();
    let (host, token) = (host(&server), &server.token);
    write!(stream, "GET /api/v1/changes HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n")
        .unwrap();
    let mut head = [0; 17];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK\r\n");
    // Silent connections, half of a request, and complete requests without a token.
    let openings: [&[u8]; 3] =
        [b"", b"GET / HTTP/1.1\r\nHost: ", b"GET /api/v1/projects HTTP/1.1\r\nHost: x\r\n\r\n"];
    let mut held = VecDeque::new();
    for n in 0..2_000 {
        let mut other = server.connect();
        // The server may have closed it already.
        let _ = other.write_all(openings[n % openings.len()]);
        held.push_back(other);
        // A process has only so many open files.
        if held.len() > 850 {
            held.pop_front();
        }
        if n % 200 == 199 {
            server.expect_ok("GET", "/projects", Value::Null);
        }
    }
    for _ in 0..20 {
        server.expect_ok("GET", "/projects", Value::Null);
    }
    env.node("root", "execution", "a");
    let mut events = String::new();
    while !events.contains("event: change") {
        let mut bytes = [0; 4096];
        let len = stream.read(&mut bytes).unwrap();
        assert!(len > 0, "the stream of the owner ended: {events}");
        events.push_str(&String::from_utf8_lossy(&bytes[..len]));
    }
    drop(held);
}

/// Markdown becomes a tree of many times its size, so only the beginning of a huge text is rendered.
#[cfg(target_os = "linux")]
#[test]
fn huge_node_is_shown_with_little_memory() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let line = "- *a* **b** `c` [d](https://e.example) <f>\n";
    let text = line.repeat((15 << 20) / line.len());
    env.edit(&env.node_md(&ws, &node), |file| file.replace("\nr\n", &format!("\n{text}\n")));
    let server = Server::start(&env);
    let path = format!("/workspaces/{ws}/nodes/{node}?render=true");
    let view = server.expect_ok("GET", &path, Value::Null);
    let peak = crate::env::peak_megabytes(server.pid());
    assert!(peak < 200, "{peak} MB");
    let requirement = view["node"]["requirement"].as_str().unwrap();
    assert_eq!(requirement, text.trim_end(), "the page gets the text itself");
    let from = usize::try_from(view["rendered"]["plainFrom"]["requirement"].as_u64().unwrap()).unwrap();
    assert!(from <= 256 * 1024 && requirement[from..].starts_with("- *a*"), "the rest begins with a line");
    let items = view["rendered"]["requirement"][0].as_array().unwrap().len() - 1;
    assert_eq!(items, from / line.len());
}

/// A server killed during requests has stored every acknowledged node and leaves no lock behind.
#[test]
fn killed_server_keeps_acknowledged_nodes() {
    let env = TestEnv::new();
    let ws = env.init();
    for _ in 0..5 {
        let server = Server::start(&env);
        let created: Vec<String> = std::thread::scope(|scope| {
            let (server, ws) = (&server, &ws);
            let work = move || {
                let mut created = Vec::new();
                loop {
                    let body =
                        json!({"type": "execution", "title": "t", "requirement": "r", "parentId": "root"});
                    let response =
                        server.send_request("POST", &format!("/workspaces/{ws}/nodes"), &[], &body);
                    if response.status != 201 {
                        return created;
                    }
                    let Ok(node) = serde_json::from_str::<Value>(&response.body) else { return created };
                    created.push(node["nodeId"].as_str().unwrap().to_owned());
                    if created.len() == 10 {
                        let _ = std::process::Command::new("kill")
                            .arg("-9")
                            .arg(server.pid().to_string())
                            .status();
                    }
                }
            };
            let handles: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
        });
        assert!(created.len() >= 10);
        drop(server);
        let listed = env.json(&["node", "list", "--limit", "10000"]).to_string();
        for id in &created {
            assert!(listed.contains(id), "{id} was acknowledged");
        }
        assert_eq!(env.check(&[])["findings"], json!([]));
    }
}
