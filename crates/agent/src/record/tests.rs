//! Records of real sessions, with a fake model and tools that count what they do.

mod checkpoints;
mod cuts;
mod forks;
mod golden;
mod journals;
mod posted;
mod reconciling;
mod serialised;
mod text;

use std::sync::Mutex;

use async_trait::async_trait;
use pintle_env::MemoryEnvironment;
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{
    Client, Error, EventStream, Message, ProviderAdapter, Request, Response, Role, ToolCall, ToolList,
};
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolRegistry};
use serde_json::{Map, Value, json};

use super::*;
use crate::approval::{ApprovalRequest, Approver};
use crate::profile::ProviderProfile;
use crate::protocol::{Decision, OutcomeStatus, SessionEvent, SessionState, Turn, TurnKind};
use crate::session::{Session, SessionBuilder};

/// Adapter that selects its response by the number of responses in the request, so that it does not matter who asks.
#[derive(Debug)]
struct Scripted {
    answers: Vec<Message>,
    requests: Mutex<Vec<Request>>,
}

impl Scripted {
    fn next(&self, request: &Request) -> FakeAdapter {
        self.requests.lock().unwrap().push(request.clone());
        let answered = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        FakeAdapter::new("anthropic").message(self.answers[answered].clone())
    }
}

#[async_trait]
impl ProviderAdapter for Scripted {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.next(request).complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        self.next(request).stream(request).await
    }
}

/// Ids of the calls that had their effect.
type Effects = Arc<Mutex<Vec<String>>>;

/// Tool with this name and effect that records each call. `hang` has its effect and never returns.
struct Counting {
    name: &'static str,
    effect: Effect,
    effects: Effects,
}

impl Tool for Counting {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "Counts."
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    async fn call(&self, _input: Map<String, Value>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.effects.lock().unwrap().push(cx.call_id.clone());
        match self.name {
            "hang" => std::future::pending().await,
            "fail" => Err(ToolError::failed("it does not work")),
            name => Ok(ToolOutput::new(format!("{name} did {}", cx.call_id))),
        }
    }
}

/// Gate that asks about `run`.
#[derive(Debug)]
struct AskForRun;

#[async_trait]
impl Gate for AskForRun {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        if call.name() == "run" { Verdict::ask("it runs") } else { Verdict::ALLOW }
    }
}

#[derive(Debug)]
struct Agreeing;

#[async_trait]
impl Approver for Agreeing {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        Decision::Approve
    }
}

/// State that the sessions of one test share: the model's responses, and the effects of tools.
struct Harness {
    adapter: Arc<Scripted>,
    effects: Effects,
}

impl Harness {
    fn new(answers: Vec<Message>) -> Self {
        let adapter = Arc::new(Scripted { answers, requests: Mutex::default() });
        Self { adapter, effects: Effects::default() }
    }

    fn profile(&self) -> ProviderProfile {
        let mut registry = ToolRegistry::new();
        let cases = [
            ("note", Effect::Write),
            ("look", Effect::Read),
            ("run", Effect::Execute),
            ("fail", Effect::Write),
            ("hang", Effect::Write),
        ];
        for (name, effect) in cases {
            registry.register(Counting { name, effect, effects: Arc::clone(&self.effects) }).unwrap();
        }
        let mut profile = ProviderProfile::anthropic("claude-opus-4-6");
        profile.tool_registry = registry;
        profile
    }

    /// Returns a builder with a gate that asks about `run` and an approver that agrees.
    fn builder(&self) -> SessionBuilder {
        self.undecided().approver(Agreeing)
    }

    fn undecided(&self) -> SessionBuilder {
        let client = Client::builder().shared_provider(Arc::clone(&self.adapter) as Arc<dyn ProviderAdapter>);
        let env = Arc::new(MemoryEnvironment::new("/project"));
        Session::builder(client.build().unwrap(), self.profile(), env).gate(AskForRun).record(true)
    }

    fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    fn requests(&self) -> Vec<Request> {
        self.adapter.requests.lock().unwrap().clone()
    }
}

/// Returns a response that calls these tools; ids are unique over the whole script.
fn calling(turn: usize, tools: &[&str]) -> Message {
    let call = |(index, tool): (usize, &&str)| {
        ToolCall::from_raw(format!("t{turn}c{index}_{tool}"), *tool, "{}").into()
    };
    Message::new(Role::Assistant, tools.iter().enumerate().map(call).collect())
}

/// Checks that every call of a history has its result, in order, in the next entry.
fn well_formed(history: &[Turn]) {
    let mut turns = history.iter();
    while let Some(turn) = turns.next() {
        assert_ne!(turn.kind, TurnKind::ToolResults, "results without calls");
        let calls: Vec<&str> = turn.item.tool_calls().map(|call| call.id.as_str()).collect();
        if !calls.is_empty() {
            let results = turns.next().expect("results follow");
            let results: Vec<&str> =
                results.item.results().map(|result| result.tool_call_id.as_str()).collect();
            assert_eq!(results, calls);
        }
    }
}

fn script() -> Vec<Message> {
    vec![
        calling(0, &["look", "note"]),
        calling(1, &["run", "look", "run"]),
        calling(2, &["fail", "nothing"]),
        Message::assistant("first"),
        calling(4, &["note"]),
        Message::assistant("second"),
    ]
}

/// Returns all events of a session so far, without deltas.
async fn lifecycle(session: Session) -> Vec<SessionEvent> {
    let mut events = session.events();
    session.close().await;
    let mut found = Vec::new();
    while let Some(event) = events.next().await {
        if event.offset.is_none() {
            found.push(event);
        }
    }
    found
}

#[tokio::test]
async fn record_replays_events_requests_outcomes_and_history() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    let handle = session.handle();
    handle.steer("also this").await.unwrap();
    let first = session.submit("one").await.unwrap();
    handle.follow_up("and then?").await.unwrap();
    let refused = session.submit("").await.or_else(crate::RunError::into_outcome).unwrap();
    let second = session.submit("two").await;
    // The script has no response to the follow-up: the fake model panics, which is an ordinary failure.
    let second = second.or_else(crate::RunError::into_outcome).unwrap();
    assert_eq!((first.status, refused.status), (OutcomeStatus::Completed, OutcomeStatus::Failed));
    assert_eq!(second.status, OutcomeStatus::Failed);
    let history = session.history();
    let events = lifecycle(session).await;

    let replay = Session::replay(&handle.record().unwrap()).unwrap();
    assert_eq!(replay.events, events);
    let sent: Vec<Request> = harness.requests();
    let sent: Vec<_> = sent.iter().map(|request| request.prefix_chain()).collect();
    let again: Vec<_> = replay.requests.iter().map(|request| request.prefix_chain()).collect();
    assert_eq!(again, sent[..again.len()], "retries are the same request once more");
    assert_eq!(
        replay.outcomes.iter().map(|(_, outcome)| outcome).collect::<Vec<_>>(),
        [&first, &refused, &second]
    );
    assert_eq!((replay.history, replay.state), (history, SessionState::Closed));
}

#[tokio::test]
async fn record_exists_at_any_time_if_requested() {
    let harness = Harness::new(vec![calling(0, &["hang"])]);
    let session = harness.builder().build().unwrap();
    let mut run = session.submit("go");
    while !matches!(run.next().await.unwrap().kind, EventKind::ToolCallStart { .. }) {}
    let middle = session.record().unwrap();
    let replay = middle.replay().unwrap();
    assert_eq!((replay.state, replay.requests.len()), (SessionState::Processing, 1));
    let handle = session.handle();
    session.close().await;
    let whole = handle.record().unwrap();
    assert_eq!(whole.before(middle.entries.len()), middle, "recorded entries stay");
    assert_eq!(whole.replay().unwrap().state, SessionState::Closed);

    let silent = Harness::new(script()).builder().record(false).build().unwrap();
    assert_eq!(
        silent.record().unwrap_err().to_string(),
        "the session has no record: it was built without one"
    );
}

#[tokio::test]
async fn divergence_names_input_and_both_requests() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    session.submit("one").await.unwrap();
    let record = session.record().unwrap();
    let first = record.entries.iter().position(|entry| entry.request.is_some()).unwrap();
    let expected = record.entries[first].request;

    let prompt = record.replay_with(|context| context.system_prompt.push_str(" Be brief.")).unwrap_err();
    let fewer = |tools: &ToolList| tools.iter().skip(1).cloned().collect();
    let tools = record.replay_with(|context| context.tools = fewer(&context.tools)).unwrap_err();
    for error in [&prompt, &tools] {
        let ReplayError::Diverged(at) = error else { panic!("{error}") };
        assert_eq!((at.input, at.kind.as_str(), at.recorded), (first, "context_loaded", expected));
        assert!(at.replayed.is_some() && at.replayed != at.recorded);
    }
    assert_ne!(prompt, tools);
    assert_eq!(record.replay_with(|_| {}).unwrap(), record.replay().unwrap());

    // A changed, removed or moved input is detected as soon as a request depends on it.
    let mut forged = record.clone();
    let said = forged
        .entries
        .iter()
        .position(|entry| matches!(entry.input.kind, InputKind::ToolFinished { .. }))
        .unwrap();
    forged.entries.remove(said);
    let ReplayError::Diverged(at) = forged.replay().unwrap_err() else { panic!("it has another version") };
    assert!(at.input >= said && at.replayed.is_none());
}
