//! The page, embedded: plain files of `web/`, with no build between them and the browser.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;

use super::ServerState;

const FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("../../web/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../../web/style.css")),
    ("/main.js", SCRIPT, include_str!("../../web/main.js")),
    ("/api.js", SCRIPT, include_str!("../../web/api.js")),
    ("/dom.js", SCRIPT, include_str!("../../web/dom.js")),
    ("/words.js", SCRIPT, include_str!("../../web/words.js")),
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
    ("/icon.svg", "image/svg+xml", include_str!("../../web/icon.svg")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files, below the path that the cookie is for.
pub fn router(door: &str) -> Router {
    FILES.iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(&format!("/{door}{path}"), get(move || async move { file(kind, text) }))
    })
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Whoever comes with a ticket gets the cookie and goes on to the page; anybody else is told how to come in.
///
/// It goes on by itself and not by a redirect: a browser sends no strict cookie along where another place sent it.
pub async fn entry(State(state): State<Arc<ServerState>>, RawQuery(query): RawQuery) -> Response {
    let ticket = query.as_deref().and_then(|query| query.strip_prefix("ticket="));
    let Some(cookie) = ticket.and_then(|ticket| state.guard.redeem_ticket(ticket)) else {
        let mut response = file("text/html; charset=utf-8", CLOSED);
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return response;
    };
    let door = state.guard.door();
    let text = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url=/{door}/\"><title>Tanmi</title>\
         <link rel=icon href=\"data:,\"><a href=\"/{door}/\">Tanmi</a>"
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

    use tanmi_event::{EventKind, PLATFORMS};

    use super::FILES;

    /// The words between the brackets of `const NAME = […]`.
    fn list(file: &str, name: &str) -> BTreeSet<&'static str> {
        let (_, _, text) = FILES.iter().find(|(path, ..)| *path == file).unwrap();
        let (_, rest) = text.split_once(&format!("const {name} = [")).unwrap();
        rest.split(']').next().unwrap().split(',').map(|word| word.trim().trim_matches('\'')).collect()
    }

    #[test]
    fn the_page_offers_the_words_there_are() {
        let events: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let platforms: BTreeSet<&str> = PLATFORMS.iter().map(|platform| platform.id).collect();
        assert_eq!(list("/ledger.js", "EVENTS"), events);
        assert_eq!(list("/ledger.js", "CLIENTS"), platforms);
        // What a tool reports itself is no question to the rules.
        let asked = list("/rules.js", "EVENTS");
        let not_asked: Vec<&&str> = events.difference(&asked).collect();
        assert!(asked.is_subset(&events), "{asked:?}");
        assert_eq!(not_asked, [&"pre_tool_use", &"task_complete"]);
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
