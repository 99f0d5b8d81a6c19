//! Reservations before model calls, and slices of subagents.

use pintle_llm::{ModelInfo, Money};

use super::*;
use crate::protocol::{Account, BudgetScope, ReachedBudget, SessionId, SubagentSettings, TokenBounds};

/// The prompt `system` and the input `go` have at most 20 tokens: eight each for the message, and half of their bytes.
const FIRST: u64 = 20;

fn harness(budget: Limits) -> Harness {
    Harness::with(TurnLimits { budget, ..TurnLimits::default() })
}

fn tokens(limit: u64) -> Harness {
    harness(Limits::default().with_tokens(limit))
}

/// A context whose model costs one dollar per token.
fn priced() -> TurnContext {
    let mut model = ModelInfo::new("p", "m", 1_000);
    model.input_cost_per_million = Some(1e6);
    model.output_cost_per_million = Some(1e6);
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.pricing = Some(Box::new(model));
    context
}

fn with_output(max_tokens: Option<u64>) -> TurnContext {
    let mut context = priced();
    context.max_tokens = max_tokens;
    context
}

fn start(harness: &mut Harness, context: TurnContext) {
    harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
    harness.load_this(context);
}

fn needed(harness: &Harness) -> Option<u64> {
    harness.events.iter().find_map(|event| match event {
        EventKind::BudgetReached { needed, .. } => *needed,
        _ => None,
    })
}

#[test]
fn output_is_limited_to_what_is_left() {
    let million = 1_000_000;
    let cases = [
        (Limits::default(), Some(100), Some(100), 0),
        (Limits::default(), None, None, 0),
        (Limits::default().with_tokens(500), Some(100), Some(100), FIRST + 100),
        (Limits::default().with_tokens(70), Some(100), Some(50), 70),
        (Limits::default().with_tokens(70), None, Some(50), 70),
        // Without a limit of the model, the window is one.
        (Limits::default().with_tokens(5_000), None, None, 1_000),
        (Limits::default().with_cost(Money::from_micros(50 * million + 1)), Some(100), Some(30), FIRST + 30),
        (Limits::default().with_cost(Money::from_micros(500 * million)), Some(100), Some(100), FIRST + 100),
        (
            Limits::default().with_tokens(60).with_cost(Money::from_micros(50 * million + 1)),
            None,
            Some(30),
            FIRST + 30,
        ),
    ];
    for (budget, wanted, expected, reserved) in cases {
        let mut harness = harness(budget);
        start(&mut harness, with_output(wanted));
        assert_eq!(harness.requests[0].max_tokens, expected, "{budget:?} {wanted:?}");
        assert_eq!(harness.machine.committed().tokens(), reserved, "{budget:?} {wanted:?}");
        harness.say("done");
        let committed = harness.machine.committed();
        assert_eq!((committed.tokens(), committed), (11, harness.machine.spent()), "the rest returns");
    }
}

#[test]
fn call_without_room_for_the_shortest_response_is_not_made() {
    let reasoning = |harness: &mut Harness, level: &str| {
        let effort = Some(level.parse::<ReasoningEffort>().unwrap());
        harness.tell(InputKind::Configure { change: Change::ReasoningEffort(effort) });
    };
    for (effort, least) in [("none", 16), ("low", 1_025)] {
        for (limit, made) in [(FIRST + least - 1, false), (FIRST + least, true)] {
            let mut harness = tokens(limit);
            reasoning(&mut harness, effort);
            let mut context = with_output(Some(4_000));
            context.bounds =
                TokenBounds { least_output: 16, least_output_reasoning: 1_025, ..context.bounds };
            start(&mut harness, context);
            assert_eq!(harness.requests.len(), usize::from(made), "{effort} with {limit}");
            assert_eq!(needed(&harness), (!made).then_some(FIRST + least));
        }
    }
}

#[test]
fn estimate_goes_on_from_what_the_provider_counted() {
    let mut harness = tokens(1_000);
    start(&mut harness, with_output(Some(100)));
    harness.call(&["a"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.finish_with_image(0, &"x".repeat(100));
    // 10 as counted, 1 + 8 for the response; 50 + 8 for the result, and its image.
    assert_eq!(needed(&harness), Some(10 + 9 + 58 + 5_000 + 1));
    let mut harness = tokens(300);
    start(&mut harness, with_output(Some(100)));
    harness.call(&["a"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "ü");
    // One character of two bytes.
    assert_eq!(harness.machine.committed().tokens(), 11 + (10 + 9 + 9) + 100);
}

#[test]
fn failed_attempt_counts_unless_it_was_refused() {
    let reserved = FIRST + 100;
    for (kind, counted) in [
        (ErrorKind::Stream, reserved),
        (ErrorKind::Server, reserved),
        (ErrorKind::Network, reserved),
        (ErrorKind::RequestTimeout, reserved),
        (ErrorKind::RateLimit, 0),
        (ErrorKind::QuotaExceeded, 0),
        (ErrorKind::NotFound, 0),
    ] {
        let mut harness = tokens(1_000);
        start(&mut harness, with_output(Some(100)));
        harness.failed(kind, "");
        assert_eq!(harness.machine.committed().tokens(), counted, "{kind:?}");
        assert_eq!(harness.machine.spent().tokens(), 0, "nobody knows what it took");
    }
    let mut harness = tokens(1_000);
    start(&mut harness, with_output(Some(100)));
    let error = Error::new(ErrorKind::Stream, "x").with_usage(Usage::new(7, 2)).info().clone();
    let model_call = harness.model_call();
    harness.tell(InputKind::ModelFailed { model_call, error, partial: String::new() });
    assert_eq!((harness.machine.committed().tokens(), harness.machine.spent().tokens()), (9, 9));
}

#[test]
fn interrupted_and_uncounted_attempts_count_whole() {
    let reserved = FIRST + 100;
    let mut harness = tokens(1_000);
    start(&mut harness, with_output(Some(100)));
    harness.tell(InputKind::Interrupt);
    harness.failed(ErrorKind::Abort, "so far");
    assert_eq!(harness.machine.committed().tokens(), reserved);
    let mut harness = tokens(1_000);
    start(&mut harness, with_output(Some(100)));
    harness.reply_counted("done", 0);
    // One output token is counted.
    assert_eq!(harness.machine.committed().tokens(), 1);
    let mut harness = tokens(1_000);
    start(&mut harness, with_output(Some(100)));
    let response = Response::new("p", "m", Message::assistant("done"));
    harness.tell(InputKind::ModelReplied { model_call: harness.model_call(), response: Box::new(response) });
    assert_eq!(harness.machine.committed().tokens(), reserved, "a server that does not count");
}

#[test]
fn each_retry_reserves_anew() {
    let retry = |harness: &mut Harness, kind| {
        harness.tell(InputKind::ModelRetrying {
            model_call: harness.model_call(),
            attempt: 1,
            delay: Duration::ZERO,
            error: Error::new(kind, "x").info().clone(),
        });
    };
    let mut harness = tokens(250);
    start(&mut harness, with_output(Some(100)));
    retry(&mut harness, ErrorKind::RateLimit);
    assert_eq!(harness.machine.committed().tokens(), 120);
    retry(&mut harness, ErrorKind::Stream);
    assert_eq!(harness.machine.committed().tokens(), 240);
    harness.wanted();
    retry(&mut harness, ErrorKind::Stream);
    assert_eq!(harness.wanted(), ["cancel model"], "a third attempt does not fit");
    harness.failed(ErrorKind::Abort, "");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    assert_eq!((needed(&harness), harness.machine.committed().tokens()), (Some(120), 240));
}

#[test]
fn compaction_reserves_like_any_call() {
    let mut harness = tokens(200);
    start(&mut harness, with_output(Some(100)));
    harness.say("first");
    harness.tell(InputKind::Compact);
    assert_eq!(harness.requests.len(), 1, "nothing to summarise, or no room for it");
    harness.submit("second");
    let last = harness.requests.last().unwrap().messages.last().unwrap().text();
    assert!(
        last.starts_with("second"),
        "the instruction for a summary has more tokens than are left: {last}"
    );
}

#[test]
fn attempt_that_nobody_saw_end_counts_whole() {
    let mut harness = tokens(250);
    start(&mut harness, with_output(Some(100)));
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.machine.committed().tokens(), 240, "the lost attempt and the new one");
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
}

#[test]
fn call_that_takes_more_than_estimated_is_reported() {
    let mut harness = tokens(130);
    start(&mut harness, with_output(Some(100)));
    harness.reply_counted("done", 200);
    let warning = |event: &EventKind| match event {
        EventKind::Warning { message } => Some(message.clone()),
        _ => None,
    };
    let warnings: Vec<String> = harness.events.iter().filter_map(warning).collect();
    assert_eq!(
        warnings,
        [
            "the budget is exceeded by 71 tokens: the provider counted 201 tokens for a call for which 120 were reserved"
        ]
    );
}

fn spawn(harness: &mut Harness, agent: &str) {
    harness.tell(InputKind::ChildSpawned {
        agent: agent.into(),
        session: SessionId::new(agent),
        task: "look".into(),
        call_id: None,
        settings: SubagentSettings::default(),
    });
}

fn ask(harness: &mut Harness, agent: &str, has: u64, wants: u64) -> Option<u64> {
    let (has, wants) = (Limits::default().with_tokens(has), Limits::default().with_tokens(wants));
    harness.tell(InputKind::ChildAsked { agent: agent.into(), ask: 1, has, wants, unpriced: None });
    harness.granted.get(agent).and_then(|slice| slice.tokens)
}

fn account(harness: &mut Harness, agent: &str, spent: u64, held: u64, rests: bool) {
    let of = |tokens| BudgetUsage { input_tokens: tokens, ..BudgetUsage::default() };
    let account = Account { spent: of(spent), held: of(held), rests };
    harness.tell(InputKind::ChildAccount { agent: agent.into(), account });
}

#[test]
fn subagent_spends_from_a_slice_and_returns_the_rest() {
    let mut harness = tokens(1_000);
    spawn(&mut harness, "one");
    assert_eq!(harness.machine.budget_left().tokens, Some(750), "a quarter is reserved");
    assert_eq!(ask(&mut harness, "one", 0, 100), Some(250), "it covers the first request");
    assert_eq!(ask(&mut harness, "one", 250, 10), Some(250 + 187), "a quarter of the rest");
    assert_eq!(ask(&mut harness, "one", 250, 10), Some(437), "the same request is answered the same");
    assert_eq!(ask(&mut harness, "one", 437, 500), Some(937));
    assert_eq!(ask(&mut harness, "one", 937, 500), Some(1_000), "there is no more");
    assert_eq!(harness.machine.budget_left().tokens, Some(0));
    account(&mut harness, "one", 300, 40, false);
    assert_eq!((harness.machine.budget_left().tokens, harness.machine.spent().tokens()), (Some(0), 300));
    account(&mut harness, "one", 310, 40, true);
    assert_eq!(harness.machine.budget_left().tokens, Some(650), "it rests");
    assert_eq!(ask(&mut harness, "one", 350, 100), Some(350 + 162), "and works again");
    harness.tell(InputKind::ChildEnded {
        agent: "one".into(),
        status: crate::protocol::SubagentStatus::Completed,
        turns_used: 1,
        output: String::new(),
        reason: None,
        warning: None,
    });
    assert_eq!(harness.machine.budget_left().tokens, Some(650), "what it could not settle stays counted");
}

#[test]
fn slice_of_a_lost_subagent_counts_as_spent() {
    let mut harness = tokens(1_000);
    spawn(&mut harness, "one");
    spawn(&mut harness, "two");
    account(&mut harness, "one", 50, 0, false);
    harness.tell(InputKind::Resumed { attached: vec!["two".into()], asks: None });
    let left = harness.machine.budget_left().tokens;
    assert_eq!(left, Some(1_000 - 250 - 187), "one is lost with its slice, two keeps its own");
    assert_eq!(harness.machine.spent().tokens(), 50);
}

/// A subagent with an empty slice.
fn subagent() -> Harness {
    let budget = Limits::default().with_tokens(0).with_tool_calls(0);
    Harness::subagent(TurnLimits { budget, ..TurnLimits::default() })
}

fn grant(harness: &mut Harness, tokens: u64, calls: u64) {
    let (ask, ..) = harness.asked.expect("it asked");
    let slice = Limits::default().with_tokens(tokens).with_tool_calls(calls);
    harness.tell(InputKind::BudgetGranted { ask, slice, short: None, failure: None });
}

#[test]
fn subagent_asks_before_its_first_call_and_at_the_end_of_its_slice() {
    let mut harness = subagent();
    harness.submit("go");
    assert_eq!((harness.wanted().last().unwrap().as_str(), harness.requests.len()), ("ask budget", 0));
    let (_, has, wants) = harness.asked.unwrap();
    assert_eq!((has.tokens, wants.tokens), (Some(0), Some(1_000)), "enough for a comfortable output");
    let stale = InputKind::BudgetGranted { ask: 7, slice: Limits::default(), short: None, failure: None };
    harness.tell(stale);
    assert_eq!(harness.requests.len(), 0);
    grant(&mut harness, 2_000, 0);
    assert_eq!(harness.requests.len(), 1);
    harness.call(&["a", "b"]);
    harness.prepared(0, Effect::Read, &[]);
    assert_eq!(harness.wanted().last().unwrap(), "ask budget");
    harness.prepared(1, Effect::Read, &[]);
    assert_eq!(harness.asked.unwrap().2.tool_calls, Some(1));
    grant(&mut harness, 2_000, 1);
    let wanted = harness.wanted();
    assert_eq!(wanted[wanted.len() - 2..], ["start 0", "ask budget"]);
    grant(&mut harness, 2_000, 1);
    harness.finish(0, "ok");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Budget, "nothing was left for the other");
    assert_eq!(harness.machine.budget().tokens, Some(11), "the rest returns");
    harness.submit("again");
    assert_eq!(harness.wanted().last().unwrap(), "ask budget");
}

#[test]
fn subagent_that_waits_for_its_budget_can_be_stopped_and_resumed() {
    let mut harness = subagent();
    harness.submit("go");
    harness.wanted();
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.wanted(), ["ask budget"], "the parent may not have answered");
    harness.tell(InputKind::Interrupt);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    grant(&mut harness, 500, 5);
    assert_eq!(harness.machine.budget().tokens, Some(0), "a late answer changes nothing");
}

#[test]
fn request_of_a_subagent_goes_up_the_tree() {
    let mut harness = subagent();
    harness.submit("go");
    grant(&mut harness, 2_000, 0);
    spawn(&mut harness, "one");
    harness.wanted();
    let missing = InputKind::ChildAsked {
        agent: "one".into(),
        ask: 3,
        has: Limits::default().with_tokens(0).with_tool_calls(0),
        wants: Limits::default().with_tokens(5_000).with_tool_calls(0),
        unpriced: None,
    };
    harness.tell(missing);
    assert_eq!(harness.wanted(), ["ask budget"]);
    let (_, has, wants) = harness.asked.unwrap();
    grant(&mut harness, has.tokens.unwrap() + wants.tokens.unwrap(), 0);
    assert_eq!(harness.wanted(), ["grant one"]);
    assert_eq!(harness.granted["one"].tokens, Some(5_000));
    assert_eq!(harness.machine.budget_left().tokens, Some(0));
}

#[test]
fn limit_of_a_wider_scope_is_reported_as_what_stopped_the_session() {
    let mut harness = subagent();
    harness.submit("go");
    let (ask, ..) = harness.asked.unwrap();
    let slice = Limits::default().with_tokens(5).with_tool_calls(0);
    let day = ReachedBudget::new(BudgetScope::Day, BudgetKind::Tokens, 100, 95);
    harness.tell(InputKind::BudgetGranted { ask, slice, short: Some(Box::new(day)), failure: None });
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Budget);
    let reached = harness.events.iter().find_map(|event| match event {
        EventKind::BudgetReached { budget, limit, spent, scope, .. } => {
            Some((*budget, *limit, *spent, *scope))
        }
        _ => None,
    });
    assert_eq!(reached, Some((BudgetKind::Tokens, 100, 95, BudgetScope::Day)));
}

#[test]
fn unknown_price_is_asked_about_and_only_the_limit_on_cost_is_lifted() {
    let budget = Limits::default().with_tokens(0).with_cost(Money::from_micros(0));
    let mut harness = Harness::subagent(TurnLimits { budget, ..TurnLimits::default() });
    harness.submit("go");
    assert_eq!(harness.wanted().last().unwrap(), "ask price of m");
    let (ask, ..) = harness.asked.unwrap();
    let slice = Limits::default().with_tokens(0);
    harness.tell(InputKind::BudgetGranted { ask, slice, short: None, failure: None });
    assert_eq!(harness.wanted(), ["ask budget"], "tokens are another need");
    let (ask, ..) = harness.asked.unwrap();
    let slice = Limits::default().with_tokens(5_000);
    harness.tell(InputKind::BudgetGranted { ask, slice, short: None, failure: None });
    assert_eq!(harness.requests.len(), 1);
    harness.say("done");
    assert_eq!(harness.machine.spent().cost, None);
    assert_eq!(harness.machine.budget().cost, None, "it was said once for the session");
}

#[test]
fn model_without_a_price_is_not_called_if_nobody_agrees() {
    let budget = Limits::default().with_cost(Money::from_micros(0));
    let mut harness = Harness::subagent(TurnLimits { budget, ..TurnLimits::default() });
    harness.submit("go");
    let (ask, has, _) = harness.asked.unwrap();
    harness.tell(InputKind::BudgetGranted { ask, slice: has, short: None, failure: None });
    assert_eq!((harness.last_outcome().0, harness.requests.len()), (OutcomeStatus::Failed, 0));
}

#[test]
fn price_is_asked_about_up_the_tree() {
    let mut harness = Harness::subagent(TurnLimits {
        budget: Limits::default().with_cost(Money::from_micros(0)),
        ..TurnLimits::default()
    });
    start(&mut harness, priced());
    let (ask, ..) = harness.asked.unwrap();
    let slice = Limits::default().with_cost(Money::from_micros(5_000_000_000));
    harness.tell(InputKind::BudgetGranted { ask, slice, short: None, failure: None });
    spawn(&mut harness, "one");
    harness.wanted();
    let asked = |has| InputKind::ChildAsked {
        agent: "one".into(),
        ask: 1,
        has,
        wants: Limits::default(),
        unpriced: Some("other".into()),
    };
    harness.tell(asked(Limits::default().with_cost(Money::from_micros(0))));
    assert_eq!(harness.wanted(), ["ask price of other"]);
    let (ask, ..) = harness.asked.unwrap();
    harness.tell(InputKind::BudgetGranted { ask, slice: Limits::default(), short: None, failure: None });
    assert_eq!(harness.wanted(), ["grant one"]);
    assert_eq!(harness.granted["one"].cost, None);
}

#[test]
fn a_subagent_gets_no_more_than_its_own_limit() {
    let mut harness = harness(Limits::default());
    harness.submit("go");
    harness.tell(InputKind::ChildSpawned {
        agent: "one".into(),
        session: SessionId::new("one"),
        task: "look".into(),
        call_id: None,
        settings: SubagentSettings {
            limits: Limits::default().with_tokens(100),
            ..SubagentSettings::default()
        },
    });
    assert_eq!(ask(&mut harness, "one", 0, 60), Some(100));
    assert_eq!(ask(&mut harness, "one", 100, 60), Some(100));
    assert!(harness.asked.is_none(), "more of the session's own budget would not help");
}
