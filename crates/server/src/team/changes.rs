//! Tells the page that something changed, as server-sent events. The page then fetches what it shows: the
//! event names no change, so it needs no history.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::select;
use futures_util::stream;
use tokio::sync::watch;

use super::TeamState;
use super::access::Request;

/// How often the login of a reader is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Changes in this time are told at once.
const COLLECT_FOR: Duration = Duration::from_millis(200);

struct Reader {
    state: Arc<TeamState>,
    request: Request,
    wake: watch::Receiver<()>,
    closing: watch::Receiver<bool>,
    is_new: bool,
}

/// Answers with a stream that ends with the login of its reader.
pub async fn changes(State(state): State<Arc<TeamState>>, request: Request) -> Response {
    let wake = state.heads.feed(&request.caller.project).subscribe();
    let closing = state.heads.closing();
    let reader = Reader { state, request, wake, closing, is_new: true };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}

impl Reader {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_new) {
            return Some(Event::default().event("hello").data("{}"));
        }
        loop {
            let is_woken = {
                let (woken, closed) =
                    (std::pin::pin!(self.wake.changed()), std::pin::pin!(self.closing.changed()));
                tokio::time::timeout(CHECK_INTERVAL, select(woken, closed)).await.is_ok()
            };
            if *self.closing.borrow() || self.request.check_again(&self.state).await.is_err() {
                return None;
            }
            if is_woken {
                tokio::time::sleep(COLLECT_FOR).await;
                self.wake.mark_unchanged();
                return Some(Event::default().event("gap").data("{}"));
            }
        }
    }
}
