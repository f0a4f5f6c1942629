//! The page of a team: login, what a browser may do, and logout.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Team, create_workspace, error_code, ok, write_file};
use crate::serve::{Response, Server};

/// Buys a link with a token and returns its path.
fn buy_link(server: &Server, token: &str) -> String {
    let authorization = format!("Bearer {token}");
    let host = format!("127.0.0.1:{}", server.port);
    let headers = [("Host", host.as_str()), ("Authorization", authorization.as_str())];
    let response = server.send_with_headers("POST", "/login-link?project=shop", &headers, "");
    assert_eq!(response.status, 201, "{}", response.body);
    let made = response.json();
    let path = made["path"].as_str().unwrap().to_owned();
    assert_eq!(made["url"], format!("http://{host}{path}"));
    path
}

/// Opens a link and returns the `Set-Cookie` header.
fn open(server: &Server, path: &str, host: &str) -> Option<String> {
    let response = server.send_with_headers("GET", path, &[("Host", host)], "");
    response.header("set-cookie").map(str::to_owned)
}

/// Logs in with a token and returns the cookie.
pub fn log_in(server: &Server, token: &str) -> String {
    let cookie = open(server, &buy_link(server, token), "127.0.0.1:1").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

pub fn browse(
    server: &Server,
    cookie: &str,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
    body: &str,
) -> Response {
    let mut headers = vec![("Host", "team:1"), ("Cookie", cookie)];
    headers.extend(more);
    server.send_with_headers(method, path, &headers, body)
}

#[test]
fn login_link_works_once_on_every_server_and_sets_strict_cookie() {
    let Some(team) = Team::new() else { return };
    let (first, second) = (team.serve(), team.serve());
    let path = buy_link(&first, &team.admin);
    assert_eq!(first.send_with_headers("HEAD", &path, &[("Host", "team")], "").status, 401);
    let cookie = open(&second, &path, "127.0.0.1:1").expect("a link of one server opens at another");
    assert!(cookie.starts_with("tanmi-team=tnl_"), "{cookie}");
    for part in ["; Path=/page/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "plain HTTP on this machine: {cookie}");
    for server in [&first, &second] {
        let used = server.send_with_headers("GET", &path, &[("Host", "team")], "");
        assert!(used.status == 401 && used.body.contains("tanmi team login"), "{}", used.body);
    }
    // By another name, a proxy with TLS is in front.
    let cookie = open(&first, &buy_link(&first, &team.admin), "tanmi.example.org").unwrap();
    assert!(cookie.contains("; Secure"), "{cookie}");
    for bad in ["/page/shop/login", "/page/shop/login?ticket=", "/page/shop/login?ticket=tnt_x_y"] {
        assert_eq!(open(&first, bad, "team"), None, "{bad}");
    }
    let expired = buy_link(&first, &team.admin);
    team.cluster.sql("UPDATE login SET expires_at = 1").unwrap();
    assert_eq!(open(&first, &expired, "team"), None, "a link ends after five minutes");
    assert_eq!(
        team.cluster.sql("SELECT count(*) FROM login WHERE hash !~ '^[0-9a-f]{64}$'").unwrap().trim(),
        "0"
    );
}

#[test]
fn page_works_with_cookie_and_role_of_person() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    let admin = log_in(&server, &team.admin);
    let page = browse(&server, &admin, "GET", "/page/shop/", &[], "");
    assert!(page.status == 200 && page.body.contains("data-team"), "{} {}", page.status, page.body);
    assert!(page.header("content-security-policy").is_some(), "{}", page.head);
    let script = browse(&server, &admin, "GET", "/page/shop/main.js", &[], "");
    assert!(script.header("content-type").unwrap().starts_with("text/javascript"), "{}", script.head);
    assert_eq!(browse(&server, &admin, "GET", "/page/shop/none.js", &[], "").status, 404);
    let api = "/page/shop/api/v1";
    let listed = browse(&server, &admin, "GET", &format!("{api}/workspaces?all=true"), &[], "");
    assert!(listed.status == 200 && listed.body.contains(&workspace), "{} {}", listed.status, listed.body);
    // The page names the project of a workspace as it was listed.
    assert_eq!(listed.json()["workspaces"][0]["project"], "shop", "{}", listed.body);
    let node = json!({"parentId": "root", "type": "execution", "title": "Build", "requirement": "Build it"});
    let path = format!("{api}/workspaces/{workspace}/nodes?project=shop");
    let made = browse(&server, &admin, "POST", &path, &[("Origin", "https://team:1")], &node.to_string());
    assert_eq!(made.status, 201, "{}", made.body);
    for view in
        ["/projects", "/now", "/activity", "/sessions", "/bindings", "/trash", "/memory", "/memory/stats"]
    {
        let answer = browse(&server, &admin, "GET", &format!("{api}{view}"), &[], "");
        assert_eq!(answer.status, 200, "{view}: {}", answer.body);
        assert!(!answer.body.contains("team-server"), "no path of the server: {}", answer.body);
    }
    // A reader sees all of it and changes nothing.
    let reader = log_in(&server, &team.token("rita", "reader"));
    let read = browse(&server, &reader, "GET", &format!("{api}/workspaces/{workspace}"), &[], "");
    assert_eq!(read.status, 200, "{}", read.body);
    let refused = browse(&server, &reader, "POST", &path, &[], &node.to_string());
    assert_eq!((refused.status, error_code(&refused).as_str()), (403, "FORBIDDEN"), "{}", refused.body);
    assert!(refused.body.contains("role member") && refused.body.contains("role reader"), "{}", refused.body);
    // Another site cannot use the cookie, and it is no token.
    for header in [
        ("Origin", "https://evil.example"),
        ("Origin", "http://team:1"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        let foreign = browse(&server, &admin, "POST", &path, &[header], &node.to_string());
        assert_eq!((foreign.status, error_code(&foreign).as_str()), (403, "FOREIGN_ORIGIN"), "{header:?}");
    }
    assert_eq!(browse(&server, &admin, "GET", "/api/v1/workspaces", &[], "").status, 401);
    let bearer = format!("Bearer {}", admin.split_once('=').unwrap().1);
    for (method, path) in
        [("GET", "/api/v1/workspaces"), ("POST", "/login-link"), ("GET", "/page/shop/api/v1/now")]
    {
        let headers = [("Host", "team"), ("Authorization", bearer.as_str())];
        assert_eq!(server.send_with_headers(method, path, &headers, "").status, 401, "{path}");
    }
    // Another project of the server is closed to it.
    team.setup("other", "eve");
    assert_eq!(browse(&server, &admin, "GET", "/page/other/api/v1/workspaces", &[], "").status, 404);
    assert_eq!(browse(&server, &admin, "GET", "/page/other/", &[], "").status, 404);
}

#[test]
fn changes_are_told_to_page_and_end_with_login() {
    let Some(team) = Team::new() else { return };
    let (first, second) = (team.serve(), team.serve());
    let bob = log_in(&first, &team.token("bob", "member"));
    let mut stream = first.connect();
    let head = format!("GET /page/shop/api/v1/changes HTTP/1.1\r\nHost: team\r\nCookie: {bob}\r\n\r\n");
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream));
    let mut wait_for = |needle: &str| lines.by_ref().map_while(Result::ok).any(|line| line.contains(needle));
    assert!(wait_for("event: hello"));
    create_workspace(&second, "create-1");
    assert!(wait_for("event: gap"), "a change by another server");
    team.run(&["team", "token", "revoke", "--project-name", "shop", "--person", "bob"]);
    assert!(!wait_for("event: never"), "the stream ends");
    // The login ends on every server within five seconds.
    for server in [&first, &second] {
        let limit = Instant::now() + Duration::from_secs(5);
        while browse(server, &bob, "GET", "/page/shop/api/v1/workspaces", &[], "").status == 200 {
            assert!(Instant::now() < limit, "a revoked login still works after 5 seconds");
            std::thread::sleep(Duration::from_millis(100));
        }
        let closed = browse(server, &bob, "GET", "/page/shop/", &[], "");
        assert!(closed.status == 401 && closed.body.contains("tanmi team login"), "{}", closed.body);
    }
    ok(&first, "GET", "feed", &Value::Null);
}

#[test]
fn logout_ends_login_and_not_token() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let (cookie, other) = (log_in(&server, &team.admin), log_in(&server, &team.admin));
    let foreign =
        browse(&server, &cookie, "POST", "/page/shop/logout", &[("Origin", "https://evil.example")], "");
    assert_eq!(foreign.status, 403);
    let out = browse(&server, &cookie, "POST", "/page/shop/logout", &[], "");
    assert!(out.status == 200 && out.header("set-cookie").unwrap().contains("Max-Age=0"), "{}", out.head);
    assert_eq!(browse(&server, &cookie, "GET", "/page/shop/api/v1/workspaces", &[], "").status, 401);
    assert_eq!(browse(&server, &other, "GET", "/page/shop/api/v1/workspaces", &[], "").status, 200);
    ok(&server, "GET", "feed", &Value::Null);
}

#[test]
fn team_login_prints_link_and_names_what_is_wrong() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let file = team.env.root().join("token");
    let token_file = file.to_str().unwrap();
    write_file(&file, format!("{}\n", team.admin)).unwrap();
    let run = team.env.run(&["team", "login", "--url", &server.link, "--token-file", token_file, "--json"]);
    let link = serde_json::from_str::<Value>(&run.stdout).unwrap()["link"].as_str().unwrap().to_owned();
    let path = link.strip_prefix(&server.link).unwrap();
    assert!(open(&server, path, "team").is_some(), "{link}");
    let login = |url: &str, token: &str, language: &str| {
        write_file(&file, token).unwrap();
        let mut command = team.env.command(&["team", "login", "--url", url, "--token-file", token_file]);
        let output = command.env("LC_ALL", language).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let plain = login("http://team.example.org", &team.admin, "C.UTF-8");
    assert!(plain.contains("neither https"), "{plain}");
    let none = login(&server.link, "secret words", "C.UTF-8");
    assert!(none.contains("does not contain one token") && !none.contains("secret"), "{none}");
    let wrong = login(&server.link, "tnm_x_y", "zh_CN.UTF-8");
    assert!(wrong.contains("令牌未知") && !wrong.contains("tnm_x_y"), "{wrong}");
    let away = login("http://127.0.0.1:1", &team.admin, "C.UTF-8");
    assert!(away.contains("cannot reach") && !away.contains(&team.admin), "{away}");
}
