//! Accessibility of the page: keyboard, narrow windows and the checks of axe-core.

use serde_json::json;

use super::{hash, open};
use crate::env::TestEnv;
use crate::serve::Server;
use crate::webdriver::Browser;

const DOWN: &str = "\u{e015}";
const RIGHT: &str = "\u{e014}";
const LEFT: &str = "\u{e012}";
const ENTER: &str = "\u{e007}";

#[test]
fn tree_is_usable_by_keyboard() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    env.node(&plan, "execution", "first task");
    env.node("root", "execution", "other");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    page.find(".row", "plan");
    page.js("document.querySelector('.tree').focus()", json!([]));
    let active = || {
        let script = "const tree = document.querySelector('.tree');
            return document.getElementById(tree.getAttribute('aria-activedescendant')).innerText";
        page.js(script, json!([])).as_str().unwrap_or_default().to_owned()
    };
    page.keys(DOWN);
    page.wait_until("plan", || active().contains("plan").then_some(()));
    page.keys(RIGHT);
    page.find(".row", "first task");
    page.keys(DOWN);
    page.wait_until("task", || active().contains("first task").then_some(()));
    page.keys(ENTER);
    page.find("h2", "first task");
    page.js("document.querySelector('.tree').focus()", json!([]));
    page.keys(LEFT);
    page.wait_until("back to its parent", || active().contains("plan").then_some(()));
    page.keys(LEFT);
    let rows = || page.js("return document.querySelectorAll('.row').length", json!([]));
    page.wait_until("closed", || (rows() == 3).then_some(()));
    // `/` focuses the search, which also finds nodes of collapsed levels.
    page.keys("/");
    assert_eq!(page.js("return document.activeElement.id", json!([])), "search");
    page.keys("FIRST");
    page.wait_for_text("1 found");
    page.find(".row", "first task");
}

#[test]
fn narrow_window_shows_one_pane_without_overflow() {
    let env = TestEnv::new();
    env.init();
    env.node("root", "execution", "a task with a rather long title that does not fit into a narrow window");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    page.resize(500, 800);
    let assert_fits_width = || {
        let script = "return [document.documentElement.scrollWidth, innerWidth]";
        let widths = page.js(script, json!([]));
        assert!(widths[0].as_u64() <= widths[1].as_u64(), "wider than the window: {widths}");
    };
    let panes = || {
        page.js(
            "return [...document.querySelectorAll('.pane')].filter((e) => e.checkVisibility()).length",
            json!([]),
        )
    };
    page.click(".workspace-link", "Auth");
    page.find(".row", "a task");
    assert_eq!(panes(), 1);
    assert_fits_width();
    page.save_screenshot("narrow-tree");
    page.click(".row", "a task");
    page.find("h2", "a task");
    assert_eq!(panes(), 1);
    assert_fits_width();
    page.save_screenshot("narrow-node");
    page.click(".detail-pane .back", "");
    page.find(".row", "a task");
    page.click(".tree-pane .back", "");
    page.find(".workspace-link", "Auth");
    for view in ["ledger", "memory", "sessions", "rules"] {
        hash(&page, &format!("#/{view}"));
        page.find("#main h2", "");
        assert_fits_width();
    }
}

/// Runs axe-core on every view in both themes.
#[test]
fn views_have_no_axe_violations() {
    let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../.clients/node_modules/axe-core/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(root) else {
        assert!(std::env::var_os("CI").is_none(), "axe-core is missing: .ci/run installs it");
        eprintln!("skipped: axe-core is not installed (scripts/install-clients)");
        return;
    };
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let task = env.node(&plan, "execution", "task");
    env.ok(&["node", "transition", &task, "--action", "start"]);
    env.ok(&["problem", "--node", &task, "skew", "--next-step", "wait"]);
    env.ok(&["memory", "save-fact", "a fact", "--type", "O", "--confidence", "0.5"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let server = Server::start(&env);
    server.expect_ok("POST", "/events", json!({"event": "session_start", "sessionId": "s"}));
    let Some(page) = open(&server) else { return };
    let node = format!("#/work/{ws}/{task}");
    let workspace = format!("#/work/{ws}/workspace");
    for theme in ["light", "dark"] {
        page.js("localStorage.setItem('tanmi-theme', arguments[0]); location.reload()", json!([theme]));
        page.find("#top nav a", "");
        for view in ["#/work", &node, &workspace, "#/sessions", "#/ledger", "#/memory", "#/rules"] {
            hash(&page, view);
            page.wait_until("shown", || loaded(&page));
            page.js(&axe, json!([]));
            let found = page.js_async("return (await axe.run()).violations.map((v) => [v.id, v.impact, v.nodes.map((n) => n.html + ' ' + n.failureSummary)])", json!([]));
            assert_eq!(found, json!([]), "{theme} {view}");
        }
    }
}

/// Returns `Some` when nothing is loading and the view has content.
fn loaded(page: &Browser) -> Option<()> {
    let script = "return !document.body.innerText.includes('Loading') && document.querySelectorAll('#main *').length > 8";
    (page.js(script, json!([])) == true).then_some(())
}
