//! Attendant for unit tests.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, Principal};
use pintle_governance::{Agreement, BudgetApprover, BudgetQuestion};

use super::{Attendant, unattended_denial};

/// Attendant with prepared answers. It records the questions that it is asked.
#[derive(Debug)]
pub(crate) struct FakeAttendant {
    is_attended: bool,
    answers: Mutex<VecDeque<String>>,
    questions: Mutex<Vec<String>>,
}

impl FakeAttendant {
    /// Returns an attendant that gives these answers in turn, and none after the last one. The answer `yes` approves a
    /// call, and a number is the amount of an agreement.
    pub(crate) fn attended<'a>(answers: impl IntoIterator<Item = &'a str>) -> Self {
        let answers = answers.into_iter().map(str::to_owned).collect();
        Self { is_attended: true, answers: Mutex::new(answers), questions: Mutex::default() }
    }

    /// Returns an attendant without a user.
    pub(crate) fn unattended() -> Self {
        Self { is_attended: false, ..Self::attended([]) }
    }

    /// Returns the questions so far, each with its details and its prompt.
    #[cfg(feature = "mcp")]
    pub(crate) fn questions(&self) -> Vec<String> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, question: String) -> Option<String> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(question);
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

#[async_trait]
impl Approver for FakeAttendant {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        match self.answer(request.tool_name.clone()).as_deref() {
            Some("yes") => Decision::Approve,
            Some(_) | None => unattended_denial(request),
        }
    }
}

#[async_trait]
impl BudgetApprover for FakeAttendant {
    async fn agree(&self, question: &BudgetQuestion) -> Option<Agreement> {
        let more = self.answer(format!("{question:?}"))?.parse().ok()?;
        Some(Agreement::new(more, self.user()?))
    }
}

#[async_trait]
impl Attendant for FakeAttendant {
    fn is_attended(&self) -> bool {
        self.is_attended
    }

    fn user(&self) -> Option<Principal> {
        Some(Principal::new("fake"))
    }

    async fn ask_for_text(&self, question: &str, details: &[String], prompt: &str) -> Option<String> {
        self.answer([&[question.to_owned()], details, &[prompt.to_owned()]].concat().join("\n"))
    }
}
