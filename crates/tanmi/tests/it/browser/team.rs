//! The view of a team, with the answers of its server written here.

use serde_json::{Value, json};

use super::hash;
use crate::env::TestEnv;
use crate::serve::Server;
use crate::webdriver::Browser;

const HOUR: i64 = 3_600_000;

/// Answers requests below `/team` from `window.team`, and marks the page as that of a team.
const CANNED: &str = r#"
    const mark = () => { if (document.documentElement) document.documentElement.dataset.team = ''; };
    mark();
    new MutationObserver(mark).observe(document, {childList: true});
    window.team = TEAM;
    window.sent = [];
    const real = window.fetch;
    window.fetch = async (url, options = {}) => {
        const { pathname, searchParams } = new URL(url, location.href);
        const path = pathname.split('/api/v1')[1] || '';
        if (!path.startsWith('/team/')) return real(url, options);
        const method = options.method || 'GET';
        window.sent.push([method, path, options.body ? JSON.parse(options.body) : null]);
        const answer = (body, status = 200) => new Response(JSON.stringify(body), {status});
        const { presence, people, tokens, audit, isAdmin } = window.team;
        if (path === '/team/presence') return answer({presence, hasMore: false});
        if (path === '/team/people') return answer({people, hasMore: false});
        if (path === '/team/contributions') return answer({since: 0, until: Date.now(), people: [], entries: [], hasMore: false});
        if (!isAdmin) return answer({error: {code: 'FORBIDDEN', message: 'needs the role admin'}}, 403);
        if (path === '/team/tokens' && method === 'GET') return answer({tokens, hasMore: true});
        if (path === '/team/tokens') {
            const { person, name, role } = JSON.parse(options.body);
            tokens.push({id: 'tok-new', person, name, role, createdAt: Date.now()});
            return answer({id: 'tok-new', token: 'tnm_secret_once', person, role}, 201);
        }
        if (path.endsWith('/rotate')) return answer({id: 'tok-2', token: 'tnm_rotated', person: 'Lin', role: 'member'}, 201);
        if (method === 'DELETE') {
            tokens.find((token) => path.endsWith(token.id)).revokedAt = Date.now();
            return answer({});
        }
        const wanted = audit.filter((line) => (!searchParams.get('person') || line.person === searchParams.get('person'))
            && (!searchParams.get('what') || line.what === searchParams.get('what')));
        const from = searchParams.get('before') ? wanted.findIndex((line) => line.id === searchParams.get('before')) + 1 : 0;
        const limit = Number(searchParams.get('limit'));
        const entries = wanted.slice(from, from + limit);
        return answer({entries, hasMore: wanted.length > from + limit});
    };
"#;

/// Returns a team of three with two held nodes, three tokens and 60 entries of the audit.
fn team(ws: &str, node: &str, is_admin: bool) -> Value {
    // The page compares times with the clock of the browser.
    let now = tanmi_base::clock::now();
    let held = |person: &str, title: &str, is_live: bool| {
        json!({"person": person, "machine": format!("{person}-laptop"), "session": "s-1", "client": "claude-code", "workspaceId": ws, "workspaceName": "Auth",
            "nodeId": node, "nodeTitle": title, "since": now - 2 * HOUR, "leaseUntil": now, "isLive": is_live})
    };
    let person = |name: &str, role: &str, disabled_at: Option<i64>| json!({"name": name, "team": "Shop", "disabledAt": disabled_at, "roles": [{"project": "shop", "role": role}]});
    let token = |id: &str, person: &str, name: &str| json!({"id": id, "person": person, "name": name, "role": "member", "createdAt": now, "lastUsedAt": now - HOUR, "expiresAt": now + 90 * 24 * HOUR});
    let entry = |n: i64| {
        let (person, what) =
            [("Ann", "token_created"), ("Lin", "login"), ("林小雨", "claim_forced")][(n % 3) as usize];
        json!({"id": format!("a-{n}"), "at": now - n * HOUR, "person": person, "ip": "10.0.0.7", "what": what, "detail": {"role": "member"}})
    };
    json!({
        "isAdmin": is_admin,
        "presence": [held("Lin", "Check tokens 检查令牌", true), held("Ann", "Rotate keys", false)],
        "people": [person("Ann", "admin", None), person("Lin", "member", None), person("林小雨", "reader", Some(now))],
        "tokens": [token("tok-1", "Ann", "laptop"), token("tok-2", "Lin", "CI"), {"id": "tok-3", "person": "Lin", "name": "old", "role": "reader", "createdAt": now, "revokedAt": now}],
        "audit": (0..60).map(entry).collect::<Vec<_>>(),
    })
}

/// Opens the page with the answers of a team, in English.
fn open(server: &Server, team: &Value) -> Option<Browser> {
    let page = Browser::open()?;
    page.cdp("Emulation.setLocaleOverride", json!({"locale": "en-US"}));
    let source = CANNED.replace("TEAM", &team.to_string());
    page.cdp("Page.addScriptToEvaluateOnNewDocument", json!({"source": source}));
    page.navigate(&server.link);
    page.find("#top nav a", "Team");
    hash(&page, "#/team");
    page.find(".presence tr", "Check tokens");
    Some(page)
}

fn rows(page: &Browser, part: &str) -> u64 {
    let script = "return document.querySelectorAll(`.${arguments[0]} tbody tr`).length";
    page.js(script, json!([part])).as_u64().unwrap()
}

#[test]
fn page_of_one_machine_has_no_team() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let Some(page) = super::open(&server) else { return };
    assert!(!page.text().contains("Team"));
    hash(&page, "#/team");
    page.find(".now-waiting h2", "Needs you");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn admin_sees_the_team_and_manages_tokens() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Check tokens");
    let server = Server::start(&env);
    let Some(page) = open(&server, &team(&ws, &node, true)) else { return };
    page.find(".presence tr", "Lin-laptop · claude-code");
    page.find(".presence tr", "lease ended, others can take over");
    page.find(".people tr", "disabled");
    page.find(".tokens .meta", "Only the first 500 are shown");
    assert_eq!((rows(&page, "presence"), rows(&page, "people"), rows(&page, "tokens")), (2, 3, 2));
    // The audit is paged and filtered.
    assert_eq!(rows(&page, "audit"), 50);
    page.click("[data-action=more-audit]", "");
    page.wait_until("all entries", || (rows(&page, "audit") == 60).then_some(()));
    // A change of another process does not close the later pages.
    let asked = || {
        page.js("return window.sent.filter(([, path]) => path === '/team/audit').length", json!([])).as_u64()
    };
    let before = asked();
    env.ok(&["log", "--node", &node, "a line"]);
    page.wait_until("asked again", || (asked() > before).then_some(()));
    page.js_async("await new Promise(requestAnimationFrame)", json!([]));
    assert_eq!(rows(&page, "audit"), 60);
    let choose = "const s = document.querySelector(`.audit [name=${arguments[0]}]`); s.value = arguments[1]; s.dispatchEvent(new Event('change'))";
    page.js(choose, json!(["what", "login"]));
    page.wait_until("logins", || (rows(&page, "audit") == 20).then_some(()));
    page.js(choose, json!(["person", "Ann"]));
    page.find(".audit .empty", "No entries");
    // The text of a new token is shown once.
    page.click("[data-action=new-token]", "");
    page.type_into("dialog [name=name]", "build server");
    page.click("dialog button.primary", "Create");
    page.wait_until("the secret", || {
        (page.js("return document.querySelector('dialog .secret')?.value", json!([])) == "tnm_secret_once")
            .then_some(())
    });
    page.click("dialog [data-action=copy]", "");
    page.click("dialog button.primary", "Close");
    page.find(".tokens tr", "build server");
    let html = page.js("return document.documentElement.outerHTML", json!([]));
    assert!(!html.as_str().unwrap().contains("tnm_secret_once"), "the secret stays in the document");
    let sent = page.js("return window.sent.find(([method]) => method === 'POST')", json!([]));
    assert_eq!(
        sent,
        json!(["POST", "/team/tokens", {"person": "Ann", "name": "build server", "role": "member", "expires": "90d"}])
    );
    // A token is revoked after a question.
    page.click("[data-action='revoke tok-2']", "");
    page.click("dialog button", "Cancel");
    assert_eq!(rows(&page, "tokens"), 3);
    page.click("[data-action='revoke tok-2']", "");
    page.click("dialog button.danger", "Revoke");
    page.wait_until("revoked", || (rows(&page, "tokens") == 2).then_some(()));
    page.click(".tokens .check input", "");
    page.find(".tokens tr", "revoked");
    page.click("[data-action='rotate tok-1']", "");
    page.click("dialog button.primary", "Rotate");
    page.find("dialog h2", "New token");
    page.click("dialog button.primary", "Close");
    // A held node leads to its place in the tree.
    page.click(".presence a", "Check tokens");
    page.find("h2", "Check tokens");
    assert_eq!(page.console_errors(), [""; 0]);
}

#[test]
fn member_sees_people_and_no_administration() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    let Some(page) = open(&server, &team(&ws, "root", false)) else { return };
    page.wait_until("asked for tokens", || {
        (page.js("return window.sent.some(([, path]) => path === '/team/tokens')", json!([])) == true)
            .then_some(())
    });
    page.find(".contributions .hint", "Nothing was recorded");
    page.find(".people tr", "Lin");
    assert_eq!(
        page.js("return [...document.querySelectorAll('.team-view > section')].filter((e) => e.checkVisibility()).length", json!([])),
        3
    );
    assert_eq!(page.js("return document.getElementById('toast').textContent", json!([])), "");
    page.js("window.team.presence = []; location.hash = '#/now'", json!([]));
    page.find(".now-waiting h2", "");
    hash(&page, "#/team");
    page.find(".presence .hint", "tanmi start");
}
