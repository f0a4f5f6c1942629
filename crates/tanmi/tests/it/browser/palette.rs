//! The command palette and the list of keys, by keyboard only.

use serde_json::json;

use super::{CTRL, hash, open, press};
use crate::env::TestEnv;
use crate::serve::Server;

const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

#[test]
fn palette_goes_to_nodes_views_and_workspaces_and_runs_actions() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let task = env.node(&plan, "execution", "Sign tokens");
    env.ok(&["workspace", "init", "--name", "Second", "--goal", "g"]);
    env.ok(&["session", "bind", "--session", "session-7", "--workspace", &ws]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    page.find(".row", "plan");
    let choose = |typed: &str, label: &str| {
        press(&page, "k", CTRL);
        page.find(".palette input", "");
        page.keys(typed);
        page.find(".palette li[aria-selected=true]", label);
        page.keys(ENTER);
        page.wait_until("closed", || {
            (page.js("return document.querySelectorAll('.palette').length", json!([])) == 0).then_some(())
        });
    };
    // A node, with its path.
    press(&page, "k", CTRL);
    page.keys("sign");
    page.find(".palette .hint", "plan");
    page.keys(ENTER);
    page.find(".node h2", "Sign tokens");
    // A step of the shown node.
    choose("start sign", "Start: Sign tokens");
    page.find(".status", "implementing");
    assert!(env.ok(&["node", "show", "-w", &ws, &task]).contains("implementing"));
    choose("second", "Second");
    page.find(".tree-pane h2", "Second");
    choose("session-7", "session-7");
    page.find(".tree-pane h2", "Auth");
    choose("memory", "Memory");
    page.find(".memory h2", "Memory");
    choose("new fact", "New fact");
    page.find("dialog [name=content]", "");
}

#[test]
fn keys_are_listed_and_nothing_found_is_said() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/work");
    page.find(".workspace-link", "Auth");
    page.keys("?");
    page.find("dialog.keys dd", "Undo the last deletion");
    page.keys(ESCAPE);
    page.wait_until("closed", || {
        (page.js("return document.querySelectorAll('dialog').length", json!([])) == 0).then_some(())
    });
    page.keys("z");
    page.find("#toast", "Nothing to undo");
    press(&page, "k", CTRL);
    page.keys("xyzzy");
    page.find(".palette", "Nothing found");
    page.keys(DOWN);
    page.keys(ENTER);
    page.find(".palette", "Nothing found");
}
