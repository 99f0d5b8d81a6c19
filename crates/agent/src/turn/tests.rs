//! The rules of the loop as tables, without a runtime.

mod properties;

use std::path::PathBuf;
use std::time::Duration;

use pintle_env::Output;
use pintle_llm::{
    Error, ErrorInfo, ErrorKind, Finish, FinishReason, Message, ReasoningEffort, Request, Response, Role,
    ToolCall, ToolResult, Usage,
};
use pintle_tools::{Effect, ToolErrorKind};

use super::*;
use crate::id::{CallKey, SegmentId};

/// A machine with a clock that counts and a record of what it wanted.
struct Bench {
    machine: Machine,
    clock: i64,
    runs: u64,
    requests: Vec<Request>,
    events: Vec<EventKind>,
    outcomes: Vec<Outcome>,
    /// Everything else, in words.
    wanted: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        Self::with(TurnLimits::default())
    }

    fn with(limits: TurnLimits) -> Self {
        let mut bench = Self {
            machine: Machine::new(limits, None),
            clock: 0,
            runs: 0,
            requests: Vec::new(),
            events: Vec::new(),
            outcomes: Vec::new(),
            wanted: Vec::new(),
        };
        bench.tell(InputKind::Opened {
            provider: "p".into(),
            model: "m".into(),
            working_directory: "/w".into(),
        });
        bench
    }

    fn tell(&mut self, kind: InputKind) {
        self.clock += 1;
        let input = Input::new(Timestamp::from_millis(self.clock), kind);
        // Every input is what a record of it says, and the state survives being stored.
        let text = serde_json::to_string(&input).unwrap();
        let input: Input = serde_json::from_str(&text).unwrap();
        let stored = serde_json::to_string(&self.machine).unwrap();
        self.machine = serde_json::from_str(&stored).unwrap();
        for action in self.machine.step(input) {
            self.note(action);
        }
    }

    fn note(&mut self, action: Action) {
        match action {
            Action::CallModel { request, .. } => self.requests.push(*request),
            Action::Emit(event) => self.events.push(*event),
            Action::Finish { outcome, .. } => self.outcomes.push(*outcome),
            Action::LoadContext { .. } => self.wanted.push("load".into()),
            Action::CancelModel => self.wanted.push("cancel model".into()),
            Action::SetTimer { after, .. } => self.wanted.push(format!("timer {}", after.as_secs())),
            Action::PrepareCall { call, .. } => self.wanted.push(format!("prepare {}", call.index)),
            Action::AskApproval { call, .. } => self.wanted.push(format!("ask {}", call.index)),
            Action::WithdrawApproval { call } => self.wanted.push(format!("withdraw {}", call.index)),
            Action::RunTool { call } => self.wanted.push(format!("run {}", call.index)),
            Action::CancelTool { call } => self.wanted.push(format!("cancel {}", call.index)),
            Action::CleanUp => self.wanted.push("clean up".into()),
        }
    }

    fn submit(&mut self, text: &str) {
        self.runs += 1;
        self.tell(InputKind::Submit { run: RunId(self.runs), text: text.into() });
        if self.wanted.last().is_some_and(|wanted| wanted == "load") {
            self.load();
        }
    }

    fn load(&mut self) {
        self.load_this(TurnContext::new("p", "m", "system", 1_000));
    }

    fn load_this(&mut self, context: TurnContext) {
        let load = LoadId(self.machine.loads);
        self.tell(InputKind::ContextLoaded { load, context: Box::new(context) });
    }

    fn model_call(&self) -> ModelCallId {
        ModelCallId(self.machine.model_calls)
    }

    fn key(&self, index: usize) -> CallKey {
        CallKey { model_call: self.model_call(), index }
    }

    fn reply(&mut self, message: Message) {
        let finish = if message.tool_calls().next().is_some() { Finish::ToolCalls } else { Finish::Stop };
        self.reply_with(message, finish, None);
    }

    fn reply_with(&mut self, message: Message, finish: Finish, raw: Option<&str>) {
        let mut reason = FinishReason::new(finish);
        reason.raw = raw.map(str::to_owned);
        let response =
            Response::new("p", "m", message).with_finish_reason(reason).with_usage(Usage::new(10, 1));
        self.tell(InputKind::ModelReplied { model_call: self.model_call(), response: Box::new(response) });
    }

    fn say(&mut self, text: &str) {
        self.reply(Message::assistant(text));
    }

    /// The model calls tools of these names, with the ids `a`, `b`, … of this answer.
    fn call(&mut self, names: &[&str]) {
        let turn = self.machine.turns;
        let ids: Vec<String> =
            (0..names.len()).map(|i| format!("{}{turn}", (b'a' + i as u8) as char)).collect();
        self.reply(calls(&ids.iter().map(String::as_str).zip(names.iter().copied()).collect::<Vec<_>>()));
    }

    fn prepared(&mut self, index: usize, effect: Effect, writes: &[&str]) {
        let plan = CallPlan {
            effect,
            repeatable: effect == Effect::Read,
            writes: writes.iter().map(PathBuf::from).collect(),
            repairs: Vec::new(),
        };
        self.tell(InputKind::CallPrepared { call: self.key(index), preparation: Preparation::Ready(plan) });
    }

    fn asks(&mut self, index: usize) {
        let plan =
            CallPlan { effect: Effect::Execute, repeatable: false, writes: Vec::new(), repairs: Vec::new() };
        let preparation = Preparation::Ask {
            plan,
            arguments: serde_json::json!({}),
            reason: "it runs a command".into(),
            fingerprint: pintle_llm::Fingerprint::of(b"a call"),
        };
        self.tell(InputKind::CallPrepared { call: self.key(index), preparation });
    }

    fn finish(&mut self, index: usize, text: &str) {
        let call = self.key(index);
        self.tell(InputKind::ToolStarted { call });
        self.finish_started(index, text, None);
    }

    fn finish_started(&mut self, index: usize, text: &str, error: Option<ToolErrorKind>) {
        let finished = FinishedCall {
            result: ToolResult::new("whatever", text, error.is_some()),
            output: Output::from(text),
            error,
            changes: Vec::new(),
            question: None,
        };
        self.tell(InputKind::ToolFinished { call: self.key(index), finished: Box::new(finished) });
    }

    /// A call that ends with a question to the user.
    fn ask(&mut self, index: usize, question: &str) {
        let call = self.key(index);
        self.tell(InputKind::ToolStarted { call });
        let finished = FinishedCall {
            result: ToolResult::new("whatever", "asked", false),
            output: Output::from("asked"),
            error: None,
            changes: Vec::new(),
            question: Some(question.into()),
        };
        self.tell(InputKind::ToolFinished { call, finished: Box::new(finished) });
    }

    /// One round of one reading call.
    fn round(&mut self, name: &str) {
        self.call(&[name]);
        self.prepared(0, Effect::Read, &[]);
        self.finish(0, "ok");
    }

    fn wanted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.wanted)
    }

    fn kinds(&self) -> Vec<String> {
        self.events.iter().map(kind_of).collect()
    }

    fn last_outcome(&self) -> (OutcomeStatus, SessionState) {
        (self.outcomes.last().expect("the run is over").status, self.machine.state())
    }

    /// The messages of the newest request after the system prompt: role and what it says.
    fn sent(&self) -> Vec<String> {
        let request = self.requests.last().expect("a request was sent");
        request.messages.iter().skip(1).map(|item| shown(item)).collect()
    }

    fn failed(&mut self, kind: ErrorKind, partial: &str) {
        let error = Error::new(kind, "x").info().clone();
        self.tell(InputKind::ModelFailed { model_call: self.model_call(), error, partial: partial.into() });
    }
}

fn calls(calls: &[(&str, &str)]) -> Message {
    let parts = calls.iter().map(|(id, name)| ToolCall::from_raw(*id, *name, "{}").into()).collect();
    Message::new(Role::Assistant, parts)
}

fn kind_of(event: &EventKind) -> String {
    let value = serde_json::to_value(event).unwrap();
    value["kind"].as_str().unwrap().to_owned()
}

fn shown(message: &Message) -> String {
    let calls: Vec<String> = message.tool_calls().map(|call| format!("{}={}", call.id, call.name)).collect();
    let results: Vec<String> =
        message.results().map(|result| format!("{}:{}", result.tool_call_id, result.text())).collect();
    match message.role {
        Role::Assistant if !calls.is_empty() => format!("calls {}", calls.join(" ")),
        Role::Tool => format!("results {}", results.join(" ")),
        Role::Assistant | Role::User | Role::System | Role::Developer => {
            format!("{:?} {}", message.role, message.text()).to_lowercase()
        }
    }
}

#[test]
fn natural_completion() {
    let mut bench = Bench::new();
    bench.submit("hello");
    assert_eq!(bench.machine.state(), SessionState::Processing);
    assert_eq!(bench.sent(), ["user hello"]);
    bench.say("done");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    assert_eq!(bench.outcomes[0].text, "done");
    assert_eq!(bench.outcomes[0].usage.total_tokens, 11);
    assert_eq!(
        bench.kinds(),
        ["SESSION_START", "USER_INPUT", "REQUEST_PREPARED", "MODEL_RESPONSE", "PROCESSING_END"]
    );
}

#[test]
fn sequential_inputs_share_the_history_and_load_the_context_once() {
    let mut bench = Bench::new();
    bench.submit("one");
    bench.say("1");
    bench.submit("two");
    assert_eq!(bench.sent(), ["user one", "assistant 1", "user two"]);
    assert_eq!(bench.wanted().iter().filter(|wanted| *wanted == "load").count(), 1);
}

#[test]
fn a_tool_round_answers_every_call_in_the_order_of_the_calls() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["grep", "glob", "read_file"]);
    bench.wanted();
    for index in [2, 0, 1] {
        bench.prepared(index, Effect::Read, &[]);
    }
    for (index, text) in [(1, "second"), (2, "third"), (0, "first")] {
        bench.finish(index, text);
    }
    assert_eq!(
        bench.sent(),
        ["user go", "calls a0=grep b0=glob c0=read_file", "results a0:first b0:second c0:third"]
    );
    bench.say("done");
    assert_eq!(bench.outcomes[0].tool_calls, 3);
    assert_eq!(bench.outcomes[0].model_calls, 2);
}

#[test]
fn which_calls_of_a_round_run_at_the_same_time() {
    type Plan = (Effect, &'static [&'static str]);
    let read: Plan = (Effect::Read, &[]);
    let run: Plan = (Effect::Execute, &[]);
    let write_a: Plan = (Effect::Write, &["/w/a"]);
    let write_b: Plan = (Effect::Write, &["/w/b"]);
    let rows: [(&[Plan], &[&str]); 7] = [
        (&[read, read, read], &["run 0", "run 1", "run 2"]),
        (&[write_a, write_b], &["run 0", "run 1"]),
        (&[write_a, write_a], &["run 0"]),
        (&[write_a, read, write_a], &["run 0", "run 1"]),
        (&[run, write_a], &["run 0"]),
        (&[write_a, run], &["run 0"]),
        (&[run, run], &["run 0", "run 1"]),
    ];
    for (plans, started) in rows {
        let mut bench = Bench::new();
        bench.submit("go");
        bench.call(&vec!["tool"; plans.len()]);
        bench.wanted();
        for (index, (effect, writes)) in plans.iter().enumerate() {
            bench.prepared(index, *effect, writes);
        }
        assert_eq!(bench.wanted(), started, "{plans:?}");
        for index in 0..plans.len() {
            bench.finish(index, "ok");
        }
        assert_eq!(bench.requests.len(), 2, "every call runs in the end: {plans:?}");
    }
}

#[test]
fn without_parallel_calls_they_run_one_by_one() {
    let mut bench = Bench::new();
    bench.runs = 1;
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.parallel_tool_calls = false;
    bench.load_this(context);
    bench.call(&["a", "b"]);
    bench.wanted();
    bench.prepared(1, Effect::Read, &[]);
    assert_eq!(bench.wanted(), [""; 0], "the second waits for the first");
    bench.prepared(0, Effect::Read, &[]);
    assert_eq!(bench.wanted(), ["run 0"]);
    bench.finish(0, "x");
    assert_eq!(bench.wanted(), ["run 1"]);
}

#[test]
fn no_more_than_the_limit_run_at_once() {
    let mut bench = Bench::with(TurnLimits { max_parallel_tools: 2, ..TurnLimits::default() });
    bench.submit("go");
    bench.call(&["a", "b", "c"]);
    bench.wanted();
    for index in 0..3 {
        bench.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(bench.wanted(), ["run 0", "run 1"]);
    bench.finish(1, "x");
    assert_eq!(bench.wanted(), ["run 2"]);
}

#[test]
fn round_limit() {
    let mut bench = Bench::with(TurnLimits { max_tool_rounds_per_input: 2, ..TurnLimits::default() });
    for input in 1..=2 {
        bench.submit("go");
        bench.round("a");
        bench.round("b");
        assert_eq!(bench.last_outcome(), (OutcomeStatus::RoundLimit, SessionState::Idle), "input {input}");
        assert!(matches!(bench.events[bench.events.len() - 2], EventKind::TurnLimit { round: Some(2), .. }));
    }
    assert_eq!(bench.requests.len(), 4, "the limit counts per input");
}

#[test]
fn turn_limit_counts_over_all_inputs() {
    let mut bench = Bench::with(TurnLimits { max_turns: 3, ..TurnLimits::default() });
    bench.submit("one");
    bench.round("a");
    bench.say("1");
    bench.submit("two");
    bench.round("b");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::TurnLimit, SessionState::Idle));
    assert!(matches!(
        bench.events[bench.events.len() - 2],
        EventKind::TurnLimit { total_turns: Some(3), .. }
    ));
    bench.submit("three");
    assert_eq!((bench.outcomes.len(), bench.requests.len()), (3, 3), "the limit stays met");
}

#[test]
fn steering_enters_after_the_round_and_before_the_next_request() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Steer { text: "early".into() });
    bench.submit("go");
    assert_eq!(bench.sent(), ["user go", "user early"], "idle steering comes with the next input");
    bench.call(&["a"]);
    bench.tell(InputKind::Steer { text: "first".into() });
    bench.tell(InputKind::Steer { text: "second".into() });
    bench.prepared(0, Effect::Read, &[]);
    bench.finish(0, "ok");
    assert_eq!(bench.sent()[3..], ["results a0:ok", "user first", "user second"]);
    let kinds: Vec<TurnKind> = bench.machine.history().iter().map(|turn| turn.kind).collect();
    assert_eq!(kinds[4..], [TurnKind::Steering, TurnKind::Steering]);
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "STEERING_INJECTED").count(), 3);
}

#[test]
fn steering_during_the_last_answer_is_not_left_waiting() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.tell(InputKind::Steer { text: "also this".into() });
    bench.say("done");
    assert_eq!(bench.sent(), ["user go", "assistant done", "user also this"]);
    bench.say("that too");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn follow_ups_run_one_after_the_other_within_the_run() {
    let mut bench = Bench::new();
    bench.submit("one");
    bench.tell(InputKind::FollowUp { text: "two".into() });
    bench.tell(InputKind::FollowUp { text: "three".into() });
    bench.say("1");
    assert!(bench.outcomes.is_empty());
    bench.say("2");
    bench.say("3");
    assert_eq!(bench.outcomes.len(), 1);
    assert_eq!(bench.outcomes[0].text, "3");
    assert_eq!(
        bench.machine.history().iter().map(Turn::content).collect::<Vec<_>>(),
        ["one", "1", "two", "2", "three", "3"]
    );
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "PROCESSING_END").count(), 1);
}

#[test]
fn a_question_awaits_its_answer() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("Which file do you mean? ");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::AwaitingInput, SessionState::AwaitingInput));
    bench.submit("that one");
    assert_eq!(bench.machine.state(), SessionState::Processing);
    bench.say("ok");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn a_question_asked_with_a_tool_awaits_its_answer_with_the_round_in_the_history() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["ask_user", "look"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.prepared(1, Effect::Read, &[]);
    bench.ask(0, "Which port?");
    assert!(bench.outcomes.is_empty(), "the other call still runs");
    bench.finish(1, "seen");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::AwaitingInput, SessionState::AwaitingInput));
    assert_eq!(bench.outcomes[0].text, "Which port?");
    assert_eq!(bench.requests.len(), 1);
    bench.submit("8080");
    assert_eq!(
        bench.sent(),
        ["user go", "calls a0=ask_user b0=look", "results a0:asked b0:seen", "user 8080"]
    );
    bench.say("ok");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn a_question_is_not_waited_on_once_someone_has_steered() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["ask_user"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.tell(InputKind::Steer { text: "take 8080".into() });
    bench.ask(0, "Which port?");
    assert!(bench.outcomes.is_empty());
    assert_eq!(bench.requests.len(), 2);
}

#[test]
fn submits_that_are_refused_change_nothing() {
    let mut bench = Bench::new();
    bench.submit("  \n");
    bench.submit("go");
    bench.submit("me too");
    let messages: Vec<String> =
        bench.outcomes.iter().map(|outcome| outcome.error.as_ref().unwrap().message.clone()).collect();
    assert_eq!(
        messages,
        [
            "the input is empty: expected some text",
            "the session is processing: steer it, queue a follow-up, or wait for the run to end",
        ]
    );
    assert_eq!(bench.machine.history().len(), 1);
    bench.say("fine");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn a_loop_is_told_once_per_window() {
    let mut bench = Bench::with(TurnLimits { loop_detection_window: 4, ..TurnLimits::default() });
    bench.submit("go");
    let mut told = Vec::new();
    for round in 1..=9 {
        bench.round("same");
        if bench.kinds().iter().filter(|kind| *kind == "LOOP_DETECTION").count() > told.len() {
            told.push(round);
            assert_eq!(
                bench.sent().last().unwrap(),
                "user loop detected: the last 4 tool calls follow a repeating pattern. try a different approach."
            );
        }
    }
    assert_eq!(told, [4, 8]);
    assert_eq!(bench.machine.history().iter().filter(|turn| turn.kind == TurnKind::Steering).count(), 2);
}

#[test]
fn loop_detection_can_be_turned_off() {
    let limits =
        TurnLimits { loop_detection_window: 2, enable_loop_detection: false, ..TurnLimits::default() };
    let mut bench = Bench::with(limits);
    bench.submit("go");
    for _ in 0..5 {
        bench.round("same");
    }
    assert!(!bench.kinds().contains(&"LOOP_DETECTION".to_owned()));
}

#[test]
fn calls_cut_off_by_the_output_limit_do_not_run() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.wanted();
    bench.reply_with(calls(&[("x", "write_file")]), Finish::Length, Some("max_tokens"));
    assert_eq!(bench.wanted(), [""; 0]);
    assert!(bench.sent()[2].starts_with("results x:Not run: the answer was cut off by the output limit"));
    bench.reply_with(Message::assistant("half a sen"), Finish::Length, None);
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
    assert!(bench.kinds().contains(&"WARNING".to_owned()), "the cut is told");
}

#[test]
fn a_refusal_is_its_own_outcome_and_a_pause_goes_on() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.reply_with(Message::assistant("working"), Finish::Other, Some("pause_turn"));
    assert_eq!(bench.requests.len(), 2);
    bench.reply_with(Message::assistant("no"), Finish::ContentFilter, Some("refusal"));
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Refused, SessionState::Idle));
}

#[test]
fn an_answer_that_failed_fails_the_run_and_answers_its_calls() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.reply_with(calls(&[("x", "a")]), Finish::Error, Some("MALFORMED_FUNCTION_CALL"));
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    bench.submit("again");
    assert!(bench.sent()[2].starts_with("results x:Not run:"));
}

#[test]
fn an_id_that_comes_twice_is_made_unique() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.reply(calls(&[("x", "a"), ("x", "b")]));
    for index in 0..2 {
        bench.prepared(index, Effect::Read, &[]);
        bench.finish(index, "ok");
    }
    bench.reply(calls(&[("x", "c")]));
    bench.prepared(0, Effect::Read, &[]);
    bench.finish(0, "ok");
    assert_eq!(
        bench.sent()[1..],
        ["calls x=a x_2=b", "results x:ok x_2:ok", "calls x_3=c", "results x_3:ok"]
    );
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "HISTORY_REPAIRED").count(), 2);
    bench.reply(calls(&[("", "d")]));
    bench.prepared(0, Effect::Read, &[]);
    bench.finish(0, "ok");
    assert_eq!(bench.sent()[5..], ["calls call_4=d", "results call_4:ok"], "no id is none");
}

#[test]
fn an_empty_answer_is_not_sent_back() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    bench.submit("again");
    assert_eq!(bench.sent(), ["user go", "user again"]);
}

#[test]
fn what_each_error_of_the_model_does_to_the_session() {
    let rows = [
        (ErrorKind::Authentication, SessionState::Closed),
        (ErrorKind::AccessDenied, SessionState::Closed),
        (ErrorKind::Configuration, SessionState::Closed),
        (ErrorKind::RateLimit, SessionState::Idle),
        (ErrorKind::Server, SessionState::Idle),
        (ErrorKind::Network, SessionState::Idle),
        (ErrorKind::Stream, SessionState::Idle),
        (ErrorKind::RequestTimeout, SessionState::Idle),
        (ErrorKind::ContextLength, SessionState::Idle),
        (ErrorKind::InvalidRequest, SessionState::Idle),
        (ErrorKind::NotFound, SessionState::Idle),
        (ErrorKind::QuotaExceeded, SessionState::Idle),
    ];
    for (kind, state) in rows {
        let mut bench = Bench::new();
        bench.submit("go");
        bench.failed(kind, "");
        if bench.wanted().last().is_some_and(|wanted| wanted == "clean up") {
            bench.tell(InputKind::CleanedUp);
        }
        assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, state), "{kind:?}");
        assert_eq!(bench.outcomes[0].error.as_ref().unwrap().kind, kind);
        assert!(bench.kinds().contains(&"ERROR".to_owned()));
        assert_eq!(bench.kinds().contains(&"WARNING".to_owned()), kind == ErrorKind::ContextLength);
        assert_eq!(bench.kinds().contains(&"SESSION_END".to_owned()), state == SessionState::Closed);
        if state == SessionState::Idle {
            bench.submit("again");
            assert_eq!(bench.sent(), ["user go", "user again"], "the session stays usable");
        }
    }
}

#[test]
fn interrupt_keeps_the_session_and_the_text_so_far() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.wanted();
    bench.tell(InputKind::Interrupt);
    assert_eq!(bench.wanted(), ["cancel model"]);
    bench.failed(ErrorKind::Abort, "I was about");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    bench.submit("again");
    assert_eq!(bench.sent(), ["user go", "assistant i was about", "user again"]);
}

#[test]
fn an_input_that_comes_while_a_turn_is_being_interrupted_begins_after_it() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.tell(InputKind::Interrupt);
    bench.submit("rather this");
    bench.submit("and this");
    assert_eq!(bench.outcomes.len(), 1, "one input waits, a further one is refused");
    bench.failed(ErrorKind::Abort, "");
    let statuses: Vec<OutcomeStatus> = bench.outcomes.iter().map(|outcome| outcome.status).collect();
    assert_eq!(statuses, [OutcomeStatus::Failed, OutcomeStatus::Interrupted]);
    assert_eq!(bench.sent(), ["user go", "user rather this"]);
    bench.say("done");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn an_input_that_waits_is_interrupted_with_the_rest() {
    for (stop, closed) in [(InputKind::Interrupt, false), (InputKind::Abort, true)] {
        let mut bench = Bench::new();
        bench.submit("go");
        bench.tell(InputKind::Interrupt);
        bench.submit("rather this");
        bench.tell(stop);
        bench.failed(ErrorKind::Abort, "");
        bench.tell(InputKind::CleanedUp);
        assert_eq!(bench.outcomes.len(), 2, "each run has its outcome");
        assert_eq!(bench.outcomes[0].status, OutcomeStatus::Interrupted);
        assert_eq!(bench.machine.state() == SessionState::Closed, closed);
        assert_eq!(bench.requests.len(), 1);
    }
}

#[test]
fn interrupt_in_a_round_answers_every_call_truthfully() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["done", "running", "queued", "unprepared"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.finish(0, "result");
    bench.prepared(1, Effect::Write, &["/w/a"]);
    bench.tell(InputKind::ToolStarted { call: bench.key(1) });
    bench.prepared(2, Effect::Write, &["/w/a"]);
    bench.wanted();
    bench.tell(InputKind::Interrupt);
    assert_eq!(bench.wanted(), ["cancel 1"]);
    assert!(bench.outcomes.is_empty(), "the running call has not answered yet");
    bench.tell(InputKind::ToolLost { call: bench.key(1) });
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    bench.submit("again");
    let results = &bench.sent()[2];
    for part in
        ["a0:result", "b0:Interrupted: the turn was stopped while", "c0:Not run: the turn", "d0:Not run"]
    {
        assert!(results.contains(part), "{part} in {results}");
    }
    let starts = bench.kinds().iter().filter(|kind| *kind == "TOOL_CALL_START").count();
    let ends = bench.kinds().iter().filter(|kind| *kind == "TOOL_CALL_END").count();
    assert_eq!((starts, ends), (4, 4), "starts and ends pair");
}

#[test]
fn a_call_that_finished_before_it_could_be_stopped_keeps_its_result() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["a"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.tell(InputKind::ToolStarted { call: bench.key(0) });
    bench.tell(InputKind::Interrupt);
    bench.finish_started(0, "real result", None);
    bench.submit("again");
    assert_eq!(bench.sent()[2], "results a0:real result");
}

#[test]
fn abort_closes_from_every_phase() {
    type Prepare = fn(&mut Bench);
    let rows: [(&str, Prepare, &[&str]); 5] = [
        ("idle", |_| {}, &["clean up"]),
        (
            "loading",
            |b| b.tell(InputKind::Submit { run: RunId(1), text: "go".into() }),
            &["load", "clean up"],
        ),
        ("model", |b| b.submit("go"), &["load", "cancel model"]),
        (
            "preparing",
            |b| {
                b.submit("go");
                b.call(&["a"]);
            },
            &["load", "prepare 0", "clean up"],
        ),
        (
            "running",
            |b| {
                b.submit("go");
                b.call(&["a"]);
                b.prepared(0, Effect::Execute, &[]);
                b.tell(InputKind::ToolStarted { call: b.key(0) });
            },
            &["load", "prepare 0", "run 0", "cancel 0"],
        ),
    ];
    for (phase, prepare, wanted) in rows {
        let mut bench = Bench::new();
        prepare(&mut bench);
        bench.tell(InputKind::Abort);
        bench.tell(InputKind::Abort);
        assert_eq!(bench.wanted(), wanted, "{phase}");
        match phase {
            "model" => bench.failed(ErrorKind::Abort, ""),
            "running" => bench.tell(InputKind::ToolLost { call: bench.key(0) }),
            _ => {}
        }
        bench.tell(InputKind::CleanedUp);
        assert_eq!(bench.machine.state(), SessionState::Closed, "{phase}");
        assert_eq!(bench.kinds().last().unwrap(), "SESSION_END", "{phase}");
        if phase != "idle" {
            assert_eq!(bench.outcomes.last().unwrap().status, OutcomeStatus::Aborted, "{phase}");
            assert_eq!(bench.kinds()[bench.kinds().len() - 2], "PROCESSING_END", "{phase}");
        }
        let events = bench.events.len();
        for late in
            [InputKind::Abort, InputKind::Close, InputKind::Steer { text: "x".into() }, InputKind::CleanedUp]
        {
            bench.tell(late);
        }
        assert_eq!(bench.events.len(), events, "nothing follows the end: {phase}");
        bench.submit("too late");
        let error = bench.outcomes.last().unwrap().error.clone().unwrap();
        assert_eq!(error.message, "the session is closed");
    }
}

#[test]
fn approval_runs_or_refuses_a_call() {
    let mut bench =
        Bench::with(TurnLimits { approval_timeout: Some(Duration::from_secs(60)), ..TurnLimits::default() });
    bench.submit("go");
    bench.call(&["a", "b", "c"]);
    bench.wanted();
    for index in 0..3 {
        bench.asks(index);
    }
    assert_eq!(bench.wanted(), ["timer 60", "ask 0", "timer 60", "ask 1", "timer 60", "ask 2"]);
    let decide = |bench: &mut Bench, index, approved| {
        let reason = Some("not now".to_owned());
        let call = bench.key(index);
        bench.tell(InputKind::ApprovalDecided { call, approved, reason });
    };
    decide(&mut bench, 0, true);
    decide(&mut bench, 1, false);
    decide(&mut bench, 1, true);
    bench.tell(InputKind::TimerFired { timer: Timer::Approval(bench.key(0)) });
    bench.tell(InputKind::TimerFired { timer: Timer::Approval(bench.key(2)) });
    assert_eq!(bench.wanted(), ["run 0"], "a decision is for one call and stands");
    bench.finish(0, "ran");
    assert_eq!(
        bench.sent()[2],
        "results a0:ran b0:The call of b was denied: not now c0:The call of c was denied: nobody decided in time"
    );
}

#[test]
fn a_refused_call_is_an_error_result() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["shel"]);
    let preparation =
        Preparation::Refused { error: ToolErrorKind::UnknownTool, message: "Unknown tool: shel".into() };
    bench.tell(InputKind::CallPrepared { call: bench.key(0), preparation });
    assert_eq!(bench.sent()[2], "results a0:Unknown tool: shel");
    let result = bench.machine.history()[2].item.results().next().unwrap().clone();
    assert!(result.is_error);
}

#[test]
fn a_lost_environment_ends_the_turn_after_the_round() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["a"]);
    bench.prepared(0, Effect::Execute, &[]);
    bench.tell(InputKind::ToolStarted { call: bench.key(0) });
    bench.finish_started(0, "gone", Some(ToolErrorKind::EnvironmentLost));
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    assert_eq!(bench.machine.history().len(), 3, "the call has its result");
}

#[test]
fn configuration_changes_from_the_next_request_on() {
    let mut bench = Bench::new();
    bench.submit("go");
    let effort = Change::ReasoningEffort(Some(ReasoningEffort::High));
    bench.tell(InputKind::Configure { change: effort });
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.wanted();
    bench.round("a");
    assert_eq!(bench.wanted().last().unwrap(), "load");
    let mut context = TurnContext::new("q", "n", "another system", 1_000);
    context.max_tokens = Some(77);
    bench.load_this(context);
    let request = bench.requests.last().unwrap();
    assert_eq!((request.provider.as_deref(), request.model.as_str()), (Some("q"), "n"));
    assert_eq!(
        (request.max_tokens, request.reasoning_effort.clone()),
        (Some(77), Some(ReasoningEffort::High))
    );
    assert_eq!(bench.sent().len(), 3, "the history is carried over");
    assert!(bench.events.iter().any(|event| matches!(
        event,
        EventKind::RequestPrepared { moved: Some(pintle_llm::Segment::System), .. }
    )));
}

#[test]
fn a_change_while_the_context_is_loading_loads_it_again() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.load();
    assert!(bench.requests.is_empty());
    assert_eq!(bench.wanted(), ["load", "load"]);
    bench.load();
    assert_eq!(bench.requests.len(), 1);
}

#[test]
fn facts_that_were_gathered_for_a_turn_that_was_interrupted_come_too_late() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    bench.tell(InputKind::Interrupt);
    bench.tell(InputKind::Submit { run: RunId(2), text: "again".into() });
    let late = Box::new(TurnContext::new("p", "old", "late", 1_000));
    bench.tell(InputKind::ContextLoaded { load: LoadId(1), context: late });
    let error = Error::new(ErrorKind::Configuration, "late").info().clone();
    bench.tell(InputKind::ContextFailed { load: LoadId(1), error });
    assert_eq!((bench.requests.len(), bench.machine.state()), (0, SessionState::Processing));
    bench.load();
    assert_eq!(bench.requests[0].model, "m");
}

#[test]
fn a_change_during_a_model_call_leaves_its_answer_as_it_was_asked_for() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.call(&["a", "b"]);
    bench.wanted();
    for index in 0..2 {
        bench.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(bench.wanted(), ["run 0", "run 1"], "calls still run side by side");
}

#[test]
fn a_call_that_was_told_to_run_and_never_started_has_its_start_and_end() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["a"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.tell(InputKind::Interrupt);
    bench.tell(InputKind::ToolLost { call: bench.key(0) });
    let kinds = bench.kinds();
    assert_eq!(kinds[kinds.len() - 3..], ["TOOL_CALL_START", "TOOL_CALL_END", "PROCESSING_END"]);
    bench.submit("again");
    assert!(bench.sent()[2].starts_with("results a0:Not run: the turn was stopped"));
}

#[test]
fn segments_and_retries_that_come_late_are_no_events() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("done");
    let events = bench.events.len();
    let segment = SegmentId(1);
    bench.tell(InputKind::SegmentOpened { segment, kind: SegmentKind::Text });
    bench.tell(InputKind::SegmentClosed {
        segment,
        kind: SegmentKind::Text,
        text: "late".into(),
        interrupted: false,
    });
    bench.tell(InputKind::ModelRetrying {
        model_call: bench.model_call(),
        attempt: 1,
        delay: Duration::ZERO,
        error: Error::new(ErrorKind::Server, "x").info().clone(),
    });
    assert_eq!(bench.events.len(), events);
}

#[test]
fn context_usage_is_warned_of_once() {
    let mut bench = Bench::new();
    bench.submit(&"x".repeat(3_300));
    bench.round("a");
    bench.say("done");
    let warnings: Vec<&EventKind> =
        bench.events.iter().filter(|event| matches!(event, EventKind::Warning { .. })).collect();
    assert_eq!(warnings, [&EventKind::Warning { message: "Context usage at ~83% of context window".into() }]);
}

#[test]
fn queues_are_bounded() {
    let mut bench = Bench::with(TurnLimits { max_queued: 2, ..TurnLimits::default() });
    for text in ["1", "2", "3", " "] {
        bench.tell(InputKind::Steer { text: text.into() });
    }
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "WARNING").count(), 2);
    bench.submit("go");
    assert_eq!(bench.sent(), ["user go", "user 1", "user 2"]);
}

#[test]
fn a_clock_that_jumps_back_does_not_turn_the_history_round() {
    let mut bench = Bench::new();
    bench.clock = 1_000;
    bench.submit("go");
    bench.clock = 0;
    bench.say("done");
    let times: Vec<i64> = bench.machine.history().iter().map(|turn| turn.timestamp.as_millis()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_failed_context_fails_the_run() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    let error: ErrorInfo = Error::new(ErrorKind::Configuration, "no folder").info().clone();
    bench.tell(InputKind::ContextFailed { load: LoadId(1), error });
    bench.tell(InputKind::CleanedUp);
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Closed));
}

#[test]
fn what_was_mended_in_a_call_is_told_before_it_starts() {
    use pintle_tools::{ArgumentRepair, RepairKind};

    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["read", "read"]);
    let repairs = vec![ArgumentRepair::new("limit", RepairKind::NumberFromText)];
    let plan =
        CallPlan { effect: Effect::Read, repeatable: true, writes: Vec::new(), repairs: repairs.clone() };
    bench.tell(InputKind::CallPrepared { call: bench.key(0), preparation: Preparation::Ready(plan) });
    bench.prepared(1, Effect::Read, &[]);
    bench.finish(0, "text");
    let told: Vec<&EventKind> = bench
        .events
        .iter()
        .filter(|event| matches!(event, EventKind::ToolCallRepaired { .. } | EventKind::ToolCallStart { .. }))
        .collect();
    assert!(
        matches!(told.as_slice(), [
        EventKind::ToolCallRepaired { tool_name, repairs: found, .. },
        EventKind::ToolCallStart { .. },
    ] if tool_name == "read" && *found == repairs),
        "{told:?}"
    );
}
