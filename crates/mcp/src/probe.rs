//! Answers to `server/discover` that arrive after the client has stopped waiting for them.
//!
//! The client library waits 10 s for this answer and then sends `initialize`, although a server may need longer to start.
//! It treats the next answer as the answer to `initialize`, whichever request it answers.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Whether a server has answered `server/discover` with a result, but too late. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateDiscovery(Arc<AtomicBool>);

impl LateDiscovery {
    pub(crate) fn has_happened(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Transport that drops late answers to `server/discover`.
pub(crate) struct ProbingTransport<T> {
    inner: T,
    probe: Option<DiscoveryProbe>,
    late: LateDiscovery,
}

/// Pending request `server/discover`.
struct DiscoveryProbe {
    id: RequestId,
    /// Whether another request was sent since.
    is_abandoned: bool,
}

impl<T> ProbingTransport<T> {
    pub(crate) fn new(inner: T, late: LateDiscovery) -> Self {
        Self { inner, probe: None, late }
    }

    fn note_sent(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        if let ClientRequest::DiscoverRequest(_) = &request.request {
            self.probe = Some(DiscoveryProbe { id: request.id.clone(), is_abandoned: false });
        } else if let Some(probe) = &mut self.probe {
            probe.is_abandoned = true;
        }
    }

    /// Returns whether a message answers an abandoned request.
    fn is_late(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let (id, is_discovery) = match message {
            JsonRpcMessage::Response(response) => {
                (Some(&response.id), matches!(&response.result, ServerResult::DiscoverResult(_)))
            }
            JsonRpcMessage::Error(error) => (error.id.as_ref(), false),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return false,
        };
        // Some servers return numbers as texts. An error without an id answers the oldest request.
        let answers = |probe: &mut DiscoveryProbe| id.is_none_or(|id| id.to_string() == probe.id.to_string());
        let Some(probe) = self.probe.take_if(answers) else { return false };
        if probe.is_abandoned && is_discovery {
            self.late.0.store(true, Ordering::Release);
        }
        probe.is_abandoned
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for ProbingTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.note_sent(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_late(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::time::Duration;

    use rmcp::model::ProtocolVersion;
    use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;

    /// Server that reads its first request when it has started.
    struct SlowServer {
        starts_at: Instant,
        /// How it answers `server/discover`, without the id; `None` if it does not.
        discovery: Option<Value>,
        /// Whether errors have no id.
        omits_ids: bool,
        unread: Arc<Mutex<VecDeque<Value>>>,
    }

    impl SlowServer {
        fn answer(&self, request: &Value) -> Option<Value> {
            let mut answer = match request["method"].as_str() {
                Some("server/discover") => self.discovery.clone()?,
                Some("initialize") => json!({"result": {
                    "protocolVersion": "2025-06-18", "capabilities": {},
                    "serverInfo": {"name": "slow", "version": "1"},
                }}),
                _ => return None,
            };
            answer["jsonrpc"] = json!("2.0");
            if !(self.omits_ids && answer.get("error").is_some()) {
                answer["id"] = request["id"].clone();
            }
            Some(answer)
        }
    }

    impl Transport<RoleClient> for SlowServer {
        type Error = Infallible;

        fn send(
            &mut self,
            message: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            self.unread.lock().unwrap().push_back(serde_json::to_value(&message).unwrap());
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            tokio::time::sleep_until(self.starts_at).await;
            loop {
                let request = self.unread.lock().unwrap().pop_front();
                match request.as_ref().and_then(|request| self.answer(request)) {
                    Some(answer) => return Some(serde_json::from_value(answer).unwrap()),
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_to_discover_is_not_taken_for_that_of_initialize() {
        let unknown = json!({"error": {"code": -32601, "message": "Method not found"}});
        let discovered = json!({"result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "ttlMs": 0, "cacheScope": "private",
        }});
        for (seconds, discovery, omits_ids, is_late) in [
            (0, Some(unknown.clone()), false, false),
            (0, None, false, false),
            (12, Some(unknown.clone()), false, false),
            (12, Some(unknown.clone()), true, false),
            (25, Some(unknown), false, false),
            (12, None, false, false),
            (12, Some(discovered), false, true),
        ] {
            let case = format!("{seconds} s, {discovery:?}, without ids: {omits_ids}");
            let server = SlowServer {
                starts_at: Instant::now() + Duration::from_secs(seconds),
                discovery,
                omits_ids,
                unread: Arc::default(),
            };
            let late = LateDiscovery::default();
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            };
            let served =
                ().serve_with_lifecycle(ProbingTransport::new(server, late.clone()), lifecycle).await;
            let service = served.unwrap_or_else(|error| panic!("{case}: {error}"));
            let version = service.peer().peer_info().unwrap().protocol_version.clone();
            assert_eq!(version, ProtocolVersion::V_2025_06_18, "{case}");
            assert_eq!(late.has_happened(), is_late, "{case}");
        }
    }
}
