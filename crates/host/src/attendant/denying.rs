//! Sessions without a user.

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, Principal};
use pintle_governance::{Agreement, BudgetApprover, BudgetQuestion};

use super::{Attendant, unattended_denial};

/// Attendant of a session without a user. It denies every call that needs approval, and agrees to no spending beyond a
/// limit.
#[derive(Debug)]
pub struct DenyingAttendant {
    user: Option<Principal>,
}

impl DenyingAttendant {
    /// Returns the attendant of a session that runs on behalf of `user`.
    pub fn new(user: Option<Principal>) -> Self {
        Self { user }
    }
}

#[async_trait]
impl Approver for DenyingAttendant {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        unattended_denial(request)
    }
}

#[async_trait]
impl BudgetApprover for DenyingAttendant {
    async fn agree(&self, _question: &BudgetQuestion) -> Option<Agreement> {
        None
    }
}

#[async_trait]
impl Attendant for DenyingAttendant {
    fn is_attended(&self) -> bool {
        false
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
    use pintle_governance::PresentPlan;
    use pintle_llm::Fingerprint;

    use super::*;

    #[tokio::test]
    async fn calls_and_plans_are_denied_on_behalf_of_no_user() {
        let attendant = DenyingAttendant::new(Some(Principal::new("ann")));
        for (tool, reason) in [
            ("shell", "it needs approval, but no terminal is available"),
            (PresentPlan::NAME, "no user can accept it here; give the complete plan as your final answer"),
        ] {
            let request = ApprovalRequest::new("call_1", tool, Fingerprint::from_bytes(b"call"));
            let denial = Decision::Deny { reason: Some(reason.to_owned()) };
            assert_eq!(attendant.decide(&request).await, denial, "{tool}");
        }
        assert!(!attendant.is_attended());
        assert_eq!((attendant.principal(), attendant.user()), (None, Some(Principal::new("ann"))));
    }
}
