//! Runs the shell examples of `docs/http.md` against a running server.

use serde_json::Value;

use super::markdown::{Kind, blocks};
use super::{documents, root};
use crate::env::{Run, TestEnv};
use crate::serve::Server;

#[test]
fn http_examples_get_answers_from_the_server() {
    assert!(root().join("docs/http.md").exists());
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s-1", "--workspace", &ws]);
    let _server = Server::start(&env);
    let document = documents().into_iter().find(|document| document.name == "docs/http.md").unwrap();
    let blocks = blocks(&document.text);
    let scripts: Vec<&str> = blocks
        .iter()
        .filter(|block| block.kind == Kind::Fenced(String::from("sh")))
        .map(|block| block.text.as_str())
        .collect();
    assert!(scripts.len() > 1, "{scripts:?}");
    // Every script needs the variables that the first one sets.
    let variables: String =
        scripts[0].lines().filter(|line| !line.starts_with("curl")).map(|line| format!("{line}\n")).collect();
    for script in &scripts {
        let requests: String = script
            .lines()
            .skip_while(|line| !line.starts_with("curl"))
            .map(|line| format!("{line}\n"))
            .collect();
        let run = Run::of(
            env.command_in("sh", &env.project)
                .args(["-euc", &format!("{variables}{requests}")])
                .output()
                .unwrap(),
        );
        assert!(run.ok, "{requests}{}", run.stderr);
        let answer: Value = serde_json::from_str(&run.stdout)
            .unwrap_or_else(|error| panic!("{error}: {requests}{}", run.stdout));
        assert_eq!(answer.get("error"), None, "{requests}{answer}");
    }
}
