//! A browser controlled over the WebDriver protocol: Debian's chromium with its chromedriver.
//!
//! Without them, browser tests print that they were skipped; in CI they fail.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser session; ended when dropped.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

const FLAGS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
];

impl Browser {
    /// Starts a browser. Returns `None` if none is installed.
    pub fn open() -> Option<Browser> {
        let started =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = started else {
            assert!(std::env::var_os("CI").is_none(), "chromedriver is missing: .ci/run installs it");
            eprintln!("skipped: chromedriver is not installed (Debian: chromium chromium-driver)");
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().unwrap().unwrap();
            let word = line.trim_end_matches('.').rsplit(' ').next().unwrap_or_default();
            if let (true, Ok(port)) = (line.contains("successfully"), word.parse()) {
                break port;
            }
        };
        // Further output must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().unwrap();
        let mut flags: Vec<String> = FLAGS.iter().map(ToString::to_string).collect();
        flags.push(format!("--user-data-dir={}", profile.path().display()));
        let mut browser = Browser { driver, port, session: String::new(), _profile: profile };
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let created =
            browser.send("POST", "/session", &capabilities).unwrap_or_else(|error| panic!("{error}"));
        browser.session = created["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|error| error.to_string())?;
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let (port, length) = (self.port, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let body = read_response(stream).map_err(|error| error.to_string())?;
        let value = serde_json::from_str::<Value>(&body).map_err(|error| format!("{error}: {body}"))?;
        let value = value["value"].clone();
        match value.get("error").and_then(Value::as_str) {
            Some(error) => Err(format!("{error}: {}", value["message"].as_str().unwrap_or_default())),
            None => Ok(value),
        }
    }

    fn command(&self, method: &str, path: &str, body: Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.send(method, &path, &body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn navigate(&self, url: &str) {
        self.command("POST", "/url", json!({"url": url}));
    }

    /// Runs a JavaScript function body in the page.
    pub fn js(&self, script: &str, arguments: Value) -> Value {
        self.command("POST", "/execute/sync", json!({"script": script, "args": arguments}))
    }

    /// Runs a JavaScript function body that awaits.
    pub fn js_async(&self, script: &str, arguments: Value) -> Value {
        let script = format!(
            "const done = arguments[arguments.length - 1]; (async () => {{ {script} }})()\
             .then((value) => done({{value}}), (error) => done({{error: String(error)}}));"
        );
        let result = self.command("POST", "/execute/async", json!({"script": script, "args": arguments}));
        assert!(result.get("error").is_none(), "{result}");
        result["value"].clone()
    }

    /// Runs a DevTools command, for features that WebDriver does not have.
    pub fn cdp(&self, command: &str, params: Value) -> Value {
        self.command("POST", "/goog/cdp/execute", json!({"cmd": command, "params": params}))
    }

    pub fn resize(&self, width: u32, height: u32) {
        self.command("POST", "/window/rect", json!({"width": width, "height": height}));
    }

    /// Returns the visible text of the page.
    pub fn text(&self) -> String {
        self.js("return document.body.innerText", json!([])).as_str().unwrap_or_default().to_owned()
    }

    /// Waits for a visible element that matches the selector and contains the text.
    pub fn find(&self, selector: &str, text: &str) -> String {
        let script = "const [selector, text] = arguments;
            return [...document.querySelectorAll(selector)].find((e) => e.checkVisibility() && (e.innerText ?? e.textContent).includes(text)) || null";
        let what = format!("{selector} with {text:?}");
        self.wait_until(&what, || {
            let found = self.js(script, json!([selector, text]));
            found.as_object()?.values().next()?.as_str().map(String::from)
        })
    }

    /// Clicks as a mouse does: an invisible or covered element is an error.
    pub fn click(&self, selector: &str, text: &str) {
        // The page may be rendered again between the search and the click.
        self.wait_until(&format!("click {selector} {text:?}"), || {
            let element = self.find(selector, text);
            let path = format!("/session/{}/element/{element}/click", self.session);
            self.send("POST", &path, &json!({})).ok()
        });
    }

    /// Replaces the content of a field.
    pub fn type_into(&self, selector: &str, text: &str) {
        // Retried for the same reason as a click.
        self.wait_until(&format!("type into {selector}"), || {
            let path = format!("/session/{}/element/{}", self.session, self.find(selector, ""));
            self.send("POST", &format!("{path}/clear"), &json!({})).ok()?;
            self.send("POST", &format!("{path}/value"), &json!({"text": text})).ok()
        });
    }

    /// Sends keys to the focused element. WebDriver encodes special keys as `\u{e015}` and similar characters.
    pub fn keys(&self, keys: &str) {
        let press =
            |key: char| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        self.command(
            "POST",
            "/actions",
            json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        );
    }

    /// Waits until the page shows this text.
    pub fn wait_for_text(&self, text: &str) {
        let found = self.poll(|| self.text().contains(text).then_some(()));
        assert!(found.is_some(), "the page never showed {text:?}:\n{}", self.text());
    }

    pub fn wait_until<T>(&self, what: &str, check: impl FnMut() -> Option<T>) -> T {
        self.poll(check).unwrap_or_else(|| panic!("{what}: not found in:\n{}", self.text()))
    }

    fn poll<T>(&self, mut check: impl FnMut() -> Option<T>) -> Option<T> {
        let started_at = Instant::now();
        while started_at.elapsed() < Duration::from_secs(30) {
            if let Some(found) = check() {
                return Some(found);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Returns the errors in the browser console.
    pub fn console_errors(&self) -> Vec<String> {
        let entries = self.command("POST", "/se/log", json!({"type": "browser"}));
        let entries = entries.as_array().cloned().unwrap_or_default().into_iter();
        let severe = entries.filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Saves a screenshot in the folder `TANMI_TEST_SHOTS`, if it is set.
    pub fn save_screenshot(&self, name: &str) {
        let Some(dir) = std::env::var_os("TANMI_TEST_SHOTS") else { return };
        let shot = self.command("GET", "/screenshot", Value::Null);
        let dir = std::path::PathBuf::from(dir);
        std::fs::create_dir_all(&dir).unwrap();
        let mut file = std::fs::File::create(dir.join(format!("{name}.png"))).unwrap();
        file.write_all(&base64(shot.as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Reads the body of a response by its content length, because the driver keeps the connection open.
fn read_response(stream: TcpStream) -> std::io::Result<String> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn base64(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
