//! Our MCP server in the TOML settings of a client. It is added and updated as text, so that the rest of the file stays
//! unchanged. Only a server that a person edited is removed from the parsed document.

use std::ops::Range;

use tanmi_platform::ClientSpec;
use toml_edit::{Document, DocumentMut, Item, TableLike, value};

use crate::Refusal;
use crate::command::is_tanmi;
use crate::doc::{TextFile, position};
use crate::hooks::NAME;

const SERVERS: &str = "mcp_servers";

fn broken(text: &str, error: &toml_edit::TomlError) -> Refusal {
    let (line, column) = position(text, error.span().map_or(0, |span| span.start));
    Refusal::Broken { line, column, message: error.message().to_owned() }
}

/// Parses a text. The items know their positions in it.
fn parse(text: &str) -> Result<Document<&str>, Refusal> {
    Document::parse(text).map_err(|error| broken(text, &error))
}

/// Returns the item at a path.
fn find<'a>(document: &'a Document<&str>, path: &[&str]) -> Option<&'a Item> {
    path.iter().try_fold(document.as_item(), |item, key| item.get(key))
}

/// Returns the line of a key.
fn line(text: &str, document: &Document<&str>, path: &[&str]) -> usize {
    let deepest = (1..=path.len()).rev().find_map(|depth| find(document, &path[..depth])?.span());
    position(text, deepest.map_or(0, |span| span.start)).0
}

fn quoted(program: &str) -> String {
    value(program).to_string().trim().to_owned()
}

/// Returns the keys of our server, one per line.
fn own_keys(program: &str, line_end: &str) -> String {
    format!("command = {}{line_end}args = [\"mcp\"]{line_end}", quoted(program))
}

/// Returns the text of our table.
fn own_table(program: &str, line_end: &str) -> String {
    format!("[{SERVERS}.{NAME}]{line_end}{}", own_keys(program, line_end))
}

/// Returns our server as a value on one line.
fn own_value(program: &str) -> String {
    format!("{{ command = {}, args = [\"mcp\"] }}", quoted(program))
}

/// Returns our server as the first and as the only entry of a table on one line.
fn own_entries(program: &str) -> [String; 2] {
    let value = own_value(program);
    [format!(" {NAME} = {value},"), format!(" {NAME} = {value} ")]
}

/// Returns the text with other text in place of a range.
fn replace(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

pub fn add_server(text: &TextFile, program: &str) -> Result<String, Refusal> {
    let document = parse(&text.body)?;
    let wrong_type = || {
        let line = line(&text.body, &document, &[SERVERS]);
        Refusal::WrongType { line, key: SERVERS.to_owned(), expected: "a table" }
    };
    let servers = document.get(SERVERS);
    if servers.is_some_and(|servers| !servers.is_table_like()) {
        return Err(wrong_type());
    }
    if let Some(server) = servers.and_then(|servers| servers.get(NAME)) {
        return update_server(text, server, program).ok_or_else(|| {
            let line = line(&text.body, &document, &[SERVERS, NAME]);
            Refusal::NameTaken { line, key: format!("{SERVERS}.{NAME}") }
        });
    }
    let added = match servers.and_then(Item::as_inline_table) {
        None => append_table(text, program),
        Some(table) => {
            let [first, only] = own_entries(program);
            let at = table.span().ok_or_else(wrong_type)?.start + 1;
            replace(&text.body, at..at, if table.is_empty() { &only } else { &first })
        }
    };
    let is_added = parse(&added).is_ok_and(|document| find(&document, &[SERVERS, NAME]).is_some());
    if is_added { Ok(added) } else { Err(wrong_type()) }
}

fn append_table(text: &TextFile, program: &str) -> String {
    let end = text.line_end();
    let gap = match text.body.as_str() {
        "" => "",
        body if body.ends_with('\n') => end,
        _ => &end.repeat(2),
    };
    format!("{}{gap}{}", text.body, own_table(program, end))
}

/// Returns the text with the program of our server updated, or `None` if the server is not ours.
fn update_server(text: &TextFile, item: &Item, program: &str) -> Option<String> {
    let server = item.as_table_like()?;
    if server.is_empty() {
        return fill_server(text, item, program);
    }
    if !is_ours(server) {
        return None;
    }
    let (command, args) = (server.get("command")?, server.get("args")?);
    let mut edits = Vec::new();
    if command.as_str() != Some(program) {
        edits.push((command.span()?, quoted(program)));
    }
    if args.as_array().is_none_or(|args| args.len() != 1) {
        edits.push((args.span()?, String::from("[\"mcp\"]")));
    }
    // From the end of the text to its start, so that the positions stay right.
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    Some(edits.into_iter().fold(text.body.clone(), |text, (range, with)| replace(&text, range, &with)))
}

/// Returns the text with our keys in an empty table with our name.
fn fill_server(text: &TextFile, item: &Item, program: &str) -> Option<String> {
    let (span, end) = (item.span()?, text.line_end());
    if item.is_value() {
        return Some(replace(&text.body, span, &own_value(program)));
    }
    let keys = own_keys(program, end);
    Some(match text.body[span.end..].find('\n') {
        Some(at) => replace(&text.body, span.end + at + 1..span.end + at + 1, &keys),
        None => format!("{}{end}{keys}", text.body),
    })
}

fn is_ours(server: &dyn TableLike) -> bool {
    let program = server.get("command").and_then(Item::as_str);
    let runs_mcp =
        server.get("args").and_then(Item::as_array).and_then(|args| args.get(0)?.as_str()) == Some("mcp");
    program.is_some_and(is_tanmi) && runs_mcp
}

/// Returns the text without our server, or `None` if the server is not there.
pub fn remove_server(text: &TextFile, before: &str) -> Result<Option<String>, Refusal> {
    let document = parse(&text.body)?;
    let Some(program) = program_of(&document) else { return Ok(None) };
    let left = remove_own_text(&text.body, &program);
    match left.filter(|left| parse(left).is_ok_and(|left| find(&left, &[SERVERS, NAME]).is_none())) {
        Some(left) => Ok(Some(left)),
        None => remove_edited(text, before).map(Some),
    }
}

/// Returns the text without our server if the server is there as we wrote it.
fn remove_own_text(text: &str, program: &str) -> Option<String> {
    let split = |own: &str| text.split_once(own).filter(|_| text.matches(own).count() == 1);
    for end in ["\r\n", "\n"] {
        if let Some((head, tail)) = split(&own_table(program, end)) {
            let gap = end.repeat(2);
            return Some(match head.strip_suffix(&gap) {
                Some(head) => format!("{head}{end}{tail}"),
                None => format!("{head}{tail}"),
            });
        }
    }
    own_entries(program).iter().find_map(|own| split(own).map(|(head, tail)| format!("{head}{tail}")))
}

/// Returns the text without a server that a person edited. Comments stay.
fn remove_edited(text: &TextFile, before: &str) -> Result<String, Refusal> {
    let mut document: DocumentMut = text.body.parse().map_err(|error| broken(&text.body, &error))?;
    let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) else {
        return Ok(text.body.clone());
    };
    let comments = servers.remove(NAME).as_ref().map(comments_of).unwrap_or_default();
    let is_empty = servers.is_empty();
    let was_there = parse(before).is_ok_and(|before| find(&before, &[SERVERS]).is_some());
    let is_unused = is_empty && document.get(SERVERS).is_none_or(|servers| comments_of(servers).is_empty());
    if is_unused && !was_there {
        document.remove(SERVERS);
    }
    // The document is written with LF.
    Ok(text.restore_line_ends(&format!("{document}{comments}")))
}

/// Returns the comments in a table, so that they survive its removal.
fn comments_of(item: &Item) -> String {
    let raw =
        |raw: Option<&toml_edit::RawString>| raw.and_then(|raw| raw.as_str()).unwrap_or_default().to_owned();
    let mut all = String::new();
    if let Some(table) = item.as_table() {
        all.push_str(&raw(table.decor().prefix()));
        all.push_str(&raw(table.decor().suffix()));
        for (key, value) in table.iter() {
            if let Some(key) = table.key(key) {
                all.push_str(&raw(key.leaf_decor().prefix()));
            }
            if let Some(value) = value.as_value() {
                all.push_str(&raw(value.decor().suffix()));
            }
            all.push('\n');
        }
    }
    let lines = all.lines().map(str::trim).filter(|line| line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

pub fn server_program(text: &TextFile) -> Result<Option<String>, Refusal> {
    Ok(program_of(&parse(&text.body)?))
}

/// Returns the program of our server.
fn program_of(document: &Document<&str>) -> Option<String> {
    let server = find(document, &[SERVERS, NAME])?.as_table_like().filter(|server| is_ours(*server))?;
    server.get("command")?.as_str().map(String::from)
}

/// Returns the settings that disable our hooks or server.
pub fn disabling_keys(text: &TextFile, client: &ClientSpec) -> Vec<String> {
    let Ok(document) = parse(&text.body) else { return Vec::new() };
    let at = |path: &[&str]| find(&document, path).and_then(Item::as_bool);
    let server_switch: (&[&str], bool) = (&[SERVERS, NAME, "enabled"], false);
    let hook_switches = client.recipe.off_switches.iter().map(|switch| (switch.path, switch.value));
    [server_switch]
        .into_iter()
        .chain(hook_switches)
        .filter(|(path, value)| at(path) == Some(*value))
        .map(|(path, value)| format!("{} = {value}", path.join(".")))
        .collect()
}
