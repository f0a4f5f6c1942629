//! The stdio transport: one JSON-RPC message per line.
//!
//! Unlike the transport of the SDK, it responds to a malformed or too long message with an error. With the SDK the
//! client would wait forever. It also stops reading while too many requests are unanswered, see [`PendingCalls`].

use std::io;
use std::sync::Arc;

use rmcp::model::JsonRpcMessage;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::calls::PendingCalls;

/// The maximum length of a message in bytes, far above the largest text that a tool accepts.
const MAX_LINE: usize = 4 << 20;
/// The number of bytes of a too long line that are kept, to find the id of the message.
const HEAD_BYTES: usize = 512;

pub struct Stdio {
    reader: BufReader<StdioReader>,
    writer: Arc<Mutex<StdioWriter>>,
    calls: PendingCalls,
    /// The part of the current line that was read so far. Kept here, because the future of `receive` may be dropped
    /// before the line is complete.
    line: Vec<u8>,
    /// Whether the current line is too long. The rest of such a line is discarded.
    is_too_long: bool,
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
        let (writer, calls) = (Arc::new(Mutex::new(writer)), PendingCalls::new());
        Stdio { reader, writer, calls, line: Vec::new(), is_too_long: false }
    }

    /// Reads the next complete line into `self.line`. An incomplete line at the end of the input is dropped.
    async fn read_line(&mut self) -> LineRead {
        loop {
            let Ok(available) = self.reader.fill_buf().await else { return LineRead::End };
            if available.is_empty() {
                return LineRead::End;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if !self.is_too_long {
                self.line.extend_from_slice(&available[..end.unwrap_or(available.len())]);
                if self.line.len() > MAX_LINE {
                    self.line.truncate(HEAD_BYTES);
                    self.is_too_long = true;
                }
            }
            self.reader.consume(taken);
            if end.is_some() {
                let was_too_long = std::mem::take(&mut self.is_too_long);
                return if was_too_long { LineRead::TooLong } else { LineRead::Line };
            }
        }
    }

    /// Parses the current line. `Ok(None)` if it needs no response; `Err` is the error response to an invalid message.
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
        // A batch has no meaning in this protocol, and no other value is a message.
        if !value.is_object() {
            return Err(failure(-32600, "invalid request: a message is a JSON object", Value::Null));
        }
        let id = value.get("id").cloned().unwrap_or(Value::Null);
        match serde_json::from_value(value) {
            Ok(message) => Ok(Some(message)),
            // An invalid notification is ignored: notifications get no response.
            Err(_) if id.is_null() => Ok(None),
            Err(error) => Err(failure(-32600, &format!("invalid request: {error}"), id)),
        }
    }
}

fn failure(code: i64, message: &str, id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Returns the id of a message of which only the beginning is known; null if it is not found.
fn id_from_head(head: &[u8]) -> Value {
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
        let place = match &item {
            JsonRpcMessage::Response(response) => self.calls.end(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.calls.end(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        async move {
            let written = write_line(&writer, serde_json::to_vec(&item)?).await;
            // The place is free only now that the client has taken the response.
            drop(place);
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let place = self.calls.wait().await?;
            let parsed = match self.read_line().await {
                LineRead::End => return None,
                LineRead::Line => self.parse(),
                LineRead::TooLong => {
                    let message = format!("the message is longer than {MAX_LINE} bytes");
                    Err(failure(-32600, &message, id_from_head(&self.line)))
                }
            };
            self.line.clear();
            let tracked = parsed.and_then(|message| {
                let Some(mut message) = message else { return Ok(None) };
                match self.calls.track(&mut message, Arc::clone(&place)) {
                    Ok(()) => Ok(Some(message)),
                    Err(id) => {
                        let id = serde_json::to_value(id).unwrap_or_default();
                        Err(failure(-32600, "the id of the request is in use", id))
                    }
                }
            });
            match tracked {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(response) => {
                    let writer = Arc::clone(&self.writer);
                    // A task of its own, because the future of `receive` may be dropped in the middle of the line.
                    tokio::spawn(async move {
                        let bytes = serde_json::to_vec(&response).unwrap_or_default();
                        let _ = write_line(&writer, bytes).await;
                        drop(place);
                    });
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
    fn id_from_head_truncated_message_returns_id_or_null() {
        assert_eq!(id_from_head(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"yyyy"#), 7);
        assert_eq!(id_from_head(br#"{"id" : "a-1", "method":"#), "a-1");
        assert_eq!(id_from_head(br#"{"method":"tools/call","params":{"x":"#), Value::Null);
        assert_eq!(id_from_head(b"\"id\":{\"x\":1}"), Value::Null);
    }
}
