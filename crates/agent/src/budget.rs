//! Source of additional budget for a session.

use std::fmt;

use async_trait::async_trait;

use crate::protocol::{Account, BudgetUsage, Limits, Principal, ReachedBudget, SessionId};

/// Grants a session more of its budget when its current amounts do not suffice for the next call. The source draws on
/// limits that are wider than the session, such as daily limits, or on the consent of a user.
///
/// A session starts with zero of each amount that its own limits or this source limit, so it asks before its first
/// call. It gives back the unused amounts when it rests. A subagent asks the session that spawned it.
#[async_trait]
pub trait BudgetSource: fmt::Debug + Send + Sync + 'static {
    /// Returns the amounts that this source limits, in addition to the session's own limits: each that is not `None`.
    fn limited(&self) -> Limits;

    /// Answers a request. The run waits for the answer while its time limit runs. Stopping the run drops the future.
    async fn more(&self, request: &BudgetRequest) -> BudgetAnswer;

    /// Records the spending of a session that rests or is closed, if it has asked for more. The session asks again
    /// before its next call. It waits for this method before it reports the end of the run.
    async fn settle(&self, session: &SessionId, account: Account);
}

/// Request of a session for more of its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetRequest {
    /// The session.
    pub session: SessionId,
    /// Amounts that it has spent and holds, over its whole life.
    pub account: Account,
    /// Amounts that it has spent and holds since its run started.
    pub in_run: BudgetUsage,
    /// Limits that were set for the session itself, over its whole life.
    pub own: Limits,
    /// Amounts granted so far, over its whole life. `None` means no limit.
    pub has: Limits,
    /// Additional amounts that it needs for its next call.
    pub wants: Limits,
    /// Model that it would call without an enforceable limit on cost: the price of this model or of an earlier one is
    /// unknown. An answer without a limit on cost permits the call. The session's cost is unknown from then on.
    pub unpriced: Option<String>,
}

impl BudgetRequest {
    /// Creates a request of a session without spending, limits or needs.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            account: Account::default(),
            in_run: BudgetUsage::default(),
            own: Limits::default(),
            has: Limits::default(),
            wants: Limits::default(),
            unpriced: None,
        }
    }
}

/// Answer to a [`BudgetRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetAnswer {
    /// New limits of the session, over its whole life: at most [`BudgetRequest::own`], unless a user agreed to more.
    /// The limit on time is ignored.
    pub limits: Limits,
    /// Limit that kept the grant below the requested amounts. The session reports it when it stops.
    pub short: Option<ReachedBudget>,
    /// Principal that agreed, if the source asked one.
    pub by: Option<Principal>,
    /// Reason why the remaining budget is unknown. The run fails with it.
    pub failure: Option<String>,
}

impl BudgetAnswer {
    /// Creates an answer with the new limits of the session.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds the limit that kept the grant below the requested amounts.
    #[must_use]
    pub fn with_reached_limit(mut self, limit: ReachedBudget) -> Self {
        self.short = Some(limit);
        self
    }

    /// Fails the run because the remaining budget is unknown.
    #[must_use]
    pub fn with_failure(mut self, failure: impl Into<String>) -> Self {
        self.failure = Some(failure.into());
        self
    }

    /// Adds the principal that agreed.
    #[must_use]
    pub fn with_principal(mut self, principal: Principal) -> Self {
        self.by = Some(principal);
        self
    }
}
