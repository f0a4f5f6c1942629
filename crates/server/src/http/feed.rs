//! The feed of changes, as server-sent events. Every event has a number; whoever comes back names the last one it saw
//! and gets the rest, or is sent that there is a gap and looks at everything again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tanmi_base::id;
use tokio::sync::broadcast::{Receiver, Sender, channel, error::RecvError};

/// Events that are kept for whoever comes back, and that a slow listener may be behind.
const KEPT: usize = 4096;
/// Listeners at once.
pub const LISTENERS: usize = 500;

pub struct Feed {
    /// Of this run of the server: numbers of another one mean nothing.
    epoch: String,
    state: Mutex<State>,
}

struct State {
    seq: u64,
    kept: VecDeque<Arc<Sent>>,
    /// `None` once the feed has ended.
    sender: Option<Sender<Arc<Sent>>>,
}

struct Sent {
    seq: u64,
    data: Value,
}

/// What a listener still has to be sent, and how it hears of more.
struct Listener {
    epoch: String,
    first: VecDeque<Event>,
    receiver: Receiver<Arc<Sent>>,
}

impl Feed {
    pub fn new() -> Feed {
        let state = State { seq: 0, kept: VecDeque::new(), sender: Some(channel(KEPT).0) };
        Feed { epoch: id::random(8), state: Mutex::new(state) }
    }

    pub fn listeners(&self) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sender.as_ref().map_or(0, Sender::receiver_count)
    }

    pub fn publish(&self, data: Value) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.seq += 1;
        let sent = Arc::new(Sent { seq: state.seq, data });
        if state.kept.len() == KEPT {
            state.kept.pop_front();
        }
        state.kept.push_back(Arc::clone(&sent));
        if let Some(sender) = &state.sender {
            // Nobody listening is no trouble.
            let _ = sender.send(sent);
        }
    }

    /// Ends every stream.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).sender = None;
    }

    /// The stream for a listener who has seen everything up to `last`, as its `Last-Event-ID` says.
    pub fn listen(&self, last: Option<&str>) -> Option<Response> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = state.sender.as_ref()?.subscribe();
        let mut first = VecDeque::new();
        match last {
            // Where the numbers begin: what is fetched from here on is at least as new.
            None => first.push_back(event(&self.epoch, state.seq, "hello", &json!({"seq": state.seq}))),
            Some(last) => match self.missed(&state, last) {
                Some(missed) => first.extend(missed.iter().map(|sent| sent.event(&self.epoch))),
                None => first.push_back(event(&self.epoch, state.seq, "gap", &json!({"seq": state.seq}))),
            },
        }
        drop(state);
        let listener = Listener { epoch: self.epoch.clone(), first, receiver };
        let stream = stream::unfold(listener, |mut listener| async move {
            let event = listener.next().await?;
            Some((Ok::<_, Infallible>(event), listener))
        });
        let alive = KeepAlive::new().interval(Duration::from_secs(15));
        Some(Sse::new(stream).keep_alive(alive).into_response())
    }

    /// What came after `last`; `None` if that is not known any more.
    fn missed(&self, state: &State, last: &str) -> Option<Vec<Arc<Sent>>> {
        let (epoch, seq) = last.rsplit_once('-')?;
        let seq: u64 = seq.parse().ok()?;
        let oldest = state.seq - state.kept.len() as u64;
        let is_known = epoch == self.epoch && (oldest..=state.seq).contains(&seq);
        is_known.then(|| state.kept.iter().filter(|sent| sent.seq > seq).cloned().collect())
    }
}

impl Sent {
    fn event(&self, epoch: &str) -> Event {
        event(epoch, self.seq, "change", &self.data)
    }
}

impl Listener {
    async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.first.pop_front() {
            return Some(event);
        }
        match self.receiver.recv().await {
            Ok(sent) => Some(sent.event(&self.epoch)),
            Err(RecvError::Closed) => None,
            // Too slow: the rest is still there, but what was missed is not.
            Err(RecvError::Lagged(missed)) => {
                Some(Event::default().event("gap").data(json!({"missed": missed}).to_string()))
            }
        }
    }
}

fn event(epoch: &str, seq: u64, name: &str, data: &Value) -> Event {
    Event::default().id(format!("{epoch}-{seq}")).event(name).data(data.to_string())
}
