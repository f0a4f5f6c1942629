//! What those who operate a server rely on: its log, its metrics, its limits, and how it stops.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::page::{browse, log_in};
use super::{Team, create_task, create_workspace, error_code, ok, run_body, send_as};
use crate::serve::{Response, Server};

/// A server whose log is kept.
pub struct LoggedServer {
    pub server: Server,
    log: PathBuf,
}

impl LoggedServer {
    pub fn start(team: &Team, name: &str, args: &[&str]) -> LoggedServer {
        LoggedServer::start_with(team, name, args, &[])
    }

    pub fn start_with(team: &Team, name: &str, args: &[&str], variables: &[(&str, &str)]) -> LoggedServer {
        let log = team.env.root().join(format!("{name}.log"));
        let stderr = File::create(&log).unwrap();
        let server =
            Server::start_team_with(&team.env, &team.cluster.address(), &team.admin, args, variables, stderr);
        LoggedServer { server, log }
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Returns the lines about an event.
    pub fn lines(&self, event: &str) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
        lines.filter(|line| line["event"] == event).collect()
    }

    /// Waits for a line about an event.
    pub fn wait_for(&self, event: &str, count: usize) -> Value {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let lines = self.lines(event);
            if let Some(line) = lines.get(count - 1) {
                return line.clone();
            }
            assert!(Instant::now() < limit, "no {event} in {}", self.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Sends a request to a path of the server.
pub fn get(server: &Server, token: &str, path: &str) -> Response {
    let authorization = format!("Bearer {token}");
    server.send_with_headers("GET", path, &[("Host", "team"), ("Authorization", &authorization)], "")
}

#[test]
fn request_id_is_in_header_error_and_log() {
    let Some(team) = Team::new() else { return };
    let logged = LoggedServer::start(&team, "one", &["--log-level", "debug"]);
    let server = &logged.server;
    let workspace = create_workspace(server, "create-1");
    let given =
        send_as(server, &team.admin, "GET", "none/feed", &[("X-Request-Id", "trace-1.a")], &Value::Null);
    assert_eq!((given.status, given.header("x-request-id")), (404, Some("trace-1.a")));
    assert_eq!(given.json()["error"]["requestId"], "trace-1.a");
    let path = format!("/api/v1/workspaces/{workspace}/nodes/none");
    let made = get(server, &team.admin, &path);
    let id = made.header("x-request-id").unwrap().to_owned();
    assert_eq!((made.status, &made.json()["error"]["requestId"]), (404, &json!(id)));
    let forged = send_as(server, &team.admin, "GET", "shop/feed", &[("X-Request-Id", "a\"b")], &Value::Null);
    assert!(forged.status == 200 && forged.header("x-request-id") != Some("a\"b"), "{}", forged.head);
    assert_eq!(get(server, "", "/healthz").status, 200);
    let lines = logged.lines("request");
    let find =
        |id: &str| lines.iter().find(|line| line["requestId"] == id).unwrap_or_else(|| panic!("{lines:?}"));
    let line = find(&id);
    assert_eq!(line["route"], "/api/v1/workspaces/{workspaceId}/nodes/{nodeId}", "{line}");
    assert_eq!((&line["person"], &line["code"]), (&json!("ada"), &json!("NODE_NOT_FOUND")), "{line}");
    assert_eq!((&line["status"], &line["address"]), (&json!(404), &json!("127.0.0.1")), "{line}");
    assert_eq!(find("trace-1.a")["code"], "PROJECT_NOT_FOUND");
    assert!(lines.iter().any(|line| line["route"] == "/healthz" && line["level"] == "debug"), "{lines:?}");
    assert_eq!(logged.lines("login").len(), 1, "one login on this day from this address");
    // At the level `error` there are no lines about requests.
    let quiet = LoggedServer::start(&team, "two", &["--log-level", "error"]);
    ok(&quiet.server, "GET", "feed", &Value::Null);
    assert_eq!(quiet.text(), "");
}

#[test]
fn metrics_are_for_admins_and_count_requests() {
    let Some(mut team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    let member = team.token("bob", "member");
    assert_eq!(get(&server, &member, "/metrics").status, 403);
    assert_eq!(server.send_with_headers("GET", "/metrics", &[("Host", "team")], "").status, 401);
    let metrics = get(&server, &team.admin, "/metrics");
    assert!(
        metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"),
        "{}",
        metrics.head
    );
    let has = |line: &str| {
        assert!(metrics.body.lines().any(|found| found == line), "{line}\n{}", metrics.body);
    };
    has("tanmi_requests_total{route=\"/team/v1/{project}/run\",method=\"POST\",status=\"200\"} 1");
    has("tanmi_requests_total{route=\"/metrics\",method=\"GET\",status=\"403\"} 1");
    has("tanmi_request_duration_seconds_count{route=\"/team/v1/{project}/run\"} 1");
    has("tanmi_errors_total{code=\"FORBIDDEN\"} 1");
    has("tanmi_pool_connections{state=\"max\"} 16");
    has("tanmi_pool_waiting 0");
    has("tanmi_feed_readers 0");
    assert!(metrics.body.contains("tanmi_build_info{version="), "{}", metrics.body);
    assert!(!metrics.body.contains(&workspace) && !metrics.body.contains("shop"), "{}", metrics.body);
    team.cluster.shut_down().unwrap();
    let body = run_body("task-0001", &workspace, create_task("Build"));
    assert_eq!(send_as(&server, &team.admin, "POST", "shop/run", &[], &body).status, 503);
    team.cluster.resume().unwrap();
    ok(&server, "GET", "feed", &Value::Null);
    let metrics = get(&server, &team.admin, "/metrics").body;
    assert!(metrics.contains("tanmi_errors_total{code=\"DATABASE_AWAY\"} 1"), "{metrics}");
}

#[test]
fn stop_answers_waiting_readers_and_running_requests() {
    let Some(team) = Team::new() else { return };
    let logged = LoggedServer::start(&team, "one", &[]);
    let workspace = create_workspace(&logged.server, "create-1");
    // A reader of the feed that waits for a change.
    let have = format!("{workspace}:0");
    let mut stream = logged.server.connect();
    let head = format!(
        "GET /team/v1/shop/feed?wait=25&have={have} HTTP/1.1\r\nHost: team\r\nAuthorization: Bearer {}\r\n\r\n",
        team.admin
    );
    stream.write_all(head.as_bytes()).unwrap();
    let metrics = || get(&logged.server, &team.admin, "/metrics").body;
    let limit = Instant::now() + Duration::from_secs(60);
    while !metrics().contains("tanmi_feed_readers 1") {
        assert!(Instant::now() < limit, "{}", metrics());
        std::thread::sleep(Duration::from_millis(50));
    }
    // A connection that sends no request does not keep the server.
    let _idle = logged.server.connect();
    crate::serve::signal(logged.server.pid(), "TERM");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&workspace), "{answer}");
    let line = logged.wait_for("stopped", 1);
    assert_eq!(line["finishedRequests"], true, "{}", logged.text());
    assert!(logged.server.wait(), "exit status 0");
}

#[test]
fn rate_limit_refuses_token_and_says_when_to_return() {
    let Some(team) = Team::new() else { return };
    let logged = LoggedServer::start(&team, "one", &["--rate-limit", "1"]);
    let bob = team.token("bob", "member");
    let cookie = log_in(&logged.server, &bob);
    let refused = (0..200)
        .map(|_| get(&logged.server, &bob, "/api/v1/workspaces"))
        .find(|response| response.status != 200)
        .expect("the limit is reached");
    assert_eq!((refused.status, error_code(&refused).as_str()), (429, "TOO_MANY"), "{}", refused.body);
    assert_eq!(refused.header("retry-after"), Some("1"), "{}", refused.head);
    assert_eq!(get(&logged.server, &team.admin, "/api/v1/workspaces").status, 200, "another token");
    let of_cookie = || browse(&logged.server, &cookie, "GET", "/page/shop/api/v1/workspaces", &[], "").status;
    assert!((0..5).any(|_| of_cookie() == 429), "a cookie has the rate of its token");
    assert_eq!(get(&logged.server, &bob, "/healthz").status, 200);
    let free = LoggedServer::start(&team, "two", &["--rate-limit", "0"]);
    assert!((0..50).all(|_| get(&free.server, &bob, "/api/v1/workspaces").status == 200));
}

#[test]
fn failed_logins_of_address_are_limited_and_known_tokens_pass() {
    let Some(team) = Team::new() else { return };
    let logged = LoggedServer::start(&team, "one", &[]);
    let server = &logged.server;
    let bob = team.token("bob", "member");
    assert_eq!(get(server, &bob, "/api/v1/workspaces").status, 200);
    let statuses: Vec<u16> =
        (0..40).map(|n| get(server, &format!("tnm_x{n}_y"), "/api/v1/workspaces").status).collect();
    assert_eq!(statuses[0], 401, "{statuses:?}");
    assert_eq!(statuses[39], 429, "{statuses:?}");
    let refused = get(server, "tnm_x_y", "/api/v1/workspaces");
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    assert_eq!(get(server, &bob, "/api/v1/workspaces").status, 200, "a token that was valid before");
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let sql = "SELECT string_agg(what || ' ' || ip, ',' ORDER BY what) FROM audit WHERE ip IS NOT NULL";
        let audit = team.cluster.sql(sql).unwrap();
        if audit.contains("login 127.0.0.1,login_failed 127.0.0.1") {
            break;
        }
        assert!(Instant::now() < limit, "{audit}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn failed_logins_with_links_are_limited() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let open = |ticket: &str| {
        let path = format!("/page/shop/login?ticket={ticket}");
        server.send_with_headers("GET", &path, &[("Host", "team")], "")
    };
    let statuses: Vec<u16> = (0..40).map(|n| open(&format!("tnt_x{n}_y")).status).collect();
    assert_eq!((statuses[0], statuses[39]), (401, 429), "{statuses:?}");
    let refused = open("tnt_x_y");
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    let unknown = get(&server, "tnm_x_y", "/api/v1/workspaces");
    assert_eq!(unknown.status, 429, "links and tokens count together");
}
