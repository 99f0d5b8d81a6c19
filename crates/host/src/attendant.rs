//! Attendants of sessions: the users and programs that decide on calls, agree to more spending, and answer questions of
//! MCP servers.

mod client;
mod denying;
#[cfg(test)]
mod fake;

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, Principal};
use pintle_governance::{BudgetApprover, Policy, PresentPlan};

pub use self::client::ClientAttendant;
pub use self::denying::DenyingAttendant;
#[cfg(test)]
pub(crate) use self::fake::FakeAttendant;

/// Answer that refuses a question.
pub const REFUSAL: &str = "!";

/// User or program that answers for a session: decides on calls, agrees to spending beyond a limit, and answers
/// questions of MCP servers.
#[async_trait]
pub trait Attendant: Approver + BudgetApprover {
    /// Returns whether a user can be asked.
    fn is_attended(&self) -> bool;

    /// Returns the user on whose behalf the session runs, whether or not that user can be asked.
    fn user(&self) -> Option<Principal>;

    /// Sets the policy of the session, to which answers may add rules. Only the first call has an effect. By default, it
    /// is ignored.
    fn set_policy(&self, _policy: Policy) {}

    /// Rejects mode auto for accepted plans because there is no sandbox. By default, this is ignored.
    fn refuse_auto(&self) {}

    /// Asks a question that belongs to no call. [`REFUSAL`] as an answer refuses it. Returns `None` if no user can be
    /// asked, or if the question has ended without an answer. The texts contain no control characters. Dropping the
    /// future withdraws the question.
    async fn ask_for_text(&self, question: &str, details: &[String], prompt: &str) -> Option<String>;
}

/// Approver of a session with a shared attendant.
#[derive(Debug)]
pub struct AttendantApprover(pub Arc<dyn Attendant>);

#[async_trait]
impl Approver for AttendantApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.0.decide(request).await
    }

    fn principal(&self) -> Option<Principal> {
        self.0.principal()
    }
}

/// Returns the decision on a call that needs approval if no user can be asked.
pub fn unattended_denial(request: &ApprovalRequest) -> Decision {
    let reason = match request.tool_kind == PresentPlan::NAME {
        true => "no user can accept it here; give the complete plan as your final answer",
        false => "it needs approval, but no terminal is available",
    };
    Decision::Deny { reason: Some(reason.to_owned()) }
}
