//! Changes and limits that take effect while a session works.

use std::time::Duration;

use pintle_env::{LocalEnvironment, ReadOnlyEnvironment};
use pintle_llm::Money;

use super::*;
use crate::protocol::{BudgetKind, Limits};

fn write(name: &str) -> Message {
    calling(&[("write_file", json!({"file_path": format!("/project/{name}"), "content": "x"}))])
}

fn limited(budget: Limits) -> SessionConfig {
    SessionConfig::default().with_budget(budget)
}

#[tokio::test]
async fn raised_budget_continues_a_paused_run() {
    let adapter = anthropic().message(write("a")).message(write("b")).answer("Done.");
    let harness = harness_with(adapter, env(), |builder| {
        builder.with_config(limited(Limits::default().with_tool_calls(1)))
    });
    let mut run = harness.session.submit("go");
    let event = until(&mut run, "BUDGET_REACHED").await;
    let EventKind::BudgetReached { budget, limit, spent, .. } = event.kind else { panic!("{event:?}") };
    assert_eq!((budget, limit, spent), (BudgetKind::ToolCalls, 1, 1));
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Budget);
    assert_eq!(harness.session.state(), SessionState::Idle);
    assert_eq!(harness.env.files().len(), 1, "the call that would have followed has not run");
    let raised = SessionConfig::default().with_budget(Limits::default().with_tool_calls(2)).limits;
    harness.session.handle().set_limits(raised).unwrap();
    let outcome = harness.session.submit("go on").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Done."));
    let sent = harness.adapter.requests().pop().unwrap();
    let results: Vec<_> = sent.messages.iter().flat_map(|message| message.results()).collect();
    assert!(results[1].is_error && results[1].text().starts_with("Not run: the session has reached a limit"));
}

/// The prompt and the tools alone have more than a thousand tokens.
#[tokio::test]
async fn call_that_does_not_fit_the_budget_is_not_made() {
    let harness = harness_with(anthropic().answer("Hello."), env(), |builder| {
        builder.with_config(limited(Limits::default().with_tokens(1_000)))
    });
    let mut run = harness.session.submit("go");
    let event = until(&mut run, "BUDGET_REACHED").await;
    let EventKind::BudgetReached { spent, needed, .. } = event.kind else { panic!("{event:?}") };
    assert_eq!((spent, needed.is_some_and(|needed| needed > 1_000)), (0, true));
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Budget);
    assert_eq!(harness.adapter.requests().len(), 0);
    let raised = SessionConfig::default().with_budget(Limits::default().with_tokens(20_000)).limits;
    harness.session.handle().set_limits(raised).unwrap();
    assert_eq!(harness.session.submit("again").await.unwrap().text, "Hello.");
    let most = harness.adapter.requests()[0].max_tokens.unwrap();
    assert!(most < 19_000, "the output is limited to what is left: {most}");
}

#[tokio::test(start_paused = true)]
async fn wall_time_stops_a_command() {
    let adapter = anthropic().message(hanging()).answer("Then not.");
    let time = Limits::default().with_wall_time(Duration::from_secs(60));
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.with_config(limited(time)));
    let outcome = harness.session.submit("go").await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Budget);
    assert_eq!(harness.env.running(), 0);
    let outcome = harness.session.submit("and now").await.unwrap();
    assert_eq!(outcome.text, "Then not.", "each run has its time");
}

/// A timer of a finished run must not stop the next one.
#[tokio::test(start_paused = true)]
async fn each_run_has_its_own_wall_time() {
    let quiet = calling(&[("shell", json!({"command": "sleep 1000", "timeout_ms": 40_000}))]);
    let adapter = anthropic().answer("One.").message(quiet).answer("Two.");
    let time = Limits::default().with_wall_time(Duration::from_secs(60));
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.with_config(limited(time)));
    harness.session.submit("one").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let outcome = harness.session.submit("two").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Two."));
}

#[tokio::test]
async fn cost_limit_rejects_only_unpriced_models() {
    let harness = harness_with(anthropic().answer("Hello."), env(), |builder| {
        builder.with_config(limited(Limits::default().with_cost(Money::from_micros(1_000_000))))
    });
    harness.session.handle().set_model("claude-of-tomorrow").unwrap();
    let outcome = harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap();
    assert_eq!(
        (outcome.status, outcome.error.unwrap().kind),
        (OutcomeStatus::Failed, ErrorKind::InvalidRequest)
    );
    assert_eq!(harness.adapter.requests().len(), 0);
    harness.session.handle().set_model("claude-opus-4-6").unwrap();
    assert_eq!(harness.session.submit("again").await.unwrap().status, OutcomeStatus::Completed);
}

#[tokio::test]
async fn refused_image_is_removed_and_the_session_continues() {
    let png = b"\x89PNG\r\n\x1a\n\0\0 but no picture".to_vec();
    let look = calling(&[("read_file", json!({"file_path": "/project/a.png"}))]);
    let refusal = Error::new(ErrorKind::InvalidRequest, "could not process image");
    let adapter = anthropic().message(look).failure(refusal).answer("I cannot see it.");
    let harness = harness(adapter, env().with_file("/project/a.png", png));
    let events = all(harness.session.submit("look")).await;
    assert!(events.iter().any(|event| kind(event) == "HISTORY_REPAIRED"));
    let images = |request: &pintle_llm::Request| {
        request
            .messages
            .iter()
            .flat_map(|message| message.results())
            .map(|result| result.images.len())
            .sum::<usize>()
    };
    let sent: Vec<usize> = harness.adapter.requests().iter().map(images).collect();
    assert_eq!(sent, [0, 1, 0]);
    let shown = harness.session.history();
    assert!(shown.iter().all(|turn| turn.item.results().all(|result| result.images.is_empty())));
    assert_eq!(shown.len(), 4, "the published history is the one that is sent");
}

#[tokio::test]
async fn tools_change_from_the_next_request_on() {
    let adapter = anthropic().answer("1").answer("2");
    let harness = harness(adapter, env());
    harness.session.submit("one").await.unwrap();
    let mut tools = ProviderProfile::anthropic("claude-opus-4-6").tool_registry;
    assert!(tools.unregister("shell"));
    harness.session.handle().set_tools(tools).unwrap();
    harness.session.submit("two").await.unwrap();
    let offered: Vec<bool> = harness
        .adapter
        .requests()
        .iter()
        .map(|request| request.tools.iter().any(|tool| tool.name == "shell"))
        .collect();
    assert_eq!(offered, [true, false]);
}

#[derive(Debug)]
struct AskForA;

#[async_trait::async_trait]
impl Gate for AskForA {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.arguments().to_string().contains("/project/a") {
            true => Verdict::ask("it writes"),
            false => Verdict::ALLOW,
        }
    }
}

#[tokio::test]
async fn environment_wrappers_change_and_the_prompt_stays() {
    let adapter = anthropic().message(write("a")).message(write("b")).answer("Not b.");
    let harness = harness_with(adapter, env(), |builder| builder.gate(AskForA));
    let mut run = harness.session.submit("go");
    until(&mut run, "APPROVAL_REQUESTED").await;
    let place = Arc::clone(&harness.env) as Arc<dyn ExecutionEnvironment>;
    harness.session.handle().set_environment(Arc::new(ReadOnlyEnvironment::new(place))).unwrap();
    harness.session.handle().decide("call_0_write_file", crate::Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().text, "Not b.");
    let names: Vec<_> = harness.env.files().into_keys().collect();
    assert_eq!(names, [std::path::PathBuf::from("/project/a")], "a was asked for before");
    let requests = harness.adapter.requests();
    let results: Vec<bool> = requests[2]
        .messages
        .iter()
        .flat_map(|message| message.results())
        .map(|result| result.is_error)
        .collect();
    assert_eq!(results, [false, true]);
    assert_eq!(requests[0].messages[0].text(), requests[2].messages[0].text());
    harness.session.close().await;
}

#[tokio::test]
async fn new_working_directory_is_in_the_prompt() {
    let harness = harness(anthropic().answer("1").answer("2"), env());
    harness.session.submit("one").await.unwrap();
    harness.session.handle().set_environment(Arc::new(MemoryEnvironment::new("/elsewhere"))).unwrap();
    harness.session.submit("two").await.unwrap();
    let prompts: Vec<bool> = harness
        .adapter
        .requests()
        .iter()
        .map(|request| request.messages[0].text().contains("/elsewhere"))
        .collect();
    assert_eq!(prompts, [false, true]);
    harness.session.close().await;
}

/// The in-memory environment has no links.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a fixture exists before the environment is used")]
async fn writes_through_a_link_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", directory.path().join("link")).unwrap();
    let names = ["real/file", "link/file", "link/../real/file"];
    let calls = names.map(|name| ("write_file", json!({"file_path": name, "content": name})));
    let adapter = anthropic().message(calling(&calls)).answer("Done.");
    let client = Client::builder().provider(adapter).build().unwrap();
    let env = LocalEnvironment::with_host_env(directory.path(), []).unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let session = Session::builder(client, profile, Arc::new(env)).build().unwrap();
    let events = all(session.submit("go")).await;
    let reported =
        events.iter().map(kind).filter(|kind| matches!(kind.as_str(), "TOOL_CALL_START" | "TOOL_CALL_END"));
    assert_eq!(reported.collect::<Vec<_>>(), ["TOOL_CALL_START", "TOOL_CALL_END"].repeat(3));
    assert_eq!(std::fs::read_to_string(directory.path().join("real/file")).unwrap(), names[2]);
}
