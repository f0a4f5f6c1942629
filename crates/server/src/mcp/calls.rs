//! The requests that the transport has passed on and not answered yet. Their number is limited: while it is reached,
//! the transport reads no further messages, so a client that sends requests and reads no responses has to wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ClientNotification, GetExtensions, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of requests in work, including those whose response is not written yet.
const MAX_PENDING: usize = 16;

/// A request in work. The handler and the response share it; the last of them to end frees its place.
pub type Place = Arc<OwnedSemaphorePermit>;

pub struct PendingCalls {
    places: Arc<Semaphore>,
    /// The places of requests without a response.
    unanswered: Mutex<HashMap<RequestId, Place>>,
}

impl PendingCalls {
    pub fn new() -> PendingCalls {
        PendingCalls { places: Arc::new(Semaphore::new(MAX_PENDING)), unanswered: Mutex::default() }
    }

    /// Waits for a free place. `None` never happens, because the semaphore is not closed.
    pub async fn wait(&self) -> Option<Place> {
        Arc::clone(&self.places).acquire_owned().await.ok().map(Arc::new)
    }

    /// Gives a request its place, and takes it from a cancelled one, which gets no response. `Err` is the id
    /// of a request if that id is in use.
    pub fn track(&self, message: &mut RxJsonRpcMessage<RoleServer>, place: Place) -> Result<(), RequestId> {
        match message {
            JsonRpcMessage::Request(request) => {
                let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
                if unanswered.contains_key(&request.id) {
                    return Err(request.id.clone());
                }
                unanswered.insert(request.id.clone(), Arc::clone(&place));
                request.request.extensions_mut().insert(place);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.end(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(())
    }

    /// Ends the wait for a response: it is about to be written, or the client cancelled the request. The returned place
    /// is free when it is dropped.
    pub fn end(&self, id: &RequestId) -> Option<Place> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::{Value, json};

    use super::*;

    fn message(value: Value) -> RxJsonRpcMessage<RoleServer> {
        serde_json::from_value(value).unwrap()
    }

    fn free_place(calls: &PendingCalls) -> Option<Place> {
        calls.wait().now_or_never().flatten()
    }

    #[test]
    fn place_is_free_after_handler_and_response_or_cancellation() {
        let calls = PendingCalls::new();
        let request = |id: usize| message(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        let mut requests: Vec<_> = (0..MAX_PENDING).map(request).collect();
        for request in &mut requests {
            calls.track(request, free_place(&calls).unwrap()).unwrap();
        }
        assert!(free_place(&calls).is_none(), "every place is taken");
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}});
        let place = calls.end(&RequestId::Number(1)).unwrap();
        calls.track(&mut message(cancel), Arc::clone(&place)).unwrap();
        assert!(free_place(&calls).is_none(), "the handlers still run");
        requests.drain(..2);
        let cancelled = free_place(&calls);
        assert!(cancelled.is_some() && free_place(&calls).is_none(), "the response is not written yet");
        drop(place);
        let answered = free_place(&calls).unwrap();
        assert_eq!(calls.track(&mut request(2), answered), Err(RequestId::Number(2)), "the id is in use");
    }
}
