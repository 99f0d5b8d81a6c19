//! Approvers from closures and channels.

use std::fmt;
use std::future::Future;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use super::{ApprovalRequest, Approver};
use crate::protocol::Decision;

/// Creates an approver from an asynchronous closure, like [`tool_fn`](pintle_tools::tool_fn) creates a tool.
///
/// ```
/// use pintle_agent::{ApprovalRequest, Decision, approver_fn};
///
/// let approver = approver_fn(|request: ApprovalRequest| async move {
///     match request.tool_name.as_str() {
///         "write_file" => Decision::Approve,
///         _ => Decision::Deny { reason: Some("only files are changed here".to_owned()) },
///     }
/// });
/// # fn is_approver(_: impl pintle_agent::Approver) {}
/// # is_approver(approver);
/// ```
pub fn approver_fn<F, D>(decide: F) -> ApproverFn<F>
where
    F: Fn(ApprovalRequest) -> D + Send + Sync,
    D: Future<Output = Decision> + Send,
{
    ApproverFn { decide }
}

/// Approver that calls a closure. [`approver_fn`] creates it.
#[derive(Clone)]
pub struct ApproverFn<F> {
    decide: F,
}

impl<F> fmt::Debug for ApproverFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApproverFn").finish_non_exhaustive()
    }
}

#[async_trait]
impl<F, D> Approver for ApproverFn<F>
where
    F: Fn(ApprovalRequest) -> D + Send + Sync,
    D: Future<Output = Decision> + Send,
{
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        (self.decide)(request.clone()).await
    }
}

/// Creates an approver that sends each request to a receiver, and the receiver. At most `capacity` requests wait in the channel;
/// further ones wait for room.
///
/// A call is denied if the receiver or its [`PendingDecision`] is dropped.
#[must_use]
pub fn approver_channel(capacity: usize) -> (ChannelApprover, ApprovalReceiver) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (ChannelApprover(sender), ApprovalReceiver(receiver))
}

/// Approver that sends requests to an [`ApprovalReceiver`]. [`approver_channel`] creates it. Sessions may share it.
#[derive(Clone, Debug)]
pub struct ChannelApprover(mpsc::Sender<PendingDecision>);

/// Receiver of the requests of a [`ChannelApprover`].
#[derive(Debug)]
pub struct ApprovalReceiver(mpsc::Receiver<PendingDecision>);

/// Request that waits for a decision.
#[derive(Debug)]
#[non_exhaustive]
pub struct PendingDecision {
    /// The request.
    pub request: ApprovalRequest,
    answer: oneshot::Sender<Decision>,
}

impl ApprovalReceiver {
    /// Returns the next request; `None` once all approvers are dropped. Cancel safe.
    pub async fn next(&mut self) -> Option<PendingDecision> {
        self.0.recv().await
    }
}

impl PendingDecision {
    /// Decides on the call. Has no effect if the decision is no longer needed.
    pub fn decide(self, decision: Decision) {
        // The session has stopped waiting.
        let _ = self.answer.send(decision);
    }

    /// Returns whether the decision is no longer needed, for instance because the turn was stopped.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }
}

#[async_trait]
impl Approver for ChannelApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let (answer, decision) = oneshot::channel();
        let unanswered = || Decision::Deny { reason: Some("the application did not decide".to_owned()) };
        if self.0.send(PendingDecision { request: request.clone(), answer }).await.is_err() {
            return unanswered();
        }
        decision.await.unwrap_or_else(|_dropped| unanswered())
    }
}
