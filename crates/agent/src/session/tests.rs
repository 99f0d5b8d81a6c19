//! Sessions with a fake model and an environment in memory.
#![expect(clippy::wildcard_enum_match_arm, reason = "tests look at few kinds of events")]

mod arguments;
mod background;
mod budget_source;
mod configuration;
mod disorder;
mod hooks;
mod in_flight;
mod partial;
mod polls;
mod races;
mod spans;
mod subscribers;
mod suspending;
mod typed;

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_env::{CommandScript, MemoryEnvironment};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Error, ErrorKind, Message, ProviderAdapter, RetryPolicy, Role, ToolCall};
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};
use serde_json::json;

use super::*;
use crate::approval::Approver;
use crate::config::SessionConfig;
use crate::protocol::{
    CompactionReport, Decision, EventKind, OutcomeStatus, SessionEvent, TurnKind, TurnLimits,
};

struct Harness {
    session: Session,
    adapter: Arc<FakeAdapter>,
    env: Arc<MemoryEnvironment>,
}

fn harness(adapter: FakeAdapter, env: MemoryEnvironment) -> Harness {
    harness_with(adapter, env, |builder| builder)
}

fn harness_with(
    adapter: FakeAdapter,
    env: MemoryEnvironment,
    change: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Harness {
    let adapter = Arc::new(adapter);
    let env = Arc::new(env);
    let client =
        Client::builder().shared_provider(Arc::clone(&adapter) as Arc<dyn ProviderAdapter>).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let builder = Session::builder(client, profile, Arc::clone(&env) as Arc<dyn ExecutionEnvironment>);
    let quick = RetryPolicy::default().with_base_delay(std::time::Duration::from_millis(1));
    let builder = change(builder.with_config(SessionConfig::default().with_retry(quick)));
    Harness { session: builder.build().unwrap(), adapter, env }
}

fn env() -> MemoryEnvironment {
    MemoryEnvironment::new("/project")
}

fn anthropic() -> FakeAdapter {
    FakeAdapter::new("anthropic")
}

fn calling(calls: &[(&str, serde_json::Value)]) -> Message {
    let parts = calls.iter().enumerate().map(|(index, (name, arguments))| {
        ToolCall::from_raw(format!("call_{index}_{name}"), *name, arguments.to_string()).into()
    });
    Message::new(Role::Assistant, parts.collect())
}

fn hanging() -> Message {
    calling(&[("shell", json!({"command": "sleep 1000", "timeout_ms": 600_000}))])
}

/// An environment whose `sleep` never returns; everything else succeeds.
fn env_with_sleep() -> MemoryEnvironment {
    env().with_commands(|command| match &command.program {
        pintle_env::Program::Shell(line) if line.starts_with("sleep") => CommandScript::exit(0).hang(),
        pintle_env::Program::Shell(_) | pintle_env::Program::Argv { .. } => CommandScript::exit(0),
    })
}

fn kind(event: &SessionEvent) -> String {
    serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned()
}

async fn all(mut run: Run) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    events
}

/// Reads until an event of this kind arrives.
async fn until(run: &mut Run, wanted: &str) -> SessionEvent {
    loop {
        let event = run.next().await.expect("the run continues");
        if kind(&event) == wanted {
            return event;
        }
    }
}

#[tokio::test]
async fn run_is_a_stream_of_events_and_a_future() {
    let adapter = anthropic()
        .message(calling(&[("write_file", json!({"file_path": "/project/a.txt", "content": "hello\n"}))]))
        .answer("Written.");
    let harness = harness(adapter, env());
    let mut run = harness.session.submit("write a file");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let outcome = run.await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Written."));
    assert_eq!(
        events.iter().map(kind).collect::<Vec<_>>(),
        [
            "USER_INPUT",
            "REQUEST_PREPARED",
            "MODEL_RESPONSE",
            "TOOL_CALL_START",
            "TOOL_CALL_OUTPUT_DELTA",
            "TOOL_CALL_END",
            "REQUEST_PREPARED",
            "ASSISTANT_TEXT_START",
            "ASSISTANT_TEXT_DELTA",
            "ASSISTANT_TEXT_END",
            "MODEL_RESPONSE",
            "PROCESSING_END",
        ]
    );
    let numbered: Vec<u64> =
        events.iter().filter(|event| event.offset.is_none()).map(|event| event.seq).collect();
    assert_eq!(
        numbered,
        (1..=numbered.len() as u64).collect::<Vec<_>>(),
        "gapless after the session's start"
    );
    assert_eq!(harness.env.read(std::path::Path::new("/project/a.txt"), None).await.unwrap(), b"hello\n");
}

#[tokio::test]
async fn call_end_has_the_exit_code() {
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "make"}))])).answer("Broken.");
    let harness = harness(adapter, env().with_commands(|_| CommandScript::exit(3)));
    let events = all(harness.session.submit("build it")).await;
    let end = events.iter().find(|event| kind(event) == "TOOL_CALL_END").unwrap();
    let data = &serde_json::to_value(end).unwrap()["data"];
    assert_eq!((&data["exit_code"], data.get("error")), (&json!(3), None), "{data}");
}

#[tokio::test]
async fn every_subscriber_gets_all_events() {
    let harness = harness(anthropic().answer("one").answer("two"), env());
    let mut early = harness.session.events();
    harness.session.submit("a").await.unwrap();
    harness.session.submit("b").await.unwrap();
    let log = Arc::clone(&harness.session.log);
    harness.session.close().await;
    let mut late = Events::of_session(Cursor::new(log, 0));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    while let Some(event) = early.next().await {
        first.push(event);
    }
    while let Some(event) = late.next().await {
        second.push(event);
    }
    assert_eq!(first.first().map(kind).as_deref(), Some("SESSION_START"));
    assert_eq!(first.last().map(kind).as_deref(), Some("SESSION_END"));
    assert_eq!(first, second);
}

#[tokio::test]
async fn failed_stream_interrupts_its_text_and_is_retried() {
    let adapter =
        anthropic().cut("half an ans", Error::new(ErrorKind::Stream, "cut")).answer("complete response");
    let harness = harness(adapter, env());
    let events = all(harness.session.submit("go")).await;
    let ends: Vec<(String, bool)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AssistantTextEnd { text, interrupted } => Some((text.clone(), *interrupted)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [("half an ans".to_owned(), true), ("complete response".to_owned(), false)]);
    assert!(
        events.iter().any(
            |event| matches!(&event.kind, EventKind::Warning { message } if message.contains("retry 1"))
        )
    );
    assert_eq!(harness.session.history().len(), 2, "the dead text is not part of the history");
}

#[tokio::test]
async fn retries_are_bounded_and_the_session_stays_usable() {
    let fail = || Error::new(ErrorKind::Server, "down");
    let adapter = anthropic().failure(fail()).failure(fail()).failure(fail()).answer("back");
    let harness = harness(adapter, env());
    let failed = harness.session.submit("go").await;
    let Err(crate::RunError::Failed { source, outcome }) = failed else { panic!("{failed:?}") };
    assert_eq!((source.kind(), outcome.status), (ErrorKind::Server, OutcomeStatus::Failed));
    assert_eq!(harness.adapter.requests().len(), 3);
    assert_eq!(harness.session.submit("again").await.unwrap().text, "back");
}

#[tokio::test]
async fn authentication_error_closes_the_session() {
    let harness = harness(anthropic().failure(Error::new(ErrorKind::Authentication, "bad key")), env());
    let outcome = harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap();
    assert_eq!((outcome.status, harness.session.state()), (OutcomeStatus::Failed, SessionState::Closed));
    assert_eq!(harness.adapter.requests().len(), 1, "no retry");
    assert!(matches!(harness.session.submit("again").await, Err(crate::RunError::Closed { .. })));
}

#[tokio::test]
async fn steering_from_another_task_enters_after_the_round() {
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))])).answer("done");
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.gate(AskForCommands));
    let handle = harness.session.handle();
    let mut run = harness.session.submit("go");
    let call_id = asked(&mut run).await;
    let mut other = JoinSet::new();
    other.spawn(async move {
        handle.steer("the other way").await.unwrap();
        handle.decide(&call_id, Decision::Approve).unwrap();
    });
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    let kinds: Vec<TurnKind> = harness.session.history().iter().map(|turn| turn.kind).collect();
    use TurnKind::{Assistant, Steering, ToolResults, User};
    assert_eq!(kinds, [User, Assistant, ToolResults, Steering, Assistant]);
    let request = harness.adapter.requests()[1].clone();
    let last = request.messages.last().unwrap();
    assert_eq!((last.role, last.text().as_str()), (Role::User, "the other way"));
}

/// Waits for a request for approval and returns the id of its call.
async fn asked(run: &mut Run) -> String {
    match until(run, "APPROVAL_REQUESTED").await.kind {
        EventKind::ApprovalRequested { call_id, .. } => call_id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn dropping_a_run_interrupts_it_and_keeps_the_session() {
    let harness = harness(anthropic().message(hanging()).answer("still here"), env_with_sleep());
    let mut events = harness.session.events();
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    while harness.env.running() == 0 {
        tokio::task::yield_now().await;
    }
    drop(run);
    while let Some(event) = events.next().await {
        if kind(&event) == "PROCESSING_END" {
            break;
        }
    }
    assert_eq!(harness.env.running(), 0, "nothing keeps running");
    assert_eq!(harness.session.submit("again").await.unwrap().text, "still here");
    let sent = harness.adapter.requests().last().unwrap().clone();
    let result = sent.messages.iter().find_map(|item| item.results().next().cloned()).unwrap();
    assert!(result.text().starts_with("Interrupted:"), "{}", result.text());
}

#[tokio::test]
async fn submit_works_right_after_dropping_a_run() {
    let harness = harness(anthropic().message(hanging()).answer("the other"), env_with_sleep());
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    drop(run);
    assert_eq!(harness.session.submit("rather this").await.unwrap().text, "the other");
}

#[tokio::test]
async fn detached_run_continues() {
    let harness = harness(anthropic().answer("done"), env());
    let mut events = harness.session.events();
    harness.session.submit("go").detach();
    while let Some(event) = events.next().await {
        if kind(&event) == "PROCESSING_END" {
            break;
        }
    }
    assert_eq!(harness.session.history().len(), 2);
}

#[tokio::test]
async fn close_ends_everything() {
    let harness = harness(anthropic().message(hanging()), env_with_sleep());
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    harness.session.handle().close().unwrap();
    let rest = all(run).await;
    assert_eq!(
        rest.iter().map(kind).collect::<Vec<_>>(),
        ["TOOL_CALL_OUTPUT_DELTA", "TOOL_CALL_END", "PROCESSING_END", "SESSION_END"]
    );
    assert_eq!((harness.env.running(), harness.session.state()), (0, SessionState::Closed));
    assert!(matches!(harness.session.handle().steer("x").await, Err(SessionError::Closed)));
    assert!(matches!(harness.session.submit("x").await, Err(crate::RunError::Closed { .. })));
}

#[tokio::test]
async fn dropping_the_session_ends_everything_and_its_streams() {
    let harness = harness(anthropic().message(hanging()), env_with_sleep());
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    let Harness { session, env, .. } = harness;
    drop(session);
    while run.next().await.is_some() {}
    assert!(matches!(run.await, Err(crate::RunError::Closed { outcome: None })));
    assert_eq!(env.running(), 0);
}

#[derive(Debug)]
struct AskForCommands;

#[async_trait::async_trait]
impl Gate for AskForCommands {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.name() {
            "shell" => Verdict::ask("it runs a command"),
            "write_file" => Verdict::deny("read only"),
            _ => Verdict::ALLOW,
        }
    }
}

#[tokio::test]
async fn gate_allows_denies_or_asks() {
    let adapter = anthropic()
        .message(calling(&[
            ("shell", json!({"command": "true"})),
            ("write_file", json!({"file_path": "/project/x", "content": ""})),
        ]))
        .answer("done");
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.gate(AskForCommands));
    let handle = harness.session.handle();
    let mut run = harness.session.submit("go");
    let call_id = asked(&mut run).await;
    assert!(matches!(handle.decide("nobody", Decision::Approve), Err(SessionError::NoSuchApproval(_))));
    handle.decide(&call_id, Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    let results: Vec<(bool, String)> = harness.session.history()[2]
        .item
        .results()
        .map(|result| (result.is_error, result.text().lines().next().unwrap_or_default().to_owned()))
        .collect();
    assert!(!results[0].0, "{results:?}");
    assert_eq!(results[1], (true, "The call of write_file was denied: read only".to_owned()));
    assert!(!harness.env.files().contains_key(std::path::Path::new("/project/x")));
}

#[tokio::test]
async fn model_changes_between_two_requests() {
    let harness = harness(anthropic().answer("one").answer("two"), env());
    harness.session.submit("a").await.unwrap();
    harness.session.handle().set_model("claude-sonnet-4-5").unwrap();
    harness.session.submit("b").await.unwrap();
    let requests = harness.adapter.requests();
    let models: Vec<&str> = requests.iter().map(|request| request.model.as_str()).collect();
    assert_eq!(models, ["claude-opus-4-6", "claude-sonnet-4-5"]);
    assert_eq!(requests[1].messages.len(), 4, "system, a, one, b");
}

#[tokio::test]
async fn unknown_provider_is_rejected_when_building() {
    let client = Client::builder().provider(FakeAdapter::new("other")).build().unwrap();
    let error =
        Session::builder(client, ProviderProfile::gemini("gemini-3-flash-preview"), Arc::new(env())).build();
    let source = std::error::Error::source(&error.unwrap_err()).unwrap().to_string();
    assert!(source.contains("unknown provider `gemini`; registered: other"), "{source}");
}

#[tokio::test]
async fn a_caller_gets_the_outcome_of_its_compaction() {
    fn outcomes(report: &CompactionReport) -> Vec<&str> {
        let mut outcomes = Vec::new();
        for event in &report.events {
            outcomes.push(match event {
                EventKind::CompactionEnd { .. } => "compacted",
                EventKind::Warning { message } => message.as_str(),
                other => panic!("{other:?}"),
            });
        }
        outcomes
    }
    let refused = Error::new(ErrorKind::Authentication, "no such key");
    let adapter = anthropic().answer("One.").answer("The summary.").answer("Two.").failure(refused);
    let harness = harness(adapter, env());
    let handle = harness.session.handle();
    let report = handle.compact_and_wait().await.unwrap();
    let nothing = "the conversation was not compacted: there is nothing to summarize yet";
    assert_eq!((outcomes(&report), report.is_deferred), (vec![nothing], false));
    harness.session.submit("x".repeat(4_000)).await.unwrap();
    let report = handle.compact_and_wait().await.unwrap();
    assert_eq!((outcomes(&report)[0], report.is_deferred), ("compacted", false));
    assert_eq!(harness.session.state(), SessionState::Idle);
    harness.session.submit("go on").await.unwrap();
    let report = handle.compact_and_wait().await.unwrap();
    let [failed] = outcomes(&report)[..] else { panic!("{report:?}") };
    assert!(failed.starts_with("the conversation was not compacted: ") && failed.contains("no such key"));
    assert!(!report.is_deferred);
    handle.set_model("claude-sonnet-4-5").unwrap();
    let report = handle.compact_and_wait().await.unwrap();
    assert!(report.is_deferred && report.events.is_empty(), "{report:?}");
    harness.session.close().await;
    assert!(matches!(handle.compact_and_wait().await, Err(SessionError::Closed)));
}

#[tokio::test]
async fn each_input_has_its_own_outcome() {
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))]));
    let harness = harness(adapter.answer("first").answer("second"), env());
    let mut run = harness.session.submit("go");
    let queued = harness.session.handle().follow_up("and then?").await.unwrap();
    let first = run.input_outcome().await.unwrap();
    assert_eq!((first.text.as_str(), first.model_calls, first.tool_calls), ("first", 2, 1));
    let both = run.await.unwrap();
    let second = queued.await.unwrap();
    assert_eq!((second.text.as_str(), second.model_calls, second.tool_calls), ("second", 1, 0));
    assert_eq!((both.text.as_str(), both.model_calls), ("second", 3));
    assert_eq!(both.usage.total_tokens, first.usage.total_tokens + second.usage.total_tokens);
    let never = harness.session.handle().follow_up("later").await.unwrap();
    harness.session.close().await;
    assert!(matches!(never.await, Err(crate::RunError::Closed { .. })));
}
