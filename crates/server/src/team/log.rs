//! The log of the server: one JSON object per line. It contains no secrets: no headers, no bodies, no
//! queries, and paths only as templates.

use serde_json::{Value, json};
use tanmi_base::clock;

/// How much is logged. Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Error,
    /// Also what a person should look at.
    Warn,
    /// Also each request.
    Info,
    /// Also requests about health and metrics.
    Debug,
}

impl LogLevel {
    pub const WORDS: &[&str] = &["error", "warn", "info", "debug"];
    const ALL: [LogLevel; 4] = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug];

    pub fn as_str(self) -> &'static str {
        LogLevel::WORDS[self as usize]
    }

    pub fn from_word(word: &str) -> Option<LogLevel> {
        LogLevel::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// Writes the lines of the log.
pub struct Log {
    level: LogLevel,
    write_line: Box<dyn Fn(&str) + Send + Sync>,
}

impl Log {
    pub fn new(level: LogLevel, write_line: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log { level, write_line: Box::new(write_line) }
    }

    /// Writes a line about an event, with further fields.
    pub(crate) fn write(&self, level: LogLevel, event: &str, fields: Value) {
        if level > self.level {
            return;
        }
        let mut line = json!({"at": clock::utc_stamp(clock::now()), "level": level.as_str(), "event": event});
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        (self.write_line)(&line.to_string());
    }
}
