//! The home view, the sessions and the ledger.

use std::time::Instant;

use serde_json::{Value, json};

use super::{hash, heap, measure_loads, median, open};
use crate::agent::Agent;
use crate::env::{NOW, TestEnv};
use crate::example::{self, DAY};
use crate::serve::Server;
use crate::webdriver::Browser;

const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";
const ESCAPE: &str = "\u{e00c}";

/// Asserts that the page is as large as the window: no part is wider, and only parts of it scroll.
fn assert_fits_window(page: &Browser, what: &str) {
    let widths = page.js("return [document.documentElement.scrollWidth, innerWidth]", json!([]));
    assert!(widths[0].as_u64() <= widths[1].as_u64(), "{what} is wider than the window: {widths}");
    let heights = page.js("return [document.documentElement.scrollHeight, innerHeight]", json!([]));
    assert!(heights[0].as_u64() <= heights[1].as_u64(), "{what} is higher than the window: {heights}");
}

/// Sets the size of the window. Chromium makes no window narrower than 500 pixels, so a narrow screen is emulated.
fn set_width(page: &Browser, width: u32) {
    page.cdp(
        "Emulation.setDeviceMetricsOverride",
        json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
    );
}

fn focused_text(page: &Browser) -> String {
    let text = page.js("return document.activeElement.innerText || ''", json!([]));
    text.as_str().unwrap_or_default().to_owned()
}

#[test]
fn home_opens_first_and_tells_next_command_while_empty() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let Some(page) = Browser::open() else { return };
    page.cdp("Emulation.setLocaleOverride", json!({"locale": "en-US"}));
    page.navigate(&server.link);
    page.find("#top nav a[aria-current=page]", "Now");
    page.find(".now-projects code", "tanmi workspace init");
    page.find(".now-projects code", "tanmi install");
    page.wait_for_text("Nothing waits for you");
    page.wait_for_text("No activity yet");
    hash(&page, "#/sessions");
    page.find(".sessions-view code", "tanmi install");
    hash(&page, "#/sessions/no-such-session");
    page.find("h2", "No session with the id no-such-session");
    hash(&page, "#/ledger");
    page.find(".ledger-view code", "tanmi install");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn home_shows_external_start_problem_and_binding_by_itself() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "the task");
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/now");
    page.find(".places a", "Auth");
    let print_delay =
        |what: &str, since: Instant| eprintln!("{what} was visible after {} ms", since.elapsed().as_millis());

    let since = Instant::now();
    env.ok(&["session", "bind", "--session", "session-7", "--workspace", &ws]);
    page.find(".session-lines li", "session-7");
    print_delay("a binding of another process", since);
    let since = Instant::now();
    env.ok(&["node", "transition", &task, "--action", "start", "--session", "session-7"]);
    page.find(".card.run", "the task");
    page.find(".entry[data-kind=step]", "started the task");
    print_delay("a start of another process", since);
    let since = Instant::now();
    env.ok(&["problem", "--node", &task, "the clock is wrong", "--next-step", "set it"]);
    page.find(".card.bad", "Next: set it");
    page.find(".entry[data-kind=problem]", "the clock is wrong");
    print_delay("a problem of another process", since);
    let since = Instant::now();
    env.ok(&["memory", "save-fact", "clocks drift", "--type", "W"]);
    page.find(".entry[data-kind=fact]", "clocks drift");
    print_delay("a fact of another process", since);
    env.ok(&["problem", "--node", &task, "--clear"]);
    page.find(".entry[data-kind=cleared]", "cleared the problem of the task");
    env.ok(&["workspace", "update", &ws, "--add-rule", "Clocks are set by NTP"]);
    page.find(".entry[data-kind=rule]", "added “Clocks are set by NTP”");
    // The nodes of a plan share a row.
    env.tick(60_000);
    let plan = env.root().join("plan.md");
    env.write(&plan, b"- first\n- second\n- third\n");
    env.ok(&["plan", &plan.display().to_string()]);
    page.find(".entry[data-kind=created]", "3 new nodes in Auth");
    page.find(".entry[data-kind=created]", "New node the task");
    let since = Instant::now();
    Agent::claude(&env, "session-8").start("startup");
    page.find(".session-lines li", "Claude Code");
    page.find(".entry[data-kind=injection]", "Told Claude Code");
    print_delay("a session of another process", since);
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn home_cards_and_feed_lead_to_their_objects() {
    let env = TestEnv::new();
    let example = example::fill(&env);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/now");
    page.find(".card.run", "signature verified");
    page.find(".card.run .chip", "Claude Code");
    page.find(".completed li", "Card adapter");
    // Filters.
    page.click(".feed-filters .chip", "Steps");
    let kinds = || {
        page.js(
            "return [...new Set([...document.querySelectorAll('.entry')].map((e) => e.dataset.kind))]",
            json!([]),
        )
    };
    page.wait_until("steps only", || (kinds() == json!(["step"])).then_some(()));
    page.js(
        "const s = document.querySelector('[name=node]'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))",
        json!([example.node("Card adapter")]),
    );
    let rows = || page.js("return document.querySelectorAll('.entry').length", json!([]));
    page.wait_until("steps of one node", || (rows() == 2).then_some(()));
    page.click(".entry .target", "Card adapter");
    page.find("h2", "Card adapter");
    // A failed node is retried from here.
    hash(&page, "#/now");
    page.click(".card.bad button", "Retry");
    page.find(".card.run", "Retry failed refunds");
    assert_eq!(env.status(example.node("Retry failed refunds")), "implementing");
    // An injection tells its reason with one click.
    page.click(".entry[data-kind=injection] button", "Why?");
    page.find("dialog .reasons li", "session-info");
    page.click("dialog button", "What would be injected now?");
    page.find("dialog table code", "");
    page.keys(ESCAPE);
    assert_eq!(page.console_errors().iter().filter(|line| !line.contains("404")).count(), 0);
}

#[test]
fn home_works_with_the_keyboard_alone() {
    let env = TestEnv::new();
    example::fill(&env);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/now");
    page.find(".entry", "");
    // `/` moves to the feed, the arrow keys move in it, and Enter opens.
    page.keys("/");
    page.keys(DOWN);
    let first = focused_text(&page);
    assert!(!first.is_empty());
    page.keys(DOWN);
    let second = focused_text(&page);
    assert_ne!(first, second);
    // A live change keeps the focus on the row.
    env.ok(&["log", "--node", "root", "while reading"]);
    page.find(".now-activity", "while reading");
    assert_eq!(focused_text(&page), second);
    page.keys(&DOWN.repeat(60));
    let focus_is_visible = "const row = document.activeElement.getBoundingClientRect(), list = document.querySelector('.feed').getBoundingClientRect();
        return row.top >= list.top - 1 && row.bottom <= list.bottom + 1 && document.activeElement.matches('.entry')";
    assert_eq!(page.js(focus_is_visible, json!([])), true);
    // Every control on the way is reached with Tab and shows a focus.
    page.js("document.querySelector('.brand').focus()", json!([]));
    let mut reached = std::collections::BTreeSet::new();
    for _ in 0..60 {
        page.keys(TAB);
        let name =
            page.js("const e = document.activeElement; return e.name || e.className || e.tagName", json!([]));
        reached.insert(name.as_str().unwrap_or_default().to_owned());
    }
    for control in ["feed", "project", "session", "node", "injection", "chip"] {
        assert!(reached.contains(control), "{control} is not reached: {reached:?}");
    }
    // Bind the unbound session.
    hash(&page, "#/sessions");
    page.find("button", "Bind…");
    page.js(
        "[...document.querySelectorAll('td button')].find((b) => b.innerText === 'Bind…').focus()",
        json!([]),
    );
    page.keys(ENTER);
    page.find("dialog select", "");
    page.keys(&format!("{TAB}{ENTER}"));
    page.wait_until("bound", || (!page.text().contains("not bound")).then_some(()));
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn session_has_a_name_a_timeline_and_its_binding() {
    let env = TestEnv::new();
    let example = example::fill(&env);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/sessions");
    let rows = || page.js("return document.querySelectorAll('.sessions tbody tr').length", json!([]));
    page.find(".sessions th", "Claude Code · ");
    assert_eq!(rows(), 6);
    page.find(".sessions td", "3-D Secure flow");
    page.type_into("[name=query]", "迁移");
    page.wait_until("one row", || (rows() == 1).then_some(()));
    page.type_into("[name=query]", " ");
    page.click("td button", "Bind…");
    page.type_into("dialog [name=nodeId]", "no-such-node");
    page.click("dialog button.primary", "Bind");
    page.find("dialog .bad", "no-such-node");
    page.type_into("dialog [name=nodeId]", example.node("Dashboards"));
    page.click("dialog button.primary", "Bind");
    page.find(".sessions td", "Dashboards");
    let last = &example.sessions[5];
    assert_eq!(env.json(&["session", "status", "--session", last])["bound"], true);
    page.click(".sessions th a", "…80c13");
    page.find("h2", "Claude Code");
    page.find(".session-facts code", last);
    page.click(".entry button", "Why?");
    page.find("dialog pre", "Tanmi");
    page.keys(ESCAPE);
    page.click(".head button", "Unbind");
    page.find(".session-facts dd", "not bound");
    page.keys("z");
    page.find(".session-facts dd", "Dashboards");
    assert_eq!(env.json(&["session", "status", "--session", last])["bound"], true, "undone");
    // The node that does not exist.
    let errors: Vec<String> =
        page.console_errors().into_iter().filter(|line| !line.contains("404")).collect();
    assert_eq!(errors, [""; 0]);
}

#[test]
fn ledger_is_narrowed_down_by_range_session_rule_and_node() {
    let env = TestEnv::new();
    example::fill(&env);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/ledger");
    page.find(".breakdown button", "smart-reminder");
    let total = || {
        let text = page.js("return [...document.querySelectorAll('.ledger-view .meta')].map((e) => e.innerText).find((s) => s.startsWith('Total'))", json!([]));
        text.as_str().unwrap_or_default().to_owned()
    };
    let mut seen = vec![total()];
    for (heading, choice) in [("By rule", "smart-reminder"), ("By session", "Cursor"), ("By node", "")] {
        let click = "const part = [...document.querySelectorAll('.breakdown')].find((e) => e.innerText.includes(arguments[0]));
            [...part.querySelectorAll('button')].find((e) => e.innerText.includes(arguments[1])).click()";
        page.js(click, json!([heading, choice]));
        let before = seen.last().unwrap().clone();
        page.wait_until(heading, || (total() != before).then_some(()));
        seen.push(total());
    }
    page.click("button", "Clear filters");
    page.wait_until("all again", || (total() == seen[0]).then_some(()));
    page.js("const s = document.querySelector('[name=range]'); s.value = '1'; s.dispatchEvent(new Event('input', {bubbles: true}))", json!([]));
    page.wait_until("today", || (total() != seen[0]).then_some(()));
    page.js("const s = document.querySelector('[name=measure]'); s.value = 'bytes'; s.dispatchEvent(new Event('input', {bubbles: true}))", json!([]));
    page.find("figcaption", "Bytes per day");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn rules_are_explained_for_a_session_by_its_name() {
    let env = TestEnv::new();
    example::fill(&env);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/rules");
    page.find("select[name=sessionId]", "Cursor · ");
    page.click("button", "Explain");
    page.find(".rules-view tr.matched", "");
    assert_eq!(page.console_errors(), [""; 0]);
}

/// Both languages, both themes, a narrow and a wide window: nothing overflows, and axe-core finds nothing.
#[test]
fn views_of_an_example_fit_every_window_and_pass_axe() {
    let env = TestEnv::new();
    let example = example::fill(&env);
    let server = Server::start(&env);
    let Some(page) = open(&server) else { return };
    let axe = super::accessibility::axe();
    let one = format!("#/sessions/{}", example.sessions[0]);
    let work = format!("#/work/{}", example.workspace);
    let (node, workspace) =
        (format!("{work}/{}", example.node("Alert on double charge")), format!("{work}/workspace"));
    for (lang, theme, width) in
        [("en", "light", 1440), ("zh", "dark", 1440), ("zh", "light", 390), ("en", "dark", 390)]
    {
        let script = "localStorage.setItem('tanmi-theme', arguments[0]); localStorage.setItem('tanmi-lang', arguments[1]); location.reload()";
        page.js(script, json!([theme, lang]));
        set_width(&page, width);
        page.find("#top nav a", "");
        for (name, view, ready) in [
            ("now", "#/now", ".entry"),
            ("sessions", "#/sessions", ".sessions td"),
            ("session", &one, ".entry"),
            ("ledger", "#/ledger", ".ledger-list"),
            ("work", &work, ".row"),
            ("node", &node, ".node .problem"),
            ("workspace", &workspace, ".node h2"),
            ("memory", "#/memory", ".memories li"),
            ("rules", "#/rules", "th code"),
        ] {
            hash(&page, view);
            page.find(ready, "");
            let what = format!("{name}-{lang}-{theme}-{width}");
            assert_fits_window(&page, &what);
            page.save_screenshot(&what);
            let Some(axe) = &axe else { continue };
            page.js(axe, json!([]));
            let found = page.js_async("return (await axe.run()).violations.map((v) => [v.id, v.impact, v.nodes.map((n) => n.html + ' ' + n.failureSummary)])", json!([]));
            assert_eq!(found, json!([]), "{what}");
        }
    }
}

/// 50,000 entries: the document stays small. Measured times are printed, not checked.
#[test]
fn feed_of_fifty_thousand_entries_keeps_document_small() {
    const DAYS: i64 = 10;
    let env = TestEnv::new();
    let ws = env.init();
    for day in 0..DAYS {
        let at = NOW - day * DAY;
        let line = |n: i64| {
            json!({"at": at - n, "session": format!("session-{}", n % 6), "platform": "claude-code", "source": "hook", "event": "prompt_submit",
                "workspace": ws, "rules": ["context-refresh"], "bytes": 400, "tokens": 100, "micros": 1500, "text": "0123456789abcdef0123456789abcdef"})
            .to_string()
        };
        example::append_ledger(&env, at, (0..5000).map(line));
    }
    let server = Server::start(&env);
    let begun = Instant::now();
    server.expect_ok("GET", "/activity?limit=1", Value::Null);
    let filled = begun.elapsed();
    let begun = Instant::now();
    let answer = server.expect_ok("GET", "/activity?limit=200", Value::Null);
    let first_page = begun.elapsed();
    assert!(answer["total"].as_u64().unwrap() >= 50_000, "{}", answer["total"]);
    let Some(page) = open(&server) else { return };
    hash(&page, "#/now");
    let (paint, shown) = measure_loads(&page, ".entry");
    let (mut frames, mut rows) = (Vec::new(), 0);
    for _ in 0..60 {
        let moved = page.js_async(
            "const feed = document.querySelector('.feed');
             const begun = performance.now();
             feed.scrollTop += 4000;
             await new Promise(requestAnimationFrame);
             return [performance.now() - begun, document.querySelectorAll('.entry').length]",
            json!([]),
        );
        frames.push(moved[0].as_f64().unwrap());
        rows = rows.max(moved[1].as_u64().unwrap());
    }
    let reached = page.js(
        "return Math.max(...[...document.querySelectorAll('.entry')].map((e) => Number(e.dataset.at)))",
        json!([]),
    );
    assert!(rows < 120, "{rows} rows are in the document at once");
    assert!(reached.as_u64().unwrap() > 400, "later pages are fetched while scrolling: {reached}");
    let memory = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let memory = memory.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("VmRSS unknown");
    eprintln!(
        "50,000 entries: index filled in {} ms, page of 200 in {} ms, first paint {paint:.0} ms, feed shown after {shown:.0} ms, frame while scrolling {:.1} ms (slowest {:.1}), \
         at most {rows} rows in the document, row {reached} reached, page {:.1} MB, server {memory}",
        filled.as_millis(),
        first_page.as_millis(),
        median(&mut frames),
        frames[frames.len() - 1],
        heap(&page),
    );
    assert_eq!(page.console_errors(), [""; 0]);
}
