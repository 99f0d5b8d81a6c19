//! For every interleaving of inputs, each request of a session is valid for its provider according to the independent
//! checkers.

use std::cell::Cell;
use std::path::PathBuf;

use pintle_agent::protocol::{Action, CallPlan, Change, Input, InputKind, Preparation, TurnContext};
use pintle_agent::turn::Machine;
use pintle_agent::{CallKey, LoadId, ModelCallId, RunId, SessionState, Timestamp, TurnLimits};
use pintle_env::Output;
use pintle_llm::{
    ContentPart, Error, ErrorKind, Finish, FinishReason, Message, Origin, ReasoningEffort, Request, Response,
    Role, ThinkingData, ToolCall, ToolResult,
};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions, Turn};
use pintle_tools::pipeline::Execution;
use pintle_tools::{Effect, ToolErrorKind};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::harness::{KEY, client, in_each_dialect, profile};

in_each_dialect![every_interleaving_sends_valid_requests];

const CASES: u32 = 16;

/// A step of an interleaving.
#[derive(Clone, Debug)]
enum Step {
    /// The next expected input, in one of many forms.
    Proceed(usize),
    Steer,
    FollowUp,
    Interrupt,
    Effort,
    /// An input other than the expected one.
    Fail(ErrorKind),
    Lose,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(ErrorKind::Server), Just(ErrorKind::Abort), Just(ErrorKind::InvalidRequest)];
    prop_oneof![
        16 => (0_usize..1_000).prop_map(Step::Proceed),
        1 => Just(Step::Steer),
        1 => Just(Step::FollowUp),
        2 => Just(Step::Interrupt),
        1 => Just(Step::Effort),
        1 => kind.prop_map(Step::Fail),
        1 => Just(Step::Lose),
    ]
}

/// A turn machine, and the inputs that it waits for.
struct MachineHarness {
    machine: Machine,
    context: TurnContext,
    clock: i64,
    runs: u64,
    load: Option<LoadId>,
    model: Option<ModelCallId>,
    unprepared: Vec<CallKey>,
    told_to_run: Vec<CallKey>,
    requests: Vec<Request>,
}

impl MachineHarness {
    fn new(dialect: Dialect) -> Self {
        let profile = profile(dialect);
        let mut context =
            TurnContext::new(profile.provider.clone(), profile.model.clone(), "You help.", 100_000);
        // Two tools are enough; their schemas are not tested here.
        context.tools = profile.tools().into_iter().take(2).collect();
        context.max_tokens = Some(32_000);
        let mut harness = Self {
            machine: Machine::new(TurnLimits::default(), None),
            clock: 0,
            runs: 0,
            load: None,
            model: None,
            unprepared: Vec::new(),
            told_to_run: Vec::new(),
            requests: Vec::new(),
            context,
        };
        let (provider, model) = (harness.context.provider.clone(), harness.context.model.clone());
        harness.input(InputKind::Opened { provider, model, working_directory: "/w".into() });
        harness
    }

    fn input(&mut self, kind: InputKind) {
        self.clock += 1;
        for action in self.machine.step(Input::new(Timestamp::from_millis(self.clock), kind)) {
            match action {
                Action::LoadContext { load } => self.load = Some(load),
                Action::CallModel { model_call, request, .. } => {
                    self.model = Some(model_call);
                    self.requests.push(*request);
                }
                Action::PrepareCall { call, .. } => self.unprepared.push(call),
                Action::StartTool { call } => self.told_to_run.push(call),
                _ => {}
            }
        }
        if self.machine.state() != SessionState::Processing {
            self.unprepared.clear();
            self.told_to_run.clear();
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Proceed(choice) => self.proceed(*choice),
            Step::Steer => self.input(InputKind::Steer { message: "This way.".into() }),
            Step::FollowUp => self.input(InputKind::FollowUp { message: "And then?".into() }),
            Step::Interrupt => self.input(InputKind::Interrupt),
            Step::Effort => {
                let change = Change::ReasoningEffort(Some(ReasoningEffort::High));
                self.input(InputKind::Configure { change });
                self.input(InputKind::Configure { change: Change::Context });
            }
            Step::Fail(kind) => {
                let Some(model_call) = self.model.take() else { return };
                let error = Error::new(*kind, "no").info().clone();
                self.input(InputKind::ModelFailed { model_call, error, partial: "I was about".into() });
            }
            Step::Lose => {
                let Some(call) = self.told_to_run.pop() else { return };
                self.input(InputKind::ToolStarted { call });
                self.input(InputKind::ToolLost { call });
            }
        }
    }

    fn proceed(&mut self, choice: usize) {
        if self.machine.state() != SessionState::Processing {
            self.runs += 1;
            self.input(InputKind::Submit {
                run: RunId(self.runs),
                message: format!("Input {}.", self.runs).into(),
            });
        } else if let Some(load) = self.load.take() {
            self.input(InputKind::ContextLoaded { load, context: Box::new(self.context.clone()) });
        } else if let Some(model_call) = self.model.take() {
            let response = Box::new(self.answer(choice));
            self.input(InputKind::ModelReplied { model_call, response });
        } else if !self.unprepared.is_empty() {
            let call = self.unprepared.remove(choice % self.unprepared.len());
            self.input(InputKind::CallPrepared {
                call,
                preparation: preparation(choice),
                judgement: pintle_tools::gate::Judgement::new(),
                changed: None,
                additions: pintle_agent::protocol::HookAdditions::default(),
            });
        } else if !self.told_to_run.is_empty() {
            let call = self.told_to_run.remove(choice % self.told_to_run.len());
            self.input(InputKind::ToolStarted { call });
            self.input(InputKind::ToolFinished { call, finished: Box::new(finished(choice)) });
        }
    }

    /// Returns a response of this model, or of another one that the session used before.
    fn answer(&self, choice: usize) -> Response {
        let (parts, finish, raw) = answer(choice / 2);
        let (provider, model) = match choice % 2 {
            0 => (self.context.provider.as_str(), self.context.model.as_str()),
            _ => ("elsewhere", "another-model"),
        };
        let mut message = Message::new(Role::Assistant, parts);
        if choice % 2 == 1 && !message.content.is_empty() {
            let mut thinking = ThinkingData::new("Hm.");
            thinking.signature = Some("signed elsewhere".into());
            message.content.insert(0, ContentPart::Thinking(thinking));
        }
        let mut reason = FinishReason::new(finish);
        reason.raw = raw.map(str::to_owned);
        Response::new(provider, model, message.with_origin(Origin::new(provider, model)))
            .with_finish_reason(reason)
    }
}

fn answer(choice: usize) -> (Vec<ContentPart>, Finish, Option<&'static str>) {
    const ARGUMENTS: [&str; 6] =
        [r#"{"file_path": "a.txt"}"#, "{}", "", r#"{"file_path": "a."#, "[1, 2]", r#""text""#];
    const NAMES: [&str; 4] = ["read_file", "shell", "no such tool!", "työkalu"];
    let call = |place: usize, id: &str| -> ContentPart {
        let arguments = ARGUMENTS[(choice / 12 + place) % ARGUMENTS.len()];
        ToolCall::from_raw(id, NAMES[(choice / 50 + place) % NAMES.len()], arguments).into()
    };
    let text = || ContentPart::text("Let me see.");
    let tools = Finish::ToolCalls;
    match choice % 12 {
        0 => (vec![text()], Finish::Stop, None),
        1 => (vec![ContentPart::text("Which one?")], Finish::Stop, None),
        2 => (vec![], Finish::Stop, None),
        3 => (vec![text(), call(0, "call_1")], tools, None),
        4 => (vec![call(0, "call_1"), call(1, "call_1"), call(2, "call_1")], tools, None),
        5 => (vec![call(0, "")], tools, None),
        6 => (vec![text(), call(0, "a/b c"), call(1, &"long".repeat(40))], tools, None),
        7 => (vec![call(0, "call_2")], Finish::Length, None),
        8 => (vec![text()], Finish::Other, Some("pause_turn")),
        9 => (vec![text(), call(0, "call_3")], Finish::ContentFilter, None),
        10 => (vec![call(0, "call_4")], Finish::Error, None),
        _ => (vec![call(0, "call_5"), text(), call(1, "call_6")], tools, None),
    }
}

fn preparation(choice: usize) -> Preparation {
    if choice.is_multiple_of(5) {
        return Preparation::Refused { error: ToolErrorKind::UnknownTool, message: "Unknown tool".into() };
    }
    let effect = [Effect::Read, Effect::Write, Effect::Execute][choice % 3];
    Preparation::Ready(CallPlan {
        declares_changes: false,
        effect,
        repeatable: false,
        writes: vec![PathBuf::from("/w/a")],
        repairs: Vec::new(),
    })
}

fn finished(choice: usize) -> Execution {
    // A tool may return nothing, and any id.
    let text = ["ok", "", "\u{1F600} line\nline"][choice % 3];
    let error = choice.is_multiple_of(7).then_some(ToolErrorKind::Failed);
    let result = ToolResult::new("whatever", text, error.is_some());
    let mut finished = Execution::new(result, Output::from(text.to_owned()));
    finished.error = error;
    finished.question = choice.is_multiple_of(11).then(|| "Which port?".to_owned());
    finished
}

async fn every_interleaving_sends_valid_requests(dialect: Dialect) {
    let runtime = tokio::runtime::Handle::current();
    let judged = Cell::new(0);
    tokio::task::block_in_place(|| {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let steps = proptest::collection::vec(step(), 1..60);
        let verdict = TestRunner::new(config).run(&steps, |steps| {
            let mut harness = MachineHarness::new(dialect);
            steps.iter().for_each(|step| harness.apply(step));
            judged.set(judged.get() + harness.requests.len());
            runtime.block_on(judge(dialect, harness.requests))
        });
        verdict.unwrap();
    });
    assert!(judged.get() > 50, "{} requests were judged", judged.get());
}

async fn judge(dialect: Dialect, requests: Vec<Request>) -> Result<(), TestCaseError> {
    // The responses are irrelevant, and requests are checked even after the script has ended.
    let script = Script::new("judge").with_turn(Turn::text("So be it."));
    let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
    let client = client(&server, dialect, KEY);
    let mut errors = Vec::new();
    let sent = requests.len();
    for request in requests {
        errors.extend(client.complete(request).await.err());
    }
    let recorded = server.requests();
    prop_assert_eq!(recorded.len(), sent, "not all were sent: {:?}", errors);
    for request in recorded {
        prop_assert!(request.violations.is_empty(), "{:?}\n{}", request.violations, request.body);
    }
    Ok(())
}
