//! Our MCP server in the TOML settings of a client. Our table is appended as text, so that the rest of the file stays
//! unchanged. Only where TOML does not allow this, the parsed document is edited.

use tanmi_platform::ClientSpec;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use crate::Refusal;
use crate::command::is_tanmi;
use crate::doc::{TextFile, position};
use crate::hooks::NAME;

const SERVERS: &str = "mcp_servers";

fn parse(text: &str) -> Result<DocumentMut, Refusal> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        Refusal::Broken { line, column, message: error.message().to_owned() }
    })
}

/// Returns the line of a key.
fn line(text: &str, path: &[&str]) -> usize {
    let Ok(document) = toml_edit::Document::parse(text) else { return 1 };
    let mut at = 0;
    let mut table: Option<&dyn TableLike> = Some(document.as_table());
    for key in path {
        let Some((_, item)) = table.and_then(|table| table.iter().find(|(name, _)| name == key)) else {
            break;
        };
        at = item.span().map_or(at, |span| span.start);
        table = item.as_table_like();
    }
    position(text, at).0
}

/// Returns the text of our table.
fn own_table(program: &str, line_end: &str) -> String {
    let program = value(program).to_string();
    let text = format!("[{SERVERS}.{NAME}]\ncommand = {}\nargs = [\"mcp\"]\n", program.trim());
    text.replace('\n', line_end)
}

fn line_end(text: &TextFile) -> &'static str {
    if text.has_crlf() { "\r\n" } else { "\n" }
}

pub fn add_server(text: &TextFile, program: &str) -> Result<String, Refusal> {
    let mut document = parse(&text.body)?;
    let server = document.get(SERVERS).and_then(|servers| servers.get(NAME));
    if server.is_none() {
        let gap = match text.body.as_str() {
            "" => "",
            body if body.ends_with('\n') => line_end(text),
            _ => &line_end(text).repeat(2),
        };
        let appended = format!("{}{gap}{}", text.body, own_table(program, line_end(text)));
        // Invalid after dotted keys or an inline table with this name.
        if appended.parse::<DocumentMut>().is_ok() {
            return Ok(appended);
        }
    }
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let Some(servers) = servers.as_table_like_mut() else {
        let line = line(&text.body, &[SERVERS]);
        return Err(Refusal::WrongType { line, key: SERVERS.to_owned(), expected: "a table" });
    };
    let server = servers.entry(NAME).or_insert_with(|| Item::Table(Table::new()));
    let Some(server) = server.as_table_like_mut().filter(|server| server.is_empty() || is_ours(*server))
    else {
        let line = line(&text.body, &[SERVERS, NAME]);
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
    Ok(document.to_string())
}

fn is_ours(server: &dyn TableLike) -> bool {
    let program = server.get("command").and_then(Item::as_str);
    let runs_mcp =
        server.get("args").and_then(Item::as_array).and_then(|args| args.get(0)?.as_str()) == Some("mcp");
    program.is_some_and(is_tanmi) && runs_mcp
}

/// Returns the text without our server, or `None` if the server is not there.
pub fn remove_server(text: &TextFile, before: &str) -> Result<Option<String>, Refusal> {
    let mut document = parse(&text.body)?;
    let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) else { return Ok(None) };
    let Some(server) = servers.get(NAME).and_then(Item::as_table_like).filter(|server| is_ours(*server))
    else {
        return Ok(None);
    };
    // If our table is unchanged, exactly its text is removed.
    let program = server.get("command").and_then(Item::as_str).unwrap_or_default();
    for end in ["\r\n", "\n"] {
        let own_table = own_table(program, end);
        if text.body.matches(&own_table).count() == 1
            && let Some((head, tail)) = text.body.split_once(&own_table)
        {
            let head =
                head.strip_suffix(&end.repeat(2)).map_or(head.to_owned(), |head| format!("{head}{end}"));
            let left = format!("{head}{tail}");
            let is_removed = left.parse::<DocumentMut>().is_ok_and(|left| !has_server(&left));
            if is_removed {
                return Ok(Some(left));
            }
        }
    }
    let comments = servers.get(NAME).map(comments_of).unwrap_or_default();
    servers.remove(NAME);
    let was_there = before.parse::<DocumentMut>().is_ok_and(|before| before.contains_key(SERVERS));
    let is_unused =
        servers.is_empty() && document.get(SERVERS).is_none_or(|servers| comments_of(servers).is_empty());
    if is_unused && !was_there {
        document.remove(SERVERS);
    }
    Ok(Some(format!("{document}{comments}")))
}

fn has_server(document: &DocumentMut) -> bool {
    document.get(SERVERS).and_then(|servers| servers.get(NAME)).is_some()
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
    let document = parse(&text.body)?;
    let server = document.get(SERVERS).and_then(|servers| servers.get(NAME)).and_then(Item::as_table_like);
    let server = server.filter(|server| is_ours(*server));
    Ok(server.and_then(|server| server.get("command")?.as_str().map(String::from)))
}

/// Returns the settings that disable our hooks or server.
pub fn disabling_keys(text: &TextFile, client: &ClientSpec) -> Vec<String> {
    let Ok(document) = parse(&text.body) else { return Vec::new() };
    let at = |path: &[&str]| {
        let item = path.iter().try_fold(document.as_item(), |item, key| item.get(key));
        item.and_then(Item::as_bool)
    };
    let server_switch: (&[&str], bool) = (&[SERVERS, NAME, "enabled"], false);
    let hook_switches = client.recipe.off_switches.iter().map(|switch| (switch.path, switch.value));
    [server_switch]
        .into_iter()
        .chain(hook_switches)
        .filter(|(path, value)| at(path) == Some(*value))
        .map(|(path, value)| format!("{} = {value}", path.join(".")))
        .collect()
}
