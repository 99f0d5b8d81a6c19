//! Harness of a machine under test.

use std::collections::BTreeMap;

use pintle_tools::gate::{Judgement, JudgementStep, Verdict};

use super::*;

/// Machine with a clock that counts inputs, and everything that it emitted.
pub(super) struct Harness {
    pub(super) machine: Machine,
    pub(super) clock: i64,
    pub(super) runs: u64,
    pub(super) requests: Vec<Request>,
    pub(super) events: Vec<EventKind>,
    pub(super) outcomes: Vec<Outcome>,
    /// Runs of these outcomes.
    pub(super) finished: Vec<RunId>,
    /// Whether the machine is serialised and deserialised before each input.
    pub(super) is_stored: bool,
    /// Whether a text segment is open.
    pub(super) segment_is_open: bool,
    /// Open subagents.
    pub(super) children: Vec<String>,
    /// All inputs, and what followed from each.
    pub(super) log: Vec<(Input, InputConsequences)>,
    /// Newest request for more of the budget: its number, what there is, and what is needed.
    pub(super) asked: Option<(u64, Limits, Limits)>,
    /// Budgets of subagents.
    pub(super) granted: BTreeMap<String, Limits>,
    /// Amounts that they spent.
    pub(super) spent_by: BTreeMap<String, BudgetUsage>,
    /// Indices of the calls that were run.
    pub(super) ran: Vec<usize>,
    /// All other actions, as text.
    pub(super) wanted: Vec<String>,
}

impl Harness {
    pub(super) fn new() -> Self {
        Self::with(TurnLimits::default())
    }

    pub(super) fn with(limits: TurnLimits) -> Self {
        Self::of(Machine::new(limits, None))
    }

    /// A subagent with these limits, which can ask for more.
    pub(super) fn subagent(limits: TurnLimits) -> Self {
        Self::of(Machine::starting(Start { asks: Some(Limits::default()), ..Start::new(limits, None) }))
    }

    fn of(machine: Machine) -> Self {
        let mut harness = Self {
            machine,
            clock: 0,
            runs: 0,
            requests: Vec::new(),
            events: Vec::new(),
            outcomes: Vec::new(),
            finished: Vec::new(),
            is_stored: true,
            segment_is_open: false,
            children: Vec::new(),
            asked: None,
            log: Vec::new(),
            granted: BTreeMap::new(),
            spent_by: BTreeMap::new(),
            ran: Vec::new(),
            wanted: Vec::new(),
        };
        harness.tell(InputKind::Opened {
            provider: "p".into(),
            model: "m".into(),
            working_directory: "/w".into(),
        });
        harness
    }

    pub(super) fn tell(&mut self, kind: InputKind) {
        self.clock += 1;
        let input = Input::new(Timestamp::from_millis(self.clock), kind);
        // Inputs survive being recorded, and the machine survives being stored.
        let text = serde_json::to_string(&input).unwrap();
        let input: Input = serde_json::from_str(&text).unwrap();
        if self.is_stored {
            let stored = serde_json::to_string(&self.machine).unwrap();
            self.machine = serde_json::from_str(&stored).unwrap();
        }
        let actions = self.machine.step(input.clone());
        self.log.push((input, InputConsequences::from_actions(&actions)));
        for action in actions {
            self.note(action);
        }
    }

    fn note(&mut self, action: Action) {
        match action {
            Action::CallModel { request, .. } => self.requests.push(*request),
            Action::Emit(event) => self.events.push(*event),
            Action::Finish { run, outcome } => {
                self.finished.push(run);
                self.outcomes.push(*outcome);
            }
            Action::FinishInput { .. } => {}
            Action::LoadContext { .. } => self.wanted.push("load".into()),
            Action::CancelModel => self.wanted.push("cancel model".into()),
            Action::SetTimer { after, .. } => self.wanted.push(format!("timer {}", after.as_secs())),
            Action::PrepareCall { call, .. } => self.wanted.push(format!("prepare {}", call.index)),
            Action::AskApproval { call, .. } => self.wanted.push(format!("ask {}", call.index)),
            Action::ConfirmApproval { call, .. } => self.wanted.push(format!("confirm {}", call.index)),
            Action::WithdrawApproval { call } => self.wanted.push(format!("withdraw {}", call.index)),
            Action::StartTool { call } => self.wanted.push(format!("start {}", call.index)),
            Action::RunTool { call } => self.ran.push(call.index),
            Action::CancelTool { call } => self.wanted.push(format!("cancel {}", call.index)),
            Action::Reconcile { call, .. } => self.wanted.push(format!("reconcile {}", call.index)),
            Action::StopSubagents => self.wanted.push("stop subagents".into()),
            Action::AskBudget { ask, has, wants, unpriced } => {
                self.wanted.push(
                    unpriced.map_or_else(|| "ask budget".into(), |model| format!("ask price of {model}")),
                );
                self.asked = Some((ask, *has, *wants));
            }
            Action::GrantBudget { agent, slice, .. } => {
                self.wanted.push(format!("grant {agent}"));
                self.granted.insert(agent, *slice);
            }
            Action::CleanUp => self.wanted.push("clean up".into()),
        }
    }

    pub(super) fn submit(&mut self, text: &str) {
        self.runs += 1;
        self.tell(InputKind::Submit { run: RunId(self.runs), message: text.into() });
        if self.wanted.last().is_some_and(|wanted| wanted == "load") {
            self.load();
        }
    }

    pub(super) fn load(&mut self) {
        self.load_this(TurnContext::new("p", "m", "system", 1_000));
    }

    pub(super) fn load_this(&mut self, context: TurnContext) {
        let load = LoadId(self.machine.loads);
        self.tell(InputKind::ContextLoaded { load, context: Box::new(context) });
    }

    pub(super) fn model_call(&self) -> ModelCallId {
        ModelCallId(self.machine.model_calls)
    }

    pub(super) fn key(&self, index: usize) -> CallKey {
        CallKey { model_call: self.model_call(), index }
    }

    pub(super) fn reply(&mut self, message: Message) {
        let finish = if message.tool_calls().next().is_some() { Finish::ToolCalls } else { Finish::Stop };
        self.reply_with(message, finish, None);
    }

    pub(super) fn reply_with(&mut self, message: Message, finish: Finish, raw: Option<&str>) {
        let mut reason = FinishReason::new(finish);
        reason.raw = raw.map(str::to_owned);
        let response =
            Response::new("p", "m", message).with_finish_reason(reason).with_usage(Usage::new(10, 1));
        self.tell(InputKind::ModelReplied { model_call: self.model_call(), response: Box::new(response) });
    }

    /// Replies with the usage of a prompt of this many tokens.
    pub(super) fn reply_counted(&mut self, text: &str, input_tokens: u64) {
        let usage = Usage::new(input_tokens, 1);
        let response = Response::new("p", "m", Message::assistant(text)).with_usage(usage);
        self.tell(InputKind::ModelReplied { model_call: self.model_call(), response: Box::new(response) });
    }

    pub(super) fn say(&mut self, text: &str) {
        self.reply(Message::assistant(text));
    }

    /// Replies with calls of these tools. Their ids are `a`, `b`, … followed by the number of the turn.
    pub(super) fn call(&mut self, names: &[&str]) {
        let turn = self.machine.turns;
        let ids: Vec<String> =
            (0..names.len()).map(|i| format!("{}{turn}", (b'a' + i as u8) as char)).collect();
        self.reply(calls(&ids.iter().map(String::as_str).zip(names.iter().copied()).collect::<Vec<_>>()));
    }

    /// Ends the preparation of a call that one gate judged.
    pub(super) fn judged(&mut self, call: CallKey, preparation: Preparation) {
        let verdict = match &preparation {
            Preparation::Ready(_) => Verdict::ALLOW,
            Preparation::Ask { reason, .. } => Verdict::ask(reason),
            Preparation::Refused { message, .. } => Verdict::deny(message),
        };
        let mut judgement = Judgement::new();
        judgement.push(JudgementStep::new("test", verdict));
        self.tell(InputKind::CallPrepared {
            call,
            preparation,
            judgement,
            changed: None,
            additions: crate::protocol::HookAdditions::default(),
        });
    }

    pub(super) fn prepared(&mut self, index: usize, effect: Effect, writes: &[&str]) {
        let plan = CallPlan {
            effect,
            repeatable: effect == Effect::Read,
            declares_changes: effect == Effect::Write,
            writes: writes.iter().map(PathBuf::from).collect(),
            repairs: Vec::new(),
        };
        self.judged(self.key(index), Preparation::Ready(plan));
    }

    pub(super) fn asks(&mut self, index: usize) {
        let plan = CallPlan {
            effect: Effect::Execute,
            repeatable: false,
            declares_changes: false,
            writes: Vec::new(),
            repairs: Vec::new(),
        };
        let preparation = Preparation::Ask {
            plan,
            arguments: serde_json::json!({}),
            reason: "it runs a command".into(),
            fingerprint: pintle_llm::Fingerprint::from_bytes(b"a call"),
            sandbox: None,
        };
        self.judged(self.key(index), preparation);
    }

    /// A running call declares that it changes `/w/a`.
    pub(super) fn declare(&mut self, index: usize) {
        let env = MemoryEnvironment::new("/w");
        let change = DeclaredChange { path: Path::new("a"), before: Some(b"old"), after: Some(b"new") };
        let files = vec![change.intent(&env).now_or_never().unwrap()];
        self.tell(InputKind::ChangesDeclared { call: self.key(index), files });
    }

    pub(super) fn reconciled(&mut self, index: usize, result: Reconciliation) {
        self.tell(InputKind::Reconciled { call: self.key(index), result });
    }

    pub(super) fn finish(&mut self, index: usize, text: &str) {
        let call = self.key(index);
        self.tell(InputKind::ToolStarted { call });
        self.finish_started(index, text, None);
    }

    pub(super) fn finish_started(&mut self, index: usize, text: &str, error: Option<ToolErrorKind>) {
        let result = ToolResult::new("whatever", text, error.is_some());
        let mut finished = Execution::new(result, Output::from(text));
        finished.error = error;
        self.finished(index, finished);
    }

    /// Finishes a call with a question to the user.
    pub(super) fn ask(&mut self, index: usize, question: &str) {
        self.tell(InputKind::ToolStarted { call: self.key(index) });
        let result = ToolResult::new("whatever", "asked", false);
        let mut finished = Execution::new(result, Output::from("asked"));
        finished.question = Some(question.into());
        self.finished(index, finished);
    }

    /// Finishes a call with an image that is not one. Its bytes depend on the text.
    pub(super) fn finish_with_image(&mut self, index: usize, text: &str) {
        self.tell(InputKind::ToolStarted { call: self.key(index) });
        let image = ImageData::data(text.as_bytes().to_vec(), "image/png");
        let result = ToolResult::new("whatever", text, false).with_image(image);
        self.finished(index, Execution::new(result, Output::from(text)));
    }

    fn finished(&mut self, index: usize, finished: Execution) {
        self.tell(InputKind::ToolFinished { call: self.key(index), finished: Box::new(finished) });
    }

    /// Handles a round with one reading call.
    pub(super) fn round(&mut self, name: &str) {
        self.call(&[name]);
        self.prepared(0, Effect::Read, &[]);
        self.finish(0, "ok");
    }

    pub(super) fn wanted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.wanted)
    }

    pub(super) fn kinds(&self) -> Vec<String> {
        self.events.iter().map(kind_of).collect()
    }

    pub(super) fn last_outcome(&self) -> (OutcomeStatus, SessionState) {
        (self.outcomes.last().expect("the run is over").status, self.machine.state())
    }

    /// Returns the messages of the newest request after the system prompt, each as its role and text.
    pub(super) fn sent(&self) -> Vec<String> {
        let request = self.requests.last().expect("a request was sent");
        request.messages.iter().skip(1).map(|item| shown(item)).collect()
    }

    pub(super) fn failed(&mut self, kind: ErrorKind, partial: &str) {
        let error = Error::new(kind, "x").info().clone();
        self.tell(InputKind::ModelFailed { model_call: self.model_call(), error, partial: partial.into() });
    }

    /// Fails the model call with this error.
    pub(super) fn failed_with(&mut self, error: &Error) {
        let (model_call, error) = (self.model_call(), error.info().clone());
        self.tell(InputKind::ModelFailed { model_call, error, partial: String::new() });
    }
}

pub(super) fn calls(calls: &[(&str, &str)]) -> Message {
    let parts = calls.iter().map(|(id, name)| ToolCall::from_raw(*id, *name, "{}").into()).collect();
    Message::new(Role::Assistant, parts)
}

pub(super) fn kind_of(event: &EventKind) -> String {
    let value = serde_json::to_value(event).unwrap();
    value["kind"].as_str().unwrap().to_owned()
}

pub(super) fn shown(message: &Message) -> String {
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
