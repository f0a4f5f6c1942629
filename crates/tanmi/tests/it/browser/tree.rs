//! The tree on the page: which branches are open, their counts, the search in texts, steps and moves.

use serde_json::{Value, json};

use super::{ALT, hash, open, press};
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::serve::Server;
use crate::webdriver::Browser;

const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";

fn titles(page: &Browser) -> Value {
    page.js(
        "return [...document.querySelectorAll('.row .title')].map((title) => title.textContent)",
        json!([]),
    )
}

fn wait_for_titles(page: &Browser, wanted: &[&str]) {
    page.wait_until(&format!("{wanted:?}"), || (titles(page) == json!(wanted)).then_some(()));
}

/// Makes a row the active one and gives the tree the focus.
fn focus_row(page: &Browser, title: &str) {
    page.click(".row", title);
    page.find(".row[aria-selected=true]", title);
    page.js("document.querySelector('.tree').focus()", json!([]));
}

#[test]
fn tree_opens_along_active_branches_with_counts() {
    let env = TestEnv::new();
    let ws = env.init();
    let (active, idle) = (env.node("root", "planning", "active"), env.node("root", "planning", "idle"));
    let inner = env.node(&active, "planning", "inner");
    let running = env.node(&inner, "execution", "running");
    let done = env.node(&inner, "execution", "done");
    env.node(&idle, "execution", "later");
    for node in [&running, &done] {
        env.ok(&["node", "transition", node, "--action", "start"]);
    }
    env.ok(&["node", "transition", &done, "--action", "complete", "--conclusion", "c"]);
    env.ok(&["problem", "--node", &running, "stuck"]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    wait_for_titles(&page, &["Auth", "active", "inner", "running", "done", "idle"]);
    let aside = |title: &str| {
        let script = "const row = [...document.querySelectorAll('.row')].find((row) => row.querySelector('.title').textContent === arguments[0]);
            return row.querySelector('.aside').textContent";
        page.js(script, json!([title])).as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(aside("inner"), "11 running11 problems1/2");
    assert_eq!(aside("active"), "11 running11 problems1/3");
    assert_eq!(aside("idle"), "0/1");
    // The counts of all branches above a node follow a change of another process.
    env.ok(&["node", "transition", &running, "--action", "complete", "--conclusion", "c"]);
    env.ok(&["problem", "--node", &running, "--clear"]);
    page.wait_until("counted again", || (aside("active") == "2/3" && aside("inner") == "2/2").then_some(()));

    page.click("[data-action=collapse-all]", "");
    wait_for_titles(&page, &["Auth", "active", "idle"]);
    page.click("[data-action=expand-all]", "");
    wait_for_titles(&page, &["Auth", "active", "inner", "running", "done", "idle", "later"]);
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn agents_and_dependencies_are_shown_in_rows() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let first = env.node(&plan, "execution", "first");
    let second = env.node("root", "execution", "second");
    env.ok(&["node", "depend", &second, "--on", &first]);
    env.ok(&["session", "bind", "--session", "s-1", "--workspace", &ws, "--node", &first]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    page.find(".row .bound", "session");
    page.find(".row .after", "after first");
    page.find(".mark.agents", "1");
    env.ok(&["session", "unbind", "--session", "s-1"]);
    page.wait_until("unbound", || {
        (page.js("return document.querySelectorAll('.bound, .mark.agents').length", json!([])) == 0)
            .then_some(())
    });
}

#[test]
fn search_finds_texts_with_path_and_excerpt() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "Payments");
    let task = env.node(&plan, "execution", "Refunds");
    env.ok(&["log", "--node", &task, "the sandbox clock is late"]);
    let named = env.node(&plan, "execution", "Clean the sandbox");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    page.find(".row", "Refunds");
    page.keys("/sandbox");
    page.find(".match-count", "2 found");
    wait_for_titles(&page, &["Refunds", "Clean the sandbox"]);
    page.find(".row .path", "Log: the sandbox clock is late");
    page.find(".row .path", "Payments");
    // The result stays complete when another process changes a node.
    env.ok(&["log", "--node", &named, "news"]);
    env.ok(&["node", "update", &named, "--title", "Clean this sandbox"]);
    wait_for_titles(&page, &["Refunds", "Clean this sandbox"]);
    page.keys(DOWN);
    page.keys(ENTER);
    page.find("h2", "Refunds");
}

#[test]
fn status_is_changed_in_the_tree_by_keyboard() {
    let env = TestEnv::new();
    let ws = env.init();
    let (first, second) = (env.node("root", "execution", "first"), env.node("root", "execution", "second"));
    env.ok(&["node", "depend", &second, "--on", &first]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    focus_row(&page, "second");
    page.keys("s");
    // A step that cannot be taken says why.
    page.find(".menu [aria-disabled]", "not completed");
    page.keys(ENTER);
    page.keys("\u{e00c}");
    page.wait_until("closed", || {
        (page.js("return document.querySelectorAll('.menu').length", json!([])) == 0).then_some(())
    });
    assert_eq!(env.status(&second), "pending");
    focus_row(&page, "first");
    page.keys("s");
    page.find(".menu button", "Start");
    page.keys(ENTER);
    page.wait_until("started", || (env.status(&first) == "implementing").then_some(()));
    page.find(".row[data-status=implementing]", "first");
    assert_eq!(page.js("return document.activeElement.className", json!([])), "tree", "the focus is back");
}

#[test]
fn node_is_moved_by_keyboard_and_mouse_and_undone() {
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "planning", "plan");
    let task = env.node("root", "execution", "task");
    env.node("root", "execution", "last");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    let parent = || env.json(&["node", "show", &task])["node"]["parentId"].as_str().unwrap().to_owned();
    focus_row(&page, "task");
    press(&page, "ArrowRight", ALT);
    page.wait_until("moved in", || (parent() != "root").then_some(()));
    page.find(".row[aria-level='3']", "task");
    page.find("#toast", "“task” was moved");
    page.keys("z");
    page.wait_until("undone", || (parent() == "root").then_some(()));
    page.find("#toast", "Undone");
    page.find(".row[aria-level='2']", "task");
    focus_row(&page, "task");
    press(&page, "ArrowRight", ALT);
    page.wait_until("moved in", || (parent() != "root").then_some(()));
    page.find(".row[aria-level='3']", "task");
    press(&page, "ArrowLeft", ALT);
    page.wait_until("moved out", || (parent() == "root").then_some(()));
    page.find(".row[aria-level='2']", "task");
    // Dropped on the lower half of the last row.
    page.js(
        "const row = (title) => [...document.querySelectorAll('.row')].find((row) => row.querySelector('.title').textContent === title);
         const data = new DataTransfer();
         const fire = (type, title) => {
           const { top, height, left } = row(title).getBoundingClientRect();
           row(title).dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data, clientX: left, clientY: top + height * 0.9 }));
         };
         fire('dragstart', 'task'); fire('dragover', 'last'); fire('drop', 'last'); fire('dragend', 'task');",
        json!([]),
    );
    wait_for_titles(&page, &["Auth", "plan", "last", "task"]);
    assert_eq!(page.console_errors(), [""; 0]);
}

/// The tree needs nothing of the list of workspaces, which takes longer with more of them.
#[test]
fn tree_is_shown_before_the_list_of_workspaces() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &task]);
    Agent::claude(&env, "s").prompt("go on");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    let delay = "const real = window.fetch;
        const held = new Promise((resolve) => { window.release = resolve; });
        window.fetch = async (url, ...rest) => { if (String(url).includes('/workspaces?')) await held; return real(url, ...rest); }";
    page.cdp("Page.addScriptToEvaluateOnNewDocument", json!({"source": delay}));
    page.js("location.hash = arguments[0]; location.reload()", json!([format!("#/work/{ws}")]));
    page.find(".row", "task");
    let headings = || {
        page.js("return [...document.querySelectorAll('.work h2')].map((e) => e.innerText).join()", json!([]))
    };
    assert_eq!(headings(), "", "neither an id nor an empty list is shown for a moment");
    page.js("window.release()", json!([]));
    page.find(".toolbar h2", "Auth");
    page.find(".workspace-link[aria-current]", "Auth");
    page.find(".row .bound", "Claude Code");
    assert_eq!(page.console_errors(), [""; 0]);
}
