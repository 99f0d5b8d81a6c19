//! Unanswered requests of the client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::rpc::{RequestId, RpcError};

/// Maximum number of concurrent requests. Further requests are answered with an error.
pub(crate) const MAX_REQUESTS: usize = 256;

/// Answers each request once. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequests {
    client: Client,
    open: Arc<Mutex<HashMap<RequestId, RequestCancellation>>>,
}

/// Cancellation of a request.
#[derive(Clone, Debug)]
pub(crate) enum RequestCancellation {
    /// By cancelling its prompt.
    Prompt { session: String },
    /// By dropping the future that answers it.
    Other(CancellationToken),
}

impl ClientRequests {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, open: Arc::default() }
    }

    /// Registers a request.
    ///
    /// # Errors
    ///
    /// The error of the response, if its id is in use or too many requests are pending.
    pub(crate) fn register(&self, id: &RequestId, open: RequestCancellation) -> Result<(), RpcError> {
        let mut requests = self.open();
        if requests.contains_key(id) {
            return Err(RpcError::invalid_request(format!("a request with the id {id} is in progress")));
        }
        if requests.len() >= MAX_REQUESTS {
            return Err(RpcError::invalid_request(format!(
                "{MAX_REQUESTS} requests are in progress already"
            )));
        }
        requests.insert(id.clone(), open);
        Ok(())
    }

    pub(crate) fn find(&self, id: &RequestId) -> Option<RequestCancellation> {
        self.open().get(id).cloned()
    }

    /// Removes a registered request that is answered elsewhere.
    pub(crate) fn release(&self, id: &RequestId) {
        self.open().remove(id);
    }

    /// Answers a registered request.
    pub(crate) async fn answer(&self, id: &RequestId, result: Result<impl Serialize, RpcError>) {
        let result = result.and_then(|result| {
            serde_json::to_value(result).map_err(|error| RpcError::new(RpcError::INTERNAL, error.to_string()))
        });
        self.answer_with(id, result).await;
    }

    async fn answer_with(&self, id: &RequestId, result: Result<Value, RpcError>) {
        self.open().remove(id);
        // If the client is gone, the response is dropped.
        let _ = self.client.reply(id, result).await;
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RequestId, RequestCancellation>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
