//! Events at the wrong time: late, too often, or with a panic.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use pintle_llm::{EventStream, Request, Response, StreamEvent};
use pintle_tools::pipeline::Execution;
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;

/// Time-out that only a bug exceeds.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until the session is idle.
async fn until_idle(events: &mut Events) {
    while kind(&events.next().await.expect("the session continues")) != "PROCESSING_END" {}
}

/// Fills the command queue.
fn fill_queue(session: &Session) {
    let handle = session.handle();
    while handle.set_reasoning_effort(None).is_ok() {}
}

#[tokio::test]
async fn dropping_a_rejected_run_keeps_the_current_one() {
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))])).answer("done");
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.gate(AskForCommands));
    let mut run = harness.session.submit("go");
    let call_id = asked(&mut run).await;
    drop(harness.session.submit("me too"));
    let refused = harness.session.submit("and me").await;
    assert!(matches!(refused, Err(crate::RunError::Busy { .. })), "{refused:?}");
    harness.session.handle().decide(&call_id, Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
}

#[tokio::test]
async fn dropping_an_unpolled_session_ends_its_streams() {
    let harness = harness(anthropic(), env());
    let mut events = harness.session.events();
    let mut run = harness.session.submit("go");
    drop(harness.session);
    timeout(TIMEOUT, async {
        while run.next().await.is_some() {}
        while events.next().await.is_some() {}
    })
    .await
    .expect("both streams end");
}

#[tokio::test]
async fn session_with_a_full_queue_can_be_closed() {
    let harness = harness(anthropic(), env());
    fill_queue(&harness.session);
    let mut events = harness.session.events();
    timeout(TIMEOUT, harness.session.close()).await.expect("it closes");
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(kind(&event));
    }
    assert_eq!(last.as_deref(), Some("SESSION_END"));
}

#[tokio::test]
async fn input_beyond_the_queue_is_rejected() {
    let harness = harness(anthropic().answer("done"), env());
    fill_queue(&harness.session);
    let mut refused = harness.session.submit("go");
    assert!(refused.next().await.is_none(), "it has no events");
    assert!(matches!(refused.await, Err(crate::RunError::Rejected(SessionError::Full(_)))));
    tokio::task::yield_now().await;
    while harness.session.handle().set_reasoning_effort(None).is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.session.submit("go").await.unwrap().text, "done");
}

#[tokio::test]
async fn dropping_a_run_interrupts_it_despite_a_full_queue() {
    let harness = harness(anthropic().message(hanging()), env_with_sleep());
    let mut events = harness.session.events();
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    fill_queue(&harness.session);
    drop(run);
    timeout(TIMEOUT, until_idle(&mut events)).await.expect("the turn is interrupted");
    assert_eq!(harness.env.running(), 0);
}

#[tokio::test]
async fn context_of_an_interrupted_turn_is_not_reused() {
    let harness = harness(anthropic().answer("done"), env());
    let handle = harness.session.handle();
    let first = harness.session.submit("a");
    handle.stop_turn().unwrap();
    handle.set_model("claude-sonnet-4-5").unwrap();
    let second = harness.session.submit("b");
    assert_eq!(first.await.unwrap().status, OutcomeStatus::Interrupted);
    assert_eq!(second.await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(harness.adapter.requests()[0].model, "claude-sonnet-4-5");
}

#[tokio::test]
async fn profile_of_an_unknown_provider_is_rejected() {
    let harness = harness(anthropic().answer("done"), env());
    let refused = harness.session.handle().set_profile(ProviderProfile::openai("gpt-5.2"));
    assert!(matches!(refused, Err(SessionError::Profile(_))));
    assert_eq!(harness.session.submit("go").await.unwrap().text, "done");
}

/// Streams one response.
type StreamResponse = Box<dyn Fn() -> EventStream + Send + Sync>;

/// Adapter that streams a script, one entry per request, and repeats the last one.
struct Streaming(Vec<StreamResponse>, std::sync::atomic::AtomicUsize);

impl std::fmt::Debug for Streaming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Streaming")
    }
}

impl Streaming {
    fn new(responses: Vec<StreamResponse>) -> Self {
        Self(responses, std::sync::atomic::AtomicUsize::new(0))
    }
}

#[async_trait]
impl ProviderAdapter for Streaming {
    fn name(&self) -> &str {
        "anthropic"
    }

    async fn complete(&self, _request: &Request) -> Result<Response, Error> {
        Err(Error::new(ErrorKind::InvalidRequest, "it only streams"))
    }

    async fn stream(&self, _request: &Request) -> Result<EventStream, Error> {
        let number = self.1.fetch_add(1, Ordering::Relaxed).min(self.0.len() - 1);
        Ok((self.0[number])())
    }
}

fn session(adapter: impl ProviderAdapter + 'static) -> Session {
    let client = Client::builder().provider(adapter).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    Session::builder(client, profile, Arc::new(env())).build().unwrap()
}

fn text_start() -> StreamEvent {
    StreamEvent::TextStart { text_id: "0".into() }
}

fn text_delta(text: &str) -> StreamEvent {
    StreamEvent::TextDelta { text_id: "0".into(), delta: text.into() }
}

/// Starts and ends of texts pair, and the deltas of each add up to its end.
fn texts_add_up(events: &[SessionEvent]) -> Vec<(String, bool)> {
    let (mut open, mut texts) = (None, Vec::new());
    for event in events {
        match &event.kind {
            EventKind::AssistantTextStart {} => {
                assert!(open.is_none(), "two texts at once");
                open = Some((event.seq, String::new()));
            }
            EventKind::AssistantTextDelta { delta } => {
                let (start, text) = open.as_mut().expect("a text is open");
                assert_eq!((event.seq, event.offset), (*start, Some(text.len() as u64)));
                text.push_str(delta);
            }
            EventKind::AssistantTextEnd { text, interrupted } => {
                let (_, streamed) = open.take().expect("a text is open");
                assert_eq!(streamed, *text);
                texts.push((streamed, *interrupted));
            }
            _ => {}
        }
    }
    assert!(open.is_none(), "a text has no end");
    texts
}

/// A model that never stops writing, faster than anyone reads, so that the report queue is full when it is stopped.
#[tokio::test]
async fn flood_of_text_can_be_stopped_at_any_time() {
    for stop_after in [1, 2, 3, 200, 300, 1000] {
        let flood: StreamResponse = Box::new(move || {
            let texts = stream::iter(0..).flat_map(|number: u64| {
                let text_end = StreamEvent::TextEnd { text_id: "0".into(), signature: None };
                stream::iter([Ok(text_start()), Ok(text_delta(&number.to_string())), Ok(text_end)])
            });
            Box::pin(texts)
        });
        let session = session(Streaming::new(vec![flood]));
        let handle = session.handle();
        let mut run = session.submit("go");
        let mut events = Vec::new();
        for _ in 0..stop_after {
            events.push(run.next().await.unwrap());
        }
        handle.stop_turn().unwrap();
        while let Some(event) = timeout(TIMEOUT, run.next()).await.expect("the flood ends") {
            events.push(event);
        }
        texts_add_up(&events);
        assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
        timeout(TIMEOUT, session.close()).await.expect("it closes");
    }
}

#[tokio::test]
async fn panic_of_an_adapter_only_ends_the_run() {
    let panics: StreamResponse = Box::new(|| {
        let events = stream::iter([Ok(text_start()), Ok(text_delta("half"))]);
        let panics = stream::once(async { panic!("scripted") });
        Box::pin(events.chain(panics))
    });
    let whole: StreamResponse = Box::new(|| {
        let response = Response::new("anthropic", "m", Message::assistant("whole"));
        let finish = StreamEvent::Finish {
            finish_reason: response.finish_reason.clone(),
            usage: response.usage.clone(),
            response: Box::new(response),
        };
        Box::pin(stream::iter([Ok(finish)]))
    });
    let session = session(Streaming::new(vec![panics, whole]));
    let mut run = session.submit("go");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    assert_eq!(texts_add_up(&events), [("half".to_owned(), true)]);
    let outcome = run.await.or_else(crate::RunError::into_outcome).unwrap();
    assert_eq!((outcome.status, session.state()), (OutcomeStatus::Failed, SessionState::Idle));
    assert_eq!(session.submit("again").await.unwrap().text, "whole");
}

/// Some streams of Gemini do so around a call.
#[tokio::test]
async fn empty_text_has_no_events() {
    let empty: StreamResponse = Box::new(|| {
        let response = Response::new("anthropic", "m", Message::assistant("whole"));
        let finish = StreamEvent::Finish {
            finish_reason: response.finish_reason.clone(),
            usage: response.usage.clone(),
            response: Box::new(response),
        };
        let reasoning = |event: fn(String) -> StreamEvent| Ok(event("1".to_owned()));
        let text_end = StreamEvent::TextEnd { text_id: "0".into(), signature: None };
        let events = [
            reasoning(|reasoning_id| StreamEvent::ReasoningStart { reasoning_id }),
            Ok(text_start()),
            Ok(text_delta("")),
            Ok(text_end.clone()),
            Ok(text_start()),
            Ok(text_delta("")),
            Ok(text_delta("whole")),
            Ok(text_end),
            Ok(text_start()),
            Ok(finish),
        ];
        Box::pin(stream::iter(events))
    });
    let session = session(Streaming::new(vec![empty]));
    let events = all(session.submit("go")).await;
    assert_eq!(texts_add_up(&events), [("whole".to_owned(), false)]);
    assert!(!events.iter().any(|event| kind(event) == "REASONING_START"), "it has not reasoned aloud");
}

#[tokio::test]
async fn more_calls_than_reports_can_be_prepared_and_stopped() {
    let calls = vec![("read_file", json!({"file_path": "/project/none"})); 600];
    let harness = harness(anthropic().message(calling(&calls)).answer("done"), env());
    let outcome = timeout(TIMEOUT, harness.session.submit("go")).await.expect("it ends").unwrap();
    assert_eq!((outcome.status, outcome.tool_calls), (OutcomeStatus::Completed, 600));

    let harness = super::harness(anthropic().message(calling(&calls)), env());
    let mut run = harness.session.submit("go");
    until(&mut run, "MODEL_RESPONSE").await;
    harness.session.handle().close().unwrap();
    let outcome =
        timeout(TIMEOUT, run).await.expect("it ends").or_else(crate::RunError::into_outcome).unwrap();
    assert_eq!((outcome.status, harness.session.state()), (OutcomeStatus::Aborted, SessionState::Closed));
}

/// Tool that writes output, reports that it runs, and never ends.
#[derive(Clone)]
struct Endless {
    runs: Arc<Notify>,
    stops_in_order: bool,
}

impl Tool for Endless {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        "endless"
    }

    fn description(&self) -> &str {
        "Never ends."
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    async fn call(&self, _input: Map<String, Value>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let chunk = pintle_env::OutputChunk::new(pintle_env::OutputStream::Stdout, "progress");
        cx.on_output.as_ref().expect("somebody watches")(chunk);
        self.runs.notify_one();
        if !self.stops_in_order {
            std::future::pending::<()>().await;
        }
        cx.cancel.cancelled().await;
        // Cleanup within the grace period is completed.
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(ToolOutput::new("brought to its end"))
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_call_has_a_grace_period() {
    let cases = [(true, "brought to its end"), (false, "Interrupted: the turn was stopped")];
    for (stops_in_order, expected) in cases {
        let runs = Arc::new(Notify::new());
        let tool = Endless { runs: Arc::clone(&runs), stops_in_order };
        let adapter = anthropic().message(calling(&[("endless", json!({}))]));
        let session = session_with(adapter, tool, TurnLimits::default());
        let handle = session.handle();
        let mut run = session.submit("go");
        until(&mut run, "TOOL_CALL_START").await;
        runs.notified().await;
        handle.stop_turn().unwrap();
        let events = all(run).await;
        let deltas: Vec<&str> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolCallOutputDelta { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(deltas, ["progress"], "only the streamed output is visible");
        let history = session.history();
        let result = history[2].item.results().next().unwrap().text();
        assert!(result.starts_with(expected), "{result}");
    }
}

/// A session with the tools `shell`, which needs approval, and the endless one.
fn session_with(adapter: FakeAdapter, tool: Endless, limits: TurnLimits) -> Session {
    let client = Client::builder().provider(adapter).build().unwrap();
    let profile = ProviderProfile::new("anthropic", "m");
    let profile = profile.with_tool(tool).unwrap().with_tool(pintle_tools::builtin::Shell::new()).unwrap();
    Session::builder(client, profile, Arc::new(env()))
        .gate(AskForCommands)
        .with_config(SessionConfig::default().with_limits(limits))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn approval_after_its_time_out_is_rejected() {
    let limits = TurnLimits { approval_timeout: Some(Duration::from_secs(60)), ..TurnLimits::default() };
    let adapter =
        anthropic().message(calling(&[("shell", json!({"command": "true"})), ("endless", json!({}))]));
    let tool = Endless { runs: Arc::new(Notify::new()), stops_in_order: true };
    let session = session_with(adapter, tool, limits);
    let mut run = session.submit("go");
    let call_id = asked(&mut run).await;
    until(&mut run, "APPROVAL_DECIDED").await;
    until(&mut run, "TOOL_CALL_OUTPUT_DELTA").await;
    let late = session.handle().decide(&call_id, Decision::Approve);
    assert!(matches!(late, Err(SessionError::NoSuchApproval(_))), "{late:?}");
}

/// Adapter that responds when it is notified.
#[derive(Debug)]
struct Held {
    inner: FakeAdapter,
    go: Arc<Notify>,
}

#[async_trait]
impl ProviderAdapter for Held {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.inner.complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        self.go.notified().await;
        self.inner.stream(request).await
    }
}

#[tokio::test]
async fn calls_use_the_tools_of_their_request() {
    let go = Arc::new(Notify::new());
    let adapter = anthropic()
        .message(calling(&[("write_file", json!({"file_path": "/project/a", "content": "x"}))]))
        .answer("done");
    let session = session(Held { inner: adapter, go: Arc::clone(&go) });
    let mut run = session.submit("go");
    until(&mut run, "REQUEST_PREPARED").await;
    let without = ProviderProfile::anthropic("claude-opus-4-6").without_tool("write_file");
    session.handle().set_profile(without).unwrap();
    tokio::task::yield_now().await;
    go.notify_one();
    until(&mut run, "TOOL_CALL_END").await;
    go.notify_one();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    let result = session.history()[2].item.results().next().unwrap().clone();
    assert!(!result.is_error, "{}", result.text());
}

/// Gates and tools of an embedding application may panic.
#[derive(Debug)]
struct Panics;

#[async_trait]
impl Gate for Panics {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        panic!("scripted")
    }
}

#[tokio::test]
async fn panic_of_a_gate_refuses_the_call() {
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))])).answer("done");
    let harness = harness_with(adapter, env(), |builder| builder.gate(Panics));
    assert_eq!(harness.session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    let result = harness.session.history()[2].item.results().next().unwrap().text();
    assert!(result.contains("could not be prepared"), "{result}");
}

/// Gate that records the calls of its methods, and denies or panics on request.
#[derive(Clone, Debug, Default)]
struct StepRecordingGate {
    denies: bool,
    panics: bool,
    steps: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl Gate for StepRecordingGate {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        self.steps.lock().unwrap().push("check");
        if self.denies { Verdict::deny("scripted") } else { Verdict::ALLOW }
    }

    async fn before_run(&self, _call: &PreparedCall) {
        self.steps.lock().unwrap().push("before_run");
        assert!(!self.panics, "scripted");
    }

    async fn ran(&self, _call: &PreparedCall, _execution: &Execution) {
        self.steps.lock().unwrap().push("ran");
    }
}

#[tokio::test]
async fn gates_prepare_once_for_each_call_that_runs() {
    for (denies, panics, expected) in [
        (false, false, &["check", "check", "before_run", "ran"][..]),
        (true, false, &["check"]),
        (false, true, &["check", "check", "before_run"]),
    ] {
        let gate = StepRecordingGate { denies, panics, ..StepRecordingGate::default() };
        let steps = Arc::clone(&gate.steps);
        let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))])).answer("done");
        let harness = harness_with(adapter, env(), |builder| builder.gate(gate));
        assert_eq!(harness.session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
        assert_eq!(*steps.lock().unwrap(), expected);
        let result = harness.session.history()[2].item.results().next().unwrap().text();
        assert_eq!(result.contains("was denied"), denies || panics, "{result}");
    }
}

/// Gate that records the tasks that poll it, before and after its wait, if it waits.
#[derive(Clone, Debug, Default)]
struct TaskRecordingGate {
    waits: bool,
    polled_by: Arc<Mutex<Vec<tokio::task::Id>>>,
}

#[async_trait]
impl Gate for TaskRecordingGate {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        self.polled_by.lock().unwrap().push(tokio::task::id());
        if self.waits {
            tokio::task::yield_now().await;
            self.polled_by.lock().unwrap().push(tokio::task::id());
        }
        Verdict::ALLOW
    }
}

#[tokio::test]
async fn slow_preparation_moves_to_its_own_task() {
    for waits in [false, true] {
        let gate = TaskRecordingGate { waits, ..TaskRecordingGate::default() };
        let polled_by = Arc::clone(&gate.polled_by);
        let command = ("shell", json!({"command": "true"}));
        let adapter = anthropic().message(calling(&[command.clone(), command])).answer("done");
        let harness = harness_with(adapter, env(), |builder| builder.gate(gate));
        assert_eq!(harness.session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
        let polled_by = polled_by.lock().unwrap().clone();
        // Each call is judged twice, the second time in the task that runs it.
        let [one, other, rest @ ..] = &polled_by[..] else { panic!("{polled_by:?}") };
        assert_eq!(one, other, "the session's own task polls both preparations first");
        assert!(!rest.contains(one), "{polled_by:?}");
        assert_eq!(rest.len(), if waits { 6 } else { 2 });
    }
}

/// A custom adapter may omit the end of a text before the end of the response.
#[tokio::test]
async fn response_ends_open_text() {
    let short: StreamResponse = Box::new(|| {
        let response = Response::new("anthropic", "m", Message::assistant("whole"));
        let finish = StreamEvent::Finish {
            finish_reason: response.finish_reason.clone(),
            usage: response.usage.clone(),
            response: Box::new(response),
        };
        Box::pin(stream::iter([Ok(text_start()), Ok(text_delta("whole")), Ok(finish)]))
    });
    let session = session(Streaming::new(vec![short]));
    let events = all(session.submit("go")).await;
    assert_eq!(texts_add_up(&events), [("whole".to_owned(), false)]);
}

/// Responses are handled however fast commands arrive.
#[tokio::test]
async fn flood_of_commands_does_not_delay_responses() {
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))])).answer("done");
    let harness = harness(adapter, env());
    let run = harness.session.submit("go");
    let handle = harness.session.handle();
    let mut flood = JoinSet::new();
    flood.spawn(async move {
        loop {
            while handle.set_reasoning_effort(None).is_ok() {}
            tokio::task::yield_now().await;
        }
    });
    let outcome = timeout(TIMEOUT, run).await.expect("it is heard").unwrap();
    assert_eq!(outcome.text, "done");
    flood.shutdown().await;
    timeout(TIMEOUT, harness.session.close()).await.expect("it closes");
}
