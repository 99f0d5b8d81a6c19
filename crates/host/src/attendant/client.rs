//! Sessions whose client decides: an editor, a program that uses the server, or an SDK.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, Principal};
use pintle_governance::{Agreement, BudgetApprover, BudgetQuestion};

use super::Attendant;

/// Attendant of a session whose client decides on calls. It can ask nothing else, so it agrees to no spending beyond a
/// limit.
#[derive(Debug)]
pub struct ClientAttendant {
    user: Option<Principal>,
    approver: Option<Arc<dyn Approver>>,
}

impl ClientAttendant {
    /// Returns the attendant for a client that decides through the handle of the session.
    pub fn without_approver(user: Option<Principal>) -> Self {
        Self { user, approver: None }
    }

    /// Returns the attendant for a client that `approver` asks for each decision.
    pub fn with_approver(user: Option<Principal>, approver: Arc<dyn Approver>) -> Self {
        Self { user, approver: Some(approver) }
    }
}

#[async_trait]
impl Approver for ClientAttendant {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        match &self.approver {
            Some(approver) => approver.decide(request).await,
            None => std::future::pending().await,
        }
    }

    fn principal(&self) -> Option<Principal> {
        self.user.clone()
    }
}

#[async_trait]
impl BudgetApprover for ClientAttendant {
    async fn agree(&self, _question: &BudgetQuestion) -> Option<Agreement> {
        None
    }
}

#[async_trait]
impl Attendant for ClientAttendant {
    fn is_attended(&self) -> bool {
        true
    }

    fn user(&self) -> Option<Principal> {
        self.user.clone()
    }

    async fn ask_for_text(&self, _question: &str, _details: &[String], _prompt: &str) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use pintle_llm::Fingerprint;
    use serde_json::json;

    use super::super::FakeAttendant;
    use super::*;

    #[tokio::test]
    async fn decisions_come_from_the_approver_or_through_the_handle() {
        let request = ApprovalRequest::new("call_1", "shell", Fingerprint::from_bytes(b"call"))
            .with_arguments(json!({"command": "make"}));
        let user = Some(Principal::new("ann"));
        let without_approver = ClientAttendant::without_approver(user.clone());
        assert_eq!(without_approver.decide(&request).now_or_never(), None);
        let approver = Arc::new(FakeAttendant::attended(["yes"]));
        let with_approver = ClientAttendant::with_approver(user.clone(), approver);
        assert_eq!(with_approver.decide(&request).now_or_never(), Some(Decision::Approve));
        for attendant in [without_approver, with_approver] {
            assert!(attendant.is_attended());
            assert_eq!((attendant.principal(), attendant.user()), (user.clone(), user.clone()));
        }
    }
}
