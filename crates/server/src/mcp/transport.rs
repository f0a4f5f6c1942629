//! One JSON-RPC message per line on stdin and stdout.
//!
//! Unlike the transport that comes with the SDK, this one answers what it cannot read: a client that sent garbage, or
//! twenty megabytes, gets an error instead of waiting for ever.

use std::io;
use std::sync::Arc;

use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

/// Far above the largest text any tool takes.
const MAX_LINE: usize = 4 << 20;
/// How much of a line that is too long is kept, to find its id.
const HEAD: usize = 512;

pub struct Stdio {
    reader: BufReader<StdioReader>,
    writer: Arc<Mutex<StdioWriter>>,
    /// What has been read of the present line. Here and not in a future, because `receive` may be dropped half-way.
    line: Vec<u8>,
    /// The present line is too long: the rest of it is thrown away.
    overflow: bool,
}

enum LineRead {
    Line,
    TooLong,
    End,
}

impl Stdio {
    pub fn new() -> Stdio {
        let (reader, writer) = stdio_pipes();
        let reader = BufReader::with_capacity(64 << 10, reader);
        Stdio { reader, writer: Arc::new(Mutex::new(writer)), line: Vec::new(), overflow: false }
    }

    /// The next whole line is in `self.line`. Half a line at the end of the input is nobody's message.
    async fn read_line(&mut self) -> LineRead {
        loop {
            let Ok(available) = self.reader.fill_buf().await else { return LineRead::End };
            if available.is_empty() {
                return LineRead::End;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if !self.overflow {
                self.line.extend_from_slice(&available[..end.unwrap_or(available.len())]);
                if self.line.len() > MAX_LINE {
                    self.line.truncate(HEAD);
                    self.overflow = true;
                }
            }
            self.reader.consume(taken);
            if end.is_some() {
                return if std::mem::take(&mut self.overflow) { LineRead::TooLong } else { LineRead::Line };
            }
        }
    }

    /// The message of the present line, or the answer to what is none.
    fn parse(&self) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
        let line = self.line.trim_ascii();
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if line.is_empty() {
            return Ok(None);
        }
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => return Err(failure(-32700, &format!("malformed JSON: {error}"), Value::Null)),
        };
        let id = value.get("id").cloned().unwrap_or(Value::Null);
        match serde_json::from_value(value) {
            Ok(message) => Ok(Some(message)),
            // An odd notification is nobody's loss.
            Err(_) if id.is_null() => Ok(None),
            Err(error) => Err(failure(-32600, &format!("invalid request: {error}"), id)),
        }
    }
}

fn failure(code: i64, message: &str, id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// The id of a message of which only the beginning is known.
fn id_in(head: &[u8]) -> Value {
    let head = String::from_utf8_lossy(head);
    let Some((_, rest)) = head.split_once("\"id\"") else { return Value::Null };
    let rest = rest.trim_start().trim_start_matches(':').trim_start();
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    match serde_json::from_str(rest[..end].trim()) {
        Ok(id @ (Value::Number(_) | Value::String(_))) => id,
        _ => Value::Null,
    }
}

async fn write_line(writer: &Mutex<StdioWriter>, mut bytes: Vec<u8>) -> io::Result<()> {
    bytes.push(b'\n');
    let mut writer = writer.lock().await;
    writer.write_all(&bytes).await?;
    writer.flush().await
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move { write_line(&writer, serde_json::to_vec(&item)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let parsed = match self.read_line().await {
                LineRead::End => return None,
                LineRead::Line => self.parse(),
                LineRead::TooLong => {
                    let message = format!("the message is longer than {MAX_LINE} bytes");
                    Err(failure(-32600, &message, id_in(&self.line)))
                }
            };
            self.line.clear();
            match parsed {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(answer) => {
                    let bytes = serde_json::to_vec(&answer).unwrap_or_default();
                    write_line(&self.writer, bytes).await.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.writer.lock().await.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_message_cut_short() {
        assert_eq!(id_in(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"yyyy"#), 7);
        assert_eq!(id_in(br#"{"id" : "a-1", "method":"#), "a-1");
        assert_eq!(id_in(br#"{"method":"tools/call","params":{"x":"#), Value::Null);
        assert_eq!(id_in(b"\"id\":{\"x\":1}"), Value::Null);
    }
}
