//! What the page is for: four questions about the work of agents, each answered with a known number of clicks.

use serde_json::json;

use crate::env::TestEnv;
use crate::example;
use crate::serve::Server;
use crate::webdriver::Browser;

/// The page as a user opens it, with the clicks since the last answer.
struct Visit {
    page: Browser,
    clicks: usize,
}

impl Visit {
    fn click(&mut self, selector: &str, text: &str) {
        self.page.click(selector, text);
        self.clicks += 1;
    }

    /// Waits for the parts of an answer, prints the clicks that it took, and compares them.
    fn expect(&mut self, question: &str, clicks: usize, answer: &[(&str, &str)]) {
        for (selector, text) in answer {
            self.page.find(selector, text);
        }
        eprintln!("{question}: {} clicks", self.clicks);
        assert_eq!(self.clicks, clicks, "{question}");
        self.clicks = 0;
    }
}

#[test]
fn questions_are_answered_from_the_home_view_with_few_clicks() {
    let env = TestEnv::new();
    example::fill(&env);
    let server = Server::start(&env);
    let Some(page) = Browser::open() else { return };
    page.cdp("Emulation.setLocaleOverride", json!({"locale": "en-US"}));
    page.navigate(&server.link);
    // `docs/page.png`, with fewer colours.
    let size = json!({"width": 1280, "height": 760, "deviceScaleFactor": 1, "mobile": false});
    page.cdp("Emulation.setDeviceMetricsOverride", size);
    let mut visit = Visit { page, clicks: 0 };
    visit.expect(
        "Which agents work on what?",
        0,
        &[
            (".card.run h3", "3-D Secure flow"),
            (".card.run .chip", "Claude Code"),
            (".card.run h3", "迁移订单模型"),
            (".card.run .chip", "Cursor"),
            (".card.run", "signature verified, writing the callback test"),
        ],
    );
    visit.expect(
        "What is stuck?",
        0,
        &[
            (".card.bad", "The metric is per pod"),
            (".card.bad", "Next: aggregate by order id in the collector"),
            (".card.bad", "3 of 14 tests fail: clock skew in the sandbox"),
        ],
    );
    visit.expect(
        "What was done today?",
        0,
        &[(".completed li", "Card adapter"), (".completed li", "Checkout form"), (".feed .day", "Today")],
    );
    visit.page.save_screenshot("page");
    visit.click(".entry[data-kind=injection] button", "Why?");
    visit.expect(
        "Why was this text injected?",
        1,
        &[("dialog .reasons li", "session-info"), ("dialog pre.injected", "Tanmi")],
    );
    assert_eq!(visit.page.console_errors(), [""; 0]);
}
