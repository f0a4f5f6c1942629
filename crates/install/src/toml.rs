//! Codex keeps its servers in TOML, changed in place like everything else.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use crate::Refusal;
use crate::command::is_tanmi;
use crate::doc::{Text, position};
use crate::hooks::NAME;

const SERVERS: &str = "mcp_servers";

fn parse(text: &Text) -> Result<DocumentMut, Refusal> {
    text.body.parse().map_err(|error: toml_edit::TomlError| {
        let (line, column) = position(&text.body, error.span().map_or(0, |span| span.start));
        Refusal::Broken { line, column, message: error.message().to_owned() }
    })
}

/// As text with the line ends that it had.
fn text_of(document: &DocumentMut, text: &Text) -> String {
    let out = document.to_string();
    if text.has_returns() { out.replace("\r\n", "\n").replace('\n', "\r\n") } else { out }
}

/// The line of a key, as it was.
fn line(document: &DocumentMut, text: &Text, path: &[&str]) -> usize {
    let mut at = 0;
    let mut table: Option<&dyn TableLike> = Some(document.as_table());
    for key in path {
        let Some((_, item)) = table.and_then(|table| table.iter().find(|(name, _)| name == key)) else {
            break;
        };
        at = item.span().map_or(at, |span| span.start);
        table = item.as_table_like();
    }
    position(&text.body, at).0
}

pub fn put_server(text: &Text, program: &str) -> Result<String, Refusal> {
    // With places in it, only to name lines: they are lost as soon as it can be changed.
    let mut document = parse(text)?;
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let Some(servers) = servers.as_table_like_mut() else {
        let line = line(&parse(text)?, text, &[SERVERS]);
        return Err(Refusal::WrongType { line, key: SERVERS.to_owned(), expected: "a table" });
    };
    let server = servers.entry(NAME).or_insert_with(|| Item::Table(Table::new()));
    let Some(server) = server.as_table_like_mut().filter(|server| server.is_empty() || is_ours(*server))
    else {
        let line = line(&parse(text)?, text, &[SERVERS, NAME]);
        return Err(Refusal::NameTaken { line, key: format!("{SERVERS}.{NAME}") });
    };
    if server.get("command").and_then(Item::as_str) != Some(program) {
        server.insert("command", value(program));
    }
    let args = server.get("args").and_then(Item::as_array);
    let is_set =
        args.is_some_and(|args| args.len() == 1 && args.get(0).and_then(|arg| arg.as_str()) == Some("mcp"));
    if !is_set {
        server.insert("args", value(Array::from_iter(["mcp"])));
    }
    Ok(text_of(&document, text))
}

fn is_ours(server: &dyn TableLike) -> bool {
    let program = server.get("command").and_then(Item::as_str);
    let runs_mcp =
        server.get("args").and_then(Item::as_array).and_then(|args| args.get(0)?.as_str()) == Some("mcp");
    program.is_some_and(is_tanmi) && runs_mcp
}

/// `None` if there is nothing of ours in it.
pub fn take_server(text: &Text, before: &str) -> Result<Option<String>, Refusal> {
    let mut document = parse(text)?;
    let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) else { return Ok(None) };
    if !servers.get(NAME).and_then(Item::as_table_like).is_some_and(is_ours) {
        return Ok(None);
    }
    servers.remove(NAME);
    let was_there = before.parse::<DocumentMut>().is_ok_and(|before| before.contains_key(SERVERS));
    if servers.is_empty() && !was_there {
        document.remove(SERVERS);
    }
    Ok(Some(text_of(&document, text)))
}

pub fn server_program(text: &Text) -> Result<Option<String>, Refusal> {
    let document = parse(text)?;
    let server = document.get(SERVERS).and_then(|servers| servers.get(NAME)).and_then(Item::as_table_like);
    let server = server.filter(|server| is_ours(*server));
    Ok(server.and_then(|server| server.get("command")?.as_str().map(String::from)))
}
