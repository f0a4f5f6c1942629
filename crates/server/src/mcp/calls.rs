//! The requests that the transport has passed on and not answered yet. Their number is limited: while it is reached,
//! the transport reads no further messages, so a client that sends requests and reads no responses has to wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;
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

    /// Gives a request its place. Returns whether its id was free.
    pub fn begin(&self, id: RequestId, place: Place) -> bool {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        if unanswered.contains_key(&id) {
            return false;
        }
        unanswered.insert(id, place);
        true
    }

    /// Ends the wait for a response: it is about to be written, or the client cancelled the request. The returned place
    /// is free when it is dropped.
    pub fn end(&self, id: &RequestId) -> Option<Place> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}
