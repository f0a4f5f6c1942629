//! The page in a real browser. `TANMI_TEST_SHOTS=DIR` saves screenshots.

use std::time::Instant;

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::serve::Server;
use crate::webdriver::Browser;

mod accessibility;
mod editing;
mod large;
mod memory;
mod node;
mod now;
mod palette;
mod questions;
mod team;
mod team_server;
mod tree;

/// Opens the page by its link, in English, at the workspaces. Returns `None` if there is no browser.
fn open(server: &Server) -> Option<Browser> {
    let browser = Browser::open()?;
    // The expected texts are English.
    browser.cdp("Emulation.setLocaleOverride", json!({"locale": "en-US"}));
    browser.navigate(&server.link);
    browser.find("#top nav a", "");
    if !browser.text().contains("Workspaces") {
        browser.click("#language", "");
    }
    browser.wait_for_text("Workspaces");
    hash(&browser, "#/work");
    browser.find(".workspaces h2", "");
    Some(browser)
}

fn hash(browser: &Browser, path: &str) {
    browser.js("location.hash = arguments[0]", json!([path]));
}

/// Returns the memory that the scripts and the document of the page use after a garbage collection, in MB.
fn heap(browser: &Browser) -> f64 {
    browser.cdp("HeapProfiler.collectGarbage", json!({}));
    browser.cdp("Runtime.getHeapUsage", json!({}))["usedSize"].as_f64().unwrap_or_default() / 1e6
}

/// The page is loaded this often to measure it; the median counts.
const LOADS: usize = 7;

/// Loads the page several times. Returns after how many milliseconds it first paints something, and after how many an
/// element that matches the selector is shown.
fn measure_loads(browser: &Browser, selector: &str) -> (f64, f64) {
    let observer = "new MutationObserver((_, self) => {
            if (!document.querySelector(SELECTOR)) return;
            self.disconnect();
            requestAnimationFrame(() => { window.shownAt = performance.now(); });
        }).observe(document, {childList: true, subtree: true})";
    let source = observer.replace("SELECTOR", &json!(selector).to_string());
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", json!({"source": source}));
    let (mut paints, mut shown) = (Vec::new(), Vec::new());
    for _ in 0..LOADS {
        browser.js("window.shownAt = undefined; location.reload()", json!([]));
        shown.push(browser.wait_until(selector, || browser.js("return window.shownAt", json!([])).as_f64()));
        // The browser reports the paint a moment after the element is in the document.
        let paint = browser.js_async(
            "let paint;
             while (!(paint = performance.getEntriesByName('first-contentful-paint')[0])) await new Promise(requestAnimationFrame);
             return paint.startTime;",
            json!([]),
        );
        paints.push(paint.as_f64().unwrap());
    }
    (median(&mut paints), median(&mut shown))
}

/// Sorts measured values and returns the one in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The bits of modifier keys in a key event.
const ALT: u8 = 1;
const CTRL: u8 = 2;

/// Presses a key with modifiers, as a keyboard does.
fn press(browser: &Browser, key: &str, modifiers: u8) {
    for kind in ["rawKeyDown", "keyUp"] {
        let event = json!({"type": kind, "key": key, "code": key, "modifiers": modifiers});
        browser.cdp("Input.dispatchKeyEvent", event);
    }
}

#[test]
fn work_planned_and_completed_on_page_is_stored() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    page.wait_for_text("No workspaces yet");
    page.click(".workspaces button", "New workspace");
    page.type_into("dialog [name=name]", "Rework auth");
    page.type_into("dialog [name=goal]", "Replace sessions by JWT");
    page.type_into("dialog [name=rules]", "Keys come from the environment\nNo secrets in logs");
    page.save_screenshot("new-workspace");
    page.click("dialog button.primary", "");
    page.click(".row", "Rework auth");

    // Plan.
    page.click("[data-action=child]", "");
    page.type_into("dialog [name=title]", "Design the token");
    page.js("document.querySelector('dialog [name=type]').value = 'planning'", json!([]));
    page.click("dialog button.primary", "");
    page.find("h2", "Design the token");
    page.click("[data-action=child]", "");
    page.type_into("dialog [name=title]", "Check tokens");
    page.type_into("dialog [name=requirement]", "Signature **and** expiry");
    page.click("dialog button.primary", "");
    page.find("h2", "Check tokens");
    page.find(".markdown strong", "and");
    // Its ancestors are expanded in the tree.
    page.find(".row[aria-selected=true]", "Check tokens");

    // Only allowed actions are offered, and a conclusion is asked for where it is required.
    let offered = |page: &Browser| {
        page.js(
            "return [...document.querySelectorAll('.node > header [data-action]')].map((e) => e.dataset.action)",
            json!([]),
        )
    };
    assert_eq!(offered(&page), json!(["start", "edit", "problem", "delete"]));
    page.click("[data-action=start]", "");
    page.find(".status", "implementing");
    page.type_into(".log input", "signature done");
    page.click(".log button", "Add");
    page.find(".timeline li", "signature done");
    page.click("[data-action=problem]", "");
    page.type_into("dialog [name=description]", "Clock skew");
    page.type_into("dialog [name=nextStep]", "Allow 60 s");
    page.click("dialog button.primary", "");
    page.find("section.problem", "Allow 60 s");
    page.save_screenshot("node");
    page.click("section.problem button", "Clear problem");
    page.click("[data-action=complete]", "");
    page.type_into("dialog [name=conclusion]", "It holds");
    page.click("dialog button.primary", "");
    page.find(".status", "completed");
    page.find(".conclusion", "It holds");
    assert_eq!(offered(&page), json!(["reopen", "edit", "problem", "delete"]));

    // The command line reads the same data.
    let list = env.json(&["node", "list"]);
    let found: Vec<(&str, &str)> = list["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["title"].as_str().unwrap(), node["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [("Rework auth", "monitoring"), ("Design the token", "monitoring"), ("Check tokens", "completed")]
    );
    // Changes made on the page are logged as made by a person.
    let task = list["nodes"][2]["id"].as_str().unwrap();
    let shown = env.json(&["node", "show", task]);
    assert!(
        shown["node"]["log"].as_array().unwrap().iter().all(|line| line["operator"] == "Human"),
        "{shown}"
    );
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn external_change_appears_by_itself() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "before");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}/{node}"));
    page.find("h2", "before");

    let print_delay =
        |what: &str, since: Instant| eprintln!("{what} was visible after {} ms", since.elapsed().as_millis());
    // Another process.
    let since = Instant::now();
    env.ok(&["node", "create", "--type", "execution", "--title", "from elsewhere"]);
    page.find(".row", "from elsewhere");
    print_delay("a node of another process", since);
    let since = Instant::now();
    env.ok(&["node", "transition", &node, "--action", "start"]);
    page.find(".status", "implementing");
    print_delay("a step of another process", since);
    page.find("[data-action=submit]", "");
    // An editor.
    let since = Instant::now();
    env.edit(&env.node_md(&ws, &node), |text| text.replace("title: before", "title: by hand"));
    page.find("h2", "by hand");
    page.find(".row", "by hand");
    print_delay("an edit by hand", since);
    // Another process deletes a node and creates a workspace.
    env.ok(&["node", "delete", &node]);
    page.wait_for_text("This node was deleted");
    page.wait_until("the row is gone", || (!page.text().contains("by hand")).then_some(()));
    env.ok(&["workspace", "init", "--name", "Another one", "--goal", "g"]);
    page.find(".workspace-link", "Another one");
    // Bindings.
    env.ok(&["session", "bind", "--session", "session-7", "--workspace", &ws]);
    page.find(".row .bound", "");
    hash(&page, "#/sessions");
    page.find(".sessions th", "session-7");
    page.click("td button", "Unbind");
    page.find("td", "not bound");
    assert_eq!(env.json(&["session", "status", "--session", "session-7"])["bound"], false);

    // The page shows when the server is gone.
    server.kill();
    page.wait_for_text("disconnected");
}

/// The page reloads its data after a gap in the change feed and when it becomes visible again.
#[test]
fn change_feed_gap_reloads_page() {
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "execution", "first");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    page.find(".row", "first");
    page.js(
        "window.asked = []; const real = window.fetch;
         window.fetch = (url, ...rest) => { window.asked.push(String(url)); return real(url, ...rest); }",
        json!([]),
    );
    let root_level_requests = || {
        let asked =
            page.js("return window.asked.filter((url) => url.includes('parentId=root')).length", json!([]));
        asked.as_u64().unwrap()
    };
    // For a single change, only the changed node is fetched.
    env.node("root", "execution", "second");
    page.find(".row", "second");
    assert_eq!(root_level_requests(), 0);
    // Without its journal and index, a workspace restarts its sequence numbers, which is a gap.
    for name in ["journal", "index.sqlite"] {
        std::fs::remove_file(env.workspace_dir(&ws).join(".local").join(name)).unwrap();
    }
    env.node("root", "execution", "third");
    page.find(".row", "third");
    page.wait_until("fetched again", || (root_level_requests() > 0).then_some(()));

    // A hidden page gets no changes, and reloads when it becomes visible.
    let set_visibility = |state: &str| {
        let script =
            "Object.defineProperty(document, 'visibilityState', {value: arguments[0], configurable: true});
            document.dispatchEvent(new Event('visibilitychange'))";
        page.js(script, json!([state]));
    };
    set_visibility("hidden");
    let before = root_level_requests();
    env.node("root", "execution", "unseen");
    set_visibility("visible");
    page.find(".row", "unseen");
    page.wait_until("fetched again", || (root_level_requests() > before).then_some(()));
}

#[test]
fn filtered_node_deleted_elsewhere_disappears_without_error() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "match one");
    env.node("root", "execution", "match two");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    page.type_into("#search", "match");
    page.find(".match-count", "2 found");
    env.ok(&["node", "delete", &node]);
    page.find(".match-count", "1 found");
    assert_eq!(page.js("return document.getElementById('toast').textContent", json!([])), "");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn workspace_rule_edited_on_page_reaches_agent() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    let prompt = || {
        server.expect_ok(
            "POST",
            "/events",
            json!({"event": "prompt_submit", "sessionId": "s", "payload": {"prompt": "go on"}}),
        )
    };
    server.expect_ok("POST", "/events", json!({"event": "session_start", "sessionId": "s"}));
    assert_eq!(prompt()["shouldRespond"], false);
    hash(&page, &format!("#/work/{ws}/workspace"));
    page.click("[data-action=edit-workspace]", "");
    page.type_into("[name=rules]", "Only tested code\n只提交测试过的代码");
    page.save_screenshot("rules-of-a-workspace");

    // On a conflict nothing is overwritten, both versions are shown and the typed text is kept.
    env.ok(&["workspace", "update", &ws, "--add-rule", "From elsewhere"]);
    page.click("form.edit button.primary", "");
    page.find(".conflict", "From elsewhere");
    page.find(".conflict", "Only tested code");
    page.save_screenshot("conflict");
    assert_eq!(env.json(&["workspace", "show", &ws])["rules"], json!(["From elsewhere"]));
    page.click(".conflict button", "Overwrite with mine");
    page.wait_until("saved", || {
        let rules = env.json(&["workspace", "show", &ws])["rules"].clone();
        (rules == json!(["Only tested code", "只提交测试过的代码"])).then_some(())
    });
    page.wait_until("the form is closed", || {
        page.js("return !document.querySelector('form.edit')", json!([])).as_bool()?.then_some(())
    });
    let decision = prompt();
    assert!(decision["text"].as_str().unwrap().contains("只提交测试过的代码"), "{decision}");

    // The ledger shows the exact injected text and its cost.
    hash(&page, "#/ledger");
    page.click(".ledger-list summary", "prompt_submit");
    page.find("pre.injected", "Only tested code");
    page.find("svg", "");
    page.save_screenshot("ledger");
    assert_eq!(
        page.console_errors().into_iter().filter(|line| !line.contains("412")).collect::<Vec<_>>(),
        [""; 0]
    );
}

#[test]
fn page_language_follows_switch_then_setting() {
    let env = TestEnv::new();
    env.ok(&["config", "set", "language", "zh"]);
    let server = Server::start(&env);
    let Some(page) = Browser::open() else { return };
    page.cdp("Emulation.setLocaleOverride", json!({"locale": "en-US"}));
    page.navigate(&server.link);
    page.find("#top nav a", "记忆");
    page.click("#language", "English");
    page.find("#top nav a", "Memory");
    page.js("location.reload()", json!([]));
    page.find("#top nav a", "Memory");
}

#[test]
fn memory_view_works_in_both_languages_and_themes() {
    let env = TestEnv::new();
    env.init();
    for fact in ["JWT it is, valid for 24 hours", "令牌的有效期是一天", "The deploy runs on Fridays"]
    {
        env.ok(&["memory", "save-fact", fact, "--type", "B"]);
    }
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/memory");
    page.find(".memories li", "Fridays");
    page.type_into("[name=query]", "有效期");
    page.find(".memories li", "令牌的有效期是一天");
    page.wait_until("only matching memories", || (!page.text().contains("Fridays")).then_some(()));
    page.click(".memories button", "Edit");
    page.type_into("dialog [name=content]", "令牌的有效期是两天");
    page.click("dialog button.primary", "");
    page.find(".memories li", "令牌的有效期是两天");
    page.click(".memories button", "Forget");
    page.wait_for_text("No memories found");
    page.click(".check input", "");
    page.find(".memories li.hidden", "令牌的有效期是两天");
    let hidden = env.json(&["memory", "list", "--all"]);
    assert_eq!(hidden["total"], 4, "{hidden}");

    // The chosen language is kept after a reload.
    page.click("#language", "中文");
    page.find("#top nav a", "记忆");
    page.wait_for_text("包括已忘记的");
    assert_eq!(page.js("return document.documentElement.lang", json!([])), "zh-CN");
    page.js("location.reload()", json!([]));
    page.find("#top nav a", "记忆");
    page.save_screenshot("memory-zh");

    // The theme follows the system; the user's choice overrides it.
    let background = || page.js("return getComputedStyle(document.body).backgroundColor", json!([]));
    let system = |scheme: &str| {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        page.cdp("Emulation.setEmulatedMedia", json!({"features": features}));
    };
    system("light");
    let light = background();
    system("dark");
    page.wait_until("dark", || (background() != light).then_some(()));
    let dark = background();
    page.save_screenshot("memory-zh-dark");
    page.click("#theme", "自动");
    page.wait_until("light by choice", || (background() == light).then_some(()));
    system("light");
    page.click("#theme", "浅色");
    page.wait_until("dark by choice", || (background() == dark).then_some(()));
    hash(&page, "#/work");
    page.find(".workspace-link", "Auth");
    page.save_screenshot("work-zh-dark");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn hostile_text_is_not_executed() {
    let env = TestEnv::new();
    let ws = env.init();
    let hostile = "<img src=x onerror=\"window.hit=1\"><script>window.hit=2</script>\n\n\
                   [click](javascript:window.hit=3) ![p](http://elsewhere.example/p.png) <svg onload=window.hit=4>\n\n\
                   [data](data:text/html,<script>1</script>) \u{202e}turned\u{202c}";
    let title = "<script>window.hit=5</script>\u{202e}\"'><b onmouseover=window.hit=6>";
    let node = create_node_with_text(&env, &ws, title, hostile);
    env.ok(&["log", "--node", &node, hostile]);
    env.ok(&["problem", "--node", &node, hostile, "--next-step", hostile]);
    env.ok(&["memory", "save-fact", hostile, "--type", "W"]);
    let session = "<img src=x onerror=window.hit=7>";
    env.ok(&["session", "bind", "--session", session, "--workspace", &ws]);
    env.ok(&["workspace", "update", &ws, "--add-rule", "<script>window.hit=8</script>"]);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    server.expect_ok("POST", "/events", json!({"event": "session_start", "sessionId": session}));
    // (view, text that must be visible before the check)
    let views = [
        (format!("#/work/{ws}/{node}"), "<img src=x"),
        (format!("#/work/{ws}/workspace"), "<script>window.hit=8"),
        (String::from("#/memory"), "<img src=x"),
        (String::from("#/now"), "<img src=x"),
        (String::from("#/sessions"), "unknown client"),
        (String::from("#/sessions/%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D7%3E"), "onerror=window.hit=7"),
        (String::from("#/ledger"), "session_start"),
    ];
    for (view, shown) in views {
        hash(&page, &view);
        page.wait_until("shown", || {
            let script = "return [document.body.innerText, ...[...document.querySelectorAll('input, textarea')].map((e) => e.value)].join(' ')";
            page.js(script, json!([])).as_str().is_some_and(|text| text.contains(shown)).then_some(())
        });
        if view.ends_with(&node) {
            page.find("h2", "<script>window.hit=5");
            page.find(".markdown", "<img src=x");
            page.js(
                "document.querySelectorAll('.markdown a, .markdown span').forEach((e) => e.click())",
                json!([]),
            );
            page.save_screenshot("hostile");
        }
        if view == "#/ledger" {
            page.click(".ledger-list summary", "");
            page.find("pre.injected", "window.hit=8");
        }
        let active_elements = page.js(
            "return [...document.querySelectorAll('#main script, #main img, #main iframe, #main object, #main [onerror], #main [onload], #main a[href^=\"javascript\"]')].map((e) => e.outerHTML)",
            json!([]),
        );
        assert_eq!(active_elements, json!([]), "{view}");
        assert_eq!(page.js("return window.hit === undefined", json!([])), true, "{view}");
    }
    // Every resource comes from the server itself.
    let foreign = page.js(
        "return performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !name.startsWith(location.origin))",
        json!([]),
    );
    assert_eq!(foreign, json!([]));
    assert_eq!(page.console_errors(), [""; 0]);
}

fn create_node_with_text(env: &TestEnv, ws: &str, title: &str, text: &str) -> String {
    let args = [
        "node",
        "create",
        "-w",
        ws,
        "--type",
        "execution",
        "--title",
        title,
        "--requirement",
        text,
        "--note",
        text,
    ];
    let created: Value = env.json(&args);
    created["nodeId"].as_str().unwrap().to_owned()
}
