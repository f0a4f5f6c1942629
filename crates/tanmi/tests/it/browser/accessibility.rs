//! Accessibility of the page: keyboard, narrow windows and the checks of axe-core.

use serde_json::json;

use super::{CTRL, hash, open, press};
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
    let rows = || page.js("return document.querySelectorAll('.row').length", json!([]));
    page.keys(DOWN);
    page.wait_until("plan", || active().contains("plan").then_some(()));
    // It is open, because it is not done.
    page.keys(LEFT);
    page.wait_until("closed", || (rows() == 3).then_some(()));
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
    for view in ["now", "ledger", "memory", "sessions", "rules"] {
        hash(&page, &format!("#/{view}"));
        page.find("#main h2", "");
        assert_fits_width();
    }
}

/// Returns the source of axe-core, if it is installed.
pub fn axe() -> Option<String> {
    let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../.clients/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(root).ok();
    if axe.is_none() {
        assert!(std::env::var_os("CI").is_none(), "axe-core is missing: .ci/run installs it");
        eprintln!("skipped: axe-core is not installed (scripts/install-clients)");
    }
    axe
}

/// Runs axe-core on every view in both themes.
#[test]
fn views_have_no_axe_violations() {
    let Some(axe) = axe() else { return };
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
        for view in [
            "#/work",
            &node,
            &workspace,
            "#/now",
            "#/sessions",
            "#/sessions/s",
            "#/ledger",
            "#/memory",
            "#/rules",
        ] {
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

/// Checks the tree, a node, a workspace, the memory and the dialogs in Chinese, at 390 and 1440 px.
#[test]
fn views_in_chinese_have_no_axe_violations_and_fit_their_width() {
    let Some(axe) = axe() else { return };
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "支付");
    let (first, second) =
        (env.node(&plan, "execution", "迁移订单模型"), env.node(&plan, "execution", "第二个"));
    env.ok(&["node", "depend", &second, "--on", &first]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &first]);
    env.ok(&["node", "transition", &first, "--action", "start", "--session", "s"]);
    env.ok(&["log", "--node", &first, "已生成**迁移**脚本"]);
    env.ok(&["problem", "--node", &first, "时钟偏差", "--next-step", "等待"]);
    env.ok(&["memory", "save-fact", "令牌有效期一天", "--type", "O", "--confidence", "0.5"]);
    let summary = ["memory", "save-summary", "--topic", "令牌", "--summary", "选择了格式"];
    env.ok(&[&summary[..], &["--decisions", "RS256", "--todos", "轮换密钥"]].concat());
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    page.click("#language", "中文");
    page.find("#top nav a", "记忆");
    let check = |what: &str| {
        page.js(&axe, json!([]));
        let found = page.js_async("return (await axe.run()).violations.map((v) => [v.id, v.impact, v.nodes.map((n) => n.html + ' ' + n.failureSummary)])", json!([]));
        assert_eq!(found, json!([]), "{what}");
        let widths = page.js("return [document.documentElement.scrollWidth, innerWidth]", json!([]));
        assert!(widths[0].as_u64() <= widths[1].as_u64(), "{what} is wider than the window: {widths}");
    };
    for width in [390, 1440] {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        page.cdp("Emulation.setDeviceMetricsOverride", size);
        for (view, shown) in [
            (format!("#/work/{ws}"), "迁移订单模型"),
            (format!("#/work/{ws}/{plan}"), "新建子节点"),
            (format!("#/work/{ws}/{second}"), "依赖尚未完成"),
            (format!("#/work/{ws}/{first}"), "时钟偏差"),
            (format!("#/work/{ws}/workspace"), "目标"),
            (String::from("#/memory"), "轮换密钥"),
        ] {
            hash(&page, &view);
            page.wait_for_text(shown);
            check(&format!("{width} {view}"));
            page.save_screenshot(&format!("zh-{width}-{}", view.rsplit('/').next().unwrap()));
        }
    }
    for (key, shown) in [("?", "快捷键"), ("k", "新建事实")] {
        match key {
            "k" => press(&page, key, CTRL),
            _ => page.keys(key),
        }
        page.wait_for_text(shown);
        check(key);
        page.keys("\u{e00c}");
        page.wait_until("closed", || {
            (page.js("return document.querySelectorAll('dialog').length", json!([])) == 0).then_some(())
        });
    }
    hash(&page, &format!("#/work/{ws}/{second}"));
    page.find(".row[aria-selected=true]", "第二个");
    page.js("document.querySelector('.tree').focus()", json!([]));
    page.keys("s");
    page.find(".menu button", "开始");
    check("menu");
    assert_eq!(page.console_errors(), [""; 0]);
}
