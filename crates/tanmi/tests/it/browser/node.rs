//! A node on the page: steps, holder, children, dependencies and log.

use serde_json::json;

use super::{hash, open};
use crate::env::TestEnv;
use crate::serve::Server;

const ENTER: &str = "\u{e007}";

#[test]
fn step_that_fails_says_why_and_only_the_next_step_is_primary() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let (first, second) = (env.node(&plan, "execution", "first"), env.node(&plan, "execution", "second"));
    env.ok(&["node", "depend", &second, "--on", &first]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    let primary = || {
        page.js(
            "return [...document.querySelectorAll('.node > header .primary')].map((button) => button.dataset.action)",
            json!([]),
        )
    };
    hash(&page, &format!("#/work/{ws}/{second}"));
    page.find(".blocked", "first");
    page.find("[data-action=start]:disabled", "");
    assert_eq!(primary(), json!([]));
    hash(&page, &format!("#/work/{ws}/{plan}"));
    page.find(".blocked", "2 unfinished children");
    page.find("[data-action=complete]:disabled", "");
    hash(&page, &format!("#/work/{ws}/{first}"));
    page.find("h2", "first");
    assert_eq!(primary(), json!(["start"]));
    page.click("[data-action=start]", "");
    page.find(".status", "implementing");
    assert_eq!(primary(), json!(["complete"]));
    // The reason disappears when another process completes the dependency.
    hash(&page, &format!("#/work/{ws}/{second}"));
    page.find(".blocked", "first");
    env.ok(&["node", "transition", &first, "--action", "complete", "--conclusion", "It **holds**"]);
    page.find("[data-action=start].primary", "");
    // The planning node shows its children with their conclusions.
    hash(&page, &format!("#/work/{ws}/{plan}"));
    page.find(".children .node-link", "second");
    page.find(".children .excerpt", "It **holds**");
}

#[test]
fn dependency_is_added_by_keyboard_and_removed_with_undo() {
    let env = TestEnv::new();
    let ws = env.init();
    let (first, second) = (env.node("root", "execution", "first"), env.node("root", "execution", "second"));
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    let depends_on = || env.json(&["node", "show", &second])["node"].get("dependsOn").cloned();
    hash(&page, &format!("#/work/{ws}/{second}"));
    page.find(".dependencies", "Waits for no other node");
    page.js("document.querySelector('[data-action=add-dependency]').focus()", json!([]));
    page.keys(ENTER);
    page.find(".palette li", "first");
    page.keys("fir");
    page.keys(ENTER);
    page.find(".dependencies .node-link", "first");
    assert_eq!(depends_on(), Some(json!([first])));
    page.click("[data-action=remove-dependency]", "");
    page.wait_until("removed", || depends_on().is_none().then_some(()));
    page.click("#toast [data-action=undo]", "Undo");
    page.wait_until("restored", || (depends_on() == Some(json!([first]))).then_some(()));
    hash(&page, &format!("#/work/{ws}/{first}"));
    page.find(".dependencies h4", "Needed by");
    page.find(".dependencies .node-link", "second");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn holder_and_log_are_readable() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    let other = env.node("root", "execution", "other");
    env.ok(&["node", "transition", &task, "--action", "start", "--session", "agent-1", "--agent", "Explore"]);
    env.ok(&["log", "--node", &task, "wrote **two** tests:\n\n- one\n- two"]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/{task}"));
    page.find(".holder", "agent-1");
    page.find(".holder", "Explore");
    page.find(".timeline .markdown strong", "two");
    page.find(".timeline .markdown li", "one");
    page.find(".timeline li.automatic", "start: pending → implementing");
    page.find(".log .day", "Dec 11, 2025");
    page.find("a[href*='#/ledger']", "ledger entries");
    // `e` edits the node that has the focus.
    page.js(
        "const heading = document.querySelector('.node h2'); heading.tabIndex = -1; heading.focus()",
        json!([]),
    );
    page.keys("e");
    page.find("form.edit [name=title]", "");
    // A node that never existed, a deleted one, and a workspace that does not exist.
    hash(&page, &format!("#/work/{ws}/node-none"));
    page.wait_for_text("There is no node node-none in this workspace");
    env.ok(&["node", "delete", &other]);
    hash(&page, &format!("#/work/{ws}/{other}"));
    page.wait_for_text("This node was deleted");
    hash(&page, "#/work/ws-none");
    page.find(".tree-pane [role=alert]", "ws-none");
}

#[test]
fn goal_and_rules_are_read_only_until_edited() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["workspace", "update", &ws, "--add-rule", "Only tested code"]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/workspace"));
    page.find(".goal", "JWT");
    page.find(".workspace-rules li", "Only tested code");
    assert_eq!(page.js("return document.querySelectorAll('.node textarea').length", json!([])), 0);
    page.click("[data-action=edit-workspace]", "");
    page.type_into("[name=goal]", "JWT for all");
    page.click("form.edit button.primary", "");
    page.find(".goal", "JWT for all");
    // A deleted workspace comes back with `z`.
    page.click("[data-action=delete]", "");
    page.click("dialog button.danger", "Delete");
    page.wait_for_text("was moved to the trash");
    assert!(!env.run(&["workspace", "show", &ws]).ok);
    page.js("document.activeElement.blur()", json!([]));
    page.keys("z");
    page.find(".workspace-link", "Auth");
    assert!(env.run(&["workspace", "show", &ws]).ok);
}
