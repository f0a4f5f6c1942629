//! Editing on the page: untouched fields stay unchanged, unsaved text is not lost, copies of a workspace stay separate,
//! and a double click submits once.

use serde_json::{Value, json};

use super::{hash, open};
use crate::env::TestEnv;
use crate::serve::Server;

#[test]
fn form_save_keeps_untouched_fields_byte_for_byte() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let server = Server::start(&env);
    let path = format!("/workspaces/{ws}/nodes/{node}");
    let docs = json!([
        {"path": "https://example.com/spec", "description": "the: spec", "status": "active"},
        {"path": "C:\\x\\y.md", "description": "two\nlines", "status": "expired"},
    ]);
    server.expect_ok("PATCH", &path, json!({"requirement": "one\r\ntwo", "docs": docs}));
    let rules = json!(["first", "second\nof two lines", "third: with a colon"]);
    server.expect_ok("PATCH", &format!("/workspaces/{ws}"), json!({"rules": rules, "docs": docs}));
    let Some(page) = open(&server) else { return };

    hash(&page, &format!("#/work/{ws}/{node}"));
    page.click("[data-action=edit]", "");
    page.type_into("[name=title]", "new title");
    page.js(
        "const docs = document.querySelector('[name=docs]'); docs.value += '\\nhttps://a.example/b: new'",
        json!([]),
    );
    page.click("form.edit button.primary", "");
    page.find("h2", "new title");
    let now = env.json(&["node", "show", &node])["node"].clone();
    assert_eq!((&now["title"], &now["requirement"]), (&json!("new title"), &json!("one\r\ntwo")));
    let mut expected = docs.as_array().unwrap().clone();
    expected.push(json!({"path": "https://a.example/b", "description": "new", "status": "active"}));
    assert_eq!(now["docs"], Value::from(expected));

    hash(&page, &format!("#/work/{ws}/workspace"));
    page.click("[data-action=edit-workspace]", "");
    page.find("[name=rules]", "");
    page.js("document.querySelector('[name=rules]').value += '\\nfourth'", json!([]));
    page.click("form.edit button.primary", "");
    page.wait_for_text("Saved");
    let now = env.json(&["workspace", "show", &ws]);
    assert_eq!(now["rules"], json!(["first", "second\nof two lines", "third: with a colon", "fourth"]));
    assert_eq!(now["docs"], docs);
}

#[test]
fn dependencies_are_shown_and_edited() {
    let env = TestEnv::new();
    let ws = env.init();
    let (first, second) = (env.node("root", "execution", "first"), env.node("root", "execution", "second"));
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/{second}"));
    page.click("[data-action=edit]", "");
    page.type_into("[name=dependsOn]", &first[first.len() - 4..]);
    page.click("form.edit button.primary", "");
    page.find(".dependencies a", "first");
    assert_eq!(env.json(&["node", "show", &second])["node"]["dependsOn"], json!([first]));
}

#[test]
fn unsaved_text_is_kept_until_discard_is_confirmed() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "mine");
    env.node("root", "execution", "other");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/{node}"));
    // An unfinished log entry and its caret survive updates, with and without the focus.
    page.type_into(".log input", "half a line");
    page.js("document.querySelector('.log input').setSelectionRange(2, 4)", json!([]));
    env.ok(&["log", "--node", &node, "news"]);
    page.find(".timeline li", "news");
    let caret = "const input = document.querySelector('.log input');
        return [input.value, input.selectionStart, input.selectionEnd, document.activeElement === input]";
    assert_eq!(page.js(caret, json!([])), json!(["half a line", 2, 4, true]));
    page.js("document.querySelector('#search').focus()", json!([]));
    env.ok(&["log", "--node", &node, "more news"]);
    page.find(".timeline li", "more news");
    assert_eq!(page.js(caret, json!([]))[0], "half a line");
    page.js("document.querySelector('.log input').value = ''", json!([]));

    page.click("[data-action=edit]", "");
    page.type_into("[name=note]", "not saved yet");
    page.js(
        "window.asked = []; window.confirm = (text) => { window.asked.push(text); return false; }",
        json!([]),
    );
    // Leaving by the tree, by a tab or by the language switch asks for confirmation and keeps the text.
    page.click(".row", "other");
    page.wait_until("asked", || (page.js("return window.asked.length", json!([])) == 1).then_some(()));
    page.click("#top nav a", "Ledger");
    page.wait_until("asked", || (page.js("return window.asked.length", json!([])) == 2).then_some(()));
    page.click("#language", "");
    page.wait_until("asked", || (page.js("return window.asked.length", json!([])) == 3).then_some(()));
    assert_eq!(page.js("return document.querySelector('[name=note]').value", json!([])), "not saved yet");
    page.js("window.confirm = () => true", json!([]));
    page.click(".row", "other");
    page.find("h2", "other");

    // A second submit does nothing while the first is in progress.
    page.js(
        "const real = window.fetch; window.fetch = async (...given) => { await new Promise((done) => setTimeout(done, 300)); return real(...given); };
         const form = document.querySelector('.log form'); form.log.value = 'once'; form.requestSubmit(); form.requestSubmit();",
        json!([]),
    );
    page.find(".timeline li", "once");
    let count = page.js("return [...document.querySelectorAll('.timeline li')].filter((e) => e.innerText.includes('once')).length", json!([]));
    assert_eq!(count, 1);
}

/// A clone or a work tree has the same ids in two folders.
#[test]
fn workspace_copies_with_same_id_stay_separate() {
    let env = TestEnv::new();
    let ws = env.init();
    let copy = env.root().join("clone");
    let copied = std::process::Command::new("cp").arg("-r").arg(&env.project).arg(&copy).status().unwrap();
    assert!(copied.success());
    assert!(env.run_in(&copy, &["workspace", "update", &ws, "--name", "The clone"]).ok);
    let server = Server::start(&env);
    let named = |path: &str| format!("{path}?project={}", copy.display());
    let at = format!("/workspaces/{ws}");
    assert_eq!(server.expect_ok("GET", &at, Value::Null)["name"], "Auth");
    assert_eq!(server.expect_ok("GET", &named(&at), Value::Null)["name"], "The clone");
    let Some(page) = open(&server) else { return };
    page.click(".workspace-link", "The clone");
    page.find(".tree-pane h2", "The clone");
    page.click(".row", "Auth");
    page.click("[data-action=child]", "");
    page.type_into("dialog [name=title]", "only here");
    page.click("dialog button.primary", "");
    page.find("h2", "only here");
    page.find(".row", "only here");
    let list = |dir: &std::path::Path| env.run_in(dir, &["node", "list"]).stdout;
    assert!(list(&copy).contains("only here") && !list(&env.project).contains("only here"));
    // A change of one copy updates only the view of that copy.
    assert!(env.run_in(&copy, &["node", "create", "--type", "execution", "--title", "new in the clone"]).ok);
    page.find(".row", "new in the clone");
    page.click(".workspace-link", "Auth");
    page.wait_until("the other one", || (!page.text().contains("only here")).then_some(()));
    assert!(
        env.run_in(&copy, &["node", "create", "--type", "execution", "--title", "again in the clone"]).ok
    );
    env.ok(&["node", "create", "--type", "execution", "--title", "new in the original"]);
    page.find(".row", "new in the original");
    assert!(!page.text().contains("in the clone"), "{}", page.text());
}

#[test]
fn claimed_node_is_changed_after_take_over() {
    let env = TestEnv::new();
    let ws = env.init();
    let (task, other) = (env.node("root", "execution", "task"), env.node("root", "execution", "other"));
    for node in [&task, &other] {
        env.ok(&["node", "transition", node, "--action", "start", "--session", "agent-1"]);
    }
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/{task}"));
    page.click("[data-action=complete]", "");
    page.type_into("dialog [name=conclusion]", "done by hand");
    page.click("dialog button.primary", "");
    page.find("dialog p", "agent-1");
    assert!(env.ok(&["node", "show", &task]).contains("implementing"), "not before the user confirms");
    page.click("dialog button.danger", "Take over");
    page.wait_until("completed", || env.ok(&["node", "show", &task]).contains("done by hand").then_some(()));
    hash(&page, &format!("#/work/{ws}/{other}"));
    page.click("[data-action=delete]", "");
    page.click("dialog button.danger", "Delete");
    page.click("dialog button.danger", "Take over");
    page.wait_until("deleted", || (!env.ok(&["tree"]).contains("other")).then_some(()));
}

#[test]
fn deleted_node_is_restored_by_undo_and_from_the_list() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    let is_there = || env.run(&["node", "show", &task]).ok;
    let delete = || {
        hash(&page, &format!("#/work/{ws}/{task}"));
        page.click("[data-action=delete]", "");
        page.click("dialog button.danger", "Delete");
        page.wait_until("deleted", || (!is_there()).then_some(()));
    };
    delete();
    page.click("#toast [data-action=undo]", "Undo");
    page.wait_until("restored", || is_there().then_some(()));
    page.find(".node h2", "task");
    delete();
    hash(&page, &format!("#/work/{ws}/workspace"));
    page.click("details summary", "Deleted nodes");
    page.click("[data-action=restore-node]", "Restore");
    page.wait_until("restored again", || is_there().then_some(()));
    page.find(".row", "task");
    // Another process deletes the node that is shown.
    hash(&page, &format!("#/work/{ws}/{task}"));
    page.find(".node h2", "task");
    env.ok(&["node", "delete", &task]);
    page.click("[data-action=restore]", "Restore");
    page.wait_until("restored from its page", || is_there().then_some(()));
}

#[test]
fn node_is_reordered_with_the_keyboard() {
    let env = TestEnv::new();
    let ws = env.init();
    let ids = ["first", "second", "third"].map(|title| env.node("root", "execution", title));
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/{}", ids[0]));
    page.find(".row[aria-selected=true]", "first");
    let titles = |env: &TestEnv| {
        let page = env.json(&["node", "list"]);
        let rows = page["nodes"].as_array().unwrap().iter().skip(1);
        rows.map(|row| row["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let press = |key: &str| {
        let script = "const tree = document.querySelector('.tree'); tree.focus(); tree.dispatchEvent(
            new KeyboardEvent('keydown', { key: arguments[0], altKey: true, bubbles: true, cancelable: true }))";
        page.js(script, json!([key]));
    };
    press("ArrowDown");
    page.wait_until("moved down", || (titles(&env) == ["second", "first", "third"]).then_some(()));
    let shown = "return [...document.querySelectorAll('.row .title')].slice(1).map((row) => row.textContent)";
    page.wait_until("shown in this order", || {
        (page.js(shown, json!([])) == json!(["second", "first", "third"])).then_some(())
    });
    press("ArrowUp");
    page.wait_until("moved up", || (titles(&env) == ["first", "second", "third"]).then_some(()));
    // Another process moves a node.
    env.ok(&["node", "move", &ids[2], "--before", &ids[0]]);
    page.wait_until("shown in the new order", || {
        (page.js(shown, json!([])) == json!(["third", "first", "second"])).then_some(())
    });
}

#[test]
fn secret_is_saved_only_after_the_user_chose() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    // Put together, so that secret scanners do not report this file.
    let secret = concat!("ghp", "_Zk4Rt8Lw2Qx6Vn0Bm3Jc7Hd1Sf5Gp9YaTe2Ui");
    let log = || env.ok(&["log", "-n", "root"]);
    let add = || {
        page.type_into("form.inline [name=log]", &format!("use {secret}"));
        page.click("[data-action=log]", "");
        page.find("dialog p", "log (GitHub token)");
    };
    hash(&page, &format!("#/work/{ws}/root"));
    add();
    page.click("dialog button", "Cancel");
    assert!(!log().contains("use "), "{}", log());
    page.js("document.querySelector('form.inline').reset()", json!([]));
    add();
    page.click("[data-action=mask-secrets]", "Mask and save");
    page.wait_until("masked", || log().contains("use [masked: GitHub token]").then_some(()));
    add();
    page.click("[data-action=keep-secrets]", "Save as it is");
    page.wait_until("kept", || log().contains(secret).then_some(()));

    hash(&page, &format!("#/work/{ws}/workspace"));
    page.click("[data-action=masking]", "Turn masking off");
    page.click("dialog button.danger", "Turn masking off");
    page.find(".badge", "secrets are not masked");
    assert_eq!(env.json(&["workspace", "show"])["maskSecrets"], false);
    page.click("[data-action=masking]", "Turn masking on");
    page.wait_until("on", || env.json(&["workspace", "show"]).get("maskSecrets").is_none().then_some(()));
}

#[test]
fn archived_and_damaged_items_are_marked() {
    let env = TestEnv::new();
    let ws = env.init();
    let (good, bad) = (env.node("root", "execution", "good"), env.node("root", "execution", "bad"));
    env.edit(&env.node_md(&ws, &bad), |text| text.replace("status: pending", "status: nonsense"));
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/{bad}"));
    page.wait_for_text("cannot parse");
    hash(&page, &format!("#/work/{ws}/{good}"));
    page.find("[data-action=start]", "");
    env.ok(&["workspace", "archive", &ws]);
    page.wait_for_text("archived: read-only");
    page.wait_until("nothing to click", || {
        (page.js("return document.querySelectorAll('.node [data-action]').length", json!([])) == 0)
            .then_some(())
    });
    // An error is shown in the dialog.
    env.ok(&["workspace", "restore", &ws]);
    page.click("[data-action=problem]", "");
    page.type_into("dialog [name=description]", " ");
    page.click("dialog button.primary", "");
    page.find("dialog .bad", "must not be empty");
}
