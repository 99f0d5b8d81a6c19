//! Requests for more of the budget: to the parent session, or to the application.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::Driver;
use super::report::Report;
use crate::budget::{BudgetAnswer, BudgetRequest, BudgetSource};
use crate::protocol::{InputKind, Limits};

/// The application's source of more budget, and the state of the session with it.
#[derive(Debug)]
pub(super) struct BudgetPoint {
    source: Option<Arc<dyn BudgetSource>>,
    /// Stops the pending request when it is dropped.
    request: Option<DropGuard>,
    /// Whether the session asked for budget since the last settlement.
    has_drawn: bool,
}

/// Answer of the source to one request.
#[derive(Debug)]
pub(super) struct SourceAnswer {
    ask: u64,
    answer: BudgetAnswer,
}

impl BudgetPoint {
    pub(super) fn new(source: Option<Arc<dyn BudgetSource>>) -> Self {
        Self { source, request: None, has_drawn: false }
    }

    pub(super) fn source(&self) -> Option<Arc<dyn BudgetSource>> {
        self.source.clone()
    }
}

impl Driver {
    /// Returns the amounts that the application's source limits; `None` if there is no source.
    pub(super) fn asks_for(&self) -> Option<Limits> {
        self.budget.source.as_ref().map(|source| source.limited())
    }

    /// Asks for more of the budget. A session without a parent or a source has its own limits.
    pub(super) fn ask_budget(
        &mut self,
        ask: u64,
        has: Limits,
        wants: Limits,
        unpriced: Option<String>,
    ) -> Option<InputKind> {
        if let Some(parent) = &self.lineage.parent_link {
            parent.ask_budget(ask, has, wants, unpriced);
            return None;
        }
        let Some(source) = self.budget.source() else {
            return Some(InputKind::BudgetGranted {
                ask,
                slice: self.machine.own_budget(),
                short: None,
                failure: None,
            });
        };
        let (session, account) = (self.log.session_id().clone(), self.machine.account());
        let (in_run, own) = (self.machine.committed_in_run(), self.machine.own_budget());
        let request = BudgetRequest { session, account, in_run, own, has, wants, unpriced };
        let stopped = CancellationToken::new();
        self.budget.request = Some(stopped.clone().drop_guard());
        self.budget.has_drawn = true;
        let reports = self.reports.clone();
        self.spawn(async move {
            let answer = stopped.run_until_cancelled(source.more(&request)).await;
            if let Some(answer) = answer {
                let _ = reports.send(Report::Granted(Box::new(SourceAnswer { ask, answer }))).await;
            }
        });
        None
    }

    /// Applies the answer of the source. The machine ignores it if the need is gone.
    pub(super) async fn take_granted(&mut self, granted: SourceAnswer) {
        let SourceAnswer { ask, answer: BudgetAnswer { limits, short, by, failure } } = granted;
        self.author = by;
        let short = short.map(Box::new);
        self.step(InputKind::BudgetGranted { ask, slice: limits, short, failure }).await;
    }

    /// Stops a request that is no longer awaited, and reports the account of a resting session to the source.
    pub(super) async fn settle_budget(&mut self) {
        if !self.machine.awaits_budget() {
            self.budget.request = None;
        }
        let account = self.machine.account();
        if account.rests
            && let Some(source) = self.budget.source.clone().filter(|_| self.budget.has_drawn)
        {
            self.budget.has_drawn = false;
            source.settle(self.log.session_id(), account).await;
        }
    }
}
