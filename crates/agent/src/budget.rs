//! Where a session gets more of its budget from.

use std::fmt;

use async_trait::async_trait;

use crate::protocol::{Account, Budget, Principal, ReachedBudget, SessionId, Spent};

/// Gives a session more of its budget when what it has does not suffice for its next call: out of limits that are wider
/// than the session, such as those of a day, or after a person has agreed.
///
/// A session begins with nothing of what is limited, by its own limits or here, so that it asks before its first call. What
/// it has not used returns when it rests. A subagent asks the session that spawned it.
#[async_trait]
pub trait BudgetSource: fmt::Debug + Send + Sync + 'static {
    /// Returns the amounts that it limits, besides those that a session's own limits are on: all that are not `None`.
    fn limited(&self) -> Budget;

    /// Answers a request. The run waits for it, with its time limit running; a run that is stopped drops the future.
    async fn more(&self, request: &BudgetRequest) -> BudgetAnswer;

    /// Takes notice of what a session that rests, or is closed, has spent, after it has asked for more. It asks anew before
    /// its next call. The session waits for it, also before it reports the end of the run.
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
    /// Amounts that it has spent and holds since its run began.
    pub in_run: Spent,
    /// Limits that were set for the session itself, over its whole life.
    pub own: Budget,
    /// What it has so far, over its whole life. It is limited in nothing that is `None` here.
    pub has: Budget,
    /// Additional amounts that it needs for its next call.
    pub wants: Budget,
    /// Model that it would call although the limit on cost could not be enforced: its price is unknown, or that of an
    /// earlier one was. An answer without a limit on cost lets it; what the session costs is unknown from then on.
    pub unpriced: Option<String>,
}

impl BudgetRequest {
    /// Creates a request of a session that has spent nothing, has nothing, and wants nothing.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            account: Account::default(),
            in_run: Spent::default(),
            own: Budget::default(),
            has: Budget::default(),
            wants: Budget::default(),
            unpriced: None,
        }
    }
}

/// Answer to a [`BudgetRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetAnswer {
    /// What the session has from now on, over its whole life: at most [`BudgetRequest::own`], unless somebody agreed to
    /// more. The limit on time is ignored.
    pub limits: Budget,
    /// Limit because of which it is less than what was asked for. The session reports it when it stops.
    pub short: Option<ReachedBudget>,
    /// Who agreed, if a person was asked.
    pub by: Option<Principal>,
    /// Why nobody can tell what is left. The run fails with it.
    pub failure: Option<String>,
}

impl BudgetAnswer {
    /// Creates an answer with the new limits of the session.
    #[must_use]
    pub fn new(limits: Budget) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds the limit because of which it is less than what was asked for.
    #[must_use]
    pub fn short_of(mut self, limit: ReachedBudget) -> Self {
        self.short = Some(limit);
        self
    }

    /// Fails the run, since nobody can tell what is left.
    #[must_use]
    pub fn failed(mut self, failure: impl Into<String>) -> Self {
        self.failure = Some(failure.into());
        self
    }

    /// Adds who agreed.
    #[must_use]
    pub fn by(mut self, principal: Principal) -> Self {
        self.by = Some(principal);
        self
    }
}
