//! The memory on the page: by day, by keyboard, with history, summaries and digests.

use serde_json::json;

use super::{hash, open};
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::serve::Server;

const DOWN: &str = "\u{e015}";
const DELETE: &str = "\u{e017}";
const ESCAPE: &str = "\u{e00c}";

#[test]
fn memory_is_edited_forgotten_and_undone_by_keyboard() {
    let env = TestEnv::new();
    env.init();
    let saved = env.json(&["memory", "save-fact", "Ports start at 8000", "--type", "B"]);
    env.ok(&["memory", "edit", saved["id"].as_str().unwrap(), "Ports start at 9000"]);
    env.tick(1_000);
    env.ok(&["memory", "save-fact", "Deploys run on Fridays", "--type", "W"]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/memory");
    page.find(".memory-day h3", "Dec 11, 2025");
    page.find(".memory-day .count", "2");
    page.find(".head", "Facts 2");
    page.js("document.querySelector('.memories > li').focus()", json!([]));
    page.keys(DOWN);
    let focused = || page.js("return document.activeElement.innerText", json!([]));
    page.wait_until("the second", || focused().as_str()?.contains("Ports start at 9000").then_some(()));
    page.keys("h");
    page.find("dialog.history li", "in force");
    page.find("dialog.history li.expired", "Ports start at 8000");
    page.keys(ESCAPE);
    page.wait_until("closed", || focused().as_str()?.contains("Ports").then_some(()));
    page.keys("e");
    page.type_into("dialog [name=content]", "Ports start at 9100");
    page.click("dialog button.primary", "");
    page.find(".memories li", "Ports start at 9100");
    page.wait_until("closed", || {
        (page.js("return document.querySelectorAll('dialog').length", json!([])) == 0).then_some(())
    });
    page.js(
        "[...document.querySelectorAll('.memories > li')].find((item) => item.innerText.includes('9100')).focus()",
        json!([]),
    );
    page.keys(DELETE);
    page.find("#toast", "Forgot “Ports start at 9100”");
    page.wait_until("forgotten", || (env.json(&["memory", "list"])["total"] == 1).then_some(()));
    page.keys("z");
    page.find(".memories li", "Ports start at 9100");
    assert_eq!(env.json(&["memory", "list"])["total"], 2);
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn summary_and_digest_are_shown_in_parts() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["memory", "save-fact", "a fact"]);
    let args =
        ["memory", "save-summary", "--topic", "Tokens", "--summary", "Chose a format", "--session", "a"];
    env.ok(&[&args[..], &["--decisions", "RS256", "--todos", "Rotate keys"]].concat());
    let task = env.node("root", "execution", "Sign tokens");
    Agent::claude(&env, "b").start("startup");
    env.ok(&["session", "bind", "--session", "b", "--workspace", &ws]);
    env.ok(&["node", "transition", &task, "--action", "start", "--session", "b"]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/memory");
    page.find(".memories .topic", "Tokens");
    page.find(".memories h4", "Decisions");
    page.find(".memories .content li", "RS256");
    page.find(".memories h4", "To do");
    page.click(".digests summary", "");
    page.find(".digests li", "Sign tokens (implementing)");
    page.find(".digests .meta", "claude-code");
}

#[test]
fn search_shows_its_notice() {
    let env = TestEnv::new();
    env.init();
    env.ok(&["memory", "save-fact", "Ports start at 8000", "--type", "B"]);
    // The folder of the model was removed.
    let model = json!({"dir": env.root().join("gone")});
    env.write(&env.home_store().join("model.json"), model.to_string().as_bytes());
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/memory");
    page.find(".memories li", "Ports");
    page.type_into("[name=query]", "ports");
    page.find(".notice", "searched by words only");
    page.find(".memories li", "Ports");
    page.save_screenshot("memory-notice");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn search_that_fills_its_limit_says_that_there_may_be_more() {
    let env = TestEnv::new();
    env.init();
    let lines = (0..60).map(|n| json!({"id": format!("f{n}"), "content": format!("port {n}")}).to_string());
    let file = env.root().join("facts.jsonl");
    env.write(&file, lines.collect::<Vec<_>>().join("\n").as_bytes());
    env.ok(&["memory", "import", &file.display().to_string()]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/memory");
    page.find(".memories li", "port");
    page.type_into("[name=query]", "port");
    page.find(".memories.ranked li", "port");
    page.find(".memory-day .count", "50+");
}
