//! The embedded page: the files of `web/`, served without a build step.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use tanmi_base::Lang;

use super::ServerState;

const FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("../../web/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../../web/style.css")),
    ("/now.css", "text/css; charset=utf-8", include_str!("../../web/now.css")),
    ("/main.js", SCRIPT, include_str!("../../web/main.js")),
    ("/api.js", SCRIPT, include_str!("../../web/api.js")),
    ("/dom.js", SCRIPT, include_str!("../../web/dom.js")),
    ("/words.js", SCRIPT, include_str!("../../web/words.js")),
    ("/words-now.js", SCRIPT, include_str!("../../web/words-now.js")),
    ("/names.js", SCRIPT, include_str!("../../web/names.js")),
    ("/now.js", SCRIPT, include_str!("../../web/now.js")),
    ("/activity.js", SCRIPT, include_str!("../../web/activity.js")),
    ("/injection.js", SCRIPT, include_str!("../../web/injection.js")),
    ("/binding.js", SCRIPT, include_str!("../../web/binding.js")),
    ("/work.js", SCRIPT, include_str!("../../web/work.js")),
    ("/tree.js", SCRIPT, include_str!("../../web/tree.js")),
    ("/node.js", SCRIPT, include_str!("../../web/node.js")),
    ("/workspace.js", SCRIPT, include_str!("../../web/workspace.js")),
    ("/forms.js", SCRIPT, include_str!("../../web/forms.js")),
    ("/sessions.js", SCRIPT, include_str!("../../web/sessions.js")),
    ("/ledger.js", SCRIPT, include_str!("../../web/ledger.js")),
    ("/memory.js", SCRIPT, include_str!("../../web/memory.js")),
    ("/rules.js", SCRIPT, include_str!("../../web/rules.js")),
    ("/plot.js", SCRIPT, include_str!("../../web/plot.js")),
    ("/icons.js", SCRIPT, include_str!("../../web/icons.js")),
    ("/keys.js", SCRIPT, include_str!("../../web/keys.js")),
    ("/node-edit.js", SCRIPT, include_str!("../../web/node-edit.js")),
    ("/node-log.js", SCRIPT, include_str!("../../web/node-log.js")),
    ("/palette.js", SCRIPT, include_str!("../../web/palette.js")),
    ("/contributions.js", SCRIPT, include_str!("../../web/contributions.js")),
    ("/team.js", SCRIPT, include_str!("../../web/team.js")),
    ("/words-team.js", SCRIPT, include_str!("../../web/words-team.js")),
    ("/time.js", SCRIPT, include_str!("../../web/time.js")),
    ("/transitions.js", SCRIPT, include_str!("../../web/transitions.js")),
    ("/tree-moves.js", SCRIPT, include_str!("../../web/tree-moves.js")),
    ("/tree-search.js", SCRIPT, include_str!("../../web/tree-search.js")),
    ("/tree-rows.js", SCRIPT, include_str!("../../web/tree-rows.js")),
    ("/undo.js", SCRIPT, include_str!("../../web/undo.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../../web/icon.svg")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The element of the page that tells its scripts the setting `language`.
const ROOT: &str = "<html lang=\"en\"";

/// Returns the routes of the files, below the path to which the cookie is bound. `setting` is the language
/// that the user set; without it, the page follows the browser.
pub fn router(page_path: &str, setting: Option<Lang>) -> Router {
    FILES.iter().fold(Router::new(), |router, (path, kind, text)| {
        let text = match setting.filter(|_| *path == "/") {
            Some(lang) => {
                text.replacen(ROOT, &format!("{ROOT} data-language=\"{}\"", lang.as_str()), 1).into()
            }
            None => Bytes::from_static(text.as_bytes()),
        };
        router.route(&format!("/{page_path}{path}"), get(move || async move { file(kind, text) }))
    })
}

/// Returns a file of the page other than the first.
pub fn find_file(name: &str) -> Option<Response> {
    let (_, kind, text) = FILES.iter().find(|(path, ..)| path.strip_prefix('/') == Some(name))?;
    (!name.is_empty()).then(|| file(kind, Bytes::from_static(text.as_bytes())))
}

/// Returns the page for a team. It shows the views whose data the server of a team has.
pub fn team_index() -> Response {
    let (_, kind, text) = FILES[0];
    file(kind, text.replacen(ROOT, &format!("{ROOT} data-team"), 1).into())
}

fn file(kind: &'static str, text: Bytes) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Redeems the ticket of a link: sets the cookie and forwards the browser to the page. Without a valid ticket, returns
/// a page that explains how to get a new link.
///
/// Forwards with a `refresh` element instead of an HTTP redirect: after a link on another site, a browser does not send
/// a `SameSite=Strict` cookie with the redirected request.
pub async fn entry(State(state): State<Arc<ServerState>>, RawQuery(query): RawQuery) -> Response {
    let ticket = query.as_deref().and_then(|query| query.strip_prefix("ticket="));
    let Some(cookie) = ticket.and_then(|ticket| state.guard.redeem_ticket(ticket)) else {
        let mut response = file("text/html; charset=utf-8", Bytes::from_static(CLOSED.as_bytes()));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return response;
    };
    let page_path = state.guard.page_path();
    let text = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url=/{page_path}/\"><title>Tanmi</title>\
         <link rel=icon href=\"data:,\"><a href=\"/{page_path}/\">Tanmi</a>"
    );
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

const CLOSED: &str = "<!doctype html><meta charset=utf-8><title>Tanmi</title><link rel=icon href=\"data:,\">\
<h1>Tanmi</h1><p>This link is invalid or already used. Run <code>tanmi serve</code> again for a new one.</p>\
<p lang=zh>此链接无效或已被使用。请再次运行 <code>tanmi serve</code> 获取新链接。</p>";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tanmi_event::EventKind;
    use tanmi_platform::CLIENTS;

    use super::FILES;

    /// Returns the items between the brackets of `const NAME = […]` in a script.
    fn list(file: &str, name: &str) -> BTreeSet<&'static str> {
        let (_, _, text) = FILES.iter().find(|(path, ..)| *path == file).unwrap();
        let (_, rest) = text.split_once(&format!("const {name} = [")).unwrap();
        rest.split(']').next().unwrap().split(',').map(|word| word.trim().trim_matches('\'')).collect()
    }

    #[test]
    fn page_choices_match_the_values_of_the_program() {
        let events: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let platforms: BTreeSet<&str> = CLIENTS.platforms().map(|platform| platform.id).collect();
        assert_eq!(list("/ledger.js", "EVENTS"), events);
        assert_eq!(list("/ledger.js", "CLIENTS"), platforms);
        // The page does not offer to explain the events that come from tool calls.
        let offered = list("/rules.js", "EVENTS");
        let omitted: Vec<&&str> = events.difference(&offered).collect();
        assert!(offered.is_subset(&events), "{offered:?}");
        assert_eq!(omitted, [&"pre_tool_use", &"task_complete"]);
        assert_eq!(list("/memory.js", "TYPES"), BTreeSet::from(["W", "B", "O", "S", "T"]));
    }

    /// The labels that hints quote, as the snapshots of the crates show them.
    fn quoted_labels() -> BTreeSet<(usize, String)> {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut labels = BTreeSet::new();
        for folder in ["workspace/src/error/snapshots", "app/src/error/snapshots"] {
            for file in std::fs::read_dir(crates.join(folder)).unwrap() {
                let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
                for line in text.lines().filter(|line| line.contains("Page: ")) {
                    for (column, open, close) in [(0, '「', '」'), (1, '“', '”')] {
                        let parts = line.split(open).skip(1).filter_map(|part| part.split(close).next());
                        labels.extend(parts.map(|label| (column, label.to_owned())));
                    }
                }
            }
        }
        labels
    }

    #[test]
    fn hints_for_the_page_quote_labels_of_the_page() {
        let (_, _, words) = FILES.iter().find(|(path, ..)| *path == "/words.js").unwrap();
        let labels = quoted_labels();
        assert!(!labels.is_empty());
        for (column, label) in labels {
            let pattern = if column == 0 { format!("['{label}', ") } else { format!(", '{label}']") };
            assert!(words.contains(&pattern), "{label} is no label of the page");
        }
    }
}
