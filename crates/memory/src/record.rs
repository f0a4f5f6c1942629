//! One line of a memory file: a fact, a summary, a turn of a conversation, or a mark on one of them.
//!
//! Parsing is tolerant, because other tools wrote some of the lines. A line that cannot be parsed is a bad line
//! and stays.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tanmi_base::{Millis, hash, text};
use tanmi_index::{MemoryLetter, MemoryRow};

use crate::anchors::Anchors;
use crate::dates;

/// The type of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryType {
    /// World: general knowledge.
    W,
    /// Project history.
    B,
    /// Opinion or preference; needs a confidence.
    O,
}

impl MemoryType {
    pub const WORDS: &[&str] = &["W", "B", "O"];

    pub fn as_str(self) -> &'static str {
        match self {
            MemoryType::W => "W",
            MemoryType::B => "B",
            MemoryType::O => "O",
        }
    }

    pub fn from_word(word: &str) -> Option<MemoryType> {
        match word {
            "W" | "w" => Some(MemoryType::W),
            "B" | "b" => Some(MemoryType::B),
            "O" | "o" => Some(MemoryType::O),
            _ => None,
        }
    }
}

impl From<MemoryType> for MemoryLetter {
    fn from(memory_type: MemoryType) -> MemoryLetter {
        match memory_type {
            MemoryType::W => MemoryLetter::W,
            MemoryType::B => MemoryLetter::B,
            MemoryType::O => MemoryLetter::O,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Fact {
    pub id: String,
    pub memory_type: MemoryType,
    pub content: String,
    pub entities: Vec<String>,
    pub confidence: Option<f64>,
    pub at: Millis,
    pub session: String,
    /// The writer: `cli`, `agent`, `mcp`, `page`, `import`, `transcript`.
    pub by: String,
    /// Ids of the facts it supersedes.
    pub supersedes: Vec<String>,
    /// The files that it is about.
    pub anchors: Anchors,
}

#[derive(Clone, Debug)]
pub struct Summary {
    pub id: String,
    pub topic: String,
    pub summary: String,
    pub decisions: Vec<String>,
    pub todos: Vec<String>,
    pub at: Millis,
    pub session: String,
    pub by: String,
}

impl Fact {
    pub fn to_line(&self) -> String {
        let mut line = json!({
            "id": self.id, "type": "fact", "memory_type": self.memory_type.as_str(), "content": self.content,
            "entities": self.entities, "confidence": self.confidence, "timestamp": dates::iso(self.at),
            "source": {"session": self.session, "by": self.by},
        });
        if !self.supersedes.is_empty() {
            line["supersedes"] = json!(self.supersedes);
        }
        if let Some(line) = line.as_object_mut() {
            line.extend(self.anchors.to_fields());
        }
        line.to_string()
    }
}

impl Summary {
    pub fn to_line(&self) -> String {
        json!({
            "id": self.id, "type": "summary", "topic": self.topic, "summary": self.summary,
            "decisions": self.decisions, "todos": self.todos, "timestamp": dates::iso(self.at),
            "source": {"session": self.session, "by": self.by},
        })
        .to_string()
    }
}

/// Returns a line that marks another record. `by` is the id of the record that replaces it.
pub fn mark_line(kind: &str, target: &str, by: &str, at: Millis, writer: &str) -> String {
    let mut line =
        json!({"type": kind, "target": target, "timestamp": dates::iso(at), "source": {"by": writer}});
    if !by.is_empty() {
        line["by"] = json!(by);
    }
    line.to_string()
}

/// Returns a line for the start or end of a session, for the daily file.
pub fn session_line(kind: &str, session: &str, at: Millis, more: Value) -> String {
    let mut line = json!({"type": kind, "timestamp": dates::iso(at), "source": {"session": session}});
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    line.to_string()
}

/// Returns whether a line begins like those of [`session_line`], without parsing it. A session start reads
/// the lines that are not indexed yet, and in a project that is not searched most of them are of earlier
/// starts.
pub(crate) fn begins_as_session_line(line: &[u8]) -> bool {
    line.starts_with(br#"{"type":"session_"#)
}

/// The content of a line.
#[derive(Debug)]
pub enum Line {
    Record {
        row: Box<MemoryRow>,
        supersedes: Vec<String>,
    },
    Mark {
        target: String,
        hidden: bool,
        by: String,
    },
    /// The start or end of a session, or another line without a memory.
    Session,
    /// A line that cannot be parsed.
    Bad,
}

/// Begins the names of the files whose records wait for the server of a team.
pub(crate) const QUEUE_FILES: &str = "outbox/";
/// Begins the names of the files of a replica, if it is read together with other files.
pub(crate) const TEAM_FILES: &str = "team/";

/// Where a memory of a joined project is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// On this machine, for this user alone.
    Machine,
    /// On the server of the team, and in the replica.
    Team,
    /// On this machine, until the server can be reached.
    Outbox,
}

impl Holder {
    pub fn of(row: &MemoryRow) -> Holder {
        match row.file.as_str() {
            file if file.starts_with(TEAM_FILES) => Holder::Team,
            file if file.starts_with(QUEUE_FILES) => Holder::Outbox,
            _ => Holder::Machine,
        }
    }
}

/// Who saved a memory of a team. The server writes it into the line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub person: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
}

impl Author {
    /// Returns the author in the fields of a line.
    fn of_fields(fields: &Map<String, Value>) -> Option<Author> {
        Author::deserialize(fields.get("source")?).ok().filter(|author| !author.person.is_empty())
    }

    /// Returns the author of a memory, if it is one of a team.
    pub fn of(row: &MemoryRow) -> Option<Author> {
        if !row.more.contains("\"author\"") {
            return None;
        }
        let more: Value = serde_json::from_str(&row.more).ok()?;
        Author::deserialize(&more["author"]).ok()
    }

    /// Sets the author of a memory.
    pub fn set(author: Option<&Author>, row: &mut MemoryRow) {
        let mut more: Map<String, Value> = serde_json::from_str(&row.more).unwrap_or_default();
        more.remove("author");
        more.extend(author.map(|author| (String::from("author"), json!(author))));
        row.more = more_of(more);
    }
}

/// Parses a line. If the line has no type, the file name decides what it is.
pub fn read_line(line: &[u8], file: &str) -> Line {
    // At the start of the first line, or of a later one if files were joined.
    let line = text::without_bom(line);
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(line) else { return Line::Bad };
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let at = parse_time(&fields);
    match text("type") {
        // A write that waits for the server of a team. One without a line is not about memory.
        "queued" if file.starts_with(QUEUE_FILES) => match fields.get("line").and_then(Value::as_str) {
            Some(record) => read_line(record.as_bytes(), file),
            None => Line::Session,
        },
        "forget" | "tombstone" | "restore" | "replace" => Line::Mark {
            target: text("target").to_owned(),
            hidden: text("type") != "restore",
            by: text("by").to_owned(),
        },
        "session_start" | "session_end" => Line::Session,
        "summary" => parse_summary(&fields, line, file, at),
        _ if file == "sessions.jsonl" => parse_summary(&fields, line, file, at),
        _ => parse_record(&fields, line, file, at),
    }
}

/// Returns whether a record has a type of memory or none. A type that this version does not know would become W.
pub fn has_known_type(line: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line.trim_start_matches('\u{feff}')) else {
        return false;
    };
    let is_known = |key: &str| match fields.get(key).and_then(Value::as_str).unwrap_or_default() {
        "" | "fact" | "turn" | "summary" => true,
        word => MemoryType::from_word(word).is_some(),
    };
    is_known("type") && is_known("memory_type")
}

/// Returns the time of a line of any kind, if it has one.
pub fn time_of(line: &str) -> Option<Millis> {
    parse_time(serde_json::from_str::<Value>(line).ok()?.as_object()?)
}

fn parse_time(fields: &Map<String, Value>) -> Option<Millis> {
    match fields.get("timestamp").or_else(|| fields.get("ts"))? {
        Value::String(text) => dates::parse(text),
        Value::Number(number) => dates::parse(&number.to_string()),
        _ => None,
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(|item| item.as_str().map(String::from)).collect(),
        Some(Value::String(one)) if !one.is_empty() => vec![one.clone()],
        _ => Vec::new(),
    }
}

fn session_of(fields: &Map<String, Value>) -> String {
    let source = fields.get("source").and_then(|source| source.get("session")).and_then(Value::as_str);
    let own = || fields.get("session").and_then(Value::as_str);
    source.or_else(own).unwrap_or_default().to_owned()
}

fn parse_record(fields: &Map<String, Value>, line: &[u8], file: &str, at: Option<Millis>) -> Line {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let content = text("content");
    if content.trim().is_empty() {
        return Line::Bad;
    }
    // Speech without any type is a turn.
    let is_untyped_speech =
        text("type").is_empty() && text("memory_type").is_empty() && !text("speaker").is_empty();
    let is_turn = is_untyped_speech || text("type") == "turn";
    let letter = match (is_turn, MemoryType::from_word(text("memory_type"))) {
        (true, _) => MemoryLetter::T,
        (false, Some(kind)) => kind.into(),
        (false, None) => MemoryType::from_word(text("type")).map(MemoryLetter::from).unwrap_or_default(),
    };
    let confidence =
        fields.get("confidence").and_then(Value::as_f64).filter(|value| (0.0..=1.0).contains(value));
    let mut row = MemoryRow {
        id: id_of(fields, line),
        file: file.to_owned(),
        letter,
        content: content.to_owned(),
        entities: strings(fields.get("entities")).join("\n"),
        confidence,
        at,
        stamp: text("timestamp").to_owned(),
        session: session_of(fields),
        speaker: text("speaker").to_owned(),
        content_hash: content_hash(content),
        more: more_of(Anchors::of_fields(fields).to_fields()),
        ..MemoryRow::default()
    };
    add_author(&mut row, fields);
    Line::Record { row: Box::new(row), supersedes: strings(fields.get("supersedes")) }
}

fn add_author(row: &mut MemoryRow, fields: &Map<String, Value>) {
    if let Some(author) = Author::of_fields(fields) {
        Author::set(Some(&author), row);
    }
}

/// Returns further fields of a record as JSON; empty if there are none.
fn more_of(fields: Map<String, Value>) -> String {
    if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() }
}

fn parse_summary(fields: &Map<String, Value>, line: &[u8], file: &str, at: Option<Millis>) -> Line {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let (topic, summary) = (text("topic"), text("summary"));
    if topic.trim().is_empty() && summary.trim().is_empty() {
        return Line::Bad;
    }
    let (decisions, todos) = (strings(fields.get("decisions")), strings(fields.get("todos")));
    let mut content = vec![topic.to_owned(), summary.to_owned()];
    content.extend(decisions.iter().chain(&todos).cloned());
    content.retain(|part| !part.trim().is_empty());
    let mut row = MemoryRow {
        id: id_of(fields, line),
        file: file.to_owned(),
        letter: MemoryLetter::S,
        content: content.join("\n"),
        at,
        stamp: text("timestamp").to_owned(),
        session: session_of(fields),
        more: json!({"topic": topic, "summary": summary, "decisions": decisions, "todos": todos}).to_string(),
        content_hash: content_hash(&content.join("\n")),
        ..MemoryRow::default()
    };
    add_author(&mut row, fields);
    Line::Record { row: Box::new(row), supersedes: Vec::new() }
}

/// Returns the id of a record, or one derived from the line if it has none.
fn id_of(fields: &Map<String, Value>, line: &[u8]) -> String {
    match fields.get("id") {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => format!("line-{}", &hash::md5_hex(line)[..12]),
    }
}

/// Returns the entities of a memory.
pub fn entities(row: &MemoryRow) -> Vec<String> {
    row.entities.split('\n').filter(|one| !one.is_empty()).map(String::from).collect()
}

/// Returns a hash that is equal for texts that say the same. Case, spaces next to Chinese characters and the
/// final punctuation mark are ignored.
pub fn content_hash(content: &str) -> i64 {
    let chars: Vec<char> =
        content.trim().trim_end_matches(['.', '。', '!', '！', ';', '；']).chars().collect();
    let is_wide = |at: Option<usize>| {
        at.and_then(|at| chars.get(at)).is_some_and(|c| !c.is_ascii() && c.is_alphanumeric())
    };
    let mut plain = String::with_capacity(content.len());
    for (at, c) in chars.iter().enumerate() {
        if !c.is_whitespace() {
            plain.extend(c.to_lowercase());
        } else if !plain.ends_with(' ') && !is_wide(at.checked_sub(1)) && !is_wide(Some(at + 1)) {
            plain.push(' ');
        }
    }
    let digest = hash::md5_hex(plain.as_bytes());
    i64::from_str_radix(&digest[..15], 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> MemoryRow {
        match read_line(line.as_bytes(), "daily/x.jsonl") {
            Line::Record { row, .. } => *row,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn read_line_accepts_every_kind_and_rejects_bad_lines() {
        let fact = Fact {
            id: "fact-1".into(),
            memory_type: MemoryType::O,
            content: "喜欢简短的回答\n真的".into(),
            entities: vec!["风格".into()],
            confidence: Some(0.9),
            at: 1_683_504_000_000,
            session: "s".into(),
            by: "cli".into(),
            supersedes: vec!["fact-0".into()],
            anchors: Anchors::default(),
        };
        let read = row(&fact.to_line());
        assert_eq!(
            (read.letter, read.content.as_str(), read.session.as_str()),
            (MemoryLetter::O, "喜欢简短的回答\n真的", "s")
        );
        assert_eq!(
            (read.at, read.confidence, read.entities.as_str()),
            (Some(1_683_504_000_000), Some(0.9), "风格")
        );
        let odd =
            row(r#"{"content":"x","confidence":"high","timestamp":null,"entities":"one","type":"fact"}"#);
        assert_eq!(
            (odd.letter, odd.confidence, odd.at, odd.entities.as_str()),
            (MemoryLetter::W, None, None, "one")
        );
        assert!(odd.id.starts_with("line-"));
        for bad in ["", "{", "[]", "7", "{}", r#"{"content":" "}"#, "{\"content\":\"x\"", "\u{fffd}"] {
            assert!(matches!(read_line(bad.as_bytes(), "f"), Line::Bad), "{bad}");
        }
        let forget = read_line(mark_line("forget", "a", "", 5000, "cli").as_bytes(), "f");
        assert!(matches!(forget, Line::Mark { hidden: true, .. }), "{forget:?}");
        let start = session_line("session_start", "s", 0, json!({"platform": "cursor"}));
        assert!(matches!(read_line(start.as_bytes(), "f"), Line::Session) && start.contains("cursor"));
        assert!(begins_as_session_line(start.as_bytes()));
        assert!(!begins_as_session_line(br#"{"type":"fact","content":"x"}"#));
        let old = read_line(br#"{"topic":"t","summary":"s"}"#, "sessions.jsonl");
        assert!(
            matches!(old, Line::Record { row, .. } if row.letter == MemoryLetter::S && row.content == "t\ns")
        );
    }

    #[test]
    fn author_of_fact_and_summary_survives_export() {
        let author = Author { person: "bob".into(), machine: "desk".into() };
        for line in [
            r#"{"id":"a","content":"x","type":"W","source":{"by":"mcp","person":"bob","machine":"desk"}}"#,
            r#"{"id":"a","type":"summary","topic":"t","summary":"s","source":{"person":"bob","machine":"desk"}}"#,
        ] {
            let read = row(line);
            assert_eq!(Author::of(&read), Some(author.clone()), "{line}");
            let exported = crate::import::record_line(&read, 0);
            assert_eq!(Author::of(&row(&exported)), Some(author.clone()), "{exported}");
            assert!(!exported.contains("\"author\""), "{exported}");
        }
        assert_eq!(Author::of(&row(r#"{"content":"x","source":{"person":""}}"#)), None);
        assert_eq!(row(r#"{"content":"x","source":{"by":"cli"}}"#).more, "");
    }

    #[test]
    fn queued_line_is_a_record_in_the_outbox_only() {
        let fact = r#"{"id":"a","content":"x","type":"W"}"#;
        let queued = json!({"type": "queued", "key": "k", "line": fact}).to_string();
        let Line::Record { row, .. } = read_line(queued.as_bytes(), "outbox/1.json") else { panic!() };
        assert_eq!((row.id.as_str(), Holder::of(&row)), ("a", Holder::Outbox));
        assert!(matches!(read_line(queued.as_bytes(), "daily/x.jsonl"), Line::Bad));
        assert!(matches!(read_line(br#"{"type":"queued","run":{}}"#, "outbox/2.json"), Line::Session));
    }

    #[test]
    fn same_ignores_case_spacing_and_final_punctuation() {
        assert_eq!(content_hash("Use Redis for caching."), content_hash("use  redis for caching"));
        assert_eq!(content_hash("使用 JWT 认证。"), content_hash("使用JWT认证"));
        assert_ne!(content_hash("C++"), content_hash("C"));
        for (a, b) in
            [("24 小时", "25 小时"), ("> 5", "< 5"), ("x == y", "x != y"), ("1,5", "15"), ("👍", "👎")]
        {
            assert_ne!(content_hash(a), content_hash(b), "{a} {b}");
        }
    }
}
