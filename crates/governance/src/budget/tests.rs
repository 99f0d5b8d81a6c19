//! What sessions get of a budget, and what is asked.

mod ledgers;
mod serialised;

use std::collections::BTreeMap;
use std::io;

use pintle_agent::{BudgetUsage, Ledger, Money, Timestamp};

use super::*;

/// Ledgers in memory, which can fail.
#[derive(Debug, Default)]
struct Memory {
    texts: Mutex<BTreeMap<String, Ledger>>,
    fails: bool,
}

#[async_trait]
impl Ledgers for Memory {
    async fn ledger(&self, name: &str) -> io::Result<Ledger> {
        if self.fails {
            return Err(io::Error::other("the disk is gone"));
        }
        Ok(self.texts.lock().unwrap().get(name).cloned().unwrap_or_default())
    }

    async fn replace_ledger(&self, name: &str, version: u64, text: &str) -> io::Result<bool> {
        let mut texts = self.texts.lock().unwrap();
        let is_newest = texts.get(name).map_or(0, |ledger| ledger.version) == version;
        if is_newest {
            texts.insert(name.to_owned(), Ledger::new(version + 1, text));
        }
        Ok(is_newest)
    }
}

/// Clock that a test sets.
#[derive(Debug)]
struct Hands(Mutex<i64>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(*self.0.lock().unwrap())
    }
}

/// Agrees to what it was told to, and keeps the questions.
#[derive(Debug, Default)]
struct Agrees {
    more: Mutex<Vec<u64>>,
    questions: Mutex<Vec<BudgetQuestion>>,
}

#[async_trait]
impl BudgetApprover for Agrees {
    async fn agree(&self, question: &BudgetQuestion) -> Option<Agreement> {
        self.questions.lock().unwrap().push(question.clone());
        let more = self.more.lock().unwrap().pop()?;
        Some(Agreement::new(more, Principal::new("alice")))
    }
}

fn tokens(limit: u64) -> Limits {
    Limits::default().with_tokens(limit)
}

/// A request for tokens of a session that has spent some, all of them in its run.
fn request(session: &str, spent: u64, wants: u64) -> BudgetRequest {
    let mut request = BudgetRequest::new(SessionId::new(session));
    request.account = account(spent);
    request.in_run = request.account.spent;
    request.has = tokens(spent);
    request.wants = tokens(wants);
    request
}

fn account(spent: u64) -> Account {
    let mut account = Account::default();
    account.spent = spending(spent);
    account
}

fn spending(tokens: u64) -> BudgetUsage {
    let mut spent = BudgetUsage::default();
    spent.input_tokens = tokens;
    spent
}

fn reached(answer: &BudgetAnswer) -> Option<(BudgetScope, u64, u64)> {
    answer.short.map(|short| (short.scope, short.limit, short.spent))
}

#[tokio::test]
async fn session_gets_what_the_narrowest_scope_has() {
    let limits = BudgetPolicy::default().with_run(tokens(100)).with_day(tokens(1_000));
    let budget = SessionBudget::new(limits).with_ledgers(Arc::new(Memory::default()));
    assert_eq!(budget.limited().tokens, Some(100));
    let answer = budget.more(&request("a", 0, 50)).await;
    assert_eq!((answer.limits.tokens, answer.short), (Some(100), None), "no more than a run may have");
    let answer = budget.more(&request("a", 90, 50)).await;
    assert_eq!((answer.limits.tokens, reached(&answer)), (Some(100), Some((BudgetScope::Run, 100, 90))));

    // The next run begins with what the session has spent before.
    budget.settle(&SessionId::new("a"), account(90)).await;
    let mut next = request("a", 90, 50);
    next.in_run = BudgetUsage::default();
    assert_eq!(budget.more(&next).await.limits.tokens, Some(190));

    let mut own = request("a", 90, 50);
    own.own = tokens(120);
    own.in_run = BudgetUsage::default();
    let answer = budget.more(&own).await;
    assert_eq!((answer.limits.tokens, reached(&answer)), (Some(120), Some((BudgetScope::Session, 120, 90))));
}

#[tokio::test]
async fn sessions_of_a_day_share_its_limit() {
    let limits = BudgetPolicy::default().with_day(tokens(1_000));
    let ledgers: Arc<dyn Ledgers> = Arc::new(Memory::default());
    // Two processes.
    let [one, other] = [(), ()].map(|()| SessionBudget::new(limits).with_ledgers(Arc::clone(&ledgers)));
    assert_eq!(one.more(&request("a", 0, 600)).await.limits.tokens, Some(600));
    let answer = other.more(&request("b", 0, 600)).await;
    assert_eq!((answer.limits.tokens, reached(&answer)), (Some(400), Some((BudgetScope::Day, 1_000, 600))));
    one.settle(&SessionId::new("a"), account(100)).await;
    assert_eq!(other.more(&request("b", 50, 600)).await.limits.tokens, Some(650), "the rest returned");
    // The other process dies with it; its session goes on in a third one.
    let third = SessionBudget::new(limits).with_ledgers(ledgers);
    assert_eq!(reached(&third.more(&request("c", 0, 300)).await), Some((BudgetScope::Day, 1_000, 750)));
    assert_eq!(third.more(&request("b", 60, 100)).await.short, None);
    third.settle(&SessionId::new("b"), account(100)).await;
    assert_eq!(third.more(&request("c", 0, 800)).await.short, None);
}

#[tokio::test]
async fn spending_of_before_counts_for_its_own_day() {
    let limits = BudgetPolicy::default().with_day(tokens(1_000));
    let clock = Arc::new(Hands(Mutex::new(0)));
    let ledgers = Arc::new(Memory::default());
    let budget = SessionBudget::new(limits)
        .with_ledgers(Arc::clone(&ledgers) as Arc<dyn Ledgers>)
        .with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    assert_eq!(budget.more(&request("a", 0, 900)).await.limits.tokens, Some(900));
    let day = 24 * 60 * 60 * 1_000;
    *clock.0.lock().unwrap() = day;
    assert_eq!(budget.more(&request("a", 800, 900)).await.limits.tokens, Some(1_700));
    budget.settle(&SessionId::new("a"), account(1_000)).await;
    // A clock that jumps back finds what was spent then.
    *clock.0.lock().unwrap() = 0;
    assert_eq!(reached(&budget.more(&request("b", 0, 300)).await), Some((BudgetScope::Day, 1_000, 800)));
    *clock.0.lock().unwrap() = day + 1;
    assert_eq!(reached(&budget.more(&request("b", 0, 900)).await), Some((BudgetScope::Day, 1_000, 200)));
    let names: Vec<String> = ledgers.texts.lock().unwrap().keys().cloned().collect();
    assert_eq!(names, ["budget-1970-01-01", "budget-1970-01-02"]);
}

#[tokio::test]
async fn somebody_can_agree_to_more_in_each_scope() {
    for scope in [BudgetScope::Session, BudgetScope::Run, BudgetScope::Day] {
        let mut limits = BudgetPolicy::default().with_at_limit(AtLimit::Ask);
        let mut first = request("a", 90, 50);
        match scope {
            BudgetScope::Run => limits.limits.run = tokens(100),
            BudgetScope::Day => limits.limits.day = tokens(100),
            BudgetScope::Session | _ => first.own = tokens(100),
        }
        let approver = Arc::new(Agrees { more: Mutex::new(vec![10, 70]), ..Agrees::default() });
        let ledgers = Arc::new(Memory::default());
        let budget = SessionBudget::new(limits)
            .with_ledgers(Arc::clone(&ledgers) as Arc<dyn Ledgers>)
            .with_approver(Arc::clone(&approver) as Arc<dyn BudgetApprover>);
        // Within the day, the session has spent all of it.
        budget.more(&request("a", 0, 0)).await;
        let answer = budget.more(&first).await;
        assert_eq!((answer.short, answer.by.clone()), (None, Some(Principal::new("alice"))), "{scope}");
        assert!(answer.limits.tokens >= Some(140), "{scope}: {answer:?}");
        let questions = approver.questions.lock().unwrap().clone();
        let [BudgetQuestion::Limit { reached, needs, .. }] = questions.as_slice() else {
            panic!("{questions:?}")
        };
        assert_eq!((reached.scope, reached.limit, reached.spent, *needs), (scope, 100, 90, 40));

        // Less than what is needed is no agreement.
        let mut next = request("a", 160, 50);
        next.own = first.own;
        let answer = budget.more(&next).await;
        assert_eq!(answer.short.map(|short| (short.scope, short.limit)), Some((scope, 170)), "{scope}");
    }
}

#[tokio::test]
async fn nobody_is_asked_unless_that_is_configured() {
    let limits = BudgetPolicy::default().with_run(tokens(10).with_cost(Money::from_micros(5)));
    let approver = Arc::new(Agrees { more: Mutex::new(vec![1_000]), ..Agrees::default() });
    let budget = SessionBudget::new(limits).with_approver(Arc::clone(&approver) as Arc<dyn BudgetApprover>);
    assert!(budget.more(&request("a", 0, 50)).await.short.is_some());
    let mut unpriced = request("a", 0, 0);
    unpriced.has = unpriced.has.with_cost(Money::from_micros(0));
    unpriced.unpriced = Some("m".to_owned());
    assert_eq!(budget.more(&unpriced).await.limits, unpriced.has);
    assert_eq!(approver.questions.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn unknown_price_lifts_the_limit_on_cost_only_by_agreement() {
    let limits = BudgetPolicy::default()
        .with_unknown_price(UnknownPrice::Ask)
        .with_run(tokens(10).with_cost(Money::from_micros(5)));
    let approver = Arc::new(Agrees { more: Mutex::new(vec![0]), ..Agrees::default() });
    let budget = SessionBudget::new(limits).with_approver(Arc::clone(&approver) as Arc<dyn BudgetApprover>);
    let mut unpriced = request("a", 0, 0);
    unpriced.has = unpriced.has.with_cost(Money::from_micros(0));
    unpriced.unpriced = Some("m".to_owned());
    let answer = budget.more(&unpriced).await;
    assert_eq!((answer.limits, answer.by), (tokens(0), Some(Principal::new("alice"))));
    assert_eq!(budget.more(&unpriced).await.limits, unpriced.has, "it was refused the second time");
    let question = BudgetQuestion::Price { session: SessionId::new("a"), model: "m".to_owned() };
    assert_eq!(*approver.questions.lock().unwrap(), [question.clone(), question]);
}

#[tokio::test]
async fn ledger_that_cannot_be_used_fails_the_request() {
    let limits = BudgetPolicy::default().with_day(tokens(1_000));
    let gone = Memory { fails: true, ..Memory::default() };
    let budget = SessionBudget::new(limits).with_ledgers(Arc::new(gone));
    let answer = budget.more(&request("a", 0, 50)).await;
    assert_eq!(answer.limits.tokens, Some(0), "it gets nothing");
    assert!(answer.failure.as_ref().is_some_and(|text| text.contains("the disk is gone")), "{answer:?}");

    let damaged = Memory::default();
    let clock = Arc::new(Hands(Mutex::new(0)));
    damaged.replace_ledger("budget-1970-01-01", 0, "{\"unknown\":1}").await.unwrap();
    let budget = SessionBudget::new(limits).with_ledgers(Arc::new(damaged)).with_clock(clock);
    let answer = budget.more(&request("a", 0, 50)).await;
    assert!(answer.failure.is_some_and(|text| text.contains("budget-1970-01-01")), "{:?}", answer.limits);
}

#[test]
fn file_sets_limits_in_each_scope() {
    let text = "at_limit = \"ask\"\nunknown_price = \"ask\"\n[run]\ntokens = 200000\ntime = \"15m\"\n\
                [session]\ncost = 2.50\ncalls = 500\n[day]\ncost = \"20\"\n";
    let policy = BudgetPolicy::parse("budget.toml", text).unwrap();
    assert_eq!((policy.at_limit, policy.unknown_price), (AtLimit::Ask, UnknownPrice::Ask));
    let limits = policy.limits;
    assert_eq!(limits.run, tokens(200_000).with_wall_time(Duration::from_secs(900)));
    assert_eq!(
        limits.session,
        Limits::default().with_cost(Money::from_micros(2_500_000)).with_tool_calls(500)
    );
    assert_eq!(limits.day, Limits::default().with_cost(Money::from_micros(20_000_000)));
    assert_eq!(BudgetPolicy::parse("budget.toml", "").unwrap(), BudgetPolicy::default());
}

#[test]
fn wrong_files_name_the_line_and_the_nearest_key() {
    for (text, line, expected) in [
        ("[run]\ntoken = 5", 2, "did you mean `tokens`"),
        ("\n[sesion]\ncost = 5", 2, "did you mean `session`"),
        ("at_limit = \"aks\"", 1, "expected `stop` or `ask`"),
        ("at_limit = \"refuse\"", 1, "expected `stop` or `ask`"),
        ("unknown_price = \"stop\"", 1, "expected `refuse` or `ask`"),
        ("[run]\ntokens = 0", 2, "above 0"),
        ("[run]\ntokens = -1", 2, "invalid value"),
        ("[day]\n\ncost = 0.0000001", 3, "six decimal places"),
        ("[day]\ncost = \"5 USD\"", 2, "six decimal places"),
        ("[run]\ntime = \"15\"", 2, "such as `90s`"),
        ("[session]\ntime = \"15m\"", 2, "expected it in `run`"),
    ] {
        let error = BudgetPolicy::parse("budget.toml", text).unwrap_err();
        let BudgetError::Form { line: found, message, .. } = &error else { panic!("{error}") };
        assert!(*found == line && message.contains(expected), "{text}: {error}");
    }
}

#[test]
fn flags_set_one_limit_each() {
    let mut limits = ScopedLimits::default();
    for text in ["day.cost=5", "run.tokens=1000", "run.time=2h", "session.calls = 3"] {
        limits.set_limit(text).unwrap();
    }
    assert_eq!(limits.day.cost, Some(Money::from_micros(5_000_000)));
    assert_eq!(limits.run, tokens(1_000).with_wall_time(Duration::from_secs(7_200)));
    assert_eq!(limits.session.tool_calls, Some(3));
    for (text, expected) in [
        ("", "SCOPE.KEY=VALUE"),
        ("day=5", "SCOPE.KEY=VALUE"),
        ("week.cost=5", "no scope `week`"),
        ("day.cots=5", "did you mean `cost`"),
        ("day.time=5m", "expected it in `run`"),
        ("run.tokens=many", "whole number above 0"),
    ] {
        let error = limits.set_limit(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn limits_of_a_project_only_narrow() {
    let mut user = BudgetPolicy::default();
    (user.limits.run, user.at_limit) = (tokens(100), AtLimit::Ask);
    let mut project = BudgetPolicy::default();
    (project.limits.run, project.limits.day) = (tokens(500), tokens(50));
    let both = user.lowered_to(&project);
    assert_eq!((both.limits.run, both.limits.day, both.at_limit), (tokens(100), tokens(50), AtLimit::Ask));
}

#[test]
fn costs_are_positive_dollars() {
    for (text, expected) in [
        ("2", true),
        ("0.5", true),
        (".25", true),
        ("1.", true),
        ("0.000001", true),
        ("0.0000001", false),
        ("0", false),
        ("0.00", false),
        ("", false),
        (".", false),
        ("-1", false),
        ("1e3", false),
        ("$1", false),
        ("99999999999999999999", false),
    ] {
        let cost = ScopedLimits::default().set_limit(&format!("day.cost={text}"));
        assert_eq!(cost.is_ok(), expected, "{text:?}");
    }
}
