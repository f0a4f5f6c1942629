//! `docs/http.md`, done as it says: the server is started, and whoever copies its lines into a shell gets answers.

use serde_json::Value;

use super::markdown::{Kind, blocks};
use super::{documents, root};
use crate::env::{Run, TestEnv};
use crate::serve::Server;

#[test]
fn the_server_answers_as_its_page_says() {
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
    // One shell for all of them: the first says what the others need.
    let settings: String =
        scripts[0].lines().filter(|line| !line.starts_with("curl")).map(|line| format!("{line}\n")).collect();
    for script in &scripts {
        let asks: String = script
            .lines()
            .skip_while(|line| !line.starts_with("curl"))
            .map(|line| format!("{line}\n"))
            .collect();
        let run = Run::of(
            env.command_in("sh", &env.project).args(["-euc", &format!("{settings}{asks}")]).output().unwrap(),
        );
        assert!(run.ok, "{asks}{}", run.stderr);
        let answer: Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {asks}{}", run.stdout));
        assert_eq!(answer.get("error"), None, "{asks}{answer}");
    }
}
