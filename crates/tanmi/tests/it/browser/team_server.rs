//! The view of a team in the browser, with a real server on PostgreSQL: its own page, and that of a machine
//! that joined.

use serde_json::{Value, json};

use super::accessibility::axe;
use super::hash;
use crate::env::TestEnv;
use crate::serve::Server;
use crate::team::Team;
use crate::team::contributions::work;
use crate::team::machines::{join, machine, token_file};
use crate::webdriver::Browser;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

/// A team with three people: ada (admin), bob (member), who holds a node, and rita (reader).
struct Shop {
    team: Team,
    server: Server,
    ada: TestEnv,
    bob: TestEnv,
    reader: String,
    member: String,
}

impl Shop {
    fn open() -> Option<Shop> {
        let team = Team::new()?;
        let server = team.serve();
        let (member, reader) = (team.token("bob", "member"), team.token("rita", "reader"));
        let ada = TestEnv::new();
        join(&ada, &server, &team.admin, "ada-laptop");
        ada.init();
        work(&ada, "ada");
        let bob = machine(&server, &member, "bob-desktop");
        let node = bob.node("root", "execution", "Check tokens 检查令牌");
        bob.ok(&["start", &node]);
        Some(Shop { team, server, ada, bob, reader, member })
    }

    /// Logs in with the link that `tanmi team login` prints, and opens the view of the team in English.
    fn log_in(&self, token: &str) -> Option<Browser> {
        let file = token_file(&self.team.env, token);
        let login = ["team", "login", "--url", &self.server.link, "--token-file", &file];
        let link = self.team.env.json(&login)["link"].as_str().unwrap().to_owned();
        open(&link)
    }
}

fn open(link: &str) -> Option<Browser> {
    let page = Browser::open()?;
    page.cdp("Emulation.setLocaleOverride", json!({"locale": "en-US"}));
    page.navigate(link);
    page.find("#top nav a", "Team");
    hash(&page, "#/team");
    page.find(".presence tr", "Check tokens");
    page.find(".people tr", "rita");
    page.find(".contributions .entries tr", "Good work of ada");
    Some(page)
}

/// Returns the sections that are shown.
fn sections(page: &Browser) -> Value {
    let script = "return [...document.querySelectorAll('.team-view > section')].filter((e) => e.checkVisibility()).map((e) => e.className)";
    page.js(script, json!([]))
}

fn choose(page: &Browser, name: &str, value: &str) {
    let script = "const s = document.querySelector(`[name=${arguments[0]}]`); s.value = arguments[1]; s.dispatchEvent(new Event('change'))";
    page.js(script, json!([name, value]));
}

fn count(page: &Browser, selector: &str) -> u64 {
    page.js("return document.querySelectorAll(arguments[0]).length", json!([selector])).as_u64().unwrap()
}

#[test]
fn admin_of_real_team_sees_everything_and_manages_tokens_and_people() {
    let Some(shop) = Shop::open() else { return };
    let Some(page) = shop.log_in(&shop.team.admin) else { return };
    page.find(".audit tr", "logged in");
    assert_eq!(sections(&page), json!(["presence", "people", "contributions", "tokens", "audit"]));
    page.find(".presence tr", "bob");
    page.find(".contributions .entries tr", "bob-desktop");
    // The numbers of a person, and links to what they are about.
    let script = "return [...document.querySelectorAll('.contributions .numbers tr[data-key=\"did ada\"] > *')].map((e) => e.textContent)";
    assert_eq!(page.js(script, json!([])), json!(["ada", "2", "1", "1", "1", "1", "1"]));
    choose(&page, "contribution-kind", "failed");
    page.wait_until("one entry", || (count(&page, ".contributions .entries tbody tr") == 1).then_some(()));
    page.click(".contributions .entries a", "Bad work of ada");
    page.find("h2", "Bad work of ada");
    hash(&page, "#/team");
    // A new token works, and stops when it is revoked.
    page.click("[data-action=new-token]", "");
    page.js("document.querySelector('dialog [name=person]').value = 'bob'", json!([]));
    page.type_into("dialog [name=name]", "CI");
    page.click("dialog button.primary", "Create");
    let secret = page.wait_until("the secret", || {
        let value = page.js("return document.querySelector('dialog .secret')?.value", json!([]));
        value.as_str().filter(|value| value.starts_with("tnm_")).map(str::to_owned)
    });
    page.save_screenshot("team-new-token");
    page.click("dialog button.primary", "Close");
    let file = token_file(&shop.team.env, &secret);
    let login = ["team", "login", "--url", &shop.server.link, "--token-file", &file];
    assert!(shop.team.env.json(&login)["link"].is_string());
    page.find(".tokens tr", "CI");
    let id = page.js("return [...document.querySelectorAll('.tokens tr')].find((e) => e.textContent.includes('CI')).dataset.key.split(' ')[1]", json!([]));
    page.click(&format!("[data-action='revoke {}']", id.as_str().unwrap()), "");
    page.find("dialog p", "lose access");
    page.click("dialog button.danger", "Revoke");
    page.wait_until("revoked", || (!page.text().contains("CI")).then_some(()));
    page.wait_until("the token is refused", || {
        let run = shop.team.env.run(&login);
        (!run.ok && run.stderr.contains("unknown")).then_some(())
    });
    // A person is disabled after a question, and the audit has the address.
    page.click("[data-action='disable rita']", "");
    page.find("dialog p", "tanmi team person enable rita");
    page.save_screenshot("team-disable");
    page.click("dialog button.danger", "Disable");
    page.find(".people tr", "disabled");
    assert_eq!(count(&page, "[data-action='disable rita']"), 0);
    choose(&page, "what", "person_disabled");
    page.find(".audit tr", "127.0.0.1");
    // The last admin cannot be disabled; the dialog says why.
    page.click("[data-action='disable ada']", "");
    page.click("dialog button.danger", "Disable");
    page.find("dialog .bad", "admin");
    page.keys("\u{e00c}");
    // A node that is started elsewhere appears by itself.
    let next = shop.bob.node("root", "execution", "Second task");
    shop.bob.ok(&["start", &next]);
    page.find(".presence tr", "Second task");
    page.find(".contributions .numbers tr", "bob");
}

#[test]
fn session_that_beats_is_present_until_its_lease_ends() {
    let Some(shop) = Shop::open() else { return };
    let send = |path: &str, body: Value| {
        let path = format!("shop/{path}");
        let response = crate::team::send_as(&shop.server, &shop.member, "POST", &path, &[], &body);
        assert_eq!(response.status, 200, "{}", response.body);
        response.json()
    };
    let node = shop.bob.node("root", "execution", "Of a session");
    let workspace = shop.bob.json(&["status"])["workspaces"][0]["workspaceId"].as_str().unwrap().to_owned();
    let start = json!({"command": "transition", "request": {"nodeId": node, "action": "start", "conclusion": null,
        "claimant": {"session": null, "agent": null, "force": false}}});
    let mut body = crate::team::run_body("start-1", &workspace, start);
    body["session"] = json!("bob-1");
    body["machine"] = json!("bob-desktop · Claude Code");
    send("run", body);
    let Some(page) = shop.log_in(&shop.member) else { return };
    page.find(".presence tr", "bob-desktop · Claude Code");
    assert_eq!(count(&page, ".presence .badge"), 0);
    shop.team.cluster.sql("UPDATE session SET lease_until = 1 WHERE id = 'bob-1'").unwrap();
    page.js("location.reload()", json!([]));
    page.find(".presence .badge", "lease ended, others can take over");
    page.save_screenshot("team-lease-ended");
    send("beat", json!({"sessions": ["bob-1"]}));
    page.js("location.reload()", json!([]));
    page.find(".presence tr", "Of a session");
    page.wait_until("alive again", || (count(&page, ".presence .badge") == 0).then_some(()));
}

#[test]
fn member_and_reader_of_real_team_see_no_tokens_and_no_audit() {
    let Some(shop) = Shop::open() else { return };
    for token in [&shop.member, &shop.reader] {
        let Some(page) = shop.log_in(token) else { return };
        assert_eq!(sections(&page), json!(["presence", "people", "contributions"]));
        assert_eq!(count(&page, "[data-action^=disable]"), 0);
        assert_eq!(page.js("return document.getElementById('toast').textContent", json!([])), "");
        page.save_screenshot("team-member");
    }
}

#[test]
fn team_is_usable_by_keyboard() {
    let Some(shop) = Shop::open() else { return };
    let Some(page) = shop.log_in(&shop.team.admin) else { return };
    page.find(".audit tr", "logged in");
    // Tab reaches every control of the view. The view is rendered again meanwhile, so places are counted and
    // not elements.
    let script = "window.controls = () => [...document.querySelectorAll('.team-view :is(a, button, select, input)')].filter((e) => e.checkVisibility());
        window.reached = new Set();
        document.addEventListener('focusin', (e) => { const at = controls().indexOf(e.target); if (at >= 0) reached.add(at); });
        document.getElementById('main').focus();
        return controls().length";
    let all = page.js(script, json!([])).as_u64().unwrap();
    for _ in 0..all + 15 {
        page.keys(TAB);
    }
    assert_eq!(page.js("return reached.size", json!([])).as_u64(), Some(all));
    // Enter opens the question, Escape closes it, and the focus is where it was.
    page.js("document.querySelector('[data-action=\"disable rita\"]').focus()", json!([]));
    page.keys(ENTER);
    page.find("dialog p", "rita");
    page.keys("\u{e00c}");
    page.wait_until("closed", || (count(&page, "dialog[open]") == 0).then_some(()));
    assert_eq!(page.js("return document.activeElement.dataset.action", json!([])), "disable rita");
    page.js("document.querySelector('[data-action=new-token]').focus()", json!([]));
    page.keys(ENTER);
    page.find("dialog [name=name]", "");
    page.keys("by keyboard");
    page.keys(ENTER);
    page.find("dialog h2", "New token");
    page.keys("\u{e00c}");
    page.find(".tokens tr", "by keyboard");
}

/// Both languages, both themes, a narrow and a wide window: nothing overflows, and axe-core finds nothing.
fn check_windows(page: &Browser, name: &str) {
    for (lang, theme, width) in
        [("en", "light", 1440), ("zh", "dark", 1440), ("zh", "light", 390), ("en", "dark", 390)]
    {
        let script = "localStorage.setItem('tanmi-theme', arguments[0]); localStorage.setItem('tanmi-lang', arguments[1]); location.reload()";
        page.js(script, json!([theme, lang]));
        let size = json!({"width": width, "height": 1900, "deviceScaleFactor": 1, "mobile": false});
        page.cdp("Emulation.setDeviceMetricsOverride", size);
        page.find(".audit tr", "");
        page.find(".contributions .entries tr", "");
        let what = format!("{name}-{lang}-{theme}-{width}");
        page.save_screenshot(&what);
        let widths = page.js("return [document.documentElement.scrollWidth, innerWidth]", json!([]));
        assert!(widths[0].as_u64() <= widths[1].as_u64(), "{what} is wider than the window: {widths}");
        let Some(axe) = axe() else { continue };
        page.js(&axe, json!([]));
        let found = page.js_async("return (await axe.run()).violations.map((v) => [v.id, v.impact, v.nodes.map((n) => n.html + ' ' + n.failureSummary)])", json!([]));
        assert_eq!(found, json!([]), "{what}");
    }
}

#[test]
fn real_team_fits_every_window_and_passes_axe() {
    let Some(shop) = Shop::open() else { return };
    let Some(page) = shop.log_in(&shop.team.admin) else { return };
    check_windows(&page, "team-server");
}

#[test]
fn page_of_joined_machine_shows_team_and_survives_server() {
    let Some(shop) = Shop::open() else { return };
    let local = Server::start(&shop.ada);
    let Some(page) = open(&local.link) else { return };
    page.find(".audit tr", "logged in");
    page.find(".team-view > .meta", "you are ada");
    assert_eq!(sections(&page), json!(["presence", "people", "contributions", "tokens", "audit"]));
    assert_eq!(count(&page, "[data-action='disable ada']"), 0, "not oneself");
    check_windows(&page, "team-joined");
    page.js("localStorage.setItem('tanmi-lang', 'en'); location.reload()", json!([]));
    // A link leads to the node in this project. Its log has the time of the reader.
    page.cdp("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Tokyo"}));
    page.click(".contributions .entries a", "Good work of ada");
    page.find("h2", "Good work of ada");
    page.find(".timeline li", "half done");
    let age = page.js("return Date.now() - Math.max(...[...document.querySelectorAll('.timeline time')].map((e) => Date.parse(e.dateTime)))", json!([]));
    assert!(age.as_f64().unwrap().abs() < 3_600_000.0, "the stamps are UTC: {age}");
    // Without the server: what it last told, and no error that hides the view.
    hash(&page, "#/team");
    page.find(".presence tr", "Check tokens");
    let replica = crate::team::machines::replica(&shop.ada).join("presence.json");
    page.wait_until("a beat", || {
        std::fs::read_to_string(&replica).ok()?.contains("Check tokens").then_some(())
    });
    shop.server.kill();
    page.js("location.reload()", json!([]));
    page.find(".notice", "cannot be reached");
    page.find(".presence tr", "Check tokens");
    page.find(".presence .meta", "as of");
    assert_eq!(page.js("return document.getElementById('toast').textContent", json!([])), "");
    page.save_screenshot("team-away");
    hash(&page, "#/work");
    page.find(".workspace-link", "Auth");
}

#[test]
fn page_of_joined_member_has_no_administration() {
    let Some(shop) = Shop::open() else { return };
    let local = Server::start(&shop.bob);
    let Some(page) = open(&local.link) else { return };
    assert_eq!(sections(&page), json!(["presence", "people", "contributions"]));
    page.find(".team-view > .meta", "you are bob");
}
