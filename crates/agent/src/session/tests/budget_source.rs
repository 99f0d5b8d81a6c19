//! Sessions that ask the application for more of their budget.

use std::sync::Mutex;

use super::*;
use crate::budget::{BudgetAnswer, BudgetRequest, BudgetSource};
use crate::protocol::{
    Account, BudgetKind, BudgetScope, InputKind, Limits, Principal, ReachedBudget, SessionId,
};

/// Gives tokens up to a limit, and keeps what it is asked and told.
#[derive(Debug, Default)]
struct Purse {
    tokens: u64,
    by: Option<Principal>,
    waits: bool,
    requests: Mutex<Vec<BudgetRequest>>,
    settled: Mutex<Vec<Account>>,
}

impl Purse {
    fn of(tokens: u64) -> Self {
        Self { tokens, ..Self::default() }
    }

    fn wanted(&self) -> Vec<Option<u64>> {
        self.requests.lock().unwrap().iter().map(|request| request.wants.tokens).collect()
    }
}

#[async_trait::async_trait]
impl BudgetSource for Purse {
    fn limited(&self) -> Limits {
        Limits::default().with_tokens(self.tokens)
    }

    async fn more(&self, request: &BudgetRequest) -> BudgetAnswer {
        self.requests.lock().unwrap().push(request.clone());
        if self.waits {
            let _waits = Waiting(&self.settled);
            std::future::pending::<()>().await;
        }
        let spent = request.account.spent.tokens();
        let day = ReachedBudget::new(BudgetScope::Day, BudgetKind::Tokens, self.tokens, spent);
        let answer = BudgetAnswer::new(Limits::default().with_tokens(self.tokens)).with_reached_limit(day);
        self.by.iter().cloned().fold(answer, BudgetAnswer::with_principal)
    }

    async fn settle(&self, _session: &SessionId, account: Account) {
        self.settled.lock().unwrap().push(account);
    }
}

/// Leaves a mark when the request is dropped.
struct Waiting<'a>(&'a Mutex<Vec<Account>>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(Account::default());
    }
}

fn harness_of(purse: &Arc<Purse>, adapter: FakeAdapter) -> Harness {
    let source = Arc::clone(purse);
    harness_with(adapter, env(), |builder| builder.budget_source(source).record(true))
}

#[tokio::test]
async fn session_asks_before_its_first_call_and_settles_when_it_rests() {
    let purse = Arc::new(Purse::of(100_000));
    let harness = harness_of(&purse, anthropic().answer("One.").answer("Two."));
    for (run, text) in ["One.", "Two."].into_iter().enumerate() {
        assert_eq!(harness.session.submit("go").await.unwrap().text, text);
        assert_eq!(purse.settled.lock().unwrap().len(), run + 1, "it settled before its run ended");
    }
    assert_eq!(purse.wanted().len(), 2, "what it did not use returned, so that it asked again");
    let settled = purse.settled.lock().unwrap().clone();
    assert!(settled[0].spent.tokens() > 0 && settled[1].spent.tokens() > settled[0].spent.tokens());
    assert!(settled.iter().all(|account| account.rests));
    assert_eq!(purse.requests.lock().unwrap()[0].session, *harness.session.id());
    harness.session.close().await;
    assert_eq!(purse.settled.lock().unwrap().len(), 2, "nothing was drawn since");
}

#[tokio::test]
async fn limit_of_the_source_stops_the_session_under_its_name() {
    let purse = Arc::new(Purse { by: Some(Principal::new("alice")), ..Purse::of(10) });
    let harness = harness_of(&purse, anthropic().answer("Never."));
    let mut run = harness.session.submit("go");
    let event = until(&mut run, "BUDGET_REACHED").await;
    let EventKind::BudgetReached { limit, scope, .. } = event.kind else { panic!("{event:?}") };
    assert_eq!((limit, scope), (10, BudgetScope::Day));
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Budget);
    assert_eq!((harness.adapter.requests().len(), purse.wanted().len()), (0, 1));
    let record = harness.session.record().unwrap();
    let granted = record
        .entries
        .iter()
        .find(|entry| matches!(&entry.input.kind, InputKind::BudgetGranted { short: Some(_), .. }));
    assert_eq!(granted.unwrap().input.author, Some(Principal::new("alice")), "who agreed is on record");
}

#[tokio::test]
async fn run_that_is_stopped_while_somebody_is_asked_drops_the_question() {
    let purse = Arc::new(Purse { waits: true, ..Purse::of(10) });
    let harness = harness_of(&purse, anthropic().answer("Never."));
    let run = harness.session.submit("go");
    while purse.wanted().is_empty() {
        tokio::task::yield_now().await;
    }
    harness.session.handle().stop_turn().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    while purse.settled.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.adapter.requests().len(), 0);
}

#[tokio::test]
async fn session_that_is_resumed_asks_whoever_is_there_now() {
    let harness = harness_with(anthropic().answer("One."), env(), |builder| builder.record(true));
    harness.session.submit("go").await.unwrap();
    let record = harness.session.record().unwrap();
    harness.session.suspend().await;
    let purse = Arc::new(Purse::of(10));
    let source = Arc::clone(&purse);
    let harness = harness_with(anthropic().answer("Two."), env(), |builder| {
        builder.resume(record).budget_source(source).record(true)
    });
    assert_eq!(harness.session.submit("again").await.unwrap().status, OutcomeStatus::Budget);
    assert_eq!(purse.wanted().len(), 1);
    let record = harness.session.record().unwrap();
    assert!(record.replay().is_ok(), "{:?}", record.replay());
}
