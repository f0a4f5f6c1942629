//! HTTP requests to a team server, one after the other on a connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::PROJECT;

/// A complete response.
pub struct Response {
    pub status: u16,
    pub body: Value,
}

impl Response {
    /// Returns the code of an error, or an empty text.
    pub fn error_code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

pub struct Connection {
    reader: BufReader<TcpStream>,
    token: String,
}

impl Connection {
    /// Connects to a port of this machine. Each read waits at most `timeout`.
    pub fn open(port: u16, token: &str, timeout: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Connection { reader: BufReader::new(stream), token: token.to_owned() })
    }

    /// Returns the port of this end, which no other open connection of this machine has.
    pub fn local_port(&self) -> u16 {
        self.reader.get_ref().local_addr().map_or(0, |address| address.port())
    }

    /// Runs a command and returns the response.
    pub fn run(&mut self, body: &Value) -> io::Result<Response> {
        self.send("POST", "run", &body.to_string())?;
        self.receive()
    }

    /// Reads a path of the project.
    pub fn get(&mut self, path: &str) -> io::Result<Response> {
        self.send("GET", path, "")?;
        self.receive()
    }

    /// Sends a request without waiting for the response.
    pub fn send(&mut self, method: &str, path: &str, body: &str) -> io::Result<()> {
        let request = format!(
            "{method} /team/v1/{PROJECT}/{path} HTTP/1.1\r\nHost: team\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.reader.get_mut().write_all(request.as_bytes())
    }

    /// Reads a response. One that ends early is an error: its request has an unknown outcome.
    pub fn receive(&mut self) -> io::Result<Response> {
        let status_line = self.read_line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| malformed(&status_line))?;
        let mut length = None;
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let mut body = vec![0; length.ok_or_else(|| malformed("no Content-Length"))?];
        self.reader.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).map_err(|error| malformed(&error.to_string()))?;
        Ok(Response { status, body })
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed response: {what}"))
}
