//! Budgets of runs, sessions and days, and the behaviour at a limit.

mod file;
mod ledger;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    Account, BudgetAnswer, BudgetKind, BudgetRequest, BudgetScope, BudgetSource, Clock, Ledgers, Limits,
    Money, Principal, ReachedBudget, SessionId, SystemClock, error_chain,
};

use pintle_env::setters;
use serde::{Deserialize, Serialize};

pub use self::file::BudgetError;
use self::ledger::{AmountLimits, Amounts, DayLedger, Share};

/// Maximum number of attempts to update the ledger of a day under contention, and the pause between them.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(5);

/// Limits by scope. A limit includes the subagents of the sessions in its scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ScopedLimits {
    /// Limits on each run.
    pub run: Limits,
    /// Limits on a session over its whole life. The time limit applies to each run.
    pub session: Limits,
    /// Limits on all sessions of a day in UTC that use the same store. Time is not limited.
    pub day: Limits,
}

/// Limits in all scopes, and the behaviour at a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetPolicy {
    /// The limits.
    pub limits: ScopedLimits,
    /// Behaviour at a limit on tokens, cost or calls. A time limit always stops the run.
    pub at_limit: AtLimit,
    /// Behaviour under a cost limit for a model without a known price.
    pub unknown_price: UnknownPrice,
}

/// Behaviour at a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AtLimit {
    /// The run stops before the call that would exceed it.
    #[default]
    Stop,
    /// The approver is asked for more. Without an approver, the run stops.
    Ask,
}

/// Behaviour under a cost limit for a model without a known price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum UnknownPrice {
    /// The model is not called.
    #[default]
    Refuse,
    /// The approver is asked whether to call the model without counting its cost. Without an approver, it is not called.
    Ask,
}

impl ScopedLimits {
    setters! {
        /// Sets the limits on each run.
        pub fn with_run(limits: Limits) => run = limits;
        /// Sets the limits on a session over its whole life.
        pub fn with_session(limits: Limits) => session = limits;
        /// Sets the limits on all sessions of a day.
        pub fn with_day(limits: Limits) => day = limits;
    }

    /// Combines the limits of each scope.
    #[must_use]
    pub fn zip_with(&self, other: &Self, combine: impl Fn(&Limits, &Limits) -> Limits) -> Self {
        Self {
            run: combine(&self.run, &other.run),
            session: combine(&self.session, &other.session),
            day: combine(&self.day, &other.day),
        }
    }
}

impl BudgetPolicy {
    setters! {
        /// Sets the limits on each run.
        pub fn with_run(limits: Limits) => limits.run = limits;
        /// Sets the limits on a session over its whole life.
        pub fn with_session(limits: Limits) => limits.session = limits;
        /// Sets the limits on all sessions of a day.
        pub fn with_day(limits: Limits) => limits.day = limits;
        /// Sets the behaviour at a limit.
        pub fn with_at_limit(at_limit: AtLimit) => at_limit = at_limit;
        /// Sets the behaviour under a cost limit for a model without a known price.
        pub fn with_unknown_price(unknown_price: UnknownPrice) => unknown_price = unknown_price;
    }
}

/// Question to an approver about exceeding a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetQuestion {
    /// A limit is reached.
    Limit {
        /// The session.
        session: SessionId,
        /// The limit.
        reached: ReachedBudget,
        /// Amount beyond it that the next call needs.
        needs: u64,
    },
    /// The price of a model is unknown, and cost is limited.
    Price {
        /// The session.
        session: SessionId,
        /// The model.
        model: String,
    },
}

/// Agreement to spend more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// Amount that is added to the limit, in its unit. It has no meaning for a price.
    pub more: u64,
    /// Who agreed.
    pub by: Principal,
}

impl Agreement {
    /// Creates an agreement.
    #[must_use]
    pub fn new(more: u64, by: Principal) -> Self {
        Self { more, by }
    }
}

/// Approver of spending beyond a limit.
#[async_trait]
pub trait BudgetApprover: std::fmt::Debug + Send + Sync {
    /// Answers a question; `None` refuses. The run waits for the answer. Stopping the run drops the future.
    async fn agree(&self, question: &BudgetQuestion) -> Option<Agreement>;
}

/// Source of a session's budget. It enforces the limits of runs, of the session and of the day, and asks for more if the
/// limits allow it. Sessions may share it.
///
/// Each session reserves its share in the ledger of the day, so that all sessions of all processes together never exceed
/// the day's limit. The reservation of a process that died counts as spent on that day until its session resumes.
///
/// An approved increase applies to its run, session or day. This value keeps the increases for runs and sessions in
/// memory.
#[derive(Debug)]
pub struct SessionBudget {
    policy: BudgetPolicy,
    ledgers: Option<Arc<dyn Ledgers>>,
    approver: Option<Arc<dyn BudgetApprover>>,
    clock: Arc<dyn Clock>,
    sessions: Mutex<HashMap<SessionId, SessionIncreases>>,
}

/// State of a session.
#[derive(Clone, Debug, Default)]
struct SessionIncreases {
    /// Day whose ledger has an entry for the session.
    day: Option<String>,
    /// Approved increases of the limits of the session and of its current run.
    more: Amounts,
    more_for_run: Amounts,
}

/// Limits that a session gets, and the limit that keeps them below the requested amounts, with the amount beyond it.
#[derive(Clone, Copy, Debug)]
struct DrawnLimits {
    limits: Limits,
    short: Option<(ReachedBudget, u64)>,
}

impl SessionBudget {
    /// Creates the source for the limits of a policy. Limits of a day require [`ledgers`](Self::with_ledgers) and are ignored
    /// without them.
    #[must_use]
    pub fn new(policy: BudgetPolicy) -> Self {
        Self {
            policy,
            ledgers: None,
            approver: None,
            clock: Arc::new(SystemClock),
            sessions: Mutex::default(),
        }
    }

    /// Sets the store of the ledgers of days, which are named `budget-YYYY-MM-DD`.
    #[must_use]
    pub fn with_ledgers(mut self, ledgers: Arc<dyn Ledgers>) -> Self {
        self.ledgers = Some(ledgers);
        self
    }

    /// Sets the approver.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn BudgetApprover>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets the clock that determines the day. Default: the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    fn today(&self) -> String {
        let now = self.clock.now().to_string();
        format!("budget-{}", now.get(..10).unwrap_or(&now))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, SessionIncreases>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, session: &SessionId) -> SessionIncreases {
        self.sessions().get(session).cloned().unwrap_or_default()
    }

    /// Changes the ledger of a day.
    ///
    /// # Errors
    ///
    /// The cause as text, if it cannot be read or written.
    async fn change<T>(&self, day: &str, change: impl Fn(&mut DayLedger) -> T) -> Result<Option<T>, String> {
        let Some(ledgers) = &self.ledgers else { return Ok(None) };
        let failed = |error: &dyn std::fmt::Display| format!("the ledger `{day}` cannot be used: {error}");
        for _ in 0..ATTEMPTS {
            let stored = ledgers.ledger(day).await.map_err(|error| failed(&error_chain(&error)))?;
            let mut ledger = match stored.text.as_str() {
                "" => DayLedger::default(),
                text => serde_json::from_str(text).map_err(|error| failed(&error))?,
            };
            let result = change(&mut ledger);
            let text = serde_json::to_string(&ledger).map_err(|error| failed(&error))?;
            let replaced = text == stored.text
                || ledgers
                    .replace_ledger(day, stored.version, &text)
                    .await
                    .map_err(|error| failed(&error_chain(&error)))?;
            if replaced {
                return Ok(Some(result));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(failed(&"others change it all the time"))
    }

    /// Reserves amounts for a session in the ledger of today.
    async fn draw_of_day(
        &self,
        session: &SessionId,
        now: Amounts,
        target: Amounts,
    ) -> Result<(Option<Share>, Amounts), String> {
        let limits = self.policy.limits.day;
        if limits == Limits::default() {
            return Ok((None, Amounts::default()));
        }
        let today = self.today();
        let before = self.state(session).day.filter(|before| *before != today);
        if let Some(before) = before {
            self.change(&before, |ledger| ledger.settle(session.as_str(), now)).await?;
        }
        self.sessions().entry(session.clone()).or_default().day = Some(today.clone());
        let drawn = self
            .change(&today, |ledger| (ledger.draw(session.as_str(), now, target, &limits), ledger.raised))
            .await?;
        Ok(drawn.map_or((None, Amounts::default()), |(share, raised)| (Some(share), raised)))
    }

    /// Returns the limits that a session can get now.
    async fn draw(&self, request: &BudgetRequest) -> Result<DrawnLimits, String> {
        let now = Amounts::of_account(&request.account);
        let has = amounts(&request.has);
        let target = has.zip_with(amounts(&request.wants), u64::saturating_add);
        let in_run = Amounts::of_account(&spent_only(request));
        let SessionIncreases { more, more_for_run, .. } = self.state(&request.session);
        let (share, raised) = self.draw_of_day(&request.session, now, target).await?;
        let run_begin = now.zip_with(in_run, u64::saturating_sub);
        let scopes = [
            Scope {
                scope: BudgetScope::Session,
                limit: amounts_of(&request.own, more),
                until: amounts_of(&request.own, more),
                spent: now,
            },
            Scope {
                scope: BudgetScope::Run,
                limit: amounts_of(&self.policy.limits.run, more_for_run),
                until: amounts_of(
                    &self.policy.limits.run,
                    more_for_run.zip_with(run_begin, u64::saturating_add),
                ),
                spent: in_run,
            },
            Scope {
                scope: BudgetScope::Day,
                limit: amounts_of(&self.policy.limits.day, raised),
                until: share.map_or_else(AmountLimits::default, |share| share.until),
                spent: share.map_or_else(Amounts::default, |share| share.spent),
            },
        ];
        Ok(fit(&request.has, target, &scopes))
    }

    /// Asks for an increase of a limit and applies it. Returns the approving principal; `None` without an approval.
    async fn ask_for_more(
        &self,
        session: &SessionId,
        reached: ReachedBudget,
        needs: u64,
    ) -> Result<Option<Principal>, String> {
        let Some(approver) = self.approver.as_ref().filter(|_| self.policy.at_limit == AtLimit::Ask) else {
            return Ok(None);
        };
        let question = BudgetQuestion::Limit { session: session.clone(), reached, needs };
        let Some(Agreement { more, by }) = approver.agree(&question).await else { return Ok(None) };
        if more < needs {
            return Ok(None);
        }
        let more = only(reached.budget, more);
        if reached.scope == BudgetScope::Day {
            let today = self.today();
            self.change(&today, |ledger| ledger.raised = ledger.raised.zip_with(more, u64::saturating_add))
                .await?;
        } else {
            let mut sessions = self.sessions();
            let state = sessions.entry(session.clone()).or_default();
            let raised =
                if reached.scope == BudgetScope::Run { &mut state.more_for_run } else { &mut state.more };
            *raised = raised.zip_with(more, u64::saturating_add);
        }
        Ok(Some(by))
    }

    /// Decides whether a model without a known price may be called.
    async fn price(&self, request: &BudgetRequest, model: &str) -> BudgetAnswer {
        let approver = self.approver.as_ref().filter(|_| self.policy.unknown_price == UnknownPrice::Ask);
        if let Some(approver) = approver {
            let question =
                BudgetQuestion::Price { session: request.session.clone(), model: model.to_owned() };
            if let Some(Agreement { by, .. }) = approver.agree(&question).await {
                let mut limits = request.has;
                limits.cost = None;
                return BudgetAnswer::new(limits).with_principal(by);
            }
        }
        BudgetAnswer::new(request.has)
    }
}

#[async_trait]
impl BudgetSource for SessionBudget {
    fn limited(&self) -> Limits {
        let (run, day) = (&self.policy.limits.run, &self.policy.limits.day);
        let day = if self.ledgers.is_some() { *day } else { Limits::default() };
        let mut limited = Limits::default();
        limited.tokens = run.tokens.or(day.tokens);
        limited.cost = run.cost.or(day.cost);
        limited.tool_calls = run.tool_calls.or(day.tool_calls);
        limited
    }

    async fn more(&self, request: &BudgetRequest) -> BudgetAnswer {
        if let Some(model) = &request.unpriced {
            return self.price(request, model).await;
        }
        let mut by = None;
        loop {
            let answer = |drawn: DrawnLimits, by: Option<Principal>| {
                let answer = BudgetAnswer::new(drawn.limits);
                by.into_iter().fold(answer, BudgetAnswer::with_principal)
            };
            let drawn = match self.draw(request).await {
                Ok(drawn) => drawn,
                Err(problem) => return BudgetAnswer::new(request.has).with_failure(problem),
            };
            let Some((reached, needs)) = drawn.short else { return answer(drawn, by) };
            match self.ask_for_more(&request.session, reached, needs).await {
                Ok(Some(principal)) => by = Some(principal),
                Ok(None) => return answer(drawn, by).with_reached_limit(reached),
                Err(problem) => return BudgetAnswer::new(request.has).with_failure(problem),
            }
        }
    }

    async fn settle(&self, session: &SessionId, account: Account) {
        let day = {
            let mut sessions = self.sessions();
            let Some(state) = sessions.get_mut(session) else { return };
            state.more_for_run = Amounts::default();
            state.day.take()
        };
        let Some(day) = day else { return };
        let now = Amounts::of_account(&account);
        if let Err(problem) = self.change(&day, |ledger| ledger.settle(session.as_str(), now)).await {
            // Its reservation counts as spent.
            tracing::warn!(session = %session, problem, "a session was not settled");
        }
    }
}

/// Limits of one scope.
#[derive(Clone, Copy, Debug)]
struct Scope {
    scope: BudgetScope,
    /// The limits, for messages.
    limit: AmountLimits,
    /// The limits as totals over the life of the session.
    until: AmountLimits,
    /// Amounts spent in this scope, for messages.
    spent: Amounts,
}

/// Amounts of one kind in all scopes.
struct Kind {
    kind: BudgetKind,
    has: Option<u64>,
    target: u64,
    scopes: Vec<(BudgetScope, Option<u64>, Option<u64>, u64)>,
}

impl Kind {
    /// Returns the total that the session may spend, and the limit that keeps it below the target.
    fn fit(&self) -> (Option<u64>, Option<(ReachedBudget, u64)>) {
        if self.has.is_none() {
            return (None, None);
        }
        let limited = self
            .scopes
            .iter()
            .filter_map(|(scope, limit, until, spent)| Some((*scope, (*limit)?, (*until)?, *spent)));
        let Some((scope, limit, until, spent)) = limited.min_by_key(|(_, _, until, _)| *until) else {
            return (Some(self.target), None);
        };
        let needs = self.target.saturating_sub(until);
        let short = (needs > 0).then(|| (ReachedBudget::new(scope, self.kind, limit, spent), needs));
        (Some(until), short)
    }
}

/// Fits a target into the limits of all scopes.
fn fit(has: &Limits, target: Amounts, scopes: &[Scope]) -> DrawnLimits {
    let kind = |kind, has, target, get: fn(&AmountLimits) -> Option<u64>, spent: fn(&Amounts) -> u64| {
        let scopes =
            scopes.iter().map(|of| (of.scope, get(&of.limit), get(&of.until), spent(&of.spent))).collect();
        Kind { kind, has, target, scopes }.fit()
    };
    let tokens = kind(BudgetKind::Tokens, has.tokens, target.tokens, |of| of.tokens, |of| of.tokens);
    let cost = kind(
        BudgetKind::CostMicros,
        has.cost.map(Money::micros),
        target.cost_micros,
        |of| of.cost_micros,
        |of| of.cost_micros,
    );
    let calls = kind(
        BudgetKind::ToolCalls,
        has.tool_calls,
        target.tool_calls,
        |of| of.tool_calls,
        |of| of.tool_calls,
    );
    let mut limits = Limits::default();
    (limits.tokens, limits.tool_calls) = (tokens.0, calls.0);
    limits.cost = cost.0.map(Money::from_micros);
    DrawnLimits { limits, short: tokens.1.or(cost.1).or(calls.1) }
}

/// Returns the amounts of a budget; 0 for a kind without a limit.
fn amounts(budget: &Limits) -> Amounts {
    Amounts {
        tokens: budget.tokens.unwrap_or(0),
        cost_micros: budget.cost.unwrap_or_default().micros(),
        tool_calls: budget.tool_calls.unwrap_or(0),
    }
}

/// Returns the limits of a budget, each raised by `more`.
fn amounts_of(budget: &Limits, more: Amounts) -> AmountLimits {
    amounts(budget).zip_with(more, u64::saturating_add).limited_by(budget)
}

/// Returns amounts with an amount of one kind only.
fn only(kind: BudgetKind, amount: u64) -> Amounts {
    let mut amounts = Amounts::default();
    match kind {
        BudgetKind::Tokens => amounts.tokens = amount,
        BudgetKind::CostMicros => amounts.cost_micros = amount,
        BudgetKind::ToolCalls => amounts.tool_calls = amount,
        BudgetKind::WallTimeMs | _ => {}
    }
    amounts
}

/// Returns the amounts spent in the run as an account.
fn spent_only(request: &BudgetRequest) -> Account {
    let mut account = Account::default();
    account.spent = request.in_run;
    account
}
