//! One call of a round, from its judgement to its start. Each stage has a type, and each step consumes the call, so that it
//! cannot start twice or without a decision.

use std::sync::Arc;

use pintle_llm::Fingerprint;
use pintle_tools::gate::JudgementStep;
use pintle_tools::pipeline::PreparedCall;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::approval::ApprovalRequest;
use crate::protocol::{CallPlan, Preparation, Principal};

/// A call in one of the stages [`Judged`], [`Asked`] and [`Released`].
#[derive(Debug)]
pub(super) struct StagedCall<S> {
    call: PreparedCall,
    stage: S,
}

/// The gates and hooks have judged the call: it may run, at once or after approval.
#[derive(Debug)]
pub(super) struct Judged {
    /// Request for approval, if a gate asks for it.
    request: Option<Arc<ApprovalRequest>>,
    /// Answer of a hook to a question that was asked only because no rule names the call.
    answer: Option<JudgementStep>,
}

/// The call waits for a decision. Dropping it ends the approver's work.
#[derive(Debug)]
pub(super) struct Asked {
    request: Arc<ApprovalRequest>,
    _asked: DropGuard,
}

/// The call may start, once, with exactly these arguments.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Fingerprint that was approved, if approval was needed.
    pub(super) approved: Option<Fingerprint>,
    /// Principal that approved it, if known.
    pub(super) approved_by: Option<Principal>,
    /// Answer of a hook that replaces an approval.
    pub(super) answer: Option<JudgementStep>,
}

impl<S> StagedCall<S> {
    pub(super) fn call(&self) -> &PreparedCall {
        &self.call
    }

    /// Returns the call and its stage.
    pub(super) fn into_parts(self) -> (PreparedCall, S) {
        (self.call, self.stage)
    }
}

impl StagedCall<Judged> {
    /// Creates a call that needs no approval.
    pub(super) fn allowed(call: PreparedCall, answer: Option<JudgementStep>) -> Self {
        Self { call, stage: Judged { request: None, answer } }
    }

    /// Creates a call that needs approval.
    pub(super) fn gated(call: PreparedCall, request: Arc<ApprovalRequest>) -> Self {
        Self { call, stage: Judged { request: Some(request), answer: None } }
    }

    /// Returns the request for approval, if the call needs it.
    pub(super) fn request(&self) -> Option<&Arc<ApprovalRequest>> {
        self.stage.request.as_ref()
    }

    /// Returns the preparation for the machine.
    pub(super) fn preparation(&self) -> Preparation {
        let plan = CallPlan {
            effect: self.call.effect(),
            repeatable: self.call.is_repeatable(),
            declares_changes: self.call.declares_changes(),
            writes: self.call.targets().to_vec(),
            repairs: self.call.repairs().to_vec(),
        };
        match self.request() {
            None => Preparation::Ready(plan),
            Some(request) => Preparation::Ask {
                plan,
                arguments: request.arguments.clone(),
                reason: request.reason.clone(),
                fingerprint: request.fingerprint,
                sandbox: request.sandbox,
            },
        }
    }

    /// Asks for a decision. Returns the call and the token that fires when the decision is no longer needed; `None` if the
    /// call needs none.
    pub(super) fn ask(self) -> Option<(StagedCall<Asked>, CancellationToken)> {
        let request = self.stage.request?;
        let asked = CancellationToken::new();
        let stage = Asked { request, _asked: asked.clone().drop_guard() };
        Some((StagedCall { call: self.call, stage }, asked))
    }

    /// Releases a call that was approved before the session was resumed; `None` if it needs no approval.
    pub(super) fn confirm(self, by: Option<Principal>) -> Option<StagedCall<Released>> {
        let approved = Some(self.stage.request?.fingerprint);
        Some(StagedCall { call: self.call, stage: Released { approved, approved_by: by, answer: None } })
    }

    /// Releases a call that needs no approval; `None` if it needs one.
    pub(super) fn release(self) -> Option<StagedCall<Released>> {
        let Judged { request: None, answer } = self.stage else { return None };
        Some(StagedCall { call: self.call, stage: Released { answer, ..Released::default() } })
    }
}

impl StagedCall<Asked> {
    /// Returns the request that waits for the decision.
    pub(super) fn request(&self) -> &Arc<ApprovalRequest> {
        &self.stage.request
    }

    /// Releases the approved call.
    pub(super) fn approve(self, by: Option<Principal>) -> StagedCall<Released> {
        let approved = Some(self.stage.request.fingerprint);
        StagedCall { call: self.call, stage: Released { approved, approved_by: by, answer: None } }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use pintle_env::MemoryEnvironment;
    use pintle_llm::ToolCall;
    use pintle_tools::gate::Verdict;
    use pintle_tools::pipeline;

    use super::*;
    use crate::profile::ProviderProfile;

    /// Returns a call that needs no approval.
    pub(in crate::driver) async fn allowed() -> StagedCall<Judged> {
        let tools = ProviderProfile::anthropic("m").tool_registry;
        let tool_call = ToolCall::from_raw("a", "shell", r#"{"command":"true"}"#);
        let env = MemoryEnvironment::new("/project");
        let judged = pipeline::prepare(&tools, &[], &env, &tool_call).await;
        StagedCall::allowed(judged.call().unwrap().clone(), None)
    }

    /// Returns a call that needs approval.
    pub(in crate::driver) async fn gated() -> StagedCall<Judged> {
        let (call, _) = allowed().await.into_parts();
        let request = ApprovalRequest::new("a", "shell", call.fingerprint());
        StagedCall::gated(call, Arc::new(request))
    }

    #[tokio::test]
    async fn a_call_without_a_request_is_released_with_the_answer_of_its_hook() {
        let (call, _) = allowed().await.into_parts();
        let answer = Some(JudgementStep::new("hook", Verdict::ALLOW));
        let judged = || StagedCall::allowed(call.clone(), answer.clone());
        assert!(matches!(judged().preparation(), Preparation::Ready(_)));
        assert!(judged().ask().is_none() && judged().confirm(None).is_none());
        let (_, released) = judged().release().unwrap().into_parts();
        assert_eq!((released.approved, released.answer), (None, answer));
    }

    #[tokio::test]
    async fn a_call_with_a_request_is_released_only_by_an_approval() {
        let judged = gated().await;
        let fingerprint = judged.call().fingerprint();
        assert!(matches!(judged.preparation(), Preparation::Ask { .. }));
        assert!(gated().await.release().is_none());
        let (asked, token) = judged.ask().unwrap();
        assert_eq!((asked.request().fingerprint, token.is_cancelled()), (fingerprint, false));
        let by = Some(Principal::new("x"));
        let (_, released) = asked.approve(by.clone()).into_parts();
        assert_eq!((released.approved, &released.approved_by), (Some(fingerprint), &by));
        assert!(token.is_cancelled(), "the approver's work ends with the decision");
        let (_, confirmed) = gated().await.confirm(by.clone()).unwrap().into_parts();
        assert_eq!((confirmed.approved, confirmed.approved_by), (Some(fingerprint), by));
    }
}
