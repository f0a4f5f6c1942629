//! `tanmi serve` over a socket. This module starts the server and sends requests; submodules test the interfaces.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::TestEnv;

mod activity;
mod api;
mod attacks;
mod feed;
mod mcp;
mod openapi;
pub mod page_types;

/// A running `tanmi serve`; killed when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
    pub token: String,
    pub link: String,
}

/// An HTTP response.
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Reads what a server prints when it accepts requests.
fn read_report(child: &mut Child) -> Value {
    let mut output = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    loop {
        assert!(stdout.read_line(&mut output).unwrap() > 0, "{output}");
        if let Ok(report) = serde_json::from_str(&output) {
            return report;
        }
    }
}

impl Server {
    pub fn start(env: &TestEnv) -> Server {
        let mut child = env
            .command(&["serve", "--no-open", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let report = read_report(&mut child);
        let address = std::fs::read_to_string(env.home_store().join("serve.json")).unwrap();
        let address: Value = serde_json::from_str(&address).unwrap();
        Server {
            child,
            port: u16::try_from(address["port"].as_u64().unwrap()).unwrap(),
            token: address["token"].as_str().unwrap().to_owned(),
            link: report["link"].as_str().unwrap().to_owned(),
        }
    }

    /// Starts the server of a team. Requests carry this token.
    pub fn start_team(env: &TestEnv, database: &str, token: &str) -> Server {
        Server::start_team_with(env, database, token, &[], &[], Stdio::null())
    }

    /// Starts the server of a team with further arguments and variables.
    pub fn start_team_with(
        env: &TestEnv,
        database: &str,
        token: &str,
        more: &[&str],
        variables: &[(&str, &str)],
        stderr: impl Into<Stdio>,
    ) -> Server {
        let mut command = env.command(&[]);
        command.envs(variables.iter().copied()).stderr(stderr);
        Server::start_team_as(command, database, token, more)
    }

    /// Starts the server of a team with a command that runs the program with further arguments.
    pub fn start_team_as(
        mut command: std::process::Command,
        database: &str,
        token: &str,
        more: &[&str],
    ) -> Server {
        command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).args(more);
        Server::spawn_team(command, database, token)
    }

    /// Starts the server of a team on a port.
    pub fn start_team_on(env: &TestEnv, database: &str, token: &str, port: u16) -> Server {
        let command = env.command(&["serve", "--listen", &format!("127.0.0.1:{port}"), "--json"]);
        Server::spawn_team(command, database, token)
    }

    fn spawn_team(mut command: std::process::Command, database: &str, token: &str) -> Server {
        let mut child = command.env("TANMI_DATABASE_URL", database).stdout(Stdio::piped()).spawn().unwrap();
        let report = read_report(&mut child);
        let url = report["url"].as_str().unwrap();
        let port = url.rsplit_once(':').unwrap().1.parse().unwrap();
        Server { child, port, token: token.to_owned(), link: url.to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends these bytes and reads to the end of the response. The status is 0 if the server cannot be reached.
    pub fn send_bytes(&self, request: &[u8]) -> Response {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return Response { status: 0, head: String::new(), body: String::new() };
        };
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A server that refuses early may not read the whole request.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = if head.to_lowercase().contains("transfer-encoding: chunked") {
            decode_chunks(body)
        } else {
            body.to_owned()
        };
        Response { status, head: head.to_owned(), body }
    }

    /// Sends a request with exactly these headers.
    pub fn send_with_headers(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            request
                .push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.send_bytes(request.as_bytes())
    }

    /// Sends a request to the API with the token and further headers.
    pub fn send_request(&self, method: &str, path: &str, more: &[(&str, &str)], body: &Value) -> Response {
        let (host, token) = (format!("127.0.0.1:{}", self.port), format!("Bearer {}", self.token));
        let mut headers = vec![("Host", host.as_str()), ("Authorization", token.as_str())];
        headers.extend(more);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send_with_headers(method, &format!("/api/v1{path}"), &headers, &body)
    }

    /// Sends a request that must succeed and returns its JSON.
    pub fn expect_ok(&self, method: &str, path: &str, body: Value) -> Value {
        let response = self.send_request(method, path, &[], &body);
        assert!(
            (200..300).contains(&response.status),
            "{method} {path}: {}\n{}",
            response.head,
            response.body
        );
        response.json()
    }

    /// Sends a request that must fail with this status and returns its error.
    pub fn expect_error(&self, method: &str, path: &str, body: Value, status: u16) -> Value {
        let response = self.send_request(method, path, &[], &body);
        assert_eq!(response.status, status, "{method} {path}: {}", response.body);
        response.json()["error"].clone()
    }

    /// Stops the server as Ctrl-C does and returns whether it exited successfully.
    pub fn stop(mut self) -> bool {
        signal(self.pid(), "INT");
        self.child.wait().unwrap().success()
    }

    /// Waits until the server has exited and returns whether it did so successfully.
    pub fn wait(mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.head, self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

fn decode_chunks(body: &str) -> String {
    let (mut rest, mut decoded) = (body, String::new());
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        decoded.push_str(&more[..size]);
        rest = more[size..].trim_start_matches("\r\n");
    }
    decoded
}

pub fn signal(pid: u32, name: &str) {
    let done =
        std::process::Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn second_server_points_to_running_one() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    let address_file = env.home_store().join("serve.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&address_file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // A second server, started in another project, points to the first with a working link and exits.
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let second = env.run_in(&other, &["serve", "--no-open"]);
    assert!(second.ok, "{}", second.stderr);
    assert!(second.stdout.contains(&format!("http://127.0.0.1:{}", server.port)), "{}", second.stdout);
    assert!(second.stdout.contains("already running"), "{}", second.stdout);
    let link = second.stdout.lines().find_map(|line| line.trim().split_once("/?ticket=")).unwrap().1;
    let host = format!("127.0.0.1:{}", server.port);
    let entry = server.send_with_headers("GET", &format!("/?ticket={link}"), &[("Host", &host)], "");
    assert_eq!(entry.status, 200, "{}", entry.body);
    let projects = server.expect_ok("GET", "/projects", Value::Null);
    assert!(projects["projects"].as_array().unwrap().iter().any(|path| path == &json!(other)), "{projects}");

    assert!(server.stop(), "Ctrl-C ends the server cleanly");
    assert!(!address_file.exists(), "the address of a stopped server is removed");
    // A killed server leaves its address file, and the next server ignores it.
    let server = Server::start(&env);
    server.kill();
    assert!(address_file.exists());
    let server = Server::start(&env);
    assert_eq!(server.expect_ok("GET", "/projects", Value::Null)["projects"][0], json!(env.project));
}

#[test]
fn occupied_port_is_reported() {
    let env = TestEnv::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let run = env.run(&["serve", "--no-open", "--port", &port]);
    assert!(!run.ok);
    assert!(run.stderr.contains(&format!("port {port} is already in use")), "{}", run.stderr);
}
