//! Line ends and byte order marks: an installation, repeated installations and an uninstall keep them.

use proptest::prelude::*;

use super::*;

/// The ends of lines, in turn, and whether the text begins with a byte order mark and ends with a line end.
type Style = (Vec<bool>, bool, bool);

fn any_style() -> impl Strategy<Value = Style> {
    let ends = prop_oneof![
        Just(vec![false]),
        Just(vec![true]),
        prop::collection::vec(any::<bool>(), 1..6), // mixed
    ];
    (ends, any::<bool>(), any::<bool>())
}

fn styled(text: &str, (ends, has_bom, has_last_end): &Style) -> String {
    let mut out = String::from(if *has_bom { "\u{feff}" } else { "" });
    let mut ends = ends.iter().cycle();
    for line in text.trim_end_matches('\n').split('\n') {
        out.push_str(line);
        out.push_str(if ends.next() == Some(&true) { "\r\n" } else { "\n" });
    }
    if !has_last_end {
        out.truncate(out.trim_end_matches(['\r', '\n']).len());
    }
    out
}

/// Lines of a TOML file. A number in place of `#N` makes the keys differ.
const TOML: &[&str] = &[
    "# a comment",
    "",
    "k#N = 1",
    "\"q k#N\" = 'literal' # why",
    "d.x#N = true",
    "l#N = [\n  1, # one\n  2,\n]",
    "s#N = \"\"\"first\n\n  third \"\"\"",
    "i#N = { a = 1, b = { c = 2 } }",
];

/// Ways in which servers are written in a TOML file.
const SERVERS: &[&str] = &[
    "",
    "[mcp_servers]",
    "[mcp_servers.other] # theirs\ncommand = \"other\"",
    "[mcp_servers.tanmi]",
    "[mcp_servers.tanmi] # empty\n\n[z]",
    "[[mcp_servers]]",
    "[mcp_servers.tanmi.env]\nA = \"1\"",
];

/// The same as keys before the first table.
const SERVER_KEYS: &[&str] = &[
    "",
    "mcp_servers = {}",
    "mcp_servers = { other = { command = \"other\" } }",
    "mcp_servers = {other = {command = \"other\"}} # theirs",
    "mcp_servers.other.command = \"other\"",
    "mcp_servers.other = { command = \"other\" }",
    "mcp_servers.tanmi = {}",
    "mcp_servers = 7",
];

fn any_toml() -> impl Strategy<Value = String> {
    let lines = || prop::collection::vec(prop::sample::select(TOML), 0..6);
    let parts = (
        lines(),
        prop::sample::select(SERVER_KEYS),
        lines(),
        prop::sample::select(SERVERS),
        lines(),
        any::<bool>(),
    );
    parts.prop_map(|(first, keys, second, servers, third, has_table)| {
        let table = if has_table { "[t]" } else { "" };
        let all = [first, vec![keys], second, vec![servers], vec![table], third].concat();
        let numbered = all.iter().enumerate().map(|(n, line)| line.replace("#N", &n.to_string()));
        numbered.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    })
}

fn any_markdown() -> impl Strategy<Value = String> {
    let lines = ["# Title", "", "text", "- item  ", "```", "<!-- comment -->", "    code"];
    prop::collection::vec(prop::sample::select(lines.to_vec()), 0..8).prop_map(|lines| lines.join("\n"))
}

/// Installs twice, then with another program, and uninstalls.
fn check_round_trip(client: &'static ClientSpec, file: impl Fn(&Folders) -> PathBuf, text: &str) {
    let env = TestEnv::new();
    let file = file(&env.folders);
    write(&file, text);
    let before = env.files();
    let read = || std::fs::read_to_string(&file).unwrap();
    env.install(client, Scope::Project, "/a/tanmi");
    let installed = read();
    let again = env.install(client, Scope::Project, "/a/tanmi");
    for done in &again {
        let is_refused = matches!(done.planned.outcome, ChangeOutcome::Refused(_));
        assert!(is_refused || done.planned.outcome == ChangeOutcome::Unchanged, "{text:?}: installed twice");
    }
    env.install(client, Scope::Project, "/b/tanmi");
    assert_eq!(read().replace("/b/tanmi", "/a/tanmi"), installed, "{text:?}: another program");
    env.uninstall(client, Scope::Project);
    assert_eq!(env.files(), before, "{text:?}");
}

fn guide_file(client: &ClientSpec, folders: &Folders) -> PathBuf {
    let (GuideFile::OwnFile(path) | GuideFile::Block(path)) =
        folders.guide_file(client, Scope::Project).unwrap();
    path
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn toml_with_any_line_ends_round_trips(toml in any_toml(), style in any_style()) {
        let client = find("codex");
        let file = |folders: &Folders| folders.server_file(client, Scope::Project).unwrap();
        check_round_trip(client, file, &styled(&toml, &style));
    }

    #[test]
    fn markdown_with_any_line_ends_round_trips(text in any_markdown(), style in any_style()) {
        for client in ["codex", "gemini-cli"].map(find) {
            check_round_trip(client, |folders| guide_file(client, folders), &styled(&text, &style));
        }
    }

    #[test]
    fn json_with_any_line_ends_round_trips(
        value in super::any::any_json(),
        which in 0usize..5,
        style in any_style(),
    ) {
        let client = CLIENTS.0[which];
        let value = json!({"theirs": value, "hooks": {}, "more": [1]});
        let text = format!("// mine\n{}", serde_json::to_string_pretty(&value).unwrap());
        check_round_trip(client, |folders| folders.hook_file(client, Scope::Project), &styled(&text, &style));
    }
}

/// Git or an editor changes the line ends of a file after the installation.
#[test]
fn converted_files_keep_line_ends_at_next_install() {
    for client in CLIENTS.iter() {
        let env = TestEnv::new();
        env.install(client, Scope::Project, "/a/tanmi");
        for (path, bytes) in env.files() {
            write(&path, String::from_utf8(bytes).unwrap().replace('\n', "\r\n"));
        }
        let before = env.files();
        env.install(client, Scope::Project, "/a/tanmi");
        assert_eq!(env.files(), before, "{}", client.id());
        env.install(client, Scope::Project, "/b/tanmi");
        for (path, bytes) in env.files() {
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.replace("\r\n", "").contains('\n'), "{}: {text:?}", path.display());
        }
    }
}

/// A person edited our server, so it is removed from the parsed document.
#[test]
fn uninstall_edited_server_keeps_line_ends_of_other_lines() {
    let env = TestEnv::new();
    let client = find("codex");
    let file = env.folders.server_file(client, Scope::User).unwrap();
    let theirs = "a = 1\r\nb = \"\"\"x\r\ny\n\"\"\"\n# c\r\n\r\n[t]\nd.e = 1\r\n";
    write(&file, theirs);
    env.install(client, Scope::User, "/t/tanmi");
    let with = std::fs::read_to_string(&file).unwrap();
    write(&file, with.replace("args =", "# mine\r\nenabled = true\r\nargs ="));
    env.uninstall(client, Scope::User);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{theirs}# mine\r\n"));
}
