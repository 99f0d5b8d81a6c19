//! Configuration that changes between turns, and queues that can be read.

use std::time::Duration;

use pintle_llm::AdapterTimeout;
use pintle_tools::{CommandTimeouts, TruncationLimits};

use super::*;

/// Results of the last request of an adapter.
fn last_result(adapter: &FakeAdapter) -> String {
    let sent = adapter.requests().last().unwrap().clone();
    let mut results = sent.messages.iter().rev().filter_map(|item| item.results().last().cloned());
    results.next().unwrap().text()
}

#[tokio::test]
async fn output_limits_change_between_turns() {
    let read = || calling(&[("read_file", json!({"file_path": "/project/a.txt"}))]);
    let adapter = anthropic().message(read()).answer("one").message(read()).answer("two");
    let harness = harness(adapter, env().with_file("/project/a.txt", "x".repeat(5_000)));
    harness.session.submit("read").await.unwrap();
    assert!(last_result(&harness.adapter).len() > 5_000);
    harness
        .session
        .handle()
        .set_tool_output(TruncationLimits::default().with_chars("read_file", 100))
        .unwrap();
    harness.session.submit("read again").await.unwrap();
    assert!(last_result(&harness.adapter).len() < 1_000, "{}", last_result(&harness.adapter));
}

#[tokio::test(start_paused = true)]
async fn command_timeouts_change_between_turns() {
    let run = || calling(&[("shell", json!({"command": "sleep 60"}))]);
    let adapter = anthropic().message(run()).answer("one").message(run()).answer("two");
    let harness = harness(adapter, env_with_sleep());
    let handle = harness.session.handle();
    let mut limits = Vec::new();
    for seconds in [2, 5] {
        let max = Duration::from_secs(seconds);
        handle.set_command_timeouts(CommandTimeouts { max, ..CommandTimeouts::default() }).unwrap();
        let events = all(harness.session.submit("run")).await;
        limits.extend(events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolCallEnd { timeout_ms, .. } => *timeout_ms,
            _ => None,
        }));
    }
    assert_eq!(limits, [2_000, 5_000]);
}

/// Neither the session nor the call sets a time-out. Two minutes is the default of Claude's profile (specification,
/// section 3.5).
#[tokio::test(start_paused = true)]
async fn a_command_times_out_after_its_profiles_default() {
    let cases = [
        (ProviderProfile::openai("m"), 10_000),
        (ProviderProfile::anthropic("m"), 120_000),
        (ProviderProfile::gemini("m"), 10_000),
        (ProviderProfile::openai_compatible("m"), 10_000),
    ];
    for (profile, timeout) in cases {
        let id = profile.id.clone();
        let call = calling(&[("shell", json!({"command": "sleep 1000"}))]);
        let client = Client::builder()
            .provider(FakeAdapter::new(&id).message(call).answer("Too long."))
            .build()
            .unwrap();
        let session = Session::builder(client, profile, env_with_sleep()).build().unwrap();
        let started = tokio::time::Instant::now();
        let mut run = session.submit("go");
        let ended = until(&mut run, "TOOL_CALL_END").await;
        let EventKind::ToolCallEnd { timeout_ms, .. } = ended.kind else { panic!("{ended:?}") };
        assert_eq!(timeout_ms, Some(timeout), "{id}");
        let waited = started.elapsed().as_millis();
        assert!((u128::from(timeout)..u128::from(timeout) + 5_000).contains(&waited), "{id}: {waited} ms");
        assert_eq!(run.await.unwrap().text, "Too long.", "{id}: the session continues");
        let history = session.history();
        let result = history[2].item.results().next().unwrap();
        let told = format!("[ERROR: Command timed out after {timeout}ms. Partial output is shown above.");
        assert!(result.is_error && result.text().contains(&told), "{id}: {}", result.text());
    }
}

#[tokio::test]
async fn retry_policy_changes_between_turns() {
    let overloaded = || Error::new(ErrorKind::Server, "overloaded");
    let adapter = anthropic().failure(overloaded()).answer("one").failure(overloaded()).answer("unused");
    let harness = harness(adapter, env());
    assert_eq!(harness.session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    harness.session.handle().set_retry(RetryPolicy::none()).unwrap();
    assert_eq!(
        harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap().status,
        OutcomeStatus::Failed
    );
    assert_eq!(harness.adapter.requests().len(), 3);
}

#[tokio::test]
async fn limits_of_model_calls_change_between_turns() {
    let adapter = anthropic().answer("one").answer("a response of some length").answer("three");
    let harness = harness(adapter, env());
    let handle = harness.session.handle();
    harness.session.submit("go").await.unwrap();
    let mut timeout = AdapterTimeout::patient();
    timeout.stream_read = Duration::from_secs(7);
    handle.set_model_timeout(timeout).unwrap();
    handle.set_response_limit(10).unwrap();
    assert_eq!(
        harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap().status,
        OutcomeStatus::Failed
    );
    let requests = harness.adapter.requests();
    let stream_read = |index: usize| requests[index].timeout.map(|timeout| timeout.stream_read);
    assert_ne!(stream_read(0), stream_read(1));
    assert_eq!(stream_read(1), Some(Duration::from_secs(7)));
    handle.set_response_limit(1_000).unwrap();
    assert_eq!(harness.session.submit("go").await.unwrap().text, "three");
}

#[tokio::test]
async fn queued_messages_can_be_read() {
    let adapter = anthropic().message(hanging()).answer("one").answer("two");
    let harness = harness(adapter, env_with_sleep());
    let handle = harness.session.handle();
    assert!(handle.queued().is_empty());
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    for text in ["this way", "and that way"] {
        handle.steer(text).await.unwrap();
    }
    handle.follow_up("then this").await.unwrap();
    handle.link().shared.clone().wait_for(|shared| shared.queued.follow_ups.len() == 1).await.unwrap();
    let queued = handle.queued();
    assert_eq!(queued.steering, ["this way", "and that way"]);
    assert_eq!(queued.follow_ups, ["then this"]);
    handle.stop_turn().unwrap();
    run.await.unwrap();
    assert_eq!(handle.queued(), queued, "an interrupt keeps what is queued");
    harness.session.submit("again").await.unwrap();
    assert!(handle.queued().is_empty());
}

#[test]
fn a_session_needs_a_runtime() {
    let client = Client::builder().provider(anthropic()).build().unwrap();
    let built = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env()).build();
    assert!(matches!(built, Err(SessionError::NoRuntime)), "{built:?}");
}

/// The environment in memory accepts any working directory when it is initialised, like one that an application initialises.
#[tokio::test]
async fn a_run_in_a_missing_directory_fails() {
    for is_shared in [false, true] {
        let gone = env();
        gone.remove(std::path::Path::new("/project")).await.unwrap();
        let harness = harness_with(anthropic().answer("Not asked for."), gone, |builder| {
            if is_shared { builder.shared_environment() } else { builder }
        });
        let outcome = harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap();
        assert_missing(&outcome);
        assert!(harness.adapter.requests().is_empty());
    }
}

#[tokio::test]
async fn a_run_in_a_directory_that_is_a_file_fails() {
    let file = MemoryEnvironment::new("/project").with_file("/project", "text");
    let harness = harness(anthropic().answer("Not asked for."), file);
    let error =
        harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap().error.unwrap();
    assert_eq!(error.causes, ["/project is not a directory"]);
}

#[tokio::test]
async fn a_change_to_a_missing_directory_fails_the_next_run() {
    let harness = harness(anthropic().answer("One.").answer("Not asked for."), env());
    assert_eq!(harness.session.submit("go").await.unwrap().text, "One.");
    let gone = MemoryEnvironment::new("/gone");
    gone.remove(std::path::Path::new("/gone")).await.unwrap();
    harness.session.handle().set_environment(Arc::new(gone)).unwrap();
    let outcome = harness.session.submit("again").await.or_else(crate::RunError::into_outcome).unwrap();
    assert_missing(&outcome);
    assert_eq!(harness.adapter.requests().len(), 1);
}

fn assert_missing(outcome: &crate::protocol::Outcome) {
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert!(error.causes.iter().any(|cause| cause.contains("does not exist")), "{error:?}");
}
