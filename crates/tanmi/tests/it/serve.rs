//! `tanmi serve` as its clients meet it: over a socket, with and without the token, one and two hundred of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::TestEnv;

mod api;
mod attacks;
mod openapi;
mod feed;
mod mcp;

pub struct Server {
    child: Child,
    pub port: u16,
    pub token: String,
    pub link: String,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Server {
    pub fn start(env: &TestEnv) -> Server {
        let mut child = env
            .command(&["serve", "--no-open", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let told: Value = loop {
            assert!(stdout.read_line(&mut said).unwrap() > 0, "{said}");
            if let Ok(told) = serde_json::from_str(&said) {
                break told;
            }
        };
        let kept = std::fs::read_to_string(env.home_store().join("serve.json")).unwrap();
        let kept: Value = serde_json::from_str(&kept).unwrap();
        Server {
            child,
            port: u16::try_from(kept["port"].as_u64().unwrap()).unwrap(),
            token: kept["token"].as_str().unwrap().to_owned(),
            link: told["link"].as_str().unwrap().to_owned(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends these bytes and reads to the end.
    pub fn raw(&self, request: &[u8]) -> Answer {
        // Status 0: nobody is there.
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return Answer { status: 0, head: String::new(), body: String::new() };
        };
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A server that refuses early may not read it all.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = if head.to_lowercase().contains("transfer-encoding: chunked") {
            unchunked(body)
        } else {
            body.to_owned()
        };
        Answer { status, head: head.to_owned(), body }
    }

    /// A request with exactly these headers.
    pub fn bare(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
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
        self.raw(request.as_bytes())
    }

    /// A request with the token, and further headers.
    pub fn ask(&self, method: &str, path: &str, more: &[(&str, &str)], body: &Value) -> Answer {
        let (host, token) = (format!("127.0.0.1:{}", self.port), format!("Bearer {}", self.token));
        let mut headers = vec![("Host", host.as_str()), ("Authorization", token.as_str())];
        headers.extend(more);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.bare(method, &format!("/api/v1{path}"), &headers, &body)
    }

    /// Must succeed.
    pub fn good(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.ask(method, path, &[], &body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}\n{}", answer.head, answer.body);
        answer.json()
    }

    /// Must fail with this status: the error.
    pub fn bad(&self, method: &str, path: &str, body: Value, status: u16) -> Value {
        let answer = self.ask(method, path, &[], &body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        answer.json()["error"].clone()
    }

    /// Ends it as Ctrl-C does, and says whether that was clean.
    pub fn stop(mut self) -> bool {
        signal(self.pid(), "INT");
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

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.head, self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

fn unchunked(body: &str) -> String {
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        whole.push_str(&more[..size]);
        rest = more[size..].trim_start_matches("\r\n");
    }
    whole
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
    let first = env.home_store().join("serve.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // The second one, from another project, names the first, brings a link that works, and ends.
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let second = env.run_in(&other, &["serve", "--no-open"]);
    assert!(second.ok, "{}", second.stderr);
    assert!(second.stdout.contains(&format!("http://127.0.0.1:{}", server.port)), "{}", second.stdout);
    assert!(second.stdout.contains("already running"), "{}", second.stdout);
    let link = second.stdout.lines().find_map(|line| line.trim().split_once("/?ticket=")).unwrap().1;
    let host = format!("127.0.0.1:{}", server.port);
    let entry = server.bare("GET", &format!("/?ticket={link}"), &[("Host", &host)], "");
    assert_eq!(entry.status, 200, "{}", entry.body);
    let projects = server.good("GET", "/projects", Value::Null);
    assert!(projects["projects"].as_array().unwrap().iter().any(|path| path == &json!(other)), "{projects}");

    assert!(server.stop(), "Ctrl-C is a clean end");
    assert!(!first.exists(), "nobody is sent to a place where nobody is");
    // Killed, it leaves its note, and the next one is not misled by it.
    let server = Server::start(&env);
    server.kill();
    assert!(first.exists());
    let server = Server::start(&env);
    assert_eq!(server.good("GET", "/projects", Value::Null)["projects"][0], json!(env.project));
}

#[test]
fn occupied_port_is_reported() {
    let env = TestEnv::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = env.run(&["serve", "--no-open", "--port", &port]);
    assert!(!run.ok);
    assert!(run.stderr.contains(&format!("port {port} is already in use")), "{}", run.stderr);
}
