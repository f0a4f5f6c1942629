//! JSON on one line with many keys.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;

use super::*;
use crate::json::{Json, to_input};

/// The text is the same as that of the syntax tree, which takes quadratic time to put properties on their own lines.
#[test]
fn one_line_object_is_written_like_by_syntax_tree() {
    for (text, path) in [
        (r#"{"a":1}"#, &[][..]),
        (r#"{ "a" : 1 ,"b":{"c":[1, 2]} , "d":"x, {y}" }"#, &[]),
        ("{\n  \"h\": {\"a\": 1, \"b\": 2},\n  \"z\": {}\n}\n", &["h"]),
        ("{\r\n\t\"h\": {\"a\": {\"b\":2}}\r\n}", &["h"]),
        ("{\r\n\t\"h\": {\r\n\t\t\"a\": {\"b\":2, \"c\": 3}}\r\n}", &["h", "a"]),
        (r#"{"a":1,}"#, &[]),
        (r#"{/* x */ "a":1 /* y */}"#, &[]),
    ] {
        let tree = CstRootNode::parse(text, &ParseOptions::default()).unwrap();
        let object = path.iter().fold(tree.object_value().unwrap(), |at, key| at.object_value(key).unwrap());
        object.append("new", to_input(&json!({"n": [1]})));
        let mut json = Json::parse(text).unwrap();
        let old = json.find(path).unwrap();
        let one_line = old.to_string();
        json.insert(path, usize::MAX, "new", to_input(&json!({"n": [1]}))).unwrap();
        assert_eq!(json.text(), tree.to_string(), "{text}");
        assert_eq!(old.to_string(), one_line, "the lines were broken in the text, not in the tree");
    }
}

/// Takes a moment. With quadratic time it takes half a minute.
#[test]
fn install_one_line_with_many_keys_round_trips() {
    let client = CLIENTS.0[0];
    let env = TestEnv::new();
    let fields = || (0..20_000).map(|n| (format!("key {n}"), json!(n)));
    let file = env.folders.hook_file(client, Scope::User);
    let servers = env.folders.server_file(client, Scope::User).unwrap();
    write(&file, Value::Object(fields().collect()).to_string());
    write(&servers, json!({"mcpServers": Value::Object(fields().collect())}).to_string());
    let before = env.files();
    env.install(client, Scope::User, "/t/tanmi");
    assert!(parsed(&file)["hooks"].is_object() && parsed(&servers)["mcpServers"]["tanmi"].is_object());
    env.uninstall(client, Scope::User);
    assert_eq!(env.files(), before);
}
