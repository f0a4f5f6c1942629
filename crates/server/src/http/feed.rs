//! The change feed, as server-sent events. Every change has a sequence number. A subscriber that reconnects sends the
//! last number it received and gets the changes after it. If these are no longer known, it gets a `gap` event and has
//! to fetch everything again.

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

/// The number of changes that are kept for subscribers that reconnect, and that a slow subscriber may lag behind.
const HISTORY: usize = 4096;
/// The maximum number of subscribers.
pub const MAX_SUBSCRIBERS: usize = 500;

pub struct Feed {
    /// Identifies this run of the server. Sequence numbers of different runs cannot be compared.
    epoch: String,
    state: Mutex<State>,
}

struct State {
    /// The sequence number of the last change.
    seq: u64,
    /// The last changes, oldest first. Invariant: their numbers are consecutive and end with `seq`.
    history: VecDeque<Arc<NumberedChange>>,
    /// `None` once the feed is closed.
    sender: Option<Sender<Arc<NumberedChange>>>,
}

struct NumberedChange {
    seq: u64,
    data: Value,
}

/// One subscriber: the events it gets first, and the channel of later changes.
struct Subscriber {
    epoch: String,
    backlog: VecDeque<Event>,
    receiver: Receiver<Arc<NumberedChange>>,
}

impl Feed {
    pub fn new() -> Feed {
        let state = State { seq: 0, history: VecDeque::new(), sender: Some(channel(HISTORY).0) };
        Feed { epoch: id::random(8), state: Mutex::new(state) }
    }

    pub fn subscriber_count(&self) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sender.as_ref().map_or(0, Sender::receiver_count)
    }

    pub fn publish(&self, data: Value) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.seq += 1;
        let change = Arc::new(NumberedChange { seq: state.seq, data });
        if state.history.len() == HISTORY {
            state.history.pop_front();
        }
        state.history.push_back(Arc::clone(&change));
        if let Some(sender) = &state.sender {
            // An error only means that there are no subscribers.
            let _ = sender.send(change);
        }
    }

    /// Ends every stream.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).sender = None;
    }

    /// Returns the stream of a subscriber that has received everything up to `last`, its `Last-Event-ID`. `None` if
    /// the feed is closed.
    pub fn subscribe(&self, last: Option<&str>) -> Option<Response> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = state.sender.as_ref()?.subscribe();
        let mut backlog = VecDeque::new();
        match last {
            // The current number: data that is fetched after this event is at least as new.
            None => backlog.push_back(event(&self.epoch, state.seq, "hello", &json!({"seq": state.seq}))),
            Some(last) => match self.changes_after(&state, last) {
                Some(missed) => backlog.extend(missed.iter().map(|change| change.event(&self.epoch))),
                None => backlog.push_back(event(&self.epoch, state.seq, "gap", &json!({"seq": state.seq}))),
            },
        }
        drop(state);
        let subscriber = Subscriber { epoch: self.epoch.clone(), backlog, receiver };
        let stream = stream::unfold(subscriber, |mut subscriber| async move {
            let event = subscriber.next().await?;
            Some((Ok::<_, Infallible>(event), subscriber))
        });
        let alive = KeepAlive::new().interval(Duration::from_secs(15));
        Some(Sse::new(stream).keep_alive(alive).into_response())
    }

    /// Returns the changes after the event id `last`; `None` if they are no longer in the history.
    fn changes_after(&self, state: &State, last: &str) -> Option<Vec<Arc<NumberedChange>>> {
        let (epoch, seq) = last.rsplit_once('-')?;
        let seq: u64 = seq.parse().ok()?;
        let oldest = state.seq - state.history.len() as u64;
        let is_known = epoch == self.epoch && (oldest..=state.seq).contains(&seq);
        is_known.then(|| state.history.iter().filter(|change| change.seq > seq).cloned().collect())
    }
}

impl NumberedChange {
    fn event(&self, epoch: &str) -> Event {
        event(epoch, self.seq, "change", &self.data)
    }
}

impl Subscriber {
    async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.backlog.pop_front() {
            return Some(event);
        }
        match self.receiver.recv().await {
            Ok(change) => Some(change.event(&self.epoch)),
            Err(RecvError::Closed) => None,
            // The subscriber is too slow: the oldest changes are lost, later ones are still in the channel.
            Err(RecvError::Lagged(missed)) => {
                Some(Event::default().event("gap").data(json!({"missed": missed}).to_string()))
            }
        }
    }
}

fn event(epoch: &str, seq: u64, name: &str, data: &Value) -> Event {
    Event::default().id(format!("{epoch}-{seq}")).event(name).data(data.to_string())
}
